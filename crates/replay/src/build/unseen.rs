//! Holds of a mutex that no call shows, or of which only the end shows: where they may have been.
//!
//! They are put where they leave no trace: while their thread runs and holds no other lock, and no
//! other thread holds this one.

use super::runs::Runs;
use holdup_passes::Slot;
use holdup_trace::Nanos;
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeMap;

/// One hold, by its thread.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Of {
    pub(super) from: Nanos,
    pub(super) to: Nanos,
    pub(super) slot: Slot,
    pub(super) seen: bool,
}

/// When each thread holds a lock: from, to.
#[derive(Default)]
pub(super) struct Own(FxHashMap<Slot, Vec<(Nanos, Nanos)>>);

impl Own {
    pub(super) fn add(&mut self, of: Of) {
        self.0.entry(of.slot).or_default().push((of.from, of.to));
    }
}

/// Set the beginnings that are not seen. Such a hold takes as much CPU time as the average hold
/// that is seen, and begins after the previous one ended. Returns that average.
pub(super) fn begin(holds: &mut [Of], runs: &FxHashMap<Slot, Runs>) -> Nanos {
    let ran = |of: &Of| runs[&of.slot].within(of.from, of.to);
    let seen = holds.iter().filter(|of| of.seen);
    let (times, sum) = seen.fold((0, 0), |(n, sum), of| (n + 1, sum + ran(of)));
    let usual: Nanos = (sum / Nanos::max(times, 1)).max(1);
    holds.sort_unstable_by_key(|of| (of.to, of.slot));
    let mut end = 0;
    for of in holds.iter_mut() {
        if !of.seen {
            of.from = runs[&of.slot].before(of.to, usual).max(end).min(of.to);
        }
        end = end.max(of.to);
    }
    usual
}

/// Add this many unseen holds of a lock, each as long as `usual`, evenly over the time that is left
/// by its `holds` (in order of time) and by other locks of its threads. Adds fewer where there is
/// no room.
pub(super) fn put(
    holds: &[Of],
    count: u64,
    usual: Nanos,
    runs: &FxHashMap<Slot, Runs>,
    own: &Own,
) -> Vec<Of> {
    let users: FxHashSet<Slot> = holds.iter().map(|of| of.slot).collect();
    let mut free: Vec<(Nanos, Nanos, Slot)> = Vec::new();
    for slot in users {
        let mut busy: Vec<(Nanos, Nanos)> = holds.iter().map(|of| (of.from, of.to)).collect();
        busy.extend(own.0.get(&slot).into_iter().flatten());
        busy.sort_unstable();
        let left = runs[&slot].without(&busy);
        free.extend(left.into_iter().map(|(from, to)| (from, to, slot)));
    }
    free.sort_unstable();
    let all: Nanos = free.iter().map(|f| f.1 - f.0).sum();
    // By thread: the number of holds that are due.
    let mut due: FxHashMap<Slot, f64> = FxHashMap::default();
    // Where they are put, from and to.
    let mut places: BTreeMap<Nanos, Nanos> = BTreeMap::new();
    let mut put = Vec::new();
    for (from, to, slot) in free {
        let due = due.entry(slot).or_insert(0.5);
        *due += count as f64 * (to - from) as f64 / all.max(1) as f64;
        let n = ((to - from) / usual).min(*due as u64);
        let gap = ((to - from) - n * usual) / (n + 1);
        let mut at = from;
        for _ in 0..n {
            at += gap;
            // After those of other threads.
            while let Some((_, &end)) = places.range(..at + usual).next_back()
                && end > at
            {
                at = end;
            }
            if at + usual > to {
                break;
            }
            places.insert(at, at + usual);
            put.push(Of { from: at, to: at + usual, slot, seen: false });
            *due -= 1.0;
            at += usual;
        }
    }
    put
}

#[cfg(test)]
mod tests {
    use super::*;
    use holdup_passes::{Did, Step};

    const ONE: Slot = Slot(1);
    const TWO: Slot = Slot(2);

    fn runs() -> FxHashMap<Slot, Runs> {
        let run = |at, ns| Runs::of(&[Step { at, what: Did::Run(ns) }]);
        FxHashMap::from_iter([(ONE, run(0, 100_000)), (TWO, run(0, 100_000))])
    }

    #[test]
    fn a_hold_whose_end_is_seen_lasts_as_long_as_others_but_not_into_the_one_before() {
        let hold = |from, to, slot, seen| Of { from, to, slot, seen };
        let mut holds = vec![
            hold(1_000, 3_000, ONE, true),
            hold(40_000, 41_000, TWO, false),
            hold(41_500, 42_000, ONE, false),
        ];
        assert_eq!(begin(&mut holds, &runs()), 2_000);
        let from: Vec<Nanos> = holds.iter().map(|of| of.from).collect();
        assert_eq!(from, [1_000, 39_000, 41_000]);
    }

    #[test]
    fn unseen_holds_lie_where_nobody_else_has_it_and_their_thread_has_nothing_else() {
        let holds = [
            Of { from: 10_000, to: 30_000, slot: ONE, seen: true },
            Of { from: 30_000, to: 50_000, slot: TWO, seen: true },
        ];
        let mut own = Own::default();
        holds.iter().for_each(|&of| own.add(of));
        own.add(Of { from: 60_000, to: 80_000, slot: TWO, seen: true });
        let mut put = put(&holds, 20, 1_000, &runs(), &own);
        assert!((18..=20).contains(&put.len()), "{put:?}");
        put.extend(holds);
        put.sort_unstable();
        assert!(put.windows(2).all(|w| w[0].to <= w[1].from), "{put:?}");
        let two = put.iter().filter(|of| of.slot == TWO);
        assert!(two.clone().all(|of| of.to <= 60_000 || of.from >= 80_000), "{put:?}");
        assert!(two.count() > 5);
    }

    #[test]
    fn where_there_is_no_place_there_are_fewer() {
        let holds = [Of { from: 0, to: 99_500, slot: ONE, seen: true }];
        assert!(put(&holds, 50, 1_000, &runs(), &Own::default()).is_empty());
    }
}
