//! `comm-pid (tgid) [cpu] flags time: event: fields`, and trace-cmd's latency form
//! `comm-pid cpuflags time: event: fields`.

use super::{Form, Line, Parts, cpu_at_end, front, known_comm, number_at_end, split, tid};
use crate::scan::{aligned, blank, dec, trim, trim_end, trim_start};
use holdup_trace::{Cpu, Pid, Tid};

struct Head<'a> {
    comm: &'a [u8],
    tid: Tid,
    pid: Pid,
    cpu: Cpu,
    in_irq: bool,
}

/// Parse a line.
#[inline(always)]
pub(super) fn parse(line: &[u8]) -> Option<Line<'_>> {
    let (comm, tid, pid, cpu, stamp, in_irq, rest) = usual(line).or_else(|| careful(line))?;
    let mut rest = trim(rest);
    // `trace-cmd report --ts-diff`.
    if let [b'(', b'+', after @ ..] = rest
        && let Some((_, n)) = dec(after)
        && after.get(n) == Some(&b')')
    {
        rest = trim_start(&after[n + 1..]);
    }
    let (name, form, body) = event(rest)?;
    Some(Line { stamp, comm, tid, pid, cpu, in_irq, period: None, name, form, body })
}

/// The parts of a usual line.
#[inline(always)]
pub(super) fn usual(line: &[u8]) -> Option<Parts<'_>> {
    let f = front::kernel(line)?;
    let comm = known_comm(trim_start(aligned(f.comm)));
    Some((comm, f.tid, f.pid, f.cpu, f.stamp, f.in_irq, f.rest))
}

/// The parts of any line.
#[cold]
#[inline(never)]
pub(super) fn careful(line: &[u8]) -> Option<Parts<'_>> {
    // The kernel and trace-cmd right-align the comm to 16 columns. If the dash is in its column,
    // anything before it that looks like a time stamp is part of the comm.
    let from = if line.get(16) == Some(&b'-') { 17 } else { 0 };
    let (stamp, h, rest) = split(line, from, true, head)
        .or_else(|| if from > 0 { split(line, 0, true, head) } else { None })?;
    Some((h.comm, h.tid, h.pid, h.cpu, stamp, h.in_irq, rest))
}

/// The event's name, how it was written, and its fields.
#[inline]
fn event(rest: &[u8]) -> Option<(&[u8], Form, &[u8])> {
    let end =
        rest.iter().position(|b| matches!(b, b':' | b'(' | b' ' | b'\t')).unwrap_or(rest.len());
    if end == 0 {
        return None;
    }
    // The preceding event was recorded with its stack; the functions follow line by line.
    if rest[0] == b'<' {
        return match rest {
            b"<stack trace>" => Some((b"kernel_stack", Form::Colon, b"")),
            b"<user stack trace>" => Some((b"user_stack", Form::Colon, b"")),
            _ => None,
        };
    }
    let (name, after) = rest.split_at(end);
    match after {
        [b':'] | [b':', b' ' | b'\t', ..] => Some((name, Form::Colon, trim_start(&after[1..]))),
        [b':', more @ ..] => {
            // `system:event:`, which some versions of trace-cmd print.
            let n = more.iter().position(|b| !(b.is_ascii_alphanumeric() || *b == b'_'))?;
            match &more[n..] {
                [b':'] | [b':', b' ' | b'\t', ..] if n > 0 => {
                    Some((&rest[..end + 1 + n], Form::Colon, trim_start(&more[n + 1..])))
                }
                _ => Some((name, Form::Colon, more)),
            }
        }
        [b'(', ..] if name.starts_with(b"sys_") => Some((name, Form::Call, after)),
        _ => {
            let after = trim_start(after);
            if let Some(value) = after.strip_prefix(b"-> ") {
                Some((name, Form::Return, value))
            } else if after.starts_with(b"<-") {
                Some((name, Form::Function, b""))
            } else {
                None
            }
        }
    }
}

/// Parse the head from its right end.
#[inline]
fn head(head: &[u8]) -> Option<Head<'_>> {
    // A blank precedes the stamp, except that a raw counter may follow a CPU or flags directly.
    let s = trim_end(head);
    if let Some((cpu, rest)) = cpu_at_end(s) {
        return task(cpu, rest, b"");
    }
    let start = s.iter().rposition(|&b| blank(b)).map_or(0, |i| i + 1);
    let (before, token) = s.split_at(start);
    if !front::are_flags(token) {
        return latency(before, token);
    }
    match cpu_at_end(trim_end(before)) {
        Some((cpu, rest)) => task(cpu, rest, token),
        None => latency(before, token),
    }
}

/// `comm-pid` or `comm-pid (tgid)`.
#[inline]
fn task<'a>(cpu: Cpu, s: &'a [u8], flags: &[u8]) -> Option<Head<'a>> {
    let mut s = trim_end(s);
    let mut pid = Pid::UNKNOWN;
    if let Some(inner) = s.strip_suffix(b")") {
        let open = inner.iter().rposition(|&b| b == b'(')?;
        match dec(trim(&inner[open + 1..])) {
            Some((n, _)) => pid = Pid(u32::try_from(n).ok()?),
            None if inner[open + 1..].iter().all(|b| matches!(b, b'-' | b' ')) => {}
            None => return None,
        }
        s = trim_end(&inner[..open]);
    }
    let (n, rest) = number_at_end(s)?;
    let comm = rest.strip_suffix(b"-")?;
    let in_irq = front::are_in_irq(flags);
    Some(Head { comm: comm_of(comm, 16), tid: tid(n)?, pid, cpu, in_irq })
}

/// `comm-pid` and then CPU and flags in one: `     3d.h1.`. The comm is cut to 8 bytes.
#[inline]
fn latency<'a>(before: &'a [u8], token: &[u8]) -> Option<Head<'a>> {
    let (cpu, n) = dec(token)?;
    if !front::are_flags(&token[n..]) {
        return None;
    }
    let cpu = u16::try_from(cpu).ok().filter(|&n| n != u16::MAX)?;
    let (pid, rest) = number_at_end(trim_end(before))?;
    let comm = comm_of(rest.strip_suffix(b"-")?, 8);
    // Eight bytes may be a whole comm or a truncated one; half a name is worse than none.
    let comm = if comm.len() >= 8 { b"" } else { comm };
    let in_irq = front::are_in_irq(&token[n..]);
    Some(Head { comm, tid: tid(pid)?, pid: Pid::UNKNOWN, cpu: Cpu(cpu), in_irq })
}

/// The comm without alignment, and without the `file: ` or `instance: ` that `trace-cmd report`
/// puts before each line when it reports several buffers.
#[inline]
fn comm_of(s: &[u8], width: usize) -> &[u8] {
    let comm = match s.len().checked_sub(width) {
        Some(extra)
            if extra > 1 && s[extra - 1] == b' ' && trim_end(&s[..extra]).ends_with(b":") =>
        {
            &s[extra..]
        }
        _ => s,
    };
    known_comm(trim_start(comm))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn show(line: &str) -> String {
        match parse(line.as_bytes()) {
            None => "-".to_owned(),
            Some(l) => format!(
                "{}|{}|{}|{}|{}|{}|{:?}|{}",
                String::from_utf8_lossy(l.comm),
                l.tid,
                l.pid,
                l.cpu.0,
                l.stamp.ts,
                String::from_utf8_lossy(l.name),
                l.form,
                String::from_utf8_lossy(l.body)
            ),
        }
    }

    #[test]
    fn header_variants() {
        let cases = [
            (
                "          <idle>-0       [004] d..2.   274.804075: sched_switch: x",
                "<idle>|0|-1|4|274804075000|sched_switch|Colon|x",
            ),
            (
                "           <...>-4083  [004] ....   395.705673: sys_read -> 0x0",
                "|4083|-1|4|395705673000|sys_read|Return|0x0",
            ),
            (
                "            sshd-3977  [003] ....   395.70: sys_write(fd: a)",
                "sshd|3977|-1|3|395700000000|sys_write|Call|(fd: a)",
            ),
            (
                "ksoftirqd/1-15    (   15) [001] d.s4 69739.347249: a: b",
                "ksoftirqd/1|15|15|1|69739347249000|a|Colon|b",
            ),
            (
                "          <idle>-0     (-----) [001] dN.4 69739.347116: a: b",
                "<idle>|0|-1|1|69739347116000|a|Colon|b",
            ),
            (
                "              wl-206   [000]    12.652474319: sys_exit:             NR 1 = 1",
                "wl|206|-1|0|12652474319|sys_exit|Colon|NR 1 = 1",
            ),
            (
                "              wl-1958  [006]770227493960: sys_exit:  NR 1 = 1",
                "wl|1958|-1|6|770227493960|sys_exit|Colon|NR 1 = 1",
            ),
            (
                "trace-cm-1954    1d.h..770233360204: softirq_raise: vec=1",
                "|1954|-1|1|770233360204|softirq_raise|Colon|vec=1",
            ),
            (
                "  mmap-0-943     3d..2.   145.939519: sched_stat_runtime:   x",
                "mmap-0|943|-1|3|145939519000|sched_stat_runtime|Colon|x",
            ),
            (
                "b.dat:               wl-206   [000]    12.652474: a: b",
                "wl|206|-1|0|12652474000|a|Colon|b",
            ),
            (
                "\t  <idle>-0     [006]  7115.449607: a:   b",
                "<idle>|0|-1|6|7115449607000|a|Colon|b",
            ),
            (
                "            bash-1     [003]  1.000000: do_IRQ <-common",
                "bash|1|-1|3|1000000000|do_IRQ|Function|",
            ),
            (
                "            bash-1     [003]  1.000000: (+12)   a: b\r",
                "bash|1|-1|3|1000000000|a|Colon|b",
            ),
            (
                "            bash-1     [003]  1.000000: sched:a: b",
                "bash|1|-1|3|1000000000|sched:a|Colon|b",
            ),
            (
                "    bash-5210      1..... 17277us : sys_read -> 0x0",
                "bash|5210|-1|1|17277000|sys_read|Return|0x0",
            ),
            ("    bash-5210      1d.h2.    4us+: a: b", "bash|5210|-1|1|4000|a|Colon|b"),
            (
                "            bash-1     [003] d....  1.000000: <stack trace>",
                "bash|1|-1|3|1000000000|kernel_stack|Colon|",
            ),
            ("<4583>-4583  (-----) [000] ...1 2.000000: a: b", "|4583|-1|0|2000000000|a|Colon|b"),
        ];
        for (line, want) in cases {
            assert_eq!(show(line), want, "{line}");
        }
    }

    #[test]
    fn tricky_comms() {
        for comm in [
            "a b",
            "kworker/0:1-ev",
            "x-1 [0] 1.5: y",
            "[001]",
            "-",
            "a: b",
            "1.000000: x",
            "(12)",
            "é",
            "sh-12 (3) [1]",
        ] {
            let line = format!("{comm:>16}-77    [003] d..2.   274.804075: sched_switch: body");
            let l = parse(line.as_bytes()).unwrap_or_else(|| panic!("{line}"));
            let width = line.len() - comm.len();
            assert!(width > 0);
            assert_eq!(
                (String::from_utf8_lossy(l.comm), l.tid.0, l.cpu.0),
                (comm.into(), 77, 3),
                "{line}"
            );
        }
        // No comm at all.
        let l = parse(b"                -77    [003] d..2.   274.804075: x: y").unwrap();
        assert_eq!((l.comm, l.tid.0), (&b""[..], 77));
    }

    #[test]
    fn not_events() {
        for line in [
            "",
            "#",
            "CPU:3 [LOST 12 EVENTS]",
            "some = 000, other = 0x4",
            "cpus=8",
            "a-1 [x] 1.0: b: c",
            "a-1 [0] 1.0: ",
            "a-1 [99999] 1.0: b: c",
        ] {
            assert_eq!(show(line), "-", "{line}");
        }
    }

    #[test]
    fn the_third_flag_tells_interrupts() {
        let with = |flags: &str| {
            let line = format!("          <idle>-0       [004] {flags}   274.804075: a: b");
            let latency = format!("  <idle>-0       4{flags} 274.804075: a: b");
            let [usual, latency] = [line, latency].map(|l| parse(l.as_bytes()).unwrap().in_irq);
            assert_eq!(usual, latency, "{flags}");
            usual
        };
        for (flags, in_irq) in [
            ("d.h1.", true),
            ("dNH2.", true),
            ("d.Z1.", true),
            ("d.s2.", false),
            ("..s1.", false),
            ("d..2.", false),
            (".....", false),
        ] {
            assert_eq!(with(flags), in_irq, "{flags}");
        }
        let without = "          <idle>-0       [004]   274.804075: a: b";
        assert!(!parse(without.as_bytes()).unwrap().in_irq);
    }
}
