//! What system calls are about, for the state that they leave behind.

use holdup_syscalls::{Direction, begets, io_direction, is_signal, wait_kind, without_width};

/// `FUTEX_CMD_MASK`, and the operations that wait.
const FUTEX_OP: u64 = 0x7f;
const FUTEX_WAIT: u64 = 0;
const FUTEX_WAIT_BITSET: u64 = 9;
/// `F_SETLK` and `F_SETLKW`, those of 32-bit machines, and `F_OFD_SETLK` and `F_OFD_SETLKW`.
const FILE_LOCKS: [u64; 6] = [6, 7, 13, 14, 37, 38];

/// What a system call is about.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum About {
    /// It makes a descriptor.
    Opens,
    /// It makes the descriptor it returns mean what another does.
    Copies,
    Closes,
    /// It makes a thread or process, and returns its number.
    Begets,
    /// Something with the number or address in its first argument.
    First,
    /// The same, which threads take and give back by such calls.
    Lock,
    /// The same, if it is no other operation on the descriptor.
    FileLock,
    /// A futex: the address, and what is done.
    Futex,
    Nothing,
}

impl About {
    /// Of the call of this name.
    pub(crate) fn of(name: &str) -> About {
        match without_width(name) {
            "open" | "openat" | "openat2" | "creat" | "memfd_create" | "open_by_handle_at"
            | "socket" | "accept" | "accept4" | "eventfd" | "eventfd2" | "timerfd_create"
            | "epoll_create" | "epoll_create1" | "mq_open" => About::Opens,
            "dup" | "dup2" | "dup3" => About::Copies,
            "close" => About::Closes,
            "futex" | "futex_wait" | "futex_wake" | "futex_requeue" => About::Futex,
            "semop" | "semtimedop" | "flock" => About::Lock,
            "fcntl" | "fcntl64" => About::FileLock,
            "msgrcv" | "msgsnd" | "mq_timedreceive" | "mq_timedsend" | "read" | "pread64"
            | "readv" | "preadv" | "preadv2" | "write" | "pwrite64" | "writev" | "pwritev"
            | "pwritev2" | "fsync" | "fdatasync" | "recvfrom" | "recvmsg" | "recvmmsg" | "recv"
            | "sendto" | "sendmsg" | "sendmmsg" | "send" | "connect" | "epoll_wait"
            | "epoll_pwait" | "epoll_pwait2" | "wait4" | "waitid" => About::First,
            name if begets(name) => About::Begets,
            _ => About::Nothing,
        }
    }

    /// With these arguments.
    pub(crate) fn with(self, args: &[u64; 6]) -> About {
        match self {
            About::FileLock if FILE_LOCKS.contains(&args[1]) => About::Lock,
            About::FileLock => About::Nothing,
            about => about,
        }
    }
}

/// Whether a thread asleep in a call of this name may be let go on by another of its program.
pub(crate) fn awaits_events(name: &str) -> bool {
    wait_kind(name).is_event()
}

/// Whether another may let it go on by a call of this name.
pub(crate) fn lets_go(name: &str) -> bool {
    is_signal(name) || name.starts_with("send") || io_direction(name) == Some(Direction::Write)
}

/// Whether a call of `futex` waits.
pub(crate) fn futex_waits(args: &[u64; 6]) -> bool {
    matches!(args[1] & FUTEX_OP, FUTEX_WAIT | FUTEX_WAIT_BITSET)
}
