//! Naming events and saying what the file can prove.

use crate::attr::{Attr, flag, kind, sample};
use crate::index::Index;
use crate::record;
use crate::schema::{Class, Schema};
use crate::tracing_data::TracingData;
use crate::walk::TaskFact;
use holdup_trace::{Capabilities, EventDesc, Pid, Task, Tid, TraceInfo};
use holdup_tracepoint::{Abi, Format, Plan};
use rustc_hash::FxHashMap;

fn formats(tracing: Option<&TracingData>) -> FxHashMap<u64, &Format> {
    tracing.iter().flat_map(|t| &t.formats).map(|f| (f.id as u64, f)).collect()
}

/// What a sample of each attr becomes.
pub(crate) fn classes(
    attrs: &[Attr],
    tracing: Option<&TracingData>,
    release: Option<&str>,
) -> Vec<Class> {
    let formats = formats(tracing);
    let abi = Abi { long_size: tracing.map_or(8, |t| t.long_size) };
    let class = |a: &Attr| match a.kind {
        kind::TRACEPOINT => formats
            .get(&a.config)
            .map_or(Class::NoFormat, |f| Class::Tracepoint(Plan::compile_for(f, abi, release))),
        _ => Class::Counter,
    };
    attrs.iter().map(class).collect()
}

/// Name and system of each attr: the recorder's own name, else the format's, else the numbers'.
pub(crate) fn events(
    attrs: &[Attr],
    tracing: Option<&TracingData>,
    event_types: &[(u64, String)],
) -> Vec<EventDesc> {
    let formats = formats(tracing);
    let event_types: FxHashMap<u64, &String> =
        event_types.iter().map(|(config, name)| (*config, name)).collect();
    let describe = |a: &Attr| {
        let format = (a.kind == kind::TRACEPOINT).then(|| formats.get(&a.config)).flatten();
        let name = a
            .name
            .clone()
            .or_else(|| format.map(|f| format!("{}:{}", f.system, f.name)))
            .or_else(|| a.counter_name())
            .or_else(|| event_types.get(&a.config).map(|&n| n.clone()))
            .unwrap_or_else(|| match a.kind {
                kind::TRACEPOINT => format!("tracepoint:{:#x}", a.config),
                _ => format!("unknown attr type: {}", a.kind),
            });
        let system = match (a.kind, format) {
            (_, Some(f)) => f.system.clone(),
            (kind::TRACEPOINT, None) => {
                name.split_once(':').map_or(String::new(), |(s, _)| s.to_owned())
            }
            _ => String::new(),
        };
        EventDesc { name, system }
    };
    attrs.iter().map(describe).collect()
}

/// What the attrs prove: an event that was opened and never came never happened.
pub(crate) fn capabilities(attrs: &[Attr], schema: &Schema, events: &[EventDesc]) -> Capabilities {
    let mut c = Capabilities::default();
    for (i, attr) in attrs.iter().enumerate() {
        note(&mut c, i, attrs, schema, events);
        c.switches |= attr.has(flag::CONTEXT_SWITCH);
    }
    c
}

/// What a sample of attr number `i` proves.
pub(crate) fn note(
    c: &mut Capabilities,
    i: usize,
    attrs: &[Attr],
    schema: &Schema,
    events: &[EventDesc],
) {
    let (Some(attr), Some(decodable), Some(desc)) =
        (attrs.get(i), schema.events.get(i), events.get(i))
    else {
        return;
    };
    match &decodable.class {
        Class::Tracepoint(Plan::Incomplete(_)) | Class::NoFormat => {}
        Class::Tracepoint(_) => c.note_event(&desc.system, desc.short_name()),
        Class::Counter => {
            c.counters |= matches!(attr.kind, kind::HARDWARE | kind::HW_CACHE | kind::RAW)
        }
    }
    c.stacks |= attr.sample_type & sample::CALLCHAIN != 0;
}

/// Threads known before the first event: from records of time 0, else from saved comms.
pub(crate) fn tasks(info: &mut TraceInfo, tracing: Option<&TracingData>, facts: &[TaskFact]) {
    let mut order = Vec::new();
    let mut by_tid: FxHashMap<u32, Task> = FxHashMap::default();
    let mut of = |tid: u32, update: &mut dyn FnMut(&mut Task)| {
        let task = by_tid.entry(tid).or_insert_with(|| {
            order.push(tid);
            Task { tid: Tid(tid), pid: Pid::UNKNOWN, parent: None, comm: Default::default() }
        });
        update(task);
    };
    for fact in facts {
        let comm = fact.comm.map(|c| info.names.intern(&c));
        of(fact.tid, &mut |t| {
            t.pid = Pid(fact.pid);
            t.parent = fact.parent.map(Tid).or(t.parent);
            t.comm = comm.unwrap_or(t.comm);
        });
    }
    for (tid, comm) in tracing.iter().flat_map(|t| &t.cmdlines) {
        let comm = info.names.intern(comm.as_bytes());
        of(*tid, &mut |t| {
            if t.comm == Default::default() {
                t.comm = comm;
            }
        });
    }
    info.tasks = order.iter().filter_map(|tid| by_tid.get(tid).copied()).collect();
}

/// A few figures about the container.
pub(crate) fn extra(info: &mut TraceInfo, found: &Index) {
    let census = found.census.iter().enumerate().filter(|&(_, &n)| n > 0);
    let records: Vec<String> =
        census.map(|(kind, n)| format!("{} {n}", record::name(kind as u32))).collect();
    info.extra.push(("records".into(), records.join(", ")));
    info.extra.push((
        "runs in time order".into(),
        format!("{} ({} rounds)", found.runs.len(), found.rounds),
    ));
    let sorted = found.spans.iter().filter(|s| s.unsorted).count();
    if sorted > 0 {
        info.extra.push(("runs sorted in memory".into(), sorted.to_string()));
    }
}
