//! Compressed traces: gzip, xz, zstd, zip.
//!
//! A wrapper is unpacked as a stream into the reader, which keeps up to 64 MiB in memory and the
//! rest in a temporary file. Sizes that a wrapper claims are never trusted; instead [`Guard`]
//! compares the bytes that come out with those read, so that a small file cannot fill the disk:
//! [`holdup_map::most_unpacked`] gives the limit.

use crate::meter::{Meter, Metered};
use crate::{Stream, zip};
use holdup_trace::ErrorKind;
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Memory the xz decoder may take: eight times what `xz -9` needs.
const XZ_MEMORY: u64 = 512 << 20;

/// A kind of wrapper.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Wrapper {
    Gzip,
    Xz,
    Zstd,
    Zip,
}

impl Wrapper {
    const ALL: [Wrapper; 4] = [Wrapper::Gzip, Wrapper::Xz, Wrapper::Zstd, Wrapper::Zip];

    /// The wrapper of a file that starts with `head`.
    pub(crate) fn of(head: &[u8]) -> Option<Wrapper> {
        Wrapper::ALL.into_iter().find(|w| head.starts_with(w.magic()) || w.skippable(head))
    }

    fn magic(self) -> &'static [u8] {
        match self {
            Wrapper::Gzip => b"\x1f\x8b\x08",
            Wrapper::Xz => b"\xfd7zXZ\0",
            Wrapper::Zstd => b"\x28\xb5\x2f\xfd",
            Wrapper::Zip => b"PK\x03\x04",
        }
    }

    /// zstd files may begin with a skippable frame (`pzstd`, seekable zstd).
    fn skippable(self, head: &[u8]) -> bool {
        self == Wrapper::Zstd
            && head.len() > 4
            && head[0] & 0xf0 == 0x50
            && head[1..4] == [0x2a, 0x4d, 0x18]
    }

    /// Its name in the name of the format.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Wrapper::Gzip => "gzip",
            Wrapper::Xz => "xz",
            Wrapper::Zstd => "zstd",
            Wrapper::Zip => "zip",
        }
    }

    /// The command that unpacks it.
    pub(crate) fn command(self) -> &'static str {
        match self {
            Wrapper::Gzip => "gzip -dc FILE > TRACE",
            Wrapper::Xz => "xz -dc FILE > TRACE",
            Wrapper::Zstd => "zstd -dc --long=31 FILE > TRACE",
            Wrapper::Zip => "unzip FILE",
        }
    }

    /// Unpack `input`.
    pub(crate) fn unwrap(self, input: Input, meter: &Arc<Meter>) -> Result<Stream, ErrorKind> {
        let stream: Stream = match self {
            Wrapper::Gzip => Box::new(flate2::bufread::MultiGzDecoder::new(buffered(input, meter))),
            Wrapper::Xz => {
                // CONCATENATED: a file may be several streams, one after the other.
                let stream = liblzma::stream::Stream::new_stream_decoder(
                    XZ_MEMORY,
                    liblzma::stream::CONCATENATED,
                )
                .map_err(io::Error::from)?;
                Box::new(liblzma::bufread::XzDecoder::new_stream(buffered(input, meter), stream))
            }
            Wrapper::Zstd => {
                Box::new(zstd::stream::read::Decoder::with_buffer(buffered(input, meter))?)
            }
            Wrapper::Zip => zip::open(input.into_file()?, meter)?,
        };
        Ok(Box::new(Guard { stream, meter: meter.clone(), out: 0, ended: false }))
    }
}

/// Compressed bytes: a file, if it is seekable, or a stream.
pub(crate) enum Input {
    File(File),
    Stream(Stream),
}

impl Input {
    /// The number of bytes, if known.
    pub(crate) fn len(&self) -> Option<u64> {
        match self {
            Input::File(file) => file.metadata().ok().map(|m| m.len()),
            Input::Stream(_) => None,
        }
    }

    fn into_file(self) -> io::Result<File> {
        match self {
            Input::File(file) => Ok(file),
            Input::Stream(mut stream) => {
                let mut file = tempfile::tempfile()?;
                io::copy(&mut stream, &mut file)?;
                Ok(file)
            }
        }
    }
}

fn buffered(input: Input, meter: &Arc<Meter>) -> BufReader<Metered> {
    let stream: Stream = match input {
        Input::File(file) => Box::new(file),
        Input::Stream(stream) => stream,
    };
    BufReader::with_capacity(64 << 10, meter.metered(stream))
}

/// The content of a wrapper: stopped at the limit, and ended, not failed, at damage. The bytes
/// before the damage are as useful as the start of a recording that was cut off.
struct Guard {
    stream: Stream,
    meter: Arc<Meter>,
    out: u64,
    ended: bool,
}

impl Read for Guard {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        if self.ended {
            return Ok(0);
        }
        match self.stream.read(buf) {
            Ok(n) => {
                self.out += n as u64;
                if self.out > self.meter.limit() {
                    self.meter.too_much.store(true, Ordering::Relaxed);
                    return Err(io::Error::other("unpacks to too much"));
                }
                Ok(n)
            }
            Err(e) if e.kind() == io::ErrorKind::Interrupted => Err(e),
            Err(e) => {
                if self.out == 0
                    || self.meter.io_failed.load(Ordering::Relaxed)
                    || self.meter.is_too_much()
                {
                    return Err(e);
                }
                self.ended = true;
                self.meter.note_damage(e.to_string());
                Ok(0)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Endless zeros from hardly any input.
    struct Bomb;

    impl Read for Bomb {
        fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
            buf.fill(0);
            Ok(buf.len())
        }
    }

    #[test]
    fn what_unpacks_to_too_much_is_stopped() {
        let meter = Arc::new(Meter::default());
        let mut metered = meter.metered(Box::new(&b"x"[..]));
        io::copy(&mut metered, &mut io::sink()).unwrap();
        let mut guard =
            Guard { stream: Box::new(Bomb), meter: meter.clone(), out: 0, ended: false };
        assert!(io::copy(&mut guard, &mut io::sink()).is_err());
        assert!(meter.is_too_much() && meter.damage().is_none());
        use holdup_map::ALLOWANCE;
        assert!((ALLOWANCE..ALLOWANCE + (1 << 20)).contains(&guard.out), "{}", guard.out);
    }

    #[test]
    fn wrappers_are_known_by_their_first_bytes() {
        for (head, want) in [
            (&b"\x1f\x8b\x08\0"[..], Some(Wrapper::Gzip)),
            (b"\xfd7zXZ\0\0", Some(Wrapper::Xz)),
            (b"\x28\xb5\x2f\xfd\x04", Some(Wrapper::Zstd)),
            (b"\x5d\x2a\x4d\x18\x04", Some(Wrapper::Zstd)),
            (b"PK\x03\x04\x14", Some(Wrapper::Zip)),
            (b"PK\x05\x06", None),
            (b"PERFILE2", None),
            (b"", None),
        ] {
            assert_eq!(Wrapper::of(head), want, "{head:?}");
        }
    }
}
