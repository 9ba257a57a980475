//! The gate tried on its own baseline, as text.

use super::{Tone, labelled};
use crate::compare::report::SelfTestReport;
use crate::compare::{spark, words};
use crate::text::grid::{Grid, Head};
use crate::text::{TextOptions, prose};
use holdup_gate::verdict::Verdict;
use std::io::{self, Write};

const BAR: usize = 40;

/// Write what came out.
pub(super) fn write(
    report: &SelfTestReport,
    options: &TextOptions,
    out: &mut dyn Write,
) -> io::Result<()> {
    let label = match report.test.passed() {
        true => (Tone::Good, "PASS"),
        false => (Tone::Bad, "FAILED"),
    };
    labelled(label, &words::self_test(report), options, out)?;
    if options.quiet {
        return Ok(());
    }
    let test = &report.test;
    let says = |verdict: &Verdict| {
        let found = words::judged(&verdict.primary, &verdict.judgement);
        format!("{}: {} {found}", words::outcome(verdict), test.metric)
    };
    prose(&says(&test.unchanged), "  as it is: ", "    ", options, out)?;
    let slowed = format!("  {} injected: ", words::pct(test.injected * 100.0));
    prose(&says(&test.slowed), &slowed, "    ", options, out)?;
    if test.curve.is_empty() {
        return Ok(());
    }
    let title = format!("How often {} runs a side show a change", test.runs);
    writeln!(out, "\n{}", options.paint().title(title))?;
    let right = |title: &str| Head { title: title.to_owned(), ..Head::default() };
    let grid = Grid {
        heads: vec![right("change"), right("seen"), Head { left: true, ..Head::default() }],
        rows: test.curve.iter().map(|&(change, seen)| row(change, seen)).collect(),
    };
    grid.write(options.paint(), out)?;
    writeln!(out, "{}", words::sees(report))
}

fn row(change: f64, seen: f64) -> Vec<String> {
    vec![words::pct(change * 100.0), words::pct(seen * 100.0), spark::bar(seen, BAR)]
}
