//! Classifies system calls by the state that they leave behind.

use holdup_syscalls::{Direction, begets, io_direction, is_signal, wait_kind, without_width};

/// `FUTEX_CMD_MASK`, and the operations that wait.
const FUTEX_OP: u64 = 0x7f;
const FUTEX_WAIT: u64 = 0;
const FUTEX_WAIT_BITSET: u64 = 9;
/// `F_SETLK` and `F_SETLKW`, their 32-bit variants, and `F_OFD_SETLK` and `F_OFD_SETLKW`.
const FILE_LOCKS: [u64; 6] = [6, 7, 13, 14, 37, 38];

/// How a system call changes state.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum About {
    /// It makes a descriptor.
    Opens,
    /// It duplicates a descriptor.
    Copies,
    Closes,
    /// It creates a thread or process, and returns its number.
    Begets,
    /// It operates on the number or address in its first argument.
    First,
    /// Like `First`, on something that threads acquire and release by such calls.
    Lock,
    /// Like `Lock`, unless it is another operation on the descriptor.
    FileLock,
    /// A futex: its address, and the operation.
    Futex,
    Nothing,
}

impl About {
    /// The class of the call with this name.
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

    /// The class of the call with these arguments.
    pub(crate) fn with(self, args: &[u64; 6]) -> About {
        match self {
            About::FileLock if FILE_LOCKS.contains(&args[1]) => About::Lock,
            About::FileLock => About::Nothing,
            about => about,
        }
    }
}

/// Whether another thread of its program may wake a thread asleep in a call of this name.
pub(crate) fn awaits_events(name: &str) -> bool {
    wait_kind(name).is_event()
}

/// Whether a call of this name may wake such a thread.
pub(crate) fn lets_go(name: &str) -> bool {
    is_signal(name) || name.starts_with("send") || io_direction(name) == Some(Direction::Write)
}

/// Whether a call of `futex` waits.
pub(crate) fn futex_waits(args: &[u64; 6]) -> bool {
    matches!(args[1] & FUTEX_OP, FUTEX_WAIT | FUTEX_WAIT_BITSET)
}
