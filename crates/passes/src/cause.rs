//! What a sleep was for, and the unit of the shares of idle time that sleeps get.

/// Fraction bits of the integral.
pub(crate) const FRACTION: u32 = 32;

/// What a thread waited for.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Cause {
    /// A futex: mutex, rwlock, condition variable, barrier of the threads library.
    ThreadSync,
    /// A kernel service used to contend or hand over work: semaphore, message queue, file lock,
    /// pipe, local socket.
    KernelService,
    /// A contended lock of the kernel itself.
    KernelLock,
    /// Disk, swap, file system.
    Io,
    /// Something outside: terminal, network peer, a device's interrupt.
    External,
    /// Asleep for a reason the trace does not show (no system calls recorded).
    Unknown,
}

impl Cause {
    /// All of them.
    pub const ALL: [Cause; 6] = [
        Cause::ThreadSync,
        Cause::KernelService,
        Cause::KernelLock,
        Cause::Io,
        Cause::External,
        Cause::Unknown,
    ];

    /// Whether another thread ends such a wait: threads contend, or hand something over.
    pub fn is_ended_by_thread(self) -> bool {
        matches!(self, Cause::ThreadSync | Cause::KernelService)
    }

    /// Whether nothing on this machine could have ended it sooner.
    pub fn is_idle(self) -> bool {
        matches!(self, Cause::External | Cause::Unknown)
    }
}
