//! `holdup history`: the history of a metric over baselines.

use super::args::HistoryArgs;
use super::load;
use super::sinks::Answer;
use crate::exit::{self, Result, bad_input, usage};
use holdup_gate::change_points::Options;
use holdup_gate::history::Course;
use holdup_gate::policy::Policy;
use holdup_gate::{Baseline, Metric, Work};
use holdup_render::compare::{Comparison, HistoryReport};
use std::path::{Path, PathBuf};

/// Run the verb.
pub(crate) fn run(args: &HistoryArgs) -> Result<u8> {
    let asked = args.work.as_deref().map(Work::parse).transpose();
    let asked = asked.map_err(|e| usage(format!("--work: {e}")))?;
    let metric = args.metric.as_deref().map(Metric::parse).transpose();
    let metric = metric.map_err(|e| usage(format!("--metric: {e}")))?;
    if !(args.least >= 0.0 && args.least.is_finite()) {
        return Err(usage("--least: the percentage must be 0 or more"));
    }
    let inputs: Vec<&Path> = args.baselines.iter().map(PathBuf::as_path).collect();
    let answer = Answer::open(&args.output, &inputs)?;
    let mut baselines: Vec<(String, Baseline)> = Vec::new();
    for path in &args.baselines {
        for file in load::baselines_in(path)? {
            let name = file.file_name().unwrap_or(file.as_os_str()).to_string_lossy();
            baselines.push((name.into_owned(), load::baseline(&file)?));
        }
    }
    let counted = baselines.iter().all(|(_, b)| b.work.is_some());
    let work = asked.clone().unwrap_or_default();
    let metric = metric.unwrap_or_else(|| match (counted, asked) {
        // Only whether units are counted matters here.
        (true, None) => Policy::default_metric(&Work::Units(1.0)),
        _ => Policy::default_metric(&work),
    });
    let options = Options { least_change: args.least / 100.0, ..Options::default() };
    let course = Course::of(&baselines, &metric, &work, &options);
    if let (Some(path), true) = (inputs.first(), course.points.iter().all(|p| p.median.is_none())) {
        return Err(bad_input(path, format!("no baseline has a value for {metric}")));
    }
    let worse = course.changes.last().is_some_and(|c| c.after > c.before);
    answer.write(&Comparison::History(HistoryReport { course }))?;
    Ok(if args.fail && worse { exit::FAILED } else { exit::OK })
}
