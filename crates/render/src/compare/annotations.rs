//! GitHub's workflow commands: annotations shown above a job's log.
//!
//! The escapes are those of GitHub's own toolkit (`packages/core/src/command.ts` of
//! `actions/toolkit`): `%`, CR and LF everywhere, `:` and `,` in properties too.

use super::report::GateReport;
use super::words;
use crate::escape;
use holdup_gate::verdict::Outcome;
use std::io::{self, Write};

/// Write the verdict as workflow commands, one a line.
///
/// # Errors
/// Errors of `out`.
pub fn write(report: &GateReport, out: &mut dyn Write) -> io::Result<()> {
    let verdict = &report.verdict;
    let level = match verdict.outcome {
        Outcome::Regressed => "error",
        Outcome::Inconclusive => "warning",
        Outcome::Pass => "notice",
    };
    let metric = verdict.primary.limit.metric.to_string();
    let mut lines = vec![words::headline(report)];
    for (i, reason) in verdict.why.iter().enumerate() {
        lines.push(format!("{}. {}", i + 1, words::reason(reason)));
    }
    command(level, &format!("holdup: {} {metric}", words::outcome(verdict)), &lines, out)?;
    for problem in &verdict.problems {
        let message = format!("{}; do: {}", problem.words, problem.remedy);
        command("warning", &format!("holdup: {}", problem.code), &[message], out)?;
    }
    for waiver in &verdict.expired {
        let message = format!("ended on {}: {}", waiver.until, waiver.reason);
        let title = format!("holdup: expired waiver of {}", waiver.metric);
        command("warning", &title, &[message], out)?;
    }
    Ok(())
}

/// A command on one line; `lines` are the lines of its message. Line breaks in a name from a trace
/// are escaped.
fn command(level: &str, title: &str, lines: &[String], out: &mut dyn Write) -> io::Result<()> {
    let lines: Vec<_> = lines.iter().map(|line| escape(line)).collect();
    writeln!(out, "::{level} title={}::{}", property(&escape(title)), data(&lines.join("\n")))
}

fn data(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}
