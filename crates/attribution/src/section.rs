//! Whether calls pass one at a time, and how much the recorder hides of that cost.
//!
//! Under one lock, calls of different threads end at least as far apart as each holds the lock. So
//! the gaps between their ends have a floor: hardly any is shorter, many are little longer.
//! Independent calls end at any distance. The floor is the *section*, the time for which a call
//! keeps others out.
//!
//! A recorder that writes two events per call spends more time between short calls than the calls
//! take. While one thread writes its events another has the lock to itself, and no thread seems to
//! wait. Without the recorder the same threads would come back for the lock earlier:
//!
//! ```text
//! in use   sections x calls / wall time
//! wanted   in use x callers' CPU time / (callers' CPU time - recorder's part of it)
//! ```
//!
//! A lock that is wanted for more than 100 % of the time is the bottleneck. The recorder writes one
//! event in the call, and one between its end and the beginning of the next. Its part of a call is
//! twice the shortest of these times.

use crate::limits::{ENOUGH, MISSING_ENDS, NAMED, Thresholds};
use holdup_passes::{Analysis, Costing, Ends};
use holdup_trace::Nanos;

/// Calls that pass one at a time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Section {
    /// The time for which a call keeps others out, at least.
    pub ns: Nanos,
    /// Part of the wall time in which such a call does, in per cent.
    pub in_use_pct: f64,
    /// That part without the recorder, in per cent: more than 100 is more than there is.
    pub wanted_pct: f64,
    /// CPU time of the threads that make the calls.
    pub callers_ns: Nanos,
    /// The number of these threads.
    pub callers: usize,
}

/// Part of the gaps that an interrupt or a lost time slice shortens below the floor by delaying an
/// event: a hundredth for each of the two calls.
fn disturbed(t: &Thresholds) -> f64 {
    2.0 * t.get(&NAMED) / 100.0
}

/// How long each of two threads' calls keeps the other's out; `None` if they end at any distance.
pub(crate) fn floor(ends: &Ends, t: &Thresholds) -> Option<f64> {
    let gaps = ends.between_threads();
    let part = disturbed(t);
    // A floor needs enough gaps for this part of them to count.
    if !t.enough((gaps.count as f64 * part) as u64, &ENOUGH) {
        return None;
    }
    let floor = gaps.quantile(part);
    let above = gaps.at_age(floor, floor * 2.0).0;
    // If calls end by chance, as many gaps lie just above as below.
    (above >= gaps.count as f64 * part * t.get(&MISSING_ENDS)).then_some(floor)
}

/// The recorder's time per call; `numbers` are those of all calls that were made.
pub(crate) fn recorder_ns(analysis: &Analysis, numbers: &[u32], t: &Thresholds) -> f64 {
    let (mut calls, mut between) = (Costing::default(), Costing::default());
    for costs in numbers.iter().filter_map(|&nr| analysis.costs(nr)) {
        calls.merge(&costs.calls());
        between.merge(&costs.user_intervals);
    }
    let part = disturbed(t);
    2.0 * between.quantile(part).min(calls.quantile(part))
}

/// The section of these calls, if they are under one lock. The recorder takes `recorder_ns` per
/// call; `slowdown` is the factor by which everything is slower than undisturbed.
pub(crate) fn section(
    analysis: &Analysis,
    numbers: &[u32],
    recorder_ns: f64,
    ends: &Ends,
    slowdown: f64,
    t: &Thresholds,
) -> Option<Section> {
    let ns = floor(ends, t)?;
    let mut callers = analysis.callers(numbers);
    let calls: u64 = callers.iter().map(|c| c.calls).sum();
    // A thread that makes fewer than a hundredth of the calls does not keep the others out.
    callers.retain(|c| c.calls * 100 >= calls);
    let threads = || callers.iter().map(|c| analysis.thread(c.slot));
    let sleeps: u64 = threads().map(|t| t.voluntary).sum();
    let wall = analysis.wall_ns() as f64;
    // Threads that answer each other sleep once per call, and keep apart because of that.
    if callers.len() < 2 || wall == 0.0 || sleeps as f64 * 100.0 > calls as f64 * t.get(&NAMED) {
        return None;
    }
    let callers_ns: Nanos = threads().map(|t| t.running_ns.saturating_sub(t.irq_ns)).sum();
    let all_calls: u64 = callers.iter().map(|c| c.all_calls).sum();
    let running = callers_ns as f64 / slowdown;
    let recorder = all_calls as f64 * recorder_ns;
    // A call has some work of its own.
    let without = (running - recorder).max(calls as f64 * ns);
    let in_use_pct = ns * calls as f64 * 100.0 / wall;
    Some(Section {
        ns: ns as Nanos,
        in_use_pct,
        wanted_pct: in_use_pct * slowdown * running / without,
        callers_ns,
        callers: callers.len(),
    })
}
