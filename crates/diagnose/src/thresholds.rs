//! The limits that rules hold figures against: each has a default and a source, and a file may set
//! it.
//!
//! The file is TOML, one table per rule:
//!
//! ```toml
//! [all]
//! matters_pct = 20
//!
//! [cpu-overload]
//! busy_pct = 90
//! ```

use serde::Serialize;
use std::collections::BTreeMap;

/// A limit that a rule holds a figure against.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Threshold {
    /// `rule-id.name`; the rule id is the table in the file. `all` and `verdict` belong to no
    /// single rule.
    pub key: &'static str,
    /// Its value where no file sets it.
    pub default: f64,
    /// Of what: `% of capacity`, `ms`.
    pub unit: &'static str,
    /// What it decides.
    pub meaning: &'static str,
    /// Why this default.
    pub source: &'static str,
}

/// A threshold that a file has set to something else than its default.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Setting {
    /// Which.
    pub key: &'static str,
    /// Its value.
    pub value: f64,
    /// What it would have been.
    pub default: f64,
    /// Of what.
    pub unit: &'static str,
}

/// The values in force: the defaults, and what a file says.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Thresholds {
    set: BTreeMap<&'static str, f64>,
}

/// Why a file of thresholds is not one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ThresholdError {
    /// Not TOML.
    Syntax(String),
    /// No rule has such a threshold.
    Unknown {
        /// What the file says.
        key: String,
        /// What there is.
        known: Vec<&'static str>,
    },
    /// Not a number, or below 0.
    Value {
        /// Whose.
        key: String,
        /// What the file says.
        value: String,
    },
}

impl std::fmt::Display for ThresholdError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            ThresholdError::Syntax(why) => write!(f, "no TOML: {}", why.trim_end()),
            ThresholdError::Unknown { key, known } => {
                write!(
                    f,
                    "unknown threshold '{}'; there are: {}",
                    key.escape_debug(),
                    known.join(", ")
                )
            }
            ThresholdError::Value { key, value } => {
                write!(
                    f,
                    "{}: '{}' is no number of 0 or more",
                    key.escape_debug(),
                    value.escape_debug()
                )
            }
        }
    }
}

impl std::error::Error for ThresholdError {}

impl Thresholds {
    /// From the text of a TOML file.
    pub fn parse(text: &str) -> Result<Thresholds, ThresholdError> {
        let tables: toml::Table =
            text.parse().map_err(|e: toml::de::Error| ThresholdError::Syntax(e.to_string()))?;
        let mut thresholds = Thresholds::default();
        for (section, value) in &tables {
            match value {
                toml::Value::Table(table) => {
                    for (name, value) in table {
                        thresholds.set(&format!("{section}.{name}"), value)?;
                    }
                }
                other => thresholds.set(section, other)?,
            }
        }
        Ok(thresholds)
    }

    fn set(&mut self, key: &str, value: &toml::Value) -> Result<(), ThresholdError> {
        let all = crate::rules::thresholds();
        let Some(threshold) = all.iter().find(|t| t.key == key) else {
            return Err(ThresholdError::Unknown {
                key: key.to_owned(),
                known: all.iter().map(|t| t.key).collect(),
            });
        };
        let number = value
            .as_float()
            .or(value.as_integer().map(|i| i as f64))
            .filter(|v| v.is_finite() && *v >= 0.0);
        let number = number.ok_or_else(|| ThresholdError::Value {
            key: key.to_owned(),
            value: value.to_string(),
        })?;
        self.set.insert(threshold.key, number);
        Ok(())
    }

    /// The value in force.
    pub fn get(&self, threshold: &Threshold) -> f64 {
        self.set.get(threshold.key).copied().unwrap_or(threshold.default)
    }

    /// Those that are not what they would be without the file, by key.
    pub fn settings(&self) -> Vec<Setting> {
        let all = crate::rules::thresholds();
        let setting = |(&key, &value): (&&'static str, &f64)| {
            let t = all.iter().find(|t| t.key == key)?;
            (value != t.default).then_some(Setting { key, value, default: t.default, unit: t.unit })
        };
        self.set.iter().filter_map(setting).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_sets_what_it_names() {
        let t = Thresholds::parse("[all]\nmatters_pct = 20\n[cpu-overload]\nbusy_pct = 85.0\n")
            .unwrap();
        assert_eq!(t.get(&crate::rules::MATTERS), 20.0);
        assert_eq!(t.settings().len(), 1, "a default spelled out is no setting");
        assert_eq!(
            Thresholds::default().get(&crate::rules::MATTERS),
            crate::rules::MATTERS.default
        );
    }

    #[test]
    fn mistakes_name_what_there_is() {
        let error = Thresholds::parse("[all]\nmaters_pct = 20").unwrap_err().to_string();
        assert!(error.contains("all.maters_pct") && error.contains("all.matters_pct"), "{error}");
        assert!(
            Thresholds::parse("[all]\nmatters_pct = \"x\"")
                .unwrap_err()
                .to_string()
                .contains("no number")
        );
        assert!(Thresholds::parse("[all]\nmatters_pct = -1").is_err());
        assert!(Thresholds::parse("matters_pct = 1").is_err());
        assert!(matches!(Thresholds::parse("[all"), Err(ThresholdError::Syntax(_))));
    }
}
