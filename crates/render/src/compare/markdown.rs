//! Comparisons as Markdown, for a comment on a pull request: the important parts are visible, the
//! rest is folded.
//!
//! Git forges turn plain words into links, mentions and HTML. Names come from traces, so all of
//! that is escaped (`plain`).

use super::report::{Comparison, DiffReport, GateReport, SideHead};
use super::text::{self, tables};
use super::words;
use crate::escape;
use crate::text::TextOptions;
use crate::text::grid::Grid;
use crate::text::units::count;
use std::io::{self, Write};

/// Rows of a comparison that are not folded.
const OPEN: usize = 10;

/// Write `comparison` as Markdown.
pub(super) fn write(comparison: &Comparison, out: &mut dyn Write) -> io::Result<()> {
    match comparison {
        Comparison::Gate(report) => gate(report, out),
        Comparison::Diff(report) => diff(report, out),
        Comparison::History(report) => {
            writeln!(out, "### holdup history: {}\n", plain(&report.course.metric.to_string()))?;
            grid(&tables::history(&report.course), out)?;
            let sentences = text::sentences(&report.course);
            writeln!(out)?;
            sentences.iter().try_for_each(|s| writeln!(out, "* {}", plain(s)))
        }
        Comparison::SelfTest(report) => {
            let outcome = if report.test.passed() { "PASS" } else { "FAILED" };
            let words = plain(&words::self_test(report));
            writeln!(out, "### holdup gate --self-test: **{outcome}**\n\n{words}\n")?;
            grid(&tables::curve(&report.test), out)?;
            writeln!(out, "\n{}", plain(&words::sees(report)))
        }
        Comparison::Scale(report) => {
            writeln!(out, "### holdup scale\n")?;
            for (title, table) in tables::scaling(report) {
                writeln!(out, "**{}**\n", plain(title))?;
                grid(&table, out)?;
                writeln!(out)?;
            }
            let sentences = text::scaling_sentences(report);
            sentences.iter().try_for_each(|s| writeln!(out, "* {}", plain(s)))
        }
        Comparison::Baseline(report) => {
            writeln!(out, "### {}\n", plain(&report.file))?;
            grid(&tables::runs(report), out)?;
            writeln!(out)?;
            grid(&tables::metrics(report), out)
        }
    }
}

/// Write a gate's verdict as Markdown.
///
/// # Errors
/// Errors of `out`.
pub fn gate(report: &GateReport, out: &mut dyn Write) -> io::Result<()> {
    let verdict = &report.verdict;
    writeln!(out, "### holdup gate: **{}**\n", words::outcome(verdict))?;
    writeln!(out, "{}\n", plain(&words::headline(report)))?;
    for problem in &verdict.problems {
        let (words, remedy) = (plain(&problem.words), plain(&problem.remedy));
        writeln!(out, "> **{}:** {words}\n>\n> **what to do:** {remedy}\n", problem.code)?;
    }
    if let Some(words) = words::set_aside(verdict) {
        writeln!(out, "> {}\n", plain(&words))?;
    }
    for waiver in &verdict.expired {
        writeln!(out, "> **expired:** {}\n", plain(&words::expired(waiver)))?;
    }
    grid(&tables::judged(std::slice::from_ref(&verdict.primary)), out)?;
    writeln!(out, "\n{}\n", plain(&words::proof(&verdict.primary, verdict).join("; ")))?;
    if !verdict.why.is_empty() {
        writeln!(out, "**Why: what changed most for the worse**\n")?;
        for (i, reason) in verdict.why.iter().enumerate() {
            writeln!(out, "{}. {}", i + 1, plain(&words::reason(reason)))?;
        }
        writeln!(out)?;
    }
    if !verdict.inform.is_empty() {
        let others = count(verdict.inform.len() as u64, "other metric", "other metrics");
        let title = format!("{others} (for information only)");
        folded(&title, out, |out| grid(&tables::judged(&verdict.inform), out))?;
        writeln!(out)?;
    }
    let sides = [("before", &report.a), ("after", &report.b)];
    folded("Recordings", out, |out| heads(sides, out))
}

fn diff(report: &DiffReport, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "### holdup diff\n\n**Verdict:** {}\n", text::verdicts(report))?;
    heads([("A", &report.a), ("B", &report.b)], out)?;
    if let Some(differences) = &report.differences {
        writeln!(out, "\n> **warning:** {}", plain(&words::differences(differences)))?;
    }
    let title = format!("What changed, {}", words::per(report.per, &report.work.to_string()));
    writeln!(out, "\n**{}**\n", plain(&title))?;
    let options = TextOptions::default();
    let (mut table, left_out) = tables::changes(report, &options);
    if table.rows.is_empty() {
        return writeln!(out, "nothing");
    }
    let rest = table.rows.split_off(table.rows.len().min(OPEN));
    grid(&table, out)?;
    if !rest.is_empty() {
        writeln!(out)?;
        let title = count(rest.len() as u64, "more row", "more rows");
        folded(&title, out, |out| grid(&Grid { heads: table.heads, rows: rest }, out))?;
    }
    match left_out {
        0 => Ok(()),
        n => writeln!(out, "\n{} not shown", count(n as u64, "row", "rows")),
    }
}

fn heads(sides: [(&str, &SideHead); 2], out: &mut dyn Write) -> io::Result<()> {
    let line =
        |(label, side): (&str, &SideHead)| format!("* {label}: {}", plain(&text::head(side)));
    sides.into_iter().try_for_each(|side| writeln!(out, "{}", line(side)))
}

/// A part that opens by a click. The blank lines make the text between the tags Markdown.
fn folded(
    title: &str,
    out: &mut dyn Write,
    inside: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> io::Result<()> {
    writeln!(out, "<details>\n<summary>{title}</summary>\n")?;
    inside(out)?;
    writeln!(out, "\n</details>")
}

fn grid(grid: &Grid, out: &mut dyn Write) -> io::Result<()> {
    let titles: Vec<&str> = grid.heads.iter().map(|h| h.title.as_str()).collect();
    writeln!(out, "| {} |", titles.join(" | "))?;
    let rules: Vec<&str> = grid.heads.iter().map(|h| if h.left { "---" } else { "--:" }).collect();
    writeln!(out, "|{}|", rules.join("|"))?;
    grid.rows.iter().try_for_each(|row| {
        writeln!(out, "| {} |", row.iter().map(|c| plain(c)).collect::<Vec<_>>().join(" | "))
    })
}

/// Text that Markdown shows unchanged, and that no forge turns into a link or a mention.
fn plain(text: &str) -> String {
    let mut out = String::new();
    for c in escape(text).chars() {
        match c {
            // A backslash does not prevent a mention from notifying people; code does.
            '@' => out.push_str("`@`"),
            // Addresses (`://`, `www.`) become links unless something splits them.
            '\\' | '`' | '*' | '_' | '[' | ']' | '<' | '>' | '|' | '#' | '~' | '&' | '!' | '$' => {
                out.push('\\');
                out.push(c);
            }
            c => out.push(c),
        }
    }
    out.replace("://", ":\\//").replace("www.", "www\\.")
}
