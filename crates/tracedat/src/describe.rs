//! What a file says about the machine and the recording.

use crate::codec::Codec;
use crate::format::EventTable;
use crate::meta::Meta;
use crate::page::PageLayout;
use holdup_trace::{Pid, Task, Tid, TraceInfo};

/// Facts about the machine, the recorder and the threads.
pub(crate) fn describe_machine(info: &mut TraceInfo, meta: &Meta) {
    let options = &meta.options;
    info.cpus_online = meta.cpus.filter(|&n| n > 0);
    info.cut.clone_from(&options.cut);
    if let Some(uname) = &options.uname {
        let word = |n: usize| options.uname_word(n).map(str::to_owned);
        (info.hostname, info.os_release) = (word(1), word(2));
        // The machine is always the last word.
        info.arch = uname.split_whitespace().skip(3).last().map(str::to_owned);
    }
    info.recorder = options.version.as_ref().map(|v| format!("trace-cmd {}", v.trim()));
    for (pid, name) in &meta.cmdlines {
        let comm = info.names.intern(name.as_bytes());
        info.tasks.push(Task { tid: Tid(*pid), pid: Pid::UNKNOWN, parent: None, comm });
    }
}

/// Everything that is known apart from the events.
pub(crate) fn describe(
    info: &mut TraceInfo,
    meta: &Meta,
    layout: &PageLayout,
    table: &EventTable,
    recorded: Option<u64>,
) {
    let options = &meta.options;
    let top = meta.buffers.iter().find(|b| b.name.is_empty());
    info.clock.name = options.clock.clone().or(top.map(|b| b.clock.clone())).unwrap_or_default();
    describe_machine(info, meta);
    let mut note = |label: &str, value: String| info.extra.push((label.to_owned(), value));
    note("byte order", if meta.big { "big endian" } else { "little endian" }.into());
    note("kernel long", format!("{} bits", layout.long * 8));
    if meta.codec != Codec::None {
        note("compression", format!("{:?}", meta.codec).to_lowercase());
    }
    for b in meta.buffers.iter().filter(|b| !b.name.is_empty()) {
        note(
            "instance",
            if b.clock.is_empty() {
                b.name.clone()
            } else {
                format!("{} (clock {})", b.name, b.clock)
            },
        );
    }
    if let Some(recorded) = recorded {
        note("events recorded", recorded.to_string());
    }
    if table.selected {
        note(
            "events enabled",
            table
                .descs
                .iter()
                .filter(|d| d.system != "ftrace" && !d.system.is_empty())
                .count()
                .to_string(),
        );
    }
    if options.overrun > 0 {
        note("events overwritten or dropped", options.overrun.to_string());
    }
    if table.unreadable > 0 {
        note("event formats not understood", table.unreadable.to_string());
    }
    if let Some(id) = options.trace_id {
        info.extra.push(("trace id".into(), format!("{id:#x}")));
    }
    for guest in &options.guests {
        info.extra.push(("traced guest".into(), guest.clone()));
    }
    if !options.texts.is_empty() {
        info.extra.push(("buffers of text, not read".into(), options.texts.len().to_string()));
    }
}
