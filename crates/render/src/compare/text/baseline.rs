//! What a baseline file holds, as text.

use super::{name, tables};
use crate::compare::report::BaselineReport;
use crate::text::units::count;
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
    let mut grid = tables::runs(report);
    options.width.map(|w| grid.fit(w));
    writeln!(out, "{}", paint.title("Runs"))?;
    grid.write(paint, out)?;
    writeln!(out, "\n{}", paint.title("Metrics"))?;
    tables::metrics(report).write(paint, out)
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
