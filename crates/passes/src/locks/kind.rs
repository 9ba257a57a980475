//! Kinds of kernel locks, from the flags of `lock:contention_begin`.

/// `LCB_F_*` of `include/trace/events/lock.h`.
const SPIN: u32 = 1;
const READ: u32 = 2;
const WRITE: u32 = 4;
const RT: u32 = 8;
const PERCPU: u32 = 16;
const MUTEX: u32 = 32;

/// What a lock is and how it is taken, with the distinctions of `perf lock contention`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum LockKind {
    /// `struct semaphore`.
    Semaphore,
    /// Spinlock.
    Spinlock,
    /// Spinning reader-writer lock, for reading.
    RwlockRead,
    /// Spinning reader-writer lock, for writing.
    RwlockWrite,
    /// Sleeping reader-writer semaphore, for reading.
    RwsemRead,
    /// Sleeping reader-writer semaphore, for writing.
    RwsemWrite,
    /// Mutex with priority inheritance; with `PREEMPT_RT` also mutexes and spinlocks.
    RtMutex,
    /// `rwlock_t` with `PREEMPT_RT`, for reading.
    RwlockRtRead,
    /// `rwlock_t` with `PREEMPT_RT`, for writing.
    RwlockRtWrite,
    /// Per-CPU reader-writer semaphore, for reading.
    PercpuSemRead,
    /// Per-CPU reader-writer semaphore, for writing.
    PercpuSemWrite,
    /// Mutex.
    Mutex,
    /// Flags no known kernel writes.
    Unknown,
}

impl LockKind {
    /// Every kind.
    pub const ALL: [LockKind; 13] = [
        LockKind::Semaphore,
        LockKind::Spinlock,
        LockKind::RwlockRead,
        LockKind::RwlockWrite,
        LockKind::RwsemRead,
        LockKind::RwsemWrite,
        LockKind::RtMutex,
        LockKind::RwlockRtRead,
        LockKind::RwlockRtWrite,
        LockKind::PercpuSemRead,
        LockKind::PercpuSemWrite,
        LockKind::Mutex,
        LockKind::Unknown,
    ];

    /// The kind these flags stand for.
    pub fn from_flags(flags: u32) -> LockKind {
        match flags & (SPIN | READ | WRITE | RT | PERCPU | MUTEX) {
            0 => LockKind::Semaphore,
            SPIN => LockKind::Spinlock,
            f if f == SPIN | READ => LockKind::RwlockRead,
            f if f == SPIN | WRITE => LockKind::RwlockWrite,
            READ => LockKind::RwsemRead,
            WRITE => LockKind::RwsemWrite,
            RT => LockKind::RtMutex,
            f if f == RT | READ => LockKind::RwlockRtRead,
            f if f == RT | WRITE => LockKind::RwlockRtWrite,
            f if f == PERCPU | READ => LockKind::PercpuSemRead,
            f if f == PERCPU | WRITE => LockKind::PercpuSemWrite,
            // Spinning because the running owner may release it soon; or asleep.
            f if f & !SPIN == MUTEX => LockKind::Mutex,
            _ => LockKind::Unknown,
        }
    }

    /// perf's name for it.
    pub fn name(self) -> &'static str {
        match self {
            LockKind::Semaphore => "semaphore",
            LockKind::Spinlock => "spinlock",
            LockKind::RwlockRead => "rwlock:R",
            LockKind::RwlockWrite => "rwlock:W",
            LockKind::RwsemRead => "rwsem:R",
            LockKind::RwsemWrite => "rwsem:W",
            LockKind::RtMutex => "rtmutex",
            LockKind::RwlockRtRead => "rwlock-rt:R",
            LockKind::RwlockRtWrite => "rwlock-rt:W",
            LockKind::PercpuSemRead => "pcpu-sem:R",
            LockKind::PercpuSemWrite => "pcpu-sem:W",
            LockKind::Mutex => "mutex",
            LockKind::Unknown => "unknown",
        }
    }

    /// The lock without the way it is taken: `rwsem` for `rwsem:R` and `rwsem:W`.
    pub fn family(self) -> &'static str {
        let name = self.name();
        name.split_once(':').map_or(name, |(family, _)| family)
    }

    /// The kinds that `text` names: one in perf's spelling, or both ways of a family (`rwsem`).
    pub fn parse(text: &str) -> Option<Vec<LockKind>> {
        let text = match text {
            "rt-mutex" => "rtmutex",
            "percpu-rwsem" => "pcpu-sem",
            other => other,
        };
        let kinds: Vec<LockKind> =
            LockKind::ALL.into_iter().filter(|k| k.name() == text || k.family() == text).collect();
        (!kinds.is_empty()).then_some(kinds)
    }
}

/// Which events a table is made from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LockSource {
    /// `lock:contention_begin/end`.
    Contention,
    /// The four events of lockdep.
    Lockdep,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_map_as_in_perf() {
        for (flags, name) in [
            (0, "semaphore"),
            (1, "spinlock"),
            (3, "rwlock:R"),
            (5, "rwlock:W"),
            (2, "rwsem:R"),
            (4, "rwsem:W"),
            (8, "rtmutex"),
            (10, "rwlock-rt:R"),
            (12, "rwlock-rt:W"),
            (18, "pcpu-sem:R"),
            (20, "pcpu-sem:W"),
            (32, "mutex"),
            (33, "mutex"),
            (63, "unknown"),
        ] {
            assert_eq!(LockKind::from_flags(flags).name(), name, "{flags}");
        }
    }

    #[test]
    fn a_family_names_both_ways() {
        assert_eq!(LockKind::parse("rwsem"), Some(vec![LockKind::RwsemRead, LockKind::RwsemWrite]));
        assert_eq!(LockKind::parse("rwsem:W"), Some(vec![LockKind::RwsemWrite]));
        assert_eq!(
            LockKind::parse("percpu-rwsem"),
            Some(vec![LockKind::PercpuSemRead, LockKind::PercpuSemWrite])
        );
        assert_eq!(LockKind::parse("lock"), None);
    }
}
