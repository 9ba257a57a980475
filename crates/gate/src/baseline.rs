//! The baseline file: the figures of runs, to be committed.
//!
//! JSON with one line per run and one per figure, so that a change of one figure is a change of one
//! line. A line of figures has one number per run; `null` is a figure that the run could not give.
//! A figure that no run has is not in the file.

use crate::figures::Figures;
use crate::metric::{Figure, Table};
use crate::redact;
use crate::run::{Judgement, Others, Run, Setting};
use crate::setting::{self, Aspect};
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt::Write;
use thiserror::Error;

/// Names the format and its version.
pub const SCHEMA: &str = "holdup-baseline/1";

/// Runs to compare others with.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Baseline {
    /// The definition of a unit of work, as `--work` takes it.
    pub work: Option<String>,
    /// Names are hashed.
    pub redacted: bool,
    /// The runs, oldest first.
    pub runs: Vec<Run>,
}

/// What is wrong with a baseline file.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum BaselineError {
    /// Not JSON, or not of a baseline's form.
    #[error("not a baseline file: {0}")]
    Shape(String),
    /// Of another version.
    #[error(
        "a baseline of the schema '{0}', but this holdup reads '{SCHEMA}': make the baseline again \
         with holdup baseline"
    )]
    Schema(String),
    /// An invalid line of figures.
    #[error("figure '{name}': {why}")]
    Figure {
        /// The figure's name.
        name: String,
        /// What is wrong.
        why: String,
    },
    /// Without runs nothing can be compared.
    #[error("the baseline contains no run")]
    Empty,
}

/// A run's own line.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct RunLine {
    name: String,
    wall_ns: u64,
    events: u64,
    lost_events: u64,
    #[serde(default, skip_serializing_if = "is_none")]
    lost_chunks: u64,
    others: Others,
    verdict: Judgement,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    lacks: Vec<String>,
    setting: usize,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    /// Read before the rest, see [`Head`].
    #[serde(rename = "schema")]
    _schema: IgnoredAny,
    #[serde(default)]
    work: Option<String>,
    #[serde(default)]
    redacted: bool,
    settings: Vec<Setting>,
    runs: Vec<RunLine>,
    figures: BTreeMap<String, Vec<Option<u64>>>,
}

#[derive(Deserialize)]
struct Head {
    schema: Option<String>,
}

impl Baseline {
    /// Read the text of a baseline file.
    ///
    /// # Errors
    /// [`BaselineError`].
    pub fn parse(text: &str) -> Result<Baseline, BaselineError> {
        let shape = |e: serde_json::Error| BaselineError::Shape(e.to_string());
        // A file of another version may have another form: its schema is read first.
        let head: Head = serde_json::from_str(text).map_err(shape)?;
        match head.schema {
            Some(schema) if schema == SCHEMA => {}
            Some(schema) => return Err(BaselineError::Schema(schema)),
            None => return Err(BaselineError::Shape("it has no \"schema\"".to_owned())),
        }
        let file: File = serde_json::from_str(text).map_err(shape)?;
        let mut runs = Vec::new();
        for line in file.runs {
            let setting = file.settings.get(line.setting).cloned().ok_or_else(|| {
                BaselineError::Shape(format!(
                    "run '{}' names a setting that the file does not have",
                    line.name
                ))
            })?;
            runs.push(Run {
                name: line.name,
                setting,
                wall_ns: line.wall_ns,
                setup_ns: None,
                lost_events: line.lost_events,
                lost_chunks: line.lost_chunks,
                events: line.events,
                others: line.others,
                verdict: line.verdict,
                lacks: line.lacks.iter().filter_map(|name| Table::named(name)).collect(),
                figures: Figures::default(),
                objects: Vec::new(),
                damage: Vec::new(),
            });
        }
        if runs.is_empty() {
            return Err(BaselineError::Empty);
        }
        for (name, values) in file.figures {
            let wrong = |why: String| BaselineError::Figure { name: name.clone(), why };
            let figure = Figure::parse(&name)
                .ok_or_else(|| wrong("holdup has no figure with this name".to_owned()))?;
            if values.len() != runs.len() {
                let (n, of) = (values.len(), runs.len());
                return Err(wrong(format!("the file has {n} values for {of} runs")));
            }
            for (run, value) in runs.iter_mut().zip(values) {
                run.figures.set(figure.clone(), value);
            }
        }
        Ok(Baseline { work: file.work, redacted: file.redacted, runs })
    }

    /// The text of the file.
    pub fn text(&self) -> String {
        let mut settings: Vec<&Setting> = Vec::new();
        let mut lines = Vec::new();
        for run in &self.runs {
            let at = settings.iter().position(|s| **s == run.setting).unwrap_or_else(|| {
                settings.push(&run.setting);
                settings.len() - 1
            });
            lines.push(RunLine {
                name: run.name.clone(),
                wall_ns: run.wall_ns,
                events: run.events,
                lost_events: run.lost_events,
                lost_chunks: run.lost_chunks,
                others: run.others.clone(),
                verdict: run.verdict.clone(),
                lacks: run.lacks.iter().map(|t| t.name().to_owned()).collect(),
                setting: at,
            });
        }
        let mut names: Vec<&Figure> =
            self.runs.iter().flat_map(|r| r.figures.iter().map(|(f, _)| f)).collect();
        names.sort();
        names.dedup();
        let figures = names.into_iter().filter_map(|figure| {
            let of = |run: &Run| match run.figures.get(figure) {
                Some(value) => value,
                None if run.lacks.contains(&figure.table) => None,
                None => Some(0),
            };
            let values: Vec<Option<u64>> = self.runs.iter().map(of).collect();
            let has_values = values.iter().any(|v| v.is_none_or(|v| v > 0));
            has_values.then(|| format!("{}: {}", json(&figure.to_string()), json(&values)))
        });
        let mut text = format!("{{\n\"schema\": {},\n", json(SCHEMA));
        if let Some(work) = &self.work {
            let _ = writeln!(text, "\"work\": {},", json(work));
        }
        if self.redacted {
            text += "\"redacted\": true,\n";
        }
        let settings: Vec<String> = settings.iter().map(|s| json(*s)).collect();
        let _ = writeln!(text, "\"settings\": [\n{}\n],", settings.join(",\n"));
        let lines: Vec<String> = lines.iter().map(json).collect();
        let _ = writeln!(text, "\"runs\": [\n{}\n],", lines.join(",\n"));
        let figures: Vec<String> = figures.collect();
        let _ = writeln!(text, "\"figures\": {{\n{}\n}}\n}}", figures.join(",\n"));
        text
    }

    /// Add runs. If either side is redacted, all are redacted: hashed names cannot be restored.
    pub fn add(&mut self, runs: Vec<Run>, redacted: bool) {
        let mut more = Baseline { runs, redacted, work: None };
        if redacted && !self.runs.is_empty() {
            self.redact();
        }
        self.redacted |= redacted;
        if self.redacted {
            more.redact();
        }
        self.runs.extend(more.runs);
    }

    /// Hash the names of hosts, programs, files and probes, once.
    pub fn redact(&mut self) {
        if self.redacted {
            return;
        }
        self.redacted = true;
        for run in &mut self.runs {
            redact::run(run);
        }
    }

    /// The first run that is in it twice, with both names.
    pub fn twice(&self) -> Option<(&str, &str)> {
        self.runs.iter().enumerate().find_map(|(i, run)| {
            let first = self.runs[..i].iter().find(|r| r.is_same_recording(run))?;
            Some((first.name.as_str(), run.name.as_str()))
        })
    }

    /// Refuse to mix runs that differ in what must be the same.
    ///
    /// # Errors
    /// What differs, in words.
    pub fn alike(&self, allowed: &[Aspect]) -> Result<(), String> {
        match setting::first_difference(&self.runs, allowed) {
            None => Ok(()),
            Some(d) => Err(format!(
                "{}; --allow {} puts them into one baseline nevertheless",
                d.words, d.allow
            )),
        }
    }
}

fn is_none(n: &u64) -> bool {
    *n == 0
}

/// A value as JSON on one line.
fn json<T: Serialize + ?Sized>(value: &T) -> String {
    // Plain data: nothing in it can fail to be written.
    serde_json::to_string(value).unwrap_or_default()
}
