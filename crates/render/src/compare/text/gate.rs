//! A gate's verdict as text: the outcome in one sentence, its basis, the reasons, other changes.

use super::{Tone, head, labelled, tables};
use crate::compare::report::GateReport;
use crate::compare::words;
use crate::text::{TextOptions, prose};
use holdup_gate::verdict::{Outcome, Verdict};
use std::io::{self, Write};

/// Write the verdict.
pub(super) fn write(
    report: &GateReport,
    options: &TextOptions,
    out: &mut dyn Write,
) -> io::Result<()> {
    let verdict = &report.verdict;
    labelled((tone(verdict), words::outcome(verdict)), &words::headline(report), options, out)?;
    if options.quiet {
        return Ok(());
    }
    if !verdict.problems.is_empty() {
        let found = words::judged(&verdict.primary, &verdict.judgement);
        let words = format!("{} {found}", verdict.primary.limit.metric);
        prose(&words, "  measured: ", "    ", options, out)?;
    }
    prose(&words::proof(&verdict.primary, verdict).join("; "), "  ", "  ", options, out)?;
    prose(&head(&report.a), "  before: ", "    ", options, out)?;
    prose(&head(&report.b), "  after:  ", "    ", options, out)?;
    for problem in &verdict.problems {
        let words = format!("{} [{}]", problem.words, problem.code);
        labelled((Tone::Doubtful, "PROBLEM"), &words, options, out)?;
        prose(&problem.remedy, "  do: ", "      ", options, out)?;
    }
    if let Some(words) = words::set_aside(verdict) {
        prose(&words, "  ", "    ", options, out)?;
    }
    for waiver in &verdict.expired {
        let words = words::expired(waiver);
        labelled((Tone::Doubtful, "EXPIRED"), &words, options, out)?;
    }
    write_why(verdict, options, out)?;
    write_table(verdict, options, out)
}

fn tone(verdict: &Verdict) -> Tone {
    match verdict.outcome {
        Outcome::Pass => Tone::Good,
        Outcome::Regressed => Tone::Bad,
        Outcome::Inconclusive => Tone::Doubtful,
    }
}

fn write_why(verdict: &Verdict, options: &TextOptions, out: &mut dyn Write) -> io::Result<()> {
    if verdict.why.is_empty() {
        return Ok(());
    }
    writeln!(out, "\n{}", options.paint().title("Why: what changed most for the worse"))?;
    for (i, reason) in verdict.why.iter().enumerate() {
        prose(&words::reason(reason), &format!("  {}. ", i + 1), "     ", options, out)?;
    }
    Ok(())
}

fn write_table(verdict: &Verdict, options: &TextOptions, out: &mut dyn Write) -> io::Result<()> {
    if verdict.inform.is_empty() {
        return Ok(());
    }
    let mut grid = tables::judged(&verdict.inform);
    writeln!(out, "\n{}", options.paint().title("Other metrics (for information only)"))?;
    options.width.map(|w| grid.fit(w));
    grid.write(options.paint(), out)
}
