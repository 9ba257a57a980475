//! Interrupts, softirqs and work items: how often, how long, where.
//!
//! An execution runs from its entry event to its exit event on the same CPU (work items: on the
//! same `work_struct`), nested interrupts included, as `perf kwork report` counts it.

use holdup_trace::{Cpu, NameId, Nanos};
use rustc_hash::FxHashMap;

/// Which table a row belongs to.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub(crate) enum IrqKind {
    Irq,
    Vector,
    Softirq,
    Work,
}

/// A handler of interrupts, softirqs or work items.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Handler {
    pub(crate) kind: IrqKind,
    pub(crate) id: u64,
    pub(crate) cpu: Cpu,
}

/// Executions of one handler on one CPU.
#[derive(Clone, Debug, Default)]
pub(crate) struct IrqStats {
    pub(crate) name: NameId,
    pub(crate) count: u64,
    pub(crate) total: Nanos,
    pub(crate) max: Nanos,
    pub(crate) max_start: Nanos,
}

impl IrqStats {
    fn ran(&mut self, start: Nanos, end: Nanos) {
        let span = end.saturating_sub(start);
        self.count += 1;
        self.total += span;
        if span > self.max || self.count == 1 {
            (self.max, self.max_start) = (span, start);
        }
    }

    pub(crate) fn merge(&mut self, o: &IrqStats) {
        if o.count > 0 && (o.max > self.max || self.count == 0) {
            (self.max, self.max_start) = (o.max, o.max_start);
        }
        if self.name == NameId::NONE {
            self.name = o.name;
        }
        self.count += o.count;
        self.total += o.total;
    }
}

/// Key of a row: kind, id, CPU.
pub(crate) type IrqKey = (IrqKind, u64, Cpu);

/// All handlers.
#[derive(Clone, Debug, Default)]
pub(crate) struct Irqs {
    pub(crate) rows: FxHashMap<IrqKey, IrqStats>,
    /// Work items in progress: start, function, name, CPU.
    works: FxHashMap<u64, (Nanos, u64, NameId, Cpu)>,
    /// By function: how many of its work items are in progress, since when at least one is, and the
    /// total time.
    pub(crate) busy: FxHashMap<u64, Busy>,
}

/// Time during which at least one work item of a function was in progress.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Busy {
    now: u32,
    since: Nanos,
    pub(crate) total: Nanos,
}

/// ftrace text gives a name and no address: the id of the name then identifies the function.
fn function_id(function: u64, name: NameId) -> u64 {
    if function != 0 { function } else { name.0 as u64 }
}

/// A kernel runs at most some thousands of works at once; more means lost ends.
const MAX_WORKS: usize = 1 << 16;

impl Irqs {
    /// An interrupt or softirq was entered: remember its name.
    pub(crate) fn named(&mut self, kind: IrqKind, id: u64, cpu: Cpu, name: NameId) {
        self.rows.entry((kind, id, cpu)).or_default().name = name;
    }

    /// An interrupt or softirq ended.
    pub(crate) fn ran(&mut self, kind: IrqKind, id: u64, cpu: Cpu, start: Nanos, end: Nanos) {
        self.rows.entry((kind, id, cpu)).or_default().ran(start, end);
    }

    pub(crate) fn work_start(
        &mut self,
        now: Nanos,
        cpu: Cpu,
        work: u64,
        function: u64,
        name: NameId,
    ) {
        if self.works.len() < MAX_WORKS || self.works.contains_key(&work) {
            let unfinished = self.works.insert(work, (now, function, name, cpu));
            let busy = self.busy.entry(function_id(function, name)).or_default();
            if busy.now == 0 {
                busy.since = now;
            }
            busy.now += unfinished.is_none() as u32;
        }
    }

    /// Start and function of a work item; `None` if its start was not seen.
    pub(crate) fn work_end(&mut self, now: Nanos, work: u64) -> Option<(Nanos, Handler)> {
        let (start, function, name, cpu) = self.works.remove(&work)?;
        let id = function_id(function, name);
        if let Some(busy) = self.busy.get_mut(&id) {
            busy.now = busy.now.saturating_sub(1);
            if busy.now == 0 {
                busy.total += now.saturating_sub(busy.since);
            }
        }
        let row = self.rows.entry((IrqKind::Work, id, cpu)).or_default();
        row.name = name;
        row.ran(start, now);
        Some((start, Handler { kind: IrqKind::Work, id, cpu }))
    }

    pub(crate) fn restart(&mut self) {
        self.rows.clear();
        // Work in progress counts from its beginning, as its row does.
        self.busy.retain(|_, b| b.now > 0);
        self.busy.values_mut().for_each(|b| b.total = 0);
    }
}
