//! Names as they are written, each formatted once.

use crate::put::Out;
use crate::word::Word;
use holdup_trace::{NameId, Names, Tid};
use std::sync::Arc;

/// Formats a name for one kind of output.
type Spell = fn(&str) -> String;

/// Caches how names are written.
pub(crate) struct Spelled {
    names: Arc<Names>,
    spell: Spell,
    /// By id.
    known: Vec<Option<Word>>,
}

impl Spelled {
    pub(crate) fn new(names: Arc<Names>, spell: Spell) -> Spelled {
        Spelled { names, spell, known: Vec::new() }
    }

    /// The formatted name.
    #[inline(always)]
    pub(crate) fn get(&mut self, id: NameId) -> &Word {
        let at = id.0 as usize;
        if !matches!(self.known.get(at), Some(Some(_))) {
            self.learn(id);
        }
        self.known[at].get_or_insert_default()
    }

    #[cold]
    #[inline(never)]
    fn learn(&mut self, id: NameId) {
        let at = id.0 as usize;
        if at >= self.known.len() {
            self.known.resize(at + 1, None);
        }
        self.known[at] = Some(Word::new(&(self.spell)(&self.names.get(id))));
    }
}

/// The size of the cache: threads whose numbers are equal modulo this share an entry.
const PLACES: usize = 1024;

/// Caches how threads are written, `COMM/TID`: a line shows up to three, mostly those of the lines
/// before.
pub(crate) struct Threads(Box<[Thread; PLACES]>);

#[derive(Clone, Copy)]
struct Thread {
    tid: Tid,
    comm: NameId,
    text: [u8; 32],
    /// Length of the text in bytes; 0 for an empty entry.
    len: u8,
    /// How many more bytes than columns the text has.
    surplus: u8,
}

impl Default for Threads {
    fn default() -> Threads {
        let none = Thread { tid: Tid(0), comm: NameId::NONE, text: [0; 32], len: 0, surplus: 0 };
        Threads(Box::new([none; PLACES]))
    }
}

impl Threads {
    /// Returns how many more bytes than columns the text has.
    #[inline(always)]
    pub(crate) fn write(
        &mut self,
        out: &mut Out,
        names: &mut Spelled,
        tid: Tid,
        comm: NameId,
    ) -> usize {
        let known = &self.0[tid.0 as usize % PLACES];
        if known.tid == tid && known.comm == comm && known.len > 0 {
            out.put(&known.text, usize::from(known.len));
            return known.surplus.into();
        }
        self.learn(out, names, tid, comm)
    }

    #[inline(never)]
    fn learn(&mut self, out: &mut Out, names: &mut Spelled, tid: Tid, comm: NameId) -> usize {
        let start = out.len();
        let mut surplus = 0;
        if tid == Tid::IDLE {
            out.str("<idle>");
        } else {
            let comm = names.get(comm);
            out.word(comm);
            surplus = comm.surplus();
        }
        out.push(b'/');
        out.int(tid.0 as i32);
        let written = &out.written()[start..];
        let place = &mut self.0[tid.0 as usize % PLACES];
        // Longer texts are not cached.
        if let Some(room) = place.text.get_mut(..written.len()) {
            room.copy_from_slice(written);
            let (len, surplus) = (written.len() as u8, surplus as u8);
            *place = Thread { tid, comm, len, surplus, ..*place };
        }
        surplus
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_is_written_as_it_is_called_now_whoever_shares_its_place() {
        let names = Names::new();
        let id = |name: &str| names.intern(name.as_bytes());
        let (sh, ls, wide) = (id("sh"), id("ls"), id("編集"));
        let long = id("a name of more than the thirty-two bytes that are kept");
        let mut threads = Threads::default();
        let mut spelled = Spelled::new(names.clone(), str::to_owned);
        let same_place = 7 + PLACES as u32;
        for (tid, comm, expected, surplus) in [
            (7, sh, "sh/7", 0),
            (7, sh, "sh/7", 0),
            (7, ls, "ls/7", 0),
            (same_place, ls, "ls/1031", 0),
            (7, ls, "ls/7", 0),
            (7, wide, "編集/7", 2),
            (7, wide, "編集/7", 2),
            (7, long, "a name of more than the thirty-two bytes that are kept/7", 0),
            (7, wide, "編集/7", 2),
            (7, long, "a name of more than the thirty-two bytes that are kept/7", 0),
            (0, NameId::NONE, "<idle>/0", 0),
            (0, sh, "<idle>/0", 0),
            (u32::MAX, NameId::NONE, "/-1", 0),
        ] {
            let mut out = Out::new(0);
            let more = threads.write(&mut out, &mut spelled, Tid(tid), comm);
            assert_eq!(String::from_utf8_lossy(out.written()), expected);
            assert_eq!(more, surplus, "{expected}");
        }
    }
}
