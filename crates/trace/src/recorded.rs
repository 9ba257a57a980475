//! What was recorded: the one place that decides it.
//!
//! Files promise more than they hold. A trace.dat can explain every event of its kernel and hold
//! two kinds of them; a folder of raw ring buffers explains whatever somebody copied. So a reader
//! says of each event how it knows of it ([`Presence`]), and what that amounts to is decided here:
//!
//! * an event that occurs was recorded;
//! * one that the recorder was asked for and that does not occur was recorded, and did not happen
//!   (no lock was contended, no disk answered), unless it is one that always happens
//!   ([`EventKind::always_happens`]): then the list is wrong;
//! * one that is only explained was not recorded;
//! * half a pair (`sys_enter` without `sys_exit`) tells nothing of what lies between: it counts as
//!   not recorded, and nobody may draw conclusions from it.
//!
//! It is decided of the file, so it holds for every window of it.

use crate::{Capabilities, EventDesc, EventId, EventKind};
use std::collections::HashSet;

/// How a file knows of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Presence {
    /// The file explains how it would be read. That says nothing about recording.
    Described,
    /// The recorder was asked for it, by the file's own account; none was seen.
    Enabled,
    /// At least one is in the file.
    Seen,
}

/// What a file holds beside events that have a name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Beside {
    /// Call chains.
    pub stacks: bool,
    /// Samples of a hardware counter.
    pub counters: bool,
    /// PERF_RECORD_SWITCH, which tells of switches what `sched_switch` does, only less.
    pub switch_records: bool,
}

/// So many different `syscalls:sys_enter_*` events, with their exits, mean that all calls were
/// recorded, not a choice. A choice says nothing about the time outside of the chosen ones.
const ALL_CALLS: usize = 20;

const _: () = assert!(EventKind::ALL.len() <= u64::BITS as usize, "a bit for each kind");

/// The events of a file that were recorded, of those holdup understands.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recorded {
    /// One bit for each kind, families among them.
    kinds: u64,
    /// Different system calls recorded by name, both entry and exit.
    calls: usize,
    /// By [`EventId`]: the event is half a pair.
    halves: Vec<bool>,
}

impl Recorded {
    /// What was recorded of the events of a file, in the order of their ids.
    pub fn of(events: &[EventDesc]) -> Recorded {
        Recorded::taking(events, |presence| presence)
    }

    /// The same, with another view of how the file knows of its events.
    fn taking(events: &[EventDesc], view: fn(Presence) -> Presence) -> Recorded {
        let mut known: HashSet<(EventKind, &str)> = HashSet::new();
        let mut named_call_seen = false;
        let mut kinds_of = Vec::with_capacity(events.len());
        for desc in events {
            let presence = view(desc.presence);
            let kind = (presence > Presence::Described)
                .then(|| EventKind::of(&desc.system, desc.short_name()))
                .flatten();
            kinds_of.push(kind);
            let Some(kind) = kind else { continue };
            if presence == Presence::Seen || !kind.always_happens() {
                known.insert((kind, kind.detail(desc.short_name()).unwrap_or("")));
            }
            named_call_seen |= kind == EventKind::SysEnterNamed && presence == Presence::Seen;
        }
        let whole = |kind: EventKind, detail: &str| {
            kind.other_half().is_none_or(|other| known.contains(&(other, detail)))
        };
        let mut recorded = Recorded::default();
        for &(kind, detail) in &known {
            if whole(kind, detail) {
                recorded.kinds |= 1 << kind as u32;
                recorded.calls += (kind == EventKind::SysEnterNamed) as usize;
            }
        }
        // Any one call may stay away, not all of them.
        if !named_call_seen {
            recorded.calls = 0;
        }
        let is_half = |(desc, kind): (&EventDesc, Option<EventKind>)| {
            kind.is_some_and(|k| !whole(k, k.detail(desc.short_name()).unwrap_or("")))
        };
        recorded.halves = events.iter().zip(kinds_of).map(is_half).collect();
        recorded
    }

    /// Whether events of this kind were recorded, both halves where it is one of a pair.
    pub fn has(&self, kind: EventKind) -> bool {
        self.kinds >> kind as u32 & 1 != 0
    }

    /// Whether all system calls were recorded, by number or by name.
    pub fn all_calls(&self) -> bool {
        self.has(EventKind::SysEnter) || self.calls >= ALL_CALLS
    }

    /// Whether the event is half a pair whose other half was not recorded: no conclusion may be
    /// drawn from it.
    #[inline]
    pub fn is_half(&self, event: EventId) -> bool {
        self.halves.get(event.0 as usize) == Some(&true)
    }

    /// Whether any event is half a pair.
    pub fn any_half(&self) -> bool {
        self.halves.contains(&true)
    }
}

impl Capabilities {
    /// What a file can prove with these events and with what it holds beside them.
    pub fn of(events: &[EventDesc], beside: Beside) -> Capabilities {
        Capabilities::from(&Recorded::of(events), beside)
    }

    /// What the events prove that were seen, whatever the recorder was asked for: for samples of
    /// a file, in which an event stays away that the file holds.
    pub fn seen(events: &[EventDesc], beside: Beside) -> Capabilities {
        let if_seen = |p| if p == Presence::Seen { p } else { Presence::Described };
        Capabilities::from(&Recorded::taking(events, if_seen), beside)
    }

    /// What the events would prove that the recorder was asked for, if all came.
    pub fn promised(events: &[EventDesc], beside: Beside) -> Capabilities {
        let as_seen = |p| if p == Presence::Enabled { Presence::Seen } else { p };
        Capabilities::from(&Recorded::taking(events, as_seen), beside)
    }

    fn from(recorded: &Recorded, beside: Beside) -> Capabilities {
        let mut caps = Capabilities::proven_by(|kind| recorded.has(kind));
        caps.syscalls = recorded.all_calls();
        caps.switches |= beside.switch_records;
        caps.stacks = beside.stacks;
        caps.counters = beside.counters;
        caps
    }
}

impl EventKind {
    /// Events that happen wherever anything happens: a machine that never switches, wakes nobody
    /// and makes no system call has no recorder running either. Where one of them was asked for
    /// and none was seen, a filter kept it out, it was asked for and then taken back (`trace-cmd
    /// -v`), or all were lost.
    pub const ALWAYS_HAPPEN: &[EventKind] =
        &[EventKind::Switch, EventKind::Wakeup, EventKind::Waking, EventKind::SysEnter];

    /// Whether it is one of [`EventKind::ALWAYS_HAPPEN`].
    pub fn always_happens(self) -> bool {
        EventKind::ALWAYS_HAPPEN.contains(&self)
    }

    /// The event that ends what this one begins, or begins what this one ends. Either is worth
    /// nothing alone.
    pub fn other_half(self) -> Option<EventKind> {
        use EventKind::*;
        Some(match self {
            SysEnter => SysExit,
            SysExit => SysEnter,
            SysEnterNamed => SysExitNamed,
            SysExitNamed => SysEnterNamed,
            IrqEntry => IrqExit,
            IrqExit => IrqEntry,
            VectorEntry => VectorExit,
            VectorExit => VectorEntry,
            SoftirqEntry => SoftirqExit,
            SoftirqExit => SoftirqEntry,
            WorkStart => WorkEnd,
            WorkEnd => WorkStart,
            ContentionBegin => ContentionEnd,
            ContentionEnd => ContentionBegin,
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Presence::{Described, Enabled, Seen};

    fn desc(presence: Presence, name: &str) -> EventDesc {
        let system = name.split(':').next().expect("there is always a first").to_owned();
        EventDesc { name: name.to_owned(), system, presence }
    }

    fn proven(events: &[EventDesc]) -> Vec<&'static str> {
        let list = Capabilities::of(events, Beside::default()).list();
        list.into_iter().filter(|c| c.1).map(|c| c.0).collect()
    }

    #[test]
    fn an_event_that_is_only_explained_was_not_recorded() {
        let events = |p| {
            [
                desc(Seen, "sched:sched_switch"),
                desc(p, "raw_syscalls:sys_enter"),
                desc(p, "raw_syscalls:sys_exit"),
                desc(p, "sched:sched_migrate_task"),
            ]
        };
        assert_eq!(proven(&events(Described)), ["switches"]);
        assert_eq!(proven(&events(Seen)), ["switches", "migrations", "syscalls"]);
    }

    #[test]
    fn who_was_asked_for_and_stayed_away_was_recorded_unless_it_always_happens() {
        let events = [
            desc(Enabled, "sched:sched_switch"),
            desc(Enabled, "sched:sched_waking"),
            desc(Enabled, "raw_syscalls:sys_enter"),
            desc(Enabled, "raw_syscalls:sys_exit"),
            desc(Enabled, "lock:contention_begin"),
            desc(Enabled, "lock:contention_end"),
        ];
        assert_eq!(proven(&events), ["contention"]);
    }

    #[test]
    fn half_a_pair_proves_nothing() {
        for &kind in EventKind::ALL {
            let Some(other) = kind.other_half() else { continue };
            assert_eq!(other.other_half(), Some(kind));
            let name = |k: EventKind| k.to_string().replace('*', "read");
            let alone = [desc(Seen, &name(kind)), desc(Described, &name(other))];
            let recorded = Recorded::of(&alone);
            assert!(proven(&alone).is_empty() && !recorded.has(kind), "{kind}");
            assert!(recorded.is_half(EventId(0)) && !recorded.is_half(EventId(1)), "{kind}");
            let both = [desc(Seen, &name(kind)), desc(Seen, &name(other))];
            assert!(Recorded::of(&both).has(kind) && !Recorded::of(&both).any_half(), "{kind}");
        }
        let other_vector =
            [desc(Seen, "irq_vectors:reschedule_entry"), desc(Seen, "irq_vectors:irq_work_exit")];
        assert!(Recorded::of(&other_vector).is_half(EventId(0)));
    }

    #[test]
    fn a_few_chosen_calls_are_not_all_calls() {
        let calls = |n: usize, presence| -> Vec<EventDesc> {
            (0..n)
                .flat_map(|i| ["enter", "exit"].map(|way| (way, i)))
                .map(|(way, i)| desc(presence, &format!("syscalls:sys_{way}_call{i}")))
                .collect()
        };
        assert!(proven(&calls(ALL_CALLS - 1, Seen)).is_empty());
        assert_eq!(proven(&calls(ALL_CALLS, Seen)), ["syscalls"]);
        let mut asked_for = calls(300, Enabled);
        assert!(proven(&asked_for).is_empty(), "of all calls somebody makes one");
        asked_for[8].presence = Seen;
        assert_eq!(proven(&asked_for), ["syscalls"]);
    }

    #[test]
    fn switches_may_come_from_records_instead() {
        let beside = Beside { switch_records: true, ..Beside::default() };
        assert!(Capabilities::of(&[], beside).switches);
        assert_eq!(Capabilities::of(&[], Beside::default()), Capabilities::default());
    }
}
