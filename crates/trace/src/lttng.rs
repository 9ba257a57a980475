//! LTTng's names for the kernel's events.
//!
//! LTTng has no systems: its name for the kernel's `irq:softirq_entry` is `irq_softirq_entry`. Most
//! names of the kernel begin with their system anyway and are the same.

use crate::EventKind;

/// Events with other names; if LTTng up to 2.5 used another one, that name comes second.
const RENAMED: [(&str, EventKind); 9] = [
    ("irq_softirq_entry", EventKind::SoftirqEntry),
    ("irq_softirq_exit", EventKind::SoftirqExit),
    ("irq_softirq_raise", EventKind::SoftirqRaise),
    ("softirq_entry", EventKind::SoftirqEntry),
    ("softirq_exit", EventKind::SoftirqExit),
    ("softirq_raise", EventKind::SoftirqRaise),
    ("x86_exceptions_page_fault_user", EventKind::PageFaultUser),
    ("x86_exceptions_page_fault_kernel", EventKind::PageFaultKernel),
    ("power_cpu_idle", EventKind::CpuIdle),
];

/// Families: prefix and suffix of their names. `compat` means calls of 32-bit programs.
const FAMILIES: [(&str, &str, EventKind); 6] = [
    ("syscall_entry_", "", EventKind::SysEnterNamed),
    ("syscall_exit_", "", EventKind::SysExitNamed),
    ("compat_syscall_entry_", "", EventKind::SysEnterNamed),
    ("compat_syscall_exit_", "", EventKind::SysExitNamed),
    ("x86_irq_vectors_", "_entry", EventKind::VectorEntry),
    ("x86_irq_vectors_", "_exit", EventKind::VectorExit),
];

impl EventKind {
    /// The event that LTTng calls `name`, with the kernel's name: `irq_softirq_entry` is
    /// `softirq_entry`, `syscall_entry_read` is `sys_enter_read`.
    pub fn of_lttng(name: &str) -> Option<(EventKind, String)> {
        let family = FAMILIES.iter().find_map(|&(before, after, kind)| {
            Some((name.strip_prefix(before)?.strip_suffix(after)?, kind))
        });
        if let Some((detail, kind)) = family {
            return Some((kind, kind.kernel_name().replace('*', detail)));
        }
        let renamed = RENAMED.iter().find(|(theirs, _)| *theirs == name).map(|(_, kind)| *kind);
        let kind = renamed.or_else(|| EventKind::by_name(name).filter(|k| k.is_same_in_lttng()))?;
        Some((kind, kind.kernel_name().to_owned()))
    }

    /// LTTng's name of the event; `None` if LTTng does not record it, or not as one event.
    pub fn lttng_name(self) -> Option<&'static str> {
        let renamed = RENAMED.iter().find(|(_, kind)| *kind == self).map(|(theirs, _)| *theirs);
        renamed.or_else(|| self.is_same_in_lttng().then(|| self.kernel_name()))
    }

    /// lttng-modules 2.13 has the kernel's systems sched, irq, workqueue and, if lockdep is
    /// compiled in, lock; not yet the `contention_*` of Linux 5.19, nor `sched_blocked_reason`.
    /// System calls are families.
    fn is_same_in_lttng(self) -> bool {
        let lacks = matches!(
            self,
            EventKind::ContentionBegin
                | EventKind::ContentionEnd
                | EventKind::ContendedRelease
                | EventKind::BlockedReason
        );
        matches!(self.system(), "sched" | "irq" | "workqueue" | "lock")
            && !lacks
            && RENAMED.iter().all(|(_, kind)| *kind != self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_lttng_are_the_kernels() {
        for (theirs, kind, ours) in [
            ("sched_switch", EventKind::Switch, "sched_switch"),
            ("irq_softirq_raise", EventKind::SoftirqRaise, "softirq_raise"),
            ("softirq_entry", EventKind::SoftirqEntry, "softirq_entry"),
            ("syscall_entry_read", EventKind::SysEnterNamed, "sys_enter_read"),
            ("compat_syscall_exit_read", EventKind::SysExitNamed, "sys_exit_read"),
            ("x86_irq_vectors_local_timer_entry", EventKind::VectorEntry, "local_timer_entry"),
        ] {
            assert_eq!(EventKind::of_lttng(theirs), Some((kind, ours.to_owned())), "{theirs}");
        }
        for other in ["timer_hrtimer_start", "sys_enter", "sched:sched_switch"] {
            assert_eq!(EventKind::of_lttng(other), None, "{other}");
        }
    }

    #[test]
    fn every_name_leads_back() {
        for &kind in EventKind::ALL {
            if let Some(name) = kind.lttng_name() {
                assert_eq!(EventKind::of_lttng(name).map(|(k, _)| k), Some(kind));
            }
        }
        assert_eq!(EventKind::SysEnter.lttng_name(), None);
        assert_eq!(EventKind::ContentionBegin.lttng_name(), None);
    }
}
