//! What a gate fails on: a TOML file, or the defaults.
//!
//! ```toml
//! work = "syscall:write"            # what a unit of work is
//!
//! [primary]                         # this metric decides
//! metric = "syscalls.futex.total_per_work"
//! relative = 3                      # a change counts from 3 % on ...
//! absolute = "20 us"                # ... if it is also worth 20 us
//! must_see = 25                     # inconclusive if a change of 25 % could pass unseen
//! hard = { relative = 100, max = "10 ms" }  # fails at once, however few the runs
//!
//! [[inform]]                        # also shown; decides nothing
//! metric = "runq.delay_p99"
//!
//! [[waiver]]
//! metric = "syscalls.futex.total_per_work"
//! until = "2027-01-31"
//! reason = "the new index takes the lock twice; fixed with the next release"
//!
//! [judgement]                       # the defaults
//! alpha = 0.004
//! power = 0.8
//! others_pct = 10
//! lost_pct = 0.1
//! ```

use crate::metric::{Figure, Kind, Metric, Per, Table};
use crate::redact;
use crate::work::Work;
use chrono::NaiveDate;
use serde::Deserialize;
use thiserror::Error;

/// Which direction is worse.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Worse {
    /// More is worse.
    #[default]
    Higher,
    /// Less is worse.
    Lower,
}

impl Worse {
    /// Both sides in the order in which the second is larger if it got worse: every test asks
    /// whether it is.
    pub(crate) fn order<T>(self, a: T, b: T) -> (T, T) {
        match self {
            Worse::Higher => (a, b),
            Worse::Lower => (b, a),
        }
    }

    /// A change for the worse as growth of the larger side over the smaller: if less is worse, a
    /// fall to a half is a growth of 1.
    pub(crate) fn as_growth(self, change: f64) -> f64 {
        match self {
            Worse::Higher => change,
            Worse::Lower => change / (1.0 - change).max(1e-3),
        }
    }

    /// The inverse of [`Worse::as_growth`].
    pub(crate) fn of_growth(self, growth: f64) -> f64 {
        match self {
            Worse::Higher => growth,
            Worse::Lower => growth / (1.0 + growth),
        }
    }
}

/// What is too much whatever the scatter is.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Hard {
    /// A change for the worse of this ratio: 1 is 100 %.
    pub relative: Option<f64>,
    /// A value beyond this, in the metric's unit.
    pub max: Option<f64>,
}

/// A metric and its limits.
#[derive(Clone, Debug, PartialEq)]
pub struct Limit {
    /// What is compared.
    pub metric: Metric,
    /// Which direction is worse.
    pub worse: Worse,
    /// A change counts from this ratio on (0.03 is 3 %) ...
    pub relative: f64,
    /// ... if it is also at least this much, in the metric's unit.
    pub absolute: f64,
    /// A change of this ratio must not remain undetected.
    pub must_see: f64,
    /// What fails at once.
    pub hard: Hard,
}

/// A known regression that is accepted for a time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Waiver {
    /// The metric, as [`Metric`] writes it.
    pub metric: String,
    /// The last day, as written.
    pub until: String,
    /// The last day in days since 1970.
    pub until_day: i64,
    /// The reason.
    pub reason: String,
}

/// When a comparison decides.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Judgement {
    /// The largest p-value of a regression, one-sided.
    pub alpha: f64,
    /// The probability with which a change of `must_see` must be detected.
    pub power: f64,
    /// The percentage of capacity that other programs may take.
    pub others_pct: f64,
    /// The percentage of events that may be lost.
    pub lost_pct: f64,
}

impl Default for Judgement {
    fn default() -> Judgement {
        // The least p-value with 5 runs on each side is 1/252, and with 8 pairs 1/256: at 0.004
        // both decide, and without a change a comparison raises an alarm at most once in 250.
        Judgement { alpha: 0.004, power: 0.8, others_pct: 10.0, lost_pct: 0.1 }
    }
}

/// Which metrics decide and inform, and which regressions are accepted.
#[derive(Clone, Debug, PartialEq)]
pub struct Policy {
    /// The unit of work, if the policy says.
    pub work: Option<Work>,
    /// The metric that decides.
    pub primary: Limit,
    /// Metrics that are also shown.
    pub inform: Vec<Limit>,
    /// Accepted regressions.
    pub waivers: Vec<Waiver>,
    /// When a comparison decides.
    pub judgement: Judgement,
}

/// What is wrong with a policy.
#[derive(Debug, Error, PartialEq, Eq)]
#[error("{0}")]
pub struct PolicyError(pub String);

/// A number, or a number with its unit.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
enum Amount {
    Number(f64),
    Words(String),
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct HardFile {
    relative: Option<f64>,
    max: Option<Amount>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct LimitFile {
    metric: String,
    worse: Option<Worse>,
    relative: Option<f64>,
    absolute: Option<Amount>,
    must_see: Option<f64>,
    #[serde(default)]
    hard: HardFile,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct WaiverFile {
    metric: String,
    until: String,
    reason: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct PolicyFile {
    work: Option<String>,
    primary: LimitFile,
    #[serde(default)]
    inform: Vec<LimitFile>,
    #[serde(default)]
    waiver: Vec<WaiverFile>,
    #[serde(default)]
    judgement: Judgement,
}

impl Limit {
    /// A metric with the default limits: 3 %, and no change of 25 % remains undetected.
    pub fn of(metric: Metric) -> Limit {
        let part = |m: &Figure| m.measure.kind == Kind::Part;
        let worse = match &metric {
            Metric::Number { figure, .. } if part(figure) => Worse::Lower,
            _ => Worse::Higher,
        };
        Limit {
            metric,
            worse,
            relative: 0.03,
            absolute: 0.0,
            must_see: 0.25,
            hard: Hard::default(),
        }
    }
}

impl Policy {
    /// This metric decides, by the default limits. It is shown with the metrics that most often
    /// explain it.
    pub fn of(primary: Metric) -> Policy {
        let inform = [
            "contention.wait_pct",
            "lock.wait_pct",
            "switches.involuntary_per_s",
            "runq.delay_p99",
            "ledger.busy.pct",
            "ledger.idle.thread-sync.pct",
            "ledger.idle.kernel-services.pct",
            "ledger.idle.kernel-locks.pct",
            "verdict.class",
        ];
        let inform = inform.iter().filter_map(|name| Metric::parse(name).ok());
        Policy {
            work: None,
            inform: inform.filter(|m| *m != primary).map(Limit::of).collect(),
            primary: Limit::of(primary),
            waivers: Vec::new(),
            judgement: Judgement::default(),
        }
    }

    /// The default metric: the time for which threads of the work wait for each other.
    pub fn default_metric(work: &Work) -> Metric {
        Metric::Number { figure: Figure::first(Table::Contention, ""), per: work.per() }
    }

    /// Read the text of a policy file.
    ///
    /// # Errors
    /// [`PolicyError`]: what is wrong and what would be right.
    pub fn parse(text: &str) -> Result<Policy, PolicyError> {
        let file: PolicyFile = toml::from_str(text).map_err(|e| {
            let before = e.span().and_then(|span| text.get(..span.start)).unwrap_or_default();
            let line = before.matches('\n').count() + 1;
            PolicyError(format!("line {line}: {}", e.message()))
        })?;
        let work = file.work.as_deref().map(Work::parse).transpose();
        let limits = file.inform.into_iter().map(limit).collect::<Result<_, _>>()?;
        let waivers = file.waiver.into_iter().map(waiver).collect::<Result<_, _>>()?;
        let j = file.judgement;
        let part = |name: &str, value: f64, most: f64| match value > 0.0 && value < most {
            true => Ok(()),
            false => Err(PolicyError(format!("{name} = {value}: it must be between 0 and {most}"))),
        };
        part("judgement.alpha", j.alpha, 0.5)?;
        part("judgement.power", j.power, 1.0)?;
        part("judgement.others_pct", j.others_pct, 100.0)?;
        part("judgement.lost_pct", j.lost_pct, 100.0)?;
        Ok(Policy {
            work: work.map_err(|e| PolicyError(format!("work: {e}")))?,
            primary: limit(file.primary)?,
            inform: limits,
            waivers,
            judgement: j,
        })
    }

    /// Hash the names in its metrics, for runs whose names are hashed.
    pub fn redact(&mut self) {
        for waiver in &mut self.waivers {
            if let Ok(mut metric) = Metric::parse(&waiver.metric) {
                redact::metric(&mut metric);
                waiver.metric = metric.to_string();
            }
        }
        for limit in std::iter::once(&mut self.primary).chain(&mut self.inform) {
            redact::metric(&mut limit.metric);
        }
    }

    /// Every metric of the policy.
    pub fn limits(&self) -> impl Iterator<Item = &Limit> {
        std::iter::once(&self.primary).chain(&self.inform)
    }
}

fn limit(file: LimitFile) -> Result<Limit, PolicyError> {
    let metric = Metric::parse(&file.metric).map_err(|e| PolicyError(e.to_string()))?;
    let default = Limit::of(metric.clone());
    let amount = |a: &Amount| amount(&metric, a);
    let percent = |name: &str, value: Option<f64>, or: f64| match value {
        None => Ok(or),
        Some(p) if p.is_finite() && p >= 0.0 => Ok(p / 100.0),
        Some(p) => Err(PolicyError(format!("{name} = {p}: the percentage must be 0 or more"))),
    };
    let relative = percent("relative", file.relative, default.relative)?;
    let hard = Hard {
        relative: file.hard.relative.map(|p| percent("hard.relative", Some(p), 0.0)).transpose()?,
        max: file.hard.max.as_ref().map(amount).transpose()?,
    };
    Ok(Limit {
        worse: file.worse.unwrap_or(default.worse),
        relative,
        absolute: file.absolute.as_ref().map(amount).transpose()?.unwrap_or(0.0),
        // A limit wider than the default cannot require to detect less than it allows.
        must_see: percent("must_see", file.must_see, default.must_see.max(2.0 * relative))?,
        hard,
        metric,
    })
}

/// An amount in the unit of the metric.
fn amount(metric: &Metric, amount: &Amount) -> Result<f64, PolicyError> {
    let words = match amount {
        Amount::Number(n) if n.is_finite() && *n >= 0.0 => return Ok(*n),
        Amount::Number(n) => return Err(PolicyError(format!("{n}: the number must be 0 or more"))),
        Amount::Words(words) => words.trim(),
    };
    let end = words.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(words.len());
    let (number, unit) = words.split_at(end);
    let time = match metric {
        Metric::Number { figure, per } => {
            matches!(figure.measure.kind, Kind::Time | Kind::Span) && *per != Per::Capacity
        }
        Metric::Class => false,
    };
    let scale = match unit.trim() {
        "" => Some(1.0),
        "%" if metric.unit() == "%" => Some(1.0),
        "ns" if time => Some(1.0),
        "us" if time => Some(1e3),
        "ms" if time => Some(1e6),
        "s" if time => Some(1e9),
        _ => None,
    };
    match (number.parse::<f64>(), scale) {
        (Ok(n), Some(scale)) => Ok(n * scale),
        _ => Err(PolicyError(format!(
            "'{}' is not an amount of {metric}; write a number{}",
            words.escape_default(),
            if time { ", or one with ns, us, ms or s" } else { "" }
        ))),
    }
}

fn waiver(file: WaiverFile) -> Result<Waiver, PolicyError> {
    let metric = Metric::parse(&file.metric).map_err(|e| PolicyError(e.to_string()))?.to_string();
    let Some(until_day) = day(&file.until) else {
        return Err(PolicyError(format!(
            "waiver: until = '{}' is not a date; write YYYY-MM-DD",
            file.until.escape_default()
        )));
    };
    if file.reason.trim().is_empty() {
        return Err(PolicyError(format!("the waiver of {metric} has no reason")));
    }
    Ok(Waiver { metric, until: file.until, until_day, reason: file.reason })
}

/// Days since 1970-01-01 of a date of the Gregorian calendar, `YYYY-MM-DD`.
pub fn day(date: &str) -> Option<i64> {
    let date: NaiveDate = date.parse().ok().filter(|day: &NaiveDate| day.to_string() == date)?;
    Some((date - NaiveDate::default()).num_days())
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r#"
work = "syscall:write"
[primary]
metric = "syscalls.futex.total_per_work"
relative = 5
absolute = "20 us"
hard = { relative = 100, max = "10 ms" }
[[inform]]
metric = "runq.delay_p99"
[[waiver]]
metric = "runq.delay_p99"
until = "2027-01-31"
reason = "known"
"#;

    #[test]
    fn a_policy_is_read() {
        let p = Policy::parse(TEXT).unwrap();
        assert_eq!(p.work, Some(Work::Syscall("write".into())));
        assert_eq!((p.primary.relative, p.primary.absolute), (0.05, 20e3));
        assert_eq!(p.primary.hard, Hard { relative: Some(1.0), max: Some(10e6) });
        assert_eq!(p.inform[0].metric.to_string(), "runq.delay_p99");
        assert_eq!(p.waivers[0].until_day, day("2027-01-31").unwrap());
    }

    #[test]
    fn what_is_wrong_is_said() {
        for (from, to, words) in [
            ("syscalls.futex.total_per_work", "syscalls.futex.totl", "the columns are total, cpu"),
            ("relative = 5", "relatve = 5", "unknown field `relatve`"),
            ("20 us", "20 parsecs", "is not an amount of syscalls.futex.total_per_work"),
            ("2027-01-31", "2027-02-29", "write YYYY-MM-DD"),
            ("\"known\"", "\" \"", "has no reason"),
            ("syscall:write", "write", "write syscall:NAME"),
            ("relative = 5", "relative = -5", "0 or more"),
        ] {
            let error = Policy::parse(&TEXT.replacen(from, to, 1)).unwrap_err().to_string();
            assert!(error.contains(words), "{error}");
        }
    }

    #[test]
    fn days_are_those_of_the_calendar() {
        assert_eq!(day("1970-01-01"), Some(0));
        assert_eq!(day("2000-03-01"), Some(11_017));
        assert_eq!(day("2026-11-22"), Some(20_779));
        assert_eq!(day("2024-02-29"), Some(19_782));
        for wrong in ["2023-02-29", "2026-13-01", "2026-00-10", "26-01-01", "2026-1-1", "x"] {
            assert_eq!(day(wrong), None, "{wrong}");
        }
    }
}
