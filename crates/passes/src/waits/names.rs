//! Names of what threads slept on: functions, variables, descriptors.

use super::{Caller, Key, Object, Thing, Waits};
use crate::source::Source;
use crate::variables::NamesVariables;
use holdup_trace::Pid;
use holdup_trace::{Seen, SymbolTable, TraceInfo};
use std::collections::BTreeMap;

/// Names of the functions that threads are known to have slept in, by address.
pub(crate) fn callers(waits: &Waits, symbols: &SymbolTable) -> BTreeMap<u64, String> {
    let name = |at| {
        let (name, offset) = symbols.lookup(at)?;
        Some((at, format!("{name}+{offset:#x}")))
    };
    let of = |key: &Key| match *key {
        Key::In { caller: Caller::Address(at), .. } => name(at),
        _ => None,
    };
    waits.keys.iter().filter_map(of).collect()
}

/// Names of the words that threads waited on, by object.
pub(crate) fn variables(
    waits: &Waits,
    info: &TraceInfo,
    variables: &Source<dyn NamesVariables>,
) -> BTreeMap<Object, String> {
    let of = |(i, thing): (usize, &Thing)| {
        let (Key::Futex { addr, .. } | Key::Parked { addr, .. }) = waits.keys[i] else {
            return None;
        };
        let code = thing.code.as_deref().filter(|_| thing.spans.count > 0)?;
        let name = crate::variables::name(variables, info, (code, addr))?;
        Some((Object(i as u32), name))
    };
    waits.things.iter().enumerate().filter_map(of).collect()
}

/// What the descriptors that threads waited on were, by object, as far as the recorder saw it.
pub(crate) fn descriptors(waits: &Waits, info: &TraceInfo) -> BTreeMap<Object, Seen> {
    let of = |(i, thing): (usize, &Thing)| {
        let Key::Descriptor { .. } = waits.keys[i] else { return None };
        let o = thing.opened.filter(|_| thing.spans.count > 0)?;
        Some((Object(i as u32), info.descriptors.get(o.pid, o.fd, o.since, o.until)?.clone()))
    };
    let mut all: BTreeMap<Object, Seen> = waits.things.iter().enumerate().filter_map(of).collect();
    // If several descriptors of a process have the same name, the name identifies none of them.
    let mut alike: BTreeMap<(Pid, String), u32> = BTreeMap::new();
    for s in all.values() {
        *alike.entry((s.pid, s.name.clone())).or_default() += 1;
    }
    for s in all.values_mut().filter(|s| alike[&(s.pid, s.name.clone())] > 1 && !s.name.is_empty())
    {
        s.name = format!("{} (fd {} of pid {})", s.name, s.fd, s.pid.0);
    }
    all
}
