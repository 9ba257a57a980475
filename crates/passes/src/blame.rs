//! Why idle CPUs had nothing to run.
//!
//! At every instant, with `i` CPUs idle:
//!
//! ```text
//! t throttled threads may not run         min(i, t) of the idle CPUs       throttled
//! r runnable threads wait elsewhere       min(i - t, r) of them            scheduler
//! B application threads wait for cause    min(i - t - r, |B|) of them      shared equally over B
//! the rest                                                                 no work
//! ```
//!
//! In addition it counts the idle CPU time while exactly one application thread runs or is ready:
//! the work is serial then, whatever other threads may be waiting for.
//!
//! A thread is runnable from `sched_wakeup` on ([`crate::state::State::is_ready`]). Between
//! `sched_waking` and `sched_wakeup` it still counts in B if it did while it slept.
//!
//! A thread belongs to B while it sleeps in a call that stands for waiting on others or on
//! devices; timers, children, and waiting for input do not count ([`holdup_syscalls::WaitKind`]).
//! What a wait was for is judged when it ends, because the waker decides: a `read` that another
//! thread's `write` ends is a pipe, one that an interrupt ends is the outside world.
//!
//! Sharing without a loop over B: every member's share grows by `min(i - r, |B|) / |B|` per
//! nanosecond, so one integral `G(t)` of that quantity serves all; a wait from t0 to t1 has the
//! share `G(t1) - G(t0)`. `G` is kept in 2^-32 ns; remainders of the division are counted
//! separately ([`Blame::rounding`]) and stay in `no work`, so that the parts add up to the idle
//! time exactly.
//!
//! A second integral does the same for the `scheduler` part. If a woken thread gets a CPU that was
//! idle all the time, no other thread delayed it; the CPU's wake-up latency is part of the cost of
//! the preceding wait, and moves to its cause. A thread that turns out not to have been ready gives
//! its part back.

mod bins;

pub(crate) use bins::Over;

use crate::cause::Cause;
use crate::cause::FRACTION;
use crate::grid::{Grid, IdleBin};
use crate::slot::Slot;
use crate::waits::Object;
use bins::IdleBins;
use holdup_trace::Nanos;
use rustc_hash::FxHashMap;

/// How a running or ready thread is counted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    /// Part of an application.
    Application,
    /// Part of the kernel.
    Kernel,
    /// Either; may become known later.
    Unknown,
}

/// Time during which exactly one application thread was running or ready.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Serial {
    /// Idle CPU time that is not the scheduler's.
    pub(crate) idle_ns: Nanos,
    /// Wall-clock time.
    pub(crate) wall_ns: Nanos,
}

impl Serial {
    fn add(&mut self, o: Serial) {
        self.idle_ns += o.idle_ns;
        self.wall_ns += o.wall_ns;
    }
}

/// Sums over the waits of one cause, in one call, ended by one thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WaitSum {
    /// Number of waits.
    pub waits: u64,
    /// Total time asleep.
    pub wait_ns: Nanos,
    /// Share of idle CPU time, in 2^-32 ns.
    pub share: u128,
}

impl WaitSum {
    /// Share of idle CPU time.
    pub fn share_ns(&self) -> Nanos {
        (self.share >> FRACTION) as Nanos
    }

    /// Add all of `o`.
    pub fn add(&mut self, o: &WaitSum) {
        self.waits += o.waits;
        self.wait_ns += o.wait_ns;
        self.share += o.share;
    }
}

/// The key of a [`WaitSum`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct WaitKey {
    /// What for.
    pub cause: Cause,
    /// The system call slept in, if any was seen.
    pub nr: Option<u32>,
    /// The thread that ended it; `None` if an interrupt did or it has not ended.
    pub waker: Option<Slot>,
    /// The object.
    pub object: Object,
}

/// The integrals and the sums.
#[derive(Clone, Debug, Default)]
pub(crate) struct Blame {
    now: Nanos,
    bins: IdleBins,
    /// CPUs whose current thread is the idle task, with no interrupt on top.
    idle: u32,
    /// Threads ready but not running.
    runnable: u32,
    /// Part of `runnable`: kept off the CPUs by a quota.
    throttled: u32,
    /// Members of B.
    waiting: u32,
    /// The integral, 2^-32 ns.
    integral: u128,
    /// The integral of the scheduler's part per runnable thread, 2^-32 ns.
    ready: u128,
    /// The integral of the throttled threads' part per such thread, 2^-32 ns.
    held: u128,
    /// Part of `held` for threads that turned out not to have been throttled, 2^-32 ns.
    not_held: u128,
    /// Remainders of the divisions of `shared_ns`, 2^-32 ns.
    pub rounding: u128,
    /// Moved from the scheduler's part to causes, 2^-32 ns.
    pub moved: u128,
    /// Part of the scheduler's time for threads that turned out not to have been ready, 2^-32 ns.
    taken_back: u128,
    /// Application threads running or ready.
    applications: u32,
    /// Running or ready threads that may be of an application or of the kernel, and the sum of
    /// their slots: if there is one such thread, that is its slot.
    unknown: u32,
    unknown_slots: u32,
    /// Time in which the work was certainly serial.
    serial: Serial,
    /// Time since the only unknown thread has been the only active one, which is serial if the
    /// thread turns out to be an application's.
    serial_since: Serial,
    /// Such earlier times, by thread.
    serial_if: FxHashMap<Slot, Serial>,
    /// Idle CPU time with throttled threads.
    throttled_ns: Nanos,
    /// Idle CPU time with runnable threads elsewhere.
    pub scheduler_ns: Nanos,
    /// Idle CPU time shared out to B.
    pub shared_ns: Nanos,
    /// Time with at least one runnable or running thread, and the integral of their number.
    pub occupied_ns: Nanos,
    /// Integral of the number of runnable and running threads.
    pub queue_ns: u128,
    /// Time with threads on two or more CPUs.
    pub several_ns: Nanos,
    /// Time without an idle CPU.
    pub full_ns: Nanos,
    /// The part of `queue_ns` in that time.
    pub full_queue_ns: u128,
    /// Running threads: CPUs that are not idle.
    running: u32,
    /// The integral of their number.
    running_ns: Nanos,
    /// The sums of waits.
    pub waits: FxHashMap<WaitKey, WaitSum>,
}

impl Blame {
    /// Account for the time up to `now`. Must precede every change of the counts.
    #[inline]
    pub(crate) fn advance(&mut self, now: Nanos) {
        if now >= self.bins.border() {
            self.next_bins(now);
        }
        let span = now.saturating_sub(self.now);
        if span > 0 {
            self.now = now;
            self.pass(span);
        }
    }

    /// Borders of the timeline are passed: account for the time up to each.
    #[cold]
    #[inline(never)]
    fn next_bins(&mut self, now: Nanos) {
        while now >= self.bins.border() {
            let border = self.bins.border();
            self.pass(border.saturating_sub(self.now));
            self.now = self.now.max(border);
            self.bins.close(self.scheduler_ns, self.queue_ns);
            self.bins.next(self.integral);
        }
    }

    /// The part analysed ends.
    pub(crate) fn finish(&mut self, end: Nanos) {
        self.advance(end);
        self.bins.close(self.scheduler_ns, self.queue_ns);
    }

    /// Idle time by bin of the timeline.
    pub(crate) fn bins(&self) -> &[IdleBin] {
        self.bins.rows()
    }

    /// The counts were constant for `span`.
    #[inline]
    fn pass(&mut self, span: Nanos) {
        let mut rest = 0;
        if self.idle > 0 {
            let throttled = self.idle.min(self.throttled);
            if throttled > 0 {
                self.throttled_ns += throttled as u64 * span;
                self.held +=
                    ((throttled as u128) << FRACTION) / self.throttled as u128 * span as u128;
            }
            let idle = self.idle - throttled;
            let ready = self.runnable.saturating_sub(self.throttled);
            let scheduler = idle.min(ready);
            if scheduler > 0 {
                self.scheduler_ns += scheduler as u64 * span;
                self.ready += ((scheduler as u128) << FRACTION) / ready as u128 * span as u128;
            }
            let shared = (idle - scheduler).min(self.waiting);
            if shared > 0 {
                self.shared_ns += shared as u64 * span;
                let (whole, waiting) = ((shared as u128) << FRACTION, self.waiting as u128);
                self.integral += whole / waiting * span as u128;
                self.rounding += whole % waiting * span as u128;
            }
            rest = (idle - scheduler) as u64 * span;
        }
        match (self.applications, self.unknown) {
            // With a larger quota the same thread would run: being alone is not the cause.
            _ if self.throttled > 0 => {}
            (1, 0) => self.serial.add(Serial { idle_ns: rest, wall_ns: span }),
            (0, 1) => self.serial_since.add(Serial { idle_ns: rest, wall_ns: span }),
            _ => {}
        }
        self.running_ns += Nanos::from(self.running) * span;
        let queue = self.runnable.saturating_sub(self.throttled) + self.running;
        if queue > 0 {
            self.occupied_ns += span;
            self.several_ns += if self.running > 1 { span } else { 0 };
            self.queue_ns += queue as u128 * span as u128;
            if self.idle == 0 {
                self.full_ns += span;
                self.full_queue_ns += queue as u128 * span as u128;
            }
        }
    }

    pub(crate) fn start_at(&mut self, now: Nanos, grid: Grid) {
        self.now = now;
        self.bins = IdleBins::new(grid, self.integral);
    }

    pub(crate) fn cpu_idle(&mut self, now: Nanos, idle: bool) {
        self.advance(now);
        self.idle = step(self.idle, idle);
    }

    pub(crate) fn cpu_running(&mut self, now: Nanos, running: bool) {
        self.advance(now);
        self.running = step(self.running, running);
    }

    /// Whether a CPU idles.
    pub(crate) fn any_idle(&self) -> bool {
        self.idle > 0
    }

    /// Number of CPUs that run a thread, minus one.
    #[inline]
    pub(crate) fn others_running(&self) -> u32 {
        self.running.saturating_sub(1)
    }

    /// CPU time of all running threads so far.
    pub(crate) fn running_ns(&mut self, now: Nanos) -> Nanos {
        self.advance(now);
        self.running_ns
    }

    pub(crate) fn thread_runnable(&mut self, now: Nanos, runnable: bool) {
        self.advance(now);
        self.runnable = step(self.runnable, runnable);
    }

    /// A ready thread begins or ceases to be throttled. Returns the integral of the throttled
    /// threads' part of idle time.
    pub(crate) fn throttled(&mut self, now: Nanos, throttled: bool) -> u128 {
        self.advance(now);
        self.throttled = step(self.throttled, throttled);
        self.held
    }

    /// The integral of the throttled threads' part.
    pub(crate) fn throttled_at(&mut self, now: Nanos) -> u128 {
        self.advance(now);
        self.held
    }

    /// A thread turned out not to have been throttled: gives back its part of the idle time.
    pub(crate) fn not_throttled(&mut self, share: u128) {
        self.not_held += share;
    }

    /// Idle CPU time with throttled threads.
    pub(crate) fn throttled_left_ns(&self) -> Nanos {
        self.throttled_ns.saturating_sub(whole(self.not_held))
    }

    /// A thread begins or ceases to be running or ready.
    pub(crate) fn thread_active(&mut self, now: Nanos, slot: Slot, kind: Kind, active: bool) {
        match kind {
            Kind::Kernel => {}
            Kind::Application => {
                self.advance(now);
                self.applications = step(self.applications, active);
            }
            Kind::Unknown => {
                self.advance(now);
                self.note_unknown();
                self.unknown = step(self.unknown, active);
                self.unknown_slots = if active {
                    self.unknown_slots.wrapping_add(slot.0)
                } else {
                    self.unknown_slots.wrapping_sub(slot.0)
                };
            }
        }
    }

    /// Stores the time for which the only unknown thread was active alone under its slot.
    fn note_unknown(&mut self) {
        let since = std::mem::take(&mut self.serial_since);
        if since != Serial::default() {
            self.serial_if.entry(Slot(self.unknown_slots)).or_default().add(since);
        }
    }

    /// A thread turns out to be of an application or of the kernel.
    pub(crate) fn thread_known(
        &mut self,
        now: Nanos,
        slot: Slot,
        (was, is): (Kind, Kind),
        active: bool,
    ) {
        if active {
            self.thread_active(now, slot, was, false);
            self.thread_active(now, slot, is, true);
        }
        if was == Kind::Unknown
            && let Some(serial) = self.serial_if.remove(&slot)
            && is == Kind::Application
        {
            self.serial.add(serial);
        }
    }

    /// Time in which the work was certainly serial. Nothing counts while a second active thread may
    /// be the application's or the kernel's.
    pub(crate) fn serial(&self) -> Serial {
        self.serial
    }

    /// A thread turned out not to have been ready: gives back its part of the scheduler's share.
    pub(crate) fn take_back(&mut self, share: u128) {
        self.taken_back += share;
        self.bins.now().moved += share;
    }

    /// A thread joins B. Returns the mark for the start of its wait.
    pub(crate) fn wait_begins(&mut self, now: Nanos) -> u128 {
        self.advance(now);
        self.waiting += 1;
        self.integral
    }

    /// A thread leaves B: its share of idle time since `mark`, 2^-32 ns.
    pub(crate) fn wait_ends(&mut self, now: Nanos, mark: u128) -> u128 {
        self.advance(now);
        self.waiting = self.waiting.saturating_sub(1);
        self.integral - mark
    }

    /// The integral at `now`.
    pub(crate) fn integral_at(&mut self, now: Nanos) -> u128 {
        self.advance(now);
        self.integral
    }

    /// The integral of the scheduler's part at `now`.
    pub(crate) fn ready_at(&mut self, now: Nanos) -> u128 {
        self.advance(now);
        self.ready
    }

    /// Moves idle time from the scheduler's part to a wait.
    pub(crate) fn move_to(&mut self, key: WaitKey, share: u128) {
        self.moved += share;
        let row = self.bins.now();
        row.moved += share;
        row.causes[key.cause as usize] += share;
        self.waits.entry(key).or_default().share += share;
    }

    /// Idle time with runnable threads elsewhere, that is not part of a wait.
    pub(crate) fn scheduler_left_ns(&self) -> Nanos {
        self.scheduler_ns.saturating_sub(whole(self.moved + self.taken_back))
    }

    /// Adds a wait, or part of one, over the given span.
    pub(crate) fn attribute(&mut self, key: WaitKey, sum: WaitSum, over: &Over) {
        self.bins.add(key.cause, sum.share, over);
        self.waits.entry(key).or_default().add(&sum);
    }

    pub(crate) fn restart(&mut self, now: Nanos, grid: Grid) {
        self.advance(now);
        *self = Blame {
            now,
            bins: IdleBins::new(grid, self.integral),
            idle: self.idle,
            runnable: self.runnable,
            throttled: self.throttled,
            held: self.held,
            waiting: self.waiting,
            integral: self.integral,
            ready: self.ready,
            running: self.running,
            applications: self.applications,
            unknown: self.unknown,
            unknown_slots: self.unknown_slots,
            ..Blame::default()
        };
    }
}

/// A share in nanoseconds, rounded up.
fn whole(share: u128) -> Nanos {
    (share >> FRACTION) as Nanos + (share & ((1 << FRACTION) - 1) != 0) as Nanos
}

fn step(count: u32, up: bool) -> u32 {
    if up { count + 1 } else { count.saturating_sub(1) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_waiters_share_one_idle_cpu_and_the_rest_is_no_work() {
        let mut b = Blame::default();
        b.cpu_idle(0, true);
        let m1 = b.wait_begins(0);
        let m2 = b.wait_begins(0);
        // 0..100: one idle CPU, two waiters: 50 each.
        b.cpu_idle(100, true);
        b.cpu_idle(100, true);
        // 100..200: three idle CPUs, two waiters: 100 each, 100 no work.
        let s1 = b.wait_ends(200, m1);
        b.thread_runnable(200, true);
        // 200..300: three idle, one runnable elsewhere, one waiter.
        let s2 = b.wait_ends(300, m2);
        let ns = |s: u128| (s >> FRACTION) as u64;
        assert_eq!((ns(s1), ns(s2)), (150, 250));
        assert_eq!((b.shared_ns, b.scheduler_ns), (400, 100));
    }
}
