//! System calls with two clocks, like curt: CPU time and elapsed time.
//!
//! A call runs from `sys_enter` to `sys_exit` of its thread. Its elapsed time is split by the
//! thread's state in between, which the scheduler's events show:
//!
//! ```text
//! elapsed = cpu + interrupted + runnable + blocked
//! ```
//!
//! What the kernel really emits:
//! * a call that began before the trace returns without having been entered: it counts as a call of
//!   length 0, like in perf trace, and as `returned_only`;
//! * a child returns with 0 from the clone that its parent entered and that is counted for the
//!   parent: that is no call of the child (perf trace counts it as a second call);
//! * `exit`, `exit_group`, and the last call of a killed thread never return: pending;
//! * a thread that enters a call while another is open lost the return event: the older call is
//!   dropped and counted in quality;
//! * lost events in between can only lengthen a call.

use crate::hist::SmallHistogram;
use holdup_trace::Nanos;
use rustc_hash::FxHashMap;

/// A call in progress, with the thread's sums when it began.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Call {
    pub(crate) nr: u32,
    pub(crate) start: Nanos,
    /// [`crate::threads::Thread::ran_beyond`] when it began: the same at its end if the thread kept
    /// its CPU.
    pub(crate) beyond0: Nanos,
    pub(crate) irq0: Nanos,
    pub(crate) runnable0: Nanos,
    /// For an assertion only.
    #[cfg(debug_assertions)]
    pub(crate) blocked0: Nanos,
    /// No other thread was in the kernel when it began; `None` if it began before the part.
    pub(crate) alone: Option<bool>,
    /// This call counts as being in the kernel now ([`crate::costs`]).
    pub(crate) inside: bool,
    /// It ended the sleep of another thread.
    pub(crate) woke: bool,
    /// It changes an address space, and began while a sibling was on another CPU
    /// ([`crate::spaces`]).
    pub(crate) with_sibling: bool,
    /// Stolen part of its CPU time ([`crate::stolen`]).
    pub(crate) stolen: Nanos,
}

impl Call {
    /// The analysis starts at `now`; the call began before.
    pub(crate) fn restart(&mut self, now: Nanos) {
        *self = Call {
            nr: self.nr,
            start: now,
            beyond0: 0u64.wrapping_sub(now),
            irq0: 0,
            stolen: 0,
            runnable0: 0,
            #[cfg(debug_assertions)]
            blocked0: 0,
            alone: None,
            ..*self
        };
    }
}

/// Sums over the calls of one number by one thread. Those that each call touches come first and
/// share a cache line.
#[derive(Clone, Debug, Default)]
#[repr(C, align(64))]
pub(crate) struct CallStats {
    pub(crate) count: u64,
    pub(crate) total: Nanos,
    pub(crate) running: Nanos,
    /// Part of `running`: in calls that slept, or ended the sleep of another thread.
    pub(crate) sleeps_and_wakes: Nanos,
    pub(crate) min: Nanos,
    pub(crate) max: Nanos,
    /// Sum of positive results: characters, for the calls whose result is a length.
    pub(crate) result_sum: u64,
    pub(crate) hist: SmallHistogram,
    pub(crate) interrupted: Nanos,
    pub(crate) runnable: Nanos,
    pub(crate) blocked: Nanos,
    pub(crate) errors: u64,
    pub(crate) returned_only: u64,
    pub(crate) pending: u64,
    pub(crate) pending_ns: Nanos,
    pub(crate) errnos: Vec<(u16, u64)>,
}

impl CallStats {
    /// The call took `elapsed`; the caller adds what the time was spent on.
    #[inline(always)]
    pub(crate) fn returned(&mut self, elapsed: Nanos, ret: i64) {
        self.took(elapsed);
        self.total += elapsed;
        self.hist.add(elapsed);
        self.result(ret);
    }

    /// Its start was not seen: a call of length 0.
    pub(crate) fn only_returned(&mut self, ret: i64) {
        self.took(0);
        self.returned_only += 1;
        self.result(ret);
    }

    #[inline(always)]
    fn took(&mut self, elapsed: Nanos) {
        // As branches: both are nearly never taken.
        if elapsed < self.min || self.count == 0 {
            self.min = elapsed;
        }
        if elapsed > self.max {
            self.max = elapsed;
        }
        self.count += 1;
    }

    #[inline]
    fn result(&mut self, ret: i64) {
        if ret >= 0 {
            self.result_sum = self.result_sum.wrapping_add(ret as u64);
        } else if ret >= -4095 {
            self.failed((-ret) as u16);
        }
    }

    #[cold]
    fn failed(&mut self, errno: u16) {
        self.errors += 1;
        match self.errnos.iter_mut().find(|e| e.0 == errno) {
            Some(e) => e.1 += 1,
            None => self.errnos.push((errno, 1)),
        }
    }

    pub(crate) fn merge(&mut self, o: &CallStats) {
        self.min = match (self.count, o.count) {
            (0, _) => o.min,
            (_, 0) => self.min,
            _ => self.min.min(o.min),
        };
        self.max = self.max.max(o.max);
        self.count += o.count;
        self.errors += o.errors;
        self.returned_only += o.returned_only;
        self.total += o.total;
        self.running += o.running;
        self.interrupted += o.interrupted;
        self.runnable += o.runnable;
        self.blocked += o.blocked;
        self.sleeps_and_wakes += o.sleeps_and_wakes;
        self.pending += o.pending;
        self.pending_ns += o.pending_ns;
        self.result_sum = self.result_sum.wrapping_add(o.result_sum);
        self.hist.merge(&o.hist);
        for &(errno, n) in &o.errnos {
            match self.errnos.iter_mut().find(|e| e.0 == errno) {
                Some(e) => e.1 += n,
                None => self.errnos.push((errno, n)),
            }
        }
    }
}

/// The calls of one thread by number.
///
/// Threads use few different calls, usually two or three in turn: numbers and sums are stored
/// separately so that the search touches one cache line.
#[derive(Clone, Debug)]
pub(crate) struct CallTable {
    numbers: Vec<u32>,
    stats: Vec<CallStats>,
    /// One of `numbers`, usually the latest, and the index of its sums: it is likely to come again.
    /// Meaningless while there are none.
    latest: (u32, u32),
    /// A damaged trace may show any number; past [`NEAR`] the rest is hashed.
    far: Option<Box<FxHashMap<u32, CallStats>>>,
}

const NEAR: usize = 64;

impl Default for CallTable {
    fn default() -> CallTable {
        CallTable::EMPTY
    }
}

impl CallTable {
    /// A table without calls.
    pub(crate) const EMPTY: CallTable =
        CallTable { numbers: Vec::new(), stats: Vec::new(), latest: (0, 0), far: None };

    #[inline(always)]
    pub(crate) fn entry(&mut self, nr: u32) -> &mut CallStats {
        let (latest, place) = self.latest;
        if latest != nr || place as usize >= self.stats.len() {
            return self.other(nr);
        }
        &mut self.stats[place as usize]
    }

    #[inline(never)]
    fn other(&mut self, nr: u32) -> &mut CallStats {
        match self.numbers.iter().position(|&n| n == nr) {
            Some(i) => {
                self.latest = (nr, i as u32);
                &mut self.stats[i]
            }
            None => self.add(nr),
        }
    }

    #[cold]
    fn add(&mut self, nr: u32) -> &mut CallStats {
        if self.numbers.len() < NEAR {
            self.latest = (nr, self.stats.len() as u32);
            self.numbers.push(nr);
            self.stats.push(CallStats::default());
            return self.stats.last_mut().expect("just pushed");
        }
        self.far.get_or_insert_default().entry(nr).or_default()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, &CallStats)> {
        let near = self.numbers.iter().copied().zip(&self.stats);
        let far = self.far.iter().flat_map(|far| far.iter());
        near.chain(far.map(|(&n, s)| (n, s)))
    }

    /// The same, to be changed.
    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = (u32, &mut CallStats)> {
        let near = self.numbers.iter().copied().zip(&mut self.stats);
        let far = self.far.iter_mut().flat_map(|far| far.iter_mut());
        near.chain(far.map(|(&n, s)| (n, s)))
    }

    /// Removes all calls, keeps the memory.
    pub(crate) fn clear(&mut self) {
        self.numbers.clear();
        self.stats.clear();
        self.far = None;
    }

    /// Whether there are no calls.
    pub(crate) fn is_empty(&self) -> bool {
        self.numbers.is_empty()
    }
}

/// The calls of one number by all threads that pass the filters.
#[derive(Clone, Debug, Default)]
pub(crate) struct CallSum {
    pub(crate) stats: CallStats,
    /// Sum of the squares of the threads' counts.
    pub(crate) squares: u128,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_has_its_own_sums() {
        let mut table = CallTable::default();
        // Number 0 is not first, and there are more numbers than are kept near.
        let numbers = || (1..=NEAR as u32 + 2).chain([0]);
        for nr in numbers().chain(numbers().rev()) {
            table.entry(nr).count += 1 + nr as u64;
        }
        let mut sums: Vec<(u32, u64)> = table.iter().map(|(nr, s)| (nr, s.count)).collect();
        sums.sort();
        assert!(sums.iter().all(|&(nr, n)| n == 2 * (1 + nr as u64)));
        assert_eq!(sums.len(), numbers().count());
        let mut table = CallTable::default();
        table.entry(5).count += 1;
        assert_eq!(table.entry(0).count, 0);
    }
}
