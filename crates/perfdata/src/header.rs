//! The file header (`struct perf_file_header`, kernel `tools/perf/util/header.h` and
//! `tools/perf/Documentation/perf.data-file-format.txt`).

use crate::cursor::Order;
use crate::format::header::{self, FULL_SIZE, PIPE_SIZE, SIZE_WITHOUT_FEATURES};
use crate::format::{MAGIC, feature};
use holdup_trace::ErrorKind;

/// The magic of the format's version 1, which perf stopped writing in 2012 and still reads.
const MAGIC1: [&[u8; 8]; 2] = [b"PERFFILE", b"ELIFFREP"];

/// Whether `head`, the first bytes of an input, identify a perf.data file. True for the obsolete
/// version 1 too, so that opening it can name the version in its error.
pub fn sniff(head: &[u8]) -> bool {
    MAGIC.iter().chain(&MAGIC1).any(|m| head.starts_with(&m[..]))
}

/// A stretch of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) struct Section {
    pub(crate) offset: u64,
    pub(crate) size: u64,
}

impl Section {
    pub(crate) fn end(self) -> u64 {
        self.offset.saturating_add(self.size)
    }
}

/// The content of the file header.
#[derive(Clone, Debug)]
pub(crate) struct Header {
    pub(crate) order: Order,
    /// Size of the header in bytes: 16 in pipe mode.
    pub(crate) size: u64,
    /// `None` in pipe mode, where everything else comes as records.
    pub(crate) file: Option<FileHeader>,
}

/// The part of the header that only file mode has.
#[derive(Clone, Debug)]
pub(crate) struct FileHeader {
    /// Bytes per entry of `attrs`: the attr and the section with its ids.
    pub(crate) attr_entry: u64,
    pub(crate) attrs: Section,
    pub(crate) data: Section,
    /// Names of events, in files of perf before Linux 3.4.
    pub(crate) event_types: Section,
    /// One bit per feature section that follows the data.
    pub(crate) features: [u64; 4],
}

impl Header {
    /// Parse the first [`FULL_SIZE`] bytes, or as many as there are.
    pub(crate) fn parse(head: &[u8]) -> Result<Header, ErrorKind> {
        let malformed = |at: u64, expected: &str, found: String| {
            ErrorKind::malformed(at, "file header".to_owned(), expected, found)
        };
        let Some(magic) = head.first_chunk::<8>() else {
            return Err(malformed(
                0,
                "the 8 bytes PERFILE2",
                format!("a file of {} bytes", head.len()),
            ));
        };
        if MAGIC1.contains(&magic) {
            return Err(ErrorKind::Unsupported {
                what: "perf.data version 1 (PERFFILE), which perf has not written since 2012"
                    .into(),
                way_out:
                    "perf still reads it: perf script -i FILE > TEXT, and give holdup the TEXT"
                        .into(),
            });
        }
        let order = match MAGIC.iter().position(|m| *m == magic) {
            Some(0) => Order::Little,
            Some(_) => Order::Big,
            None => {
                return Err(malformed(
                    0,
                    "PERFILE2",
                    format!("{:?}", String::from_utf8_lossy(magic)),
                ));
            }
        };
        if head.len() < PIPE_SIZE as usize {
            return Err(malformed(8, "the size of the header", "the end of the file".into()));
        }
        let size = order.u64(head, header::SIZE);
        if size == PIPE_SIZE {
            return Ok(Header { order, size, file: None });
        }
        if size < SIZE_WITHOUT_FEATURES {
            return Err(malformed(8, "a header size of 16 (pipe), 72 or 104", size.to_string()));
        }
        if (head.len() as u64) < size.min(FULL_SIZE) {
            return Err(malformed(
                head.len() as u64,
                &format!("a header of {size} bytes"),
                "the end of the file".into(),
            ));
        }
        let section = |at| Section { offset: order.u64(head, at), size: order.u64(head, at + 8) };
        let mut features = [0; 4];
        if size >= FULL_SIZE {
            features = std::array::from_fn(|i| order.u64(head, header::FEATURES + 8 * i));
            // The bitmap is an array of longs. A 32-bit big-endian recorder therefore swaps the
            // words of each pair; HOSTNAME, which is always set, shows which it is.
            const HOSTNAME: u64 = 1 << feature::HOSTNAME;
            if order == Order::Big
                && features[0] & HOSTNAME == 0
                && features[0].rotate_left(32) & HOSTNAME != 0
            {
                features = features.map(|w| w.rotate_left(32));
            }
        }
        let file = FileHeader {
            attr_entry: order.u64(head, header::ATTR_ENTRY),
            attrs: section(header::ATTRS),
            data: section(header::DATA),
            event_types: section(header::EVENT_TYPES),
            features,
        };
        Ok(Header { order, size, file: Some(file) })
    }
}

impl FileHeader {
    /// Whether the recorder was killed before it finished: perf leaves the size 0, holdup leaves
    /// the feature bit that perf never sets.
    pub(crate) fn unfinished(&self) -> bool {
        self.data.size == 0 || self.features[0] >> feature::RESERVED & 1 != 0
    }

    /// Numbers of the features present, in the order their sections are stored.
    pub(crate) fn feature_numbers(&self) -> Vec<u32> {
        (0..256).filter(|&bit| self.features[bit as usize / 64] >> (bit % 64) & 1 != 0).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_magic_is_recognised_and_version_1_refused() {
        for m in MAGIC.iter().chain(&MAGIC1) {
            assert!(sniff(&m[..]));
        }
        assert!(!sniff(b"PERFILE") && !sniff(b"") && !sniff(b"tracing\0"));
        assert!(matches!(Header::parse(b"PERFFILE"), Err(ErrorKind::Unsupported { .. })));
    }

    #[test]
    fn cut_headers_are_errors_with_an_offset() {
        let mut h = Vec::from(*b"2ELIFREP");
        h.extend(104u64.to_be_bytes());
        assert!(Header::parse(&h).unwrap_err().to_string().contains("0x10"));
        h.resize(104, 0);
        h[79] = 0;
        h[75] = 1 << 3; // HOSTNAME in the first 32-bit word
        let header = Header::parse(&h).unwrap();
        assert_eq!(header.order, Order::Big);
        assert_eq!(header.file.unwrap().feature_numbers(), [3]);
        assert!(Header::parse(&h[..12]).is_err());
        assert!(Header::parse(b"").is_err());
    }
}
