//! One trial: a workload and its fixed variant run alternately without tracing, and are then
//! recorded and judged.
//!
//! Each run and each recording is a process of its own: this program, called as a user calls it.

use super::args::OfWorkload;
use super::{record_words, this_program, truth_of};
use crate::exit::{Failure, Result, bad_input};
use holdup_lab::{HEALTHY, Workload, halves};
use serde::Serialize;
use serde_json::Value;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

/// From this gain on the workload has a bottleneck, by the limit of verdicts: a finding is a
/// verdict if it costs 15 % of the wanted CPU time, and the workload without it is 1 / 0.85 times
/// as fast.
pub(super) const MATTERS: f64 = 1.0 / 0.85;
/// Up to this gain the workload has no bottleneck.
pub(super) const NOTHING: f64 = 1.05;

/// The class of a verdict that decides nothing: the machine was busy with other programs.
const UNDECIDED: &str = "not-enough-evidence";

/// What to try, and how long.
pub(super) struct Trial<'a> {
    pub(super) workload: &'static Workload,
    /// Settings in addition to those of the fixed variant.
    pub(super) set: Vec<String>,
    /// How often each variant runs untraced.
    pub(super) runs: usize,
    /// How long each of these runs takes, and a recorded one.
    pub(super) untraced: &'static str,
    pub(super) recorded: &'static str,
    /// The folder for recordings.
    pub(super) folder: &'a Path,
    /// A name for the recordings.
    pub(super) stem: String,
    /// Whether the fixed variant is recorded too.
    pub(super) fixed_too: bool,
}

/// Where the culprit of the workload is in the verdict's list of culprits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Named {
    /// It is the first culprit.
    First,
    /// It is a later culprit.
    Later,
    /// It is not in the list.
    No,
}

/// A gain that was predicted: its best estimate and its range.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct Gain {
    pub(super) times: f64,
    pub(super) low: f64,
    pub(super) high: f64,
}

/// The diagnosis of a recording.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Verdict {
    pub(super) class: String,
    pub(super) confidence: f64,
    /// What fixing the named bottleneck would gain.
    pub(super) predicted: Option<Gain>,
    /// Kinds and names of its culprits.
    pub(super) culprits: Vec<String>,
    pub(super) events: u64,
}

impl Verdict {
    /// Whether it is one of these classes; `None` if it decides nothing.
    fn is_one_of(&self, right: &[&str]) -> Option<bool> {
        (self.class != UNDECIDED).then(|| right.contains(&self.class.as_str()))
    }
}

impl Tried {
    /// Whether the verdict names the bottleneck.
    pub(super) fn is_found(&self) -> bool {
        let said = self.verdict.class.as_str();
        said == self.makes || said != HEALTHY && self.right_classes.contains(&said)
    }
}

/// The result of a trial.
#[derive(Debug, Serialize)]
pub(super) struct Tried {
    pub(super) name: &'static str,
    pub(super) settings: Value,
    /// The class that the workload is meant to cause.
    pub(super) makes: &'static str,
    /// How much more the fixed variant did in the same time, untraced.
    pub(super) gained: Option<f64>,
    /// The lowest and the highest of single pairs.
    pub(super) gained_range: Option<(f64, f64)>,
    pub(super) verdict: Verdict,
    /// Classes that are right, by what the fixed variant gained.
    pub(super) right_classes: Vec<&'static str>,
    /// `None` if the machine was too busy with other programs to judge.
    pub(super) right: Option<bool>,
    pub(super) culprit: Option<Named>,
    /// The verdict on the fixed variant, and whether it is right.
    pub(super) fixed: Option<Verdict>,
    pub(super) fixed_right: Option<bool>,
    /// Loss of throughput of a recorded run, per cent.
    pub(super) cost_pct: f64,
    pub(super) took_s: f64,
}

impl Tried {
    /// Whether anything about it is wrong.
    pub(super) fn wrong(&self) -> bool {
        self.right == Some(false) || self.fixed_right == Some(false)
    }

    /// Whether no verdict could be reached.
    pub(super) fn open(&self) -> bool {
        self.right.is_none() || (self.fixed.is_some() && self.fixed_right.is_none())
    }
}

/// What the program counted in one run.
struct Counted {
    rate: f64,
    culprits: Vec<Vec<String>>,
    settings: Value,
}

impl Trial<'_> {
    pub(super) fn run(&self) -> Result<Tried> {
        let begun = Instant::now();
        let (mut ill, mut well) = (Vec::new(), Vec::new());
        for _ in 0..self.runs {
            ill.push(self.untraced(false)?.rate);
            if self.workload.has_twin() {
                well.push(self.untraced(true)?.rate);
            }
        }
        let (recorded, verdict) = self.judged(false)?;
        let fixed_too = self.workload.has_twin() && self.fixed_too;
        let fixed = fixed_too.then(|| self.judged(true)).transpose()?.map(|(_, verdict)| verdict);

        let pairs: Vec<f64> = well.iter().zip(&ill).map(|(w, i)| w / i.max(1e-9)).collect();
        let gained = (!pairs.is_empty()).then(|| median(&pairs));
        let least = pairs.iter().copied().fold(f64::INFINITY, f64::min);
        let most = pairs.iter().copied().fold(0.0, f64::max);
        let gained_range = gained.map(|_| (least, most));
        let right_classes = right_classes(self.workload, gained_range);
        let right = verdict.is_one_of(&right_classes);
        let named =
            right == Some(true) && verdict.class != HEALTHY && !recorded.culprits.is_empty();
        Ok(Tried {
            name: self.workload.name,
            settings: recorded.settings,
            makes: self.workload.class,
            gained,
            gained_range,
            right,
            culprit: named.then(|| place(&recorded.culprits, &verdict.culprits)),
            right_classes,
            verdict,
            fixed_right: fixed
                .as_ref()
                .and_then(|verdict| verdict.is_one_of(&self.right_for_twin())),
            fixed,
            cost_pct: 100.0 * (1.0 - recorded.rate / median(&ill).max(1e-9)),
            took_s: begun.elapsed().as_secs_f64(),
        })
    }

    fn right_for_twin(&self) -> Vec<&'static str> {
        std::iter::once(HEALTHY).chain(self.workload.twin_also.map(|(class, _)| class)).collect()
    }

    fn of(&self, fixed: bool, duration: &str) -> OfWorkload {
        // Settings of the fix take precedence over the strength.
        let fixes = |set: &&String| {
            fixed && self.workload.fix.iter().any(|(key, _)| halves(set).is_ok_and(|h| h.0 == *key))
        };
        let mut set: Vec<String> = self.set.iter().filter(|set| !fixes(set)).cloned().collect();
        set.push(format!("duration={duration}"));
        OfWorkload { name: self.workload.name.to_owned(), set, fixed }
    }

    fn untraced(&self, fixed: bool) -> Result<Counted> {
        let of = self.of(fixed, self.untraced);
        let mut words: Vec<OsString> = ["lab", "run"].map(Into::into).to_vec();
        words.push(of.name.into());
        words.extend(of.fixed.then(|| "--fixed".into()));
        words.extend(of.set.iter().flat_map(|set| ["--set".into(), set.into()]));
        counted(&this(&words)?)
    }

    /// Record the workload and diagnose the recording.
    fn judged(&self, fixed: bool) -> Result<(Counted, Verdict)> {
        let stem = if fixed { format!("{}-fixed", self.stem) } else { self.stem.clone() };
        let file = self.folder.join(format!("{stem}.data"));
        let mut words = record_words(&self.of(fixed, self.recorded), &file)?;
        words.insert(1, "-q".into());
        this(&words)?;
        let truth = truth_of(&file);
        let text = std::fs::read(&truth).map_err(|e| bad_input(&truth, e))?;
        let words: [OsString; 4] = ["diagnose".into(), "-q".into(), "-j".into(), (&file).into()];
        Ok((counted(&text)?, verdict(&this(&words)?)?))
    }
}

/// The classes that are right for this gain of the fixed variant, from the lowest to the highest of
/// several pairs of runs. If the limit is within the scatter of the gains, both classes are right.
fn right_classes(of: &Workload, gained: Option<(f64, f64)>) -> Vec<&'static str> {
    let makes = std::iter::once(of.class).chain(of.also.map(|(class, _)| class));
    let Some((low, high)) = gained else { return makes.collect() };
    let mut right: Vec<&str> = makes.filter(|_| high >= NOTHING).collect();
    right.extend((low < MATTERS).then_some(HEALTHY));
    right
}

/// Run this program, and return what it printed.
fn this(words: &[OsString]) -> Result<Vec<u8>> {
    let program = this_program()?;
    let mut command = Command::new(&program);
    command.args(words).stdin(Stdio::null());
    let out = command.output().map_err(|e| bad_input(&PathBuf::from(&program), e))?;
    // A diagnosis that ends with "not enough evidence" has answered.
    let answered = out.status.success() || out.status.code() == Some(4);
    if !answered {
        let said = String::from_utf8_lossy(&out.stderr);
        let said = said.trim().trim_start_matches("holdup: ");
        let typed: Vec<_> = words.iter().map(|word| word.to_string_lossy()).collect();
        return Err(Failure::Input(format!("holdup {}: {said}", typed.join(" "))));
    }
    Ok(out.stdout)
}

fn json(text: &[u8]) -> Result<Value> {
    let wrong = |e| Failure::Input(format!("the output of this program is not JSON: {e}"));
    serde_json::from_slice(text).map_err(wrong)
}

fn strings(value: &Value) -> Vec<String> {
    let all = value.as_array().into_iter().flatten();
    all.filter_map(|one| one.as_str().map(str::to_owned)).collect()
}

fn counted(text: &[u8]) -> Result<Counted> {
    let value = json(text)?;
    Ok(Counted {
        rate: value["units_per_s"].as_f64().unwrap_or(0.0),
        culprits: value["culprits"].as_array().into_iter().flatten().map(strings).collect(),
        settings: value["settings"].clone(),
    })
}

fn verdict(text: &[u8]) -> Result<Verdict> {
    let value = json(text)?;
    let class = value["verdict"]["class"].as_str().unwrap_or_default().to_owned();
    let findings = value["findings"].as_array().cloned().unwrap_or_default();
    let finding = findings.iter().find(|finding| finding["class"] == class.as_str());
    let worth = finding.map(|finding| &finding["worth"]);
    let number = |key: &str| worth.and_then(|worth| worth[key].as_f64());
    let predicted = number("times").map(|times| Gain {
        times,
        low: number("low").unwrap_or(times),
        high: number("high").unwrap_or(times),
    });
    let culprits = finding.and_then(|finding| finding["culprits"].as_array()).into_iter().flatten();
    let words = |culprit: &Value| {
        let word = |key: &str| culprit[key].as_str().unwrap_or_default().to_owned();
        format!("{} {}", word("kind"), word("name"))
    };
    Ok(Verdict {
        confidence: value["verdict"]["confidence"].as_f64().unwrap_or(0.0),
        events: value["trace"]["events"].as_u64().unwrap_or(0),
        culprits: culprits.map(words).collect(),
        predicted,
        class,
    })
}

/// The position of one of `wanted` in `named`.
fn place(wanted: &[Vec<String>], named: &[String]) -> Named {
    let is_it = |name: &String| wanted.iter().any(|w| w.iter().all(|word| name.contains(word)));
    match named.iter().position(is_it) {
        Some(0) => Named::First,
        Some(_) => Named::Later,
        None => Named::No,
    }
}

/// The median; for an even number of values the mean of the two in the middle.
pub(super) fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    match sorted.len() {
        0 => 0.0,
        n if n.is_multiple_of(2) => f64::midpoint(sorted[n / 2 - 1], sorted[n / 2]),
        n => sorted[n / 2],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use holdup_lab::WORKLOADS;

    #[test]
    fn what_is_right_follows_from_what_the_twin_gained() {
        let of = |name| WORKLOADS.iter().find(|w| w.name == name).unwrap();
        let right = |low, high| right_classes(of("disk"), Some((low, high)));
        assert_eq!(right(1.4, 1.6), ["io-bound"]);
        assert_eq!(right(1.1, 1.3), ["io-bound", HEALTHY]);
        assert_eq!(right(0.9, 1.04), [HEALTHY]);
        assert_eq!(right_classes(of("disk"), None), ["io-bound"]);
        let ring = ["application-serialization", "workload-imbalance"];
        assert_eq!(right_classes(of("ring"), Some((1.4, 1.6))), ring);
    }

    #[test]
    fn a_culprit_has_all_words_of_one_that_is_wanted() {
        let wanted = [vec!["flock".to_owned(), "pid 7".to_owned()]];
        let named = |names: &[&str]| {
            place(&wanted, &names.iter().map(|&name| name.to_owned()).collect::<Vec<_>>())
        };
        assert_eq!(named(&["flock fd 4 of pid 7"]), Named::First);
        assert_eq!(named(&["flock fd 4 of pid 8", "flock fd 4 of pid 7"]), Named::Later);
        assert_eq!(named(&["flock fd 4 of pid 8"]), Named::No);
    }

    #[test]
    fn the_median_stands_in_the_middle() {
        assert_eq!([median(&[3.0, 1.0, 2.0]), median(&[4.0, 2.0]), median(&[])], [2.0, 3.0, 0.0]);
    }
}
