//! Which dialect a file is, judged by its content.

use crate::line::{Other, Syntax, other, parse};
use crate::scan::{blank, dec, trim, trim_start};
use holdup_trace::Cut;
use std::fmt;

/// A kind of text trace.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DialectKind {
    /// The kernel's `trace` file, atrace included.
    Kernel,
    /// The kernel's lines without header: `trace_pipe`, or a cut-out.
    TracePipe,
    /// `trace-cmd report`.
    Report,
    /// `perf script`.
    PerfScript,
    /// An HTML page with a kernel trace embedded.
    Html,
}

/// A dialect, and by what it was recognised.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Dialect {
    /// The dialect.
    pub kind: DialectKind,
    /// By what it was recognised.
    pub why: &'static str,
}

impl DialectKind {
    /// Name of the format, as reports show it.
    pub fn name(self) -> &'static str {
        match self {
            DialectKind::Kernel => "ftrace text",
            DialectKind::TracePipe => "trace_pipe text",
            DialectKind::Report => "trace-cmd report text",
            DialectKind::PerfScript => "perf script text",
            DialectKind::Html => "systrace html",
        }
    }

    pub(crate) fn syntax(self) -> Syntax {
        match self {
            DialectKind::PerfScript => Syntax::Perf,
            _ => Syntax::Kernel,
        }
    }
}

impl fmt::Display for Dialect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.kind.name(), self.why)
    }
}

/// Event lines examined before deciding.
const ENOUGH: usize = 8;

/// The dialect of a file that starts with `head`; a few KiB suffice, 64 KiB are plenty. `None`
/// for what is not a text trace.
pub fn sniff(head: &[u8]) -> Option<Dialect> {
    let head = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head);
    if looks_like_html(head) {
        return is(DialectKind::Html, "an HTML page");
    }
    let (mut flagged, mut plain, mut perf, mut bad) = (0, 0, 0, 0);
    let (mut is_binary, mut is_part) = (false, false);
    let mut lines = head.split_inclusive(|&b| b == b'\n').peekable();
    while let Some(line) = lines.next() {
        // The head may end inside a line; half a line proves nothing unless it is all there is.
        if lines.peek().is_none() && !line.ends_with(b"\n") && flagged + plain + perf > 0 {
            break;
        }
        let line = line.strip_suffix(b"\n").unwrap_or(line);
        if line.contains(&0) && !is_part {
            // No text begins with such bytes, except the middle of a damaged one, whose only event
            // may be damaged.
            is_binary |= flagged + plain + perf == 0;
            bad += 1;
            continue;
        }
        let text = trim(line);
        is_part |= text.starts_with(b"# ") && Cut::find(&String::from_utf8_lossy(text)).is_some();
        if is_binary && !is_part {
            continue;
        }
        if let Some(dialect) = heading(text) {
            return Some(dialect);
        }
        if parse(Syntax::Kernel, line).is_some() {
            if has_flags(line) {
                flagged += 1;
            } else {
                plain += 1;
            }
        } else if parse(Syntax::Perf, line)
            .is_some_and(|l| !l.comm.is_empty() || l.tid != holdup_trace::Tid::UNKNOWN)
        {
            perf += 1;
        } else if other(Syntax::Kernel, line) == Other::Bad
            && !line.first().is_some_and(|&b| blank(b))
        {
            bad += 1;
        }
        if flagged + plain + perf >= ENOUGH {
            break;
        }
    }
    let good = flagged + plain + perf;
    // The middle of a damaged trace may be nearly all damage.
    if good == 0 || good * 4 < bad && !is_part {
        None
    } else if perf > flagged + plain {
        is(DialectKind::PerfScript, "lines `comm pid [cpu] time: event:`")
    } else if flagged > plain {
        is(DialectKind::TracePipe, "lines `comm-pid [cpu] flags time: event:` without header")
    } else {
        is(DialectKind::Report, "lines `comm-pid [cpu] time: event:` without flags")
    }
}

fn is(kind: DialectKind, why: &'static str) -> Option<Dialect> {
    Some(Dialect { kind, why })
}

/// The dialect whose heading has this line.
fn heading(text: &[u8]) -> Option<Dialect> {
    if text.starts_with(b"# tracer:") {
        return is(DialectKind::Kernel, "the header `# tracer:`");
    }
    if text.starts_with(b"# captured on") {
        return is(DialectKind::PerfScript, "perf's header `# captured on`");
    }
    if is_number_of(text, b"cpus=", b"") || is_number_of(text, b"version = ", b"") {
        return is(DialectKind::Report, "the heading `cpus=` or `version =`");
    }
    if is_number_of(text, b"CPU ", b" is empty") {
        return is(DialectKind::Report, "the heading `CPU n is empty`");
    }
    None
}

fn looks_like_html(head: &[u8]) -> bool {
    let start = head.iter().position(|b| !b.is_ascii_whitespace()).unwrap_or(head.len());
    let start = &head[start..head.len().min(start + 4096)];
    let begins =
        |what: &[u8]| start.get(..what.len()).is_some_and(|s| s.eq_ignore_ascii_case(what));
    begins(b"<!doctype html") || begins(b"<html") || begins(b"<script") || begins(b"<!--")
}

/// `PREFIX 12 SUFFIX` and nothing else.
fn is_number_of(text: &[u8], prefix: &[u8], suffix: &[u8]) -> bool {
    match text.strip_prefix(prefix).map(|t| (t, dec(t))) {
        Some((t, Some((_, n)))) => &t[n..] == suffix,
        _ => false,
    }
}

/// Whether there are flags between `[cpu]` and the time.
fn has_flags(line: &[u8]) -> bool {
    let Some(close) = memchr::memmem::find(line, b"] ") else { return false };
    trim_start(&line[close + 2..]).first().is_some_and(|b| !b.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(text: &str) -> Option<DialectKind> {
        sniff(text.as_bytes()).map(|d| d.kind)
    }

    #[test]
    fn dialects() {
        use DialectKind::*;
        let cases = [
            ("# tracer: nop\n#\n", Kernel),
            ("capturing trace... done\nTRACE:\n# tracer: nop\n", Kernel),
            ("          <idle>-0       [004] d..2.   274.804075: sched_switch: x\n", TracePipe),
            ("          <idle>-0       [004] d..2.   274.804075: sched_switch: x", TracePipe),
            ("cpus=4\n", Report),
            ("version = 6\ncpus=6\n", Report),
            ("CPU 0 is empty\ncpus=2\n", Report),
            ("  mmap-0-943     3d..2.   145.939519: sched_stat_runtime:   x\n", Report),
            ("              wl-206   [000]    12.652474: sys_exit:             NR 1 = 1\n", Report),
            (
                "            perf   292 [000]    28.914036:          sched:sched_switch: \
                    prev_comm=x\n",
                PerfScript,
            ),
            (
                "perf 83220/83220 36556.170907:          1 cycles: \n\tffff x+0x6 ([k])\n",
                PerfScript,
            ),
            ("# ========\n# captured on    : Sat\n", PerfScript),
            ("\n<!DOCTYPE html>\n<html>", Html),
        ];
        for (text, want) in cases {
            assert_eq!(kind(text), Some(want), "{text}");
        }
    }

    #[test]
    fn not_traces() {
        for text in [
            "",
            "\n",
            "hello\nworld\n",
            "PERFILE2\0\0\0",
            "{\"traceEvents\": []}",
            "a,b,c\n1,2,3\n",
            "fn main() {}\n",
            "a/trace.txt\0\0\0cpus=4\n",
        ] {
            assert_eq!(kind(text), None, "{text}");
        }
    }

    /// Regression: a part of a trace with an early damaged line was not recognised.
    #[test]
    fn a_damaged_line_among_others_hides_no_trace() {
        let line = "   wl-206   [000]    12.652474: sys_exit:             NR 1 = 1\n";
        let damaged = "   wl-206   [000]    12.652475: sys_exit:   \0\0\n";
        assert_eq!(kind(&format!("{line}{damaged}{line}")), Some(DialectKind::Report));
        assert_eq!(kind(&format!("cpus=8\n{line}{damaged}")), Some(DialectKind::Report));
        let junk = "xyz = 0x0 abc = 0x0\n".repeat(5);
        assert_eq!(kind(&format!("{junk}{line}")), None);
        let note = "# holdup cut --time 12.000000000,13.000000000\n";
        assert_eq!(kind(&format!("{junk}{note}{line}")), Some(DialectKind::Report));
        assert_eq!(kind(&format!("{note}{damaged}{line}")), Some(DialectKind::Report));
        assert_eq!(kind(&format!("{damaged}{note}{line}")), Some(DialectKind::Report));
        assert_eq!(kind(&format!("{damaged}{line}")), None);
        assert_eq!(kind(&format!("{note}{damaged}")), Some(DialectKind::Report));
    }

    #[test]
    fn display_says_why() {
        assert_eq!(
            sniff(b"cpus=4\n").unwrap().to_string(),
            "trace-cmd report text (the heading `cpus=` or `version =`)"
        );
    }
}
