//! Locks of the kernel, and what contended calls cost.

use super::{Finder, Scarce};
use crate::change::Change;
use crate::program::{ObjectId, Op};
use holdup_attribution::Resource;
use holdup_trace::Nanos;
use rustc_hash::FxHashMap;

impl Finder<'_> {
    /// Kernel locks: those that threads are seen to spin for, and what calls cost because of other
    /// threads.
    pub(super) fn kernel(&self) -> Vec<Scarce> {
        let mut found = Vec::new();
        let p = self.program;
        let mut spun: FxHashMap<ObjectId, Nanos> = FxHashMap::default();
        let mut by_thread = vec![0; p.threads.len()];
        for (i, t) in p.threads.iter().enumerate() {
            for op in &p.ops[t.from as usize..t.to as usize] {
                if let &Op::Spin(ns, lock) = op {
                    *spun.entry(lock).or_default() += ns;
                    by_thread[i] += ns;
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
        found.extend(self.lost_in_calls(&by_thread));
        found
    }

    /// What calls cost beyond their own work, given back to each thread in proportion.
    fn lost_in_calls(&self, spun: &[Nanos]) -> Option<Scarce> {
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
        let mut by_tid: FxHashMap<u32, f64> = FxHashMap::default();
        for (tid, nr, ns) in self.analysis.cpu_in_calls() {
            if let Some(part) = lost.get(&nr) {
                *by_tid.entry(tid.0).or_default() += ns as f64 * part;
            }
        }
        let mut weight = 0.0;
        let mut factors = vec![1.0; p.threads.len()];
        for (i, t) in p.threads.iter().enumerate() {
            let lost = by_tid.get(&t.tid).copied().unwrap_or(0.0) - spun[i] as f64;
            let own = t.run_ns.saturating_sub(spun[i]) as f64;
            if lost > 0.0 && own > 0.0 {
                factors[i] = (1.0 - lost / own).max(*crate::FACTORS.start());
                weight += lost;
            }
        }
        let name = "the additional cost of contended calls".to_owned();
        (weight > 0.0).then(|| Scarce {
            resource: Resource::KernelLock,
            members: Vec::new(),
            chained: Vec::new(),
            change: vec![Change::Calls { name, factors }],
            weight: weight as Nanos,
            is_thread: false,
            is_bound: false,
        })
    }
}
