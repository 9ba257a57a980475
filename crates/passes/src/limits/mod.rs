//! Every limit that holdup compares figures with: one registry for measuring, judging, replaying
//! and diagnosing.
//!
//! A [`Threshold`] can be made in `list.rs` alone, because its private field is visible nowhere
//! else. So every limit that is compared with a figure is registered, has a kind and a source, can
//! be set by a file, is printed by `holdup rules`, and has its row in the table of what moving it
//! changes (docs/verdicts.md).
//!
//! ```compile_fail
//! # use holdup_passes::limits::{LimitKind, Threshold};
//! let own = Threshold { key: "my.limit", default: 40.0, unit: "%", kind: LimitKind::Matters,
//!     meaning: "what I found fitting", source: "nobody" };
//! ```
//!
//! A TOML file may set some of them; each part of the judgement has its own table:
//!
//! ```toml
//! [all]
//! matters_pct = 20
//! ```

mod list;

pub use list::*;

use serde::Serialize;
use std::collections::BTreeMap;

/// What a limit decides.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum LimitKind {
    /// The limit is the size from which on a loss is worth a change.
    Matters,
    /// The limit decides when a figure is statistically significant.
    Significance,
    /// The limit decides when a trace, or a part of it, is reliable.
    Soundness,
}

impl LimitKind {
    /// In a word.
    pub fn word(self) -> &'static str {
        match self {
            LimitKind::Matters => "matters",
            LimitKind::Significance => "significance",
            LimitKind::Soundness => "soundness",
        }
    }
}

/// A threshold: a limit that a figure is compared with.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, schemars::JsonSchema)]
#[allow(clippy::manual_non_exhaustive, reason = "nor may the rest of this crate make one")]
pub struct Threshold {
    /// Name of the threshold: `rule-id.name`. The part before the point is the table in the TOML
    /// file. Some tables belong to no single rule: `all`, and the tables of the attribution and the
    /// replay (`server`, `replay` …).
    pub key: &'static str,
    /// Value of the threshold if no file sets it.
    pub default: f64,
    /// Unit of the threshold: `% of capacity`, `ms`.
    pub unit: &'static str,
    /// What the threshold decides: whether a loss matters, whether a figure is significant, or
    /// whether a trace is reliable.
    pub kind: LimitKind,
    /// What the threshold decides, in words.
    pub meaning: &'static str,
    /// Why the default has this value.
    pub source: &'static str,
    #[serde(skip)]
    registered: (),
}

/// On which side of the limit a [`Check`] holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// At the limit or above.
    AtLeast,
    /// At the limit or below.
    AtMost,
}

/// A figure compared with a threshold: the printed figure is the one that decides.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Check {
    /// The figure.
    pub value: f64,
    /// The threshold.
    pub threshold: Threshold,
    /// Its value in force.
    pub limit: f64,
    /// On which side of the limit the check holds.
    pub direction: Direction,
}

impl Check {
    /// Whether the figure is on the side of the limit that it should be on.
    pub fn holds(&self) -> bool {
        match self.direction {
            Direction::AtLeast => self.value >= self.limit,
            Direction::AtMost => self.value <= self.limit,
        }
    }
}

/// A threshold that a file has set to a value other than its default.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Setting {
    /// Name of the threshold.
    pub key: &'static str,
    /// Value that the file has set.
    pub value: f64,
    /// Default value of the threshold.
    pub default: f64,
    /// Unit of the value.
    pub unit: &'static str,
}

/// The values in force: the defaults, overridden by those of a file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Thresholds {
    set: BTreeMap<&'static str, Setting>,
}

/// Why a file of thresholds cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ThresholdError {
    /// Not TOML.
    #[error("not TOML: {}", .0.trim_end())]
    Syntax(String),
    /// No rule has such a threshold.
    #[error("unknown threshold '{}'; the thresholds are: {}", key.escape_debug(), known.join(", "))]
    Unknown {
        /// The key in the file.
        key: String,
        /// The keys that exist.
        known: Vec<&'static str>,
    },
    /// Not a number, or below 0.
    #[error("{}: '{}' is not a number of 0 or more", key.escape_debug(), value.escape_debug())]
    Value {
        /// Key of the threshold.
        key: String,
        /// The value in the file.
        value: String,
    },
}

impl Thresholds {
    /// Parses a TOML file that may set any threshold of the registry.
    ///
    /// # Errors
    /// If the text is not TOML, names an unknown threshold, or sets one to something other than a
    /// number of 0 or more.
    pub fn parse(text: &str) -> Result<Thresholds, ThresholdError> {
        let tables: toml::Table =
            text.parse().map_err(|e: toml::de::Error| ThresholdError::Syntax(e.to_string()))?;
        let mut thresholds = Thresholds::default();
        for (section, value) in &tables {
            match value {
                toml::Value::Table(table) => {
                    for (name, value) in table {
                        thresholds.read(&format!("{section}.{name}"), value)?;
                    }
                }
                other => thresholds.read(section, other)?,
            }
        }
        Ok(thresholds)
    }

    fn read(&mut self, key: &str, value: &toml::Value) -> Result<(), ThresholdError> {
        let Some(threshold) = REGISTRY.iter().find(|t| t.key == key) else {
            return Err(ThresholdError::Unknown {
                key: key.to_owned(),
                known: REGISTRY.iter().map(|t| t.key).collect(),
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
        self.set(threshold, number);
        Ok(())
    }

    /// Sets the value of one threshold.
    pub fn set(&mut self, threshold: &Threshold, value: f64) {
        let Threshold { key, default, unit, .. } = *threshold;
        self.set.insert(key, Setting { key, value, default, unit });
    }

    /// The value in force.
    pub fn get(&self, threshold: &Threshold) -> f64 {
        self.set.get(threshold.key).map_or(threshold.default, |s| s.value)
    }

    /// The smallest speed-up that makes a change worthwhile, as a factor.
    pub fn worthwhile(&self) -> f64 {
        100.0 / (100.0 - self.get(&MATTERS).min(99.0))
    }

    /// A figure that should be at the threshold or above.
    pub fn at_least(&self, value: f64, threshold: &Threshold) -> Check {
        self.check(value, threshold, Direction::AtLeast)
    }

    /// A figure that should be at the threshold or below.
    pub fn at_most(&self, value: f64, threshold: &Threshold) -> Check {
        self.check(value, threshold, Direction::AtMost)
    }

    fn check(&self, value: f64, threshold: &Threshold, direction: Direction) -> Check {
        Check { value, threshold: *threshold, limit: self.get(threshold), direction }
    }

    /// Whether a count reaches a threshold.
    pub fn enough(&self, count: u64, threshold: &Threshold) -> bool {
        count as f64 >= self.get(threshold)
    }

    /// Thresholds whose value differs from the default, by key.
    pub fn settings(&self) -> Vec<Setting> {
        self.set.values().filter(|s| s.value != s.default).cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::{ENOUGH, MATTERS, REGISTRY, ThresholdError, Thresholds};
    use std::collections::BTreeSet;

    fn parse(text: &str) -> Result<Thresholds, ThresholdError> {
        Thresholds::parse(text)
    }

    #[test]
    fn there_are_few_and_no_two_have_one_name() {
        let keys: BTreeSet<&str> = REGISTRY.iter().map(|t| t.key).collect();
        assert_eq!(keys.len(), REGISTRY.len());
        assert!(REGISTRY.len() <= 13, "{} limits", REGISTRY.len());
    }

    #[test]
    fn a_file_sets_what_it_names() {
        let t = parse("[all]\nmatters_pct = 20\nenough = 20.0\n").unwrap();
        assert_eq!(t.get(&MATTERS), 20.0);
        assert_eq!(t.settings().len(), 1, "a default spelled out is not a setting");
        assert_eq!(Thresholds::default().get(&MATTERS), MATTERS.default);
    }

    #[test]
    fn a_check_holds_by_the_value_in_force() {
        let t = parse("[all]\nmatters_pct = 20").unwrap();
        assert!(Thresholds::default().at_least(15.0, &MATTERS).holds());
        assert!(!t.at_least(15.0, &MATTERS).holds() && t.at_most(15.0, &MATTERS).holds());
        assert_eq!(t.at_least(15.0, &MATTERS).limit, 20.0);
        assert!(t.enough(20, &ENOUGH) && !t.enough(19, &ENOUGH));
    }

    #[test]
    fn mistakes_name_what_there_is() {
        let error = parse("[all]\nmaters_pct = 20").unwrap_err().to_string();
        assert!(error.contains("all.maters_pct") && error.contains("all.matters_pct"), "{error}");
        let error = parse("[all]\nmatters_pct = \"x\"").unwrap_err().to_string();
        assert!(error.contains("not a number"), "{error}");
        assert!(parse("[all]\nmatters_pct = -1").is_err());
        assert!(parse("matters_pct = 1").is_err());
        assert!(matches!(parse("[all"), Err(ThresholdError::Syntax(_))));
    }
}
