//! Records as they are in a ring buffer.

/// Two byte ranges that belong together: a ring buffer's content continues at its start.
#[derive(Clone, Copy)]
pub(crate) struct Joined<'a>(pub(crate) &'a [u8], pub(crate) &'a [u8]);

impl Joined<'_> {
    /// The word at `at`. A ring holds nothing but multiples of 8 bytes, so none is torn.
    #[inline(always)]
    pub(crate) fn word(self, at: usize) -> Option<u64> {
        let part = match at.checked_sub(self.0.len()) {
            None => &self.0[at..],
            Some(at) => self.1.get(at..)?,
        };
        part.first_chunk().map(|word| u64::from_ne_bytes(*word))
    }
}
