//! The history of a metric as text.

use super::{name, tables};
use crate::compare::words;
use crate::spark;
use crate::text::TextOptions;
use holdup_gate::change_points::ChangePoint;
use holdup_gate::history::Course;
use std::io::{self, Write};

/// Write the history.
pub(super) fn write(course: &Course, options: &TextOptions, out: &mut dyn Write) -> io::Result<()> {
    let paint = options.paint();
    let medians: Vec<Option<f64>> = course.points.iter().map(|p| p.median).collect();
    let title = format!("{} in {} baselines", course.metric, course.points.len());
    writeln!(out, "{}", paint.title(name(&title)))?;
    writeln!(out, "  {}\n", paint.bar(spark::line(&medians)).trim_end())?;
    let mut grid = tables::history(course);
    options.width.map(|w| grid.fit(w));
    grid.write(paint, out)?;
    if options.quiet {
        return Ok(());
    }
    writeln!(out)?;
    sentences(course).iter().try_for_each(|s| writeln!(out, "{}", name(s)))
}

/// One sentence for each lasting change.
pub(in crate::compare) fn sentences(course: &Course) -> Vec<String> {
    match course.changes.as_slice() {
        // At least two on either side are needed to show a level and its scatter.
        [] if course.points.len() < 4 => {
            vec!["Four baselines are needed to show a lasting change.".to_owned()]
        }
        [] => vec!["There is no lasting change.".to_owned()],
        changes => changes.iter().map(|change| sentence(course, change)).collect(),
    }
}

fn sentence(course: &Course, change: &ChangePoint) -> String {
    let label = course.points.get(change.index).map_or("?", |p| p.label.as_str());
    format!(
        "Lasting change at {label}: {} before, {} from there on ({}, p {})",
        words::number(&course.metric, Some(change.before)),
        words::number(&course.metric, Some(change.after)),
        tables::size(change),
        words::probability(change.p)
    )
}
