//! The course of a metric over baselines, one per commit, and where it changed permanently.
//!
//! A gate compares neighbours. A drift of one per cent per commit passes every gate;
//! [`crate::change_points`] finds the points at which the medians change.

use crate::baseline::Baseline;
use crate::change_points::{ChangePoint, Options, change_points};
use crate::metric::Metric;
use crate::run::common_class;
use crate::sample;
use crate::stats::spread::{median, spread};
use crate::work::Work;
use holdup_diagnose::Class;

/// One baseline of the course.
#[derive(Clone, Debug, PartialEq)]
pub struct Point {
    /// The file's name.
    pub label: String,
    /// Its runs.
    pub runs: usize,
    /// Median of the metric; `None` if a run has no value.
    pub median: Option<f64>,
    /// Run-to-run spread, as a ratio to the median (robust).
    pub spread: Option<f64>,
    /// The class of the majority of runs.
    pub class: Option<Class>,
}

/// The course of a metric.
#[derive(Clone, Debug, PartialEq)]
pub struct Course {
    /// The metric.
    pub metric: Metric,
    /// The baselines in order.
    pub points: Vec<Point>,
    /// Where it changed permanently; indices into `points`.
    pub changes: Vec<ChangePoint>,
}

impl Course {
    /// Compute the course. Baselines without a value stay in it but are not searched.
    pub fn of(
        baselines: &[(String, Baseline)],
        metric: &Metric,
        work: &Work,
        options: &Options,
    ) -> Course {
        let point = |(label, baseline): &(String, Baseline)| {
            let values = match metric {
                Metric::Number { figure, per } => {
                    let kept = baseline.work.as_deref().and_then(|w| Work::parse(w).ok());
                    let work = kept.as_ref().filter(|_| *work == Work::Unknown).unwrap_or(work);
                    sample::values(&baseline.runs, figure, *per, work).ok()
                }
                Metric::Class => None,
            };
            Point {
                label: label.clone(),
                runs: baseline.runs.len(),
                median: values.as_deref().and_then(median),
                spread: values.as_deref().and_then(spread).and_then(|s| s.typical()),
                class: common_class(&baseline.runs),
            }
        };
        let points: Vec<Point> = baselines.iter().map(point).collect();
        let known: Vec<usize> = (0..points.len()).filter(|&i| points[i].median.is_some()).collect();
        let series: Vec<f64> = known.iter().filter_map(|&i| points[i].median).collect();
        let mut changes = change_points(&series, options);
        for change in &mut changes {
            change.index = known[change.index];
        }
        Course { metric: metric.clone(), points, changes }
    }
}
