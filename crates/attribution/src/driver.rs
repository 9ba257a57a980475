//! Driver work that is confined to one CPU or one worker while other CPUs idle.
//!
//! A driver works on behalf of the threads that wait for it. If one CPU does most of this work, or
//! one worker all of it, the idle time of the other CPUs is lost to the driver, whatever call the
//! threads sleep in.

use crate::leaf::{Leaf, Total};
use crate::ledger::Ledger;
use holdup_passes::{Analysis, CpuRow, Slot};
use holdup_trace::Nanos;
use std::cmp::Reverse;

/// What the driver's work is confined to.
#[derive(Clone, Debug, PartialEq)]
pub enum Funnel {
    /// One CPU does more of it than all others together.
    Cpu,
    /// One worker does it, on any CPU.
    Worker(Worker),
}

/// A driver's one worker.
#[derive(Clone, Debug, PartialEq)]
pub enum Worker {
    /// A kernel thread, and how long it ran.
    Thread(Slot, Nanos),
    /// Work items of one function, of which one runs at a time: the function and their time.
    Items(String, Nanos),
}

impl Worker {
    /// How long it was busy.
    pub fn ns(&self) -> Nanos {
        match self {
            Worker::Thread(_, ns) | Worker::Items(_, ns) => *ns,
        }
    }
}

/// The driver work of a trace.
#[derive(Clone, Debug, PartialEq)]
pub struct Driver {
    /// The CPU that does most of it.
    pub busiest: CpuRow,
    /// Its driver work, in per cent of the CPU's time.
    pub saturated_pct: f64,
    /// Its driver work, in per cent of all driver work.
    pub concentrated_pct: f64,
    /// The busiest worker, and for how much of the time it was busy, in per cent.
    pub worker: Option<(Worker, f64)>,
    /// What the work is confined to, if it is.
    pub funnel: Option<Funnel>,
}

/// More than all the rest, in per cent.
const MOST: f64 = 50.0;

/// CPU time of a driver's work.
fn work_ns(row: &CpuRow) -> Nanos {
    row.kthread_ns + row.irq_ns.unwrap_or(0) + row.softirq_ns.unwrap_or(0)
}

impl Driver {
    /// Look at all driver work; `None` where there are no CPUs.
    pub(crate) fn of(analysis: &Analysis) -> Option<Driver> {
        let rows = analysis.cpu_rows();
        let all: Nanos = rows.iter().map(work_ns).sum();
        let several = rows.len() > 1;
        let busiest = rows.into_iter().max_by_key(|r| (work_ns(r), Reverse(r.cpu)))?;
        let pct = |ns: Nanos, whole: Nanos| ns as f64 * 100.0 / whole.max(1) as f64;
        let wall = analysis.wall_ns();
        let saturated_pct = pct(work_ns(&busiest), wall);
        let concentrated_pct = pct(work_ns(&busiest), all);
        let worker = worker(analysis).filter(|_| several);
        let worker = worker.map(|w| (w.clone(), pct(w.ns(), wall)));
        // More than all other CPUs together, and more than the CPU's other work.
        let confined = several && saturated_pct >= MOST && concentrated_pct >= MOST;
        let funnel = match &worker {
            _ if confined => Some(Funnel::Cpu),
            Some((w, busy_pct)) if *busy_pct >= MOST => Some(Funnel::Worker(w.clone())),
            _ => None,
        };
        Some(Driver { busiest, saturated_pct, concentrated_pct, worker, funnel })
    }

    /// One CPU does more of it than all others together.
    pub fn is_confined(&self) -> bool {
        self.funnel == Some(Funnel::Cpu)
    }

    /// Move the idle time that the driver explains to it. If a worker moves between CPUs, only
    /// threads that sleep for a device or a kernel lock can be waiting for it.
    pub(crate) fn claim(&self, ledger: &mut Ledger) {
        const BEHIND: [Leaf; 6] = [
            Leaf::Io,
            Leaf::KernelLocks,
            Leaf::KernelServices,
            Leaf::Scheduler,
            Leaf::Serial,
            Leaf::NoWork,
        ];
        let leaves = match self.funnel {
            Some(Funnel::Cpu) => &BEHIND[..],
            Some(Funnel::Worker(_)) => &BEHIND[..2],
            None => return,
        };
        // The CPU that does the work may idle as well, but not because of the driver.
        let mut left = ledger.total(Total::Idle).saturating_sub(self.busiest.idle_ns);
        for &leaf in leaves {
            left -= ledger.give(leaf, Leaf::Driver, left);
        }
    }
}

/// A driver's busiest worker: a kernel thread, or work items of one function that run one at a
/// time.
fn worker(analysis: &Analysis) -> Option<Worker> {
    let threads = analysis.all_threads().filter(|(_, t)| t.is_kthread());
    let threads = threads.map(|(slot, t)| Worker::Thread(slot, t.running_ns));
    // A kworker thread runs many drivers' work: its work items count instead, if recorded.
    let items = analysis.irqs(false).into_iter().filter(|r| r.kind == "workqueue");
    let items = items.filter_map(|r| {
        let ns = analysis.work_busy_ns(r.id);
        // Fewer than two at a time on average: one may report its end after the next has begun.
        (r.total_ns < ns * 2).then_some(Worker::Items(r.name, ns))
    });
    threads.chain(items).filter(|w| w.ns() > 0).max_by_key(|w| w.ns())
}
