//! The gate tried on its own baseline, as text.

use super::{Tone, labelled, tables};
use crate::compare::report::SelfTestReport;
use crate::compare::words;
use crate::text::{TextOptions, prose};
use holdup_gate::verdict::Verdict;
use std::io::{self, Write};

/// Write the result.
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
    let title = format!("With {} runs per side, how often a change is detected", test.runs);
    writeln!(out, "\n{}", options.paint().title(title))?;
    tables::curve(test).write(options.paint(), out)?;
    writeln!(out, "{}", words::sees(report))
}
