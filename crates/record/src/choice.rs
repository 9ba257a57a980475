//! Which tracepoints a recording contains: those of a preset, if this kernel has them.

use holdup_host::tracefs::{Tracefs, Tracepoint};
use holdup_syscalls::Preset;
use holdup_trace::EventKind;
use wildmatch::WildMatch;

/// The events of each preset in addition to system calls. A preset includes the events of the
/// smaller presets.
///
/// Events that cost more than they show at a first look are left out: page faults, and each span of
/// run time.
pub const EVENTS: &[(Preset, &[EventKind])] = &[
    (
        Preset::Sched,
        &[
            EventKind::Switch,
            EventKind::Wakeup,
            EventKind::WakeupNew,
            EventKind::Waking,
            EventKind::Migrate,
            EventKind::Fork,
            EventKind::Exec,
            EventKind::Exit,
        ],
    ),
    (Preset::Locks, &[EventKind::ContentionBegin, EventKind::ContentionEnd]),
    (
        Preset::Full,
        &[
            EventKind::IrqEntry,
            EventKind::IrqExit,
            EventKind::SoftirqEntry,
            EventKind::SoftirqExit,
            EventKind::WorkStart,
            EventKind::WorkEnd,
        ],
    ),
];

/// An event that only new kernels have (Linux 7.2), from this preset on. On other kernels it is not
/// reported as missing.
const NEW: (Preset, EventKind) = (Preset::Locks, EventKind::ContendedRelease);

/// The system of the tracepoints of single calls.
const NAMED_CALLS: &str = "syscalls";
/// Prefixes of their names.
const WAYS: [&str; 2] = ["sys_enter_", "sys_exit_"];

/// What the user wants recorded.
#[derive(Clone, Debug)]
pub struct Wanted {
    /// Record the events of this preset.
    pub preset: Preset,
    /// Record all system calls instead of the preset's.
    pub all_syscalls: bool,
    /// Record also these events: `system:name`, where `*` and `?` stand for any characters.
    pub extra: Vec<String>,
}

/// Which system calls a recording contains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Calls {
    /// None.
    Untraced,
    /// Those of the preset.
    Chosen,
    /// All, because the user asked for it.
    All,
    /// All, because this kernel has no tracepoints of single calls (`CONFIG_FTRACE_SYSCALLS`).
    AllForLack,
}

/// What is recorded.
#[derive(Clone, Debug)]
pub struct Choice {
    /// The tracepoints, each once.
    pub tracepoints: Vec<Tracepoint>,
    /// The events of the preset that this kernel does not have.
    pub missing: Vec<String>,
    /// Which calls are among the tracepoints.
    pub calls: Calls,
}

/// Something that was asked for by name does not exist in this kernel.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{name}: {why}")]
pub struct Unknown {
    /// The name that was given.
    pub name: String,
    /// What is wrong with it.
    pub why: &'static str,
}

impl Choice {
    /// The choice for `wanted`.
    ///
    /// # Errors
    ///
    /// If an extra event does not exist, because a user who names it relies on it.
    pub fn of(wanted: &Wanted, tracefs: &Tracefs) -> Result<Choice, Unknown> {
        let mut choice =
            Choice { tracepoints: Vec::new(), missing: Vec::new(), calls: Calls::Untraced };
        for kind in events(wanted.preset) {
            choice.add(tracefs, kind);
        }
        let (preset, new) = NEW;
        if wanted.preset >= preset
            && let Some(tracepoint) = tracefs.tracepoint(new.system(), new.kernel_name())
        {
            choice.push(tracepoint);
        }
        choice.calls = choice.add_calls(wanted, tracefs);
        for pattern in &wanted.extra {
            choice.add_matching(pattern, tracefs)?;
        }
        Ok(choice)
    }

    fn add(&mut self, tracefs: &Tracefs, kind: EventKind) {
        match tracefs.tracepoint(kind.system(), kind.kernel_name()) {
            Some(tracepoint) => self.push(tracepoint),
            None => self.missing.push(kind.to_string()),
        }
    }

    fn add_calls(&mut self, wanted: &Wanted, tracefs: &Tracefs) -> Calls {
        let Wanted { preset, all_syscalls, .. } = *wanted;
        if !all_syscalls && preset.calls().next().is_none() {
            return Calls::Untraced;
        }
        if !all_syscalls {
            let before = self.tracepoints.len();
            for name in tracefs.names(NAMED_CALLS) {
                let call = WAYS.iter().find_map(|way| name.strip_prefix(way));
                if call.is_some_and(|call| preset.records(call)) {
                    self.tracepoints.extend(tracefs.tracepoint(NAMED_CALLS, &name));
                }
            }
            if self.tracepoints.len() > before {
                return Calls::Chosen;
            }
        }
        self.add(tracefs, EventKind::SysEnter);
        self.add(tracefs, EventKind::SysExit);
        if all_syscalls { Calls::All } else { Calls::AllForLack }
    }

    fn add_matching(&mut self, pattern: &str, tracefs: &Tracefs) -> Result<(), Unknown> {
        let unknown = |why| Unknown { name: pattern.to_owned(), why };
        let Some((system, name)) = pattern.split_once(':') else {
            return Err(unknown(
                "is not a tracepoint; tracepoints are named SYSTEM:NAME, as in perf list",
            ));
        };
        let (systems, names) = (WildMatch::new(system), WildMatch::new(name));
        let mut found = false;
        for system in tracefs.systems().into_iter().filter(|s| systems.matches(s)) {
            for name in tracefs.names(&system).into_iter().filter(|n| names.matches(n)) {
                if let Some(tracepoint) = tracefs.tracepoint(&system, &name) {
                    found = true;
                    self.push(tracepoint);
                }
            }
        }
        if found { Ok(()) } else { Err(unknown("this kernel has no such tracepoint")) }
    }

    fn push(&mut self, tracepoint: Tracepoint) {
        if !self.tracepoints.iter().any(|known| known.id == tracepoint.id) {
            self.tracepoints.push(tracepoint);
        }
    }
}

/// The events of `preset` and of the smaller presets, without system calls.
pub fn events(preset: Preset) -> impl Iterator<Item = EventKind> {
    let blocks = EVENTS.iter().filter(move |(least, _)| *least <= preset);
    blocks.flat_map(|(_, kinds)| kinds.iter().copied())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use tempfile::TempDir;

    /// A tracefs with these events, numbered from 1.
    fn kernel(events: &[&str]) -> (TempDir, Tracefs) {
        let root = tempfile::tempdir().unwrap();
        for (i, event) in events.iter().enumerate() {
            let folder = root.path().join("events").join(event.replace(':', "/"));
            fs::create_dir_all(&folder).unwrap();
            fs::write(folder.join("id"), format!("{}\n", i + 1)).unwrap();
        }
        let tracefs = Tracefs::at(root.path());
        (root, tracefs)
    }

    fn wanted(preset: Preset) -> Wanted {
        Wanted { preset, all_syscalls: false, extra: Vec::new() }
    }

    fn names(choice: &Choice) -> Vec<String> {
        choice.tracepoints.iter().map(|t| format!("{}:{}", t.system, t.name)).collect()
    }

    #[test]
    fn a_preset_traces_its_calls_and_says_what_the_kernel_lacks() {
        let (_root, tracefs) = kernel(&[
            "sched:sched_switch",
            "syscalls:sys_enter_futex",
            "syscalls:sys_exit_futex",
            "syscalls:sys_enter_getppid",
            "raw_syscalls:sys_enter",
        ]);
        let choice = Choice::of(&wanted(Preset::Locks), &tracefs).unwrap();
        assert_eq!(
            names(&choice),
            ["sched:sched_switch", "syscalls:sys_enter_futex", "syscalls:sys_exit_futex"]
        );
        assert_eq!(choice.calls, Calls::Chosen);
        assert!(choice.missing.contains(&"lock:contention_begin".to_owned()));
        assert!(!choice.missing.contains(&"lock:contended_release".to_owned()));
        let choice = Choice::of(&wanted(Preset::Sched), &tracefs).unwrap();
        assert_eq!((names(&choice).len(), choice.calls), (1, Calls::Untraced));
    }

    #[test]
    fn new_kernels_tell_who_releases_locks() {
        let (_root, tracefs) = kernel(&["lock:contended_release"]);
        let of = |preset| names(&Choice::of(&wanted(preset), &tracefs).unwrap());
        assert_eq!(of(Preset::Full), ["lock:contended_release"]);
        assert!(of(Preset::Sched).is_empty());
    }

    #[test]
    fn without_tracepoints_of_single_calls_all_are_recorded() {
        let raw = ["raw_syscalls:sys_enter", "raw_syscalls:sys_exit"];
        let (_root, tracefs) = kernel(&raw);
        let choice = Choice::of(&wanted(Preset::Full), &tracefs).unwrap();
        assert_eq!(names(&choice), raw);
        assert_eq!(choice.calls, Calls::AllForLack);
    }

    #[test]
    fn extra_events_stand_once_and_must_exist() {
        let (_root, tracefs) = kernel(&["sched:sched_switch", "block:rq_issue", "block:rq_done"]);
        let with = |extra: &str| {
            let extra = vec![extra.to_owned()];
            Choice::of(&Wanted { extra, ..wanted(Preset::Sched) }, &tracefs)
        };
        assert_eq!(names(&with("sched:sched_switch").unwrap()), ["sched:sched_switch"]);
        let all = ["sched:sched_switch", "block:rq_done", "block:rq_issue"];
        assert_eq!(names(&with("bl*:rq_*").unwrap()), all);
        assert!(with("cycles").unwrap_err().to_string().starts_with("cycles: is not a tracepoint"));
        assert!(with("sched:sched_swtch").is_err() && with("nothing:*").is_err());
    }
}
