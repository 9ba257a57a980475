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
use crate::facts::Facts;
use crate::report::{Class, Culprit, Evidence, Finding};
use crate::thresholds::Threshold;
use holdup_passes::CpuRow;

pub(super) const RULE: Rule = Rule {
    id: "funneled-driver",
    class: Class::FunneledDriver,
    check,
    file: include_str!("funneled_driver.rs"),
    needs: &["switches"],
    thresholds: &[MATTERS, SATURATED, CONCENTRATED, SERIAL],
    fixtures: Fixtures {
        positive: "fun_raid6_write_perf_c8/perf.data",
        negative: "io_disk_perf_c4/perf.data",
    },
};

/// Also that of [`crate::guide`].
pub(crate) const SATURATED: Threshold = Threshold {
    key: "funneled-driver.saturated_pct",
    default: 40.0,
    unit: "% of its time",
    meaning: "the CPU must spend this part of its time on driver work",
    source: "funnels recorded for tests spend 42 to 97 % (recordings begin before the work does), their controls at most 30 %",
};
/// Also that of [`crate::guide`].
pub(crate) const CONCENTRATED: Threshold = Threshold {
    key: "funneled-driver.concentrated_pct",
    default: 50.0,
    unit: "%",
    meaning: "and do this part of all driver work",
    source: "more than all other CPUs together; spread evenly it would be 100/N",
};

const SERIAL: Threshold = Threshold {
    key: "funneled-driver.serial_pct",
    default: 60.0,
    unit: "% of the wall time",
    meaning: "a driver's one thread, or its work items that run one at a time, must be busy for this part of the time",
    source: "RAID threads, mirror and snapshot workers that hold others up run 65 to 98 % of recordings that begin before the work does",
};
/// Work items of one function that run at the same time for more than this part are not one
/// worker's, in per cent.
const OVERLAP_PCT: u64 = 120;

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
            let one_at_a_time = r.total_ns as u128 * 100 <= ns as u128 * OVERLAP_PCT as u128;
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
    saturated: f64,
    concentrated: f64,
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
    let (saturated, concentrated) = (of(facts.wall), of(all));
    let confined = several
        && saturated >= facts.limit(&SATURATED)
        && concentrated >= facts.limit(&CONCENTRATED);
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
    let ledger = |path| facts.ledger.ns(path);
    let lost = if !several {
        0
    } else {
        let explained = ledger("idle/thread-sync") + ledger("idle/one-server") + top.idle_ns;
        ledger("idle").saturating_sub(explained)
    };
    // Of a worker that goes from CPU to CPU only those who sleep for a device can be waiting.
    let lost =
        if confined { lost } else { lost.min(ledger("idle/io") + ledger("idle/kernel-locks")) };
    let culprit = culprit(facts, top.cpu);
    let serial =
        serial(facts).filter(|s| several && s.ns as f64 * 100.0 >= facts.limit(&SERIAL) * wall);
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
            "CPU {} spends {saturated:.0} % of its time on driver work{by}, {concentrated:.0} % of all there is; the other CPUs are idle for {:.1} CPUs",
            top.cpu,
            lost as f64 / wall
        ),
    };
    let mut f = finding(facts, &RULE, lost, summary);
    f.evidence = vec![
        Evidence::of(format!("driver work on CPU {}", top.cpu), saturated, "% of its time", "cpus")
            .against(facts.limit(&SATURATED)),
        Evidence::of("its part of all driver work", concentrated, "%", "cpus")
            .against(facts.limit(&CONCENTRATED)),
        Evidence::of(
            "idle elsewhere, not waiting for other threads",
            facts.pct(lost),
            "% of capacity",
            "ledger",
        )
        .against(facts.limit(&MATTERS)),
    ];
    if let Some(s) = &serial {
        f.evidence.push(
            Evidence::of(
                format!("{} {} in progress, on any CPU", s.kind, s.name),
                s.ns as f64 * 100.0 / wall,
                "% of the time",
                "irqs, procs",
            )
            .against(facts.limit(&SERIAL)),
        );
    }
    // One worker is enough, wherever it runs.
    let undecided = f.ruled_out.is_none() && serial.is_none();
    if undecided && saturated < facts.limit(&SATURATED) {
        f.ruled_out =
            Some(format!("no CPU spends more than {saturated:.0} % of its time on driver work"));
    } else if undecided && concentrated < facts.limit(&CONCENTRATED) {
        f.ruled_out =
            Some(format!("driver work is spread: CPU {} does {concentrated:.0} % of it", top.cpu));
    }
    if let Some(worker) = serial.filter(|_| !confined) {
        f.culprits = vec![worker];
        f.advice = vec!["let the device have more than one worker: more threads or queues of its driver, or several devices".to_owned()];
        return f;
    }
    f.culprits = culprit.into_iter().collect();
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
