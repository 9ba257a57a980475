//! Driver work confined to one CPU while others wait for it.
//!
//! # What it does
//! Adds up, for each CPU, the time in kernel threads, interrupts and softirqs. It holds where one
//! CPU does most of all such work and spends most of its own time on it, while the others are
//! idle: everything goes through one interrupt line, one receive queue, one worker, one driver
//! thread.
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
    thresholds: &[MATTERS, SATURATED, CONCENTRATED],
    fixtures: Fixtures { positive: "fun_raid6_write_perf_c8/perf.data", negative: "io_disk_perf_c4/perf.data" },
};

/// Also that of [`crate::guide`].
pub(crate) const SATURATED: Threshold = Threshold {
    key: "funneled-driver.saturated_pct",
    default: 45.0,
    unit: "% of its time",
    meaning: "the CPU must spend this part of its time on driver work",
    source: "the funnels of the labelled corpus spend 66 to 97 %, their controls at most 30 %; half-way, as recordings begin before the work does",
};
/// Also that of [`crate::guide`].
pub(crate) const CONCENTRATED: Threshold = Threshold {
    key: "funneled-driver.concentrated_pct",
    default: 55.0,
    unit: "%",
    meaning: "and do this part of all driver work",
    source: "spread evenly it would be 100/N",
};

fn driver(row: &CpuRow) -> u64 {
    row.kthread_ns + row.irq_ns.unwrap_or(0) + row.softirq_ns.unwrap_or(0)
}

fn check(facts: &Facts<'_>) -> Finding {
    let rows = facts.analysis.cpu_rows();
    let all: u64 = rows.iter().map(driver).sum();
    let Some(top) = rows.iter().max_by_key(|r| (driver(r), std::cmp::Reverse(r.cpu))) else {
        return finding(facts, &RULE, 0, "there are no CPUs".to_owned());
    };
    let wall = facts.wall.max(1) as f64;
    let saturated = driver(top) as f64 * 100.0 / wall;
    let concentrated = driver(top) as f64 * 100.0 / all.max(1) as f64;
    // Idle time that threads waiting for each other explain is not the driver's.
    let ledger = |path| facts.ledger.ns(path);
    let lost = if rows.len() < 2 {
        0
    } else {
        let explained = ledger("idle/thread-sync") + ledger("idle/one-server") + top.idle_ns;
        ledger("idle").saturating_sub(explained)
    };
    let culprit = culprit(facts, top.cpu);
    let by = culprit.as_ref().map_or(String::new(), |c| format!(", most of it {}", c.name));
    let summary = format!(
        "CPU {} spends {saturated:.0} % of its time on driver work{by}, {concentrated:.0} % of all there is; the other CPUs are idle for {:.1} CPUs",
        top.cpu,
        lost as f64 / wall
    );
    let mut f = finding(facts, &RULE, lost, summary);
    f.evidence = vec![
        Evidence::of(format!("driver work on CPU {}", top.cpu), saturated, "% of its time", "cpus").against(facts.limit(&SATURATED)),
        Evidence::of("its part of all driver work", concentrated, "%", "cpus").against(facts.limit(&CONCENTRATED)),
        Evidence::of("idle elsewhere, not waiting for other threads", facts.pct(lost), "% of capacity", "ledger")
            .against(facts.limit(&MATTERS)),
    ];
    if f.ruled_out.is_none() && saturated < facts.limit(&SATURATED) {
        f.ruled_out = Some(format!("no CPU spends more than {saturated:.0} % of its time on driver work"));
    } else if f.ruled_out.is_none() && concentrated < facts.limit(&CONCENTRATED) {
        f.ruled_out = Some(format!("driver work is spread: CPU {} does {concentrated:.0} % of it", top.cpu));
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
    let handler = facts.analysis.irqs(true).into_iter().filter(|r| r.cpu == Some(cpu)).max_by_key(|r| r.total_ns);
    let thread = facts.analysis.threads().filter(|(_, t)| t.is_kthread() && t.last_cpu().0 == cpu).max_by_key(|(_, t)| t.running_ns);
    match (handler, thread) {
        (Some(h), t) if t.is_none_or(|(_, t)| t.running_ns < h.total_ns) => Some(Culprit {
            kind: h.kind,
            id: h.id.to_string(),
            name: format!("{} {}", h.kind, h.name),
            ns: h.total_ns,
            ..Culprit::default()
        }),
        (_, Some((_, t))) => Some(Culprit {
            kind: "kthread",
            id: t.tid.to_string(),
            name: facts.analysis.comm(t),
            tid: Some(t.tid.0),
            pid: facts.analysis.pid(t),
            ns: t.running_ns,
        }),
        (Some(_), None) | (None, None) => None,
    }
}
