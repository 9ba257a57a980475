//! Locks of the kernel, and what contended calls cost.

use super::{Finder, Scarce};
use crate::change::{Change, Part};
use crate::program::{ObjectId, Op, ThreadProgram};
use holdup_attribution::Resource;
use holdup_trace::Nanos;
use rustc_hash::FxHashMap;

/// What calls cost beyond their own work because of other threads.
pub(super) struct Contention {
    /// For each thread, the part of its CPU time that is left without that.
    left: Vec<f64>,
    /// The rest of all threads.
    lost_ns: Nanos,
    /// For each thread, the part of its CPU time in calls that it makes because others want the
    /// same mutex.
    turns: Vec<f64>,
}

impl Contention {
    /// More of it, if there is any: on `cpus` instead of `before`, threads meet more threads on
    /// other CPUs.
    pub(super) fn on(&self, cpus: u32, before: u32) -> Option<Change> {
        let others = f64::from(cpus - 1) / f64::from(before.max(2) - 1);
        let lost = self.left.iter().zip(&self.turns).map(|(left, turns)| 1.0 - left + turns);
        let factors: Vec<f64> = lost.map(|lost| 1.0 + lost.min(1.0) * (others - 1.0)).collect();
        let any = factors.iter().any(|&factor| factor > 1.0);
        any.then_some(Change::Scale { part: Part::MoreContention, factors })
    }
}

impl Finder<'_> {
    /// Kernel locks: those that threads are seen to spin for, and what calls cost because of other
    /// threads.
    pub(super) fn kernel(&self, contention: Contention) -> Vec<Scarce> {
        let mut found = Vec::new();
        let p = self.program;
        let mut spun: FxHashMap<ObjectId, Nanos> = FxHashMap::default();
        for t in &p.threads {
            for op in &p.ops[t.from as usize..t.to as usize] {
                if let &Op::Spin(ns, lock) = op {
                    *spun.entry(lock).or_default() += ns;
                }
            }
        }
        let mut spun: Vec<(Nanos, ObjectId)> = spun
            .into_iter()
            .filter(|(id, _)| p.objects[id.0 as usize].wait_ns == 0)
            .map(|(id, ns)| (ns, id))
            .collect();
        spun.sort_unstable();
        for (ns, id) in spun {
            found.push(Scarce { weight: ns, ..self.of_objects(Resource::KernelLock, vec![id]) });
        }
        let Contention { left: factors, lost_ns: weight, .. } = contention;
        found.extend((weight > 0).then(|| Scarce {
            resource: Resource::KernelLock,
            members: Vec::new(),
            chained: Vec::new(),
            change: vec![Change::Scale { part: Part::Contention, factors }],
            weight,
            is_thread: false,
            is_bound: false,
        }));
        found
    }

    /// What calls cost because of other threads.
    pub(super) fn contention(&self) -> Contention {
        let (p, judged) = (self.program, self.judged);
        let of_all = judged.calls.iter().map(|row| (row.nr, row.cpu_ns.unwrap_or(0)));
        let all: FxHashMap<u32, Nanos> = of_all.collect();
        let lost: FxHashMap<u32, f64> = judged
            .contended
            .iter()
            .filter(|c| !c.for_others)
            .filter_map(|c| {
                let cpu = *all.get(&c.nr)?;
                Some((c.nr, (c.lost_ns as f64 / cpu.max(1) as f64).min(1.0)))
            })
            .collect();
        let of_turns = |t: &ThreadProgram| {
            let ns: Nanos = t.turns.iter().map(|turn| turn.1).sum();
            ns as f64 / t.run_ns.max(1) as f64
        };
        let turns = p.threads.iter().map(of_turns).collect();
        let mut factors = vec![1.0; p.threads.len()];
        if lost.is_empty() {
            return Contention { left: factors, lost_ns: 0, turns };
        }
        let mut by_tid: FxHashMap<u32, f64> = FxHashMap::default();
        for (tid, nr, ns) in self.analysis.cpu_in_calls() {
            if let Some(part) = lost.get(&nr) {
                *by_tid.entry(tid.0).or_default() += ns as f64 * part;
            }
        }
        let mut weight = 0.0;
        for (i, t) in p.threads.iter().enumerate() {
            let of_spin = |op: &Op| if let Op::Spin(ns, _) = op { *ns } else { 0 };
            let spun: Nanos = p.ops[t.from as usize..t.to as usize].iter().map(of_spin).sum();
            let lost = by_tid.get(&t.tid).copied().unwrap_or(0.0) - spun as f64;
            let own = t.run_ns.saturating_sub(spun) as f64;
            if lost > 0.0 && own > 0.0 {
                factors[i] = (1.0 - lost / own).max(*crate::FACTORS.start());
                weight += lost;
            }
        }
        Contention { left: factors, lost_ns: weight as Nanos, turns }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn factors(left: f64, turns: f64, cpus: u32) -> Option<Vec<f64>> {
        let of = Contention { left: vec![left, 1.0], lost_ns: 0, turns: vec![turns, 0.0] };
        of.on(cpus, 2).map(|change| match change {
            Change::Scale { part: Part::MoreContention, factors } => factors,
            other => panic!("{other:?}"),
        })
    }

    /// Four threads that fight for malloc's only arena on two CPUs were an overload: 1.5 times as
    /// fast with four CPUs.
    #[test]
    fn with_more_cpus_threads_fight_more_for_a_mutex_too() {
        assert_eq!(factors(1.0, 0.0, 4), None, "nobody contends");
        assert_eq!(factors(0.75, 0.0, 4), Some(vec![1.5, 1.0]), "calls: a quarter, three times");
        assert_eq!(factors(1.0, 0.25, 4), Some(vec![1.5, 1.0]), "a mutex, likewise");
        assert_eq!(factors(0.75, 0.25, 3), Some(vec![1.5, 1.0]), "both: a half, twice");
    }
}
