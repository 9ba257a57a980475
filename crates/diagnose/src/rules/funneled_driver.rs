//! Interrupts, softirqs or kernel workers run on one CPU only, while threads wait for them.
//!
//! # What it does
//! It takes the leaf `idle/driver`. This is idle CPU time of the other CPUs while one CPU does more
//! driver work than all other CPUs together, and spends at least half of its time on driver work.
//! Driver work is the work of interrupts, softirqs and kernel threads. Most of it then goes through
//! one interrupt line, one receive queue, one worker or one driver thread. Idle time of threads
//! that sleep for a device or a kernel lock also counts in another case: one driver thread, or the
//! work items of one function, one after another, are busy for at least half of the time, on
//! whichever CPUs they run.
//!
//! # Why it holds a system up
//! A driver works for the threads that wait for it. If its work is confined to one CPU, it limits
//! all these threads, however many CPUs the machine has. In AIX, drivers that were not safe on a
//! multiprocessor ran on CPU 0. In Linux the reason is an affinity mask, a device with one queue,
//! or a driver with one thread.
//!
//! # What to do
//! Spread interrupts (`/proc/irq/*/smp_affinity`, more queues), receive work (RPS: `rps_cpus`) and
//! work items (`/sys/devices/virtual/workqueue/*/cpumask`) over CPUs, or use several devices.
//!
//! Source: Olszewski and Van Fleet, "SMP Performance", section Workload Imbalance (funneling).

use super::{Explanation, Fixtures, Rule, cost, finding, in_cpus, not_judged};
use crate::culprits;
use crate::facts::Facts;
use crate::report::{Class, Culprit, Evidence, Finding};
use holdup_attribution::limits::MATTERS;
use holdup_attribution::{Driver, Funnel, Leaf, Worker};

pub(super) const RULE: Rule = Rule {
    id: "funneled-driver",
    class: Class::FunneledDriver,
    check,
    file: include_str!("funneled_driver.rs"),
    needs: &["switches"],
    thresholds: &[MATTERS],
    fixtures: Fixtures {
        positive: "fun_raid6_write_perf_c8/perf.data",
        negative: "io_disk_perf_c4/perf.data",
    },
};

fn check(facts: &Facts<'_>) -> Finding {
    let Some(driver) = &facts.judged.driver else {
        return not_judged(facts, &RULE, "there are no CPUs".to_owned());
    };
    let cpu = driver.busiest.cpu;
    let idle = in_cpus(facts, facts.leaf(Leaf::Driver));
    let by = culprit(facts, cpu);
    let mut f = finding(facts, &RULE, explain(facts, driver, by.as_ref(), idle));
    let of_wanted = cost(facts, &f);
    f.evidence = vec![
        Evidence::of(
            format!("interrupts, softirqs and kernel workers on CPU {cpu}"),
            driver.saturated_pct,
            "% of its time",
            "cpus",
        ),
        Evidence::of(
            format!("part of all interrupts, softirqs and kernel workers that CPU {cpu} ran"),
            driver.concentrated_pct,
            "%",
            "cpus",
        ),
        of_wanted,
    ];
    if let Some((worker, busy)) = &driver.worker {
        let worker = as_culprit(facts, worker);
        let metric = format!("{} {} in progress, on any CPU", worker.kind, worker.name);
        f.evidence.push(Evidence::of(metric, *busy, "% of the time", "irqs, procs"));
    }
    if driver.funnel.is_none() {
        f.ruled_out = Some(format!(
            "CPU {cpu} spends {:.0} % of its time on interrupts, softirqs and kernel workers, \
             which is {:.0} % of such work on all CPUs",
            driver.saturated_pct, driver.concentrated_pct
        ));
    }
    f.culprits = match &driver.funnel {
        Some(Funnel::Worker(worker)) => culprits::worker(facts, as_culprit(facts, worker)),
        Some(Funnel::Cpu) | None => culprits::driver(facts, by, cpu),
    };
    f
}

fn explain(facts: &Facts<'_>, driver: &Driver, by: Option<&Culprit>, idle: f64) -> Explanation {
    match &driver.funnel {
        Some(Funnel::Worker(worker)) => {
            let of_time = worker.ns() as f64 * 100.0 / facts.wall.max(1) as f64;
            let worker = as_culprit(facts, worker);
            Explanation {
                story: "one-worker",
                summary: format!(
                    "{} {} is busy {of_time:.0} % of the time with one work item after another, \
                     and other threads wait for it: {idle:.1} CPUs are idle",
                    worker.kind, worker.name,
                ),
                advice: vec![
                    "use more than one worker for the device: more threads or queues of its \
                     driver, or several devices"
                        .to_owned(),
                ],
            }
        }
        Some(Funnel::Cpu) | None => Explanation {
            story: "confined-driver",
            summary: format!(
                "CPU {} spends {:.0} % of its time on interrupts, softirqs and kernel workers{}, \
                 which is {:.0} % of such work on all CPUs; {idle:.1} other CPUs are idle \
                 meanwhile",
                driver.busiest.cpu,
                driver.saturated_pct,
                by.map_or(String::new(), |c| format!(", most of it {}", c.name)),
                driver.concentrated_pct,
            ),
            advice: vec![
                "spread the interrupts or receive queues over CPUs: /proc/irq/*/smp_affinity, \
                 rps_cpus, more queues"
                    .to_owned(),
                "let kernel workers run on other CPUs: /sys/devices/virtual/workqueue/*/cpumask, \
                 taskset -p for a driver's thread"
                    .to_owned(),
            ],
        },
    }
}

fn as_culprit(facts: &Facts<'_>, worker: &Worker) -> Culprit {
    match worker {
        Worker::Thread(slot, ns) => facts.culprit("kthread", *slot, *ns),
        Worker::Items(name, ns) => Culprit {
            kind: "workqueue",
            id: name.clone(),
            name: name.clone(),
            ns: *ns,
            ..Culprit::default()
        },
    }
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
        .all_threads()
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
