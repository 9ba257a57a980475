//! Which system calls concern objects, and what their arguments mean.

use holdup_syscalls::without_width;

/// What a call does to an object that threads wait for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum Class {
    /// Nothing: its arguments are never used.
    #[default]
    None,
    /// `futex`.
    Futex,
    /// `futex_wait`, `futex_wake`: one operation each, with other arguments.
    Futex2Wait,
    Futex2Wake,
    /// `futex_waitv`: its addresses are behind a pointer.
    Waitv,
    Semop,
    MsgReceive,
    MsgSend,
    /// POSIX queues.
    MqReceive,
    MqSend,
    Flock,
    Fcntl,
    Read,
    Write,
    Receive,
    Send,
    Accept,
    Connect,
    Epoll,
    /// Creates a descriptor and returns it.
    Open,
    Socket,
    Eventfd,
    Timerfd,
    EpollCreate,
    MqOpen,
    Dup,
    /// `dup2`, `dup3`: to a given number.
    DupTo,
    Close,
    CloseRange,
    /// `clone`: flags in its first argument; `clone3`: behind a pointer; `fork`, `vfork`: none.
    Clone,
    Clone3,
    Fork,
    /// Waits for a child.
    Child,
}

impl Class {
    /// The class of the call with this name.
    pub(crate) fn of(name: &str) -> Class {
        match without_width(name) {
            "futex" => Class::Futex,
            "futex_wait" => Class::Futex2Wait,
            "futex_wake" => Class::Futex2Wake,
            "futex_waitv" => Class::Waitv,
            "semop" | "semtimedop" => Class::Semop,
            "msgrcv" => Class::MsgReceive,
            "msgsnd" => Class::MsgSend,
            "mq_timedreceive" => Class::MqReceive,
            "mq_timedsend" => Class::MqSend,
            "flock" => Class::Flock,
            "fcntl" | "fcntl64" => Class::Fcntl,
            "read" | "pread64" | "readv" | "preadv" | "preadv2" | "getdents" | "getdents64" => {
                Class::Read
            }
            "write" | "pwrite64" | "writev" | "pwritev" | "pwritev2" | "fsync" | "fdatasync"
            | "sync_file_range" | "ftruncate" | "fallocate" => Class::Write,
            "recvfrom" | "recvmsg" | "recvmmsg" | "recv" => Class::Receive,
            "sendto" | "sendmsg" | "sendmmsg" | "send" => Class::Send,
            "accept" | "accept4" => Class::Accept,
            "connect" => Class::Connect,
            "epoll_wait" | "epoll_pwait" | "epoll_pwait2" | "epoll_wait_old" => Class::Epoll,
            "open" | "openat" | "openat2" | "creat" | "memfd_create" | "open_by_handle_at" => {
                Class::Open
            }
            "socket" => Class::Socket,
            "eventfd" | "eventfd2" => Class::Eventfd,
            "timerfd_create" => Class::Timerfd,
            "epoll_create" | "epoll_create1" => Class::EpollCreate,
            "mq_open" => Class::MqOpen,
            "dup" => Class::Dup,
            "dup2" | "dup3" => Class::DupTo,
            "close" => Class::Close,
            "close_range" => Class::CloseRange,
            "clone" => Class::Clone,
            "clone3" => Class::Clone3,
            "fork" | "vfork" => Class::Fork,
            "wait4" | "waitid" | "waitpid" => Class::Child,
            _ => Class::None,
        }
    }

    /// Whether its return changes anything.
    pub(crate) fn returns(self) -> bool {
        !matches!(
            self,
            Class::None
                | Class::Read
                | Class::Write
                | Class::Receive
                | Class::Send
                | Class::Epoll
                | Class::Waitv
                | Class::Clone
                | Class::Clone3
                | Class::Fork
                | Class::Child
        )
    }

    /// Whether all its arguments count; of the others only the first is ever used.
    pub(crate) fn needs_all_arguments(self) -> bool {
        matches!(
            self,
            Class::Futex
                | Class::Futex2Wait
                | Class::Futex2Wake
                | Class::Flock
                | Class::Fcntl
                | Class::CloseRange
        )
    }

    /// Whether it moves bytes through a pipe, file or terminal: a writer ends the wait of a reader.
    pub(crate) fn is_stream(self) -> bool {
        matches!(self, Class::Read | Class::Write)
    }
}

/// A decoded futex call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Futex {
    pub(crate) op: FutexOp,
    pub(crate) addr: u64,
    /// Second address: where waiters are requeued.
    pub(crate) addr2: u64,
    /// Within one address space only.
    pub(crate) private: bool,
    pub(crate) val: u32,
}

/// `FUTEX_*`, by what it does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum FutexOp {
    Wait,
    /// `WAIT_BITSET`, `WAIT_REQUEUE_PI`: used by glibc's condition variables, rwlocks and
    /// semaphores.
    WaitBitset,
    Wake,
    /// `REQUEUE`, `CMP_REQUEUE`, `CMP_REQUEUE_PI`: wakes some waiters, moves the rest.
    Requeue,
    /// Wakes waiters of both addresses.
    WakeOp,
    LockPi,
    UnlockPi,
    Other,
}

impl FutexOp {
    /// Whether it ends waits of others. A thread that sleeps in the call ends no wait by it:
    /// wake-ups on top of it come from interrupts.
    pub(crate) fn wakes(self) -> bool {
        !matches!(self, FutexOp::Wait | FutexOp::WaitBitset | FutexOp::LockPi)
    }
}

const FUTEX_PRIVATE: u64 = 128;
const FUTEX_CLOCK_REALTIME: u64 = 256;
// The mask that finds an operation drops it.
const _: () = assert!(FUTEX_CLOCK_REALTIME & 0x7f == 0);
const FUTEX2_PRIVATE: u64 = 128;

/// Decode the arguments of a call of class `Futex`, `Futex2Wait` or `Futex2Wake`.
pub(crate) fn futex(class: Class, args: &[u64; 5]) -> Futex {
    match class {
        Class::Futex2Wait => {
            let private = args[3] & FUTEX2_PRIVATE != 0;
            Futex { op: FutexOp::WaitBitset, addr: args[0], addr2: 0, private, val: args[1] as u32 }
        }
        Class::Futex2Wake => {
            let private = args[3] & FUTEX2_PRIVATE != 0;
            Futex { op: FutexOp::Wake, addr: args[0], addr2: 0, private, val: args[2] as u32 }
        }
        _ => {
            let op = match args[1] & 0x7f {
                0 => FutexOp::Wait,
                1 | 10 => FutexOp::Wake,
                3 | 4 | 12 => FutexOp::Requeue,
                5 => FutexOp::WakeOp,
                6 | 8 | 13 => FutexOp::LockPi,
                7 => FutexOp::UnlockPi,
                9 | 11 => FutexOp::WaitBitset,
                _ => FutexOp::Other,
            };
            Futex {
                op,
                addr: args[0],
                addr2: args[4],
                private: args[1] & FUTEX_PRIVATE != 0,
                val: args[2] as u32,
            }
        }
    }
}

/// `LOCK_*` of `flock`.
pub(crate) const LOCK_UN: u64 = 8;

/// What a `fcntl` command does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum FcntlOp {
    /// Takes or releases a lock; which of the two is behind a pointer.
    Lock,
    Dup,
    Other,
}

/// Decodes a command.
pub(crate) fn fcntl(cmd: u64) -> FcntlOp {
    match cmd {
        // F_SETLK, F_SETLKW; the 64-bit versions of 32-bit machines; F_OFD_SETLK, F_OFD_SETLKW.
        6 | 7 | 13 | 14 | 37 | 38 => FcntlOp::Lock,
        // F_DUPFD, F_DUPFD_CLOEXEC.
        0 | 1030 => FcntlOp::Dup,
        _ => FcntlOp::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn futex_operations() {
        let f = |op, val| futex(Class::Futex, &[0x1000, op, val, 0, 0x2000]);
        assert_eq!(
            f(0x80, 2),
            Futex { op: FutexOp::Wait, addr: 0x1000, addr2: 0x2000, private: true, val: 2 }
        );
        assert_eq!(f(0x189, 0).op, FutexOp::WaitBitset);
        assert_eq!((f(1, 1).op, f(1, 1).private), (FutexOp::Wake, false));
        assert_eq!(f(0x84, 1).op, FutexOp::Requeue);
        assert_eq!(f(0x85, 1).op, FutexOp::WakeOp);
        assert_eq!(
            (f(0x86, 0).op, f(0x8d, 0).op, f(0x87, 0).op),
            (FutexOp::LockPi, FutexOp::LockPi, FutexOp::UnlockPi)
        );
        assert_eq!(f(0x8b, 0).op, FutexOp::WaitBitset);
        assert_eq!(futex(Class::Futex2Wake, &[0x1000, 1, 7, 0x82, 0]).val, 7);
    }

    #[test]
    fn of_every_edition() {
        assert_eq!(Class::of("futex_time64"), Class::Futex);
        assert_eq!(Class::of("semtimedop_time64"), Class::Semop);
        assert_eq!(Class::of("getpid"), Class::None);
        assert!(!Class::Read.returns() && Class::Open.returns());
        assert_eq!(
            (fcntl(7), fcntl(1030), fcntl(3)),
            (FcntlOp::Lock, FcntlOp::Dup, FcntlOp::Other)
        );
    }
}
