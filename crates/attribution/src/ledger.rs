//! The capacity ledger: CPUs x wall time, down to leaves that add up to it exactly.
//!
//! The busy side and the idle total come from the CPU accounting of the passes, the division of the
//! idle total from the judged waits. `no work` is the rest of the idle total, so the ledger adds up
//! by construction. That the parts never exceed the total is tested on every trace.

use crate::call::{self, Contended};
use crate::leaf::{Leaf, Total};
use crate::limits::Thresholds;
use crate::resource::Resource;
use crate::spin::Spinning;
use crate::wait::Wait;
use holdup_passes::{Again, Analysis, Cause, CpuRow, WaitSum, percent};
use holdup_syscalls::WaitKind;
use holdup_trace::Nanos;
use serde::Serialize;

/// The capacity ledger: where every CPU-second went. A leaf is `null` if the trace cannot show it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(into = "Rows")]
pub struct Ledger {
    /// Capacity: number of CPUs x wall time.
    pub capacity_ns: Nanos,
    /// What 100 % are.
    whole_ns: Nanos,
    // schemars knows arrays of up to 32.
    #[schemars(with = "Vec<Option<Nanos>>")]
    ns: [Option<Nanos>; Leaf::ALL.len()],
}

/// One node of the capacity ledger.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct LedgerNode {
    /// Path of the node: `busy`, `busy/user`, `idle/thread-sync` …. A parent is the sum of its
    /// children.
    pub path: &'static str,
    /// CPU time of the node.
    pub ns: u64,
    /// CPU time of the node, in per cent of capacity.
    pub pct: f64,
}

/// A ledger as JSON shows it.
#[derive(Serialize, schemars::JsonSchema)]
struct Rows {
    /// Capacity: number of CPUs x wall time.
    capacity_ns: u64,
    /// Nodes of the ledger, each parent before its children.
    nodes: Vec<LedgerNode>,
}

impl From<Ledger> for Rows {
    fn from(ledger: Ledger) -> Rows {
        Rows { capacity_ns: ledger.capacity_ns, nodes: ledger.nodes() }
    }
}

impl Ledger {
    /// A ledger of these leaves; all others are unknown.
    pub fn new(capacity_ns: Nanos, leaves: impl IntoIterator<Item = (Leaf, Nanos)>) -> Ledger {
        let mut ledger = Ledger { capacity_ns, whole_ns: capacity_ns, ns: [None; Leaf::ALL.len()] };
        for (leaf, ns) in leaves {
            ledger.ns[leaf.index()] = Some(ns);
        }
        ledger
    }

    /// Sets another total as 100 %, for figures that were rounded before they were published.
    pub fn in_parts_of(self, whole_ns: Nanos) -> Ledger {
        Ledger { whole_ns, ..self }
    }

    /// Divide a leaf: `ns` of it, at most all, goes to `part`, the rest to `other`.
    pub fn divide(&mut self, leaf: Leaf, part: Leaf, other: Leaf, ns: Nanos) {
        let Some(all) = self.ns[leaf.index()].take() else { return };
        let part_ns = ns.min(all);
        self.ns[part.index()] = Some(part_ns);
        self.ns[other.index()] = Some(all - part_ns);
    }

    /// Move at most `ns` from one leaf to another, which is known then. Returns what was moved.
    pub(crate) fn give(&mut self, from: Leaf, to: Leaf, ns: Nanos) -> Nanos {
        let Some(all) = self.ns[from.index()] else { return 0 };
        let ns = ns.min(all);
        self.ns[from.index()] = Some(all - ns);
        *self.ns[to.index()].get_or_insert(0) += ns;
        ns
    }

    /// Time that was lost to a resource.
    pub fn lost_to(&self, resource: Resource) -> Nanos {
        self.leaves().filter(|l| l.0.lost_to() == Some(resource)).map(|l| l.1).sum()
    }

    /// Time at a leaf; `None` where the trace cannot tell.
    pub fn get(&self, leaf: Leaf) -> Option<Nanos> {
        self.ns[leaf.index()]
    }

    /// Time at a leaf for sums: an unknown leaf counts as 0.
    pub fn ns(&self, leaf: Leaf) -> Nanos {
        self.get(leaf).unwrap_or(0)
    }

    /// If events are missing, waits may claim more idle time than the ledger has at their leaf.
    /// Scale them down, so that their sum is the ledger's figure or less.
    pub(crate) fn bound(&self, waits: &mut [Wait]) {
        let mut claimed = [0u128; Leaf::ALL.len()];
        for w in &*waits {
            claimed[w.leaf.index()] += w.row.sum.share;
        }
        for w in waits {
            let (all, has) = (claimed[w.leaf.index()], self.ns(w.leaf));
            // In whole nanoseconds; neither exceeds 2^64.
            let (all, has) = (WaitSum { share: all, ..WaitSum::default() }.share_ns(), has);
            if all > has {
                w.row.sum.share = w.row.sum.share / u128::from(all) * u128::from(has);
            }
        }
    }

    /// CPU time that the work used, or would have used if nothing had delayed it. The rest of the
    /// capacity is time without work: it grows with every CPU beyond those that the work needs.
    pub fn wanted_ns(&self) -> Nanos {
        let spare = self.ns(Leaf::NoWork) + self.ns(Leaf::Serial) + self.ns(Leaf::Order);
        self.capacity_ns.saturating_sub(spare)
    }

    /// Time in all leaves of a node.
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
            // An undivided leaf has the path of its branch, and the branch's row shows it.
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
    let rows = analysis.cpu_rows();
    rows.iter().map(|r| r.wall_ns - r.idle_ns - r.unaccounted_ns).sum()
}

/// Time that is distributed leaf by leaf until nothing is left. The leaves' claims are measured in
/// different ways, and where events were lost they may be too large.
struct Rest {
    left: Nanos,
}

impl Rest {
    fn take(&mut self, ns: Nanos) -> Nanos {
        let ns = ns.min(self.left);
        self.left -= ns;
        ns
    }
}

/// The judgements that the ledger is made from.
#[derive(Clone, Copy)]
pub(crate) struct Judged<'a> {
    pub(crate) analysis: &'a Analysis,
    pub(crate) waits: &'a [Wait],
    pub(crate) contended: &'a [Contended],
    pub(crate) spinning: &'a [Spinning],
    pub(crate) thresholds: &'a Thresholds,
}

/// The ledger of a trace.
pub(crate) fn of(judged: Judged<'_>) -> Ledger {
    let Judged { analysis, waits, spinning, .. } = judged;
    let rows = analysis.cpu_rows();
    let sum = |f: fn(&CpuRow) -> Option<u64>| -> Option<Nanos> { rows.iter().map(f).sum() };
    let idle = idle(analysis, waits, &rows);
    // What the CPUs were charged for while they were taken away.
    let seen = analysis.stolen();
    let stolen = seen.unwrap_or_default();
    let mut taken = 0;
    let mut without = |ns: Option<Nanos>, stolen: Nanos| {
        let ns = ns?;
        taken += stolen.min(ns);
        Some(ns - stolen.min(ns))
    };
    let (outside, in_calls) = analysis.application_ns();
    let user = without(Some(outside), stolen.user_ns);
    let in_kernel = without(in_calls, stolen.kernel_ns);
    let kthreads = without(sum(|r| Some(r.kthread_ns)), stolen.kthread_ns);
    let softirq = without(sum(|r| r.softirq_ns), stolen.softirq_ns);
    let mut spun = Again::default();
    spinning.iter().for_each(|s| spun.add(s.sum));
    let spun_user = spun.user_ns.min(user.unwrap_or(0));
    let spun_kernel = (spun.cpu_ns - spun.user_ns.min(spun.cpu_ns)).min(in_kernel.unwrap_or(0));
    let known = [
        (application(analysis), user.map(|ns| ns - spun_user)),
        (Leaf::Spin, in_kernel.map(|_| spun_user + spun_kernel)),
        (Leaf::Kthreads, kthreads),
        (Leaf::Irq, sum(|r| r.irq_ns)),
        (Leaf::Softirq, softirq),
        (seen.map_or(Leaf::Unaccounted, |_| Leaf::Unseen), sum(|r| Some(r.unaccounted_ns))),
        (Leaf::Stolen, seen.map(|_| taken)),
    ];
    let known = known.into_iter().filter_map(|(leaf, ns)| Some((leaf, ns?)));
    let kernel = in_kernel
        .map(|ns| {
            let (left, spin) = (ns - spun_kernel, stolen.lock_spin_ns);
            kernel(judged, left, spin)
        })
        .unwrap_or_default();
    Ledger::new(analysis.capacity_ns(), known.chain(kernel).chain(idle))
}

/// The leaf of time outside recorded system calls: application code, unless only some calls were
/// recorded, so that it may be time in others.
pub(crate) fn application(analysis: &Analysis) -> Leaf {
    match analysis.capabilities.syscalls.chosen() {
        Some(_) => Leaf::ApplicationUndivided,
        None => Leaf::UserUndivided,
    }
}

/// System calls: waiting for other threads and for locks, and the rest.
fn kernel(judged: Judged<'_>, all: Nanos, stolen_spin: Nanos) -> Vec<(Leaf, Nanos)> {
    let Judged { analysis, waits, contended, thresholds, .. } = judged;
    let mut rest = Rest { left: all };
    let lost = |wanted: &dyn Fn(&Contended) -> bool| -> Nanos {
        contended.iter().filter(|c| wanted(c)).map(|c| c.lost_ns).sum()
    };
    let turns = |kinds: fn(WaitKind) -> bool| {
        // CPU time beyond the calls' own work because of kernel locks is no contention of threads.
        let burnt = lost(&|c| kinds(c.kind) && !c.for_others);
        if call::is_named(burnt, analysis, thresholds) {
            0
        } else {
            analysis.sleep_and_wake_ns(kinds)
        }
    };
    let library = turns(WaitKind::is_library);
    let between = between_processes(library, waits);
    let mut leaves = vec![(Leaf::ThreadSyncCalls, rest.take(library - between))];
    let services = turns(WaitKind::is_service) + between;
    leaves.push((Leaf::ServiceCalls, rest.take(services)));
    let mut shown = 0;
    if analysis.sees_locks() {
        // Lockdep's events show more waits than the contention events from which the CPUs' time
        // comes.
        let spin = analysis.lock_spin_ns().saturating_sub(stolen_spin);
        shown = rest.take(spin.max(analysis.spun_at_locks_ns()));
        leaves.push((Leaf::LockSpin, shown));
    }
    // On one CPU no thread waits inside the kernel for another.
    let inferred = lost(&|c| !c.for_others).saturating_sub(shown);
    leaves.push((Leaf::LockWait, rest.take(inferred)));
    leaves.push((Leaf::KernelOther, rest.left));
    leaves
}

/// The part of the time in futex calls by which processes contend: in proportion to the waits.
fn between_processes(library_ns: Nanos, waits: &[Wait]) -> Nanos {
    let (mut between, mut all) = (0, 0);
    for w in waits.iter().filter(|w| w.row.cause.is_ended_by_thread()) {
        if w.row.kind.is_some_and(WaitKind::is_library) {
            all += w.row.sum.waits;
            between += if w.row.cause == Cause::KernelService { w.row.sum.waits } else { 0 };
        }
    }
    (library_ns as u128 * between as u128 / all.max(1) as u128) as Nanos
}

/// Idle time, by what threads waited for meanwhile.
fn idle(analysis: &Analysis, waits: &[Wait], rows: &[CpuRow]) -> Vec<(Leaf, Nanos)> {
    let mut shares = [WaitSum::default(); Leaf::ALL.len()];
    for w in waits {
        shares[w.leaf.index()].add(&w.row.sum);
    }
    let mut rest = Rest { left: rows.iter().map(|r| r.idle_ns).sum() };
    let mut leaves = Vec::new();
    for leaf in Leaf::WAITED_FOR {
        leaves.push((leaf, rest.take(shares[leaf.index()].share_ns())));
    }
    leaves.push((Leaf::Throttled, rest.take(analysis.throttled_idle_ns())));
    leaves.push((Leaf::Order, rest.take(shares[Leaf::Order.index()].share_ns())));
    leaves.push((Leaf::Scheduler, rest.take(analysis.scheduler_idle_ns())));
    // Idle time that no harmful wait claims, while one thread had all the work.
    leaves.push((Leaf::Serial, rest.take(analysis.serial_ns())));
    leaves.push((Leaf::NoWork, rest.left));
    leaves
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
            (Leaf::UserUndivided, 10),
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
