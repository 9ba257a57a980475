//! What was recorded: the only place that decides it.
//!
//! Files promise more than they hold. A trace.dat may describe every event of its kernel and
//! contain two kinds of them; a folder of raw ring buffers describes whatever was copied into it.
//! So a reader says for each event how the file knows it ([`Presence`]), and the conclusion is
//! drawn here:
//!
//! * an event that occurs was recorded;
//! * an event that the recorder was asked for and that does not occur was recorded, and did not
//!   happen (no lock was contended, no disk answered), unless it is one that always happens
//!   ([`EventKind::always_happens`]): then the list is wrong;
//! * an event that is only described was not recorded;
//! * half a pair (`sys_enter` without `sys_exit`) tells nothing about the time between: it counts
//!   as not recorded, and no conclusions are drawn from it.
//!
//! System calls are recorded all at once (`raw_syscalls:*`) or one by one (`syscalls:sys_enter_*`).
//! In the latter case a file may have all calls or a choice ([`Calls`]), and does not say which.
//! Its list of events does, if it has one: a user who names single calls names few of a kernel's
//! three to four hundred. Without a list only the calls that occurred are known. Many different
//! calls, including some that no user would choose, mean that all were recorded. Otherwise they are
//! treated as a choice: to call a recorded call unknown is not wrong, to say that an unrecorded
//! call was not made would be.
//!
//! The decision is made for the file, so it holds for every window of it.

use crate::{Calls, Capabilities, EventDesc, EventId, EventKind, Presence};
use std::collections::{BTreeSet, HashSet};

/// What a file contains in addition to named events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Extras {
    /// Call chains.
    pub stacks: bool,
    /// Samples of a hardware counter, or readings of several.
    pub counters: bool,
    /// PERF_RECORD_SWITCH, a poorer source of switches than `sched_switch`.
    pub switch_records: bool,
    /// The control groups of threads.
    pub groups: bool,
}

/// This many calls on a recorder's list, with entry and exit, mean all of them. Kernels of 64-bit
/// machines have tracepoints for 270 (arm64, Linux 4.4) to 360 (x86-64, 6.18); the recorder's own
/// choice is about a hundred.
const ALL_LISTED: usize = 200;

/// Without a list, this many different calls mean all of them, if [`UNCHOSEN`] of these are among
/// them.
const ALL_SEEN: usize = 20;

/// Calls that programs make all the time, and that no user selects by name: they cost little, never
/// wait and take no contended lock. Two of them prove a recording of all calls.
const UNCHOSEN: [&str; 8] = [
    "rt_sigprocmask",
    "rt_sigaction",
    "rt_sigreturn",
    "set_tid_address",
    "set_robust_list",
    "getpid",
    "getuid",
    "prlimit64",
];

const _: () = assert!(EventKind::ALL.len() <= u64::BITS as usize, "a bit for each kind");

/// The events of a file that were recorded, among those that holdup interprets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recorded {
    /// One bit for each kind, including families.
    kinds: u64,
    /// The recorded system calls.
    calls: Calls,
    /// Whether an event is half a pair, by [`EventId`].
    halves: Vec<bool>,
}

impl Recorded {
    /// What was recorded, by the events of a file in the order of their ids.
    pub fn of(events: &[EventDesc]) -> Recorded {
        Recorded::taking(events, |presence| presence)
    }

    /// Applies `view` to how the file knows its events first.
    fn taking(events: &[EventDesc], view: fn(Presence) -> Presence) -> Recorded {
        let mut known: HashSet<(EventKind, &str)> = HashSet::new();
        let (mut named_call_seen, mut named_call_listed) = (false, false);
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
            if kind == EventKind::SysEnterNamed {
                named_call_seen |= presence == Presence::Seen;
                named_call_listed |= desc.presence == Presence::Enabled;
            }
        }
        let whole = |kind: EventKind, detail: &str| {
            kind.other_half().is_none_or(|other| known.contains(&(other, detail)))
        };
        let mut recorded = Recorded::default();
        let mut named = BTreeSet::new();
        for &(kind, detail) in &known {
            if whole(kind, detail) {
                recorded.kinds |= 1 << kind as u32;
                if kind == EventKind::SysEnterNamed {
                    named.insert(detail);
                }
            }
        }
        let are_all = match named_call_listed {
            true => named.len() >= ALL_LISTED,
            false => {
                let unchosen = UNCHOSEN.iter().filter(|call| named.contains(**call)).count();
                named.len() >= ALL_SEEN && unchosen >= 2
            }
        };
        recorded.calls = match named.len() {
            _ if recorded.has(EventKind::SysEnter) => Calls::All,
            0 => Calls::None,
            // Any few calls may be absent by chance; but if all were recorded, some call occurs.
            _ if are_all && !named_call_seen => Calls::None,
            _ if are_all => Calls::All,
            _ => Calls::Chosen(named.into_iter().map(Box::from).collect()),
        };
        let is_half = |(desc, kind): (&EventDesc, Option<EventKind>)| {
            kind.is_some_and(|k| !whole(k, k.detail(desc.short_name()).unwrap_or("")))
        };
        recorded.halves = events.iter().zip(kinds_of).map(is_half).collect();
        recorded
    }

    /// Whether events of this kind were recorded, for a pair both halves.
    pub fn has(&self, kind: EventKind) -> bool {
        self.kinds >> kind as u32 & 1 != 0
    }

    /// Whether the event is half a pair whose other half was not recorded: no conclusion may be
    /// drawn from it.
    #[inline]
    pub fn is_half(&self, event: EventId) -> bool {
        self.halves.get(event.0 as usize) == Some(&true)
    }

    /// Which events to ignore, by id: half pairs, and `syscalls:*` in addition to `raw_syscalls:*`,
    /// which record the same calls. Empty if there are none.
    pub fn unused(&self, events: &[EventDesc]) -> Vec<bool> {
        let twice = self.has(EventKind::SysEnter) && self.has(EventKind::SysEnterNamed);
        let unused = events
            .iter()
            .zip(0..)
            .map(|(e, id)| self.is_half(EventId(id)) || twice && e.system == "syscalls");
        let unused: Vec<bool> = unused.collect();
        if unused.contains(&true) { unused } else { Vec::new() }
    }
}

impl Capabilities {
    /// What a file can prove with these events and with its other content.
    pub fn of(events: &[EventDesc], extras: Extras) -> Capabilities {
        Capabilities::from(&Recorded::of(events), counting_work(events, extras))
    }

    /// What the events that were seen prove, whatever the recorder was asked for: for samples of a
    /// file, which may lack events that the file contains.
    pub fn seen(events: &[EventDesc], extras: Extras) -> Capabilities {
        let if_seen = |p| if p == Presence::Seen { p } else { Presence::Described };
        Capabilities::from(&Recorded::taking(events, if_seen), counting_work(events, extras))
    }

    /// What the events that the recorder was asked for would prove, if all occurred.
    pub fn promised(events: &[EventDesc], extras: Extras) -> Capabilities {
        let as_seen = |p| if p == Presence::Enabled { Presence::Seen } else { p };
        Capabilities::from(&Recorded::taking(events, as_seen), counting_work(events, extras))
    }

    fn from(recorded: &Recorded, extras: Extras) -> Capabilities {
        let mut caps = Capabilities::proven_by(|kind| recorded.has(kind));
        caps.syscalls = recorded.calls.clone();
        caps.switches |= extras.switch_records;
        caps.stacks = extras.stacks;
        caps.counters = extras.counters;
        caps.groups = extras.groups || recorded.has(EventKind::AttachTask);
        caps
    }
}

/// Counters distinguish work from stalls only if they count both cycles and instructions; samples
/// of one of them say where time goes.
fn counting_work(events: &[EventDesc], extras: Extras) -> Extras {
    const CYCLES: &[&str] =
        &["cycles", "cpu-cycles", "cpu_cycles", "cpu_clk_unhalted", "ls_not_halted_cyc"];
    const INSTRUCTIONS: &[&str] = &["instructions", "inst_retired", "ex_ret_instr"];
    let counts = |names: &[&str]| {
        events.iter().filter(|e| e.system.is_empty()).any(|e| {
            // `cpu_core/cycles/u`, `cycles:u`, `cpu_clk_unhalted.thread`.
            let name = e.name.split_once('/').map_or(e.name.as_str(), |(_, name)| name);
            let name = name.split(['/', ':', '.']).next().unwrap_or_default();
            names.iter().any(|known| known.eq_ignore_ascii_case(name))
        })
    };
    let counters = extras.counters && counts(CYCLES) && counts(INSTRUCTIONS);
    Extras { counters, ..extras }
}

impl EventKind {
    /// Events that always happen: a machine that never switches, wakes no thread and makes no
    /// system call has no recorder running either. If one of them was asked for and none was seen,
    /// a filter removed it, it was asked for and then excluded (`trace-cmd -v`), or all were lost.
    pub const ALWAYS_HAPPEN: &[EventKind] =
        &[EventKind::Switch, EventKind::Wakeup, EventKind::Waking, EventKind::SysEnter];

    /// Whether it is one of [`EventKind::ALWAYS_HAPPEN`].
    pub fn always_happens(self) -> bool {
        EventKind::ALWAYS_HAPPEN.contains(&self)
    }

    /// The event that ends what this one begins, or begins what this one ends. One without the
    /// other is useless.
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
        let list = Capabilities::of(events, Extras::default()).list();
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
            assert!(
                Recorded::of(&both).has(kind) && Recorded::of(&both).unused(&both).is_empty(),
                "{kind}"
            );
        }
        let other_vector =
            [desc(Seen, "irq_vectors:reschedule_entry"), desc(Seen, "irq_vectors:irq_work_exit")];
        assert!(Recorded::of(&other_vector).is_half(EventId(0)));
    }

    fn named(n: usize, presence: Presence) -> Vec<EventDesc> {
        (0..n)
            .flat_map(|i| ["enter", "exit"].map(|way| (way, i)))
            .map(|(way, i)| desc(presence, &format!("syscalls:sys_{way}_call{i:03}")))
            .collect()
    }

    fn calls(events: &[EventDesc]) -> Calls {
        Capabilities::of(events, Extras::default()).syscalls
    }

    #[test]
    fn a_few_chosen_calls_are_not_all_calls() {
        let unchosen = |n: usize| -> Vec<EventDesc> {
            let halves = UNCHOSEN[..n].iter().flat_map(|c| [("enter", c), ("exit", c)]);
            halves.map(|(way, call)| desc(Seen, &format!("syscalls:sys_{way}_{call}"))).collect()
        };
        let mut all = named(ALL_SEEN - 2, Seen);
        all.extend(unchosen(2));
        assert_eq!(calls(&all), Calls::All);
        all.truncate(all.len() - 2);
        assert!(calls(&all).chosen().is_some(), "fewer");
        let many = calls(&named(2 * ALL_SEEN, Seen));
        assert_eq!(many.chosen().map(<[_]>::len), Some(2 * ALL_SEEN), "somebody chose them");
        assert!(many.have("call003") && !many.have("call999"));
        let mut with_raw = named(1, Seen);
        with_raw
            .extend([desc(Seen, "raw_syscalls:sys_enter"), desc(Seen, "raw_syscalls:sys_exit")]);
        assert_eq!(calls(&with_raw), Calls::All);
    }

    #[test]
    fn a_list_of_events_tells_a_choice_from_all_calls() {
        let mut asked_for = named(ALL_LISTED, Enabled);
        assert_eq!(calls(&asked_for), Calls::None, "of all calls somebody makes one");
        assert!(calls(&named(2, Enabled)).have("call001"), "of two perhaps nobody");
        asked_for[8].presence = Seen;
        assert_eq!(calls(&asked_for), Calls::All);
        let mut chosen = named(ALL_LISTED - 1, Seen);
        chosen[8].presence = Enabled;
        assert_eq!(calls(&chosen).chosen().map(<[_]>::len), Some(ALL_LISTED - 1));
    }

    #[test]
    fn what_a_list_promises_is_a_choice_or_all() {
        let promised = |n| Capabilities::promised(&named(n, Enabled), Extras::default()).syscalls;
        assert_eq!(promised(ALL_SEEN + 1).chosen().map(<[_]>::len), Some(ALL_SEEN + 1));
        assert_eq!(promised(ALL_LISTED), Calls::All);
    }

    #[test]
    fn half_a_call_is_not_in_the_choice() {
        let mut events = named(2, Seen);
        events.pop();
        let calls = calls(&events);
        assert!(calls.have("call000") && !calls.have("call001"));
    }

    #[test]
    fn counters_tell_work_from_stalls_where_they_count_both() {
        let counts = |names: &[&str]| {
            let counter = |name: &&str| EventDesc {
                name: (*name).to_owned(),
                system: String::new(),
                presence: Seen,
            };
            let events: Vec<EventDesc> = names.iter().map(counter).collect();
            Capabilities::of(&events, Extras { counters: true, ..Extras::default() }).counters
        };
        assert!(counts(&["cycles:u", "instructions:u"]));
        assert!(counts(&["cpu_core/cycles/", "cpu_core/instructions/"]));
        assert!(counts(&["cpu_clk_unhalted.thread", "INST_RETIRED.ANY"]));
        assert!(!counts(&["cycles:P"]) && !counts(&["cache-misses", "instructions"]));
    }

    #[test]
    fn switches_may_come_from_records_instead() {
        let extras = Extras { switch_records: true, ..Extras::default() };
        assert!(Capabilities::of(&[], extras).switches);
        assert_eq!(Capabilities::of(&[], Extras::default()), Capabilities::default());
    }
}
