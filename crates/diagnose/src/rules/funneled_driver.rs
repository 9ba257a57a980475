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

use super::{Fixtures, MATTERS, Rule, finding};
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
    thresholds: &[&[MATTERS], THRESHOLDS],
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

fn check(facts: &Facts<'_>) -> Finding {
    let Some(Busiest { row: top, saturated, concentrated, confined, several }) = busiest(facts)
    else {
        return finding(facts, &RULE, 0, "there are no CPUs".to_owned());
    };
    let wall = facts.wall.max(1) as f64;
    // Idle time that threads waiting for each other explain is not the driver's.
    let lost = if !several {
        0
    } else {
        let explained = facts.leaf(Leaf::ThreadSync) + facts.leaf(Leaf::OneServer) + top.idle_ns;
        facts.total(Total::Idle).saturating_sub(explained)
    };
    // Of a worker that goes from CPU to CPU only those who sleep for a device can be waiting.
    let lost = if confined {
        lost
    } else {
        lost.min(facts.leaf(Leaf::Io) + facts.leaf(Leaf::KernelLocks))
    };
    let culprit = culprit(facts, top.cpu);
    let in_progress = |s: &Culprit| facts.at_least(s.ns as f64 * 100.0 / wall, &SERIAL);
    let serial = serial(facts).filter(|s| several && in_progress(s).holds());
    let by = culprit.as_ref().map_or(String::new(), |c| format!(", most of it {}", c.name));
    let summary = match &serial {
        Some(s) if !confined => format!(
            "{} {} is busy {:.0} % of the time, one piece of work after the other, and others wait for it: {:.1} CPUs are idle",
            s.kind,
            s.name,
            s.ns as f64 * 100.0 / wall,
            lost as f64 / wall
        ),
        _ => format!(
            "CPU {} spends {:.0} % of its time on driver work{by}, {:.0} % of all there is; the other CPUs are idle for {:.1} CPUs",
            top.cpu,
            saturated.value,
            concentrated.value,
            lost as f64 / wall
        ),
    };
    let mut f = finding(facts, &RULE, lost, summary);
    f.evidence = vec![
        Evidence::checked(
            format!("driver work on CPU {}", top.cpu),
            &saturated,
            "% of its time",
            "cpus",
        ),
        Evidence::checked("its part of all driver work", &concentrated, "%", "cpus"),
        Evidence::of(
            "idle elsewhere, not waiting for other threads",
            facts.pct(lost),
            "% of capacity",
            "ledger",
        )
        .against(&facts.judged.thresholds, &MATTERS),
    ];
    if let Some(s) = &serial {
        let metric = format!("{} {} in progress, on any CPU", s.kind, s.name);
        let check = in_progress(s);
        f.evidence.push(Evidence::checked(metric, &check, "% of the time", "irqs, procs"));
    }
    // One worker is enough, wherever it runs.
    let undecided = f.ruled_out.is_none() && serial.is_none();
    if undecided && !saturated.holds() {
        f.ruled_out = Some(format!(
            "no CPU spends more than {:.0} % of its time on driver work",
            saturated.value
        ));
    } else if undecided && !concentrated.holds() {
        f.ruled_out = Some(format!(
            "driver work is spread: CPU {} does {:.0} % of it",
            top.cpu, concentrated.value
        ));
    }
    if let Some(worker) = serial.filter(|_| !confined) {
        f.culprits = culprits::worker(facts, worker);
        f.advice = vec!["let the device have more than one worker: more threads or queues of its driver, or several devices".to_owned()];
        return f;
    }
    f.culprits = culprits::driver(facts, culprit, top.cpu);
    f.advice = vec![
        "spread the interrupts or receive queues over CPUs: /proc/irq/*/smp_affinity, rps_cpus, more queues".to_owned(),
        "let workers run elsewhere: /sys/devices/virtual/workqueue/*/cpumask, taskset -p for a driver's thread".to_owned(),
    ];
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
