//! What the file is, what it can prove, and how to record what is missing.

use super::escape::{escape, shell, width, wrap};
use super::units::{count, duration, timestamp};
use super::{Page, TextOptions};
use crate::info::Info;
use crate::report::TraceHead;
use std::io::{self, Write};

/// Write everything about the file.
pub(crate) fn write(
    info: &Info,
    trace: &TraceHead,
    page: &Page,
    options: &TextOptions,
    out: &mut dyn Write,
) -> io::Result<()> {
    let paint = options.paint();
    page.separate(out)?;
    let facts = facts(info, trace);
    let labels = facts.iter().map(|(label, _)| width(label)).max().unwrap_or(0);
    for (label, value) in facts {
        let line = wrap(&format!("{label:labels$}  {}", escape(&value)), options.width, labels + 2);
        let value = line.get(label.len()..).unwrap_or_default();
        writeln!(out, "{}{value}", paint.dim(label))?;
    }

    page.separate(out)?;
    writeln!(out, "{}", paint.title("What this trace can prove"))?;
    let names = info.capabilities.iter().map(|c| width(c.name)).max().unwrap_or(0);
    for c in &info.capabilities {
        let (mark, name) = if c.present {
            ("yes", format!("{:names$}", c.name))
        } else {
            ("no ", paint.dim(format!("{:names$}", c.name)))
        };
        writeln!(out, "  {mark}  {name}  {}", c.purpose)?;
        if !c.present {
            let needs =
                wrap(&format!("{:1$}needs {2}", "", names + 9, c.events), options.width, names + 9);
            writeln!(out, "{}", paint.dim(needs))?;
        }
    }

    if !info.events.is_empty() {
        page.separate(out)?;
        writeln!(out, "{}", paint.title(format!("Kinds of events ({})", info.events.len())))?;
        let names: Vec<_> = info.events.iter().map(|name| escape(name)).collect();
        writeln!(
            out,
            "  {}",
            wrap(&names.join(", "), Some(options.width.unwrap_or(100).saturating_sub(2)), 2)
        )?;
    }

    if info.capabilities.iter().any(|c| !c.present) {
        page.separate(out)?;
        writeln!(out, "{}", paint.title("To record all that a diagnosis can use"))?;
        writeln!(out, "{}", shell(&info.record_command, "  "))?;
    }
    Ok(())
}

fn facts(info: &Info, trace: &TraceHead) -> Vec<(String, String)> {
    let mut facts: Vec<(String, String)> = Vec::new();
    let mut fact =
        |label: &str, value: Option<String>| facts.extend(value.map(|v| (label.to_owned(), v)));
    fact("recorder", info.recorder.clone());
    fact("command", info.cmdline.clone());
    fact(
        "system-wide",
        info.system_wide.map(|s| if s { "yes" } else { "no: some tasks only" }.to_owned()),
    );
    fact("host", info.hostname.clone());
    fact("kernel", info.os_release.clone());
    let cpu: Vec<&str> =
        [&info.arch, &info.cpu_desc].into_iter().flatten().map(String::as_str).collect();
    fact("machine", (!cpu.is_empty()).then(|| cpu.join(", ")));
    fact("CPUs online", info.cpus_online.map(|n| n.to_string()));
    for node in &info.numa {
        fact("NUMA node", Some(format!("{}: CPUs {}", node.node, node.cpus)));
    }
    fact(
        "memory",
        info.total_mem_bytes.map(|b| format!("{:.1} GiB", b as f64 / f64::from(1 << 30))),
    );
    let step = if info.clock_resolution_ns > 1 {
        format!(", in steps of {}", duration(info.clock_resolution_ns))
    } else {
        String::new()
    };
    fact("clock", Some(format!("{}{step}", trace.clock.as_deref().unwrap_or("not said"))));
    if let (Some(first), Some(last)) = (info.first_ns, info.last_ns) {
        fact("time", Some(format!("{} - {} s", timestamp(first), timestamp(last))));
    }
    fact("threads", Some(format!("{} named at the start", count(info.tasks, "thread", "threads"))));
    fact(
        "symbols",
        Some(
            if info.kernel_symbols {
                "kernel functions can be named"
            } else {
                "none: addresses stay numbers"
            }
            .to_owned(),
        ),
    );
    for extra in &info.extra {
        fact(&escape(&extra.label), Some(extra.value.clone()));
    }
    facts
}
