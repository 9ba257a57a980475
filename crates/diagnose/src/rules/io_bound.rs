//! The disks hold it up, not the processors.
//!
//! # What it does
//! Takes the idle CPU time while application threads slept uninterruptibly in reads, writes,
//! syncs, file system calls and page faults until an interrupt or a kernel thread woke them.
//!
//! # Why it is checked
//! It is no SMP problem: "it is good practice to examine the system for obvious problems such as
//! I/O bottlenecks … before assuming that an SMP system problem exists".
//!
//! # What to do
//! Look at the disks: more of them, faster ones, or fewer and larger requests.
//!
//! Source: Olszewski and Van Fleet, "SMP Performance", section Hardware Configuration.

use super::application_serialization::syscall;
use super::{Fixtures, MATTERS, Rule, Told, cost, finding, in_cpus};
use crate::facts::Facts;
use crate::report::{Class, Evidence, Finding};
use holdup_attribution::{Leaf, thresholds};
use holdup_passes::Cause;

pub(super) const RULE: Rule = Rule {
    id: "io-bound",
    class: Class::IoBound,
    check,
    file: include_str!("io_bound.rs"),
    needs: &["switches"],
    thresholds: &[&[MATTERS], THRESHOLDS],
    fixtures: Fixtures {
        positive: "io_disk_perf_c4/perf.data",
        negative: "ser_flock_c4/perf.data",
    },
};

thresholds! {
    MOSTLY = "io-bound.mostly_pct", 25.0, "% of the capacity that had work",
        meaning: "idle time for I/O that decides although it is less than all.matters_pct, as \
                  most CPUs have no work at all",
        source: "a single thread that waits for the disk half of the time idles 9 to 14 % of \
                 four CPUs, a quarter to a half of what had work";
    FLOOR = "io-bound.floor_pct", 5.0, "% of capacity",
        meaning: "and at least this",
        source: "what recorders write to disk costs less";
}

fn check(facts: &Facts<'_>) -> Finding {
    let idle = facts.leaf(Leaf::Io);
    let (waited, by_call) = facts.waiting_for(Cause::Io);
    let told = match by_call.first() {
        Some((call, _)) => Told {
            story: "disk",
            summary: format!(
                "threads wait for the disk in {call}: {:.1} of {} CPUs are idle for it",
                in_cpus(facts, idle),
                facts.analysis.cpus
            ),
            advice: vec![
                "look at the disks (iostat -x): more of them, or fewer and larger requests"
                    .to_owned(),
            ],
        },
        None => Told::plain("nobody-waits", "no thread waits for a disk"),
    };
    let mut f = finding(facts, &RULE, &[(Leaf::Io, idle)], told);
    let no_work = facts.leaf(Leaf::NoWork) + facts.leaf(Leaf::Serial);
    let wanted = facts.capacity.saturating_sub(no_work).max(1);
    let mostly = facts.at_least(idle as f64 * 100.0 / wanted as f64, &MOSTLY);
    let some = facts.at_least(facts.pct(idle), &FLOOR);
    let enough = f.ruled_out.is_none();
    f.evidence = vec![cost(facts, &f)];
    if !enough {
        // The second way: most CPUs have no work at all, and what has work waits for the disk.
        f.evidence.push(Evidence::checked("of the capacity that had work", &mostly, "%", "ledger"));
        f.evidence.push(Evidence::checked(
            "if that is at least so much",
            &some,
            "% of capacity",
            Leaf::Io.source(),
        ));
        if mostly.holds() && some.holds() {
            f.ruled_out = None;
        }
    }
    f.evidence.push(Evidence::of(
        "threads asleep for it, on average",
        waited as f64 / facts.wall.max(1) as f64,
        "threads",
        "waits",
    ));
    f.culprits = by_call.iter().take(3).map(|(name, ns)| syscall(facts, name, *ns)).collect();
    f
}
