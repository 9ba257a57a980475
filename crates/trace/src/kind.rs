//! The events that holdup interprets, and what each lets a trace prove: the only list of their
//! names.
//!
//! A new event is a new row of this list. The compiler then reports the places where a reader must
//! say how the event's fields become a [`crate::What`].

use crate::calls::{Calls, Proof};
use std::fmt;

/// Makes [`EventKind`] and [`Capabilities`] out of one list.
///
/// A capability's block starts with the events to record for it; after `also` come events that
/// belong to it but need not be recorded. Events marked `proof` prove that the trace has the
/// capability, for a pair together with the other half. A capability is there or not, unless a type
/// after its name says more.
macro_rules! vocabulary {
    (
        $($(#[doc = $doc:literal])+ $field:ident $(: $type:ty)? {
            $first:ident($first_system:literal, $first_name:literal $(, $first_proof:ident)?)
            $(, $kind:ident($system:literal, $name:literal $(, $proof:ident)?))*
            $(; also $(
                $more:ident($more_system:literal, $more_name:literal $(, $more_proof:ident)?)
            ),+)?
        })+
        not an event {
            $($(#[doc = $other_doc:literal])+ $other:ident: $option:literal,)+
        }
        proving nothing {
            $($alone:ident($alone_system:literal, $alone_name:literal)),+
        }
    ) => {
        /// An event that holdup interprets, whatever the format it was recorded in.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum EventKind {
            $(
                #[doc = concat!("`", $first_system, ":", $first_name, "`")]
                $first,
                $(#[doc = concat!("`", $system, ":", $name, "`")] $kind,)*
                $($(#[doc = concat!("`", $more_system, ":", $more_name, "`")] $more,)+)?
            )+
            $(#[doc = concat!("`", $alone_system, ":", $alone_name, "`")] $alone,)+
        }

        impl EventKind {
            /// Every event, in a fixed order.
            pub const ALL: &[EventKind] = &[
                $(EventKind::$first, $(EventKind::$kind,)* $($(EventKind::$more,)+)?)+
                $(EventKind::$alone,)+
            ];

            /// Its system, and its name in it; `*` stands for the part that differs between the
            /// events of a family.
            const fn names(self) -> (&'static str, &'static str) {
                match self {
                    $(
                        EventKind::$first => ($first_system, $first_name),
                        $(EventKind::$kind => ($system, $name),)*
                        $($(EventKind::$more => ($more_system, $more_name),)+)?
                    )+
                    $(EventKind::$alone => ($alone_system, $alone_name),)+
                }
            }
        }

        /// What a file can prove: decided by [`Capabilities::of`], once for the file.
        #[derive(Clone, Debug, Default, PartialEq, Eq)]
        pub struct Capabilities {
            $($(#[doc = $doc])+ pub $field: vocabulary!(@type $($type)?),)+
            $($(#[doc = $other_doc])+ pub $other: bool,)+
        }

        impl Capabilities {
            /// (name, present, events to record for it) of every capability, in a fixed order. A
            /// choice of system calls counts as present: [`Calls`] says what it has.
            pub fn list(&self) -> Vec<(&'static str, bool, &'static str)> {
                vec![
                    $((
                        stringify!($field),
                        self.$field.is_there(),
                        concat!($first_system, ":", $first_name $(, ",", $system, ":", $name)*),
                    ),)+
                    $((stringify!($other), self.$other, $option),)+
                ]
            }

            /// What the recorded events prove.
            pub(crate) fn proven_by(recorded: impl Fn(EventKind) -> bool) -> Capabilities {
                Capabilities {
                    $($field: {
                        let proofs: &[Option<EventKind>] = &[
                            vocabulary!(@proof $first $($first_proof)?),
                            $(vocabulary!(@proof $kind $($proof)?),)*
                            $($(vocabulary!(@proof $more $($more_proof)?),)+)?
                        ];
                        Proof::proven(proofs.iter().flatten().any(|&kind| recorded(kind)))
                    },)+
                    $($other: false,)+
                }
            }
        }
    };
    (@type) => { bool };
    (@type $type:ty) => { $type };
    (@proof $kind:ident proof) => { Some(EventKind::$kind) };
    (@proof $kind:ident) => { None };
}

vocabulary! {
    /// Which thread ran on which CPU, and when.
    switches { Switch("sched", "sched_switch", proof) }
    /// When a sleeping thread became runnable.
    wakeups { Wakeup("sched", "sched_wakeup", proof), WakeupNew("sched", "sched_wakeup_new") }
    /// Which thread woke it.
    wakers { Waking("sched", "sched_waking", proof) }
    /// Moves between CPUs.
    migrations { Migrate("sched", "sched_migrate_task", proof) }
    /// Threads created, replaced and ended.
    lifecycle {
        Fork("sched", "sched_process_fork", proof),
        Exec("sched", "sched_process_exec", proof),
        Exit("sched", "sched_process_exit", proof)
    }
    /// Run time as the scheduler charges it.
    stat_runtime { StatRuntime("sched", "sched_stat_runtime", proof) }
    /// System calls: all, a choice, or none.
    syscalls: Calls {
        SysEnter("raw_syscalls", "sys_enter", proof), SysExit("raw_syscalls", "sys_exit");
        also SysEnterNamed("syscalls", "sys_enter_*"), SysExitNamed("syscalls", "sys_exit_*")
    }
    /// Interrupt handlers.
    irqs { IrqEntry("irq", "irq_handler_entry", proof), IrqExit("irq", "irq_handler_exit") }
    /// Softirqs.
    softirqs {
        SoftirqEntry("irq", "softirq_entry", proof), SoftirqExit("irq", "softirq_exit");
        also SoftirqRaise("irq", "softirq_raise")
    }
    /// Work items of kernel workers.
    workqueues {
        WorkStart("workqueue", "workqueue_execute_start", proof),
        WorkEnd("workqueue", "workqueue_execute_end");
        also WorkQueue("workqueue", "workqueue_queue_work")
    }
    /// Page faults.
    page_faults {
        PageFaultUser("exceptions", "page_fault_user", proof),
        PageFaultKernel("exceptions", "page_fault_kernel", proof)
    }
    /// Waits for kernel locks.
    contention {
        ContentionBegin("lock", "contention_begin", proof), ContentionEnd("lock", "contention_end");
        also ContendedRelease("lock", "contended_release")
    }
    /// Acquisitions and hold times of kernel locks (lockdep kernels only).
    lockdep {
        LockAcquire("lock", "lock_acquire", proof),
        LockAcquired("lock", "lock_acquired"),
        LockContended("lock", "lock_contended"),
        LockRelease("lock", "lock_release")
    }
    not an event {
        /// Call chains.
        stacks: "-g",
        /// Hardware counters.
        counters: "cycles,instructions",
        /// Control groups of threads.
        groups: "--all-cgroups",
    }
    proving nothing {
        StatWait("sched", "sched_stat_wait"),
        StatSleep("sched", "sched_stat_sleep"),
        StatIoWait("sched", "sched_stat_iowait"),
        StatBlocked("sched", "sched_stat_blocked"),
        BlockedReason("sched", "sched_blocked_reason"),
        AttachTask("cgroup", "cgroup_attach_task"),
        PiSetPrio("sched", "sched_pi_setprio"),
        VectorEntry("irq_vectors", "*_entry"),
        VectorExit("irq_vectors", "*_exit"),
        CpuIdle("power", "cpu_idle")
    }
}

impl Capabilities {
    /// What the capability of this name is for; empty for an unknown name.
    pub fn purpose(name: &str) -> &'static str {
        match name {
            "switches" => "CPU time of every thread, idle time of every CPU",
            "wakeups" => "time ready without a CPU, as distinct from sleep",
            "wakers" => "who waits for whom",
            "migrations" => "moves of threads between CPUs",
            "lifecycle" => "starts and ends of threads and programs",
            "stat_runtime" => "CPU time as the scheduler charges it to threads",
            "syscalls" => "time in each system call; the call in which a thread sleeps",
            "irqs" => "time in interrupt handlers",
            "softirqs" => "time in softirqs",
            "workqueues" => "work items of kernel workers",
            "page_faults" => "page fault rates",
            "contention" => "waits for kernel locks (Linux 5.19 or later)",
            "lockdep" => "hold times of kernel locks (kernels built with lockdep)",
            "stacks" => "which code waits, makes system calls and runs",
            "counters" => "work distinguished from stalls",
            "groups" => "services and containers",
            _ => "",
        }
    }
}

impl EventKind {
    /// The event `name` of `system` (`sched`, `sched_switch`); `None` if holdup does not interpret
    /// it. Meant to be called once per event of a file.
    pub fn of(system: &str, name: &str) -> Option<EventKind> {
        EventKind::ALL.iter().copied().find(|k| k.system() == system && k.detail(name).is_some())
    }

    /// The event of exactly this name, for text without the system. Families are left out, because
    /// their names end or begin like those of other systems' events.
    pub fn by_name(name: &str) -> Option<EventKind> {
        EventKind::ALL.iter().copied().find(|k| k.names().1 == name)
    }

    /// Its system: `sched`.
    pub const fn system(self) -> &'static str {
        self.names().0
    }

    /// Its name without the system: `sched_switch`; `sys_enter_*` for a family.
    pub const fn kernel_name(self) -> &'static str {
        self.names().1
    }

    /// The part of `name` that `*` stands for in a family (`read` of `sys_enter_read`), empty for a
    /// single event; `None` if the event does not have this name.
    pub fn detail(self, name: &str) -> Option<&str> {
        match self.names().1.split_once('*') {
            Some((before, after)) => name.strip_prefix(before)?.strip_suffix(after),
            None => (self.names().1 == name).then_some(""),
        }
    }
}

impl fmt::Display for EventKind {
    /// As perf spells it: `sched:sched_switch`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (system, name) = self.names();
        write!(f, "{system}:{name}")
    }
}

/// The kernel's name of a softirq (`include/linux/interrupt.h`, `softirq_to_name`): `NET_RX`.
pub fn softirq_name(vec: u32) -> Option<&'static str> {
    const NAMES: [&str; 10] = [
        "HI", "TIMER", "NET_TX", "NET_RX", "BLOCK", "IRQ_POLL", "TASKLET", "SCHED", "HRTIMER",
        "RCU",
    ];
    NAMES.get(vec as usize).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_event_is_found_by_its_own_names() {
        for &kind in EventKind::ALL {
            let name = kind.names().1.replace('*', "read");
            assert_eq!(EventKind::of(kind.system(), &name), Some(kind), "{kind}");
        }
        assert_eq!(EventKind::of("synthetic", "sched_switch"), None);
        assert_eq!(EventKind::of("irq", "tasklet_entry"), None);
        assert_eq!(EventKind::by_name("sched_switch"), Some(EventKind::Switch));
        assert_eq!(EventKind::by_name("reschedule_entry"), None);
        assert_eq!(EventKind::SysEnterNamed.detail("sys_enter_read"), Some("read"));
        assert_eq!(EventKind::VectorExit.detail("local_timer_exit"), Some("local_timer"));
    }

    #[test]
    fn what_to_record_is_spelled_as_perf_wants_it() {
        let list = Capabilities::default().list();
        let of = |name| list.iter().find(|c| c.0 == name).expect("there is one").2;
        assert_eq!(of("wakeups"), "sched:sched_wakeup,sched:sched_wakeup_new");
        assert_eq!(of("softirqs"), "irq:softirq_entry,irq:softirq_exit");
        assert_eq!(of("stacks"), "-g");
    }
}
