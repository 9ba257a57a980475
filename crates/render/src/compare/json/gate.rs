//! A gate's verdict as JSON, and what its self-test found.

use super::{DiffRow, percent, work};
use crate::compare::report::{GateReport, SelfTestReport, SideHead};
use crate::compare::words;
use holdup_diagnose::Class;
use holdup_gate::judge::{Compared, Finding, Judged, Number};
use holdup_gate::policy::{Waiver, Worse};
use holdup_gate::verdict::{Problem, Verdict};
use holdup_gate::why::Reason;
use serde::Serialize;

/// A gate's verdict.
#[derive(Serialize, schemars::JsonSchema)]
pub(crate) struct Gate<'a> {
    /// `pass`, `regressed` or `inconclusive`.
    outcome: &'static str,
    /// The outcome in sentences, the most important first.
    reasons: Vec<String>,
    /// The baseline file; null if both sides were recordings.
    baseline: Option<&'a str>,
    #[serde(flatten)]
    verdict: VerdictBody<'a>,
    /// The runs before the change.
    a: &'a SideHead,
    /// The runs after the change.
    b: &'a SideHead,
}

impl<'a> Gate<'a> {
    pub(super) fn of(report: &'a GateReport) -> Gate<'a> {
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
#[derive(Serialize, schemars::JsonSchema)]
struct VerdictBody<'a> {
    /// Name of the metric that decides the outcome.
    primary: MetricBody<'a>,
    /// Metrics that are shown for information only.
    inform: Vec<MetricBody<'a>>,
    /// Reasons why the comparison cannot be trusted.
    problems: Vec<ProblemBody<'a>>,
    /// The largest changes for the worse, if there are any.
    why: Vec<ReasonBody<'a>>,
    /// The waiver that accepts the regression, so that the gate passes.
    waiver: Option<WaiverBody<'a>>,
    /// Waivers of this metric that have expired.
    expired: Vec<WaiverBody<'a>>,
    /// Names of the runs that were left out because other programs took too much of the machine's
    /// time. If runs are paired, the partners of these runs are included.
    set_aside: &'a [String],
    /// How many runs were compared.
    runs: RunsBody,
    /// What a unit of work is, as given by `--work`; null if no units are counted.
    work: Option<String>,
    /// Limits on which the outcome depends.
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
            set_aside: &verdict.set_aside,
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

/// What the comparison says about a metric.
#[derive(Serialize, schemars::JsonSchema)]
struct MetricBody<'a> {
    /// Name of the metric, as in a policy.
    metric: String,
    /// Unit of the metric's values; empty for counts and for the class.
    unit: &'static str,
    /// What was found: `same`, `worse`, `beyond-hard`, `better` or `unsure`.
    finding: &'static str,
    /// Why the finding is unsure: `looks-worse`, `could-hide`, `too-few-runs`, `no-value` or
    /// `classes`.
    doubt: Option<&'static str>,
    /// What was found, in words.
    words: String,
    /// Which direction is worse: `higher` or `lower`.
    worse: &'static str,
    limits: Limits,
    /// The metric's values before and after; null for the class, or if a run has no value.
    numbers: Option<Numbers<'a>>,
    /// The classes of the verdicts on most runs; null if the metric is a number.
    classes: Option<Classes>,
}

/// The limits from which on a change of a metric counts.
#[derive(Serialize, schemars::JsonSchema)]
struct Limits {
    /// A change counts from this many per cent on.
    relative_pct: f64,
    /// A change counts only if it also has this absolute size, in the metric's unit.
    absolute: f64,
    /// The comparison must be able to detect a change of this many per cent.
    must_see_pct: f64,
    /// Any change of more than this many per cent fails.
    hard_relative_pct: Option<f64>,
    /// Any value beyond this limit fails, in the metric's unit.
    hard_max: Option<f64>,
}

/// Values of a metric before and after.
#[derive(Serialize, schemars::JsonSchema)]
struct Numbers<'a> {
    /// Median before, in the metric's unit.
    a: f64,
    /// Median after, in the metric's unit.
    b: f64,
    /// Median after minus median before.
    change: f64,
    /// Growth of the median (for pairs: the median growth) in per cent; null if the median before
    /// is 0.
    change_pct: Option<f64>,
    /// Lower end of the 95 % interval of the growth in per cent.
    low_pct: Option<f64>,
    /// Upper end of the 95 % interval of the growth in per cent; null if there is none.
    high_pct: Option<f64>,
    /// The statistical test: `wilcoxon-signed-rank`, `mann-whitney`, `prediction-interval` or
    /// `none`.
    test: &'static str,
    /// The probability that chance alone gives a change for the worse of this size.
    p: Option<f64>,
    /// The p-value, adjusted for all metrics of the comparison (Benjamini and Hochberg).
    q: Option<f64>,
    /// The smallest change, in per cent, that a comparison of this number of runs can detect.
    sees_pct: Option<f64>,
    /// Number of runs per side (or of pairs) that would be enough to decide; null if 100 would not
    /// be enough.
    runs_to_decide: Option<usize>,
    /// Values of the runs before.
    values_a: &'a [f64],
    /// Values of the runs after.
    values_b: &'a [f64],
}

/// The class of the verdict on most runs, before and after.
#[derive(Serialize, schemars::JsonSchema)]
struct Classes {
    /// Class before; null if the runs disagree.
    a: Option<Class>,
    /// Class after; null if the runs disagree.
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
#[derive(Serialize, schemars::JsonSchema)]
struct ProblemBody<'a> {
    /// Kind of the problem: `settings`, `background-load` or `lost-events`.
    code: &'static str,
    /// The problem in words.
    words: &'a str,
    /// What to do about the problem.
    remedy: &'a str,
}

impl<'a> ProblemBody<'a> {
    fn of(problem: &'a Problem) -> ProblemBody<'a> {
        ProblemBody { code: problem.code, words: &problem.words, remedy: &problem.remedy }
    }
}

/// A change that explains a regression.
#[derive(Serialize, schemars::JsonSchema)]
struct ReasonBody<'a> {
    #[serde(flatten)]
    row: DiffRow<'a>,
    /// Which threads wait for which other threads after the change, if that is known.
    threads: Option<&'a str>,
}

impl<'a> ReasonBody<'a> {
    fn of(reason: &'a Reason) -> ReasonBody<'a> {
        ReasonBody { row: DiffRow::of(&reason.row), threads: reason.threads.as_deref() }
    }
}

/// A known regression that is accepted for a limited time.
#[derive(Serialize, schemars::JsonSchema)]
struct WaiverBody<'a> {
    /// Name of the metric.
    metric: &'a str,
    /// The last day on which the waiver is valid.
    until: &'a str,
    /// Why the regression is accepted.
    reason: &'a str,
}

impl<'a> WaiverBody<'a> {
    fn of(waiver: &'a Waiver) -> WaiverBody<'a> {
        WaiverBody { metric: &waiver.metric, until: &waiver.until, reason: &waiver.reason }
    }
}

/// How many runs were compared.
#[derive(Serialize, schemars::JsonSchema)]
struct RunsBody {
    /// Number of runs before.
    a: usize,
    /// Number of runs after.
    b: usize,
    /// Whether the runs before and after alternated, and are compared pair by pair.
    paired: bool,
}

/// Limits on which the outcome of a comparison depends.
#[derive(Serialize, schemars::JsonSchema)]
struct JudgementBody {
    /// A regression is reported if its one-sided p-value is at most this.
    alpha: f64,
    /// The probability with which a relevant change must be detected.
    power: f64,
    /// The part of capacity that other programs may take, in per cent.
    others_pct: f64,
    /// The part of the events that may be lost, in per cent.
    lost_pct: f64,
}

/// The gate, tried on its own baseline.
#[derive(Serialize, schemars::JsonSchema)]
pub(crate) struct SelfTest<'a> {
    self_test: SelfTestBody<'a>,
}

/// What the gate can detect with this baseline.
#[derive(Serialize, schemars::JsonSchema)]
struct SelfTestBody<'a> {
    /// Whether the gate fails with the injected change, and does not fail without it.
    passed: bool,
    /// The result of the self-test in words.
    words: String,
    /// The baseline file.
    baseline: &'a str,
    /// Name of the metric that decides the outcome.
    metric: String,
    /// Number of runs per side that the curve is for.
    runs: usize,
    /// Size of the injected change, in per cent.
    injected_pct: f64,
    /// What the gate says if the baseline is compared with itself.
    unchanged: TrialBody<'a>,
    /// What the gate says if the change is injected.
    slowed: TrialBody<'a>,
    /// For each size of a change, how often the gate reports a regression with this number of runs
    /// per side; empty if the runs do not show the spread.
    curve: Vec<CurveRow>,
    /// The smallest change, in per cent, that is detected with the required probability.
    sees_pct: Option<f64>,
}

/// What the gate says in one comparison.
#[derive(Serialize, schemars::JsonSchema)]
struct TrialBody<'a> {
    /// Outcome: `pass`, `regressed` or `inconclusive`.
    outcome: &'static str,
    #[serde(flatten)]
    verdict: VerdictBody<'a>,
}

/// One point of the power curve: how often a change of one size is detected.
#[derive(Serialize, schemars::JsonSchema)]
struct CurveRow {
    /// Size of the change, in per cent.
    change_pct: f64,
    /// How often the gate reports a regression, in per cent.
    seen_pct: f64,
}

impl<'a> SelfTest<'a> {
    pub(super) fn of(report: &'a SelfTestReport) -> SelfTest<'a> {
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
