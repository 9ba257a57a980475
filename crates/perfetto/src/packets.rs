//! A trace is a sequence of packets: `Trace { repeated TracePacket packet = 1 }`.
//!
//! Each packet has its length, so damaged content costs only that packet. If a length is damaged,
//! the next packet is searched: a position where several packets follow each other whose fields are
//! fields of packets.

use crate::schema::{packet, trace};
use crate::wire::{Fields, Value};
use prost::encoding::{WireType, decode_key, decode_varint};

/// The key of `Trace.packet`.
const KEY: u8 = (trace::PACKET << 3) as u8 | WireType::LengthDelimited as u8;
/// Key and length of a packet take at most this many bytes.
const LONGEST_HEAD: usize = 11;
/// This many packets in a row are no coincidence.
const CHAIN: usize = 3;
/// Packets have less than a dozen fields; this bounds the check of bytes that may be no packet.
const MOST_FIELDS: usize = 32;

/// What was found at a position of the trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// A packet: offset of its key, and start and end of its content.
    Packet { key: usize, start: usize, end: usize },
    /// Bytes that are no packet.
    Skipped(usize),
    /// A packet cut off by the end of the trace, and how many of its bytes exist.
    Cut(usize),
}

/// Walks the packets in `bytes`.
pub(crate) struct Packets<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Packets<'a> {
    pub(crate) fn of(bytes: &'a [u8]) -> Packets<'a> {
        Packets { bytes, at: 0 }
    }
}

impl Iterator for Packets<'_> {
    type Item = Step;

    fn next(&mut self) -> Option<Step> {
        let key = self.at;
        if key >= self.bytes.len() {
            return None;
        }
        let claimed = content(self.bytes, key);
        if let Some((start, end)) = claimed
            && end <= self.bytes.len()
        {
            self.at = end;
            return Some(Step::Packet { key, start, end });
        }
        self.at = next_chain(self.bytes, key + 1).unwrap_or(self.bytes.len());
        let left = self.at - key;
        // A valid beginning of a packet with no packet after it: the file was cut here.
        let cut = claimed.is_some() || self.bytes[key] == KEY && left <= LONGEST_HEAD;
        if cut && self.at == self.bytes.len() {
            return Some(Step::Cut(left));
        }
        Some(Step::Skipped(left))
    }
}

/// Where the content of the packet at `key` begins and ends, by its length.
fn content(bytes: &[u8], key: usize) -> Option<(usize, usize)> {
    let (&first, mut rest) = bytes.get(key..)?.split_first()?;
    if first != KEY {
        return None;
    }
    let len = decode_varint(&mut rest).ok().and_then(|len| usize::try_from(len).ok())?;
    let start = bytes.len() - rest.len();
    Some((start, start.checked_add(len)?))
}

/// The first offset from `at` on where packets follow each other.
fn next_chain(bytes: &[u8], at: usize) -> Option<usize> {
    let places = memchr::memchr_iter(KEY, bytes.get(at..)?).map(|i| at + i);
    places.into_iter().find(|&place| {
        let mut next = place;
        for _ in 0..CHAIN {
            match content(bytes, next) {
                Some((start, end)) if end <= bytes.len() && is_packet(&bytes[start..end], true) => {
                    next = end;
                }
                _ => return false,
            }
            if next == bytes.len() {
                break;
            }
        }
        true
    })
}

/// Whether these are the fields of a packet: assigned field numbers with the right types. `whole`
/// means that the packet is complete.
fn is_packet(content: &[u8], whole: bool) -> bool {
    let mut rest = content;
    for known in 0..=MOST_FIELDS {
        if rest.is_empty() {
            return known > 0;
        }
        let Ok((number, wire)) = decode_key(&mut rest) else { return !whole && rest.is_empty() };
        let fits = match wire {
            WireType::Varint => packet::NUMBERS.contains(&number),
            WireType::LengthDelimited => {
                number <= packet::LAST && !packet::NUMBERS.contains(&number)
            }
            _ => false,
        };
        if !fits {
            return false;
        }
        let Ok(value) = decode_varint(&mut rest) else { return !whole && known > 0 };
        if wire == WireType::LengthDelimited {
            match usize::try_from(value).ok().and_then(|len| rest.get(len..)) {
                Some(behind) => rest = behind,
                None => return !whole,
            }
        }
    }
    false
}

/// Whether a file that starts with these bytes is a Perfetto trace: its first packets are packets.
pub(crate) fn sniff(head: &[u8]) -> bool {
    let mut at = 0;
    for known in 0..CHAIN {
        let Some((start, end)) = content(head, at) else { return known > 0 && at == head.len() };
        let Some(found) = head.get(start..end.min(head.len())) else { return false };
        // Length fields of other files can be anything; a packet of more than 256 MiB is none.
        if end - start > 256 << 20 || !is_packet(found, end <= head.len()) {
            return false;
        }
        if end >= head.len() {
            return true;
        }
        at = end;
    }
    true
}

/// The field that a packet of packets holds, and its bytes.
pub(crate) fn compressed(content: &[u8]) -> Option<(u32, &[u8])> {
    // Such a packet has no other field, so the first field decides.
    match Fields::of(content).next() {
        Ok(Some((
            number @ (packet::COMPRESSED_PACKETS | packet::ZSTD_COMPRESSED_PACKETS),
            Value::Bytes(bytes),
        ))) => Some((number, bytes)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A packet of a user id, a sequence id and a bundle.
    const PACKET: &[u8] = &[0x0a, 8, 0x0a, 2, 0x08, 0, 0x18, 99, 0x50, 1];

    #[test]
    fn packets_are_found_behind_damage() {
        let mut file = PACKET.repeat(6);
        file[10] = 0x77;
        let steps: Vec<Step> = Packets::of(&file).collect();
        assert_eq!(steps[1], Step::Skipped(10));
        assert_eq!(steps.len(), 6);
        // A length that reaches into the middle of a later packet.
        let mut file = PACKET.repeat(8);
        file[11] = 15;
        let packets = |s: &&Step| matches!(s, Step::Packet { .. });
        let steps: Vec<Step> = Packets::of(&file).collect();
        assert!(steps.iter().filter(packets).count() >= 6, "{steps:?}");
        let lost: usize = steps.iter().map(|s| if let Step::Skipped(n) = s { *n } else { 0 }).sum();
        assert!((1..20).contains(&lost), "{steps:?}");
    }

    #[test]
    fn a_cut_file_is_told_from_a_damaged_one() {
        let file = PACKET.repeat(4);
        let steps: Vec<Step> = Packets::of(&file[..35]).collect();
        assert_eq!(steps.last(), Some(&Step::Cut(5)));
        let steps: Vec<Step> = Packets::of(&file[..31]).collect();
        assert_eq!(steps.last(), Some(&Step::Cut(1)));
        let mut file = PACKET.repeat(6);
        file[11] = 0x7f;
        let steps: Vec<Step> = Packets::of(&file).collect();
        assert_eq!(steps[1], Step::Skipped(10), "a length that leads out of the file");
        assert_eq!(steps.len(), 6);
    }

    #[test]
    fn other_files_are_not_taken() {
        assert!(sniff(PACKET) && sniff(&PACKET.repeat(5)) && sniff(&PACKET.repeat(2)[..15]));
        for other in [
            &b""[..],
            b"\x0a",
            b"\n\n# tracer: nop\n#\n",
            b"\n          bash-1 [000] 1.0: sched_switch: x\n",
            b"\nBase: a text that begins with an empty line, and goes on for a while",
            // pprof: sample types of two numbers.
            b"\x0a\x04\x08\x01\x10\x02\x0a\x04\x08\x03\x10\x04",
            // pcapng.
            b"\x0a\x0d\x0d\x0a\x1c\x00\x00\x00\x4d\x3c\x2b\x1a\x01\x00\x00\x00",
            b"PERFILE2",
        ] {
            assert!(!sniff(other), "{}", other.escape_ascii());
        }
    }
}
