//! Where the sampled code spins, found out at the end of a recording.
//!
//! Only the bytes of the code tell ([`holdup_symbols::Spinners`]). They are in files of this
//! machine, so the recorder looks at them and writes the answer into a section of the file: a
//! recording that is moved to another machine keeps the knowledge, and so does a recording of
//! programs that are rebuilt later. The other way, to keep the bytes around each address, would
//! take more room and tell no more.
//!
//! While records are written, the sampled addresses and the mappings of code are noted. Which
//! process an address belongs to does not matter: every file that was mapped there in any process
//! is looked at, and the reader, who knows the order of events, asks for the right one.

use super::Event;
use super::joined::Joined;
use holdup_perfdata::format::{record, sample};
use holdup_perfdata::{mapped_code, sample_time};
use holdup_symbols::{Options, Spinners};
use holdup_trace::{BuildId, Sampled, Spins};
use std::collections::{BTreeMap, BTreeSet};

/// Mappings that are remembered: those of some ten thousand processes.
const MOST: usize = 1 << 18;

/// Code of a file in memory: first address, bytes, and offset in the file.
type Piece = (u64, u64, u64);

/// What a recording has sampled so far.
#[derive(Default)]
pub(crate) struct SampledCode {
    /// Ids of the events that sample code, in order.
    timers: Vec<u64>,
    /// Offset of the time in their samples.
    pub(crate) time: Option<usize>,
    /// Sampled addresses in user mode.
    addresses: BTreeSet<u64>,
    files: BTreeMap<(String, Option<BuildId>), BTreeSet<Piece>>,
    pieces: usize,
}

impl SampledCode {
    /// For a recording of these events.
    pub(crate) fn of(events: &[Event]) -> SampledCode {
        let samples = events.iter().filter(|e| e.samples_code());
        let mut timers: Vec<u64> = samples.flat_map(|e| e.ids.iter().copied()).collect();
        timers.sort_unstable();
        let time = same_time(events.iter().filter(|e| e.samples_code()));
        SampledCode { timers, time, ..SampledCode::default() }
    }

    /// Whether a sample is of code, by the id of its event.
    pub(crate) fn is_of_code(&self, id: u64) -> bool {
        !self.timers.is_empty() && self.timers.binary_search(&id).is_ok()
    }

    /// Notes the address of a sample that begins at `at`.
    pub(crate) fn sample(&mut self, records: Joined<'_>, at: usize, misc: u16) {
        if misc & record::MISC_CPUMODE == record::MISC_USER {
            self.addresses.extend(records.word(at + 16));
        }
    }

    /// Notes the mapping of code at `at`, of `size` bytes.
    pub(crate) fn mapped(&mut self, records: Joined<'_>, (at, size): (usize, usize)) {
        if self.timers.is_empty() || self.pieces >= MOST {
            return;
        }
        let words = (at..at + size).step_by(8).map_while(|at| records.word(at));
        let bytes: Vec<u8> = words.flat_map(u64::to_ne_bytes).collect();
        let Some((code, name)) = mapped_code(&bytes).filter(|(code, _)| !code.kernel) else {
            return;
        };
        let Some(name) = str::from_utf8(name).ok().filter(|name| name.starts_with('/')) else {
            return;
        };
        let pieces = self.files.entry((name.to_owned(), code.build_id)).or_default();
        self.pieces += usize::from(pieces.insert((code.start, code.len, code.offset)));
    }

    /// Looks at the files: the text of the section. `None` if no code was sampled.
    pub(crate) fn text(&self) -> Option<String> {
        if self.addresses.is_empty() {
            return None;
        }
        let (mut finder, mut found) = (Spinners::new(Options::default()), Spins::default());
        for ((name, build), pieces) in &self.files {
            for &(start, len, from) in pieces {
                for address in self.addresses.range(start..start.saturating_add(len)) {
                    let offset = address - start + from;
                    let Some(spot) = finder.at(name, *build, offset) else { break };
                    let build = finder.build(name, *build);
                    let file = found.0.entry(name.clone());
                    let file = file.or_insert(Sampled { build, ..Sampled::default() });
                    file.spots.extend(spot.map(|spot| (offset, spot)));
                }
            }
        }
        Some(found.text())
    }
}

/// Offset of the time in samples of these events; `None` if it is not the same for all.
pub(super) fn same_time<'a>(events: impl Iterator<Item = &'a Event>) -> Option<usize> {
    let mut places = events.map(|e| e.sample_type().and_then(sample_time));
    let first = places.next()??;
    places.all(|place| place == Some(first)).then_some(first)
}

impl Event {
    /// Whether its samples have the address of the sampled code.
    pub(super) fn samples_code(&self) -> bool {
        self.sample_type().is_some_and(|kind| kind & sample::IP != 0)
    }
}

#[cfg(test)]
mod tests {
    use super::super::bytes::Bytes;
    use super::super::tally::Tally;
    use super::*;

    /// A mapping of this file, and a sample in user mode at an address in it.
    fn recorded(name: &str, address: u64, id: u64) -> Vec<u8> {
        let mut b = Bytes::default();
        b.record(record::MMAP2, record::MISC_USER, |b| {
            b.u32(7)
                .u32(7)
                .u64(0x1000)
                .u64(0x8000)
                .u64(0)
                .zeros(24)
                .u32(libc::PROT_EXEC as u32)
                .u32(0);
            b.put(name.as_bytes()).zeros(8 - name.len() % 8);
        });
        b.record(record::SAMPLE, record::MISC_USER, |b| {
            b.u64(id).u64(address).u64(0).u64(5);
        });
        b.0
    }

    fn code(id: u64) -> SampledCode {
        SampledCode { timers: vec![id], ..SampledCode::default() }
    }

    #[test]
    fn the_code_of_the_recorder_itself_is_found_by_its_address() {
        let own = std::env::current_exe().unwrap();
        let name = own.to_str().unwrap();
        for (id, looked) in [(3, true), (4, false)] {
            let mut sampled = code(3);
            let records = recorded(name, 0x2000, id);
            for turn in (0..=records.len()).step_by(8) {
                let (front, back) = records.split_at(turn);
                let mut tally = Tally::default();
                tally.add(Joined(front, back), Some(16), &mut sampled);
                assert_eq!(tally.samples, 1);
                assert_eq!(tally.span.is_none(), looked, "the time is at another place");
            }
            assert_eq!(sampled.text().is_some_and(|text| text.contains(name)), looked);
        }
    }

    #[test]
    fn a_file_that_is_gone_stays_unknown() {
        let mut sampled = code(3);
        let records = recorded("/nowhere", 0x2000, 3);
        Tally::default().add(Joined(&records, &[]), None, &mut sampled);
        let text = sampled.text().unwrap();
        assert_eq!(Spins::parse(text.as_bytes()), Some(Spins::default()));
    }
}
