//! One line: thread, CPU, time, event and fields.
//!
//! Every dialect's line is `HEAD TIME: EVENT BODY`. A comm may contain anything, `: ` and brackets
//! included, so a line cannot be parsed from the left. The time stamp is found first: it ends at
//! the first colon that has a time stamp and a valid head before it. The head is then parsed from
//! its right end, and what remains at its left is the comm.
//!
//! That is the careful path. Nearly all lines have an aligned comm and cannot be misread; they are
//! parsed from the left.

mod front;
mod kernel;
mod other;
mod perf;

pub(crate) use other::{Other, other};
pub(crate) use perf::names_no_event;

use crate::scan::blank;
use holdup_trace::{Cpu, Nanos, Pid, Tid};

/// How the lines of a file are built. Several dialects share one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Syntax {
    /// `comm-pid (tgid) [cpu] flags time: event: fields`: the kernel, trace-cmd, atrace.
    Kernel,
    /// `comm pid/tid [cpu] time: period event: fields`: perf script.
    Perf,
}

/// How the event's name was written.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Form {
    /// `name: fields`.
    Colon,
    /// `sys_name(arg: value, …)`, the kernel's own rendering of `syscalls:sys_enter_name`.
    Call,
    /// `sys_name -> 0x0`, the kernel's rendering of `sys_exit_name`.
    Return,
    /// `callee <-caller`: the function tracer.
    Function,
    /// A perf sideband record (`PERF_RECORD_FORK …`); the name is the record's.
    Record,
}

/// The parts of a line.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Line<'a> {
    pub(crate) stamp: Stamp,
    /// Empty if the text has no comm or marks it as unknown.
    pub(crate) comm: &'a [u8],
    pub(crate) tid: Tid,
    pub(crate) pid: Pid,
    pub(crate) cpu: Cpu,
    /// By the column of flags; `false` too without one.
    pub(crate) in_irq: bool,
    /// Event count perf prints before the name.
    pub(crate) period: Option<u64>,
    /// The event's name, with its system if the text has it.
    pub(crate) name: &'a [u8],
    pub(crate) form: Form,
    pub(crate) body: &'a [u8],
}

/// A time stamp and how it was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stamp {
    pub(crate) ts: Nanos,
    /// Digits after the point; 0 for a raw counter (`x86-tsc`).
    pub(crate) digits: u8,
}

/// Comm, thread, process, CPU, time stamp and whether in an interrupt, and the text after the
/// stamp.
type Parts<'a> = (&'a [u8], Tid, Pid, Cpu, Stamp, bool, &'a [u8]);

/// Parse `line` (without its line end). `None` if it is not an event.
// Always inlined: each caller then pays only for the parts it uses.
#[inline(always)]
pub(crate) fn parse(syntax: Syntax, line: &[u8]) -> Option<Line<'_>> {
    match syntax {
        Syntax::Kernel => kernel::parse(line),
        Syntax::Perf => perf::parse(line),
    }
}

/// Colons tried before parsing fails: a comm has at most 16 bytes and so at most 16 colons.
const COLONS: usize = 20;

/// The first colon from `from` on that follows a time stamp and for which `head` accepts the text
/// before the stamp. `counters` allows stamps without a point. Returns the stamp, the result of
/// `head`, and the rest of the line.
#[inline]
fn split<'a, T>(
    line: &'a [u8],
    from: usize,
    counters: bool,
    mut head: impl FnMut(&'a [u8]) -> Option<T>,
) -> Option<(Stamp, T, &'a [u8])> {
    let mut at = from;
    for _ in 0..COLONS {
        at += memchr::memchr(b':', line.get(at..)?)?;
        if let Some((stamp, start)) = stamp_before(line, at)
            && (counters || stamp.digits > 0)
            && line.get(at + 1).is_none_or(|&b| blank(b) || b == b'\r')
            && let Some(h) = head(&line[..start])
        {
            return Some((stamp, h, &line[at + 1..]));
        }
        at += 1;
    }
    None
}

/// The time stamp that ends at `end`, and where it starts.
#[inline]
fn stamp_before(line: &[u8], end: usize) -> Option<(Stamp, usize)> {
    let mut i = end;
    let mut frac = 0u64;
    let mut scale = 1u64;
    while i > 0 && line[i - 1].is_ascii_digit() && end - i < 20 {
        i -= 1;
        // Wraps only beyond 18 digits, where the value is not used.
        frac = frac.wrapping_add(scale.wrapping_mul((line[i] - b'0') as u64));
        scale = scale.wrapping_mul(10);
    }
    let digits = end - i;
    if digits == 0 {
        return micros_before(line, end);
    }
    let point = i;
    if digits <= 9 && i > 0 && line[i - 1] == b'.' {
        i -= 1;
        let mut secs = 0u64;
        let mut scale = 1u64;
        while i > 0 && line[i - 1].is_ascii_digit() {
            i -= 1;
            secs = secs.checked_add(scale.checked_mul((line[i] - b'0') as u64)?)?;
            scale = if point - i < 12 { scale * 10 } else { return None };
        }
        if i + 1 < point {
            let nanos = frac
                * [
                    1_000_000_000,
                    100_000_000,
                    10_000_000,
                    1_000_000,
                    100_000,
                    10_000,
                    1_000,
                    100,
                    10,
                    1,
                ][digits];
            let ts = secs.checked_mul(1_000_000_000)?.checked_add(nanos)?;
            return Some((Stamp { ts, digits: digits as u8 }, i));
        }
    }
    // A raw counter.
    (digits <= 18).then_some((Stamp { ts: frac, digits: 0 }, point))
}

/// The kernel's latency format counts microseconds since the trace began: `17277us : `, with a mark
/// in place of the blank after a long delay.
fn micros_before(line: &[u8], end: usize) -> Option<(Stamp, usize)> {
    let (mark, s) = line[..end].split_last()?;
    if !matches!(mark, b' ' | b'+' | b'!' | b'#' | b'*' | b'@' | b'$') {
        return None;
    }
    let (micros, rest) = number_at_end(s.strip_suffix(b"us")?)?;
    Some((Stamp { ts: micros.checked_mul(1000)?, digits: 6 }, rest.len()))
}

/// Split the decimal number off the end of `s`.
#[inline]
fn number_at_end(s: &[u8]) -> Option<(u64, &[u8])> {
    let mut i = s.len();
    while i > 0 && s[i - 1].is_ascii_digit() {
        i -= 1;
    }
    let n = crate::scan::whole_dec(&s[i..])?;
    Some((n, &s[..i]))
}

/// The CPU of `…[003]` and the text before the bracket.
#[inline]
fn cpu_at_end(s: &[u8]) -> Option<(Cpu, &[u8])> {
    let s = s.strip_suffix(b"]")?;
    let (n, rest) = number_at_end(s)?;
    let rest = rest.strip_suffix(b"[")?;
    // u16::MAX means "unknown", and no kernel supports that many CPUs.
    let cpu = u16::try_from(n).ok().filter(|&n| n != u16::MAX)?;
    Some((Cpu(cpu), rest))
}

/// The comm; empty if it is a placeholder for an unknown name.
#[inline]
fn known_comm(comm: &[u8]) -> &[u8] {
    if let [b'<', inner @ .., b'>'] = comm
        && (inner == b"..." || inner == b"unknown" || inner.iter().all(u8::is_ascii_digit))
    {
        return b"";
    }
    comm
}

fn tid(n: u64) -> Option<Tid> {
    u32::try_from(n).ok().map(Tid)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stamp(s: &str) -> Option<(u64, u8, usize)> {
        stamp_before(s.as_bytes(), s.len()).map(|(s, at)| (s.ts, s.digits, at))
    }

    /// The careful path must read every line that [`front`] accepts the same way: these lines, and
    /// many that differ from them in a few bytes.
    #[test]
    fn both_ways_read_the_same() {
        const LINES: &[&[u8]] = &[
            b"            perf   292 [000]    28.914036:          sched:sched_switch: prev_comm=x",
            b"         swapper     0/0     [000]    55.940886745:   lock:lock_acquired: 0xff l",
            b" simple-terminat     9/9     198791.127353: cpu-clock: ",
            b"          a 1: b    77 [003]    274.804075:   sched:sched_switch: body",
            b"          <idle>-0       [004] d..2.   274.804075: sched_switch: x",
            b"    ksoftirqd/1-15    (   15) [001] d.s4 69739.347249: a: b",
            b"          <idle>-0     (-------) [001] dN.4 69739.347116: a: b",
            b"              wl-206   [000]    12.652474319: sys_exit:             NR 1 = 1",
            b"           a-1 2-206   [000]    12.65: sys_exit: NR 1 = 1",
            b"            <...>-206   [000]    12.65: sys_exit: NR 1 = 1\r",
        ];
        fn same<'a>(
            line: &[u8],
            front: Option<Parts<'a>>,
            careful: impl FnOnce() -> Option<Parts<'a>>,
        ) -> bool {
            let Some(front) = front else { return false };
            assert_eq!(Some(front), careful(), "{}", line.escape_ascii());
            true
        }
        let mut x = 7u64;
        let mut rnd = |n: usize| {
            x = x.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (x >> 33) as usize % n
        };
        let mut accepted = [0; 2];
        for round in 0..400_000 {
            let mut line = LINES[rnd(LINES.len())].to_vec();
            for _ in 0..round % 4 {
                let at = rnd(line.len().min(50));
                let b = b"0123456789 []().:/-\td<>"[rnd(23)];
                match rnd(3) {
                    0 => line[at] = b,
                    1 => line.insert(at, b),
                    _ => drop(line.remove(at)),
                }
            }
            accepted[0] += same(&line, perf::usual(&line), || perf::careful(&line)) as u32;
            accepted[1] += same(&line, kernel::usual(&line), || kernel::careful(&line)) as u32;
        }
        assert!(accepted.iter().all(|&n| n > 50_000), "{accepted:?}");
    }

    #[test]
    fn stamps_are_exact_integers() {
        assert_eq!(stamp(" 12.000001"), Some((12_000_001_000, 6, 1)));
        assert_eq!(stamp("12.123456789"), Some((12_123_456_789, 9, 0)));
        assert_eq!(stamp("]770227493960"), Some((770227493960, 0, 1)));
        assert_eq!(stamp("1d.h1.770233360204"), Some((770233360204, 0, 6)));
        assert_eq!(stamp("  3"), Some((3, 0, 2)));
        assert_eq!(stamp("99999999999.000000"), None, "beyond 64 bits of nanoseconds");
        assert_eq!(stamp("9999999999999999999.000000"), None);
        assert_eq!(stamp("1234567890123456789012345"), None);
    }
}
