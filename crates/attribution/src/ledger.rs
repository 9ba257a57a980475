//! The capacity ledger: CPUs x wall time, down to leaves that add up to it exactly.
//!
//! The busy side and the idle total come from the CPU accounting of the passes, the division of the
//! idle total from the judged waits. `no work` is what remains of the idle total, so the ledger
//! closes by construction; that the parts never exceed the total is asserted by the tests over
//! every trace.

use crate::leaf::{Leaf, Total};
use crate::wait::Wait;
use holdup_passes::{Analysis, CpuRow, WaitSum, percent};
use holdup_trace::Nanos;
use serde::Serialize;

/// Where every CPU-second went. A leaf is `None` where the trace cannot tell.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(into = "Rows")]
pub struct Ledger {
    /// CPUs x wall time.
    pub capacity_ns: Nanos,
    /// What 100 % are.
    whole_ns: Nanos,
    ns: [Option<Nanos>; Leaf::ALL.len()],
}

/// One node of the capacity ledger.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LedgerNode {
    /// `busy`, `busy/user`, `idle/thread-sync` …: a parent is the sum of its children.
    pub path: &'static str,
    /// CPU time.
    pub ns: u64,
    /// Of capacity.
    pub pct: f64,
}

/// A ledger as JSON shows it.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct Rows {
    /// CPUs x wall time.
    capacity_ns: u64,
    /// Pre-order: each parent before its children.
    nodes: Vec<LedgerNode>,
}

impl From<Ledger> for Rows {
    fn from(ledger: Ledger) -> Rows {
        Rows { capacity_ns: ledger.capacity_ns, nodes: ledger.nodes() }
    }
}

impl Ledger {
    /// These leaves; the others are not known.
    pub fn new(capacity_ns: Nanos, leaves: impl IntoIterator<Item = (Leaf, Nanos)>) -> Ledger {
        let mut ledger = Ledger { capacity_ns, whole_ns: capacity_ns, ..Ledger::default() };
        for (leaf, ns) in leaves {
            ledger.ns[leaf.index()] = Some(ns);
        }
        ledger
    }

    /// The same, where 100 % are something else than the sum of the leaves: figures that were
    /// rounded before they were published.
    pub fn in_parts_of(self, whole_ns: Nanos) -> Ledger {
        Ledger { whole_ns, ..self }
    }

    /// Time at a leaf; `None` where the trace cannot tell.
    pub fn get(&self, leaf: Leaf) -> Option<Nanos> {
        self.ns[leaf.index()]
    }

    /// The same, for sums: what is not known adds nothing.
    pub fn ns(&self, leaf: Leaf) -> Nanos {
        self.get(leaf).unwrap_or(0)
    }

    /// Time in all leaves of a total.
    pub fn total(&self, total: Total) -> Nanos {
        self.leaves().filter(|(leaf, _)| leaf.is_in(total)).map(|(_, ns)| ns).sum()
    }

    /// The leaves that are known.
    pub fn leaves(&self) -> impl Iterator<Item = (Leaf, Nanos)> {
        Leaf::ALL.iter().filter_map(|&leaf| Some((leaf, self.get(leaf)?)))
    }

    /// The tree, each parent before its children.
    pub fn nodes(&self) -> Vec<LedgerNode> {
        let mut rows: Vec<LedgerNode> = Vec::new();
        let mut add = |path: &'static str, ns: Nanos| {
            // An undivided leaf has the path of its branch: its row is the branch's.
            if rows.iter().all(|r| r.path != path) {
                rows.push(LedgerNode { path, ns, pct: percent(ns, self.whole_ns) });
            }
        };
        for (leaf, ns) in self.leaves() {
            let mut branches: Vec<Total> =
                std::iter::successors(leaf.parent(), |b| b.parent()).collect();
            branches.reverse();
            for branch in branches {
                add(branch.path(), self.total(branch));
            }
            add(leaf.path(), ns);
        }
        rows
    }
}

/// Time in which the CPUs did something.
pub fn busy_ns(analysis: &Analysis) -> Nanos {
    Ledger::new(analysis.capacity_ns(), busy(&analysis.cpu_rows(), analysis)).total(Total::Busy)
}

fn busy(rows: &[CpuRow], analysis: &Analysis) -> Vec<(Leaf, Nanos)> {
    let sum = |f: &dyn Fn(&CpuRow) -> u64| rows.iter().map(f).sum::<u64>();
    let kernel = sum(&|r| r.kernel_ns.unwrap_or(0));
    let mut leaves = vec![
        (Leaf::User, sum(&|r| r.user_ns)),
        (Leaf::Kthreads, sum(&|r| r.kthread_ns)),
        (Leaf::Irq, sum(&|r| r.irq_ns.unwrap_or(0))),
        (Leaf::Softirq, sum(&|r| r.softirq_ns.unwrap_or(0))),
    ];
    if analysis.capabilities.contention && analysis.capabilities.syscalls {
        // A CPU row without system calls has no kernel time, so neither has its part.
        let spin = analysis.lock_spin_ns().min(kernel);
        leaves.extend([(Leaf::LockSpin, spin), (Leaf::KernelOther, kernel - spin)]);
    } else {
        leaves.push((Leaf::KernelUndivided, kernel));
    }
    leaves
}

/// The ledger of a trace.
pub(crate) fn of(analysis: &Analysis, waits: &[Wait]) -> Ledger {
    let rows = analysis.cpu_rows();
    let mut ledger = Ledger::new(analysis.capacity_ns(), busy(&rows, analysis));
    let mut shares = [WaitSum::default(); Leaf::ALL.len()];
    for w in waits {
        shares[w.leaf.index()].add(&w.row.sum);
    }
    // The waits' shares and the CPUs' idle time are measured by different machines; where events
    // were lost they may differ, and the CPUs are right.
    let mut left: Nanos = rows.iter().map(|r| r.idle_ns).sum();
    let mut take = |leaf: Leaf, ns: Nanos| {
        let ns = ns.min(left);
        left -= ns;
        ledger.ns[leaf.index()] = Some(ns);
    };
    for leaf in
        [Leaf::ThreadSync, Leaf::KernelServices, Leaf::KernelLocks, Leaf::OneServer, Leaf::Io]
    {
        take(leaf, shares[leaf.index()].share_ns());
    }
    take(Leaf::Scheduler, analysis.scheduler_idle_ns());
    ledger.ns[Leaf::NoWork.index()] = Some(left);
    ledger.ns[Leaf::Unaccounted.index()] = Some(rows.iter().map(|r| r.unaccounted_ns).sum());
    ledger
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_a_tree_in_pre_order() {
        let leaves = [
            (Leaf::Unaccounted, 1),
            (Leaf::Io, 2),
            (Leaf::LockSpin, 3),
            (Leaf::KernelOther, 4),
            (Leaf::User, 10),
        ];
        let ledger = Ledger::new(20, leaves);
        let rows: Vec<_> = ledger.nodes().iter().map(|n| (n.path, n.ns)).collect();
        assert_eq!(
            rows,
            [
                ("busy", 17),
                ("busy/user", 10),
                ("busy/kernel", 7),
                ("busy/kernel/lock-spin", 3),
                ("busy/kernel/other", 4),
                ("idle", 2),
                ("idle/io", 2),
                ("unaccounted", 1)
            ]
        );
    }

    #[test]
    fn an_undivided_leaf_is_its_branch() {
        let ledger =
            Ledger::new(10, [(Leaf::KernelUndivided, 7), (Leaf::IdleUndivided, 2), (Leaf::Io, 1)]);
        let rows: Vec<_> = ledger.nodes().iter().map(|n| (n.path, n.ns)).collect();
        assert_eq!(rows, [("busy", 7), ("busy/kernel", 7), ("idle", 3), ("idle/io", 1)]);
        assert_eq!((ledger.get(Leaf::NoWork), ledger.ns(Leaf::NoWork)), (None, 0));
    }
}
