//! Which system calls a preset of the recorder traces, and why: the only list of them.
//!
//! `raw_syscalls:*` makes every call of the machine slower by more than a microsecond. Tracepoints
//! of single calls cost the calls that are not traced next to nothing. So a recording contains the
//! calls from which a verdict follows. The others are untraced: no event shows them.
//!
//! A call is here because a thread may sleep in it for another thread or a device, because it burns
//! time on locks of the kernel, or because it gives meaning to the arguments of another call. Each
//! costs the recorder two tracepoints on each CPU, so rarely used variants are left out. Reads and
//! sockets are by far the most frequent calls of most programs, and are not traced: switches and
//! wake-ups still show a thread that sleeps in an untraced call, and its waker.

/// What to record, from least to most.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Preset {
    /// No system call: the scheduler's events alone.
    Sched,
    /// Calls by which threads wait for each other.
    Locks,
    /// Calls from which verdicts follow.
    Full,
}

/// Calls that are recorded for one reason.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Family {
    /// The smallest preset that records them.
    pub preset: Preset,
    /// What would be missing without them.
    pub why: &'static str,
    /// Named like the tracepoints `syscalls:sys_enter_NAME`, after the kernel's entry points,
    /// without the suffixes `_time32` and `_time64` of 32-bit machines, which mean the same.
    pub calls: &'static [&'static str],
}

use crate::without_width;
use Preset::{Full, Locks};

/// The calls of all presets, by the reason to record them.
pub const FAMILIES: &[Family] = &[
    Family {
        preset: Locks,
        why: "objects of the threads library: which thread waits at which address, and which \
              thread wakes it",
        calls: &["futex", "futex_wait", "futex_waitv", "futex_wake", "futex_requeue"],
    },
    Family {
        preset: Locks,
        why: "semaphores and message queues between processes; old 32-bit programs use ipc",
        calls: &[
            "semop",
            "semtimedop",
            "msgsnd",
            "msgrcv",
            "mq_timedsend",
            "mq_timedreceive",
            "ipc",
        ],
    },
    Family { preset: Locks, why: "locks on files", calls: &["flock", "fcntl", "fcntl64"] },
    Family {
        preset: Locks,
        why: "waiting by yielding the CPU repeatedly",
        calls: &["sched_yield"],
    },
    Family {
        preset: Locks,
        why: "waiting for one of several descriptors: an idle event loop, or a latch",
        calls: &[
            "poll",
            "ppoll",
            "select",
            "pselect6",
            "epoll_wait",
            "epoll_pwait",
            "epoll_pwait2",
        ],
    },
    Family {
        preset: Locks,
        why: "sending signals and waiting for them: some programs wake their processes in this way",
        calls: &[
            "pause",
            "sigsuspend",
            "rt_sigsuspend",
            "rt_sigtimedwait",
            "kill",
            "tkill",
            "tgkill",
        ],
    },
    Family {
        preset: Locks,
        why: "sleep for a set time, or between two tries to get a lock",
        calls: &["nanosleep", "clock_nanosleep"],
    },
    Family {
        preset: Locks,
        why: "waiting for a child to end: the child does the work",
        calls: &["wait4", "waitid", "waitpid"],
    },
    Family {
        preset: Full,
        why: "waiting for a peer to connect: an idle server",
        calls: &["accept", "accept4", "connect"],
    },
    Family {
        preset: Full,
        why: "completions of asynchronous input and output",
        calls: &["io_getevents", "io_submit", "io_uring_enter"],
    },
    Family {
        preset: Full,
        why: "changes of the address space: waiting for the lock of the address space, and for TLB \
              shootdowns on the CPUs of other threads of the process",
        calls: &[
            "mmap",
            "mmap_pgoff",
            "old_mmap",
            "munmap",
            "mremap",
            "mprotect",
            "madvise",
            "brk",
            "mlock",
            "munlock",
        ],
    },
    Family {
        preset: Full,
        why: "writing: waiting for the lock of the file and for room in a pipe or for dirty pages; \
              it also shows which thread ends the wait of a reader",
        calls: &[
            "write",
            "pwrite64",
            "writev",
            "pwritev",
            "pwritev2",
            "sendfile",
            "sendfile64",
            "splice",
            "copy_file_range",
            "ftruncate",
            "fallocate",
        ],
    },
    Family {
        preset: Full,
        why: "data forced to the disk",
        calls: &[
            "fsync",
            "fdatasync",
            "sync",
            "syncfs",
            "msync",
            "sync_file_range",
            "sync_file_range2",
        ],
    },
    Family {
        preset: Full,
        why: "file names: waiting for the locks of directories and of the journal; they also show \
              what a descriptor refers to",
        calls: &[
            "open",
            "openat",
            "openat2",
            "creat",
            "close",
            "rename",
            "renameat2",
            "unlink",
            "unlinkat",
        ],
    },
    Family {
        preset: Full,
        why: "descriptors that are copied, or made by other calls than open: they show what a \
              descriptor number refers to",
        calls: &["dup", "dup2", "dup3", "close_range", "socket", "eventfd2"],
    },
    Family {
        preset: Full,
        why: "threads and processes that start, exec and end: they show to which process a thread \
              belongs",
        calls: &["clone", "clone3", "fork", "vfork", "execve", "exit", "exit_group"],
    },
];

impl Preset {
    /// Whether it records the call behind the tracepoint `syscalls:sys_enter_ENTRY`.
    ///
    /// ```
    /// use holdup_syscalls::Preset;
    /// assert!(Preset::Locks.records("futex") && Preset::Full.records("futex_time32"));
    /// assert!(!Preset::Locks.records("mmap") && !Preset::Full.records("getppid"));
    /// ```
    pub fn records(self, entry: &str) -> bool {
        let plain = without_width(entry);
        self.calls().any(|call| call == plain)
    }

    /// The calls it records, if the kernel has them; spelled as in [`Family::calls`].
    pub fn calls(self) -> impl Iterator<Item = &'static str> {
        let families = FAMILIES.iter().filter(move |f| f.preset <= self);
        families.flat_map(|f| f.calls.iter().copied())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Arch, entry_number};
    use std::collections::HashSet;

    #[test]
    fn every_call_is_listed_once_and_exists_somewhere() {
        let mut seen = HashSet::new();
        for call in Preset::Full.calls() {
            assert!(seen.insert(call), "{call} stands twice");
            let archs = [Arch::X86_64, Arch::I386, Arch::Aarch64, Arch::Arm];
            assert!(archs.iter().any(|&a| entry_number(a, call).is_some()), "no call is {call}");
        }
    }

    #[test]
    fn a_preset_holds_what_the_lesser_ones_hold() {
        assert_eq!(Preset::Sched.calls().count(), 0);
        assert!(Preset::Locks.calls().all(|call| Preset::Full.records(call)));
        assert!(Preset::Locks.calls().count() < Preset::Full.calls().count());
    }

    #[test]
    fn a_preset_traces_both_editions_of_a_call_on_32_bit_machines() {
        assert!(Preset::Locks.records("semtimedop_time32"));
        assert!(Preset::Locks.records("clock_nanosleep_time64"));
        assert!(!Preset::Full.records("clock_gettime64"));
    }

    #[test]
    fn calls_that_are_made_all_the_time_are_not_traced() {
        for call in ["read", "pread64", "recvfrom", "recvmsg", "sendto", "sendmsg", "newfstat"] {
            assert!(!Preset::Full.records(call), "{call}");
        }
    }
}
