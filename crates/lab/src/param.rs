//! Parameters of workloads: numbers, times and sizes, with units.

use serde::Serialize;
use std::collections::BTreeMap;
use thiserror::Error;

/// What the number of a parameter counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Nanoseconds; written with a unit: `50us`.
    Time,
    /// A number of things; also `cpus`, `2cpus`, or the name of another parameter.
    Count,
    /// A share of 100.
    Percent,
    /// Bytes; written with a unit: `4k`, `64M`.
    Size,
}

/// A parameter of a workload.
#[derive(Clone, Copy, Debug)]
pub struct Param {
    /// Its name on the command line and in the JSON.
    pub key: &'static str,
    /// What it counts.
    pub unit: Unit,
    /// Its default value.
    pub default: &'static str,
    /// Its description.
    pub means: &'static str,
}

/// Why a parameter is rejected.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum ParamError {
    /// The workload has no such parameter.
    #[error("{workload} has no parameter {key}; it has {known}")]
    Unknown {
        /// The workload.
        workload: &'static str,
        /// The unknown key.
        key: String,
        /// The known keys.
        known: String,
    },
    /// The text is not a value of its unit.
    #[error("{key}: '{text}' is not a {what}")]
    Value {
        /// The parameter.
        key: &'static str,
        /// The text given.
        text: String,
        /// The expected form.
        what: &'static str,
    },
    /// Not of the form KEY=VALUE.
    #[error("'{0}' is not a setting; write KEY=VALUE, such as hold=50us")]
    Form(String),
}

/// The values of all parameters of one run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Settings(BTreeMap<&'static str, u64>);

impl Settings {
    /// The defaults of `params` with `changes` on top, later changes override earlier ones.
    pub fn new<'a>(
        workload: &'static str,
        params: &[&'static Param],
        changes: impl IntoIterator<Item = (&'a str, &'a str)>,
        cpus: u64,
    ) -> Result<Settings, ParamError> {
        let mut texts: Vec<(&'static Param, String)> =
            params.iter().map(|p| (*p, p.default.to_owned())).collect();
        for (key, value) in changes {
            let Some(at) = texts.iter_mut().find(|(p, _)| p.key == key) else {
                let known: Vec<_> = params.iter().map(|p| p.key).collect();
                let known = known.join(", ");
                return Err(ParamError::Unknown { workload, key: key.to_owned(), known });
            };
            at.1 = value.to_owned();
        }
        let mut settings = Settings::default();
        // A value that names another parameter is resolved after that parameter has a value.
        for names_another in [false, true] {
            for (param, text) in &texts {
                let other = texts.iter().any(|(p, _)| p.key == text);
                if other == names_another {
                    let value = match other {
                        true => settings.0.get(text.as_str()).copied(),
                        false => value(text, param.unit, cpus),
                    };
                    let wrong = || ParamError::Value {
                        key: param.key,
                        text: text.clone(),
                        what: param.unit.words(),
                    };
                    settings.0.insert(param.key, value.ok_or_else(wrong)?);
                }
            }
        }
        Ok(settings)
    }

    /// The value of a parameter; 0 if the workload does not have it.
    pub fn get(&self, key: &str) -> u64 {
        self.0.get(key).copied().unwrap_or_default()
    }

    /// A number of things, at least 1.
    pub fn count(&self, key: &str) -> usize {
        usize::try_from(self.get(key)).unwrap_or(usize::MAX).clamp(1, MOST)
    }

    /// The settings for another process: `KEY=VALUE` in plain numbers of the smallest unit.
    pub(crate) fn words(&self) -> impl Iterator<Item = String> + '_ {
        self.0.iter().map(|(key, value)| format!("{key}={value}"))
    }
}

/// More threads, files or locks than this are a mistake.
const MOST: usize = 1024;

/// `hold=50us` as key and value.
pub fn halves(text: &str) -> Result<(&str, &str), ParamError> {
    text.split_once('=').ok_or_else(|| ParamError::Form(text.to_owned()))
}

impl Unit {
    fn words(self) -> &'static str {
        match self {
            Unit::Time => "time; write 50us, 2ms or 1s",
            Unit::Count => "number; write 4, cpus or 2cpus",
            Unit::Percent => "share; write 0 to 100",
            Unit::Size => "size; write 4k or 64M",
        }
    }

    fn scales(self) -> &'static [(&'static str, u64)] {
        match self {
            Unit::Time => &[("ns", 1), ("us", 1_000), ("ms", 1_000_000), ("s", 1_000_000_000)],
            Unit::Count => &[],
            Unit::Percent => &[("%", 1)],
            Unit::Size => &[("k", 1 << 10), ("M", 1 << 20), ("G", 1 << 30)],
        }
    }
}

/// Parse `text` as a number. Plain numbers count the smallest unit.
fn value(text: &str, unit: Unit, cpus: u64) -> Option<u64> {
    if let Ok(plain) = text.parse() {
        return Some(plain);
    }
    if unit == Unit::Count {
        let times = text.strip_suffix("cpus")?;
        let times = if times.is_empty() { 1 } else { times.parse().ok()? };
        return cpus.checked_mul(times);
    }
    unit.scales().iter().find_map(|&(suffix, scale)| {
        let number: f64 = text.strip_suffix(suffix)?.parse().ok()?;
        let value = number * scale as f64;
        (number.is_finite() && (0.0..1e15).contains(&value)).then_some(value.round() as u64)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOLD: Param = Param { key: "hold", unit: Unit::Time, default: "50us", means: "" };
    const LOCKS: Param = Param { key: "locks", unit: Unit::Count, default: "1", means: "" };
    const N: Param = Param { key: "workers", unit: Unit::Count, default: "cpus", means: "" };

    fn set(changes: &[(&str, &str)]) -> Result<Settings, ParamError> {
        Settings::new("mutex", &[&HOLD, &LOCKS, &N], changes.iter().copied(), 4)
    }

    #[test]
    fn values_have_units_and_may_name_each_other() {
        let settings = set(&[("hold", "1.5ms"), ("locks", "workers"), ("workers", "2cpus")]);
        let settings = settings.unwrap();
        let all = ["hold", "locks", "workers"].map(|key| settings.get(key));
        assert_eq!(all, [1_500_000, 8, 8]);
    }

    #[test]
    fn what_is_told_to_another_process_is_understood_there() {
        let first = set(&[("hold", "3us"), ("locks", "workers")]).unwrap();
        let words: Vec<String> = first.words().collect();
        let changes: Vec<_> = words.iter().map(|word| halves(word).unwrap()).collect();
        assert_eq!(set(&changes).unwrap(), first);
    }

    #[test]
    fn mistakes_are_named() {
        for (key, text) in [("hold", "x"), ("hold", "-1s"), ("locks", "ncpus"), ("hold", "1e400s")]
        {
            let error = set(&[(key, text)]).unwrap_err();
            assert!(
                error.to_string().starts_with(&format!("{key}: '{text}' is not a ")),
                "{error}"
            );
        }
        let error = set(&[("holt", "1s")]).unwrap_err();
        assert_eq!(error.to_string(), "mutex has no parameter holt; it has hold, locks, workers");
    }
}
