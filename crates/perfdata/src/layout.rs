//! Where the fields of a sample are, computed once per attr.
//!
//! A sample's fields follow each other in a fixed order, present or not by `sample_type`. Up to
//! PERIOD all have a fixed width, so their offsets are constants of the attr. RAW is a constant too
//! unless READ or CALLCHAIN, whose length varies, precede it. What comes after RAW (branch stack,
//! registers, user stack …) is not used, with two exceptions: one register where it is all that
//! follows ([`Attr::tells_calls`]), and the control group, which is located from the end.
//!
//! Records that are not samples end with a subset of these fields (`sample_id_all`), located from
//! the end.

use crate::attr::{Attr, flag, read, sample};
use crate::record;
use holdup_tracepoint::Endian;

/// Offsets from the start of a record; 0 (which is inside the header) means absent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) struct Layout {
    /// Shortest record that holds the fixed fields.
    pub(crate) min: u16,
    pub(crate) ip: u16,
    pub(crate) tid: u16,
    pub(crate) time: u16,
    pub(crate) cpu: u16,
    pub(crate) period: u16,
    /// Offset of IDENTIFIER, else of ID.
    pub(crate) id: u16,
    /// Offset of RAW's size word if nothing of variable length precedes it.
    pub(crate) raw: u16,
    /// The control group's id, as distance from the end of the record: everything after it has a
    /// fixed width.
    pub(crate) cgroup: u16,
    /// READ or CALLCHAIN are present, so [`Layout::walk`] must find what follows.
    pub(crate) variable: bool,
    sample_type: u64,
    read_format: u64,
}

/// Distances from the end of a record; 0 means absent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) struct Trailer {
    /// Length of the whole trailer in bytes.
    pub(crate) len: u16,
    pub(crate) tid: u16,
    pub(crate) time: u16,
    pub(crate) cpu: u16,
    pub(crate) id: u16,
}

/// The parts of variable length, as slices of the record.
#[derive(Clone, Copy, Default, Debug, PartialEq, Eq)]
pub(crate) struct Variable<'a> {
    /// Counter values, 8 bytes each.
    pub(crate) read: &'a [u8],
    /// Call chain, 8 bytes each.
    pub(crate) chain: &'a [u8],
    /// Tracepoint payload.
    pub(crate) raw: &'a [u8],
}

/// Length in bytes of the trailer of records other than samples, in files whose events have
/// `sample_id_all` and this `sample_type`.
pub fn trailer_size(sample_type: u64) -> usize {
    Trailer::of(sample_type).len as usize
}

/// Offset of the time in samples of this `sample_type`; `None` if they have none.
pub fn sample_time(sample_type: u64) -> Option<usize> {
    let layout = Layout::new(&Attr { sample_type, ..Attr::default() });
    (layout.time != 0).then_some(layout.time.into())
}

impl Layout {
    pub(crate) fn new(attr: &Attr) -> Layout {
        let mut l = Layout {
            sample_type: attr.sample_type,
            read_format: attr.read_format,
            ..Layout::default()
        };
        let mut at = record::HEADER as u16;
        let mut field = |bit: u64| {
            let here = at;
            let present = attr.sample_type & bit != 0;
            at += 8 * present as u16;
            if present { here } else { 0 }
        };
        let identifier = field(sample::IDENTIFIER);
        l.ip = field(sample::IP);
        l.tid = field(sample::TID);
        l.time = field(sample::TIME);
        field(sample::ADDR);
        let id = field(sample::ID);
        field(sample::STREAM_ID);
        l.cpu = field(sample::CPU);
        l.period = field(sample::PERIOD);
        l.id = if identifier != 0 { identifier } else { id };
        l.min = at;
        let has = |bit: u64| attr.sample_type & bit != 0;
        // Only AUX comes after the group with a variable width; perf does not record both.
        if attr.tells_group() {
            let after = [sample::DATA_PAGE_SIZE, sample::CODE_PAGE_SIZE];
            l.cgroup = 8 + 8 * after.iter().filter(|&&bit| has(bit)).count() as u16;
        }
        l.variable = attr.sample_type & (sample::READ | sample::CALLCHAIN) != 0;
        if attr.sample_type & sample::RAW != 0 && !l.variable {
            l.raw = at;
            l.min += 4;
        }
        l
    }

    /// The id of the control group that the sample's thread was in, if the sample carries it.
    #[inline]
    pub(crate) fn cgroup<E: Endian>(&self, rec: &[u8]) -> Option<u64> {
        let at = rec.len().checked_sub(self.cgroup.into())?;
        (self.cgroup != 0 && at >= self.min.into()).then(|| E::u64(rec, at))
    }

    /// Find call chain and payload after fields of variable length. `None` if the record is shorter
    /// than its fields claim.
    pub(crate) fn walk<'a, E: Endian>(&self, rec: &'a [u8]) -> Option<Variable<'a>> {
        Some(self.walk_to::<E>(rec)?.0)
    }

    /// Start and end offsets of a tracepoint's payload in `rec`.
    pub(crate) fn payload<E: Endian>(&self, rec: &[u8]) -> Option<(usize, usize)> {
        if self.raw == 0 {
            let (found, end) = self.walk_to::<E>(rec)?;
            return Some((end - found.raw.len(), end));
        }
        let start = usize::from(self.raw) + 4;
        let end = start.checked_add(E::u32(rec, self.raw.into()) as usize)?;
        (end <= rec.len()).then_some((start, end))
    }

    /// As [`Layout::walk`], together with the offset at which these parts end.
    fn walk_to<'a, E: Endian>(&self, rec: &'a [u8]) -> Option<(Variable<'a>, usize)> {
        let mut rest = rec.get(self.min as usize..)?;
        let mut take = |n: u64| {
            let (head, tail) = rest.split_at_checked(usize::try_from(n).ok()?)?;
            rest = tail;
            Some(head)
        };
        let mut found = Variable::default();
        if self.sample_type & sample::READ != 0 {
            let bit = |b: u64| (self.read_format & b != 0) as u64;
            let times = bit(read::TOTAL_TIME_ENABLED) + bit(read::TOTAL_TIME_RUNNING);
            let per_value = 1 + bit(read::ID) + bit(read::LOST);
            let words = if self.read_format & read::GROUP != 0 {
                let n = E::u64(take(8)?, 0);
                per_value.checked_mul(n)?.checked_add(times)?
            } else {
                per_value + times
            };
            found.read = take(words.checked_mul(8)?)?;
        }
        if self.sample_type & sample::CALLCHAIN != 0 {
            let n = E::u64(take(8)?, 0);
            found.chain = take(n.checked_mul(8)?)?;
        }
        if self.sample_type & sample::RAW != 0 {
            let n = E::u32(take(4)?, 0);
            found.raw = take(n as u64)?;
        }
        Some((found, rec.len() - rest.len()))
    }
}

/// The counter values of a group.
pub(crate) struct GroupRead<'a, E> {
    /// Times enabled and running, ns; absent unless the attr asked for both.
    pub(crate) enabled_running: Option<(u64, u64)>,
    values: std::slice::ChunksExact<'a, u8>,
    endian: std::marker::PhantomData<E>,
}

impl Layout {
    /// Splits a group's `read`, which [`Layout::walk`] has found. Only for attrs with
    /// [`Attr::reads_group`].
    pub(crate) fn group<'a, E: Endian>(&self, read: &'a [u8]) -> GroupRead<'a, E> {
        let has = |bit: u64| self.read_format & bit != 0;
        let times = [read::TOTAL_TIME_ENABLED, read::TOTAL_TIME_RUNNING];
        let all = times.iter().all(|&bit| has(bit)) && read.len() >= 16;
        let (head, rest) =
            read.split_at((8 * times.iter().filter(|&&bit| has(bit)).count()).min(read.len()));
        GroupRead {
            enabled_running: all.then(|| (E::u64(head, 0), E::u64(head, 8))),
            values: rest.chunks_exact(if has(read::LOST) { 24 } else { 16 }),
            endian: std::marker::PhantomData,
        }
    }
}

impl<E: Endian> Iterator for GroupRead<'_, E> {
    /// Id and value of a counter.
    type Item = (u64, u64);

    fn next(&mut self) -> Option<(u64, u64)> {
        self.values.next().map(|v| (E::u64(v, 8), E::u64(v, 0)))
    }
}

impl Trailer {
    /// All zero if the event was opened without `sample_id_all`.
    pub(crate) fn new(attr: &Attr) -> Trailer {
        if attr.has(flag::SAMPLE_ID_ALL) {
            Trailer::of(attr.sample_type)
        } else {
            Trailer::default()
        }
    }

    fn of(sample_type: u64) -> Trailer {
        let mut t = Trailer::default();
        let mut back = 0;
        let mut field = |bit: u64| {
            let present = sample_type & bit != 0;
            back += 8 * present as u16;
            if present { back } else { 0 }
        };
        let identifier = field(sample::IDENTIFIER);
        t.cpu = field(sample::CPU);
        field(sample::STREAM_ID);
        let id = field(sample::ID);
        t.time = field(sample::TIME);
        t.tid = field(sample::TID);
        t.id = if identifier != 0 { identifier } else { id };
        t.len = back;
        t
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use holdup_tracepoint::{Big, Little};

    #[test]
    fn the_layout_of_an_ordinary_tracepoint() {
        let attr = Attr {
            sample_type: sample::IP
                | sample::TID
                | sample::TIME
                | sample::CPU
                | sample::PERIOD
                | sample::RAW
                | sample::IDENTIFIER,
            flags: flag::SAMPLE_ID_ALL,
            ..Attr::default()
        };
        let l = Layout::new(&attr);
        assert_eq!(
            (l.id, l.ip, l.tid, l.time, l.cpu, l.period, l.raw, l.min),
            (8, 16, 24, 32, 40, 48, 56, 60)
        );
        let t = Trailer::new(&attr);
        assert_eq!((t.id, t.cpu, t.time, t.tid, t.len), (8, 16, 24, 32, 32));
        assert_eq!(Trailer::new(&Attr { flags: 0, ..attr }), Trailer::default());
    }

    #[test]
    fn groups_chains_and_payloads_are_found_in_either_byte_order() {
        let attr = Attr {
            sample_type: sample::TIME | sample::READ | sample::CALLCHAIN | sample::RAW,
            read_format: read::GROUP | read::ID | read::LOST | read::TOTAL_TIME_ENABLED,
            ..Attr::default()
        };
        let l = Layout::new(&attr);
        for big in [false, true] {
            let word = |v: u64| if big { v.to_be_bytes() } else { v.to_le_bytes() };
            let mut rec = vec![0; 16];
            for v in [2, 99, 1, 2, 3, 4, 5, 6, /* chain */ 1, 0xabcd] {
                rec.extend(word(v));
            }
            rec.extend(if big { 3u32.to_be_bytes() } else { 3u32.to_le_bytes() });
            rec.extend(*b"rawx");
            let v = if big { l.walk::<Big>(&rec) } else { l.walk::<Little>(&rec) }.unwrap();
            assert_eq!((v.chain, v.raw), (&word(0xabcd)[..], &b"raw"[..]));
            // A group that claims more members than the record holds.
            rec[16..24].copy_from_slice(&word(u64::MAX));
            assert_eq!(if big { l.walk::<Big>(&rec) } else { l.walk::<Little>(&rec) }, None);
        }
    }
}
