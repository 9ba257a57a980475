//! Whether recordings compare: same host, kernel, CPUs and events.

use crate::run::Setting;

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
