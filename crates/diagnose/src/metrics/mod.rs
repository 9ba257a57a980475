//! The verdict on figures without a trace: `diagnose --metrics`.
//!
//! The classes, their thresholds and the report are those of the trace rules. The reasoning is the
//! article's, which had only such figures: which code used the CPUs, in which system calls, and
//! which lock was found taken.
//!
//! Losses are in per cent of capacity, as the figures are; CPU time is per second of wall time if
//! the length of the measurement is not given. If figures prove contention but not its cost
//! (lockstat knows how often a lock was taken, not for how long), the share is unknown and stays
//! `null`.

mod calls;
mod figures;
pub(crate) mod imbalance;
pub(crate) mod locks;
mod machine;
pub(crate) mod serialization;

pub use figures::file_schema;
pub use figures::{
    Command, Counters, Figures, FiguresError, Kernel, LockStat, Owner, Process, Run, Sar,
    Semaphore, SystemCall, is_percent,
};

use crate::measured::{Measured, concurrencies};
use crate::report::{Class, Diagnosis, Evidence, Finding, Step, Verdict};
use crate::worth::Worth;
use holdup_attribution::limits::MATTERS;
use holdup_attribution::{Leaf, Ledger, Threshold, Thresholds};

/// The figures with derived values.
pub(crate) struct View<'a> {
    pub(crate) figures: &'a Figures,
    /// Runs of perf stat supplied with them.
    pub(crate) measured: &'a [Measured],
    pub(crate) thresholds: &'a Thresholds,
    /// Processors; 1 if not given.
    pub(crate) cpus: f64,
    /// Per cent of capacity; `None` if not given.
    pub(crate) usr: Option<f64>,
    pub(crate) sys: Option<f64>,
    pub(crate) wio: Option<f64>,
    /// Idle, `wio` excluded.
    pub(crate) idle: Option<f64>,
    /// CPU time of 1 % of capacity, in ns.
    percent_ns: f64,
}

impl<'a> View<'a> {
    fn new(figures: &'a Figures, measured: &'a [Measured], thresholds: &'a Thresholds) -> View<'a> {
        let sar = figures.sar.clone().unwrap_or_default();
        let rest = |a: f64, b: Option<f64>, c: Option<f64>| {
            (100.0 - a - b.unwrap_or(0.0) - c.unwrap_or(0.0)).max(0.0)
        };
        let idle =
            sar.pct_idle.or_else(|| Some(rest(sar.pct_usr?, Some(sar.pct_sys?), sar.pct_wio)));
        let cpus = f64::from(figures.processors().unwrap_or(1));
        View {
            figures,
            measured,
            thresholds,
            cpus,
            usr: sar.pct_usr,
            sys: sar.pct_sys,
            wio: sar.pct_wio,
            idle,
            percent_ns: cpus * figures.seconds.unwrap_or(1.0) * 1e7,
        }
    }

    pub(crate) fn limit(&self, threshold: &Threshold) -> f64 {
        self.thresholds.get(threshold)
    }

    /// Per cent of capacity as CPU time.
    pub(crate) fn ns(&self, pct: f64) -> u64 {
        (pct.max(0.0) * self.percent_ns).round() as u64
    }

    /// Busy in per cent of capacity.
    pub(crate) fn busy(&self) -> Option<f64> {
        Some(self.usr? + self.sys?)
    }

    /// A finding that costs `share` per cent of capacity and holds if that matters.
    pub(crate) fn finding(&self, class: Class, share: f64, summary: String) -> Finding {
        let matters = self.limit(&MATTERS);
        let small = (share < matters)
            .then(|| format!("this costs {share:.1} % of capacity; the threshold is {matters} %"));
        Finding {
            class,
            rule: class.id(),
            share: (share * 1000.0).round() / 1000.0,
            lost_cpu_ns: if share.is_nan() { 0 } else { self.ns(share) },
            leaves: Vec::new(),
            wanted_pct: share,
            lacked_ns: 0,
            story: "figures",
            summary,
            culprits: Vec::new(),
            evidence: Vec::new(),
            demand: Worth::bound(share).times,
            worth: Worth::bound(share),
            is_too_little: small.is_some(),
            ruled_out: small,
            advice: Vec::new(),
        }
    }

    /// A class that these figures do not show.
    pub(crate) fn silent(&self, class: Class, missing: &str) -> Finding {
        let mut f = self.finding(class, 0.0, format!("not judged: {missing}"));
        f.ruled_out = Some(format!("not judged: {missing}"));
        f
    }

    fn ledger(&self) -> Ledger {
        let mut leaves = Vec::new();
        let mut known = 0.0;
        if let (Some(usr), Some(sys), Some(idle)) = (self.usr, self.sys, self.idle) {
            let wio = self.wio.unwrap_or(0.0);
            leaves = vec![
                (Leaf::UserUndivided, usr),
                (Leaf::KernelUndivided, sys),
                (Leaf::IdleUndivided, idle),
                (Leaf::Io, wio),
            ];
            known = usr + sys + idle + wio;
        }
        leaves.push((Leaf::Unaccounted, (100.0 - known).max(0.0)));
        let leaves: Vec<_> = leaves.iter().map(|&(leaf, pct)| (leaf, self.ns(pct))).collect();
        // Published figures are rounded and may add up to 101 %.
        Ledger::new(leaves.iter().map(|l| l.1).sum(), leaves).in_parts_of(self.ns(100.0))
    }
}

/// Judge figures. `path` is their file, for the commands.
pub fn judge(path: &str, figures: &Figures, thresholds: Thresholds) -> Diagnosis {
    let case = figures.name.as_deref().map_or(String::new(), |c| format!(" --case {c}"));
    judge_with(&format!("--metrics {path}{case}"), figures, &[], thresholds)
}

/// Judge figures together with runs of perf stat. `options` name both, for the commands.
pub fn judge_with(
    options: &str,
    figures: &Figures,
    measured: &[Measured],
    thresholds: Thresholds,
) -> Diagnosis {
    let mut figures = figures.clone();
    figures.counters.extend(concurrencies(measured).iter().map(Counters::of_runs));
    let figures = &figures;
    let view = View::new(figures, measured, &thresholds);
    let mut findings = vec![
        imbalance::check(&view),
        serialization::application(&view),
        serialization::threads(&view),
        locks::check(&view),
        machine::mp_up_overhead(&view),
        machine::hardware_bandwidth(&view),
        machine::io_bound(&view),
        machine::cpu_overload(&view),
    ];
    // Largest first; findings without a price come after those with one.
    let weight = |f: &Finding| if f.share.is_nan() { 0 } else { f.lost_cpu_ns + 1 };
    findings.sort_by_key(|f| (f.ruled_out.is_some(), std::cmp::Reverse(weight(f))));
    let verdict = decide(&view, &findings);
    let next = next(options, verdict.class);
    let source = figures.source.clone().or_else(|| figures.title.clone());
    Diagnosis {
        ledger: view.ledger(),
        phases: Vec::new(),
        verdict,
        findings,
        leads: Vec::new(),
        not_replayed: None,
        chosen: None,
        next,
        thresholds: thresholds.settings(),
        code_remarks: Vec::new(),
        source,
    }
}

fn decide(view: &View<'_>, findings: &[Finding]) -> Verdict {
    let mut reservations = Vec::new();
    if view.figures.processors().is_none() {
        reservations.push("the file does not give the number of CPUs".to_owned());
    }
    if view.figures.sar.is_none() {
        reservations.push("there are no figures of sar: the use of the CPUs is unknown".to_owned());
    }
    let verdict = |class, confidence: f64, summary, runner_up, reservations: Vec<String>| {
        let mut steps = vec![Step::of("the figures, without a correction", confidence)];
        steps.extend(reservations.iter().map(|r| Step::of(r, 0.85)));
        let confidence = confidence * 0.85_f64.powi(reservations.len() as i32);
        Verdict {
            class,
            confidence: (confidence.clamp(0.0, 0.95) * 100.0).round() / 100.0,
            summary,
            runner_up,
            reservations,
            background: None,
            steps,
        }
    };
    let mut holding = findings.iter().filter(|f| f.ruled_out.is_none());
    if let Some(best) = holding.next() {
        let runner_up = holding.next();
        let clear = if best.share.is_nan() {
            0.2
        } else {
            (best.share - runner_up.map_or(0.0, |r| r.share.max(0.0))).clamp(0.0, 40.0) / 100.0
        };
        return verdict(
            best.class,
            0.55 + clear,
            best.summary.clone(),
            runner_up.map(|r| r.class),
            reservations,
        );
    }
    let f = view.figures;
    let measured = !(f.semaphores.is_empty()
        && f.commands.is_empty()
        && f.runs.is_empty()
        && f.counters.is_empty());
    let unknown = |what: String| verdict(Class::NotEnoughEvidence, 0.0, what, None, Vec::new());
    match (view.busy(), view.sys, view.idle) {
        (None, ..)
            if !measured
                && f.syscalls.is_empty()
                && f.locks.is_empty()
                && f.processes.is_empty() =>
        {
            unknown("the file holds no figures to judge".to_owned())
        }
        (None, ..) if !measured => unknown(
            "no figure reaches its threshold, and without figures of sar it is unknown whether \
             CPUs were idle"
                .to_owned(),
        ),
        (Some(busy), Some(sys), _) if sys >= 2.0 * view.limit(&MATTERS) => unknown(format!(
            "CPUs are {busy:.0} % busy, {sys:.0} % in the kernel, and the figures do not show \
                in which calls: add syscalls (utld, holdup syscalls) and locks (lockstat)"
        )),
        (Some(busy), _, Some(idle)) if idle * 2.0 >= 100.0 && f.processes.is_empty() => {
            unknown(format!(
                "CPUs are {busy:.0} % busy and {idle:.0} % idle, and the figures do not show which \
                threads work and which wait: add processes (utld, holdup procs) and syscalls"
            ))
        }
        (busy, ..) => {
            let largest = findings
                .iter()
                .filter(|f| f.class != Class::CpuOverload)
                .map(|f| f.share)
                .fold(0.0, f64::max);
            let how = busy.map_or(String::new(), |b| format!("CPUs are {b:.0} % busy and "));
            let what = format!(
                "{how}there is no bottleneck: no cause costs more than {largest:.1} % of capacity"
            );
            verdict(
                Class::Healthy,
                0.95 - largest / view.limit(&MATTERS).max(1.0) * 0.35,
                what,
                None,
                reservations,
            )
        }
    }
}

fn next(options: &str, class: Class) -> Vec<String> {
    let mut next = vec![format!("holdup rules {}", class.id())];
    if crate::rules::ALL.iter().all(|r| r.class != class) {
        next.clear();
    }
    if class != Class::Healthy {
        next.push(format!("holdup diagnose {options} --explain"));
        next.push("holdup record --duration 10s".to_owned());
        next.push("holdup diagnose perf.data".to_owned());
    }
    next
}

/// A figure, if given.
pub(crate) fn given(
    list: &mut Vec<Evidence>,
    metric: &str,
    value: Option<f64>,
    unit: &'static str,
    source: &'static str,
) {
    if let Some(value) = value {
        list.push(Evidence::of(metric, value, unit, source));
    }
}
