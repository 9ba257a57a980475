//! What a call is for: what its callers wait for, and which way it moves data.

use crate::{Arch, name, table_len};

/// What a thread asleep in a call most plausibly waits for, judged by the call alone.
///
/// It is a first guess. The file descriptor, the address, the waker, and whether the thread slept
/// interruptibly (`S`: another thread's doing) or not (`D`: disk, or a lock in the kernel) say
/// more. A thread in `D` state in any call may just wait for a kernel lock.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub enum WaitKind {
    /// A futex: pthread mutex, condition variable, rwlock, barrier, POSIX semaphore, `join`. Many
    /// threads in it while CPUs idle mean serialization within the program. A worker pool without
    /// work looks the same; only the wakers distinguish the two.
    ThreadSync,
    /// A System V semaphore: processes queue on each other, or on one server that posts. (`ipc`,
    /// the old 32-bit multiplexer, counts as this; it carries message queues too.)
    Semaphore,
    /// A System V or POSIX message queue, empty for the reader or full for the writer.
    MessageQueue,
    /// A lock on a file (`flock`, `fcntl` `F_SETLKW`): processes queue on each other. Other uses of
    /// `fcntl` do not sleep.
    FileLock,
    /// Bytes to or from a descriptor: disk, pipe, terminal or socket. The state of the sleep tells
    /// disk (`D`) from the rest (`S`).
    ReadWrite,
    /// Data on their way to the disk, or asynchronous I/O. I/O-bound unless the completions come
    /// from other threads (`io_uring` on sockets).
    DiskSync,
    /// Names and metadata: directory and inode locks, the journal, the disk below. A sleep in it
    /// with idle disks points at a lock in the kernel (one directory, one inode).
    FileSystem,
    /// The layout of the address space: its lock (`mmap_lock`), shared by all threads of a process.
    AddressSpace,
    /// Pages of the address space: its lock, memory to be reclaimed, or a disk to read from.
    Memory,
    /// The network, or a peer on this machine: no data, no room, no answer. A server in `recv` is
    /// usually just idle.
    Socket,
    /// A client: a server in `accept` has nothing to do. Benign.
    Accept,
    /// Readiness of any of several descriptors: an event loop without events. Usually benign.
    Poll,
    /// A time. The program chose to wait; benign, unless it polls by sleeping.
    Timer,
    /// The end of a child process: the work, and the bottleneck, is in the child.
    Child,
    /// A signal.
    Signal,
    /// Creating or ending a thread or process: locks and memory for the copy; in `vfork`, the
    /// child's `exec`.
    Process,
    /// Nothing: the thread yielded its CPU and stays runnable. Very many calls are a spin loop in
    /// disguise.
    Yield,
    /// Nothing that the call alone tells (`ioctl`, `restart_syscall`), or the call does not wait.
    #[default]
    Other,
}

impl WaitKind {
    /// Whether it is a service of the kernel on which threads and processes queue.
    pub fn is_service(self) -> bool {
        matches!(self, WaitKind::Semaphore | WaitKind::MessageQueue | WaitKind::FileLock)
    }

    /// Whether it exists for threads to contend: these services, and the threads library.
    pub fn is_for_contention(self) -> bool {
        self.is_service() || self == WaitKind::ThreadSync
    }

    /// Whether it is an object of the threads library.
    pub fn is_library(self) -> bool {
        self == WaitKind::ThreadSync
    }

    /// Whether it moves bytes to or from another thread or a peer: pipes and sockets. (Files too;
    /// the waker distinguishes them.)
    pub fn is_stream(self) -> bool {
        matches!(self, WaitKind::ReadWrite | WaitKind::Socket)
    }

    /// Whether it may wait for a disk if the sleep is uninterruptible.
    pub fn reaches_disk(self) -> bool {
        use WaitKind::*;
        matches!(self, ReadWrite | DiskSync | FileSystem | Memory)
    }

    /// Whether the program chose to wait, or does not wait at all: idle CPUs could not have ended
    /// it sooner.
    pub fn is_benign(self) -> bool {
        use WaitKind::*;
        matches!(self, Accept | Timer | Child | Signal | Poll | Process | Yield)
    }

    /// Whether it waits for any of several things, or for a signal: an event loop waits for work in
    /// this way, and a process waits for another process of its program.
    pub fn is_event(self) -> bool {
        matches!(self, WaitKind::Poll | WaitKind::Signal)
    }
}

/// A call's name without the suffixes `_time32` and `_time64`, which 32-bit machines use for the
/// versions with 32-bit and 64-bit times: they mean the same.
///
/// ```
/// assert_eq!(holdup_syscalls::without_width("futex_time64"), "futex");
/// assert_eq!(holdup_syscalls::without_width("clock_gettime64"), "clock_gettime64");
/// ```
pub fn without_width(name: &str) -> &str {
    ["_time64", "_time32"].into_iter().find_map(|s| name.strip_suffix(s)).unwrap_or(name)
}

/// What a thread asleep in the call named `name` most plausibly waits for. Knows the spellings of
/// the tables of all architectures, and those of the kernel's entry points that differ from all
/// table spellings (`newfstat`, `futex_time32`).
pub fn wait_kind(name: &str) -> WaitKind {
    use WaitKind::*;
    match without_width(name) {
        "futex" | "futex_wait" | "futex_waitv" | "futex_wake" | "futex_requeue" => ThreadSync,

        "semop" | "semtimedop" | "ipc" => Semaphore,

        "msgsnd" | "msgrcv" | "mq_timedsend" | "mq_timedreceive" => MessageQueue,

        "flock" | "fcntl" | "fcntl64" => FileLock,

        "read" | "write" | "pread64" | "pwrite64" | "readv" | "writev" | "preadv" | "pwritev"
        | "preadv2" | "pwritev2" | "splice" | "sendfile" | "sendfile64" | "copy_file_range"
        | "tee" | "vmsplice" => ReadWrite,

        "fsync"
        | "fdatasync"
        | "sync"
        | "syncfs"
        | "msync"
        | "sync_file_range"
        | "sync_file_range2"
        | "arm_sync_file_range"
        | "io_getevents"
        | "io_pgetevents"
        | "io_submit"
        | "io_uring_enter" => DiskSync,

        // Opening, making, removing.
        "open" | "openat" | "openat2" | "open_by_handle_at" | "name_to_handle_at" | "creat"
        | "unlink" | "unlinkat" | "rename" | "renameat" | "renameat2" | "mkdir" | "mkdirat"
        | "rmdir" | "mknod" | "mknodat" | "link" | "linkat" | "symlink" | "symlinkat" => FileSystem,
        // Reading metadata.
        "stat" | "lstat" | "fstat" | "stat64" | "lstat64" | "fstat64" | "fstatat" | "fstatat64"
        | "newfstatat" | "newstat" | "newlstat" | "newfstat" | "oldstat" | "oldlstat"
        | "oldfstat" | "statx" | "statfs" | "statfs64" | "fstatfs" | "fstatfs64" | "ustat"
        | "cachestat" | "access" | "faccessat" | "faccessat2" | "readlink" | "readlinkat"
        | "getdents" | "getdents64" | "readdir" | "old_readdir" | "getcwd" | "lseek"
        | "_llseek" | "llseek" | "readahead" | "fadvise64" | "fadvise64_64"
        | "arm_fadvise64_64" | "inotify_add_watch" | "inotify_rm_watch" | "fanotify_mark" => {
            FileSystem
        }
        // Changing.
        "truncate" | "truncate64" | "ftruncate" | "ftruncate64" | "fallocate" | "chmod"
        | "fchmod" | "fchmodat" | "fchmodat2" | "chown" | "fchown" | "lchown" | "fchownat"
        | "chown32" | "fchown32" | "lchown32" | "chown16" | "fchown16" | "lchown16" | "utime"
        | "utime32" | "utimes" | "utimensat" | "futimesat" | "file_getattr" | "file_setattr" => {
            FileSystem
        }
        "setxattr" | "lsetxattr" | "fsetxattr" | "setxattrat" | "getxattr" | "lgetxattr"
        | "fgetxattr" | "getxattrat" | "listxattr" | "llistxattr" | "flistxattr"
        | "listxattrat" | "removexattr" | "lremovexattr" | "fremovexattr" | "removexattrat" => {
            FileSystem
        }
        // Programs and mounts.
        "execve" | "execveat" | "uselib" | "chdir" | "fchdir" | "chroot" | "pivot_root"
        | "mount" | "umount" | "umount2" | "oldumount" | "mount_setattr" | "move_mount"
        | "open_tree" | "open_tree_attr" | "fsopen" | "fsmount" | "fsconfig" | "fspick"
        | "statmount" | "listmount" | "swapon" | "swapoff" | "quotactl" | "quotactl_fd"
        | "acct" | "bdflush" => FileSystem,

        "mmap" | "mmap2" | "mmap_pgoff" | "old_mmap" | "munmap" | "mprotect" | "pkey_mprotect"
        | "mremap" | "remap_file_pages" | "brk" | "mseal" | "map_shadow_stack" | "shmat"
        | "shmdt" => AddressSpace,

        "madvise"
        | "process_madvise"
        | "process_mrelease"
        | "mlock"
        | "mlock2"
        | "mlockall"
        | "munlock"
        | "munlockall"
        | "mincore"
        | "mbind"
        | "get_mempolicy"
        | "set_mempolicy"
        | "set_mempolicy_home_node"
        | "migrate_pages"
        | "move_pages"
        | "process_vm_readv"
        | "process_vm_writev"
        | "memfd_create"
        | "memfd_secret" => Memory,

        "recvfrom" | "recvmsg" | "recvmmsg" | "recv" | "sendto" | "sendmsg" | "sendmmsg"
        | "send" | "connect" | "socketcall" | "socket" | "socketpair" | "bind" | "listen"
        | "shutdown" | "getsockopt" | "setsockopt" | "getsockname" | "getpeername" => Socket,

        "accept" | "accept4" => Accept,

        "poll" | "ppoll" | "select" | "_newselect" | "old_select" | "pselect6" | "epoll_wait"
        | "epoll_wait_old" | "epoll_pwait" | "epoll_pwait2" => Poll,

        "nanosleep" | "clock_nanosleep" => Timer,

        "wait4" | "waitid" | "waitpid" => Child,

        "pause" | "rt_sigsuspend" | "sigsuspend" | "rt_sigtimedwait" => Signal,

        "fork" | "vfork" | "clone" | "clone3" | "exit" | "exit_group" => Process,

        "sched_yield" => Yield,

        // `close` releases: a thread that sleeps in it waits for a grace period, or for whatever
        // the descriptor was.
        _ => Other,
    }
}

/// [`wait_kind`] of every call of `arch`, indexed by number; numbers without a call are
/// [`WaitKind::Other`]. Empty for [`Arch::Other`]; x32 and private Arm calls lie beyond its end.
pub fn wait_kinds(arch: Arch) -> Vec<WaitKind> {
    (0..table_len(arch) as u32)
        .map(|nr| name(arch, nr).map_or(WaitKind::Other, wait_kind))
        .collect()
}

/// Which way a call moves bytes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Direction {
    /// Into the program.
    Read,
    /// Out of the program.
    Write,
}

/// The direction of a call that returns a number of transferred bytes: `sar -c` sums these as
/// `rchar` and `wchar`. Socket calls (`recvfrom`, …) and copies within the kernel (`splice`,
/// `sendfile`, …) do not count.
pub fn io_direction(name: &str) -> Option<Direction> {
    match name {
        "read" | "readv" | "pread64" | "preadv" | "preadv2" => Some(Direction::Read),
        "write" | "writev" | "pwrite64" | "pwritev" | "pwritev2" => Some(Direction::Write),
        _ => None,
    }
}

/// Whether it is an operation on a System V semaphore, which `sar -m` counts as `sema/s`. Not
/// `ipc`, whose first argument decides.
pub fn is_semaphore(name: &str) -> bool {
    name != "ipc" && wait_kind(name) == WaitKind::Semaphore
}

/// Whether it changes the address space that a thread shares with its siblings: it takes the lock
/// of the address space (`mmap_lock`), and may have to flush TLBs of the siblings' CPUs.
pub fn changes_address_space(name: &str) -> bool {
    matches!(
        name,
        "mmap"
            | "mmap2"
            | "old_mmap"
            | "munmap"
            | "mremap"
            | "mprotect"
            | "pkey_mprotect"
            | "madvise"
            | "brk"
            | "mlock"
            | "mlock2"
            | "munlock"
            | "mseal"
    )
}

/// Whether it sends a signal to another thread or process.
pub fn is_signal(name: &str) -> bool {
    matches!(
        name,
        "kill" | "tkill" | "tgkill" | "rt_sigqueueinfo" | "rt_tgsigqueueinfo" | "pidfd_send_signal"
    )
}

/// Whether it creates a thread or process: the call also returns in the new one, with 0.
pub fn begets(name: &str) -> bool {
    matches!(name, "clone" | "clone3" | "fork" | "vfork")
}

/// Whether it sends or receives a message of a System V or POSIX queue: `msg/s` of `sar -m`.
pub fn is_message(name: &str) -> bool {
    wait_kind(name) == WaitKind::MessageQueue
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{entry_number, number};
    use WaitKind::*;

    #[test]
    fn one_of_each() {
        for (call, kind) in [
            ("futex", ThreadSync),
            ("futex_time64", ThreadSync),
            ("futex_time32", ThreadSync),
            ("futex_waitv", ThreadSync),
            ("futex_requeue", ThreadSync),
            ("semop", Semaphore),
            ("semtimedop_time64", Semaphore),
            ("ipc", Semaphore),
            ("mq_timedreceive_time64", MessageQueue),
            ("fcntl64", FileLock),
            ("pwritev2", ReadWrite),
            ("copy_file_range", ReadWrite),
            ("io_pgetevents_time64", DiskSync),
            ("io_uring_enter", DiskSync),
            ("newfstatat", FileSystem),
            ("newfstat", FileSystem),
            ("utimensat_time64", FileSystem),
            ("munmap", AddressSpace),
            ("munlockall", Memory),
            ("recvmmsg_time64", Socket),
            ("socketcall", Socket),
            ("_newselect", Poll),
            ("pselect6_time64", Poll),
            ("clock_nanosleep_time64", Timer),
            ("waitid", Child),
            ("pause", Signal),
            ("rt_sigtimedwait_time64", Signal),
            ("vfork", Process),
            ("sched_yield", Yield),
            ("getpid", Other),
            ("ioctl", Other),
            ("restart_syscall", Other),
            ("clock_gettime64", Other),
            ("", Other),
        ] {
            assert_eq!(wait_kind(call), kind, "{call}");
        }
    }

    #[test]
    fn by_number() {
        for arch in [Arch::X86_64, Arch::I386, Arch::Aarch64, Arch::Arm] {
            let kinds = wait_kinds(arch);
            assert_eq!(kinds.len(), table_len(arch));
            for (nr, &kind) in kinds.iter().enumerate() {
                assert_eq!(kind, name(arch, nr as u32).map_or(Other, wait_kind));
            }
            // Whichever reading of a tracepoint's spelling is right, the kind of wait is the same.
            for call in [
                "futex",
                "semtimedop",
                "ppoll",
                "clock_nanosleep",
                "fstat",
                "select",
                "mmap",
                "umount",
            ] {
                if let (Some(a), Some(b)) = (number(arch, call), entry_number(arch, call)) {
                    assert_eq!(kinds[a as usize], kinds[b as usize], "{arch} {call}");
                }
            }
            // Every kind occurs on every architecture: no family is misspelt.
            for kind in [
                ThreadSync,
                Semaphore,
                MessageQueue,
                FileLock,
                ReadWrite,
                DiskSync,
                FileSystem,
                AddressSpace,
                Memory,
                Socket,
                Poll,
                Timer,
                Child,
                Signal,
                Process,
                Yield,
                Other,
            ] {
                assert!(kinds.contains(&kind), "{arch} {kind:?}");
            }
        }
        assert!(wait_kinds(Arch::Other).is_empty());
    }

    #[test]
    fn counted_by_sar() {
        assert_eq!(io_direction("preadv2"), Some(Direction::Read));
        assert_eq!(io_direction("writev"), Some(Direction::Write));
        for call in ["recvfrom", "sendto", "sendfile", "splice", "readlink", "readahead", "pread"] {
            assert_eq!(io_direction(call), None, "{call}");
        }
        assert!(
            is_semaphore("semop")
                && is_semaphore("semtimedop")
                && is_semaphore("semtimedop_time64")
        );
        assert!(!is_semaphore("semget") && !is_semaphore("ipc") && !is_semaphore("futex"));
        assert!(is_message("msgsnd") && is_message("mq_timedreceive"));
        assert!(!is_message("msgget") && !is_message("sendmsg"));
    }
}
