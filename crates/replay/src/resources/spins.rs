//! Threads that wait by spinning in their own code.

use super::{Finder, Member, Scarce};
use crate::FACTORS;
use crate::change::{Change, Part};
use crate::program::{Program, ThreadProgram};
use holdup_attribution::{Leaf, UserSpinning};
use holdup_passes::Slot;
use holdup_trace::Nanos;
use rustc_hash::FxHashMap;

impl Finder<'_> {
    /// Without a lock nobody spins for it: each thread runs for less time, by the part that it
    /// spun. A thread that others spin for at a barrier shares its work with them.
    pub(super) fn spins(&self) -> Vec<Scarce> {
        self.judged.user_spinning.iter().filter_map(|s| scarce(self.program, s)).collect()
    }
}

fn scarce(program: &Program, s: &UserSpinning) -> Option<Scarce> {
    let resource = s.leaf().lost_to()?;
    let straggler = s.straggler.and_then(|slot| Some((slot, number(program, slot)?)));
    let work: Nanos = s.threads.iter().map(|t| t.1).sum();
    let equal = work / (s.threads.len() as Nanos).max(1);
    let left = s.threads.iter().map(|&(slot, work, spun)| {
        let after = if straggler.is_some() { equal } else { work };
        (slot, (after as f64 / (work + spun).max(1) as f64).min(1.0))
    });
    let left: FxHashMap<Slot, f64> = left.collect();
    let factor = |t: &ThreadProgram| left.get(&t.slot).map_or(1.0, |f| f.max(*FACTORS.start()));
    let factors = program.threads.iter().map(factor).collect();
    let part = match straggler {
        Some((_, i)) => Part::Shared { comm: program.threads[i].comm.clone() },
        None => Part::Spinning,
    };
    Some(Scarce {
        resource,
        members: straggler.map(|(_, i)| Member::Thread(i)).into_iter().collect(),
        change: vec![Change::Scale { part, factors }],
        weight: s.spun_ns,
        is_thread: s.leaf() == Leaf::BarrierSpin,
        is_bound: false,
        chained: Vec::new(),
    })
}

fn number(program: &Program, slot: Slot) -> Option<usize> {
    program.threads.iter().position(|t| t.slot == slot)
}
