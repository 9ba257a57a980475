//! The system calls of a thread that has ended, in a few bytes each.
//!
//! A build or a shell script starts a hundred thousand processes, and each makes twenty different
//! calls once or twice. Their sums stay, because tables by thread show them, but do not change any
//! more. So they are packed: numbers with seven bits per byte, zeros omitted. A call that was made
//! once and kept its CPU takes about seven bytes instead of 170.

use crate::hist::SmallHistogram;
use crate::syscalls::CallStats;
use crate::varint::{Reader, Writer};
use std::borrow::Cow;

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

/// Appends the calls to a byte string: number, length, sums.
pub(crate) fn pack<'a>(calls: impl Iterator<Item = (u32, Cow<'a, CallStats>)>) -> Box<[u8]> {
    // Enough for most threads, so that the strings need not grow.
    let (mut out, mut sums) = (Writer(Vec::with_capacity(512)), Writer(Vec::with_capacity(64)));
    for (nr, stats) in calls {
        sums.0.clear();
        pack_one(&mut sums, stats.into_owned());
        out.number(nr.into());
        out.number(sums.0.len() as u64);
        out.0.extend_from_slice(&sums.0);
    }
    out.0.into_boxed_slice()
}

fn pack_one(out: &mut Writer, mut s: CallStats) {
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
    let sums = fields(&mut s).map(|n| *n);
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

/// Reads back what [`pack`] wrote of the calls with these numbers.
pub(crate) fn unpack(
    bytes: &[u8],
    wanted: impl Fn(u32) -> bool,
) -> impl Iterator<Item = (u32, CallStats)> {
    let mut from = Reader(bytes);
    std::iter::from_fn(move || {
        while !from.0.is_empty() {
            let (nr, len) = (from.number() as u32, from.number() as usize);
            let (sums, rest) = from.0.split_at_checked(len)?;
            from.0 = rest;
            if wanted(nr) {
                return Some((nr, unpack_one(&mut Reader(sums))));
            }
        }
        None
    })
}

/// The places of the bits that are set, ascending.
fn bits(mut flags: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let first = flags.trailing_zeros() as usize;
        flags &= flags.checked_sub(1)?;
        Some(first)
    })
}

fn unpack_one(from: &mut Reader<'_>) -> CallStats {
    let mut s = CallStats::default();
    let flags = from.number();
    let mut sums = fields(&mut s);
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
    let errnos = if s.errors > 0 { from.number() } else { 0 };
    s.errnos = (0..errnos).map(|_| (from.number() as u16, from.number())).collect();
    if flags & ONE != 0 {
        s.hist.add(s.total);
    } else {
        s.hist = SmallHistogram::unpack(from);
    }
    s
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
        fn borrowed(calls: &[(u32, CallStats)]) -> impl Iterator<Item = (u32, Cow<'_, CallStats>)> {
            calls.iter().map(|(nr, stats)| (*nr, Cow::Borrowed(stats)))
        }
        let text = |calls: &[(u32, CallStats)]| format!("{calls:?}");
        let bytes = pack(borrowed(&calls));
        let back: Vec<_> = unpack(&bytes, |_| true).collect();
        assert_eq!(text(&back), text(&calls));
        let back: Vec<_> = unpack(&bytes, |nr| nr == 202).collect();
        assert_eq!(text(&back), text(&calls[3..4]));
        assert!(pack(borrowed(&calls[..1])).len() <= 9);
    }
}
