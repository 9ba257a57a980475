//! The system calls of a thread that has ended, in a few bytes each.
//!
//! A build or a shell script starts a hundred thousand processes, and each makes twenty different
//! calls once or twice. Their sums stay, because tables by thread show them, but do not change any
//! more. So they are packed: numbers with seven bits per byte, zeros omitted. A call that was made
//! once and kept its CPU takes about seven bytes instead of 170.

use crate::hist::SmallHistogram;
use crate::syscalls::CallStats;
use crate::varint::{Reader, Writer};

/// There was one call; its sums and histogram contain nothing but its length.
const ONE: u64 = 1;
/// The calls were on a CPU from beginning to end.
const WHOLE: u64 = 1 << 1;
/// From this bit on: one bit for each of [`fields`] that is not zero.
const FIELDS: usize = 2;

/// The sums in the order of writing: those that are seldom zero come first, so that the bits of
/// most calls fit into a byte.
fn fields(s: &mut CallStats) -> [&mut u64; 14] {
    [
        &mut s.total,
        &mut s.result_sum,
        &mut s.count,
        &mut s.errors,
        &mut s.running,
        &mut s.blocked,
        &mut s.min,
        &mut s.max,
        &mut s.pending,
        &mut s.pending_ns,
        &mut s.runnable,
        &mut s.interrupted,
        &mut s.sleeps_and_wakes,
        &mut s.returned_only,
    ]
}

/// Appends the calls to a byte string: number, length, sums. Uses the sums up.
pub(crate) fn pack<'a>(calls: impl Iterator<Item = (u32, &'a mut CallStats)>) -> Box<[u8]> {
    // Enough for most threads, so that the strings need not grow.
    let (mut out, mut sums) = (Writer(Vec::with_capacity(512)), Writer(Vec::with_capacity(64)));
    for (nr, stats) in calls {
        sums.0.clear();
        pack_one(&mut sums, stats);
        out.number(nr.into());
        out.number(sums.0.len() as u64);
        out.0.extend_from_slice(&sums.0);
    }
    out.0.into_boxed_slice()
}

fn pack_one(out: &mut Writer, s: &mut CallStats) {
    let single = s.count == 1 && s.min == s.total && s.max == s.total;
    let one = single && s.hist.is_only(s.total);
    let whole = s.running == s.total;
    let mut flags = if one { ONE } else { 0 } | if whole { WHOLE } else { 0 };
    if one {
        (s.count, s.min, s.max) = (0, 0, 0);
    }
    if whole {
        s.running = 0;
    }
    let sums = fields(s).map(|n| *n);
    for (i, &n) in sums.iter().enumerate() {
        flags |= u64::from(n != 0) << (FIELDS + i);
    }
    out.number(flags);
    bits(flags >> FIELDS).for_each(|i| out.number(sums[i]));
    if s.errors > 0 {
        out.number(s.errnos.len() as u64);
    }
    for &(errno, n) in &s.errnos {
        out.number(errno.into());
        out.number(n);
    }
    if !one {
        s.hist.pack(out);
    }
}

/// What [`pack`] wrote, by number of the call.
pub(crate) fn unpack(bytes: &[u8]) -> impl Iterator<Item = (u32, Packed<'_>)> {
    let mut from = Reader(bytes);
    std::iter::from_fn(move || {
        let (nr, len) = (from.number() as u32, from.number() as usize);
        let (sums, rest) = from.0.split_at_checked(len).filter(|(sums, _)| !sums.is_empty())?;
        from.0 = rest;
        Some((nr, Packed(sums)))
    })
}

/// The sums over the calls of one number, as bytes.
#[derive(Clone, Copy)]
pub(crate) struct Packed<'a>(&'a [u8]);

impl Packed<'_> {
    /// The sums, without the errors by number and the histogram. Nothing is moved: there may be a
    /// million of them.
    #[inline]
    pub(crate) fn sums<R>(self, of: impl FnOnce(&CallStats) -> R) -> R {
        let mut s = CallStats::default();
        unpack_sums(&mut Reader(self.0), &mut s);
        of(&s)
    }

    /// All of it.
    #[inline]
    pub(crate) fn all<R>(self, of: impl FnOnce(CallStats) -> R) -> R {
        let mut s = CallStats::default();
        let from = &mut Reader(self.0);
        let flags = unpack_sums(from, &mut s);
        let errnos = if s.errors > 0 { from.number() } else { 0 };
        s.errnos = (0..errnos).map(|_| (from.number() as u16, from.number())).collect();
        if flags & ONE != 0 {
            s.hist.add(s.total);
        } else {
            s.hist = SmallHistogram::unpack(from);
        }
        of(s)
    }
}

/// The places of the bits that are set, ascending.
fn bits(mut flags: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let first = flags.trailing_zeros() as usize;
        flags &= flags.checked_sub(1)?;
        Some(first)
    })
}

/// Reads the sums; returns the flags.
fn unpack_sums(from: &mut Reader<'_>, s: &mut CallStats) -> u64 {
    let flags = from.number();
    let mut sums = fields(s);
    for i in bits(flags >> FIELDS) {
        if let Some(sum) = sums.get_mut(i) {
            **sum = from.number();
        }
    }
    if flags & ONE != 0 {
        (s.count, s.min, s.max) = (1, s.total, s.total);
    }
    if flags & WHOLE != 0 {
        s.running = s.total;
    }
    flags
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_back() {
        let mut calls = Vec::new();
        let mut once = CallStats::default();
        once.returned(1234, -2);
        once.running = 1234;
        calls.push((0, once));
        let mut slept = CallStats::default();
        slept.returned(1 << 40, 7);
        (slept.running, slept.blocked, slept.pending) = (900, (1 << 40) - 900, 1);
        calls.push((61, slept));
        let mut twice = CallStats::default();
        twice.only_returned(u32::MAX.into());
        twice.returned(50, -110);
        calls.push((u32::MAX, twice));
        let mut often = CallStats::default();
        for i in 0..1000u64 {
            often.returned(i * i, if i % 3 == 0 { -11 } else { i64::MAX });
        }
        calls.push((202, often));
        calls.push((231, CallStats { pending: 1, pending_ns: u64::MAX, ..CallStats::default() }));
        let text = |calls: &[(u32, CallStats)]| format!("{calls:?}");
        let packed = |calls: &[(u32, CallStats)]| {
            pack(calls.to_vec().iter_mut().map(|(nr, stats)| (*nr, stats)))
        };
        let bytes = packed(&calls);
        let back: Vec<_> = unpack(&bytes).map(|(nr, call)| (nr, call.all(|s| s))).collect();
        assert_eq!(text(&back), text(&calls));
        for ((_, call), (_, stats)) in unpack(&bytes).zip(&calls) {
            let sums = |s: &CallStats| fields(&mut s.clone()).map(|n| *n);
            assert_eq!(call.sums(sums), sums(stats));
        }
        assert!(packed(&calls[..1]).len() <= 9);
    }
}
