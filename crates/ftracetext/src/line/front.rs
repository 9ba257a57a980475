//! The fast path for the usual line, read from front to back.
//!
//! Nearly every line of a trace has its comm aligned to 16 columns, and after it only numbers up to
//! the time stamp. Reading such a line from the left, eight bytes at a time, takes a fraction of
//! the time of the careful path, which must find the stamp first. Lines that are not exactly as
//! expected give `None` and are left to the careful path; accepted lines read the same in both (the
//! tests compare them).

use super::Stamp;
use crate::scan::{blank, digits8, spaces8, word8};
use holdup_trace::{Cpu, Pid, Tid};

/// What precedes the event's name.
pub(super) struct Front<'a> {
    /// All 16 columns of the comm.
    pub(super) comm: &'a [u8; 16],
    pub(super) tid: Tid,
    pub(super) pid: Pid,
    pub(super) cpu: Cpu,
    pub(super) stamp: Stamp,
    pub(super) in_irq: bool,
    /// What follows the colon.
    pub(super) rest: &'a [u8],
}

/// The column at which the thread's id begins.
const IDS: usize = 17;

/// `            perf   292 [000]    28.914036: `, also with `292/292`.
#[inline(always)]
pub(super) fn perf(line: &[u8]) -> Option<Front<'_>> {
    let (comm, behind) = line.split_first_chunk::<16>()?;
    if comm[15] == b' ' || behind.first() != Some(&b' ') {
        return None;
    }
    let open = bracket(line)?;
    let (mut tid, mut at) = padded(line, IDS)?;
    let mut pid = Pid::UNKNOWN;
    if line[at] == b'/' {
        pid = Pid(tid);
        (tid, at) = number(line, at + 1)?;
    }
    if !is_gap(line, at, open) {
        return None;
    }
    let (cpu, at) = cpu(line, open)?;
    let (stamp, rest) = stamp(line, at)?;
    Some(Front { comm, tid: Tid(tid), pid, cpu, stamp, in_irq: false, rest })
}

/// `              sh-196     [003] d..2.   274.804075: `, also with `(  196)`, also without flags.
#[inline(always)]
pub(super) fn kernel(line: &[u8]) -> Option<Front<'_>> {
    let (comm, behind) = line.split_first_chunk::<16>()?;
    if behind.first() != Some(&b'-') {
        return None;
    }
    let open = bracket(line)?;
    let (tid, at) = number(line, IDS)?;
    let (pid, at) = if line[open - 2] == b')' { process(line, at)? } else { (Pid::UNKNOWN, at) };
    if !is_gap(line, at, open) {
        return None;
    }
    let (cpu, mut at) = cpu(line, open)?;
    let mut in_irq = false;
    if !matches!(line.get(at), Some(b' ' | b'0'..=b'9')) {
        let end = flags(line, at)?;
        in_irq = are_in_irq(&line[at..end]);
        at = end;
    }
    let (stamp, rest) = stamp(line, at)?;
    Some(Front { comm, tid: Tid(tid), pid, cpu, stamp, in_irq, rest })
}

/// The column at which the CPU's bracket opens.
#[inline(always)]
fn bracket(line: &[u8]) -> Option<usize> {
    // A loop, because its branch is predicted: the column is the same in line after line.
    (IDS + 6..IDS + 24)
        .find(|&at| line.get(at).is_none_or(|&b| b == b'['))
        .filter(|&at| at < line.len())
}

/// Whether there are one to eight spaces from `at` to `end` and nothing else.
#[inline(always)]
fn is_gap(line: &[u8], at: usize, end: usize) -> bool {
    (1..=8).contains(&end.wrapping_sub(at))
        && line.get(at..).and_then(word8).is_some_and(|w| spaces8(w) >= end - at)
}

/// The number of up to seven digits at `at`, and where it ends, which is inside the line.
#[inline(always)]
fn number(line: &[u8], at: usize) -> Option<(u32, usize)> {
    let (number, n) = digits8(word8(line.get(at..)?)?);
    (n > 0 && n < 8).then_some((number, at + n))
}

/// The number at `at` with spaces before it, eight bytes in total, and where it ends.
#[inline(always)]
fn padded(line: &[u8], at: usize) -> Option<(u32, usize)> {
    let w = word8(line.get(at..)?)?;
    let spaces = spaces8(w);
    let (number, n) = digits8(w >> (8 * spaces.min(7)));
    (n > 0 && spaces + n < 8).then_some((number, at + spaces + n))
}

/// ` (  196)` or ` (-------)`, and where it ends.
#[inline]
fn process(line: &[u8], at: usize) -> Option<(Pid, usize)> {
    let open = at + line[at..].iter().take(8).position(|&b| b != b' ')?;
    if open == at || line[open] != b'(' {
        return None;
    }
    if line[open..].starts_with(b"(-------)") {
        return Some((Pid::UNKNOWN, open + 9));
    }
    let (pid, at) = padded(line, open + 1)?;
    (line[at] == b')').then_some((Pid(pid), at + 1))
}

/// `[003] `, and where it ends.
#[inline(always)]
fn cpu(line: &[u8], open: usize) -> Option<(Cpu, usize)> {
    let (cpu, n) = digits8(word8(line.get(open + 1..)?)?);
    match (n, &line[open + 4..open + 7]) {
        (3, [b']', b' ', _]) => Some((Cpu(cpu as u16), open + 6)),
        (4, [_, b']', b' ']) => Some((Cpu(cpu as u16), open + 7)),
        _ => None,
    }
}

/// Whether `token` can be the column of irqs-off, need-resched, hardirq/softirq, preempt-depth
/// and, since 5.17, migrate-disable; some kernels add a delay mark or more.
#[inline]
pub(super) fn are_flags(token: &[u8]) -> bool {
    (3..=9).contains(&token.len())
        && token.iter().all(|b| {
            b.is_ascii_alphanumeric() || matches!(b, b'.' | b'#' | b'?' | b'*' | b'!' | b'+')
        })
}

/// Whether the third flag is that of a hardware interrupt or an NMI, perhaps on top of a softirq.
#[inline]
pub(super) fn are_in_irq(flags: &[u8]) -> bool {
    matches!(flags.get(2), Some(b'h' | b'H' | b'z' | b'Z'))
}

/// `d..2. `, and where it ends.
#[inline]
fn flags(line: &[u8], at: usize) -> Option<usize> {
    let n = line.get(at..)?.iter().take(10).position(|&b| b == b' ')?;
    are_flags(&line[at..at + n]).then_some(at + n + 1)
}

/// `  28.914036:`, and the text after it.
#[inline(always)]
fn stamp(line: &[u8], at: usize) -> Option<(Stamp, &[u8])> {
    const UNIT: [u64; 8] = [0, 100_000_000, 10_000_000, 1_000_000, 100_000, 10_000, 1000, 100];
    let (secs, point) = padded(line, at)?;
    if line[point] != b'.' {
        return None;
    }
    let (fraction, n) = digits8(word8(line.get(point + 1..)?)?);
    let end = point + 1 + n;
    let (nanos, digits, end) = match line.get(end)? {
        b':' if n < 8 => (fraction as u64 * UNIT[n], n, end),
        b':' => (fraction as u64 * 10, 8, end),
        last @ b'0'..=b'9' if n == 8 && line.get(end + 1) == Some(&b':') => {
            (fraction as u64 * 10 + (last - b'0') as u64, 9, end + 1)
        }
        _ => return None,
    };
    let rest = &line[end + 1..];
    if digits == 0 || rest.first().is_some_and(|&b| !blank(b)) {
        return None;
    }
    Some((Stamp { ts: secs as u64 * 1_000_000_000 + nanos, digits: digits as u8 }, rest))
}
