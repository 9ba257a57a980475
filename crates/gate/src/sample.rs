//! A metric over runs: one number each.

use crate::metric::{Figure, Kind, Metric, Per, Table};
use crate::run::Run;
use crate::work::Work;
use std::fmt;

/// Why a run has no value of a metric.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Missing {
    /// The events were not recorded.
    NotRecorded(Table),
    /// Other system calls were recorded than in the first run.
    OtherCalls,
    /// The recording shows no unit of the work.
    NoWork(String),
    /// The recording has no length.
    NoTime,
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Missing::NotRecorded(table) => {
                write!(f, "the events for '{}' were not recorded", table.name())
            }
            Missing::OtherCalls => {
                f.write_str("this run and the first run recorded different system calls")
            }
            Missing::NoWork(work) if work.is_empty() => {
                f.write_str("the unit of work was not named (--work)")
            }
            Missing::NoWork(work) => write!(f, "the recording contains no unit of work ({work})"),
            Missing::NoTime => f.write_str("its duration is 0"),
        }
    }
}

/// A figure of a run, divided.
///
/// # Errors
/// [`Missing`] if the run cannot give it.
pub fn value(run: &Run, figure: &Figure, per: Per, work: &Work) -> Result<f64, Missing> {
    if run.lacks.contains(&figure.table) {
        return Err(Missing::NotRecorded(figure.table));
    }
    let number = match run.figures.get(figure) {
        Some(Some(n)) => n as f64,
        Some(None) => return Err(Missing::NotRecorded(figure.table)),
        None if !run.setting.shows(figure) => return Err(Missing::NotRecorded(figure.table)),
        // The table was recorded, and nothing of this kind happened.
        None => 0.0,
    };
    match per {
        Per::Recording if figure.measure.kind == Kind::Part => Ok(number * 1e-7),
        Per::Recording => Ok(number),
        Per::Second if run.wall_ns > 0 => Ok(number * 1e9 / run.wall_ns as f64),
        Per::Capacity if run.capacity_ns() > 0 => Ok(number * 100.0 / run.capacity_ns() as f64),
        Per::Second | Per::Capacity => Err(Missing::NoTime),
        Per::Work => match work.units(run) {
            Some(units) => Ok(number / units),
            None if *work == Work::Unknown => Err(Missing::NoWork(String::new())),
            None => Err(Missing::NoWork(work.to_string())),
        },
    }
}

/// The figure for every run.
///
/// # Errors
/// The first run that has no value, and why.
pub fn values<'a>(
    runs: impl IntoIterator<Item = &'a Run>,
    figure: &Figure,
    per: Per,
    work: &Work,
) -> Result<Vec<f64>, (String, Missing)> {
    let of = |run: &'a Run| value(run, figure, per, work).map_err(|m| (run.name.clone(), m));
    runs.into_iter().map(of).collect()
}

/// Whether any of the runs has a row of this name: a metric that no run has is a mistake in the
/// policy, not a zero.
pub fn known<'a>(runs: impl IntoIterator<Item = &'a Run>, figure: &Figure) -> bool {
    !figure.table.keyed() || runs.into_iter().any(|r| r.figures.get(figure).is_some())
}

/// A metric's value for people: times scaled, three significant digits.
pub fn words(metric: &Metric, value: f64) -> String {
    let Metric::Number { figure, per } = metric else { return String::new() };
    if *per == Per::Capacity || figure.measure.kind == Kind::Part {
        return format!("{} %", digits(value));
    }
    let tail = match per {
        Per::Second => "/s",
        Per::Work => "/unit",
        Per::Recording | Per::Capacity => "",
    };
    if figure.measure.kind == Kind::Count {
        return digits(value) + tail;
    }
    let scales = [(1e9, "s"), (1e6, "ms"), (1e3, "us")];
    match scales.iter().find(|s| value.abs() >= s.0) {
        Some((scale, unit)) => format!("{} {unit}{tail}", digits(value / scale)),
        None => format!("{} ns{tail}", digits(value)),
    }
}

/// Three significant digits, or the whole number.
fn digits(value: f64) -> String {
    match value.abs() {
        0.0 => "0".to_owned(),
        x if x >= 99.95 => format!("{value:.0}"),
        x if x >= 9.995 => format!("{value:.1}"),
        x if x >= 0.9995 => format!("{value:.2}"),
        _ => format!("{value:.3}"),
    }
}
