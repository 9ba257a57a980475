//! The same work takes a longer way through the kernel than on one CPU.
//!
//! # What it does
//! Compares the CPU time of a system call with that of a baseline trace of the same work on one
//! CPU (`--baseline`), call by call, and adds up what the calls of this trace cost more. Calls
//! that contend cost more in company, which is another class; so only calls begun alone count. The
//! typical call (the median) is compared: means differ by what else the machines did meanwhile.
//!
//! # Why it matters
//! A kernel that runs on several CPUs takes locks and orders memory where a uniprocessor kernel
//! need not. The article puts it at 5 to 10 % for AIX, and finds it of interest only when a
//! two-way system is compared with a uniprocessor on work that is mostly kernel time.
//!
//! # What to do
//! Nothing as a rule; fewer and larger system calls where it hurts.
//!
//! Source: Olszewski and Van Fleet, "SMP Performance", section MP/UP Overhead.

use super::{Fixtures, Rule, finding};
use crate::facts::Facts;
use crate::report::{Class, Culprit, Evidence, Finding};
use holdup_attribution::{Total, thresholds};
use holdup_passes::Analysis;

pub(super) const RULE: Rule = Rule {
    id: "mp-up-overhead",
    class: Class::MpUpOverhead,
    check,
    file: include_str!("mp_up_overhead.rs"),
    needs: &["switches", "syscalls"],
    thresholds: &[THRESHOLDS],
    fixtures: Fixtures {
        positive: "figures/mp-up.toml",
        negative: "ser_append_case2_c2/perf.data",
    },
};

thresholds! {
    /// Also that of [`crate::metrics`].
    pub(crate) OVERHEAD = "mp-up-overhead.overhead_pct", 5.0, "% of the calls' time",
        meaning: "overhead below this is not told from noise",
        source: "Olszewski and Van Fleet, section MP/UP Overhead: normally between 5 and 10 %";
    /// Also that of [`crate::metrics`].
    pub(crate) KERNEL = "mp-up-overhead.kernel_pct", 10.0, "% of capacity",
        meaning: "kernel time below this makes the overhead uninteresting",
        source: "Olszewski and Van Fleet, section MP/UP Overhead: an issue only with a large \
                 amount of kernel time; 10 % of it at 10 % is 1 % of capacity";
    MIN_CALLS = "mp-up-overhead.min_calls", 50.0, "calls",
        meaning: "a system call must have been made alone so often in both traces to be compared",
        source: "of 50 calls the median is off by a sixth of their spread";
}
/// Typical CPU time of a call begun alone in the kernel, and how many there were.
fn alone(facts: &Facts<'_>, a: &Analysis, nr: u32) -> Option<(u64, u64)> {
    let alone = &a.costs(nr)?.alone;
    facts
        .judged
        .thresholds
        .enough(alone.count, &MIN_CALLS)
        .then(|| (alone.median_ns(), alone.count))
}

fn check(facts: &Facts<'_>) -> Finding {
    let Some(base) = facts.baseline else {
        let mut f = finding(
            facts,
            &RULE,
            0,
            "needs a trace of the same work on one CPU to compare with".to_owned(),
        );
        f.ruled_out = Some("not judged: no baseline given (--baseline TRACE)".to_owned());
        return f;
    };
    let mut calls: Vec<(String, u32, i128, f64)> = Vec::new();
    let (mut now, mut then) = (0u128, 0u128);
    for call in &facts.judged.calls {
        let (Some((typical, n)), Some((base, _))) =
            (alone(facts, facts.analysis, call.nr), alone(facts, base, call.nr))
        else {
            continue;
        };
        // What these calls cost, and would have cost at the baseline's price.
        let (ns, expected) = (typical as u128 * n as u128, base as u128 * n as u128);
        now += ns;
        then += expected;
        calls.push((
            call.name.clone(),
            call.nr,
            ns as i128 - expected as i128,
            ns as f64 / expected.max(1) as f64,
        ));
    }
    calls.sort_by(|a, b| b.2.cmp(&a.2).then(a.1.cmp(&b.1)));
    let lost = now.saturating_sub(then) as u64;
    let overhead = if then == 0 { 0.0 } else { (now as f64 / then as f64 - 1.0) * 100.0 };
    let kernel = facts.total_pct(Total::Kernel);
    let summary = format!(
        "system calls made alone cost {overhead:.1} % more than in the baseline; the kernel takes {kernel:.0} % of capacity"
    );
    let dearer = facts.at_least(overhead, &OVERHEAD);
    let much = facts.at_least(kernel, &KERNEL);
    let mut f = finding(facts, &RULE, lost, summary);
    f.evidence = vec![
        Evidence::checked(
            "CPU time of system calls beyond the baseline's",
            &dearer,
            "%",
            "syscalls against baseline",
        ),
        Evidence::checked(
            "kernel time of applications",
            &much,
            "% of capacity",
            "ledger busy/kernel",
        ),
        Evidence::of("CPUs of the baseline", base.cpus as f64, "CPUs", "baseline"),
    ];
    for (name, _, _, ratio) in calls.iter().take(3) {
        f.evidence.push(Evidence::of(
            format!("{name}: cost against the baseline"),
            *ratio,
            "times",
            "syscalls against baseline",
        ));
    }
    f.ruled_out = if then == 0 {
        Some("no system call occurs often enough in both traces".to_owned())
    } else if !dearer.holds() {
        Some(format!(
            "system calls cost {overhead:.1} % more than in the baseline; below {} % that is noise",
            dearer.limit
        ))
    } else if !much.holds() {
        Some(format!("the kernel takes only {kernel:.0} % of capacity"))
    } else {
        None
    };
    f.culprits = calls
        .iter()
        .take(3)
        .filter(|c| c.2 > 0)
        .map(|(name, nr, ns, _)| Culprit {
            kind: "syscall",
            id: nr.to_string(),
            name: name.clone(),
            ns: *ns as u64,
            ..Culprit::default()
        })
        .collect();
    f.advice = vec![
        "fewer, larger system calls; otherwise this is the price of a multiprocessor kernel"
            .to_owned(),
    ];
    f
}
