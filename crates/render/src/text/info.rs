//! What the file is, what it can prove, and how to record what is missing.

use super::escape::{escape, shell, width, wrap};
use super::units::{count, duration, timestamp};
use super::{Page, TextOptions};
use crate::info::{Capability, Info};
use crate::trace_head::TraceHead;
use std::collections::BTreeSet;
use std::io::{self, Write};

/// Write all facts about the file.
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
    if !info.complete {
        writeln!(out, "  {}", paint.dim(legend(info)))?;
    }
    let names = info.capabilities.iter().map(|c| width(c.name)).max().unwrap_or(0);
    let marks = info.capabilities.iter().map(|c| mark(c).len()).max().unwrap_or(0);
    for c in &info.capabilities {
        let name = format!("{:names$}", c.name);
        let name = if c.present == Some(true) { name } else { paint.dim(name) };
        writeln!(out, "  {:marks$}  {name}  {}", mark(c), c.purpose)?;
        if c.present == Some(false) {
            let at = names + marks + 6;
            let needs = wrap(&format!("{:at$}needs {}", "", c.events), options.width, at);
            writeln!(out, "{}", paint.dim(needs))?;
        }
    }

    if !info.events.is_empty() {
        page.separate(out)?;
        let title = match info.all_kinds {
            true => format!("Kinds of events ({})", info.events.len()),
            false => format!("Kinds of events in the samples ({})", info.events.len()),
        };
        writeln!(out, "{}", paint.title(title))?;
        let names = together(&info.events);
        writeln!(
            out,
            "  {}",
            wrap(&names.join(", "), Some(options.width.unwrap_or(100).saturating_sub(2)), 2)
        )?;
    }

    if info.capabilities.iter().any(|c| c.present == Some(false)) {
        page.separate(out)?;
        writeln!(out, "{}", paint.title("To record everything that a diagnosis can use"))?;
        writeln!(out, "{}", shell(&info.record_command, "  ", super::width(options)))?;
    }
    Ok(())
}

/// The names of events; the two events of a single system call are listed once.
fn together(events: &[String]) -> Vec<String> {
    const ENTER: &str = "syscalls:sys_enter_";
    const EXIT: &str = "syscalls:sys_exit_";
    let (calls, others): (Vec<&String>, Vec<&String>) =
        events.iter().partition(|name| name.starts_with(ENTER) || name.starts_with(EXIT));
    let mut names: Vec<String> = others.into_iter().map(|name| escape(name).into()).collect();
    let of = |end: &str| -> BTreeSet<&str> {
        calls.iter().filter_map(|name| name.strip_prefix(end)).collect()
    };
    let (enter, exit) = (of(ENTER), of(EXIT));
    let both = enter.intersection(&exit).count();
    if both > 0 {
        names.push(format!("{ENTER}* and sys_exit_* of {both} calls"));
    }
    names.extend(enter.difference(&exit).map(|call| escape(&format!("{ENTER}{call}")).into()));
    names.extend(exit.difference(&enter).map(|call| escape(&format!("{EXIT}{call}")).into()));
    names
}

/// Text in place of a figure that needs a pass over the whole file.
const NOT_COUNTED: &str = "n/a (--full counts)";

/// How to read the marks of [`mark`] if the file was not read completely.
fn legend(info: &Info) -> &'static str {
    if info.capabilities.iter().any(|c| c.listed.is_some()) {
        "yes: found in samples of the file; listed: the recorder's list of events has it, but the \
         samples do not; --full reads the whole file"
    } else {
        "yes: found in samples of the file; n/a: not found in the samples; --full reads the whole \
         file"
    }
}

/// One word on whether the trace has a capability.
fn mark(c: &Capability) -> &'static str {
    match (c.present, c.listed) {
        (Some(true), _) => "yes",
        (Some(false), _) => "no",
        (None, Some(true)) => "listed",
        (None, _) => "n/a",
    }
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
    fact("clock", Some(format!("{}{step}", trace.clock.as_deref().unwrap_or("not recorded"))));
    match (info.first_ns, info.last_ns) {
        (Some(first), Some(last)) => {
            fact("time", Some(format!("{} - {} s", timestamp(first), timestamp(last))));
        }
        _ if info.complete => {}
        _ => fact("time", Some("n/a (--full reads)".to_owned())),
    }
    let estimate = |n: u64| format!("about {n}, estimated from samples (--full counts)");
    fact("events", info.estimated_events.map(estimate));
    fact(
        "threads",
        Some(info.tasks.map_or(NOT_COUNTED.to_owned(), |n| {
            format!("{} named at the start of the trace", count(n, "thread", "threads"))
        })),
    );
    fact(
        "symbols",
        Some(
            if info.kernel_symbols {
                "kernel functions can be named"
            } else {
                "none: addresses are shown as numbers"
            }
            .to_owned(),
        ),
    );
    if let Some(calls) = &info.chosen_calls {
        let names: Vec<_> = calls.iter().map(|name| escape(name).into_owned()).collect();
        fact(
            "system calls",
            Some(format!(
                "{} chosen calls ({}); all other calls are untraced",
                calls.len(),
                names.join(", ")
            )),
        );
    }
    for extra in &info.extra {
        fact(&escape(&extra.label), Some(extra.value.clone()));
    }
    facts
}
