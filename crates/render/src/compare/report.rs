//! A comparison as plain values, which every form gets.

use holdup_diagnose::Class;
use holdup_gate::diff::{self, Row};
use holdup_gate::history::Course;
use holdup_gate::judge::Sides;
use holdup_gate::metric::{Metric, Per};
use holdup_gate::policy::Policy;
use holdup_gate::run::{Setting, common_class};
use holdup_gate::scale::{Call, Leaf, Scaling};
use holdup_gate::self_test::SelfTest;
use holdup_gate::stats::spread::{median, spread};
use holdup_gate::verdict::Verdict;
use holdup_gate::{Baseline, Run, Work, sample};
use serde::Serialize;

/// The result of a command that compares recordings.
#[derive(Clone, Debug)]
pub enum Comparison {
    /// `holdup diff`.
    Diff(DiffReport),
    /// `holdup gate`.
    Gate(Box<GateReport>),
    /// `holdup history`.
    History(HistoryReport),
    /// `holdup gate --self-test`.
    SelfTest(Box<SelfTestReport>),
    /// `holdup baseline --show`.
    Baseline(BaselineReport),
    /// `holdup scale`.
    Scale(ScaleReport),
}

/// One side of a comparison, before or after: what its runs have in common.
#[derive(Clone, Debug, Default, PartialEq, Serialize, schemars::JsonSchema)]
pub struct SideHead {
    /// The baseline file, if the runs come from one.
    pub file: Option<String>,
    /// Names of the runs.
    pub runs: Vec<String>,
    /// Name of the host, if the recordings contain it.
    pub host: Option<String>,
    /// Kernel release, if the recordings contain it.
    pub kernel: Option<String>,
    /// Number of CPUs; null if the runs differ.
    pub cpus: Option<u32>,
    /// Median length of the runs.
    pub wall_ns: Option<u64>,
    /// Median part of capacity that programs other than the work took, in per cent.
    pub others_pct: Option<f64>,
    /// Class of the verdict on more than half of the runs.
    pub class: Option<Class>,
}

/// Two sides and every figure that changed.
#[derive(Clone, Debug, PartialEq)]
pub struct DiffReport {
    /// The side before the change.
    pub a: SideHead,
    /// The side after the change.
    pub b: SideHead,
    /// The divisor of sums.
    pub per: Per,
    /// The definition of a unit of work.
    pub work: Work,
    /// The figures; the largest changes first.
    pub rows: Vec<Row>,
    /// How many rows are shown; all if `None`.
    pub entries: Option<usize>,
    /// Differences between the sides that should not exist, in words.
    pub differences: Option<String>,
}

/// A gate's verdict.
#[derive(Clone, Debug, PartialEq)]
pub struct GateReport {
    /// The verdict.
    pub verdict: Verdict,
    /// The side before the change.
    pub a: SideHead,
    /// The side after the change.
    pub b: SideHead,
    /// The baseline file; `None` if both sides were given as recordings.
    pub baseline: Option<String>,
}

/// The history of a metric over baselines.
#[derive(Clone, Debug, PartialEq)]
pub struct HistoryReport {
    /// The history.
    pub course: Course,
}

/// The gate, tried on its own baseline.
#[derive(Clone, Debug, PartialEq)]
pub struct SelfTestReport {
    /// The baseline file.
    pub baseline: String,
    /// The result.
    pub test: SelfTest,
}

/// The same work on more and more CPUs.
#[derive(Clone, Debug, PartialEq)]
pub struct ScaleReport {
    /// The results of all steps.
    pub scaling: Scaling,
    /// The definition of a unit of work.
    pub work: Work,
    /// Ledger leaves and system calls shown per number of CPUs; all if `None`.
    pub entries: Option<usize>,
}

impl ScaleReport {
    /// The leaves shown.
    pub(super) fn leaves(&self) -> impl Iterator<Item = &Leaf> {
        let most = self.entries.unwrap_or(usize::MAX);
        self.scaling.leaves.chunk_by(|a, b| a.cpus == b.cpus).flat_map(move |l| l.iter().take(most))
    }

    /// The system calls shown, and their total for each number of CPUs.
    pub(super) fn calls(&self) -> impl Iterator<Item = &Call> {
        let most = self.entries.map_or(usize::MAX, |n| n + 1);
        self.scaling.calls.chunk_by(|a, b| a.cpus == b.cpus).flat_map(move |c| c.iter().take(most))
    }
}

/// The content of a baseline file.
#[derive(Clone, Debug, PartialEq)]
pub struct BaselineReport {
    /// The file.
    pub file: String,
    /// The definition of a unit of work, if the file has it.
    pub work: Option<String>,
    /// Whether names are hashed.
    pub redacted: bool,
    /// The settings, each once.
    pub settings: Vec<Setting>,
    /// The runs.
    pub runs: Vec<BaselineRun>,
    /// The metrics that matter most.
    pub metrics: Vec<BaselineMetric>,
}

/// One run of a baseline file.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct BaselineRun {
    /// Name of the run.
    pub name: String,
    /// Number of the run's setting in the list of settings, counted from 0.
    pub setting: usize,
    /// Length of the recording.
    pub wall_ns: u64,
    /// Number of events read.
    pub events: u64,
    /// Number of events that the recorder lost.
    pub lost_events: u64,
    /// Part of capacity that programs other than the work took, in per cent.
    pub others_pct: f64,
    /// Class of the verdict on the run.
    pub class: Class,
    /// Number of units of work done; null if no units are counted.
    pub work_units: Option<f64>,
}

/// A metric of a baseline file.
#[derive(Clone, Debug, PartialEq)]
pub struct BaselineMetric {
    /// The metric.
    pub metric: Metric,
    /// Median of the runs; `None` if a run has no value.
    pub median: Option<f64>,
    /// Run-to-run spread as a ratio to the median; `None` for fewer than two runs.
    pub spread: Option<f64>,
}

impl SideHead {
    /// The head of a side from `runs`; `file` is the baseline file they come from.
    pub fn of(runs: &[Run], file: Option<&str>) -> SideHead {
        let common = |of: fn(&Setting) -> Option<String>| {
            let first = runs.first().and_then(|r| of(&r.setting));
            first.filter(|word| runs.iter().all(|r| of(&r.setting).as_ref() == Some(word)))
        };
        let cpus = runs.first().map(|r| r.setting.cpus);
        let walls: Vec<f64> = runs.iter().map(|r| r.wall_ns as f64).collect();
        let others: Vec<f64> = runs.iter().map(Run::others_pct).collect();
        SideHead {
            file: file.map(str::to_owned),
            runs: runs.iter().map(|r| r.name.clone()).collect(),
            host: common(|s| s.host.clone()),
            kernel: common(|s| s.kernel.clone()),
            cpus: cpus.filter(|n| runs.iter().all(|r| r.setting.cpus == *n)),
            wall_ns: median(&walls).map(|ns| ns as u64),
            others_pct: median(&others),
            class: common_class(runs),
        }
    }
}

impl DiffReport {
    /// Compare two sides with these heads.
    pub fn of(sides: Sides<'_>, heads: (SideHead, SideHead), per: Per, work: &Work) -> DiffReport {
        let rows = diff::rows(sides, per, work);
        DiffReport {
            a: heads.0,
            b: heads.1,
            per,
            work: work.clone(),
            rows,
            entries: None,
            differences: None,
        }
    }

    /// The first `most` rows that changed. A figure that neither side recorded did not change.
    pub(super) fn shown(&self, most: usize) -> impl Iterator<Item = &Row> {
        let unknown = |row: &Row| row.a.is_none() && row.b.is_none();
        let changed = move |row: &&Row| row.change() != Some(0.0) && !unknown(row);
        self.rows.iter().filter(changed).take(most)
    }
}

impl BaselineReport {
    /// The content of `baseline`, read from `file`. `work` counts the units.
    pub fn of(file: &str, baseline: &Baseline, work: &Work) -> BaselineReport {
        let mut settings: Vec<Setting> = Vec::new();
        let mut runs = Vec::new();
        for run in &baseline.runs {
            let at = settings.iter().position(|s| *s == run.setting).unwrap_or_else(|| {
                settings.push(run.setting.clone());
                settings.len() - 1
            });
            runs.push(BaselineRun {
                name: run.name.clone(),
                setting: at,
                wall_ns: run.wall_ns,
                events: run.events,
                lost_events: run.lost_events,
                others_pct: run.others_pct(),
                class: run.verdict.class,
                work_units: work.units(run),
            });
        }
        let policy = Policy::of(Policy::default_metric(work));
        let metrics = policy.limits().filter_map(|limit| {
            let Metric::Number { figure, per } = &limit.metric else { return None };
            let values = sample::values(&baseline.runs, figure, *per, work).ok();
            let spread = values.as_deref().and_then(spread);
            Some(BaselineMetric {
                metric: limit.metric.clone(),
                median: values.as_deref().and_then(median),
                spread: spread.and_then(|s| s.typical()),
            })
        });
        BaselineReport {
            file: file.to_owned(),
            work: (*work != Work::Unknown).then(|| work.to_string()),
            redacted: baseline.redacted,
            settings,
            runs,
            metrics: metrics.collect(),
        }
    }
}
