//! Units of work by the event that ends one: `syscall:NAME` or `event:SYSTEM:NAME`.

use crate::exit::{Failure, Result, usage};
use holdup_attribution::Unit;
use holdup_gate::Work;
use holdup_passes::{Analysis, Group};
use holdup_trace::{Event, EventId, TraceInfo, What};
use std::collections::BTreeSet;

/// Most names that an error lists.
const NAMES: usize = 8;
/// Ordinary system calls have numbers below this.
const ORDINARY: u32 = 1024;

/// The event that ends a unit of work.
pub(crate) enum Ends {
    Syscall(String),
    Event(String),
}

impl Ends {
    pub(crate) fn parse(text: &str) -> Result<Ends> {
        match Work::parse(text) {
            Ok(Work::Syscall(name)) => Ok(Ends::Syscall(name)),
            Ok(Work::Event(name)) => Ok(Ends::Event(name)),
            _ => Err(usage(format!(
                "--unit: '{}' is not an event; write syscall:NAME or event:SYSTEM:NAME",
                text.escape_default()
            ))),
        }
    }

    /// Resolve it for a trace, and call `then` with it.
    pub(crate) fn with<T>(
        &self,
        info: &TraceInfo,
        analysis: &Analysis,
        then: impl FnOnce(&Unit<'_>) -> T,
    ) -> Result<T> {
        Ok(match self {
            Ends::Syscall(name) => {
                let calls = analysis.syscalls(Group::System);
                if !calls.iter().any(|row| row.name == *name) {
                    let known = calls.iter().map(|row| row.name.clone());
                    return Err(unknown(&format!("syscall:{name}"), "call", known));
                }
                let is_it = |nr| analysis.call_name(nr) == *name;
                let numbers: BTreeSet<u32> = (0..ORDINARY).filter(|&nr| is_it(nr)).collect();
                let ends = |e: &Event| match e.what {
                    // Numbers of other ways into the kernel are above these.
                    What::SysEnter { nr, .. } if nr < ORDINARY => numbers.contains(&nr),
                    What::SysEnter { nr, .. } => is_it(nr),
                    _ => false,
                };
                then(&Unit { name: format!("syscall {name}"), ends: &ends })
            }
            Ends::Event(name) => {
                let is_it = |i: &usize| info.events[*i].full_name() == *name;
                let ids: Vec<EventId> =
                    (0..info.events.len()).filter(is_it).map(|i| EventId(i as u16)).collect();
                if ids.is_empty() {
                    let known = info.events.iter().map(|e| e.full_name());
                    return Err(unknown(&format!("event:{name}"), "event", known));
                }
                let ends = |e: &Event| ids.contains(&e.id);
                then(&Unit { name: format!("event {name}"), ends: &ends })
            }
        })
    }
}

fn unknown(what: &str, kind: &str, known: impl Iterator<Item = String>) -> Failure {
    let known: Vec<String> = known.collect();
    let few = known.iter().take(NAMES).cloned().collect::<Vec<_>>().join(", ");
    let more = match known.len().saturating_sub(NAMES) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    usage(match known.is_empty() {
        true => format!("--unit: {what}: the trace holds no {kind}s"),
        false => format!("--unit: {what}: no such {kind} in the trace, which holds {few}{more}"),
    })
}
