//! `comm pid/tid [cpu] time: period event: fields` as `perf script` prints it, with any of the
//! columns before the time missing.

use super::{Form, Line, Parts, cpu_at_end, front, known_comm, number_at_end, split, tid};
use crate::scan::{aligned, blank, trim, trim_end, trim_start, whole_dec, word_len};
use holdup_trace::{Cpu, Pid, Tid};

struct Head<'a> {
    comm: &'a [u8],
    tid: Tid,
    pid: Pid,
    cpu: Cpu,
}

/// Parse a line.
#[inline(always)]
pub(super) fn parse(line: &[u8]) -> Option<Line<'_>> {
    // Stack frames start with a tab; an event never does.
    if line.first().is_none_or(|&b| b == b'\t') {
        return None;
    }
    let (comm, tid, pid, cpu, stamp, in_irq, rest) = usual(line).or_else(|| careful(line))?;
    let rest = trim(rest);
    let (first, after) = token(rest);
    let is_number = first.first().is_some_and(u8::is_ascii_digit);
    let (period, first, after) = match is_number.then(|| whole_dec(first)).flatten() {
        Some(period) => {
            let (name, after) = token(after);
            (Some(period), name, after)
        }
        None => (None, first, after),
    };
    let (name, form, body) = match first.strip_suffix(b":") {
        Some(name) if !name.is_empty() => (name, Form::Colon, after),
        _ if first.starts_with(b"PERF_RECORD_") => {
            let n = first
                .iter()
                .position(|b| !(b.is_ascii_uppercase() || b.is_ascii_digit() || *b == b'_'))
                .unwrap_or(first.len());
            (&first[..n], Form::Record, trim(&rest[n..]))
        }
        _ => return None,
    };
    let form = if name.starts_with(b"PERF_RECORD_") { Form::Record } else { form };
    Some(Line { stamp, comm, tid, pid, cpu, in_irq, period, name, form, body })
}

/// Whether `line` is a line of perf script with thread and time, but without the event's name.
pub(crate) fn names_no_event(line: &[u8]) -> bool {
    line.first().is_some_and(|&b| b != b'\t')
        && parse(line).is_none()
        && careful(line).is_some_and(|(comm, tid, ..)| !comm.is_empty() && tid != Tid::UNKNOWN)
}

/// The parts of a usual line.
#[inline(always)]
pub(super) fn usual(line: &[u8]) -> Option<Parts<'_>> {
    let f = front::perf(line)?;
    Some((comm_of(aligned(f.comm)), f.tid, f.pid, f.cpu, f.stamp, f.in_irq, f.rest))
}

/// The parts of any line.
#[cold]
#[inline(never)]
pub(super) fn careful(line: &[u8]) -> Option<Parts<'_>> {
    // The comm is right-aligned to 16 columns unless call chains are printed. Anything in an
    // aligned comm that looks like a time stamp is part of the comm.
    let from = if line.get(16) == Some(&b' ') && line[15] != b' ' { 17 } else { 0 };
    let (stamp, h, rest) = split(line, from, false, |h| head(h, true))
        .or_else(|| split(line, 0, false, |h| head(h, false)))?;
    Some((h.comm, h.tid, h.pid, h.cpu, stamp, false, rest))
}

#[inline(always)]
fn token(s: &[u8]) -> (&[u8], &[u8]) {
    let n = word_len(s);
    (&s[..n], trim_start(&s[n..]))
}

/// Parse the head from its right end. `strict` requires a thread id.
#[inline]
fn head(head: &[u8], strict: bool) -> Option<Head<'_>> {
    if head.last().is_some_and(|&b| !blank(b) && b != b']') {
        return None;
    }
    let mut s = trim_end(head);
    // `-F misc` puts `K`, `U` and the like before the time.
    if let Some(at) = s.iter().rposition(|&b| blank(b))
        && s.len() - at <= 4
        && s[at + 1..].iter().all(u8::is_ascii_alphabetic)
        && (trim_end(&s[..at]).ends_with(b"]")
            || trim_end(&s[..at]).last().is_some_and(u8::is_ascii_digit))
    {
        s = trim_end(&s[..at]);
    }
    let mut cpu = Cpu::UNKNOWN;
    if let Some((c, rest)) = cpu_at_end(s) {
        cpu = c;
        s = trim_end(rest);
    }
    match ids(s) {
        Some((pid, tid, comm)) => Some(Head { comm: comm_of(comm), tid, pid, cpu }),
        None if strict => None,
        None => Some(Head { comm: comm_of(s), tid: Tid::UNKNOWN, pid: Pid::UNKNOWN, cpu }),
    }
}

/// `tid` or `pid/tid` at the end of `s`, after a blank; -1 is unknown.
#[inline]
fn ids(s: &[u8]) -> Option<(Pid, Tid, &[u8])> {
    let (last, rest) = id(s)?;
    match rest.strip_suffix(b"/") {
        Some(more) => {
            let (first, rest) = id(more)?;
            set_off(rest).then_some((Pid(first.0), last, rest))
        }
        None => set_off(rest).then_some((Pid::UNKNOWN, last, rest)),
    }
}

fn set_off(rest: &[u8]) -> bool {
    rest.last().is_none_or(|&b| blank(b))
}

#[inline]
fn id(s: &[u8]) -> Option<(Tid, &[u8])> {
    let (n, rest) = number_at_end(s)?;
    match rest.strip_suffix(b"-1").is_some() || rest.ends_with(b"-") {
        true if n == 1 => Some((Tid::UNKNOWN, &rest[..rest.len() - 1])),
        true => None,
        false => Some((tid(n)?, rest)),
    }
}

/// `:1234` is what perf prints for a thread whose name it never learnt.
#[inline(always)]
fn comm_of(s: &[u8]) -> &[u8] {
    let comm = trim(s);
    // Nearly all names begin with a letter.
    if comm.first().is_some_and(u8::is_ascii_alphanumeric) {
        return comm;
    }
    match comm.strip_prefix(b":") {
        Some(n) if whole_dec(n).is_some() || n == b"-1" => b"",
        _ => known_comm(comm),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn show(line: &str) -> String {
        match parse(line.as_bytes()) {
            None => "-".to_owned(),
            Some(l) => format!(
                "{}|{}|{}|{}|{}|{:?}|{}|{}",
                String::from_utf8_lossy(l.comm),
                l.tid,
                l.pid,
                l.cpu.0 as i16,
                l.stamp.ts,
                l.period,
                String::from_utf8_lossy(l.name),
                String::from_utf8_lossy(l.body)
            ),
        }
    }

    #[test]
    fn column_variants() {
        let cases = [
            (
                "            perf   292 [000]    28.914036:          sched:sched_switch: \
                    prev_comm=x",
                "perf|292|-1|0|28914036000|None|sched:sched_switch|prev_comm=x",
            ),
            (
                "         swapper     0/0     [000]    55.940886745:   lock:lock_acquired: 0xff l",
                "swapper|0|0|0|55940886745|None|lock:lock_acquired|0xff l",
            ),
            (
                "         swapper     0    55.940886745:   a:b: c",
                "swapper|0|-1|-1|55940886745|None|a:b|c",
            ),
            ("  488 [003]    55.940886745:   a:b: c", "|488|-1|3|55940886745|None|a:b|c"),
            ("    0/12     [000]    55.940886745:   a:b: c", "|12|0|0|55940886745|None|a:b|c"),
            (
                "         swapper [000]    55.940886745:   a:b: c",
                "swapper|-1|-1|0|55940886745|None|a:b|c",
            ),
            ("    55.940886:   a:b: c", "|-1|-1|-1|55940886000|None|a:b|c"),
            (
                "perf   742 [000]    92.513718:          a:b: c",
                "perf|742|-1|0|92513718000|None|a:b|c",
            ),
            (
                "perf 83220/83220 36556.170907:          1 cycles: ",
                "perf|83220|83220|-1|36556170907000|Some(1)|cycles|",
            ),
            (
                "firefox  7564/7564  2574592.839842:        321 cycles:uppp: ",
                "firefox|7564|7564|-1|2574592839842000|Some(321)|cycles:uppp|",
            ),
            (
                "Gecko\t25122 [007] 115539.936601:\t\t1000000 task-clock:u:",
                "Gecko|25122|-1|7|115539936601000|Some(1000000)|task-clock:u|",
            ),
            (
                "simple-terminat     9/9     198791.127353: cpu-clock: ",
                "simple-terminat|9|9|-1|198791127353000|None|cpu-clock|",
            ),
            (
                "              wl 16502 [001] K      4766.400907:      e:p:      address=0x4",
                "wl|16502|-1|1|4766400907000|None|e:p|address=0x4",
            ),
            (
                "         swapper     0/0     [000]     0.000000: PERF_RECORD_FORK(1:1):(0:0)",
                "swapper|0|0|0|0|None|PERF_RECORD_FORK|(1:1):(0:0)",
            ),
            (
                "            init     0/0     [000]     0.000000: PERF_RECORD_COMM: init:1/1",
                "init|0|0|0|0|None|PERF_RECORD_COMM|init:1/1",
            ),
            (
                "           :1234    -1/-1    [000]     5.000000: a:b: c",
                "|-1|-1|0|5000000000|None|a:b|c",
            ),
        ];
        for (line, want) in cases {
            assert_eq!(show(line), want, "{line}");
        }
    }

    #[test]
    fn tricky_comms() {
        for comm in [
            "a b 12",
            "kworker/0:1-ev",
            "x 1 [0] 1.5: y",
            "[001]",
            "a: b",
            "1.000000: x",
            "12",
            "12/13",
        ] {
            let line = format!("{comm:>16}    77 [003]    274.804075:   sched:sched_switch: body");
            let l = parse(line.as_bytes()).unwrap_or_else(|| panic!("{line}"));
            assert_eq!(
                (String::from_utf8_lossy(l.comm), l.tid.0, l.cpu.0),
                (comm.into(), 77, 3),
                "{line}"
            );
        }
    }

    #[test]
    fn not_events() {
        for line in [
            "",
            "# captured on: x",
            "\tffffffff813af60a update_se+0x13a ([kernel.kallsyms])",
            "a 1 [000] 1.0: noname",
            "a 1 [000] 1.0:",
        ] {
            assert_eq!(show(line), "-", "{line}");
        }
    }
}
