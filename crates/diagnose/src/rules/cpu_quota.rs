//! A CPU quota keeps threads off idle CPUs.
//!
//! # What it does
//! It adds up the idle CPU time while threads were ready but were not allowed to run: a thread
//! leaves its CPU in state R (ready), and the CPU goes idle although the thread is on its run
//! queue. This happens if the thread's control group has used up its quota of CPU time. The threads
//! run again at the beginning of the next period, without a wake-up. The rule infers the period and
//! the quota from the times at which the threads return, since no event names them.
//!
//! If the recording contains the threads' control groups (`holdup record`, `perf record
//! --all-cgroups`), the culprits are groups with the names of their services and containers, and
//! the quota of each group is inferred separately. `holdup record` also reads the limit (`cpu.max`)
//! and how often the kernel counted the quota as used up (`cpu.stat`).
//!
//! # What it cannot tell
//! Without control groups in the recording, the rule cannot say which group is throttled, or
//! whether several are; it names programs instead. The inferred quota is the CPU time of threads
//! that were throttled at least once. It is too small if other threads, such as short-lived ones,
//! use a part of the quota. Two other things look like a quota: real-time threads that
//! `sched_rt_runtime_us` stops, and CPUs that core scheduling keeps idle because an unrelated
//! thread runs on the same core.
//!
//! # How it differs from other classes
//! A thread that waits for a busy CPU while other CPUs are idle is in the leaf `idle/scheduler`. In
//! an overload no CPU is idle. A thread that waits for the disk sleeps, whereas a throttled thread
//! is ready. Time in which threads are throttled never counts as serial work, because a larger
//! quota would help even if only one thread has work.
//!
//! # What to do
//! Raise the limit, or run no more threads than it allows: `cpu.max` (control groups, version 2),
//! `cpu.cfs_quota_us` (version 1), `resources.limits.cpu` in Kubernetes, `docker run --cpus`. In
//! the group's `cpu.stat`, `nr_throttled` counts the throttled periods.
//!
//! Source: Linux, `Documentation/scheduler/sched-bwc.rst`.

use super::{Explanation, Fixtures, Rule, cost, finding, in_cpus};
use crate::culprits;
use crate::facts::Facts;
use crate::report::{Class, Evidence, Finding};
use holdup_attribution::Leaf;
use holdup_attribution::limits::{MATTERS, NAMED};

pub(super) const RULE: Rule = Rule {
    id: "cpu-quota",
    class: Class::CpuQuota,
    check,
    file: include_str!("cpu_quota.rs"),
    needs: &["switches"],
    thresholds: &[MATTERS, NAMED],
    fixtures: Fixtures { positive: "native_quota/perf.data", negative: "native_one_cpu/perf.data" },
};

fn check(facts: &Facts<'_>) -> Finding {
    let idle = facts.leaf(Leaf::Throttled);
    let group = culprits::throttled_group(facts);
    // If the group is unknown: the quota that throttled most often.
    let quota = facts.analysis.quota_of(group).unwrap_or_else(|| facts.analysis.quota());
    let read = facts.analysis.limit_of(group);
    let groups = culprits::throttled(facts);
    let ms = |ns: u64| ns as f64 / 1e6;
    let cpus = quota.cpus();
    let explanation = match groups.first() {
        Some(program) => {
            let limit = match cpus.filter(|_| read.is_none()) {
                Some(cpus) => format!(", which allows about {cpus:.1} CPUs"),
                None => String::new(),
            };
            let of = read.map_or_else(String::new, |l| format!(" of {:.2} CPUs", l.cpus()));
            Explanation {
                story: "quota",
                summary: format!(
                    "a CPU quota{of} keeps {} off idle CPUs{limit}: {:.1} of {} CPUs are idle \
                     because of it",
                    program.name,
                    in_cpus(facts, idle),
                    facts.analysis.cpus
                ),
                advice: vec![
                    "raise the CPU limit of the control group: cpu.max, or cpu.cfs_quota_us in \
                     version 1; resources.limits.cpu in Kubernetes, --cpus in Docker"
                        .to_owned(),
                    "or run no more threads than the quota allows CPUs, so that the quota lasts \
                     for the whole period; nr_throttled in the group's cpu.stat shows whether it \
                     does"
                        .to_owned(),
                ],
            }
        }
        None => Explanation::plain("nobody-throttled", "no quota keeps a thread off the CPUs"),
    };
    let mut f = finding(facts, &RULE, explanation);
    f.evidence = vec![cost(facts, &f)];
    if facts.at_least(facts.pct(idle), &NAMED).holds() {
        f.evidence.push(Evidence::of(
            "number of periods in which the quota was used up",
            quota.periods as f64,
            "periods",
            "number of switches from a ready thread (state R) to idle",
        ));
        let of = |metric, value: Option<f64>, unit| Evidence {
            value: value.map(|v| (v * 1000.0).round() / 1000.0),
            ..Evidence::of(metric, 0.0, unit, "returns without wake-up")
        };
        f.evidence.push(of("length of a period", quota.period_ns.map(ms), "ms"));
        let of_time = quota
            .period_ns
            .map(|period| (quota.periods * period) as f64 * 100.0 / facts.wall.max(1) as f64);
        f.evidence.push(of(
            "part of all periods in which the quota was used up",
            of_time.map(|pct| pct.min(100.0)),
            "%",
        ));
        f.evidence.push(of("number of CPUs that the quota allows", cpus, "CPUs"));
        let kept_off = facts.throttled as f64 / facts.wall.max(1) as f64;
        if let Some(limit) = read {
            let counted = |metric, value: f64, unit| Evidence {
                value: Some((value * 1000.0).round() / 1000.0),
                ..Evidence::of(metric, 0.0, unit, "cpu.max, cpu.stat")
            };
            f.evidence.push(counted("limit of the control group", limit.cpus(), "CPUs"));
            let used_up = limit.throttled_periods as f64;
            f.evidence.push(counted("nr_throttled of the control group", used_up, "periods"));
            let stopped = ms(limit.throttled_ns);
            f.evidence.push(counted(
                "time for which the group's run queues were stopped, summed over CPUs",
                stopped,
                "ms",
            ));
        }
        f.evidence.push(of("threads ready but throttled, on average", Some(kept_off), "threads"));
    }
    f.culprits = groups;
    f
}
