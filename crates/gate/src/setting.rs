//! Whether recordings compare: same host, kernel, CPUs and events.

use crate::run::{Run, Setting};

/// Something in which two recordings differ that must be alike.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Aspect {
    /// The machine.
    Host,
    /// Its kernel.
    Kernel,
    /// Its architecture.
    Arch,
    /// Its number of CPUs.
    Cpus,
    /// The events recorded.
    Events,
}

impl Aspect {
    /// All.
    pub const ALL: &'static [Aspect] =
        &[Aspect::Host, Aspect::Kernel, Aspect::Arch, Aspect::Cpus, Aspect::Events];

    /// The word that allows it: `--allow host,kernel`.
    pub fn word(self) -> &'static str {
        match self {
            Aspect::Host => "host",
            Aspect::Kernel => "kernel",
            Aspect::Arch => "arch",
            Aspect::Cpus => "cpus",
            Aspect::Events => "events",
        }
    }
}

/// One difference.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// In what.
    pub aspect: Aspect,
    /// How, in words.
    pub words: String,
}

impl Setting {
    /// In what `other` differs. What one of the two does not say is no difference.
    pub fn differences(&self, other: &Setting) -> Vec<Difference> {
        let mut found = Vec::new();
        let mut add = |aspect, words| found.push(Difference { aspect, words });
        let said = [
            (Aspect::Host, "host", &self.host, &other.host),
            (Aspect::Kernel, "kernel", &self.kernel, &other.kernel),
            (Aspect::Arch, "architecture", &self.arch, &other.arch),
        ];
        for (aspect, what, a, b) in said {
            if let (Some(a), Some(b)) = (a, b)
                && a != b
            {
                add(aspect, format!("{what} {a} against {b}"));
            }
        }
        if self.cpus != other.cpus {
            add(Aspect::Cpus, format!("{} CPUs against {}", self.cpus, other.cpus));
        }
        let missing = |from: &Setting, of: &Setting| {
            let lacking = of.events.iter().filter(|e| !from.events.contains(e));
            lacking.map(String::as_str).collect::<Vec<_>>().join(", ")
        };
        let (gone, new) = (missing(other, self), missing(self, other));
        if !gone.is_empty() {
            add(Aspect::Events, format!("events no longer recorded: {gone}"));
        }
        if !new.is_empty() {
            add(Aspect::Events, format!("events not recorded before: {new}"));
        }
        found
    }
}

/// Two runs that do not compare.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mismatch {
    /// Which, and in what they differ.
    pub words: String,
    /// The words that allow it, separated by commas.
    pub allow: String,
}

/// The first run that differs from the first of all in what is not allowed to differ.
pub fn first_difference<'a>(
    runs: impl IntoIterator<Item = &'a Run>,
    allowed: &[Aspect],
) -> Option<Mismatch> {
    let mut runs = runs.into_iter();
    let first = runs.next()?;
    runs.find_map(|run| {
        let mut found = first.setting.differences(&run.setting);
        found.retain(|d| !allowed.contains(&d.aspect));
        if found.is_empty() {
            return None;
        }
        let words: Vec<&str> = found.iter().map(|d| d.words.as_str()).collect();
        let mut allow: Vec<&str> = found.iter().map(|d| d.aspect.word()).collect();
        allow.dedup();
        Some(Mismatch {
            words: format!("{} and {} do not compare: {}", first.name, run.name, words.join("; ")),
            allow: allow.join(","),
        })
    })
}
