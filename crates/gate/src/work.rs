//! Units of work: how much a recording did, so that runs of different lengths compare.

use crate::metric::{Per, Table};
use crate::run::Run;
use std::fmt;

/// How the units of work of a recording are counted.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Work {
    /// They are not counted: no metric is available per unit.
    #[default]
    Unknown,
    /// Every recording did this many.
    Units(f64),
    /// Each call of this system call by a program of the work is one.
    Syscall(String),
    /// Each of these events is one, such as a write to trace_marker (`ftrace:print`) or a probe.
    Event(String),
}

impl Work {
    /// `syscall:NAME`, `event:SYSTEM:NAME`, or a number.
    ///
    /// # Errors
    /// What is wrong, in words.
    pub fn parse(text: &str) -> Result<Work, String> {
        let wrong = "write syscall:NAME, event:SYSTEM:NAME, or the number of units each run does";
        let named = |name: &str| match name.is_empty() {
            true => Err(format!("'{text}' does not name a unit of work; {wrong}")),
            false => Ok(name.to_owned()),
        };
        if let Some(name) = text.strip_prefix("syscall:") {
            return Ok(Work::Syscall(named(name)?));
        }
        if let Some(name) = text.strip_prefix("event:") {
            return Ok(Work::Event(named(name)?));
        }
        match text.parse::<f64>() {
            Ok(units) if units.is_finite() && units > 0.0 => Ok(Work::Units(units)),
            _ => Err(format!("'{}' is not a unit of work; {wrong}", text.escape_default())),
        }
    }

    /// The default divisor of sums: units of work if they are counted.
    pub fn per(&self) -> Per {
        if *self == Work::Unknown { Per::Second } else { Per::Work }
    }

    /// How many units a recording did; `None` if it does not show any.
    pub fn units(&self, run: &Run) -> Option<f64> {
        let count = |table: Table, key: &str| {
            let n = run.figures.number(table, key, "count");
            n.filter(|n| *n > 0).map(|n| n as f64)
        };
        match self {
            Work::Unknown => None,
            Work::Units(n) => Some(*n),
            Work::Syscall(name) => count(Table::Syscalls, name),
            Work::Event(name) => count(Table::Events, name),
        }
    }
}

impl fmt::Display for Work {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Work::Unknown => f.write_str("not counted"),
            Work::Units(n) => write!(f, "{n}"),
            Work::Syscall(name) => write!(f, "syscall:{name}"),
            Work::Event(name) => write!(f, "event:{name}"),
        }
    }
}
