//! Names as they are written, each spelled once.

use holdup_trace::{NameId, Names};
use std::sync::Arc;

/// A name spelled for one kind of output.
type Spell = fn(&str) -> String;

/// Remembers how names are written.
pub(crate) struct Spelled {
    names: Arc<Names>,
    spell: Spell,
    /// By id: the text, and how many columns it takes.
    known: Vec<Option<(Box<[u8]>, u16)>>,
}

impl Spelled {
    pub(crate) fn new(names: Arc<Names>, spell: Spell) -> Spelled {
        Spelled { names, spell, known: Vec::new() }
    }

    /// The text and its width.
    #[inline]
    pub(crate) fn get(&mut self, id: NameId) -> (&[u8], usize) {
        let at = id.0 as usize;
        if !matches!(self.known.get(at), Some(Some(_))) {
            self.learn(id);
        }
        match &self.known[at] {
            Some((text, width)) => (text, usize::from(*width)),
            None => (b"", 0),
        }
    }

    #[cold]
    fn learn(&mut self, id: NameId) {
        let at = id.0 as usize;
        if at >= self.known.len() {
            self.known.resize(at + 1, None);
        }
        let text = (self.spell)(&self.names.get(id));
        let width = unicode_width::UnicodeWidthStr::width(&*text).min(u16::MAX.into()) as u16;
        self.known[at] = Some((text.into_bytes().into(), width));
    }
}
