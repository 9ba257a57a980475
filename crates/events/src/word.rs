//! A word that is written often, stored so that writing it takes few stores.

/// Text that is written often.
#[derive(Clone, Default)]
pub(crate) struct Word {
    text: Box<[u8]>,
    /// Its first bytes: nearly always all of it.
    head: [u8; 32],
    /// The columns it takes on a terminal.
    columns: u16,
}

impl Word {
    pub(crate) fn as_str(&self) -> &str {
        std::str::from_utf8(&self.text).unwrap_or("")
    }

    pub(crate) fn new(text: &str) -> Word {
        let mut head = [0; 32];
        for (to, from) in head.iter_mut().zip(text.bytes()) {
            *to = from;
        }
        let columns = unicode_width::UnicodeWidthStr::width(text).min(u16::MAX.into()) as u16;
        Word { text: text.as_bytes().into(), head, columns }
    }

    #[inline(always)]
    pub(crate) fn text(&self) -> &[u8] {
        &self.text
    }

    /// An array that begins with the text, and the text's length; `None` if the text is longer.
    #[inline(always)]
    pub(crate) fn short(&self) -> Option<(&[u8; 32], usize)> {
        (self.text.len() <= self.head.len()).then_some((&self.head, self.text.len()))
    }

    /// How many more bytes than columns it has.
    #[inline(always)]
    pub(crate) fn surplus(&self) -> usize {
        self.text.len().saturating_sub(self.columns.into())
    }
}
