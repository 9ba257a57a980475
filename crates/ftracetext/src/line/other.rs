//! Lines that are not events: comments, banners, losses, call chains.

use super::Syntax;
use crate::scan::{blank, dec, hex, trim};
use holdup_trace::Cpu;

/// What kind of line a line is that is not an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Other {
    /// Empty, a comment or a heading of the tool.
    Silent,
    /// A frame of a call chain.
    Frame,
    /// Another line that belongs to the event or the frame before it.
    Attached,
    /// The recorder lost events of this CPU; how many, if it says.
    Lost(Cpu, Option<u64>),
    /// The CPU's earlier events were overwritten while recording.
    Started(Cpu),
    /// The decoder of a hardware trace reports a loss.
    AuxError,
    /// Unreadable.
    Bad,
}

/// The kind of `line`, given that it is not an event.
pub(crate) fn other(syntax: Syntax, line: &[u8]) -> Other {
    let text = trim(line);
    let Some(&first) = text.first() else { return Other::Silent };
    if syntax == Syntax::Perf {
        return match first {
            b'#' => Other::Silent,
            _ if text.starts_with(b"instruction trace error ") => Other::AuxError,
            _ if is_chatter(text) => Other::Silent,
            // The number counts chunks of unknown size, not events.
            _ if text.starts_with(b"Processed ") && text.ends_with(b" chunks!") => {
                Other::Lost(Cpu::UNKNOWN, None)
            }
            _ if blank(line[0]) => match hex(text) {
                Some((_, n)) if text.get(n).is_none_or(|&b| blank(b)) => Other::Frame,
                _ => Other::Attached,
            },
            _ => Other::Bad,
        };
    }
    if first == b'#' {
        if let Some(rest) = text.strip_prefix(b"##### CPU ")
            && let Some((n, _)) = dec(rest)
            && rest.ends_with(b"buffer started ####")
        {
            return Other::Started(cpu(n));
        }
        return Other::Silent;
    }
    if let Some(rest) = text.strip_prefix(b"CPU:")
        && let Some((n, len)) = dec(rest)
    {
        return lost(cpu(n), trim(&rest[len..]));
    }
    // The functions that follow a `<stack trace>` event.
    if text.starts_with(b"=>") {
        return Other::Frame;
    }
    let heading = [
        &b"version = "[..],
        b"cpus=",
        b"CPU ",
        b"TRACE:",
        b"capturing trace",
        b"Using ",
        b"trace-cmd",
        b"overriding event",
        b"<",
    ];
    if heading.iter().any(|h| text.starts_with(h)) {
        return Other::Silent;
    }
    // With several inputs trace-cmd names the file: `b.dat: cpus=4`.
    if let Some(at) = memchr::memmem::find(text, b": cpus=")
        && dec(&text[at + 7..]).is_some()
    {
        return Other::Silent;
    }
    Other::Bad
}

/// `[LOST 12 EVENTS]`, `[LOST EVENTS]`, trace-cmd's `[12 EVENTS DROPPED]` and `[EVENTS DROPPED]`.
fn lost(cpu: Cpu, text: &[u8]) -> Other {
    let Some(inner) = text.strip_prefix(b"[").and_then(|t| t.strip_suffix(b"]")) else {
        return Other::Bad;
    };
    if !(inner.ends_with(b"EVENTS") || inner.ends_with(b"EVENTS DROPPED")) {
        return Other::Bad;
    }
    let count = inner.split(|&b| blank(b)).find_map(|w| dec(w).map(|d| d.0));
    Other::Lost(cpu, count)
}

/// Whether this is a message that perf writes to standard error, which often ends up in the file.
fn is_chatter(text: &[u8]) -> bool {
    [
        &b"Warning:"[..],
        b"Check IO/CPU overload!",
        b"Samples for '",
        b"[ perf record: ",
        b"Couldn't ",
    ]
    .iter()
    .any(|s| text.starts_with(s))
        || memchr::memmem::find(text, b"' not valid for ").is_some()
}

fn cpu(n: u64) -> Cpu {
    u16::try_from(n).map_or(Cpu::UNKNOWN, Cpu)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn losses_and_banners() {
        let k = |s: &str| other(Syntax::Kernel, s.as_bytes());
        assert_eq!(k("CPU:3 [LOST 12 EVENTS]"), Other::Lost(Cpu(3), Some(12)));
        assert_eq!(k("CPU:3 [LOST EVENTS]"), Other::Lost(Cpu(3), None));
        assert_eq!(k("CPU:1 [12 EVENTS DROPPED]"), Other::Lost(Cpu(1), Some(12)));
        assert_eq!(k("CPU:1 [EVENTS DROPPED]"), Other::Lost(Cpu(1), None));
        assert_eq!(k("##### CPU 2 buffer started ####"), Other::Started(Cpu(2)));
        assert_eq!(k("CPU:x"), Other::Bad);
        for silent in [
            "",
            "  ",
            "# tracer: nop",
            "version = 7",
            "cpus=8",
            "CPU 3 is empty",
            "TRACE:",
            "b.dat: cpus=4",
        ] {
            assert_eq!(k(silent), Other::Silent, "{silent}");
        }
        assert_eq!(k(" => do_syscall_64"), Other::Frame);
        assert_eq!(k("some = 000, other = 0x4"), Other::Bad);
        let p = |s: &str| other(Syntax::Perf, s.as_bytes());
        assert_eq!(p("\tffffffff813af60a update_se+0x13a ([kernel.kallsyms])"), Other::Frame);
        assert_eq!(p("        b3cea6c4\tLock::unlock() (/system/lib/libc.so)"), Other::Frame);
        assert_eq!(p("  convoy.c:31"), Other::Attached);
        assert_eq!(p("what"), Other::Bad);
        for chatter in [
            "'trace' not valid for hardware events. Ignoring.",
            "Warning:",
            "[ perf record: Woken up 1 times to write data ]",
        ] {
            assert_eq!(p(chatter), Other::Silent, "{chatter}");
        }
        assert_eq!(p("Processed 1740 events and lost 3 chunks!"), Other::Lost(Cpu::UNKNOWN, None));
        assert_eq!(
            p(" instruction trace error type 1 time 12.345678901 cpu 0 pid 1 tid 1 ip 0 code 8: \
               Lost trace data"),
            Other::AuxError
        );
    }
}
