//! Recognises output of other tools, which is not a trace, by the form of its lines.

use holdup_trace::ErrorKind;

/// Lines examined.
const LINES: usize = 40;

const FROM_PERF_DATA: &str = "give holdup the perf.data from which it was made";
const RECORD: &str = "the text does not say which thread ran on which CPU at what time; record \
                      with perf record or trace-cmd record";

/// A kind of text: how its lines begin or what they contain, its name, and the remedy.
struct Printed {
    has: fn(&str) -> bool,
    what: &'static str,
    way_out: &'static str,
}

const KINDS: &[Printed] = &[
    Printed {
        has: |line| line.starts_with("lock_stat version "),
        what: "a dump of /proc/lock_stat",
        way_out: "only `holdup locks FILE` reads it (and `holdup locks FILE --before EARLIER`)",
    },
    Printed { has: is_kernel_log, what: "the kernel's log (dmesg)", way_out: RECORD },
    Printed { has: is_strace, what: "output of strace", way_out: RECORD },
    Printed {
        has: |line| line.starts_with("Attaching ") && line.contains(" probe"),
        what: "output of bpftrace",
        way_out: RECORD,
    },
    Printed {
        has: |line| line.contains("... raw event: size "),
        what: "output of perf script -D",
        way_out: FROM_PERF_DATA,
    },
    Printed {
        has: |line| line.contains(" sch delay ") && line.contains(" run time"),
        what: "output of perf sched timehist",
        way_out: FROM_PERF_DATA,
    },
    Printed {
        has: |line| line.contains("| Switches |") || line.contains(" secs ") && line.contains("=>"),
        what: "output of perf sched",
        way_out: FROM_PERF_DATA,
    },
    Printed {
        has: |line| line.starts_with("# Overhead") || line.starts_with("# To display the perf."),
        what: "output of perf report",
        way_out: FROM_PERF_DATA,
    },
    Printed {
        has: |line| {
            line.contains("Performance counter stats for")
                || line.starts_with('#') && line.contains(" counts unit events")
        },
        what: "output of perf stat",
        way_out: "the text contains sums, not events; record with perf record",
    },
    Printed { has: is_perf_trace, what: "output of perf trace", way_out: FROM_PERF_DATA },
];

/// What a file that begins with `text` is, if it is the output of a known tool.
pub(crate) fn name(text: &str) -> Option<ErrorKind> {
    let lines = || text.lines().filter(|line| !line.trim().is_empty()).take(LINES);
    KINDS.iter().find(|kind| lines().any(kind.has)).map(|kind| ErrorKind::Unsupported {
        what: kind.what.to_owned(),
        way_out: kind.way_out.to_owned(),
    })
}

/// `[    0.000000] Linux …`, `<6>[    0.000000] …`, `[    0.1][    T1] …` and the form of
/// `dmesg -T`: `[Sun Nov 22 05:14:02 2026] …`. syslog and the journal put `host kernel: ` before.
fn is_kernel_log(line: &str) -> bool {
    let line = line.split_once(" kernel: ").map_or(line, |(_, rest)| rest);
    let line = match line.strip_prefix('<').and_then(|rest| rest.split_once('>')) {
        Some((level, rest)) if level.bytes().all(|b| b.is_ascii_digit()) => rest,
        _ => line,
    };
    let Some((time, _)) = line.strip_prefix('[').and_then(|rest| rest.split_once(']')) else {
        return false;
    };
    let is_number = |s: &str| !s.is_empty() && s.bytes().all(|b| b.is_ascii_digit());
    let seconds = time
        .trim_start()
        .split_once('.')
        .is_some_and(|(s, us)| is_number(s) && us.len() == 6 && is_number(us));
    let mut words = time.split_ascii_whitespace();
    let day = words.next().is_some_and(|day| day.len() == 3);
    seconds || day && words.clone().count() == 4 && words.any(|w| w.matches(':').count() == 2)
}

/// `19243 05:16:49.831 execve("/usr/bin/sleep", …) = 0`, with or without thread and time.
fn is_strace(line: &str) -> bool {
    let is_number = |w: &str| w.bytes().all(|b| b.is_ascii_digit() || matches!(b, b'.' | b':'));
    let call = line.trim_start().split_once('(').map_or("", |(before, _)| before);
    let mut words = call.split_ascii_whitespace().rev();
    let name = words.next().unwrap_or("");
    let is_call = name.starts_with(|c: char| c.is_ascii_lowercase())
        && name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_')
        && words.all(|w| is_number(w.trim_end_matches(']')) || w == "[pid")
        && line.contains(')')
        && line.rsplit_once(" = ").is_some_and(|(_, result)| {
            result.starts_with(|c: char| c.is_ascii_digit() || matches!(c, '-' | '?'))
        });
    is_call || line.starts_with("% time     seconds")
}

/// `     0.000 ( 0.003 ms): sleep/123 brk() = 0x5581`.
fn is_perf_trace(line: &str) -> bool {
    line.trim_start()
        .split_once(" (")
        .and_then(|(time, rest)| Some((time, rest.split_once(" ms): ")?)))
        .is_some_and(|(time, _)| time.bytes().all(|b| b.is_ascii_digit() || b == b'.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_tools_print_is_called_by_its_name() {
        for (line, what) in [
            ("lock_stat version 0.4", "holdup locks FILE"),
            ("[    0.000000] Linux version 6.1.0", "dmesg"),
            ("[12345.678901] usb 1-1: new device", "dmesg"),
            ("[    0.123456][    T1] smpboot: CPU0", "dmesg"),
            ("<6>[    0.123456] smpboot: CPU0", "dmesg"),
            ("[Sun Nov 22 05:14:02 2026] smpboot: CPU0", "dmesg"),
            ("Nov 22 05:14:02 host kernel: [    0.123456] smpboot: CPU0", "dmesg"),
            ("execve(\"/usr/bin/sleep\", [\"sleep\"], 0x7ffd /* 35 vars */) = 0", "strace"),
            ("19243 brk(NULL)                         = 0x56321b3a0000", "strace"),
            ("19243 05:16:49.831310 close(3)          = -1 EBADF (Bad file)", "strace"),
            ("[pid 19243] 1795324609.871711 brk(NULL) = 0x55becf9e2000", "strace"),
            ("% time     seconds  usecs/call     calls    errors syscall", "strace"),
            ("Attaching 3 probes...", "bpftrace"),
            (
                "0x13a8@perf.data [0x38]: event: 79\n.\n. ... raw event: size 56 bytes",
                "perf script",
            ),
            ("   time    cpu  task name   wait time  sch delay   run time", "timehist"),
            ("  Task      |   Runtime ms  | Switches | Avg delay ms    |", "perf sched"),
            ("  *A0          16.600114 secs A0 => migration/0:16", "perf sched"),
            ("# Overhead  Command          Shared Object      Symbol", "perf report"),
            ("#           time             counts unit events", "perf stat"),
            ("     0.000 ( 0.003 ms): sleep/123 brk() = 0x5581", "perf trace"),
        ] {
            let message = name(&format!("\n{line}\n")).unwrap_or_else(|| panic!("{line}"));
            assert!(message.to_string().contains(what), "{line}: {message}");
        }
        for line in ["hello, world", "[1, 2, 3]", "[]", "[\"a\"]", "f(x) = x", "a = b(c)", "{}"] {
            assert!(name(line).is_none(), "{line}");
        }
    }
}
