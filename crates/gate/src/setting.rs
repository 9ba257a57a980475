//! Whether recordings compare: same host, kernel, CPUs and events.

use crate::metric::{Figure, Table};
use crate::run::{Run, Setting};
use holdup_attribution::Total;
use holdup_trace::EventKind;
use std::collections::BTreeSet;

/// An aspect that must be the same in two recordings.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Aspect {
    /// The machine.
    Host,
    /// Its kernel.
    Kernel,
    /// Its architecture.
    Arch,
    /// Its number of CPUs.
    Cpus,
    /// The events recorded.
    Events,
}

impl Aspect {
    /// All.
    pub const ALL: &'static [Aspect] =
        &[Aspect::Host, Aspect::Kernel, Aspect::Arch, Aspect::Cpus, Aspect::Events];

    /// The word that allows it to differ: `--allow host,kernel`.
    pub fn word(self) -> &'static str {
        match self {
            Aspect::Host => "host",
            Aspect::Kernel => "kernel",
            Aspect::Arch => "arch",
            Aspect::Cpus => "cpus",
            Aspect::Events => "events",
        }
    }
}

/// One difference.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The aspect.
    pub aspect: Aspect,
    /// The difference, in words.
    pub words: String,
}

/// The system calls of a setting.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Recorded<'a> {
    /// All.
    All,
    /// Those whose events were recorded; without an event no call is known.
    Events(BTreeSet<&'a str>),
}

impl Setting {
    /// The system calls recorded: figures about calls, and about the time outside them, compare
    /// only if these are the same.
    pub fn calls(&self) -> Recorded<'_> {
        let all = EventKind::SysEnter.to_string();
        let of_calls = format!("{}:", EventKind::SysEnterNamed.system());
        match self.events.contains(&all) {
            true => Recorded::All,
            false => Recorded::Events(
                self.events
                    .iter()
                    .filter(|e| e.starts_with(&of_calls))
                    .map(String::as_str)
                    .collect(),
            ),
        }
    }

    /// Whether a figure that a recording does not have is 0 because nothing of it happened. For an
    /// untraced call this is unknown.
    pub fn shows(&self, figure: &Figure) -> bool {
        let Recorded::Events(events) = self.calls() else { return true };
        let begin = EventKind::SysEnterNamed.to_string().replace('*', &figure.key);
        let chosen = !events.is_empty();
        match figure.table {
            Table::Syscalls => !chosen || events.contains(&*begin),
            Table::Ledger => !(chosen && is_part(figure, Total::User)),
            _ => true,
        }
    }

    /// The differences from `other`. What one of the two does not say is no difference.
    pub fn differences(&self, other: &Setting) -> Vec<Difference> {
        let mut found = Vec::new();
        let mut add = |aspect, words| found.push(Difference { aspect, words });
        let said = [
            (Aspect::Host, "host", &self.host, &other.host),
            (Aspect::Kernel, "kernel", &self.kernel, &other.kernel),
            (Aspect::Arch, "architecture", &self.arch, &other.arch),
        ];
        for (aspect, what, a, b) in said {
            if let (Some(a), Some(b)) = (a, b)
                && a != b
            {
                add(aspect, format!("{what} {a} versus {b}"));
            }
        }
        if self.cpus != other.cpus {
            add(Aspect::Cpus, format!("{} CPUs versus {}", self.cpus, other.cpus));
        }
        let missing = |from: &Setting, of: &Setting| {
            let lacking = of.events.iter().filter(|e| !from.events.contains(e));
            lacking.map(String::as_str).collect::<Vec<_>>().join(", ")
        };
        let (gone, new) = (missing(other, self), missing(self, other));
        if !gone.is_empty() {
            add(Aspect::Events, format!("events no longer recorded: {gone}"));
        }
        if !new.is_empty() {
            add(Aspect::Events, format!("events not recorded before: {new}"));
        }
        found
    }
}

/// Whether a figure has another meaning if other system calls were recorded: counts and times of
/// calls, and what the ledger has of applications, in their own code and in calls.
pub fn depends_on_calls(figure: &Figure) -> bool {
    match figure.table {
        Table::Syscalls => true,
        Table::Ledger => {
            [Total::User, Total::Application, Total::Kernel].iter().any(|&t| is_part(figure, t))
        }
        _ => false,
    }
}

/// A figure of the ledger is this total or a part of it.
fn is_part(figure: &Figure, of: Total) -> bool {
    let rest = figure.key.strip_prefix(&of.path().replace('/', "."));
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

/// Two runs that do not compare.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mismatch {
    /// The runs and their differences.
    pub words: String,
    /// The words that allow them, separated by commas.
    pub allow: String,
}

/// The first run that differs from the first of all in an aspect that is not allowed to differ.
pub fn first_difference<'a>(
    runs: impl IntoIterator<Item = &'a Run>,
    allowed: &[Aspect],
) -> Option<Mismatch> {
    let mut runs = runs.into_iter();
    let first = runs.next()?;
    runs.find_map(|run| {
        let mut found = first.setting.differences(&run.setting);
        found.retain(|d| !allowed.contains(&d.aspect));
        if found.is_empty() {
            return None;
        }
        let words: Vec<&str> = found.iter().map(|d| d.words.as_str()).collect();
        let mut allow: Vec<&str> = found.iter().map(|d| d.aspect.word()).collect();
        allow.dedup();
        Some(Mismatch {
            words: format!(
                "{} and {} cannot be compared: {}",
                first.name,
                run.name,
                words.join("; ")
            ),
            allow: allow.join(","),
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(events: &[&str]) -> Setting {
        Setting { events: events.iter().map(|e| (*e).to_owned()).collect(), ..Setting::default() }
    }

    #[test]
    fn a_untraced_call_is_not_0_and_a_chosen_one_that_nobody_made_is() {
        let chosen = of(&["sched:sched_switch", "syscalls:sys_enter_futex"]);
        assert!(chosen.shows(&Figure::first(Table::Syscalls, "futex")));
        assert!(!chosen.shows(&Figure::first(Table::Syscalls, "read")));
        assert!(!chosen.shows(&Figure::first(Table::Ledger, "busy.user")));
        assert!(chosen.shows(&Figure::first(Table::Ledger, "idle.io")));
        let all = of(&["raw_syscalls:sys_enter", "raw_syscalls:sys_exit"]);
        assert!(all.shows(&Figure::first(Table::Syscalls, "read")));
        assert!(all.shows(&Figure::first(Table::Ledger, "busy.user")));
    }

    #[test]
    fn other_calls_make_other_figures() {
        let futex = of(&["sched:sched_switch", "syscalls:sys_enter_futex"]);
        assert_eq!(
            futex.calls(),
            of(&["irq:irq_handler_entry", "syscalls:sys_enter_futex"]).calls()
        );
        assert_ne!(futex.calls(), of(&["syscalls:sys_enter_write"]).calls());
        let all = of(&["raw_syscalls:sys_enter"]);
        assert_eq!(
            all.calls(),
            of(&["raw_syscalls:sys_enter", "syscalls:sys_enter_futex"]).calls()
        );
        assert_ne!(all.calls(), futex.calls());
        for key in ["busy.kernel", "busy.kernel.lock-spin", "busy.application", "busy.user"] {
            assert!(depends_on_calls(&Figure::first(Table::Ledger, key)), "{key}");
        }
        for key in ["idle.thread-sync", "busy.kthreads", "busy"] {
            assert!(!depends_on_calls(&Figure::first(Table::Ledger, key)), "{key}");
        }
        assert!(depends_on_calls(&Figure::first(Table::Syscalls, "futex")));
        assert!(!depends_on_calls(&Figure::first(Table::Waits, "mutex server")));
    }
}
