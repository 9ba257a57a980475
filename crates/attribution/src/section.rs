//! Whether calls pass one at a time, and whether the recorder hides what that costs.
//!
//! Under one lock, calls of different threads end at least as far apart as each holds the lock. So
//! the gaps between their ends have a floor: hardly any is shorter, many are little longer. Calls
//! that have nothing to do with each other end at any distance. The floor is the *section*, the
//! time that a call keeps the others out.
//!
//! A recorder that writes two events a call spends more time between short calls than the calls
//! take. While one thread writes its events the other has the lock for itself, and nobody seems
//! to wait. Without the recorder the same threads would come back for the lock sooner:
//!
//! ```text
//! in use   sections x calls / wall time
//! wanted   in use x callers' CPU time / (callers' CPU time - recorder's part of it)
//! ```
//!
//! A lock that is wanted for more than all of the time is what the work waits for. The recorder's
//! part of a call is twice the shortest time from the end of one call to the beginning of the next:
//! it writes one event there, and one in the call.

use crate::limits::{ENOUGH, MISSING_ENDS, NAMED, Thresholds};
use holdup_passes::{Analysis, Costing, Ends};
use holdup_trace::Nanos;

/// Calls that pass one at a time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Section {
    /// A call keeps the others out for so long at least.
    pub ns: Nanos,
    /// Part of the wall time in which one of them does, in per cent.
    pub in_use_pct: f64,
    /// The same if nobody recorded, in per cent: more than 100 is more than there is.
    pub wanted_pct: f64,
    /// CPU time of the threads that make the calls.
    pub callers_ns: Nanos,
    /// How many these are.
    pub callers: usize,
}

/// Part of the gaps that an interrupt or a lost time slice makes shorter than the floor, as it puts
/// an event off: a hundredth for each of the two calls.
fn disturbed(t: &Thresholds) -> f64 {
    2.0 * t.get(&NAMED) / 100.0
}

/// The time that each of two threads' calls keeps the other's out; `None` if they end at any
/// distance.
pub(crate) fn floor(ends: &Ends, t: &Thresholds) -> Option<f64> {
    let gaps = ends.between_threads();
    let part = disturbed(t);
    // So many below the floor, or there is none.
    if !t.enough((gaps.count as f64 * part) as u64, &ENOUGH) {
        return None;
    }
    let floor = gaps.quantile(part);
    let above = gaps.at_age(floor, floor * 2.0).0;
    // Of calls that end by chance there are as many there as below.
    (above >= gaps.count as f64 * part * t.get(&MISSING_ENDS)).then_some(floor)
}

/// What the recorder takes of each call.
fn recorder_ns(analysis: &Analysis, numbers: impl Iterator<Item = u32>, t: &Thresholds) -> f64 {
    let mut all = Costing::default();
    for costs in numbers.filter_map(|nr| analysis.costs(nr)) {
        all.merge(&costs.user_intervals);
    }
    2.0 * all.quantile(disturbed(t))
}

/// The section of these calls, which are under one lock if any; `all` are the numbers of all calls
/// that were made, `slowdown` is by how much everything takes longer than undisturbed.
pub(crate) fn section(
    analysis: &Analysis,
    numbers: &[u32],
    all: &[u32],
    ends: &Ends,
    slowdown: f64,
    t: &Thresholds,
) -> Option<Section> {
    let ns = floor(ends, t)?;
    let mut callers = analysis.callers(numbers);
    let calls: u64 = callers.iter().map(|c| c.calls).sum();
    // Who makes one of a hundred of them does not keep the others out.
    callers.retain(|c| c.calls * 100 >= calls);
    let threads = || callers.iter().map(|c| analysis.thread(c.slot));
    let sleeps: u64 = threads().map(|t| t.voluntary).sum();
    let wall = analysis.wall_ns() as f64;
    // Partners that answer each other sleep once a call, and keep apart because of that.
    if callers.len() < 2 || wall == 0.0 || sleeps as f64 * 100.0 > calls as f64 * t.get(&NAMED) {
        return None;
    }
    let callers_ns: Nanos = threads().map(|t| t.running_ns.saturating_sub(t.irq_ns)).sum();
    let all_calls: u64 = callers.iter().map(|c| c.all_calls).sum();
    let running = callers_ns as f64 / slowdown;
    let recorder = all_calls as f64 * recorder_ns(analysis, all.iter().copied(), t);
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
