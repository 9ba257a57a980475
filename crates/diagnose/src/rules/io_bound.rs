//! Threads wait for disks while CPUs are idle.
//!
//! # What it does
//! It adds up the idle CPU time while application threads slept uninterruptibly in reads, writes,
//! syncs, file system calls and page faults until an interrupt or a kernel thread woke them. A
//! thread that waits for another thread, which itself waits for the disk, counts too: eight clients
//! of a server that reads from a disk all wait for the disk.
//!
//! # Why it is checked
//! A slow disk is no multiprocessor problem, but it has to be ruled out first. Olszewski and Van
//! Fleet: "it is good practice to examine the system for obvious problems such as I/O bottlenecks …
//! before assuming that an SMP system problem exists".
//!
//! # What to do
//! Look at the disks: use more or faster disks, or fewer and larger requests.
//!
//! Source: Olszewski and Van Fleet, "SMP Performance", section Hardware Configuration.

use super::{Explanation, Fixtures, Rule, cost, finding, in_cpus};
use crate::culprits;
use crate::facts::{Facts, NOT_RECORDED};
use crate::report::{Class, Evidence, Finding};
use holdup_attribution::Leaf;
use holdup_attribution::limits::MATTERS;
use holdup_passes::Cause;

pub(super) const RULE: Rule = Rule {
    id: "io-bound",
    class: Class::IoBound,
    check,
    file: include_str!("io_bound.rs"),
    needs: &["switches"],
    thresholds: &[MATTERS],
    fixtures: Fixtures {
        positive: "io_disk_perf_c4/perf.data",
        negative: "ser_flock_c4/perf.data",
    },
};

fn check(facts: &Facts<'_>) -> Finding {
    let idle = facts.leaf(Leaf::Io);
    let (waited, by_call) = facts.waiting_for(Cause::Io);
    let explanation = match by_call.first() {
        Some((call, _)) => Explanation {
            story: "disk",
            summary: format!(
                "{}: {:.1} of {} CPUs are idle meanwhile",
                for_what(facts, call),
                in_cpus(facts, idle),
                facts.analysis.cpus
            ),
            advice: vec![
                "look at the disks (iostat -x): use more disks, or fewer and larger requests"
                    .to_owned(),
            ],
        },
        None => Explanation::plain("nobody-waits", "no thread waits for a disk"),
    };
    let mut f = finding(facts, &RULE, explanation);
    f.evidence = vec![cost(facts, &f)];
    f.evidence.push(Evidence::of(
        "threads asleep waiting for disks, on average",
        waited as f64 / facts.wall.max(1) as f64,
        "threads",
        "waits",
    ));
    f.culprits = culprits::devices(facts, &by_call);
    f
}

/// What the threads wait for, and how that is known.
fn for_what(facts: &Facts<'_>, call: &str) -> String {
    if call != NOT_RECORDED {
        return format!("threads wait for the disk in {call}");
    }
    if facts.analysis.reasons_seen() {
        return "threads wait for I/O, as sched_blocked_reason says".to_owned();
    }
    "threads sleep uninterruptibly, most likely waiting for disks, but the reason was not recorded"
        .to_owned()
}
