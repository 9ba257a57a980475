//! Names the events and works out what the file can prove.

use crate::attr::{Attr, kind};
use crate::index::Index;
use crate::probe::{self, Probe};
use crate::record;
use crate::schema::{Class, Decodable, Schema, witness};
use crate::tracing_data::TracingData;
use crate::walk::TaskFact;
use holdup_trace::{
    Capabilities, EventDesc, EventKind, Extras, Pid, Presence, Task, Tid, TraceInfo,
};
use holdup_tracepoint::{Abi, Format, Plan};
use rustc_hash::FxHashMap;

fn formats(tracing: Option<&TracingData>) -> FxHashMap<u64, &Format> {
    tracing.iter().flat_map(|t| &t.formats).map(|f| (f.id as u64, f)).collect()
}

/// What a sample of each attr becomes, and what it proves.
pub(crate) fn classes(
    attrs: &[Attr],
    tracing: Option<&TracingData>,
    info: &TraceInfo,
) -> Vec<(Class, u8)> {
    let release = info.os_release.as_deref();
    let formats = formats(tracing);
    let abi = Abi { long_size: tracing.map_or(8, |t| t.long_size) };
    let groups = attrs.iter().any(|a| a.counts_hardware() && a.only_counts());
    let class = |(number, a): (usize, &Attr)| match a.kind {
        kind::TRACEPOINT => formats.get(&a.config).map_or((Class::NoFormat, 0), |f| {
            let shows = witness::of(a, EventKind::of(&f.system, &f.name), groups);
            (Class::Tracepoint(Plan::compile_for(f, abi, release)), shows)
        }),
        _ => match Probe::of(a, number, info) {
            Some(probe) => (Class::Probe(probe), 0),
            None => (Class::Counter, witness::of(a, None, groups)),
        },
    };
    attrs.iter().enumerate().map(class).collect()
}

/// Name and system of each attr: the recorder's own name, else from the format, else from type and
/// config.
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
            _ => probe::function(a).map_or("", |of| of.0).to_owned(),
        };
        EventDesc { name, system, presence: Presence::Described }
    };
    attrs.iter().map(describe).collect()
}

/// Sets for each event how the file knows of it. The attrs are the events that perf opened, so
/// every one was requested; `seen` has the attrs of which samples were found.
pub(crate) fn presences(
    events: &mut [EventDesc],
    schema: &Schema,
    seen: impl Fn(usize, &Decodable) -> bool,
) {
    for (i, (event, desc)) in schema.events.iter().zip(events).enumerate() {
        desc.presence = match &event.class {
            Class::Tracepoint(Plan::Incomplete(_)) | Class::NoFormat => Presence::Described,
            _ if seen(i, event) => Presence::Seen,
            _ => Presence::Enabled,
        };
    }
}

/// What the whole file proves; `shown` has the bits of [`witness`] for which samples were found.
pub(crate) fn settle(
    info: &mut TraceInfo,
    attrs: &[Attr],
    schema: &Schema,
    found: &Index,
    shown: u8,
) {
    presences(&mut info.events, schema, |_, event| {
        event.witness != 0 && event.witness & shown == event.witness
    });
    let switches = [record::SWITCH, record::SWITCH_CPU_WIDE];
    let extras = Extras {
        counters: shown & witness::COUNTER != 0,
        stacks: found.span.is_some() && attrs.iter().any(Attr::has_chains),
        groups: attrs.iter().any(Attr::tells_group),
        switch_records: switches.iter().any(|&kind| found.census[kind as usize] > 0),
    };
    info.capabilities = Capabilities::of(&info.events, extras);
}

/// Threads known before the first event: from records with time 0, else from saved comms.
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
