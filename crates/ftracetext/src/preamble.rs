//! What the headings of a file say about the machine and the recording.

use crate::scan::{dec, trim};
use holdup_trace::{Quality, QualityCode, TraceInfo};

/// Read the headings in `head`, the beginning of a trace.
pub(crate) fn read(head: &[u8], info: &mut TraceInfo, quality: &mut Quality) {
    for line in head.split(|&b| b == b'\n') {
        let line = trim(line);
        if let Some(cpus) = line.strip_prefix(b"cpus=").and_then(dec) {
            info.cpus_online = u32::try_from(cpus.0).ok();
        } else if let Some(version) = line.strip_prefix(b"version = ") {
            info.recorder =
                Some(format!("trace-cmd, file version {}", String::from_utf8_lossy(version)));
        } else if let Some(tracer) = line.strip_prefix(b"# tracer:") {
            info.extra.push(("tracer".to_owned(), text(tracer)));
        } else if let Some(entries) = line.strip_prefix(b"# entries-in-buffer/entries-written:") {
            kernel_entries(trim(entries), info, quality);
        } else if line.starts_with(b"# holdup cut ") {
            info.is_cut(&String::from_utf8_lossy(line));
        } else if line.starts_with(b"# latency:")
            && let Some(at) = memchr::memmem::find(line, b"#P:")
        {
            info.cpus_online = dec(&line[at + 3..]).and_then(|d| u32::try_from(d.0).ok());
        } else if let Some(fact) = line.strip_prefix(b"# ")
            && let Some(colon) = memchr::memchr(b':', fact)
        {
            perf_fact(trim(&fact[..colon]), trim(&fact[colon + 1..]), info);
        }
    }
}

/// `9645/223807   #P:8`.
fn kernel_entries(s: &[u8], info: &mut TraceInfo, quality: &mut Quality) {
    let Some((kept, n)) = dec(s) else { return };
    let Some((written, _)) = s.get(n + 1..).and_then(dec) else { return };
    if let Some(at) = memchr::memmem::find(s, b"#P:")
        && let Some((cpus, _)) = dec(&s[at + 3..])
    {
        info.cpus_online = u32::try_from(cpus).ok();
    }
    if written > kept {
        info.extra
            .push(("overwritten while recording".to_owned(), format!("{} events", written - kept)));
        quality.add(QualityCode::LostEvents, written - kept);
    }
}

fn perf_fact(label: &[u8], value: &[u8], info: &mut TraceInfo) {
    let say = || Some(text(value));
    match label {
        b"hostname" => info.hostname = say(),
        b"os release" => info.os_release = say(),
        b"perf version" => info.recorder = Some(format!("perf {}", text(value))),
        b"arch" => info.arch = say(),
        b"cpudesc" => info.cpu_desc = say(),
        b"nrcpus online" => info.cpus_online = dec(value).and_then(|d| u32::try_from(d.0).ok()),
        b"total memory" => info.total_mem = dec(value).and_then(|d| d.0.checked_mul(1024)),
        b"captured on" => info.extra.push(("captured on".to_owned(), text(value))),
        b"clockid" => info.clock.name = text(word_of_clock(value)),
        b"cmdline" => {
            let command = text(value);
            // Options of the recorder end where the traced command begins.
            let options = command.split(" -- ").next().unwrap_or("");
            if options.split(' ').any(|w| w == "-a" || w == "--all-cpus") {
                info.system_wide = Some(true);
            }
            info.cmdline = Some(command);
        }
        _ => {
            if let Some(node) = label.strip_prefix(b"node").and_then(dec)
                && label.ends_with(b"cpu list")
            {
                info.numa.push((node.0 as u32, text(value)));
            }
        }
    }
}

/// `monotonic (1)` → `monotonic`.
fn word_of_clock(value: &[u8]) -> &[u8] {
    crate::scan::word(value)
}

fn text(s: &[u8]) -> String {
    String::from_utf8_lossy(trim(s)).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headings() {
        let mut info = TraceInfo::new("x".into(), "y");
        let mut q = Quality::default();
        read(
            b"# tracer: nop\n# entries-in-buffer/entries-written: 69657/223807   #P:2\n\
                # hostname : h\n# total memory : 2 kB\n\
              # cmdline : /bin/perf record -a -e x\n# node0 cpu list : 0-3\nnot a heading\n",
            &mut info,
            &mut q,
        );
        assert_eq!(
            (info.cpus_online, info.hostname.as_deref(), info.total_mem),
            (Some(2), Some("h"), Some(2048))
        );
        assert_eq!(info.system_wide, Some(true));
        assert_eq!(info.numa, [(0, "0-3".to_owned())]);
        assert_eq!(q.count(QualityCode::LostEvents), 154150);
    }
}
