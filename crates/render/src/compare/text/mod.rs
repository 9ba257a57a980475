//! Comparisons as text.

mod baseline;
mod diff;
mod gate;
mod history;
mod scale;
mod self_test;
pub(super) mod tables;

pub(super) use diff::verdicts;
pub(super) use history::sentences;
pub(super) use scale::sentences as scaling_sentences;

use super::report::{Comparison, SideHead};
use super::words;
use crate::text::paint::Paint;
use crate::text::units::{count, duration};
use crate::text::{TextOptions, escape, prose};
use std::io::{self, Write};

/// Write `comparison` as text.
pub(super) fn write(
    comparison: &Comparison,
    options: &TextOptions,
    out: &mut dyn Write,
) -> io::Result<()> {
    let mut page = Vec::new();
    compose(comparison, options, &mut page)?;
    out.write_all(no_commands(&String::from_utf8_lossy(&page)).as_bytes())
}

/// `text` without lines that are workflow commands. GitHub executes commands in anything a job
/// prints: lines that begin with `::` after blanks, and `##[` anywhere. The name of a program or a
/// file could control the job.
fn no_commands(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for line in text.replace("##[", "#\\u{23}[").split_inclusive('\n') {
        let words = line.trim_start();
        if let Some(rest) = words.strip_prefix("::") {
            out.push_str(&line[..line.len() - words.len()]);
            out.push_str("\\u{3a}:");
            out.push_str(rest);
        } else {
            out.push_str(line);
        }
    }
    out
}

fn compose(comparison: &Comparison, options: &TextOptions, out: &mut dyn Write) -> io::Result<()> {
    match comparison {
        Comparison::Diff(report) => diff::write(report, options, out),
        Comparison::Gate(report) => gate::write(report, options, out),
        Comparison::History(report) => history::write(&report.course, options, out),
        Comparison::SelfTest(report) => self_test::write(report, options, out),
        Comparison::Baseline(report) => baseline::write(report, options, out),
        Comparison::Scale(report) => scale::write(report, options, out),
    }
}

/// The colour of a label.
#[derive(Clone, Copy)]
enum Tone {
    Good,
    Doubtful,
    Bad,
}

impl Tone {
    fn paint(self, paint: Paint, word: &str) -> String {
        match self {
            Tone::Good => paint.title(word),
            Tone::Doubtful => paint.warning(word),
            Tone::Bad => paint.error(word),
        }
    }
}

/// `LABEL: sentence`, wrapped, with the label in its colour.
fn labelled(
    (tone, label): (Tone, &str),
    sentence: &str,
    options: &TextOptions,
    out: &mut dyn Write,
) -> io::Result<()> {
    let mut words = Vec::new();
    prose(sentence, &format!("{label}: "), "  ", options, &mut words)?;
    let words = String::from_utf8_lossy(&words);
    let rest = words.strip_prefix(label).unwrap_or(&words);
    write!(out, "{}{rest}", tone.paint(options.paint(), label))
}

/// `base.json: 10 runs, kernel 6.18, 2 CPUs, 1.003 s (median), others took 1.2 %, cpu-overload`.
pub(super) fn head(side: &SideHead) -> String {
    let name = match (&side.file, side.runs.as_slice()) {
        (Some(file), _) => file.clone(),
        (None, []) => "nothing".to_owned(),
        (None, [one]) => one.clone(),
        (None, [first, .., last]) => format!("{first} .. {last}"),
    };
    let mut words = Vec::new();
    if side.file.is_some() || side.runs.len() != 1 {
        words.push(count(side.runs.len() as u64, "run", "runs"));
    }
    words.extend(side.host.as_ref().map(|h| format!("host {h}")));
    words.extend(side.kernel.as_ref().map(|k| format!("kernel {k}")));
    words.extend(side.cpus.map(|n| count(n.into(), "CPU", "CPUs")));
    let median = if side.runs.len() > 1 { " (median)" } else { "" };
    words.extend(side.wall_ns.map(|ns| format!("{}{median}", duration(ns))));
    words.extend(side.others_pct.map(|p| format!("other programs took {}", words::pct(p))));
    words.push(words::class(side.class).to_owned());
    escape(&format!("{name}: {}", words.join(", "))).into_owned()
}

/// A name from a trace, on one line.
fn name(text: &str) -> String {
    escape(text).into_owned()
}
