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
    /// Before.
    a: &'a SideHead,
    /// After.
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
    /// The metric that decides.
    primary: MetricBody<'a>,
    /// Metrics for information only.
    inform: Vec<MetricBody<'a>>,
    /// Why the comparison cannot be trusted.
    problems: Vec<ProblemBody<'a>>,
    /// The largest changes for the worse, if any.
    why: Vec<ReasonBody<'a>>,
    /// The waiver that makes the regression pass.
    waiver: Option<WaiverBody<'a>>,
    /// Expired waivers of this metric.
    expired: Vec<WaiverBody<'a>>,
    /// Names of the runs that were left out because other programs took too much of the machine
    /// meanwhile, and of their partners.
    set_aside: &'a [String],
    /// How many there were.
    runs: RunsBody,
    /// What a unit of work is, as given by `--work`; null if none are counted.
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

/// A metric, judged.
#[derive(Serialize, schemars::JsonSchema)]
struct MetricBody<'a> {
    /// Its name, as in a policy.
    metric: String,
    /// Unit of its numbers; empty for counts and for the class.
    unit: &'static str,
    /// `same`, `worse`, `beyond-hard`, `better` or `unsure`.
    finding: &'static str,
    /// Why the finding is unsure: `looks-worse`, `could-hide`, `too-few-runs`, `no-value` or
    /// `classes`.
    doubt: Option<&'static str>,
    /// The finding in words.
    words: String,
    /// Which direction is worse: `higher` or `lower`.
    worse: &'static str,
    limits: Limits,
    /// The numbers; null for the class, or if a run has no value.
    numbers: Option<Numbers<'a>>,
    /// The classes of most runs; null for numbers.
    classes: Option<Classes>,
}

/// The size from which on a change counts.
#[derive(Serialize, schemars::JsonSchema)]
struct Limits {
    /// A change counts from this many per cent on.
    relative_pct: f64,
    /// The change must also have this absolute size, in the metric's unit.
    absolute: f64,
    /// A change of this many per cent must be detected.
    must_see_pct: f64,
    /// Any change of more than this many per cent fails.
    hard_relative_pct: Option<f64>,
    /// Any value beyond this fails, in the metric's unit.
    hard_max: Option<f64>,
}

/// A number of both sides.
#[derive(Serialize, schemars::JsonSchema)]
struct Numbers<'a> {
    /// Median before, in the metric's unit.
    a: f64,
    /// Median after.
    b: f64,
    /// After minus before.
    change: f64,
    /// Growth of the median (for pairs: the median growth) in per cent; null if the median before
    /// is 0.
    change_pct: Option<f64>,
    /// Lower end of the 95 % interval of the growth in per cent.
    low_pct: Option<f64>,
    /// Its upper end; null if there is none.
    high_pct: Option<f64>,
    /// `wilcoxon-signed-rank`, `mann-whitney`, `prediction-interval` or `none`.
    test: &'static str,
    /// The probability that chance alone gives a change for the worse of this size.
    p: Option<f64>,
    /// The p-value, adjusted for all metrics of the comparison (Benjamini and Hochberg).
    q: Option<f64>,
    /// The smallest change, in per cent, that this number of runs can detect.
    sees_pct: Option<f64>,
    /// Runs per side (or pairs) that would be enough to decide; null if 100 would not be enough.
    runs_to_decide: Option<usize>,
    /// The runs before.
    values_a: &'a [f64],
    /// The runs after.
    values_b: &'a [f64],
}

/// The diagnosis of most runs.
#[derive(Serialize, schemars::JsonSchema)]
struct Classes {
    /// Before; null if the runs disagree.
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
#[derive(Serialize, schemars::JsonSchema)]
struct ProblemBody<'a> {
    /// `settings`, `background-load` or `lost-events`.
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
#[derive(Serialize, schemars::JsonSchema)]
struct ReasonBody<'a> {
    #[serde(flatten)]
    row: DiffRow<'a>,
    /// Which threads wait for which threads now, if known.
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
#[derive(Serialize, schemars::JsonSchema)]
struct RunsBody {
    /// Before.
    a: usize,
    /// After.
    b: usize,
    /// The runs alternated, and are compared pair by pair.
    paired: bool,
}

/// When a comparison decides.
#[derive(Serialize, schemars::JsonSchema)]
struct JudgementBody {
    /// The largest p-value of a regression, one-sided.
    alpha: f64,
    /// The required probability that a relevant change is detected.
    power: f64,
    /// Part of capacity that other programs may take, in per cent.
    others_pct: f64,
    /// Part of the events that may be lost, in per cent.
    lost_pct: f64,
}

/// The gate, tried on its own baseline.
#[derive(Serialize, schemars::JsonSchema)]
pub(crate) struct SelfTest<'a> {
    self_test: SelfTestBody<'a>,
}

/// What the gate can detect with a baseline like this.
#[derive(Serialize, schemars::JsonSchema)]
struct SelfTestBody<'a> {
    /// The gate fails with the injected change, and does not fail without it.
    passed: bool,
    /// The same in words.
    words: String,
    /// The baseline file.
    baseline: &'a str,
    /// The metric that decides.
    metric: String,
    /// Number of runs per side for which the curve holds.
    runs: usize,
    /// The change injected.
    injected_pct: f64,
    /// The baseline compared with itself.
    unchanged: TrialBody<'a>,
    /// With the change injected.
    slowed: TrialBody<'a>,
    /// How often the gate reports each change as a regression with this number of runs per side;
    /// empty if the runs do not show the spread.
    curve: Vec<CurveRow>,
    /// The smallest change that is detected with the required power.
    sees_pct: Option<f64>,
}

/// What the gate said.
#[derive(Serialize, schemars::JsonSchema)]
struct TrialBody<'a> {
    /// `pass`, `regressed` or `inconclusive`.
    outcome: &'static str,
    #[serde(flatten)]
    verdict: VerdictBody<'a>,
}

/// A point of the power curve.
#[derive(Serialize, schemars::JsonSchema)]
struct CurveRow {
    /// The change.
    change_pct: f64,
    /// How often the gate reports a regression.
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
