//! Comparisons as JSON: the envelope of schema `holdup/1` without a trace, as there are several.
//!
//! The types here define the shape of the output, as in [`crate::json`]. A number is null if no
//! recording gives it, or if it is a ratio with denominator 0.

mod baselines;
mod gate;
mod scale;

pub(crate) use baselines::{Baseline, History};
pub(crate) use gate::{Gate, SelfTest};
pub(crate) use scale::Scale;

use super::report::{Comparison, DiffReport, SideHead};
use crate::report::SCHEMA;
use holdup_gate::Work;
use holdup_gate::diff::Row;
use holdup_gate::metric::Per;
use serde::{Serialize, Serializer};
use std::io::{self, Write};

/// Write `comparison` as JSON, with a final newline.
pub(super) fn write(comparison: &Comparison, out: &mut dyn Write) -> io::Result<()> {
    serde_json::to_writer_pretty(&mut *out, comparison)?;
    out.write_all(b"\n")
}

/// Write a page that shows the same.
pub(super) fn write_page(comparison: &Comparison, out: &mut dyn Write) -> io::Result<()> {
    crate::html::write(comparison, crate::html::Extras::default(), out)
}

impl Serialize for Comparison {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        match self {
            Comparison::Diff(report) => around("diff", Diff::of(report), s),
            Comparison::Gate(report) => around("gate", Gate::of(report), s),
            Comparison::History(report) => around("history", History::of(report), s),
            Comparison::SelfTest(report) => around("gate", SelfTest::of(report), s),
            Comparison::Baseline(report) => around("baseline", Baseline::of(report), s),
            Comparison::Scale(report) => around("scale", Scale::of(report), s),
        }
    }
}

fn around<B: Serialize, S: Serializer>(
    command: &'static str,
    body: B,
    s: S,
) -> Result<S::Ok, S::Error> {
    Envelope { schema: SCHEMA, command, body }.serialize(s)
}

/// A number that JSON can show.
fn finite(value: f64) -> Option<f64> {
    value.is_finite().then_some(value)
}

fn percent(ratio: Option<f64>) -> Option<f64> {
    ratio.and_then(|r| finite(r * 100.0))
}

/// The JSON envelope of the verbs that compare recordings.
#[derive(Serialize, schemars::JsonSchema)]
pub(crate) struct Envelope<B> {
    /// Version of this format.
    schema: &'static str,
    /// The verb.
    command: &'static str,
    #[serde(flatten)]
    body: B,
}

/// Every figure of two sides.
#[derive(Serialize, schemars::JsonSchema)]
pub(crate) struct Diff<'a> {
    /// The earlier recordings.
    a: &'a SideHead,
    /// The later recordings.
    b: &'a SideHead,
    /// What the sums are divided by.
    per: PerName,
    /// What a unit of work is, as given by `--work`; null if no units are counted.
    work: Option<String>,
    /// Differences between the two sides in what should be the same, in words; null if there are
    /// none.
    differences: Option<&'a str>,
    /// The figures of both sides; those that changed most come first.
    rows: Vec<DiffRow<'a>>,
}

/// What the sums are divided by.
#[derive(Serialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
enum PerName {
    Recording,
    Second,
    Capacity,
    Work,
}

/// One figure, on both sides of the comparison.
#[derive(Serialize, schemars::JsonSchema)]
struct DiffRow<'a> {
    /// Name of the table that contains the figure.
    table: &'static str,
    /// Key of the row that contains the figure; empty in a table of one row.
    key: &'a str,
    /// Name of the metric, as in a policy.
    metric: String,
    /// Median before; null if the figure was not recorded.
    a: Option<f64>,
    /// Median after; null if the figure was not recorded.
    b: Option<f64>,
    /// Median after minus median before.
    change: Option<f64>,
    /// The change in per cent of the median before; null if that median is 0.
    change_pct: Option<f64>,
    /// Unit of the figures: `ns/s`, `ns/unit`, `%` …; empty for counts.
    unit: &'static str,
}

impl<'a> DiffRow<'a> {
    fn of(row: &'a Row) -> DiffRow<'a> {
        DiffRow {
            table: row.figure.table.name(),
            key: &row.figure.key,
            metric: row.metric.to_string(),
            a: row.a.and_then(finite),
            b: row.b.and_then(finite),
            change: row.change().and_then(finite),
            change_pct: row.change_pct().and_then(finite),
            unit: row.metric.unit(),
        }
    }
}

fn work(work: &Work) -> Option<String> {
    (*work != Work::Unknown).then(|| work.to_string())
}

impl<'a> Diff<'a> {
    fn of(report: &'a DiffReport) -> Diff<'a> {
        let shown = report.entries.unwrap_or(usize::MAX);
        Diff {
            a: &report.a,
            b: &report.b,
            per: match report.per {
                Per::Recording => PerName::Recording,
                Per::Second => PerName::Second,
                Per::Capacity => PerName::Capacity,
                Per::Work => PerName::Work,
            },
            work: work(&report.work),
            differences: report.differences.as_deref(),
            rows: report.shown(shown).map(DiffRow::of).collect(),
        }
    }
}
