//! What system calls cost beyond their own work because other threads are in the kernel too.
//!
//! Spinning for a lock looks like any other kernel time and often leaves no event. Calls differ in
//! size, and a hypervisor that takes CPUs away slows application code down as well, so a mean above
//! the typical call proves nothing. One of these signs must show that other threads are the cause:
//!
//! * **exclusion**: calls of different threads never end as close together as they would by chance,
//!   so each holds one lock for much of its time;
//! * **concurrency**: calls that begin while others are in the kernel cost much more than those
//!   that begin alone. If they cost the same, other threads are not the cause;
//! * **one at a time**: one thread ends call after call while the others make no progress, although
//!   they are on CPUs too;
//! * **siblings**: calls that change an address space ([`holdup_passes::SpaceCosts`]) cost more
//!   while another thread of the process is on a CPU than while none is. A slower machine would
//!   make no difference between siblings and unrelated threads.
//!
//! The general slowdown of application code is subtracted in any case.

use crate::limits::{DEARER, ENOUGH, MATTERS, MISSING_ENDS, NAMED, Thresholds, UNDISTURBED};
use crate::section::{Section, recorder_ns, section};
use crate::wait::Wait;
use holdup_passes::{Analysis, Costing, Costs, Ends, Exclusion, SpaceCosts, SyscallRow};
use holdup_syscalls::WaitKind;
use holdup_trace::Nanos;

/// What others in the kernel cost one system call.
#[derive(Clone, Debug, PartialEq)]
pub struct Contended {
    /// Name of the call.
    pub name: String,
    /// Its number.
    pub nr: u32,
    /// The kind of wait in it.
    pub kind: WaitKind,
    /// CPU time of one call on average.
    pub mean_ns: Nanos,
    /// CPU time of one call's own work.
    pub own_ns: Nanos,
    /// CPU time of all calls beyond their own work and beyond the general slowdown.
    pub lost_ns: Nanos,
    /// Calls of different threads keep apart: ends this close together, expected and seen.
    pub exclusion: Option<Exclusion>,
    /// CPU time of calls begun concurrently, in per cent of those begun alone; `None` if too few.
    pub concurrent_pct: Option<u64>,
    /// For a call that changes an address space: its typical time with a sibling on a CPU, in per
    /// cent of that without; `None` for other calls, and if there are too few.
    pub siblings_pct: Option<u64>,
    /// That is so much that siblings are the cause ([`Contended::own_ns`]: the time without them).
    pub costs_more_with_siblings: bool,
    /// CPU time of such calls made with siblings on CPUs that cannot be judged, because no call was
    /// made without them.
    pub unjudged_ns: Nanos,
    /// The calls pass one at a time.
    pub section: Option<Section>,
    /// Threads sleep for each other in this call and not for the kernel: then the CPU time beyond
    /// its own work belongs to that contention too.
    pub for_others: bool,
}

/// The mean factor by which application code is slower than undisturbed, 1 or more.
pub(crate) fn slowdown(analysis: &Analysis, calls: &[SyscallRow], thresholds: &Thresholds) -> f64 {
    let (mut total, mut undisturbed) = (0.0, 0.0);
    let part = thresholds.get(&UNDISTURBED);
    for all in calls.iter().filter_map(|c| Some(&analysis.costs(c.nr)?.user_intervals)) {
        if thresholds.enough(all.count, &ENOUGH) {
            total += all.total_ns as f64;
            undisturbed += all.count as f64 * all.mean_below_ns(part);
        }
    }
    if undisturbed == 0.0 { 1.0 } else { (total / undisturbed).max(1.0) }
}

/// Every call that costs more because of others, most lost time first. One CPU has no spinning.
pub(crate) fn contended(
    analysis: &Analysis,
    calls: &[SyscallRow],
    waits: &[Wait],
    slowdown: f64,
    thresholds: &Thresholds,
) -> Vec<Contended> {
    if analysis.cpus < 2 {
        return Vec::new();
    }
    let squares = analysis.squares_of_calls();
    let numbers: Vec<u32> = calls.iter().map(|c| c.nr).collect();
    let spaces: Vec<u32> =
        numbers.iter().copied().filter(|&nr| analysis.space_costs(nr).is_some()).collect();
    let recorder_ns = recorder_ns(analysis, &numbers, thresholds);
    let mut of = Machine { analysis, waits, slowdown, thresholds, recorder_ns, space: None };
    of.space = of.section(&spaces, analysis.space_ends());
    let mut out: Vec<Contended> = calls
        .iter()
        .filter_map(|call| of.judge(call, squares.get(&call.nr).copied().unwrap_or(0)))
        .collect();
    out.sort_by(|a, b| b.lost_ns.cmp(&a.lost_ns).then(a.nr.cmp(&b.nr)));
    out
}

/// What every call is judged with.
struct Machine<'a> {
    analysis: &'a Analysis,
    waits: &'a [Wait],
    slowdown: f64,
    thresholds: &'a Thresholds,
    /// The recorder's time per call.
    recorder_ns: f64,
    /// The section of calls that change an address space.
    space: Option<Section>,
}

/// The effect of siblings on a call that changes an address space.
struct Siblings {
    /// The typical call with a sibling on a CPU, in per cent of the typical one without.
    pct: u64,
    own_ns: Nanos,
    lost_ns: Nanos,
}

impl Machine<'_> {
    fn judge(&self, call: &SyscallRow, squares: u128) -> Option<Contended> {
        let t = self.thresholds;
        let costs = self.analysis.costs(call.nr)?;
        let all = costs.calls();
        if !t.enough(all.count, &ENOUGH) {
            return None;
        }
        let kind = holdup_syscalls::wait_kind(&call.name);
        // Calls in which threads sleep for each other keep apart for that reason.
        let exclusion = Some(costs.exclusion()).filter(|e| {
            !kind.is_for_contention()
                && e.expected >= t.get(&ENOUGH)
                && e.observed * t.get(&MISSING_ENDS) <= e.expected
        });
        let (alone, concurrency) = (&costs.alone, &costs.concurrency);
        let concurrent_pct = t
            .enough(alone.count.min(concurrency.count), &ENOUGH)
            .then(|| concurrency.mean_ns() * 100 / alone.mean_ns().max(1));
        let costs_the_same =
            concurrent_pct.is_some_and(|pct| pct as f64 <= 100.0 + t.get(&MATTERS));
        // Medians are not moved by what takes CPUs away.
        let typically_dearer = concurrent_pct.is_some()
            && concurrency.median_ns() as f64 * 100.0 >= alone.median_ns() as f64 * t.get(&DEARER);
        let beyond = |own: Nanos| {
            (all.total_ns as f64 - all.count as f64 * own as f64 * self.slowdown).max(0.0) as Nanos
        };
        let typical = all.median_ns();
        let space = self.analysis.space_costs(call.nr);
        let section = match (kind.is_for_contention(), space) {
            (true, _) => None,
            (false, Some(_)) => self.space,
            (false, None) => self.section(&[call.nr], costs.ends()),
        };
        let siblings = space.and_then(|s| self.siblings(&all, s));
        let dearer_together = siblings.as_ref().filter(|s| s.pct as f64 >= t.get(&DEARER));
        let (own_ns, lost_ns) = if let Some(s) = dearer_together {
            (s.own_ns, s.lost_ns)
        } else if exclusion.is_some() {
            // If part of the calls waited, the typical one may have. The cheapest quarter did not,
            // unless the lock was never free: then a call's own part is the time for which it held
            // the lock. Calls that sleep for it have no section, but end as far apart.
            let held = match (section, space) {
                (Some(s), _) => s.ns,
                (None, None) => costs.ends().between_threads().median_ns(),
                (None, Some(_)) => Nanos::MAX,
            };
            let own = all.quantile_ns(0.25).min(held);
            (own, beyond(own))
        } else if typically_dearer {
            let own = alone.median_ns();
            (own, beyond(own).min(self.begun_concurrently(costs)).max(beyond(typical)))
        } else if !costs_the_same && self.one_at_a_time(costs, call.count, squares) {
            (typical, beyond(typical))
        } else {
            (typical, 0)
        };
        Some(Contended {
            name: call.name.clone(),
            nr: call.nr,
            kind,
            mean_ns: all.mean_ns(),
            own_ns,
            lost_ns,
            exclusion,
            concurrent_pct,
            costs_more_with_siblings: dearer_together.is_some(),
            siblings_pct: siblings.as_ref().map(|s| s.pct),
            unjudged_ns: space
                .filter(|_| siblings.is_none() && lost_ns == 0)
                .map_or(0, |s| s.together.total_ns),
            section,
            for_others: self.slept_for_others(call.nr) >= lost_ns,
        })
    }

    fn section(&self, of: &[u32], ends: &Ends) -> Option<Section> {
        section(self.analysis, of, self.recorder_ns, ends, self.slowdown, self.thresholds)
    }

    /// The cost of calls with siblings on CPUs compared with those without; `None` if too few.
    fn siblings(&self, all: &Costing, costs: &SpaceCosts) -> Option<Siblings> {
        let (together, apart) = (&costs.together, &costs.apart);
        let own_ns = apart.median_ns();
        // A sibling that came or left meanwhile disturbed too: it may have slept for the lock.
        let (count, total_ns) =
            (all.count.saturating_sub(apart.count), all.total_ns.saturating_sub(apart.total_ns));
        let undisturbed = count as f64 * own_ns as f64 * self.slowdown;
        self.thresholds.enough(together.count.min(apart.count), &ENOUGH).then(|| Siblings {
            pct: together.median_ns() * 100 / own_ns.max(1),
            own_ns,
            lost_ns: (total_ns as f64 - undisturbed).max(0.0) as Nanos,
        })
    }

    /// Time that threads sleep in a call for each other.
    fn slept_for_others(&self, nr: u32) -> Nanos {
        let peers = |w: &&Wait| w.row.nr == Some(nr) && w.row.cause.is_ended_by_thread();
        self.waits.iter().filter(peers).map(|w| w.row.sum.wait_ns).sum()
    }

    /// Whether one thread ends call after call while others, on CPUs too, make no progress.
    /// Independent threads alternate at least twice as often: as often as if the next were drawn by
    /// lot. Calls that mostly sleep are not judged.
    fn one_at_a_time(&self, costs: &Costs, calls: u64, squares: u128) -> bool {
        let (other, same) = costs.ends().by_previous();
        let by_lot = 1.0 - squares as f64 / (calls as f64 * calls as f64);
        self.thresholds.enough(other + same, &ENOUGH)
            && (other + same) * 2 >= calls
            && other as f64 * 2.0 <= (other + same) as f64 * by_lot
    }

    /// CPU time of calls begun concurrently beyond what they would have cost alone.
    fn begun_concurrently(&self, costs: &Costs) -> Nanos {
        costs.concurrency.total_ns.saturating_sub(costs.concurrency.count * costs.alone.mean_ns())
    }
}

/// Whether this much of capacity is worth naming.
pub(crate) fn is_named(ns: Nanos, analysis: &Analysis, thresholds: &Thresholds) -> bool {
    let capacity = analysis.capacity_ns();
    let pct = if capacity == 0 { 0.0 } else { ns as f64 * 100.0 / capacity as f64 };
    pct >= thresholds.get(&NAMED)
}
