//! Strings in records, and other data that reveals names: copied memory, build ids.

use crate::fields;
use crate::names::Names;
use crate::tracing::Order;
use holdup_perfdata::format::{EVENT_UPDATE_NAME, record, sample};
use holdup_perfdata::{RawFile, RawRecord};

/// Offsets of the masks in `perf_event_attr` that determine the length of parts of a sample.
const BRANCH_SAMPLE_TYPE: usize = 72;
const SAMPLE_REGS_USER: usize = 80;
/// Branch stacks are preceded by one more word.
const BRANCH_HW_INDEX: u64 = 1 << 17;
/// Bytes of an entry of a branch stack.
const BRANCH: u64 = 24;
/// Bytes of the fields with which all events of tracefs begin.
const COMMON: usize = 8;

/// Replaces strings.
pub(super) struct Strings<'a> {
    order: Order,
    raw: &'a RawFile,
    events: Vec<Option<fields::Strings>>,
    pub(super) names: Names,
}

impl<'a> Strings<'a> {
    pub(super) fn new(order: Order, raw: &'a RawFile) -> Strings<'a> {
        let of = |a: &holdup_perfdata::RawAttr| {
            let known = a.format.as_ref().filter(|f| !fields::is_private(&f.system));
            known.map(fields::Strings::of)
        };
        let events = raw.attrs.iter().map(of).collect();
        Strings { order, raw, events, names: Names::default() }
    }

    /// Change a record; false if it must not be written.
    pub(super) fn record(&mut self, rec: &RawRecord<'_>, bytes: &mut [u8]) -> bool {
        let end = bytes.len().saturating_sub(rec.trailer);
        let mut text = |at: usize| {
            if let Some(text) = bytes.get_mut(at..end) {
                self.names.replace_c(text);
            }
        };
        match rec.kind {
            record::SAMPLE => return self.sample(rec, bytes),
            record::COMM | record::CGROUP => text(16),
            record::MMAP => text(40),
            record::MMAP2 => {
                text(72);
                self.forget_build(bytes);
            }
            record::KSYMBOL => text(24),
            record::BPF_EVENT | record::TEXT_POKE | record::HEADER_BUILD_ID => return false,
            record::THREAD_MAP => {
                for entry in bytes.get_mut(16..).unwrap_or(&mut []).chunks_exact_mut(24) {
                    self.names.replace_c(&mut entry[8..]);
                }
            }
            record::EVENT_UPDATE if self.order.read_u64(bytes, 8) == Some(EVENT_UPDATE_NAME) => {
                let name = bytes.get_mut(24..).unwrap_or(&mut []);
                if is_private_event(name) {
                    self.names.replace_c(name);
                }
            }
            _ => {}
        }
        true
    }

    /// Remove the build id of a mapping, which identifies the program.
    fn forget_build(&self, bytes: &mut [u8]) {
        let misc = self.order.read_u16(bytes, 4).unwrap_or(0);
        if misc & record::MISC_MMAP_BUILD_ID != 0 && bytes.len() >= 64 {
            bytes[4..6].copy_from_slice(&self.order.u16(misc & !record::MISC_MMAP_BUILD_ID));
            bytes[40..64].fill(0);
        }
    }

    fn sample(&mut self, rec: &RawRecord<'_>, bytes: &mut [u8]) -> bool {
        let Some((i, attr)) = rec.event.and_then(|i| Some((i, self.raw.attrs.get(i)?))) else {
            return false;
        };
        let content = rec.content.min(bytes.len())..rec.behind.min(bytes.len());
        match &self.events[i] {
            Some(strings) => {
                strings.replace(&mut bytes[content], self.order.big, &mut self.names);
            }
            // Its content is unknown.
            None if content.len() > COMMON => {
                bytes[content.start + COMMON..content.end].fill(0);
            }
            None => {}
        }
        if attr.sample_type & (sample::STACK_USER | sample::AUX) == 0 {
            return true;
        }
        attr.sample_type & sample::AUX == 0 && self.forget_stack(attr, rec.behind, bytes).is_some()
    }

    /// Clear user memory that was copied into the sample.
    fn forget_stack(
        &self,
        attr: &holdup_perfdata::RawAttr,
        behind: usize,
        bytes: &mut [u8],
    ) -> Option<()> {
        let mut at = behind as u64;
        let long = |at: u64, bytes: &[u8]| self.order.read_u64(bytes, usize::try_from(at).ok()?);
        let mask = |at: usize| self.order.read_u64(&attr.bytes, at);
        if attr.sample_type & sample::BRANCH_STACK != 0 {
            let entries = long(at, bytes)?;
            let index = mask(BRANCH_SAMPLE_TYPE)? & BRANCH_HW_INDEX != 0;
            at += 8 + 8 * u64::from(index);
            at = at.checked_add(entries.checked_mul(BRANCH)?)?;
        }
        if attr.sample_type & sample::REGS_USER != 0 {
            let registers = mask(SAMPLE_REGS_USER)?.count_ones();
            let abi = long(at, bytes)?;
            at += 8 + if abi == 0 { 0 } else { 8 * u64::from(registers) };
        }
        let len = long(at, bytes)?;
        let start = usize::try_from(at.checked_add(8)?).ok()?;
        let end = start.checked_add(usize::try_from(len).ok()?)?;
        bytes.get_mut(start..end)?.fill(0);
        Some(())
    }

    /// Replace user-defined names of events in the section that has the names: attrs, each with its
    /// ids and its name.
    pub(super) fn event_names(&mut self, section: &mut [u8]) {
        let word = |bytes: &[u8], at: usize| self.order.read_u32(bytes, at).map(|n| n as usize);
        let (Some(count), Some(size)) = (word(section, 0), word(section, 4)) else { return };
        let mut at = 8usize;
        for _ in 0..count {
            at = at.saturating_add(size);
            let (Some(ids), Some(len)) = (word(section, at), word(section, at + 4)) else { return };
            let Some(name) = section.get_mut(at + 8..at + 8 + len) else { return };
            if is_private_event(name) {
                self.names.replace_c(name);
            }
            at = at + 8 + len + ids.saturating_mul(8);
        }
    }
}

fn is_private_event(name: &[u8]) -> bool {
    fields::is_private(&String::from_utf8_lossy(name))
}
