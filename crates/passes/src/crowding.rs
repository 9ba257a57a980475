//! How the cost of a system call depends on how many threads are inside the kernel with it.
//!
//! Time spent spinning on a lock of the kernel looks like any other kernel time, and much of it
//! leaves no event at all: optimistic spinning of rwsems, test-and-set spinlocks in guests. What
//! it cannot hide is that a call takes longer on the CPU the more threads are in system calls at
//! the same moment. This pass keeps, for each call, the CPU time per call by that number:
//!
//! ```text
//! k(t)   threads on a CPU inside a system call at time t
//! K      mean of k over the call's time on the CPU, the call itself included
//! ```
//!
//! A call that does not contend costs the same at every K.

use holdup_trace::Nanos;

/// Calls with K rounded to 1, 2 … 15, and 16 or more.
pub const LEVELS: usize = 16;
/// Calls of one level of crowding.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Level {
    /// Calls.
    pub count: u64,
    /// Their CPU time, interrupts excluded.
    pub cpu_ns: Nanos,
}

/// One call's cost by crowding.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CrowdedCall {
    /// Index i holds the calls with K rounded to i + 1.
    pub levels: [Level; LEVELS],
}

/// All calls' costs by crowding.
#[derive(Clone, Debug, Default)]
pub(crate) struct Crowding {
    now: Nanos,
    /// k(t)
    inside: u32,
    /// Integral of k.
    integral: u64,
    calls: Vec<Option<Box<CrowdedCall>>>,
}

/// System call numbers beyond this are damage.
const MAX_NR: usize = 4096;

impl Crowding {
    #[inline]
    fn advance(&mut self, now: Nanos) {
        self.integral += self.inside as u64 * now.saturating_sub(self.now);
        self.now = now;
    }

    /// A thread is on a CPU inside a call from now on. Returns the mark of its stay.
    #[inline]
    pub(crate) fn enter(&mut self, now: Nanos) -> u64 {
        self.advance(now);
        self.inside += 1;
        self.integral
    }

    /// It is not any more: the integral of k over its stay.
    #[inline]
    pub(crate) fn leave(&mut self, now: Nanos, mark: u64) -> u64 {
        self.advance(now);
        self.inside = self.inside.saturating_sub(1);
        self.integral - mark
    }

    /// A call ended that was `running` on CPUs, with `crowd` the integral of k meanwhile, and
    /// `cpu_ns` of it not interrupted.
    #[inline(always)]
    pub(crate) fn call(&mut self, nr: u32, running: Nanos, crowd: u64, cpu_ns: Nanos) {
        // K rounded, less one. Most calls have little company: a division costs as much as the
        // rest.
        let level = if crowd * 2 < running * 3 {
            0
        } else if crowd * 2 < running * 5 {
            1
        } else {
            let Some(twice) = (crowd * 2).checked_div(running) else { return };
            (twice.div_ceil(2).min(LEVELS as u64) as usize).max(3) - 1
        };
        let nr = nr as usize;
        if nr >= self.calls.len() {
            if nr >= MAX_NR {
                return;
            }
            self.calls.resize_with(nr + 1, || None);
        }
        let level = &mut self.calls[nr].get_or_insert_default().levels[level];
        level.count += 1;
        level.cpu_ns += cpu_ns;
    }

    /// By number of the call.
    pub(crate) fn get(&self, nr: u32) -> Option<&CrowdedCall> {
        self.calls.get(nr as usize)?.as_deref()
    }

    /// Forget the sums, keep who is inside.
    pub(crate) fn restart(&mut self, now: Nanos) {
        self.advance(now);
        self.calls.clear();
    }
}

impl CrowdedCall {
    /// Calls of all levels.
    pub fn total(&self) -> Level {
        let mut sum = Level::default();
        for l in &self.levels {
            sum.count += l.count;
            sum.cpu_ns += l.cpu_ns;
        }
        sum
    }
}
