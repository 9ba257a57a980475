//! The course of a metric as text.

use super::name;
use crate::compare::{spark, words};
use crate::text::TextOptions;
use crate::text::grid::{Grid, Head};
use holdup_gate::change_points::ChangePoint;
use holdup_gate::history::{Course, Point};
use std::io::{self, Write};

const BAR: usize = 24;

/// Write the course.
pub(super) fn write(course: &Course, options: &TextOptions, out: &mut dyn Write) -> io::Result<()> {
    let paint = options.paint();
    let medians: Vec<Option<f64>> = course.points.iter().map(|p| p.median).collect();
    let title = format!("{} in {} baselines", course.metric, course.points.len());
    writeln!(out, "{}", paint.title(name(&title)))?;
    writeln!(out, "  {}\n", paint.bar(spark::line(&medians)).trim_end())?;
    let most = medians.iter().flatten().copied().fold(0.0, f64::max);
    let left =
        |title: &str, rank| Head { title: title.to_owned(), left: true, rank, ..Head::default() };
    let right = |title: &str, rank| Head { title: title.to_owned(), rank, ..Head::default() };
    let mut grid = Grid {
        heads: vec![
            left("baseline", 0),
            right("median", 0),
            left("", 1),
            right("spread", 3),
            right("runs", 4),
            left("verdict", 2),
            left("", 0),
        ],
        rows: Vec::new(),
    };
    for (i, point) in course.points.iter().enumerate() {
        let change = course.changes.iter().find(|c| c.index == i);
        grid.rows.push(row(course, point, most, change));
    }
    options.width.map(|w| grid.fit(w));
    grid.write(paint, out)?;
    if options.quiet {
        return Ok(());
    }
    writeln!(out)?;
    if course.changes.is_empty() {
        return writeln!(out, "It changed for good nowhere.");
    }
    for change in &course.changes {
        writeln!(out, "{}", name(&sentence(course, change)))?;
    }
    Ok(())
}

fn row(course: &Course, point: &Point, most: f64, change: Option<&ChangePoint>) -> Vec<String> {
    let part = point.median.filter(|_| most > 0.0).map(|m| m / most);
    vec![
        name(&point.label),
        words::number(&course.metric, point.median),
        part.map_or(String::new(), |p| spark::bar(p, BAR)),
        point.spread.map_or(words::NOT_KNOWN.to_owned(), |s| words::pct(s * 100.0)),
        point.runs.to_string(),
        words::class(point.class).to_owned(),
        change.map_or(String::new(), |c| format!("<- {}", size(c))),
    ]
}

fn size(change: &ChangePoint) -> String {
    match change.before {
        0.0 => "from 0".to_owned(),
        before => words::signed_pct((change.after / before - 1.0) * 100.0),
    }
}

fn sentence(course: &Course, change: &ChangePoint) -> String {
    let label = course.points.get(change.index).map_or("?", |p| p.label.as_str());
    format!(
        "It changed for good at {label}: {} before, {} from there on ({}, p {})",
        words::number(&course.metric, Some(change.before)),
        words::number(&course.metric, Some(change.after)),
        size(change),
        words::probability(change.p)
    )
}
