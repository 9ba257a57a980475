//! What a baseline file holds, as text.

use super::name;
use crate::compare::report::{BaselineReport, BaselineRun};
use crate::compare::words;
use crate::text::grid::{Grid, Head};
use crate::text::units::{count, duration};
use crate::text::{TextOptions, prose};
use holdup_gate::run::Setting;
use std::io::{self, Write};

/// Write what the file holds.
pub(super) fn write(
    report: &BaselineReport,
    options: &TextOptions,
    out: &mut dyn Write,
) -> io::Result<()> {
    let paint = options.paint();
    let left = |title: &str| Head { title: title.to_owned(), left: true, ..Head::default() };
    let right = |title: &str, rank| Head { title: title.to_owned(), rank, ..Head::default() };
    if !options.quiet {
        let runs = count(report.runs.len() as u64, "run", "runs");
        let work = report.work.as_deref().unwrap_or("not counted");
        let redacted = if report.redacted { ", names are hashed" } else { "" };
        let title = paint.title(name(&report.file));
        writeln!(out, "{title}: {runs}, unit of work: {}{redacted}", name(work))?;
        for (i, setting) in report.settings.iter().enumerate() {
            let number = match report.settings.len() {
                1 => "  ".to_owned(),
                _ => format!("  setting {}: ", i + 1),
            };
            prose(&words_of(setting, options.verbose), &number, "    ", options, out)?;
        }
        writeln!(out)?;
    }
    let mut heads = vec![
        left("run"),
        right("length", 0),
        right("events", 2),
        right("lost", 0),
        right("others %", 0),
        right("units", 3),
        left("verdict"),
    ];
    let several = report.settings.len() > 1;
    if several {
        heads.push(right("setting", 0));
    }
    let mut grid = Grid { heads, rows: report.runs.iter().map(|r| row(r, several)).collect() };
    options.width.map(|w| grid.fit(w));
    writeln!(out, "{}", paint.title("Runs"))?;
    grid.write(paint, out)?;
    let grid = Grid {
        heads: vec![left("metric"), right("median", 0), right("run-to-run spread", 0)],
        rows: (report.metrics.iter())
            .map(|m| {
                vec![
                    name(&m.metric.to_string()),
                    words::number(&m.metric, m.median),
                    m.spread.map_or(words::NOT_KNOWN.to_owned(), |s| words::pct(s * 100.0)),
                ]
            })
            .collect(),
    };
    writeln!(out, "\n{}", paint.title("Metrics"))?;
    grid.write(paint, out)
}

fn words_of(setting: &Setting, verbose: bool) -> String {
    let mut words: Vec<String> = Vec::new();
    words.extend(setting.host.as_ref().map(|h| format!("host {h}")));
    words.extend(setting.kernel.as_ref().map(|k| format!("kernel {k}")));
    words.extend(setting.arch.clone());
    words.push(count(setting.cpus.into(), "CPU", "CPUs"));
    words.push(match verbose {
        true => format!("events {}", setting.events.join(" ")),
        false => count(setting.events.len() as u64, "kind of events", "kinds of events"),
    });
    words.join(", ")
}

fn row(run: &BaselineRun, several: bool) -> Vec<String> {
    let mut cells = vec![
        name(&run.name),
        duration(run.wall_ns),
        run.events.to_string(),
        run.lost_events.to_string(),
        format!("{:.1}", run.others_pct),
        run.work_units.map_or(words::NOT_KNOWN.to_owned(), |n| n.to_string()),
        run.class.id().to_owned(),
    ];
    if several {
        cells.push((run.setting + 1).to_string());
    }
    cells
}
