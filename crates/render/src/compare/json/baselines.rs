//! Baseline files as JSON: what one holds, and the course of a metric over several.

use super::{finite, percent};
use crate::compare::report::{BaselineReport, BaselineRun, HistoryReport};
use holdup_diagnose::Class;
use serde::Serialize;

/// The course of a metric.
#[derive(Serialize, schemars::JsonSchema)]
pub(crate) struct History<'a> {
    /// Name of the metric.
    metric: String,
    /// Unit of the metric's values.
    unit: &'static str,
    /// The baselines, in order.
    rows: Vec<PointBody<'a>>,
    /// Lasting changes of the metric.
    changes: Vec<ChangeBody<'a>>,
}

/// One baseline of the series.
#[derive(Serialize, schemars::JsonSchema)]
struct PointBody<'a> {
    /// File of the baseline.
    label: &'a str,
    /// Number of runs in the baseline.
    runs: usize,
    /// Median of the runs, in the metric's unit; null if a run has no value.
    median: Option<f64>,
    /// Run-to-run spread in per cent of the median.
    spread_pct: Option<f64>,
    /// Class of the verdict on most runs.
    class: Option<Class>,
}

/// A lasting change of the metric in the series of baselines.
#[derive(Serialize, schemars::JsonSchema)]
struct ChangeBody<'a> {
    /// Position of the first baseline after the change, counted from 0.
    index: usize,
    /// File of the first baseline after the change.
    label: &'a str,
    /// The mean before the change, in the metric's unit.
    before: f64,
    /// The mean after the change, in the metric's unit.
    after: f64,
    /// The change in per cent; null if the mean before the change is 0.
    change_pct: Option<f64>,
    /// The probability that means differ as much as these if nothing has changed.
    p: f64,
}

impl<'a> History<'a> {
    pub(super) fn of(report: &'a HistoryReport) -> History<'a> {
        let course = &report.course;
        let label = |index: usize| course.points.get(index).map_or("", |p| p.label.as_str());
        History {
            metric: course.metric.to_string(),
            unit: course.metric.unit(),
            rows: (course.points.iter())
                .map(|p| PointBody {
                    label: &p.label,
                    runs: p.runs,
                    median: p.median.and_then(finite),
                    spread_pct: percent(p.spread),
                    class: p.class,
                })
                .collect(),
            changes: (course.changes.iter())
                .map(|c| ChangeBody {
                    index: c.index,
                    label: label(c.index),
                    before: c.before,
                    after: c.after,
                    change_pct: finite((c.after / c.before - 1.0) * 100.0),
                    p: c.p,
                })
                .collect(),
        }
    }
}

/// What a baseline file holds.
#[derive(Serialize, schemars::JsonSchema)]
pub(crate) struct Baseline<'a> {
    /// The baseline file.
    file: &'a str,
    /// What a unit of work is, as given by `--work`; null if no units are counted.
    work: Option<&'a str>,
    /// Whether names are replaced by hashes.
    redacted: bool,
    /// The settings of the runs, each setting once.
    settings: Vec<SettingBody<'a>>,
    /// The runs of the baseline.
    rows: &'a [BaselineRun],
    /// The metrics that matter most.
    metrics: Vec<BaselineMetricBody>,
}

/// Where and how recordings were made.
#[derive(Serialize, schemars::JsonSchema)]
struct SettingBody<'a> {
    host: Option<&'a str>,
    kernel: Option<&'a str>,
    arch: Option<&'a str>,
    cpus: u32,
    /// Kinds of events that were recorded.
    events: &'a [String],
}

/// A metric of a baseline file.
#[derive(Serialize, schemars::JsonSchema)]
struct BaselineMetricBody {
    /// Name of the metric.
    metric: String,
    /// Unit of the metric's values.
    unit: &'static str,
    /// Median of the runs; null if a run has no value.
    median: Option<f64>,
    /// Run-to-run spread in per cent of the median.
    spread_pct: Option<f64>,
}

impl<'a> Baseline<'a> {
    pub(super) fn of(report: &'a BaselineReport) -> Baseline<'a> {
        let settings = report.settings.iter().map(|s| SettingBody {
            host: s.host.as_deref(),
            kernel: s.kernel.as_deref(),
            arch: s.arch.as_deref(),
            cpus: s.cpus,
            events: &s.events,
        });
        let metrics = report.metrics.iter().map(|m| BaselineMetricBody {
            metric: m.metric.to_string(),
            unit: m.metric.unit(),
            median: m.median.and_then(finite),
            spread_pct: percent(m.spread),
        });
        Baseline {
            file: &report.file,
            work: report.work.as_deref(),
            redacted: report.redacted,
            settings: settings.collect(),
            rows: &report.runs,
            metrics: metrics.collect(),
        }
    }
}
