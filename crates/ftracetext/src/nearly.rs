//! Recognises text of perf script that lacks required columns, and explains how to print them.

use crate::line::{Syntax, names_no_event, parse};
use crate::scan::{blank, hex, trim, whole_dec};
use holdup_trace::{ErrorKind, Tid};

/// Lines looked at.
const LINES: usize = 200;
/// This many frames of call chains are no coincidence.
const FRAMES: usize = 3;

/// A frame of a call chain: an address of some length, and more text after it.
fn is_frame(line: &[u8]) -> bool {
    let text = trim(line);
    let blank_first = line.first().is_some_and(|&b| blank(b));
    blank_first && hex(text).is_some_and(|(_, n)| n >= 8 && text.get(n).is_some_and(|&b| blank(b)))
}

/// The error that names the columns missing from a file that starts with `head`; `None` if the file
/// is not text of perf script.
pub fn nearly(head: &[u8]) -> Option<ErrorKind> {
    let (mut timeless, mut nameless, mut placeless) = (0, 0, 0);
    let (frames, heads): (Vec<_>, Vec<_>) =
        head.split(|&b| b == b'\n').partition(|line| is_frame(line));
    for line in heads.into_iter().filter(|line| !line.starts_with(b"\t")).take(LINES) {
        match parse(Syntax::Perf, line) {
            Some(l) => placeless += usize::from(l.comm.is_empty() && l.tid == Tid::UNKNOWN),
            None if names_no_event(line) => nameless += 1,
            None => timeless += usize::from(has_no_time(line)),
        }
    }
    // Only chains: their heads have neither time nor CPU.
    if frames.len() >= FRAMES && nameless + placeless == 0 {
        timeless = timeless.max(1);
    }
    let most = timeless.max(nameless).max(placeless);
    let (what, way_out) = match most {
        0 => return None,
        n if n == timeless => (
            "without time stamps",
            "print it again with perf script -F +time; if perf says that the samples have no time, \
             record again with perf record -T",
        ),
        n if n == nameless => {
            ("without the names of the events", "print it again with perf script -F +event")
        }
        _ => ("without CPU and thread", "print it again with perf script -F +cpu,+tid,+comm"),
    };
    Some(ErrorKind::Unsupported {
        what: format!("text of perf script {what}"),
        way_out: way_out.to_owned(),
    })
}

/// `perf   200/200   [000]   sched:sched_stat_wait: comm=perf …`: a thread or a CPU, perhaps a
/// count, and then the event.
fn has_no_time(line: &[u8]) -> bool {
    let mut before: [&[u8]; 2] = [b""; 2];
    for word in line.split(|&b| blank(b)).filter(|w| !w.is_empty()) {
        if let Some(name) = word.strip_suffix(b":") {
            let is_place = |w: &[u8]| {
                let cpu = w.strip_prefix(b"[").and_then(|w| w.strip_suffix(b"]"));
                cpu.is_some_and(|n| whole_dec(n).is_some())
            };
            let is_thread = |w: &[u8]| {
                let mut ids = w.split(|&b| b == b'/');
                w.first().is_some_and(u8::is_ascii_digit) && ids.all(|n| whole_dec(n).is_some())
            };
            let is_count = whole_dec(before[1]).is_some();
            let place = is_place(before[1]) || is_count && is_place(before[0]);
            let tracepoint = name.contains(&b':');
            // After a sample's name only a blank follows.
            let last = line.ends_with(b": ");
            let counter = last && name.first().is_some_and(u8::is_ascii_alphabetic);
            if counter && (is_thread(before[1]) || is_count && is_thread(before[0])) {
                return true;
            }
            return place && name.first().is_some_and(u8::is_ascii_alphabetic)
                || tracepoint && is_thread(before[1]);
        }
        before = [before[1], word];
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_missing_column_is_named_with_the_option_that_prints_it() {
        let refusal = |text: &str| nearly(text.as_bytes()).map(|kind| kind.to_string());
        for (text, flag) in [
            ("            perf   200/200   [000]     sched:sched_stat_wait: comm=perf\n", "+time"),
            ("perf   200     sched:sched_stat_wait: comm=perf\n", "+time"),
            ("perf 83220/83220 [001]          1 cycles: \n\tffff x+0x6 ([k])\n", "+time"),
            ("             off 25170/25170 cpu-clock: \n", "+time"),
            ("             off 25170     250000 cpu-clock: \n", "+time"),
            (
                "off \n\t    ffffffff8 a+0x6 (x)\n\t    7ffff1234 b (y)\n\t    55555555 c (z)\n",
                "+time",
            ),
            ("    perf   200/200   [000]    16.595270: comm=perf pid=200\n", "+event"),
            ("   16.595270:          sched:sched_stat_wait: comm=perf pid=200\n", "+cpu,+tid"),
        ] {
            let refusal = refusal(text).unwrap_or_else(|| panic!("{text}"));
            assert!(refusal.contains(&format!("perf script -F {flag}")), "{text}: {refusal}");
        }
        for text in [
            "",
            "Nov 22 05:14:02 host kernel: [    0.123456] smpboot: CPU0\n",
            "chapter 12 contents:\n  0001 a\n",
            "19239 1795324609.871201 execve(\"/usr/bin/sleep\", [\"sleep\"], 0x7ff) = 0\n",
            "      16.600114 [0000]  perf[200]                           0.000      0.000\n",
            "[    0.000000] Linux version 6.1.0: x\n",
            "    perf   200 [000]    16.595270:     sched:sched_stat_wait: comm=perf\n",
        ] {
            assert_eq!(refusal(text), None, "{text}");
        }
    }
}
