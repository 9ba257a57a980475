//! Comparisons as JSON: the envelope of schema `holdup/1` without a trace, as there are several.
//!
//! The types here are the shape of the output, as in [`crate::json`]. A number is null where no
//! recording gives it, or where it is a ratio to nothing.

use super::report::{
    BaselineReport, BaselineRun, Comparison, DiffReport, GateReport, HistoryReport, SelfTestReport,
    SideHead,
};
use super::words;
use crate::report::SCHEMA;
use holdup_diagnose::Class;
use holdup_gate::Work;
use holdup_gate::diff::Row;
use holdup_gate::judge::{Compared, Finding, Judged, Number};
use holdup_gate::metric::Per;
use holdup_gate::policy::{Waiver, Worse};
use holdup_gate::verdict::{Problem, Verdict};
use holdup_gate::why::Reason;
use serde::Serialize;
use std::io::{self, Write};

/// Write `comparison` as JSON, with a final newline.
pub(super) fn write(comparison: &Comparison, out: &mut dyn Write) -> io::Result<()> {
    match comparison {
        Comparison::Diff(report) => around("diff", Diff::of(report), out),
        Comparison::Gate(report) => around("gate", Gate::of(report), out),
        Comparison::History(report) => around("history", History::of(report), out),
        Comparison::SelfTest(report) => around("gate", SelfTest::of(report), out),
        Comparison::Baseline(report) => around("baseline", Baseline::of(report), out),
    }
}

fn around<B: Serialize>(command: &'static str, body: B, out: &mut dyn Write) -> io::Result<()> {
    serde_json::to_writer_pretty(&mut *out, &Envelope { schema: SCHEMA, command, body })?;
    out.write_all(b"\n")
}

/// A number that JSON can show.
fn finite(value: f64) -> Option<f64> {
    value.is_finite().then_some(value)
}

fn percent(ratio: Option<f64>) -> Option<f64> {
    ratio.and_then(|r| finite(r * 100.0))
}

/// What the verbs that compare recordings print around their answer.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct Envelope<B> {
    /// Version of this format.
    schema: &'static str,
    /// The verb.
    command: &'static str,
    #[serde(flatten)]
    body: B,
}

/// Every figure of two sides.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct Diff<'a> {
    /// Before.
    a: &'a SideHead,
    /// After.
    b: &'a SideHead,
    /// What sums are divided by.
    per: PerName,
    /// What a unit of work is, as `--work` has it; null if none are counted.
    work: Option<String>,
    /// What changed most comes first.
    rows: Vec<DiffRow<'a>>,
}

/// What sums are divided by.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
enum PerName {
    Recording,
    Second,
    Capacity,
    Work,
}

/// A figure of both sides.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct DiffRow<'a> {
    /// The table.
    table: &'static str,
    /// Its row; empty in a table of one row.
    key: &'a str,
    /// The metric's name, as a policy has it.
    metric: String,
    /// Median before; null where it was not recorded.
    a: Option<f64>,
    /// Median after.
    b: Option<f64>,
    /// After less before.
    change: Option<f64>,
    /// The same in per cent of before; null from 0 to something.
    change_pct: Option<f64>,
    /// What the numbers are: `ns/s`, `ns/unit`, `%` ...; empty for things counted.
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
            rows: report.shown(shown).map(DiffRow::of).collect(),
        }
    }
}

/// A gate's verdict.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct Gate<'a> {
    /// `pass`, `regressed` or `inconclusive`.
    outcome: &'static str,
    /// The outcome in sentences, the first of which says most.
    reasons: Vec<String>,
    /// The baseline file; null if both sides were recordings.
    baseline: Option<&'a str>,
    #[serde(flatten)]
    verdict: VerdictBody<'a>,
    /// Before.
    a: &'a SideHead,
    /// After.
    b: &'a SideHead,
}

impl<'a> Gate<'a> {
    fn of(report: &'a GateReport) -> Gate<'a> {
        let verdict = &report.verdict;
        let headline = words::headline(report);
        let found = words::judged(&verdict.primary, &verdict.judgement);
        let mut reasons = vec![headline];
        if !verdict.problems.is_empty() {
            reasons.push(format!("{} {found}", verdict.primary.limit.metric));
        }
        Gate {
            outcome: verdict.outcome.word(),
            reasons,
            baseline: report.baseline.as_deref(),
            verdict: VerdictBody::of(verdict),
            a: &report.a,
            b: &report.b,
        }
    }
}

/// What a verdict rests on.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct VerdictBody<'a> {
    /// The metric that decides.
    primary: MetricBody<'a>,
    /// Metrics that inform.
    inform: Vec<MetricBody<'a>>,
    /// Why the comparison cannot be trusted.
    problems: Vec<ProblemBody<'a>>,
    /// What changed most for the worse, if anything did.
    why: Vec<ReasonBody<'a>>,
    /// What makes the regression pass.
    waiver: Option<WaiverBody<'a>>,
    /// Waivers of this metric that are over.
    expired: Vec<WaiverBody<'a>>,
    /// How many there were.
    runs: RunsBody,
    /// What a unit of work is, as `--work` has it; null if none are counted.
    work: Option<String>,
    /// When a comparison decides.
    judgement: JudgementBody,
}

impl<'a> VerdictBody<'a> {
    fn of(verdict: &'a Verdict) -> VerdictBody<'a> {
        let metric = |judged: &'a Judged| MetricBody::of(judged, verdict);
        let judgement = verdict.judgement;
        VerdictBody {
            primary: metric(&verdict.primary),
            inform: verdict.inform.iter().map(metric).collect(),
            problems: verdict.problems.iter().map(ProblemBody::of).collect(),
            why: verdict.why.iter().map(ReasonBody::of).collect(),
            waiver: verdict.waived.as_ref().map(WaiverBody::of),
            expired: verdict.expired.iter().map(WaiverBody::of).collect(),
            runs: RunsBody { a: verdict.runs.0, b: verdict.runs.1, paired: verdict.paired },
            work: work(&verdict.work),
            judgement: JudgementBody {
                alpha: judgement.alpha,
                power: judgement.power,
                others_pct: judgement.others_pct,
                lost_pct: judgement.lost_pct,
            },
        }
    }
}

/// A metric, judged.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct MetricBody<'a> {
    /// Its name, as a policy has it.
    metric: String,
    /// What its numbers are; empty for things counted and for the class.
    unit: &'static str,
    /// `same`, `worse`, `beyond-hard`, `better` or `unsure`.
    finding: &'static str,
    /// Why it is unsure: `looks-worse`, `could-hide`, `too-few-runs`, `no-value` or `classes`.
    doubt: Option<&'static str>,
    /// The finding in words.
    words: String,
    /// Which way it gets worse: `higher` or `lower`.
    worse: &'static str,
    limits: Limits,
    /// The numbers; null for the class, and where a run has no value.
    numbers: Option<Numbers<'a>>,
    /// The classes of most runs; null for numbers.
    classes: Option<Classes>,
}

/// From where on a change counts.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct Limits {
    /// A change counts from this many per cent on.
    relative_pct: f64,
    /// It must be worth this much too, in the metric's unit.
    absolute: f64,
    /// A change of so many per cent must not pass unseen.
    must_see_pct: f64,
    /// More than this many per cent fails at once.
    hard_relative_pct: Option<f64>,
    /// A value beyond this fails at once, in the metric's unit.
    hard_max: Option<f64>,
}

/// A number of both sides.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct Numbers<'a> {
    /// Median before, in the metric's unit.
    a: f64,
    /// Median after.
    b: f64,
    /// After less before.
    change: f64,
    /// Growth of the median (of pairs: the median growth) in per cent; null from 0 to something.
    change_pct: Option<f64>,
    /// Lower end of the 95 % interval of the growth in per cent.
    low_pct: Option<f64>,
    /// Its upper end; null if there is none.
    high_pct: Option<f64>,
    /// `wilcoxon-signed-rank`, `mann-whitney`, `prediction-interval` or `none`.
    test: &'static str,
    /// How likely chance alone gives a change for the worse like this.
    p: Option<f64>,
    /// The same among all metrics of the comparison (Benjamini and Hochberg).
    q: Option<f64>,
    /// The smallest change in per cent that so many runs show.
    sees_pct: Option<f64>,
    /// Runs a side (or pairs) that would decide; null where 100 would not.
    runs_to_decide: Option<usize>,
    /// The runs before.
    values_a: &'a [f64],
    /// The runs after.
    values_b: &'a [f64],
}

/// What most runs are diagnosed as.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct Classes {
    /// Before; null where the runs do not agree.
    a: Option<Class>,
    /// After.
    b: Option<Class>,
}

impl<'a> MetricBody<'a> {
    fn of(judged: &'a Judged, verdict: &Verdict) -> MetricBody<'a> {
        let limit = &judged.limit;
        MetricBody {
            metric: limit.metric.to_string(),
            unit: limit.metric.unit(),
            finding: match &judged.finding {
                Finding::BeyondHard => "beyond-hard",
                found => words::finding(found),
            },
            doubt: match &judged.finding {
                Finding::Unsure(doubt) => Some(words::doubt_code(doubt)),
                _ => None,
            },
            words: words::judged(judged, &verdict.judgement),
            worse: match limit.worse {
                Worse::Higher => "higher",
                Worse::Lower => "lower",
            },
            limits: Limits {
                relative_pct: limit.relative * 100.0,
                absolute: limit.absolute,
                must_see_pct: limit.must_see * 100.0,
                hard_relative_pct: percent(limit.hard.relative),
                hard_max: limit.hard.max,
            },
            numbers: match &judged.compared {
                Compared::Number(n) => {
                    Some(Numbers::of(n, judged.runs_to_decide(&verdict.judgement)))
                }
                _ => None,
            },
            classes: match judged.compared {
                Compared::Class { a, b } => Some(Classes { a, b }),
                _ => None,
            },
        }
    }
}

impl<'a> Numbers<'a> {
    fn of(n: &'a Number, runs_to_decide: Option<usize>) -> Numbers<'a> {
        Numbers {
            a: n.median_a,
            b: n.median_b,
            change: n.median_b - n.median_a,
            change_pct: percent(n.change),
            low_pct: percent(n.interval.map(|i| i.low - 1.0)),
            high_pct: percent(n.interval.and_then(|i| i.high).map(|high| high - 1.0)),
            test: words::test_code(n.test),
            p: n.p,
            q: n.q,
            sees_pct: percent(n.sees),
            runs_to_decide,
            values_a: &n.a,
            values_b: &n.b,
        }
    }
}

/// A reason why a comparison cannot be trusted.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct ProblemBody<'a> {
    /// `settings`, `neighbours` or `lost-events`.
    code: &'static str,
    /// What it is.
    words: &'a str,
    /// What to do about it.
    remedy: &'a str,
}

impl<'a> ProblemBody<'a> {
    fn of(problem: &'a Problem) -> ProblemBody<'a> {
        ProblemBody { code: problem.code, words: &problem.words, remedy: &problem.remedy }
    }
}

/// A change that explains a regression.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct ReasonBody<'a> {
    #[serde(flatten)]
    row: DiffRow<'a>,
    /// Who waits for whom now, where that is known.
    people: Option<&'a str>,
}

impl<'a> ReasonBody<'a> {
    fn of(reason: &'a Reason) -> ReasonBody<'a> {
        ReasonBody { row: DiffRow::of(&reason.row), people: reason.people.as_deref() }
    }
}

/// A regression that is known and borne for a time.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct WaiverBody<'a> {
    /// The metric.
    metric: &'a str,
    /// The last day.
    until: &'a str,
    /// Why.
    reason: &'a str,
}

impl<'a> WaiverBody<'a> {
    fn of(waiver: &'a Waiver) -> WaiverBody<'a> {
        WaiverBody { metric: &waiver.metric, until: &waiver.until, reason: &waiver.reason }
    }
}

/// How many runs were compared.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct RunsBody {
    /// Before.
    a: usize,
    /// After.
    b: usize,
    /// They alternated, and are compared pair by pair.
    paired: bool,
}

/// When a comparison decides.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct JudgementBody {
    /// The largest p-value of a regression, one-sided.
    alpha: f64,
    /// How likely a change that matters must be seen.
    power: f64,
    /// Part of capacity that other programs may take, in per cent.
    others_pct: f64,
    /// Part of the events that may be lost, in per cent.
    lost_pct: f64,
}

/// The course of a metric.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct History<'a> {
    /// The metric's name.
    metric: String,
    /// What its numbers are.
    unit: &'static str,
    /// The baselines in order.
    rows: Vec<PointBody<'a>>,
    /// Where it changed for good.
    changes: Vec<ChangeBody<'a>>,
}

/// One baseline of the course.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct PointBody<'a> {
    /// The file.
    label: &'a str,
    /// Its runs.
    runs: usize,
    /// Median in the metric's unit; null if a run has no value.
    median: Option<f64>,
    /// Run-to-run spread in per cent of the median.
    spread_pct: Option<f64>,
    /// The class of most runs.
    class: Option<Class>,
}

/// A place where the course changed for good.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct ChangeBody<'a> {
    /// The first baseline of the new level, counted from 0.
    index: usize,
    /// Its file.
    label: &'a str,
    /// The mean up to there, in the metric's unit.
    before: f64,
    /// The mean from there on.
    after: f64,
    /// The change in per cent; null from 0.
    change_pct: Option<f64>,
    /// How likely means so different are if nothing changed.
    p: f64,
}

impl<'a> History<'a> {
    fn of(report: &'a HistoryReport) -> History<'a> {
        let course = &report.course;
        let label = |index: usize| course.points.get(index).map_or("", |p| p.label.as_str());
        History {
            metric: course.metric.to_string(),
            unit: course.metric.unit(),
            rows: (course.points.iter())
                .map(|p| PointBody {
                    label: &p.label,
                    runs: p.runs,
                    median: p.median.and_then(finite),
                    spread_pct: percent(p.spread),
                    class: p.class,
                })
                .collect(),
            changes: (course.changes.iter())
                .map(|c| ChangeBody {
                    index: c.index,
                    label: label(c.index),
                    before: c.before,
                    after: c.after,
                    change_pct: finite((c.after / c.before - 1.0) * 100.0),
                    p: c.p,
                })
                .collect(),
        }
    }
}

/// The gate, tried on its own baseline.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct SelfTest<'a> {
    self_test: SelfTestBody<'a>,
}

/// What the gate can see with a baseline like this.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct SelfTestBody<'a> {
    /// The gate can fail, and does not fail without a reason.
    passed: bool,
    /// The same in words.
    words: String,
    /// The baseline file.
    baseline: &'a str,
    /// The metric that decides.
    metric: String,
    /// Runs a side that the curve is for.
    runs: usize,
    /// The change injected.
    injected_pct: f64,
    /// The baseline against itself.
    unchanged: TrialBody<'a>,
    /// With the change injected.
    slowed: TrialBody<'a>,
    /// How often each change is called a regression with so many runs a side; empty where the runs
    /// say nothing of the spread.
    curve: Vec<CurveRow>,
    /// The smallest change that is seen with the power asked for.
    sees_pct: Option<f64>,
}

/// What the gate said.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct TrialBody<'a> {
    /// `pass`, `regressed` or `inconclusive`.
    outcome: &'static str,
    #[serde(flatten)]
    verdict: VerdictBody<'a>,
}

/// A point of the power curve.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct CurveRow {
    /// The change.
    change_pct: f64,
    /// How often it is called a regression.
    seen_pct: f64,
}

impl<'a> SelfTest<'a> {
    fn of(report: &'a SelfTestReport) -> SelfTest<'a> {
        let test = &report.test;
        let trial = |verdict: &'a Verdict| TrialBody {
            outcome: verdict.outcome.word(),
            verdict: VerdictBody::of(verdict),
        };
        let curve = test.curve.iter();
        SelfTest {
            self_test: SelfTestBody {
                passed: test.passed(),
                words: words::self_test(report),
                baseline: &report.baseline,
                metric: test.metric.to_string(),
                runs: test.runs,
                injected_pct: test.injected * 100.0,
                unchanged: trial(&test.unchanged),
                slowed: trial(&test.slowed),
                curve: curve
                    .map(|c| CurveRow { change_pct: c.0 * 100.0, seen_pct: c.1 * 100.0 })
                    .collect(),
                sees_pct: percent(test.sees),
            },
        }
    }
}

/// What a baseline file holds.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct Baseline<'a> {
    /// The file.
    file: &'a str,
    /// What a unit of work is, as `--work` has it; null if none are counted.
    work: Option<&'a str>,
    /// Names are hashed.
    redacted: bool,
    /// The settings, each once.
    settings: Vec<SettingBody<'a>>,
    /// The runs.
    rows: &'a [BaselineRun],
    /// The metrics that matter most.
    metrics: Vec<BaselineMetricBody>,
}

/// Where and how recordings were made.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct SettingBody<'a> {
    host: Option<&'a str>,
    kernel: Option<&'a str>,
    arch: Option<&'a str>,
    cpus: u32,
    /// Events recorded.
    events: &'a [String],
}

/// A metric of a baseline.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct BaselineMetricBody {
    /// Its name.
    metric: String,
    /// What its numbers are.
    unit: &'static str,
    /// Median of the runs; null if a run has no value.
    median: Option<f64>,
    /// Run-to-run spread in per cent of the median.
    spread_pct: Option<f64>,
}

impl<'a> Baseline<'a> {
    fn of(report: &'a BaselineReport) -> Baseline<'a> {
        let settings = report.settings.iter().map(|s| SettingBody {
            host: s.host.as_deref(),
            kernel: s.kernel.as_deref(),
            arch: s.arch.as_deref(),
            cpus: s.cpus,
            events: &s.events,
        });
        let metrics = report.metrics.iter().map(|m| BaselineMetricBody {
            metric: m.metric.to_string(),
            unit: m.metric.unit(),
            median: m.median.and_then(finite),
            spread_pct: percent(m.spread),
        });
        Baseline {
            file: &report.file,
            work: report.work.as_deref(),
            redacted: report.redacted,
            settings: settings.collect(),
            rows: &report.runs,
            metrics: metrics.collect(),
        }
    }
}
