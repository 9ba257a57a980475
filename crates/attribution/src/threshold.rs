//! The limits that figures are held against: each has a default and a source, and a file may set
//! it.
//!
//! The file is TOML, one table per rule or part of the judgement:
//!
//! ```toml
//! [all]
//! matters_pct = 20
//!
//! [cpu-overload]
//! busy_pct = 90
//! ```
//!
//! A limit is made by [`thresholds!`](crate::thresholds) alone, which also makes the list of its
//! file. `tests/limits.rs` fails if that list is not in the registry.

use serde::Serialize;
use std::collections::BTreeMap;

/// The three kinds of limits. What is of none of them is no limit but a principle, and has no
/// number.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum LimitKind {
    /// What is worth changing something for.
    Matters,
    /// When a figure is more than chance.
    Significance,
    /// When a trace, or a part of it, is believed.
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

/// A limit that a figure is held against.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct Threshold {
    /// `rule-id.name`; the part before the point is the table in the file. Some tables belong to no
    /// single rule: `all`, `verdict`, and those of the attribution.
    pub key: &'static str,
    /// Its value where no file sets it.
    pub default: f64,
    /// Of what: `% of capacity`, `ms`.
    pub unit: &'static str,
    /// What kind of question it answers.
    pub kind: LimitKind,
    /// What it decides.
    pub meaning: &'static str,
    /// Why this default.
    pub source: &'static str,
}

impl Threshold {
    /// For [`thresholds!`](crate::thresholds) only.
    #[doc(hidden)]
    pub const fn registered(
        key: &'static str,
        default: f64,
        unit: &'static str,
        kind: LimitKind,
        meaning: &'static str,
        source: &'static str,
    ) -> Threshold {
        Threshold { key, default, unit, kind, meaning, source }
    }
}

/// Defines the limits of a file, one constant each, and `THRESHOLDS`, their list.
///
/// ```
/// holdup_attribution::thresholds! {
///     pub LEAST = "verdict.least_ms", 50.0, "ms",
///         kind: Soundness,
///         meaning: "shorter traces show a moment, not a behaviour",
///         source: "a dozen time slices of a fair scheduler (3 to 4 ms each)";
/// }
///
/// fn main() {
///     assert_eq!(THRESHOLDS, [LEAST]);
/// }
/// ```
#[macro_export]
macro_rules! thresholds {
    ($(
        $(#[$doc:meta])*
        $vis:vis $name:ident = $key:literal, $default:literal, $unit:literal,
            kind: $kind:ident, meaning: $meaning:literal, source: $source:literal;
    )+) => {
        $(
            #[doc = $meaning]
            $(#[$doc])*
            $vis const $name: $crate::Threshold =
                $crate::Threshold::registered(
                    $key, $default, $unit, $crate::LimitKind::$kind, $meaning, $source,
                );
        )+
        /// Every limit of this file.
        pub(crate) const THRESHOLDS: &[$crate::Threshold] = &[$($name),+];
    };
}

thresholds! {
    pub MATTERS = "all.matters_pct", 15.0, "% of wanted CPU time",
        kind: Matters,
        meaning: "a loss below this is not worth a verdict; wanted is what the work used and what \
                  it lacked, so that CPUs which nobody has work for change nothing",
        source: "the healthy recordings of the labelled corpus lose up to 10 % to start-up, \
                 wake-up delays and the recorder itself";
    pub MATTERS_LEAST = "all.matters_cpu_pct", 25.0, "% of one CPU",
        kind: Matters,
        meaning: "and a loss below this neither, as a system that does next to nothing has little \
                  to lose",
        source: "a choice: one thread that waits for a quarter of its time";
    pub NAMED = "all.named_pct", 1.0, "% of capacity",
        kind: Matters,
        meaning: "what costs less is not named among the evidence and the culprits, and decides \
                  nothing else",
        source: "a hundredth of the machine: the recorder costs as much";
    pub ENOUGH = "all.enough", 20.0, "cases",
        kind: Significance,
        meaning: "a mean or a median over fewer says nothing",
        source: "of 20 values the median is off by a quarter of their spread";
}

/// On which side of the limit a [`Check`] holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// At the limit or above.
    AtLeast,
    /// At the limit or below.
    AtMost,
}

/// A figure held against a threshold: what is printed and what decides are one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Check {
    /// The figure.
    pub value: f64,
    /// The threshold.
    pub threshold: Threshold,
    /// Its value in force.
    pub limit: f64,
    /// Where it holds.
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
    set: BTreeMap<&'static str, Setting>,
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
    /// From the text of a TOML file that may set the thresholds of `registry`.
    ///
    /// # Errors
    /// Where the text is no TOML, names a threshold that is not there, or sets it to something that
    /// is no number of 0 or more.
    pub fn parse(text: &str, registry: &[Threshold]) -> Result<Thresholds, ThresholdError> {
        let tables: toml::Table =
            text.parse().map_err(|e: toml::de::Error| ThresholdError::Syntax(e.to_string()))?;
        let mut thresholds = Thresholds::default();
        for (section, value) in &tables {
            match value {
                toml::Value::Table(table) => {
                    for (name, value) in table {
                        thresholds.read(registry, &format!("{section}.{name}"), value)?;
                    }
                }
                other => thresholds.read(registry, section, other)?,
            }
        }
        Ok(thresholds)
    }

    fn read(
        &mut self,
        registry: &[Threshold],
        key: &str,
        value: &toml::Value,
    ) -> Result<(), ThresholdError> {
        let Some(threshold) = registry.iter().find(|t| t.key == key) else {
            return Err(ThresholdError::Unknown {
                key: key.to_owned(),
                known: registry.iter().map(|t| t.key).collect(),
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

    /// Set one.
    pub fn set(&mut self, threshold: &Threshold, value: f64) {
        let Threshold { key, default, unit, .. } = *threshold;
        self.set.insert(key, Setting { key, value, default, unit });
    }

    /// The value in force.
    pub fn get(&self, threshold: &Threshold) -> f64 {
        self.set.get(threshold.key).map_or(threshold.default, |s| s.value)
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

    /// Whether a number of things reaches a threshold.
    pub fn enough(&self, count: u64, threshold: &Threshold) -> bool {
        count as f64 >= self.get(threshold)
    }

    /// Those that are not what they would be without the file, by key.
    pub fn settings(&self) -> Vec<Setting> {
        self.set.values().filter(|s| s.value != s.default).cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::{ThresholdError, Thresholds};

    thresholds! {
        MATTERS = "all.matters_pct", 15.0, "%",
            kind: Matters, meaning: "what matters", source: "this test";
        BUSY = "cpu-overload.busy_pct", 85.0, "%",
            kind: Soundness, meaning: "what is busy", source: "this test";
    }

    fn parse(text: &str) -> Result<Thresholds, ThresholdError> {
        Thresholds::parse(text, THRESHOLDS)
    }

    #[test]
    fn a_file_sets_what_it_names() {
        let t = parse("[all]\nmatters_pct = 20\n[cpu-overload]\nbusy_pct = 85.0\n").unwrap();
        assert_eq!(t.get(&MATTERS), 20.0);
        assert_eq!(t.settings().len(), 1, "a default spelled out is no setting");
        assert_eq!(Thresholds::default().get(&MATTERS), MATTERS.default);
    }

    #[test]
    fn a_check_holds_by_the_value_in_force() {
        let t = parse("[all]\nmatters_pct = 20").unwrap();
        assert!(Thresholds::default().at_least(15.0, &MATTERS).holds());
        assert!(!t.at_least(15.0, &MATTERS).holds() && t.at_most(15.0, &MATTERS).holds());
        assert_eq!(t.at_least(15.0, &MATTERS).limit, 20.0);
        assert!(t.enough(85, &BUSY) && !t.enough(84, &BUSY));
    }

    #[test]
    fn mistakes_name_what_there_is() {
        let error = parse("[all]\nmaters_pct = 20").unwrap_err().to_string();
        assert!(error.contains("all.maters_pct") && error.contains("all.matters_pct"), "{error}");
        let error = parse("[all]\nmatters_pct = \"x\"").unwrap_err().to_string();
        assert!(error.contains("no number"), "{error}");
        assert!(parse("[all]\nmatters_pct = -1").is_err());
        assert!(parse("matters_pct = 1").is_err());
        assert!(matches!(parse("[all"), Err(ThresholdError::Syntax(_))));
    }
}
