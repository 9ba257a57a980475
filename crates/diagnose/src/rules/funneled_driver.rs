//! Driver work confined to one CPU while others wait for it.
//!
//! # What it does
//! Adds up, for each CPU, the time in kernel threads, interrupts and softirqs. It holds where one
//! CPU does more of all such work than the others together and spends much of its own time on it,
//! while the others are idle: everything goes through one interrupt line, one receive queue, one
//! worker, one driver thread. It also holds where one driver thread, or work items of one function
//! one at a time, are busy most of the time, on whichever CPU.
//!
//! # Why it holds a system up
//! The work of a driver is done on behalf of the threads that wait for it. Confined to one CPU it
//! limits them all, however many CPUs there are. In AIX such drivers were those not safe on a
//! multiprocessor, run on CPU 0; in Linux it is an affinity mask, a device with one queue, or a
//! driver with one thread.
//!
//! # What to do
//! Spread interrupts (`/proc/irq/*/smp_affinity`, more queues), receive work (RPS: `rps_cpus`),
//! work items (`/sys/devices/virtual/workqueue/*/cpumask`), or use several devices.
//!
//! Source: Olszewski and Van Fleet, "SMP Performance", section Workload Imbalance (funneling).

use super::{COST, Fixtures, Rule, Told, cost, finding, in_cpus};
use crate::culprits;
use crate::facts::Facts;
use crate::report::{Class, Culprit, Evidence, Finding};
use holdup_attribution::{Check, Leaf, Total, thresholds};
use holdup_passes::CpuRow;

pub(super) const RULE: Rule = Rule {
    id: "funneled-driver",
    class: Class::FunneledDriver,
    check,
    file: include_str!("funneled_driver.rs"),
    needs: &["switches"],
    thresholds: &[COST, THRESHOLDS],
    fixtures: Fixtures {
        positive: "fun_raid6_write_perf_c8/perf.data",
        negative: "io_disk_perf_c4/perf.data",
    },
};

thresholds! {
    /// Also that of [`crate::guide`].
    pub(crate) SATURATED = "funneled-driver.saturated_pct", 40.0, "% of its time",
        meaning: "the CPU must spend this part of its time on driver work",
        source: "funnels recorded for tests spend 42 to 97 % (recordings begin before the work \
                 does), their controls at most 30 %";
    /// Also that of [`crate::guide`].
    pub(crate) CONCENTRATED = "funneled-driver.concentrated_pct", 50.0, "%",
        meaning: "and do this part of all driver work",
        source: "more than all other CPUs together; spread evenly it would be 100/N";
    SERIAL = "funneled-driver.serial_pct", 60.0, "% of the wall time",
        meaning: "a driver's one thread, or its work items that run one at a time, must be busy \
                  for this part of the time",
        source: "RAID threads, mirror and snapshot workers that hold others up run 65 to 98 % \
                 of recordings that begin before the work does";
    OVERLAP = "funneled-driver.overlap_pct", 120.0, "% of the time with one in progress",
        meaning: "work items of one function that run for more than this in sum, as they \
                  overlap, are not one worker's",
        source: "100 % if one runs at a time; the rest is for hand-overs";
}

/// A driver's only worker, and how long it was busy, wherever it ran: the busiest kernel thread, or
/// function of work items of which one runs at a time.
fn serial(facts: &Facts<'_>) -> Option<Culprit> {
    // A kworker is many workers' thread: its work items stand for it, where they were recorded.
    let threads = facts
        .analysis
        .threads()
        .filter(|(_, t)| t.is_kthread())
        .map(|(slot, t)| facts.culprit("kthread", slot, t.running_ns));
    let works =
        facts.analysis.irqs(false).into_iter().filter(|r| r.kind == "workqueue").filter_map(|r| {
            let ns = facts.analysis.work_busy_ns(r.id);
            let one_at_a_time = r.total_ns as f64 * 100.0 <= ns as f64 * facts.limit(&OVERLAP);
            one_at_a_time.then(|| Culprit {
                kind: r.kind,
                id: r.name.clone(),
                name: r.name,
                ns,
                ..Culprit::default()
            })
        });
    threads.chain(works).max_by(|a, b| a.ns.cmp(&b.ns).then(b.name.cmp(&a.name)))
}

fn driver(row: &CpuRow) -> u64 {
    row.kthread_ns + row.irq_ns.unwrap_or(0) + row.softirq_ns.unwrap_or(0)
}

/// The CPU with most driver work.
struct Busiest {
    row: CpuRow,
    /// That work in per cent of its time, and of all such work.
    saturated: Check,
    concentrated: Check,
    /// It takes much of this CPU and little of the others.
    confined: bool,
    /// There are others.
    several: bool,
}

fn busiest(facts: &Facts<'_>) -> Option<Busiest> {
    let rows = facts.analysis.cpu_rows();
    let all: u64 = rows.iter().map(driver).sum();
    let several = rows.len() > 1;
    let row = rows.into_iter().max_by_key(|r| (driver(r), std::cmp::Reverse(r.cpu)))?;
    let of = |whole: u64| driver(&row) as f64 * 100.0 / whole.max(1) as f64;
    let saturated = facts.at_least(of(facts.wall), &SATURATED);
    let concentrated = facts.at_least(of(all), &CONCENTRATED);
    let confined = several && saturated.holds() && concentrated.holds();
    Some(Busiest { row, saturated, concentrated, confined, several })
}

/// Driver work takes much of one CPU and little of the others.
pub(super) fn confined_driver(facts: &Facts<'_>) -> bool {
    busiest(facts).is_some_and(|b| b.confined)
}

/// The leaves that a driver's slowness may fill: what threads wait for each other for is not its.
const BEHIND_A_DRIVER: [Leaf; 6] = [
    Leaf::Io,
    Leaf::KernelLocks,
    Leaf::KernelServices,
    Leaf::Scheduler,
    Leaf::Serial,
    Leaf::NoWork,
];

/// What the rule tells.
enum Story {
    /// One CPU does the work.
    Confined { by: Option<Culprit> },
    /// One worker does it, on any CPU.
    OneWorker { worker: Culprit },
}

impl Story {
    fn told(&self, facts: &Facts<'_>, busiest: &Busiest, idle: f64) -> Told {
        match self {
            Story::Confined { by } => Told {
                story: "confined-driver",
                summary: format!(
                    "CPU {} spends {:.0} % of its time on driver work{}, {:.0} % of all there is; \
                        the other CPUs are idle for {idle:.1} CPUs",
                    busiest.row.cpu,
                    busiest.saturated.value,
                    by.as_ref().map_or(String::new(), |c| format!(", most of it {}", c.name)),
                    busiest.concentrated.value,
                ),
                advice: vec![
                    "spread the interrupts or receive queues over CPUs: \
                     /proc/irq/*/smp_affinity, rps_cpus, more queues"
                        .to_owned(),
                    "let workers run elsewhere: /sys/devices/virtual/workqueue/*/cpumask, \
                     taskset -p for a driver's thread"
                        .to_owned(),
                ],
            },
            Story::OneWorker { worker } => Told {
                story: "one-worker",
                summary: format!(
                    "{} {} is busy {:.0} % of the time, one piece of work after the other, and \
                     others wait for it: {idle:.1} CPUs are idle",
                    worker.kind,
                    worker.name,
                    of_time(facts, worker),
                ),
                advice: vec![
                    "let the device have more than one worker: more threads or queues of its \
                     driver, or several devices"
                        .to_owned(),
                ],
            },
        }
    }
}

fn of_time(facts: &Facts<'_>, worker: &Culprit) -> f64 {
    worker.ns as f64 * 100.0 / facts.wall.max(1) as f64
}

fn check(facts: &Facts<'_>) -> Finding {
    let Some(top) = busiest(facts) else {
        return finding(facts, &RULE, &[], Told::plain("no-driver", "there are no CPUs"));
    };
    let worker = serial(facts).filter(|_| top.several);
    let in_progress = |w: &Culprit| facts.at_least(of_time(facts, w), &SERIAL);
    let story = match worker.clone().filter(|w| in_progress(w).holds()) {
        Some(worker) if !top.confined => Story::OneWorker { worker },
        _ => Story::Confined { by: culprit(facts, top.row.cpu) },
    };
    // The CPU that does the work may idle as well: that is not for lack of the driver.
    let others_idle = facts.total(Total::Idle).saturating_sub(top.row.idle_ns);
    // Of a worker that goes from CPU to CPU only those who sleep for a device can be waiting.
    let leaves = if top.confined { &BEHIND_A_DRIVER[..] } else { &BEHIND_A_DRIVER[..2] };
    let mut left = if top.several { others_idle } else { 0 };
    let parts: Vec<(Leaf, u64)> = leaves
        .iter()
        .map(|&leaf| {
            let ns = facts.leaf(leaf).min(left);
            left -= ns;
            (leaf, ns)
        })
        .collect();
    let idle = in_cpus(facts, parts.iter().map(|p| p.1).sum());
    let mut f = finding(facts, &RULE, &parts, story.told(facts, &top, idle));
    let [of_wanted, of_one_cpu] = cost(facts, &f);
    f.evidence = vec![
        Evidence::checked(
            format!("driver work on CPU {}", top.row.cpu),
            &top.saturated,
            "% of its time",
            "cpus",
        ),
        Evidence::checked("its part of all driver work", &top.concentrated, "%", "cpus"),
        of_wanted,
        of_one_cpu,
    ];
    if let Some(w) = &worker {
        let metric = format!("{} {} in progress, on any CPU", w.kind, w.name);
        f.evidence.push(Evidence::checked(metric, &in_progress(w), "% of the time", "irqs, procs"));
    }
    let alone = matches!(story, Story::OneWorker { .. });
    if f.ruled_out.is_none() && !alone && !top.confined {
        f.ruled_out = Some(if !top.saturated.holds() {
            format!(
                "no CPU spends more than {:.0} % of its time on driver work",
                top.saturated.value
            )
        } else if !top.concentrated.holds() {
            format!(
                "driver work is spread: CPU {} does {:.0} % of it",
                top.row.cpu, top.concentrated.value
            )
        } else {
            "there is one CPU only".to_owned()
        });
    }
    f.culprits = match story {
        Story::Confined { by } => culprits::driver(facts, by, top.row.cpu),
        Story::OneWorker { worker } => culprits::worker(facts, worker),
    };
    f
}

/// What does most of the work on that CPU: a softirq, an interrupt, a work function, or else the
/// kernel thread that ran longest.
fn culprit(facts: &Facts<'_>, cpu: u16) -> Option<Culprit> {
    let handler = facts
        .analysis
        .irqs(true)
        .into_iter()
        .filter(|r| r.cpu == Some(cpu))
        .max_by_key(|r| r.total_ns);
    let thread = facts
        .analysis
        .threads()
        .filter(|(_, t)| t.is_kthread() && t.last_cpu().0 == cpu)
        .max_by_key(|(_, t)| t.running_ns);
    match (handler, thread) {
        (Some(h), t) if t.is_none_or(|(_, t)| t.running_ns < h.total_ns) => Some(Culprit {
            kind: h.kind,
            id: h.id.to_string(),
            name: format!("{} {}", h.kind, h.name),
            ns: h.total_ns,
            ..Culprit::default()
        }),
        (_, Some((slot, t))) => Some(facts.culprit("kthread", slot, t.running_ns)),
        (Some(_), None) | (None, None) => None,
    }
}
