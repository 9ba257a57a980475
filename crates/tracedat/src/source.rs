//! Where the bytes come from: a file read by position, or memory.
//!
//! Nothing is mapped. If a file shrinks while it is read, reads come back short and are counted; a
//! mapping would kill the process.

use holdup_trace::ErrorKind;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::fs::FileExt;

/// Streams up to this size are kept in memory, longer ones in an unnamed temporary file.
const SPOOL_IN_MEMORY: u64 = 64 << 20;

/// Random access to the bytes of an input.
#[derive(Debug)]
pub(crate) enum Source {
    /// A regular file and its length when it was opened.
    File(File, u64),
    /// A short stream, or a section once decompressed.
    Memory(Vec<u8>),
}

impl Source {
    /// Take a file that can be read by position.
    pub(crate) fn file(file: File) -> io::Result<Source> {
        let len = file.metadata()?.len();
        Ok(Source::File(file, len))
    }

    /// Read a stream to its end.
    pub(crate) fn spool(mut input: impl Read) -> io::Result<Source> {
        let mut memory = Vec::new();
        input.by_ref().take(SPOOL_IN_MEMORY + 1).read_to_end(&mut memory)?;
        if memory.len() as u64 <= SPOOL_IN_MEMORY {
            return Ok(Source::Memory(memory));
        }
        let mut file = tempfile::tempfile()?;
        file.write_all(&memory)?;
        drop(memory);
        io::copy(&mut input, &mut file)?;
        Source::file(file)
    }

    /// Length in bytes when opened.
    pub(crate) fn len(&self) -> u64 {
        match self {
            Source::File(_, len) => *len,
            Source::Memory(bytes) => bytes.len() as u64,
        }
    }

    /// Fill `buf` from `offset`; fewer bytes only at the end of the input.
    pub(crate) fn read_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<usize> {
        match self {
            Source::File(file, _) => {
                // The system call refuses impossible offsets, which damaged headers contain.
                if offset > i64::MAX as u64 - buf.len() as u64 {
                    return Ok(0);
                }
                let mut done = 0;
                while done < buf.len() {
                    match file.read_at(&mut buf[done..], offset + done as u64) {
                        Ok(0) => break,
                        Ok(n) => done += n,
                        Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                        Err(e) => return Err(e),
                    }
                }
                Ok(done)
            }
            Source::Memory(bytes) => {
                let from = usize::try_from(offset).unwrap_or(usize::MAX).min(bytes.len());
                let n = buf.len().min(bytes.len() - from);
                buf[..n].copy_from_slice(&bytes[from..from + n]);
                Ok(n)
            }
        }
    }
}

/// Bytes fetched at once for the small reads of the metadata.
const WINDOW: usize = 64 << 10;

/// Reads the metadata field by field. Every error names the offset, what was expected and what was
/// found.
pub(crate) struct Cursor<'a> {
    source: &'a Source,
    pos: u64,
    big: bool,
    section: String,
    window: Vec<u8>,
    window_at: u64,
}

impl<'a> Cursor<'a> {
    /// Start at `pos`; `section` is named in errors.
    pub(crate) fn new(
        source: &'a Source,
        pos: u64,
        big: bool,
        section: impl Into<String>,
    ) -> Cursor<'a> {
        Cursor { source, pos, big, section: section.into(), window: Vec::new(), window_at: 0 }
    }

    /// Offset of the next field.
    pub(crate) fn pos(&self) -> u64 {
        self.pos
    }

    /// Set the byte order, which is known only after the first fields.
    pub(crate) fn set_big_endian(&mut self, big: bool) {
        self.big = big;
    }

    /// Name the section that follows, for errors.
    pub(crate) fn enter(&mut self, section: &str) {
        self.section.clear();
        self.section.push_str(section);
    }

    /// Bytes from here to the end of the input.
    pub(crate) fn left(&self) -> u64 {
        self.source.len().saturating_sub(self.pos)
    }

    /// An error at `offset`.
    pub(crate) fn error(
        &self,
        offset: u64,
        expected: impl Into<String>,
        found: impl Into<String>,
    ) -> ErrorKind {
        ErrorKind::malformed(offset, Some(self.section.clone()), expected, found)
    }

    /// `n` bytes. If the input is shorter, it fails before anything is allocated.
    pub(crate) fn bytes(&mut self, n: u64, what: &str) -> Result<Vec<u8>, ErrorKind> {
        let cut =
            |left: u64| (format!("{n} bytes of {what}"), format!("{left} bytes before the end"));
        if n > self.left() {
            let (expected, found) = cut(self.left());
            return Err(self.error(self.pos, expected, found));
        }
        let mut out = vec![0; n as usize];
        if out.len() <= WINDOW {
            let start = self.in_window(out.len())?;
            if self.window.len() - start < out.len() {
                let (expected, found) = cut((self.window.len() - start) as u64);
                return Err(self.error(self.pos, expected, found));
            }
            let len = out.len();
            out.copy_from_slice(&self.window[start..start + len]);
        } else {
            let got = self.source.read_at(self.pos, &mut out)?;
            if got < out.len() {
                let (expected, found) = cut(got as u64);
                return Err(self.error(self.pos, expected, found));
            }
        }
        self.pos += n;
        Ok(out)
    }

    /// Make the window hold the next `n` bytes if the input has them; returns their start in the
    /// window.
    fn in_window(&mut self, n: usize) -> Result<usize, ErrorKind> {
        // Offsets in the file can be anything, so the sum may overflow.
        let fits =
            |&d: &u64| d.checked_add(n as u64).is_some_and(|e| e <= self.window.len() as u64);
        if let Some(start) = self.pos.checked_sub(self.window_at).filter(fits) {
            return Ok(start as usize);
        }
        let want = WINDOW.max(n).min(self.left() as usize);
        self.window.resize(want, 0);
        let got = self.source.read_at(self.pos, &mut self.window)?;
        self.window.truncate(got);
        self.window_at = self.pos;
        Ok(0)
    }

    fn array<const N: usize>(&mut self, what: &str) -> Result<[u8; N], ErrorKind> {
        let start = self.in_window(N)?;
        match self.window[start..].first_chunk::<N>() {
            Some(a) => {
                self.pos += N as u64;
                Ok(*a)
            }
            None => Err(self.error(
                self.pos,
                format!("{N} bytes of {what}"),
                format!("{} bytes before the end", self.left().min(N as u64)),
            )),
        }
    }

    /// One byte.
    pub(crate) fn u8(&mut self, what: &str) -> Result<u8, ErrorKind> {
        Ok(self.array::<1>(what)?[0])
    }

    /// Two bytes in the file's order.
    pub(crate) fn u16(&mut self, what: &str) -> Result<u16, ErrorKind> {
        let a = self.array(what)?;
        Ok(if self.big { u16::from_be_bytes(a) } else { u16::from_le_bytes(a) })
    }

    /// Four bytes in the file's order.
    pub(crate) fn u32(&mut self, what: &str) -> Result<u32, ErrorKind> {
        let a = self.array(what)?;
        Ok(if self.big { u32::from_be_bytes(a) } else { u32::from_le_bytes(a) })
    }

    /// Eight bytes in the file's order.
    pub(crate) fn u64(&mut self, what: &str) -> Result<u64, ErrorKind> {
        let a = self.array(what)?;
        Ok(if self.big { u64::from_be_bytes(a) } else { u64::from_le_bytes(a) })
    }

    /// A NUL-terminated string of at most `max` bytes.
    pub(crate) fn cstr(&mut self, max: usize, what: &str) -> Result<String, ErrorKind> {
        let from = self.pos;
        let mut out = Vec::new();
        loop {
            match self.u8(what)? {
                0 => return Ok(String::from_utf8_lossy(&out).into_owned()),
                _ if out.len() >= max => {
                    return Err(self.error(
                        from,
                        format!("{what}, at most {max} bytes and a NUL"),
                        "no NUL",
                    ));
                }
                c => out.push(c),
            }
        }
    }

    /// Exactly these bytes.
    pub(crate) fn literal(&mut self, expected: &[u8]) -> Result<(), ErrorKind> {
        let at = self.pos;
        let found = self.bytes(expected.len() as u64, &printable(expected))?;
        if found != expected {
            return Err(self.error(at, printable(expected), printable(&found)));
        }
        Ok(())
    }
}

/// Bytes for an error message.
pub(crate) fn printable(bytes: &[u8]) -> String {
    format!("\"{}\"", bytes.escape_ascii())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_claimed_length_is_not_allocated() {
        let source = Source::Memory(vec![1, 2, 3]);
        let mut c = Cursor::new(&source, 0, false, "x");
        assert!(c.bytes(u64::MAX, "nonsense").is_err());
        assert_eq!(c.u16("two").unwrap(), 0x201);
        let e = c.u32("four").unwrap_err().to_string();
        assert!(e.contains("byte 0x2 (x)") && e.contains("4 bytes of four"), "{e}");
    }

    /// Reads fields of a window already held, then one at the largest possible offset.
    #[test]
    fn an_offset_near_the_end_of_all_numbers_is_beyond_the_input() {
        let source = Source::Memory(vec![1; 64]);
        let mut c = Cursor::new(&source, 0, false, "x");
        c.u32("the window").unwrap();
        for back in 0..16 {
            c.pos = u64::MAX - back;
            assert!(c.u64("far").is_err(), "{back}");
            assert!(c.bytes(4, "far").is_err(), "{back}");
        }
    }

    #[test]
    fn spooled_and_mapped_reads_agree() {
        let source = Source::spool(&b"hello\0world"[..]).unwrap();
        let mut c = Cursor::new(&source, 0, true, "x");
        assert_eq!(c.cstr(10, "word").unwrap(), "hello");
        assert_eq!(c.pos(), 6);
        c.literal(b"wor").unwrap();
        assert!(c.literal(b"xx").is_err());
        let mut far = [0; 4];
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(b"hello").unwrap();
        for source in [source, Source::file(file).unwrap()] {
            for offset in [u64::MAX, i64::MAX as u64, i64::MAX as u64 + 1, 1 << 40] {
                assert_eq!(source.read_at(offset, &mut far).unwrap(), 0);
            }
            assert_eq!((source.read_at(3, &mut far).unwrap() > 0, far[0]), (true, b'l'));
        }
    }

    #[test]
    fn long_streams_go_to_a_file() {
        let len = SPOOL_IN_MEMORY + 5;
        let source = Source::spool(io::repeat(7).take(len)).unwrap();
        assert!(matches!(source, Source::File(..)));
        let mut end = [0; 8];
        assert_eq!(
            (source.len(), source.read_at(len - 3, &mut end).unwrap(), end[..3] == [7; 3]),
            (len, 3, true)
        );
    }
}
