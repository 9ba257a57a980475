//! One metric, judged: did it get worse, and how certain is that?
//!
//! A change counts if it is large enough to matter *and* too large for chance. The answer is "no
//! change" only if a change that matters would have been detected; otherwise it is unknown.

use crate::metric::{Figure, Metric, Per};
use crate::policy::{Judgement, Limit, Worse};
use crate::run::{Run, common_class};
use crate::sample::{self, Missing};
use crate::setting::depends_on_calls;
use crate::stats::bootstrap::{self, Interval};
use crate::stats::power::{self, Ask, Noise, Runs};
use crate::stats::spread::{self, median};
use crate::stats::{distributions, pairs, ranks};
use crate::work::Work;
use holdup_diagnose::Class;

/// The two sides of a comparison.
#[derive(Clone, Copy, Debug)]
pub struct Sides<'a> {
    /// Before.
    pub a: &'a [Run],
    /// After.
    pub b: &'a [Run],
    /// The runs alternated: the first of `a` and the first of `b` are a pair, and so on.
    pub paired: bool,
}

impl<'a> Sides<'a> {
    /// All runs.
    pub fn runs(&self) -> impl Iterator<Item = &'a Run> {
        self.a.iter().chain(self.b)
    }

    /// Whether a figure means the same in all runs.
    ///
    /// # Errors
    /// The first run in which it does not.
    pub fn compare(&self, figure: &Figure) -> Result<(), (String, Missing)> {
        let mut runs = self.runs();
        let Some(first) = runs.next().filter(|_| depends_on_calls(figure)) else { return Ok(()) };
        let calls = first.setting.calls();
        match runs.find(|run| run.setting.calls() != calls) {
            Some(run) => Err((run.name.clone(), Missing::OtherCalls)),
            None => Ok(()),
        }
    }
}

/// How the two sides are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Test {
    /// Interleaved pairs: Wilcoxon's signed-rank test.
    Pairs,
    /// Two samples: Mann and Whitney's rank test.
    Samples,
    /// One run compared with several: whether it lies within their spread (Student's prediction
    /// interval).
    OneRun,
    /// Too few runs for any test.
    None,
}

/// The result for a metric.
#[derive(Clone, Debug, PartialEq)]
pub enum Finding {
    /// It did not get worse, and that would have been detected.
    Same,
    /// It got worse.
    Worse,
    /// It exceeds the hard limit, whatever the scatter.
    BeyondHard,
    /// It got better.
    Better,
    /// Unknown, and why.
    Unsure(Doubt),
}

/// Why the result is unknown.
#[derive(Clone, Debug, PartialEq)]
pub enum Doubt {
    /// It looks worse, but the runs scatter as much.
    LooksWorse,
    /// It looks the same, but a change that matters could hide in the scatter.
    CouldHide,
    /// This many runs can prove nothing at the requested level.
    TooFewRuns,
    /// A run has no value of it.
    NoValue {
        /// Which run.
        run: String,
        /// Why.
        why: Missing,
    },
    /// The runs of one side have different classes.
    Classes,
}

/// A number of both sides, judged.
#[derive(Clone, Debug, PartialEq)]
pub struct Number {
    /// Values of the runs before.
    pub a: Vec<f64>,
    /// Values of the runs after.
    pub b: Vec<f64>,
    /// Median before.
    pub median_a: f64,
    /// Median after.
    pub median_b: f64,
    /// Growth of the median as a ratio (for pairs: the median growth); `None` from 0 to something.
    pub change: Option<f64>,
    /// The 95 % interval of the ratio after/before.
    pub interval: Option<Interval>,
    /// How the sides were compared.
    pub test: Test,
    /// The probability that chance alone gives a change for the worse like this.
    pub p: Option<f64>,
    /// The q-value among all metrics of the comparison (Benjamini and Hochberg).
    pub q: Option<f64>,
    /// The smallest change for the worse that this many runs detect with the requested power.
    pub sees: Option<f64>,
    /// Runs per side (or pairs) that would detect a change of `must_see`; `None` if 100 do not, and
    /// if nothing is left to be decided.
    pub runs_needed: Option<usize>,
}

/// What was compared.
#[derive(Clone, Debug, PartialEq)]
pub enum Compared {
    /// Numbers.
    Number(Box<Number>),
    /// The classes of the majority of runs before and after.
    Class {
        /// Before.
        a: Option<Class>,
        /// After.
        b: Option<Class>,
    },
    /// A run has no value.
    Nothing,
}

/// A metric, judged.
#[derive(Clone, Debug, PartialEq)]
pub struct Judged {
    /// The metric and its limits.
    pub limit: Limit,
    /// The values.
    pub compared: Compared,
    /// The result.
    pub finding: Finding,
}

/// Judge one metric.
pub fn judge(limit: &Limit, sides: Sides<'_>, work: &Work, judgement: &Judgement) -> Judged {
    let done = |compared, finding| Judged { limit: limit.clone(), compared, finding };
    let Metric::Number { figure, per } = &limit.metric else {
        let (a, b) = (common_class(sides.a), common_class(sides.b));
        let finding = classes(a, b);
        return done(Compared::Class { a, b }, finding);
    };
    let values = |runs: &[Run]| {
        sides.compare(figure)?;
        sample::values(runs, figure, *per, work)
    };
    let (a, b) = match (values(sides.a), values(sides.b)) {
        (Ok(a), Ok(b)) => (a, b),
        (Err((run, why)), _) | (_, Err((run, why))) => {
            return done(Compared::Nothing, Finding::Unsure(Doubt::NoValue { run, why }));
        }
    };
    let mut number = measure(limit, a, b, sides.paired, judgement);
    let finding = finding(limit, &number, judgement, *per);
    if matches!(finding, Finding::Unsure(_)) {
        number.runs_needed = runs_needed(limit, &number, judgement);
    }
    done(Compared::Number(Box::new(number)), finding)
}

fn classes(a: Option<Class>, b: Option<Class>) -> Finding {
    match (a, b) {
        (Some(a), Some(b)) if a == b => Finding::Same,
        (None | Some(Class::NotEnoughEvidence), _) | (_, None | Some(Class::NotEnoughEvidence)) => {
            Finding::Unsure(Doubt::Classes)
        }
        (_, Some(Class::Healthy)) => Finding::Better,
        _ => Finding::Worse,
    }
}

fn measure(limit: &Limit, a: Vec<f64>, b: Vec<f64>, paired: bool, judgement: &Judgement) -> Number {
    let test = match (paired, a.len(), b.len()) {
        (true, n, m) if n == m => Test::Pairs,
        (_, n, 1) if n >= 3 => Test::OneRun,
        (_, n, m) if n >= 2 && m >= 2 => Test::Samples,
        _ => Test::None,
    };
    let (from, to) = limit.worse.order(&a, &b);
    let p = match test {
        Test::OneRun => one_run(&a, b[0], limit.worse),
        test => test.greater(from, to),
    };
    let interval = match test {
        Test::Pairs => bootstrap::median_ratio_of_pairs(&a, &b, 0.95),
        _ => bootstrap::ratio_of_medians(&a, &b, 0.95),
    };
    let (median_a, median_b) = (median(&a).unwrap_or(0.0), median(&b).unwrap_or(0.0));
    let ratio = match test {
        Test::Pairs => median(&pairs::ratios(&a, &b)),
        _ => spread::ratio(median_a, median_b),
    };
    let sees = match test {
        Test::OneRun => one_run_sees(&a, &ask(limit, judgement), judgement.power),
        _ => Scatter::of(test, &a, &b).and_then(|scatter| {
            let runs = Runs { a: a.len(), b: b.len() };
            let ask = ask(limit, judgement);
            power::smallest_change(scatter.noise(), runs, &ask, judgement.power)
                .map(|growth| limit.worse.of_growth(growth))
        }),
    };
    Number {
        median_a,
        median_b,
        change: ratio.map(|r| r - 1.0),
        interval,
        test,
        p,
        q: None,
        sees,
        runs_needed: None,
        a,
        b,
    }
}

/// Runs per side, or pairs, that would detect a change of `must_see`.
fn runs_needed(limit: &Limit, n: &Number, judgement: &Judgement) -> Option<usize> {
    let scatter = Scatter::of(n.test, &n.a, &n.b)?;
    let growth = limit.worse.as_growth(limit.must_see);
    power::runs_needed(scatter.noise(), growth, &ask(limit, judgement), judgement.power)
}

fn ask(limit: &Limit, judgement: &Judgement) -> Ask {
    Ask { alpha: judgement.alpha, least: limit.relative }
}

impl Test {
    /// The probability that chance alone makes the second side that much larger.
    fn greater(self, from: &[f64], to: &[f64]) -> Option<f64> {
        match self {
            Test::Pairs => pairs::greater(from, to).map(|t| t.p),
            Test::Samples => ranks::greater(from, to).map(|t| t.p),
            Test::OneRun | Test::None => None,
        }
    }
}

/// How runs differ although nothing changed, for computing power.
enum Scatter {
    /// For pairs: their ratios.
    Ratios(Vec<f64>),
    /// For two samples: the runs relative to the median of their side.
    Runs(Vec<f64>),
}

impl Scatter {
    /// `None` if power has no meaning.
    fn of(test: Test, a: &[f64], b: &[f64]) -> Option<Scatter> {
        match test {
            Test::Pairs => Some(Scatter::Ratios(pairs::ratios(a, b))),
            Test::Samples => Some(Scatter::Runs(pooled(a, b))),
            Test::OneRun | Test::None => None,
        }
    }

    fn noise(&self) -> Noise<'_> {
        match self {
            Scatter::Ratios(ratios) => Noise::Ratios(ratios),
            Scatter::Runs(runs) => Noise::Runs(runs),
        }
    }
}

/// How the runs of both sides scatter about their own medians: a version whose scatter increased
/// hides as much as one that had it before.
fn pooled(a: &[f64], b: &[f64]) -> Vec<f64> {
    let own = |side: &[f64]| {
        let middle = median(side).filter(|m| *m > 0.0)?;
        Some(side.iter().map(|v| v / middle).collect::<Vec<f64>>())
    };
    // A single run has no scatter.
    let sides = [a, b].into_iter().filter(|side| side.len() > 1);
    sides.filter_map(own).flatten().collect()
}

/// The probability that a run like `a` is as bad as `b`: Student's prediction interval.
fn one_run(a: &[f64], b: f64, worse: Worse) -> Option<f64> {
    let (mean, deviation) = (spread::mean(a)?, spread::deviation(a)?);
    let off = if worse == Worse::Higher { b - mean } else { mean - b };
    if deviation == 0.0 {
        return Some(if off > 0.0 { 1.0 / (a.len() + 1) as f64 } else { 1.0 });
    }
    let n = a.len() as f64;
    let t = off / (deviation * (1.0 + 1.0 / n).sqrt());
    let half = distributions::student_two_sided(t, n - 1.0) / 2.0;
    Some(if t > 0.0 { half } else { 1.0 - half })
}

/// The smallest relative change that one more run shows with this power.
fn one_run_sees(a: &[f64], ask: &Ask, power: f64) -> Option<f64> {
    let (mean, deviation) = (spread::mean(a)?, spread::deviation(a)?);
    if mean <= 0.0 {
        return None;
    }
    let n = a.len() as f64;
    let step = deviation * (1.0 + 1.0 / n).sqrt() / mean;
    // Both quantiles by bisection of the tail: Student's for the limit, the normal one for the
    // power, because the spread is given then.
    let t = quantile(|t| distributions::student_two_sided(t, n - 1.0) / 2.0, ask.alpha);
    let z = quantile(distributions::normal_tail, 1.0 - power);
    Some(((t + z) * step).max(ask.least))
}

/// Where a falling tail reaches `p`.
fn quantile(tail: impl Fn(f64) -> f64, p: f64) -> f64 {
    let (mut low, mut high) = (-1e3, 1e3);
    for _ in 0..80 {
        let middle = f64::midpoint(low, high);
        // Tails of Student's t are two-sided: below 0 they say nothing.
        let above = middle <= 0.0 && p < 0.5 || tail(middle) > p;
        (low, high) = if above { (middle, high) } else { (low, middle) };
    }
    low
}

/// How much worse the second side is, relative and absolute; infinite from 0 to something.
fn worsening(limit: &Limit, n: &Number) -> (f64, f64) {
    let (from, to) = limit.worse.order(n.median_a, n.median_b);
    let relative = match (n.change, limit.worse) {
        (Some(change), Worse::Higher) => change,
        // A falling figure is worse by the fraction that is gone: half as much is 50 %.
        (Some(change), Worse::Lower) => -change,
        (None, _) if to > from => f64::INFINITY,
        (None, _) => f64::NEG_INFINITY,
    };
    (relative, to - from)
}

fn finding(limit: &Limit, n: &Number, judgement: &Judgement, per: Per) -> Finding {
    let (relative, absolute) = worsening(limit, n);
    let beyond = |most: f64| match limit.worse {
        Worse::Higher => n.median_b > most,
        Worse::Lower => n.median_b < most,
    };
    let hard = limit.hard;
    if hard.max.is_some_and(beyond) || hard.relative.is_some_and(|r| relative > r) {
        return Finding::BeyondHard;
    }
    // Per cent of capacity are compared absolutely: 0.1 % becoming 0.2 % is no doubling.
    let least = if per == Per::Capacity { limit.absolute.max(0.1) } else { limit.absolute };
    let matters = relative >= limit.relative && absolute > 0.0 && absolute >= least;
    let proven = n.p.is_some_and(|p| p <= judgement.alpha);
    let steady = n.a.iter().chain(&n.b).all(|v| *v == n.median_a);
    match (matters, proven) {
        (true, true) => Finding::Worse,
        (true, false) if !can_prove(n, judgement) => Finding::Unsure(Doubt::TooFewRuns),
        (true, false) => Finding::Unsure(Doubt::LooksWorse),
        // The same value in every run: there is no scatter in which a change could hide. One pair
        // is not enough to say so.
        (false, _) if steady && n.test != Test::None && n.a.len() > 1 => Finding::Same,
        (false, _) if n.test == Test::None && hard == Default::default() => {
            Finding::Unsure(Doubt::TooFewRuns)
        }
        (false, _) if n.test == Test::None => Finding::Same,
        (false, _) if !can_prove(n, judgement) => Finding::Unsure(Doubt::TooFewRuns),
        (false, _) if n.sees.is_none_or(|s| s > limit.must_see) => small(limit, n),
        (false, _) if is_better(limit, n, judgement) => Finding::Better,
        (false, _) => Finding::Same,
    }
}

/// A change of `must_see` could hide in the scatter, unless it would be too small to matter.
fn small(limit: &Limit, n: &Number) -> Finding {
    let most = n.a.iter().chain(&n.b).copied().fold(0.0, f64::max);
    match limit.absolute > 0.0 && most * (1.0 + limit.must_see) < limit.absolute {
        true => Finding::Same,
        false => Finding::Unsure(Doubt::CouldHide),
    }
}

/// Whether this many runs can reach the level at all.
fn can_prove(n: &Number, judgement: &Judgement) -> bool {
    let least = match n.test {
        Test::Pairs => pairs::least_p(n.a.len()),
        Test::Samples => ranks::least_p(n.a.len(), n.b.len()),
        Test::OneRun => 0.0,
        Test::None => 1.0,
    };
    least <= judgement.alpha
}

fn is_better(limit: &Limit, n: &Number, judgement: &Judgement) -> bool {
    // Whether it got better is the same test with the sides exchanged.
    let (from, to) = limit.worse.order(&n.a, &n.b);
    let p = n.test.greater(to, from);
    let (relative, _) = worsening(limit, n);
    -relative >= limit.relative && p.is_some_and(|p| p <= judgement.alpha)
}

impl Judged {
    /// Runs per side that can reach the level at all, and detect a change of `must_see`.
    pub fn runs_to_decide(&self, judgement: &Judgement) -> Option<usize> {
        let Compared::Number(n) = &self.compared else { return None };
        let least = match n.test {
            Test::Pairs => pairs::runs_for(judgement.alpha)?,
            _ => ranks::runs_for(judgement.alpha)?,
        };
        match n.test {
            Test::Pairs | Test::Samples => n.runs_needed.map(|needed| needed.max(least)),
            Test::OneRun | Test::None => Some(least),
        }
    }
}
