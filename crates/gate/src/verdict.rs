//! The verdict of a comparison: pass, regressed, or inconclusive.

use crate::judge::{Compared, Doubt, Finding, Judged, Number, Sides, judge};
use crate::metric::{Metric, Table};
use crate::policy::{Hard, Judgement, Limit, Policy, PolicyError, Waiver, Worse};
use crate::rounds;
use crate::run::Run;
use crate::sample;
use crate::setting::{Aspect, first_difference};
use crate::stats::discovery;
use crate::stats::spread::median;
use crate::why::{self, Reason};
use crate::work::Work;

/// A gate's answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The metric that decides did not get worse.
    Pass,
    /// The metric that decides got worse.
    Regressed,
    /// Unknown.
    Inconclusive,
}

impl Outcome {
    /// `pass`, `regressed`, `inconclusive`.
    pub fn word(self) -> &'static str {
        match self {
            Outcome::Pass => "pass",
            Outcome::Regressed => "regressed",
            Outcome::Inconclusive => "inconclusive",
        }
    }
}

/// A reason why a comparison cannot be trusted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Stable id: `settings`, `background-load`, `lost-events`.
    pub code: &'static str,
    /// The problem.
    pub words: String,
    /// What to do about it.
    pub remedy: String,
}

/// A comparison, judged.
#[derive(Clone, Debug, PartialEq)]
pub struct Verdict {
    /// The gate's answer.
    pub outcome: Outcome,
    /// The metric that decides.
    pub primary: Judged,
    /// Metrics that inform.
    pub inform: Vec<Judged>,
    /// Why the comparison cannot be trusted.
    pub problems: Vec<Problem>,
    /// The work scales worse but takes no longer: it only got faster on the fewest CPUs. The change
    /// of the time on the CPUs whose efficiency decides, as a ratio.
    pub no_slower: Option<f64>,
    /// The waiver that lets the regression pass.
    pub waived: Option<Waiver>,
    /// Waivers that have expired.
    pub expired: Vec<Waiver>,
    /// Runs left out because other programs took too much of the machine meanwhile, and their
    /// partners in pairs.
    pub set_aside: Vec<String>,
    /// What changed most for the worse, if anything did.
    pub why: Vec<Reason>,
    /// The unit of work.
    pub work: Work,
    /// The limits of the decision.
    pub judgement: Judgement,
    /// Number of runs before and after.
    pub runs: (usize, usize),
    /// The runs were interleaved.
    pub paired: bool,
}

/// Compare.
///
/// `today` is in days since 1970, for waivers.
///
/// # Errors
/// [`PolicyError`] for a metric that none of the runs has.
pub fn decide(
    sides: Sides<'_>,
    policy: &Policy,
    work: &Work,
    allowed: &[Aspect],
    today: i64,
) -> Result<Verdict, PolicyError> {
    for limit in policy.limits() {
        if let Metric::Number { figure, .. } = &limit.metric
            && !sample::known(sides.runs(), figure)
            && !sides.runs().any(|r| r.lacks.contains(&figure.table))
            && (limit.metric == policy.primary.metric || figure.table != Table::Ledger)
        {
            return Err(PolicyError(unknown(&limit.metric, sides)));
        }
    }
    let judgement = &policy.judgement;
    let problems = problems(sides, judgement, allowed);
    let disturbed = undisturbed(sides, judgement);
    let (sides, set_aside) = match &disturbed {
        Some((a, b, aside)) => (Sides { a, b, ..sides }, aside.clone()),
        None => (sides, Vec::new()),
    };
    let mut primary = judge(&policy.primary, sides, work, judgement);
    let mut inform: Vec<Judged> =
        policy.inform.iter().map(|l| judge(l, sides, work, judgement)).collect();
    discover(&mut primary, &mut inform);
    let mut outcome = match primary.finding {
        Finding::Same | Finding::Better => Outcome::Pass,
        Finding::Worse | Finding::BeyondHard => Outcome::Regressed,
        Finding::Unsure(_) => Outcome::Inconclusive,
    };
    if !problems.is_empty() {
        outcome = Outcome::Inconclusive;
    }
    let no_slower =
        no_slower(&primary, sides, work, judgement).filter(|_| outcome == Outcome::Regressed);
    if no_slower.is_some() {
        outcome = Outcome::Pass;
    }
    let name = primary.limit.metric.to_string();
    let (valid, expired): (Vec<&Waiver>, Vec<&Waiver>) =
        policy.waivers.iter().filter(|w| w.metric == name).partition(|w| w.until_day >= today);
    let waived = valid.first().filter(|_| outcome == Outcome::Regressed).copied().cloned();
    let why = match primary.finding {
        Finding::Worse | Finding::BeyondHard | Finding::Unsure(Doubt::LooksWorse) => {
            why::reasons(sides, &primary.limit.metric, work)
        }
        _ => Vec::new(),
    };
    Ok(Verdict {
        outcome: if waived.is_some() { Outcome::Pass } else { outcome },
        primary,
        inform,
        problems,
        no_slower,
        waived,
        expired: expired.into_iter().cloned().collect(),
        set_aside,
        why,
        work: work.clone(),
        judgement: *judgement,
        runs: (sides.a.len(), sides.b.len()),
        paired: sides.paired,
    })
}

/// The change of the time on the CPUs whose efficiency fell, if the work got faster on the fewest
/// and did not get slower there, by the tests and limits of the efficiency: making the work faster
/// on one CPU delays nothing. A hard limit overrides this.
fn no_slower(
    primary: &Judged,
    sides: Sides<'_>,
    work: &Work,
    judgement: &Judgement,
) -> Option<f64> {
    let (fewest, here) = rounds::times_of(&primary.limit.metric, sides.a.first()?)?;
    let time = |metric| {
        let limit =
            Limit { worse: Worse::Higher, metric, hard: Hard::default(), ..primary.limit.clone() };
        judge(&limit, sides, work, judgement)
    };
    let (fewest, here) = (time(fewest), time(here));
    let harmless = primary.finding == Finding::Worse
        && fewest.finding == Finding::Better
        && here.finding != Finding::Worse;
    let Compared::Number(here) = here.compared else { return None };
    here.change.filter(|_| harmless)
}

/// The runs of both sides that other programs did not disturb, and the names of the rest: whether a
/// run counts must not depend on what it measured. `None` if all stay. All stay too if most runs of
/// a side are disturbed: that is a problem of the whole comparison, which is shown with its
/// figures.
fn undisturbed(
    sides: Sides<'_>,
    judgement: &Judgement,
) -> Option<(Vec<Run>, Vec<Run>, Vec<String>)> {
    let quiet = |run: &Run| run.others_pct() <= judgement.others_pct;
    let most = |runs: &[Run]| 2 * runs.iter().filter(|r| quiet(r)).count() > runs.len();
    if !most(sides.a) || !most(sides.b) || sides.runs().all(quiet) {
        return None;
    }
    let partner = |i: usize| sides.paired && !(quiet(&sides.a[i]) && quiet(&sides.b[i]));
    let mut aside = Vec::new();
    let mut keep = |runs: &[Run]| -> Vec<Run> {
        let mut kept = Vec::new();
        for (i, run) in runs.iter().enumerate() {
            match quiet(run) && !partner(i) {
                true => kept.push(run.clone()),
                false => aside.push(run.name.clone()),
            }
        }
        kept
    };
    let (a, b) = (keep(sides.a), keep(sides.b));
    Some((a, b, aside))
}

/// q-values over all metrics that have a p-value.
fn discover(primary: &mut Judged, inform: &mut [Judged]) {
    let mut numbers: Vec<&mut Number> = std::iter::once(primary)
        .chain(inform)
        .filter_map(|j| match &mut j.compared {
            Compared::Number(n) if n.p.is_some() => Some(&mut **n),
            _ => None,
        })
        .collect();
    let p: Vec<f64> = numbers.iter().filter_map(|n| n.p).collect();
    for (number, q) in numbers.iter_mut().zip(discovery::q_values(&p)) {
        number.q = Some(q);
    }
}

fn problems(sides: Sides<'_>, judgement: &Judgement, allowed: &[Aspect]) -> Vec<Problem> {
    let mut found = Vec::new();
    if let Some(mismatch) = first_difference(sides.runs(), allowed) {
        found.push(Problem {
            code: "settings",
            words: mismatch.words,
            remedy: format!(
                "record before and after in the same way, or compare the recordings nevertheless \
                 with --allow {}",
                mismatch.allow
            ),
        });
    }
    for (side, runs) in [("before", sides.a), ("after", sides.b)] {
        let parts: Vec<f64> = runs.iter().map(Run::others_pct).collect();
        let part = median(&parts).unwrap_or(0.0);
        if part > judgement.others_pct {
            let busiest = runs.iter().max_by(|a, b| a.others_pct().total_cmp(&b.others_pct()));
            let names: Vec<&str> = busiest
                .map(|r| r.others.programs.iter().map(|p| p.0.as_str()).collect())
                .unwrap_or_default();
            found.push(Problem {
                code: "background-load",
                words: format!(
                    "programs that are not part of the work took {part:.1} % of capacity {side} \
                     ({}); the limit is {} %",
                    names.join(", "),
                    judgement.others_pct
                ),
                remedy: "run only the work on the machine, or pin the work and the other programs \
                    to separate CPUs"
                    .to_owned(),
            });
        }
    }
    let losses = sides.runs().filter(|r| {
        r.lost_chunks > 0
            || r.lost_events as f64 * 100.0
                > judgement.lost_pct * (r.events.saturating_add(r.lost_events)) as f64
    });
    let losses: Vec<&Run> = losses.collect();
    if let Some(worst) = losses.iter().max_by_key(|r| r.lost_events) {
        found.push(Problem {
            code: "lost-events",
            words: format!(
                "{} of {} runs lost events; the run that lost most is {}: {}",
                losses.len(),
                sides.runs().count(),
                worst.name,
                worst.lost_events
            ),
            remedy: "record with larger buffers (holdup record -m 16M), or record fewer kinds of \
                     events"
                .to_owned(),
        });
    }
    found
}

/// The message for a metric that no run has: the most similar keys.
fn unknown(metric: &Metric, sides: Sides<'_>) -> String {
    let Metric::Number { figure, .. } = metric else { return String::new() };
    let mut keys: Vec<&str> = sides
        .runs()
        .flat_map(|r| r.figures.iter())
        .filter(|(f, _)| f.table == figure.table)
        .map(|(f, _)| f.key.as_str())
        .collect();
    keys.sort_by_key(|key| (strsim::levenshtein(key, &figure.key), *key));
    keys.dedup();
    let near: Vec<String> = keys.iter().take(5).map(|k| format!("\"{k}\"")).collect();
    if figure.table == Table::Scaling && keys.is_empty() {
        return format!("{metric} needs recordings on several numbers of CPUs: use gate --scaling");
    }
    format!(
        "unknown metric '{metric}': no run has a row \"{}\" in {}; the nearest rows are {}",
        figure.key,
        figure.table.name(),
        if near.is_empty() { "none".to_owned() } else { near.join(", ") }
    )
}
