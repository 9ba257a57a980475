//! The same work takes more CPU time in the kernel than on one CPU.
//!
//! # What it does
//! It compares the CPU time of each system call with the same call in a baseline trace of the same
//! work on one CPU (`--baseline`), and adds up the additional cost of the calls in this trace. Only
//! calls that began while no other thread was in the kernel count, because contention belongs to
//! other classes. The rule compares medians, because means depend on what else the machines did.
//!
//! # Why it matters
//! A kernel that runs on several CPUs takes locks and orders memory accesses, which a uniprocessor
//! kernel need not do. The article named below estimates this overhead at 5 to 10 % for AIX. It
//! matters only for work that is mostly kernel time, and only if a machine with few CPUs is
//! compared with one CPU.
//!
//! # What to do
//! Usually nothing. If the overhead is too high, make fewer and larger system calls.
//!
//! Source: Olszewski and Van Fleet, "SMP Performance", section MP/UP Overhead.

use super::{Explanation, Fixtures, Rule, finding, not_judged};
use crate::comparison::Overhead;
use crate::facts::Facts;
use crate::report::{Class, Culprit, Evidence, Finding};
use holdup_attribution::Total;
use holdup_attribution::limits::{ENOUGH, MATTERS};
use holdup_passes::Analysis;

pub(super) const RULE: Rule = Rule {
    id: "mp-up-overhead",
    class: Class::MpUpOverhead,
    check,
    file: include_str!("mp_up_overhead.rs"),
    needs: &["switches", "syscalls"],
    thresholds: &[MATTERS, ENOUGH],
    fixtures: Fixtures {
        positive: "figures/mp-up.toml",
        negative: "ser_append_case2_c2/perf.data",
    },
};

/// The cost of the calls; `None` without a baseline.
pub(crate) fn overhead(facts: &Facts<'_>) -> Option<Overhead> {
    let base = facts.baseline?;
    let mut o = Overhead { calls: Vec::new(), now: 0, then: 0 };
    for call in &facts.judged.calls {
        let (Some((typical, n)), Some((base, _))) =
            (alone(facts, facts.analysis, call.nr), alone(facts, base, call.nr))
        else {
            continue;
        };
        let (ns, expected) = (typical as u128 * n as u128, base as u128 * n as u128);
        o.now += ns;
        o.then += expected;
        o.calls.push((
            call.name.clone(),
            call.nr,
            ns as i128 - expected as i128,
            ns as f64 / expected.max(1) as f64,
        ));
    }
    o.calls.sort_by(|a, b| b.2.cmp(&a.2).then(a.1.cmp(&b.1)));
    Some(o)
}

/// Typical CPU time of a call begun alone in the kernel, and the number of these calls.
fn alone(facts: &Facts<'_>, a: &Analysis, nr: u32) -> Option<(u64, u64)> {
    let alone = &a.costs(nr)?.alone;
    facts.judged.thresholds.enough(alone.count, &ENOUGH).then(|| (alone.median_ns(), alone.count))
}

fn check(facts: &Facts<'_>) -> Finding {
    let (Some(base), Some(overhead)) = (facts.baseline, &facts.overhead) else {
        let why = "not judged: there is no baseline (--baseline TRACE)".to_owned();
        return not_judged(facts, &RULE, why);
    };
    let kernel = facts.total_pct(Total::Kernel);
    let explanation = Explanation {
        story: "costlier-calls",
        summary: format!(
            "system calls cost {:.1} % more CPU time than in the baseline, although no other \
             thread is in the kernel; the kernel takes {kernel:.0} % of capacity",
            overhead.pct()
        ),
        advice: vec![
            "make fewer and larger system calls; the rest of this cost cannot be avoided on a \
             multiprocessor"
                .to_owned(),
        ],
    };
    let mut f = finding(facts, &RULE, explanation);
    f.evidence = vec![
        Evidence::of(
            "additional CPU time of system calls compared with the baseline",
            overhead.pct(),
            "%",
            "syscalls, compared with the baseline",
        ),
        Evidence::of("kernel time of applications", kernel, "% of capacity", "ledger busy/kernel"),
        Evidence::of("CPUs of the baseline", base.cpus as f64, "CPUs", "baseline"),
    ];
    for (name, _, _, ratio) in overhead.calls.iter().take(3) {
        f.evidence.push(Evidence::of(
            format!("{name}: CPU time of a call, compared with the baseline"),
            *ratio,
            "times",
            "syscalls, compared with the baseline",
        ));
    }
    f.ruled_out = if overhead.then == 0 {
        Some("no system call occurs often enough in both traces to be compared".to_owned())
    } else if overhead.pct() < facts.doubtful() {
        Some(format!(
            "system calls cost {:.1} % more CPU time than in the baseline; less than {} % is noise",
            overhead.pct(),
            facts.doubtful()
        ))
    } else {
        None
    };
    f.culprits = overhead
        .calls
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
    f
}
