//! Writing values in the layout of the format.

use holdup_perfdata::format::{STRING_ALIGN, record};

/// A growing section or record, in the byte order of this machine, which the file's magic shows.
#[derive(Clone, Debug, Default)]
pub(crate) struct Bytes(pub(crate) Vec<u8>);

impl Bytes {
    pub(crate) fn u16(&mut self, v: u16) -> &mut Self {
        self.put(&v.to_ne_bytes())
    }

    pub(crate) fn u32(&mut self, v: u32) -> &mut Self {
        self.put(&v.to_ne_bytes())
    }

    pub(crate) fn u64(&mut self, v: u64) -> &mut Self {
        self.put(&v.to_ne_bytes())
    }

    pub(crate) fn put(&mut self, bytes: &[u8]) -> &mut Self {
        self.0.extend_from_slice(bytes);
        self
    }

    /// A count, as a `u32`: large enough for anything that is counted on a machine.
    pub(crate) fn count(&mut self, n: usize) -> &mut Self {
        self.u32(u32::try_from(n).unwrap_or(u32::MAX))
    }

    /// A string of a feature section: its padded length, then the padded bytes.
    pub(crate) fn string(&mut self, text: &str) -> &mut Self {
        let padded = (text.len() + 1).next_multiple_of(STRING_ALIGN);
        self.count(padded).put(text.as_bytes()).zeros(padded - text.len())
    }

    /// A string of a record: with at least one NUL, padded to 8 bytes.
    pub(crate) fn name(&mut self, text: &[u8]) -> &mut Self {
        let padded = (text.len() + 1).next_multiple_of(8);
        self.put(text).zeros(padded - text.len())
    }

    pub(crate) fn c_str(&mut self, text: &str) -> &mut Self {
        self.put(text.as_bytes()).put(&[0])
    }

    pub(crate) fn zeros(&mut self, n: usize) -> &mut Self {
        self.0.resize(self.0.len() + n, 0);
        self
    }

    /// Appends the record that `body` makes. Returns false, having appended nothing, if it is too
    /// long for a record, whose size field has 16 bits.
    pub(crate) fn record(&mut self, kind: u32, misc: u16, body: impl FnOnce(&mut Bytes)) -> bool {
        let start = self.0.len();
        self.u32(kind).u16(misc).u16(0);
        body(self);
        let size = u16::try_from(self.0.len() - start);
        match size {
            Ok(size) => {
                self.0[start + 6..start + record::HEADER].copy_from_slice(&size.to_ne_bytes())
            }
            Err(_) => self.0.truncate(start),
        }
        size.is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_are_padded_with_at_least_one_nul() {
        let mut b = Bytes::default();
        b.string(&"x".repeat(63)).string(&"x".repeat(64));
        assert_eq!(b.0.len(), 4 + 64 + 4 + 128);
        let mut b = Bytes::default();
        b.name(b"1234567").name(b"12345678");
        assert_eq!(b.0.len(), 8 + 16);
    }

    #[test]
    fn a_record_that_is_too_long_is_not_begun() {
        let mut b = Bytes::default();
        assert!(b.record(68, 0, |_| {}));
        assert!(!b.record(80, 0, |b| {
            b.zeros(65_528);
        }));
        assert!(b.record(80, 2, |b| {
            b.zeros(65_527);
        }));
        assert_eq!(b.0.len(), 8 + 65_535);
    }
}
