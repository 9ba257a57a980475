//! Selects the events to show.

use crate::Tracker;
use holdup_trace::{
    Cpu, Event, EventDesc, EventId, Groups, Names, Nanos, Tid, TraceInfo, What, fits,
};
use std::sync::Arc;
use wildmatch::WildMatch;

/// Which events to show; by default all except side-band records.
///
/// A thread is selected both where it is current and where it is switched to or woken, because its
/// story would have gaps otherwise.
#[derive(Clone, Debug, Default)]
pub struct Select {
    /// Only these processes; empty for all.
    pub pids: Vec<u32>,
    /// Only these threads; empty for all.
    pub tids: Vec<u32>,
    /// Only threads whose names match one of these patterns; empty for all.
    pub comms: Vec<String>,
    /// Only threads in control groups that match one of these patterns; empty for all.
    pub cgroups: Vec<String>,
    /// Only these CPUs.
    pub cpus: Option<Vec<Cpu>>,
    /// Only events whose name, with or without system, matches one of these patterns, in which `*`
    /// stands for any characters and `?` for one.
    pub events: Vec<String>,
    /// Not before this time.
    pub from: Option<Nanos>,
    /// Not after this time.
    pub to: Option<Nanos>,
    /// At most this many.
    pub entries: Option<u64>,
    /// Side-band records (COMM, FORK, LOST …) too.
    pub sideband: bool,
}

impl Select {
    /// Whether the selection is only by threads.
    pub fn is_of_threads_alone(&self) -> bool {
        let Select { cpus, events, from, to, .. } = self;
        cpus.is_none() && events.is_empty() && from.is_none() && to.is_none()
    }

    /// Resolve the patterns against the events of a trace.
    pub(crate) fn for_trace<'a>(&'a self, info: &TraceInfo) -> Resolved<'a> {
        let wanted = |event| {
            self.events.is_empty() || self.events.iter().any(|pattern| names(pattern, event))
        };
        Resolved {
            select: self,
            names: info.names.clone(),
            by_id: info.events.iter().map(wanted).collect(),
            by_thread: [self.pids.is_empty(), self.tids.is_empty(), self.comms.is_empty()]
                .contains(&false)
                || !self.cgroups.is_empty(),
            groups: info.groups.clone(),
        }
    }

    /// The patterns that match no event of the trace.
    pub fn unmatched(&self, info: &TraceInfo) -> Vec<&str> {
        let fits = |pattern: &str| info.events.iter().any(|event| names(pattern, event));
        self.events.iter().map(String::as_str).filter(|p| !fits(p)).collect()
    }
}

/// Whether a pattern matches the event's name, with or without its system.
fn names(pattern: &str, event: &EventDesc) -> bool {
    let pattern = WildMatch::new(pattern);
    let short = event.short_name();
    [&event.name, short, &format!("{}:{short}", event.system)].iter().any(|n| pattern.matches(n))
}

/// A selection for one trace.
pub(crate) struct Resolved<'a> {
    select: &'a Select,
    names: Arc<Names>,
    by_id: Vec<bool>,
    by_thread: bool,
    /// The names of control groups.
    groups: Groups,
}

impl Resolved<'_> {
    /// The largest number of lines.
    pub(crate) fn entries(&self) -> u64 {
        self.select.entries.unwrap_or(u64::MAX)
    }

    /// Whether no wanted event can follow.
    #[inline]
    pub(crate) fn is_past(&self, e: &Event) -> bool {
        self.select.to.is_some_and(|to| e.ts > to)
    }

    /// Whether to show this event.
    #[inline]
    pub(crate) fn wants(&self, e: &Event, tracker: &Tracker) -> bool {
        let s = self.select;
        let kind = if e.id == EventId::SIDEBAND {
            // A call chain belongs to the event before which it is recorded.
            s.sideband
                && s.events.is_empty()
                // Records of a thread's group repeat constantly.
                && !matches!(
                    e.what,
                    What::Stack { .. } | What::Leaves { .. } | What::InGroup { .. }
                )
        } else {
            self.by_id.get(e.id.0 as usize) != Some(&false)
        };
        kind && s.from.is_none_or(|from| e.ts >= from)
            && s.cpus.as_ref().is_none_or(|list| list.contains(&e.cpu))
            && (!self.by_thread || self.wants_thread(e, tracker))
    }

    fn wants_thread(&self, e: &Event, tracker: &Tracker) -> bool {
        let s = self.select;
        let comm = |id| {
            s.comms.is_empty() || {
                let name = self.names.bytes(id);
                let name = String::from_utf8_lossy(&name);
                s.comms.iter().any(|c| fits(c, &name))
            }
        };
        let by_id = |tid: Tid, pid: u32| {
            (s.tids.is_empty() || s.tids.contains(&tid.0))
                && (s.pids.is_empty() || s.pids.contains(&pid))
        };
        let group = |tid: Tid| {
            s.cgroups.is_empty()
                || self.groups.fits_any(&s.cgroups, &self.names.get(tracker.group_of(tid)))
        };
        if by_id(e.tid, tracker.pid(e).0) && comm(tracker.comm(e)) && group(e.tid) {
            return true;
        }
        let about = match e.what {
            What::Switch { next, .. } => next,
            What::Waking { tid, .. } | What::Wakeup { tid, .. } | What::WakeupNew { tid, .. } => {
                tid
            }
            _ => return false,
        };
        by_id(about, tracker.pid_of(about).0) && comm(tracker.comm_of(about)) && group(about)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use holdup_trace::Presence;

    #[test]
    fn patterns() {
        let event = |system: &str, name: &str| EventDesc {
            name: name.into(),
            system: system.into(),
            presence: Presence::Seen,
        };
        for (pattern, event, want) in [
            ("sched:*", event("sched", "sched:sched_switch"), true),
            ("sched:*", event("sched", "sched_switch"), true),
            ("sched_*", event("sched", "sched:sched_switch"), true),
            ("*switch", event("sched", "sched_switch"), true),
            ("switch", event("sched", "sched_switch"), false),
            ("sys_e???r", event("raw_syscalls", "sys_enter"), true),
            ("cycles:*", event("", "cycles:u"), true),
            ("[c]ycles", event("", "cycles"), false),
            ("*a*b", event("", "aabc"), false),
        ] {
            assert_eq!(names(pattern, &event), want, "{pattern} {event:?}");
        }
    }
}
