//! The parts of a diagnosis. Field names are the JSON keys.

pub use crate::class::Class;
use crate::judged::PhaseRow;
use crate::worth::{HolderWorth, Worth};
use holdup_attribution::{Check, Ledger, Setting, Threshold, Thresholds};
use holdup_passes::{HolderTime, percent};
use holdup_profile::Around;
use serde::{Serialize, Serializer};

/// The answer of `diagnose`.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Diagnosis {
    /// The verdict: its class, its confidence and a sentence about it.
    pub verdict: Verdict,
    /// Where every CPU-second went.
    pub ledger: Ledger,
    /// What the chosen threads did, if threads were chosen; the verdict is then about them. Absent
    /// if the verdict is about the machine.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chosen: Option<Chosen>,
    /// The phases of the trace, including phases that the verdict leaves out; absent if there is
    /// only one. `holdup phases` judges each of them alone.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub phases: Vec<PhaseRow>,
    /// One finding per rule. Findings of rules that fire come first, the largest gain first.
    pub findings: Vec<Finding>,
    /// Suspicions that the trace cannot prove.
    pub leads: Vec<Lead>,
    /// Why the trace was not replayed, so that the verdict is based on demand alone; absent if the
    /// trace was replayed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_replayed: Option<String>,
    /// Commands that show more details.
    pub next: Vec<String>,
    /// Thresholds that were changed from their defaults.
    pub thresholds: Vec<Setting>,
    /// Remarks about the names of code: files that were refused, unverified or not found. Absent
    /// without remarks, as for a trace without call chains.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub code_remarks: Vec<String>,
    /// Where the figures come from, if not from a trace; absent for a trace.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
}

/// The verdict: the class whose removal would make the work fastest.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Verdict {
    /// Class of the verdict.
    pub class: Class,
    /// How often a verdict like this one is right: 0 to 1, in hundredths.
    pub confidence: f64,
    /// The verdict in one sentence, with names and numbers.
    pub summary: String,
    /// The class with the second largest gain, if the rule of another class fires too.
    pub runner_up: Option<Class>,
    /// Reasons that lower the confidence.
    pub reservations: Vec<String>,
    /// CPU time that programs other than the work took; absent if no trace was judged.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub background: Option<Background>,
    /// The factors whose product is the confidence. The first factor follows from the figures
    /// alone.
    pub steps: Vec<Step>,
}

impl Verdict {
    /// What lowers the confidence, except what the summary already says.
    pub fn unsaid_reservations(&self) -> impl Iterator<Item = &str> {
        let unsaid = |r: &&str| !self.summary.starts_with(*r);
        self.reservations.iter().map(String::as_str).filter(unsaid)
    }
}

/// Programs that are not the work: the recorder and, if the traced program is known, all programs
/// that have nothing to do with it.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Background {
    /// CPU time of all these programs.
    pub ns: u64,
    /// CPU time of all these programs, in per cent of capacity.
    pub pct: f64,
    /// Whether it is known which programs are the work. If it is not, only the recorder is listed.
    pub work_known: bool,
    /// The programs that took the most CPU time, by name.
    pub programs: Vec<BackgroundProgram>,
}

impl Background {
    /// The first three, each with its share of capacity.
    pub fn listed(&self) -> String {
        let of = |p: &BackgroundProgram| format!("{} {:.0} %", p.name(), p.pct);
        self.programs.iter().take(3).map(of).collect::<Vec<_>>().join(", ")
    }
}

impl BackgroundProgram {
    /// `postgres in postgresql.service`.
    pub fn name(&self) -> String {
        match &self.cgroup {
            Some(cgroup) => format!("{} in {cgroup}", self.comm),
            None => self.comm.clone(),
        }
    }
}

/// Programs that have the same name and are in the same control group.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct BackgroundProgram {
    /// Name of the programs.
    pub comm: String,
    /// Name of the control group: service, container or pod; `null` if the trace does not contain
    /// it, or if the programs are in no group.
    pub cgroup: Option<String>,
    /// CPU time of these programs.
    pub ns: u64,
    /// CPU time of these programs, in per cent of capacity.
    pub pct: f64,
}

/// One factor of the confidence.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Step {
    /// Reason for the factor.
    pub what: String,
    /// Value of the factor, 0 to 1.
    pub factor: f64,
}

impl Step {
    /// Rounded to three decimals.
    pub(crate) fn of(what: &str, factor: f64) -> Step {
        Step { what: what.to_owned(), factor: (factor * 1000.0).round() / 1000.0 }
    }
}

/// A suspicion, with a command that would prove it. A suspicion is never the verdict.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Lead {
    /// The class that is suspected.
    pub class: Class,
    /// What was seen, in one sentence.
    pub summary: String,
    /// The command that would prove or disprove the suspicion.
    pub command: String,
}

/// A leaf of the ledger, or a part of a leaf, that belongs to the cost of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Part {
    /// Path of the leaf.
    pub path: &'static str,
    /// CPU time, at most the CPU time of the leaf.
    pub ns: u64,
    /// CPU time in per cent of capacity.
    pub pct: f64,
}

/// What one rule found. If the cost is unknown, `share` and `lost_cpu_ns` are `null` in JSON.
#[derive(Clone, Debug, PartialEq, schemars::JsonSchema)]
pub struct Finding {
    /// Class that the finding is about.
    pub class: Class,
    /// Id of the rule.
    pub rule: &'static str,
    /// `lost_cpu_ns` as per cent of capacity; `null` if it is unknown.
    #[schemars(with = "Option<f64>")]
    pub share: f64,
    /// CPU time lost to this bottleneck, the sum of `leaves`; `null` if it is unknown.
    #[schemars(with = "Option<u64>")]
    pub lost_cpu_ns: u64,
    /// The leaves of the ledger that make up the cost, wholly or in part. Empty for a finding on
    /// published figures, which have no ledger.
    pub leaves: Vec<Part>,
    /// How many times as fast the work would be without this bottleneck.
    pub worth: Worth,
    /// The same gain, computed from the demand alone: the work gets back the CPU time that the
    /// bottleneck costs.
    pub demand: f64,
    /// `lost_cpu_ns` as per cent of the CPU time that the work used or lacked: what decides whether
    /// the loss matters.
    #[schemars(skip)]
    pub wanted_pct: f64,
    /// CPU time that threads lacked though no CPU was idle: what an overload is measured by. It
    /// costs no capacity.
    #[schemars(skip)]
    pub lacked_ns: u64,
    /// Stable id of the rule's explanation that the finding uses.
    pub story: &'static str,
    /// The finding in one sentence.
    pub summary: String,
    /// The threads, locks and other objects that cause the bottleneck.
    pub culprits: Vec<Culprit>,
    /// The figures on which the rule decides, each with the threshold that it is compared with.
    pub evidence: Vec<Evidence>,
    /// It is ruled out for its size alone.
    #[schemars(skip)]
    pub is_too_little: bool,
    /// Why the rule does not fire; `null` if it fires.
    pub ruled_out: Option<String>,
    /// What to do.
    pub advice: Vec<String>,
}

impl Serialize for Finding {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        use serde::ser::SerializeStruct;
        let mut out = s.serialize_struct("Finding", 13)?;
        out.serialize_field("class", &self.class)?;
        out.serialize_field("rule", self.rule)?;
        out.serialize_field("share", &self.priced().map(|_| self.share))?;
        out.serialize_field("lost_cpu_ns", &self.priced())?;
        out.serialize_field("worth", &self.worth)?;
        out.serialize_field("demand", &self.demand)?;
        out.serialize_field("leaves", &self.leaves)?;
        out.serialize_field("story", self.story)?;
        out.serialize_field("summary", &self.summary)?;
        out.serialize_field("culprits", &self.culprits)?;
        out.serialize_field("evidence", &self.evidence)?;
        out.serialize_field("ruled_out", &self.ruled_out)?;
        out.serialize_field("advice", &self.advice)?;
        out.end()
    }
}

impl Finding {
    /// The CPU time lost, if known.
    pub fn priced(&self) -> Option<u64> {
        (!self.share.is_nan()).then_some(self.lost_cpu_ns)
    }
}

/// The cause of a bottleneck: a thread, a lock, a file, a system call …
#[derive(Clone, Debug, Default, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Culprit {
    /// Kind of the culprit. For objects that threads wait for: the `usage` of its row in `waits`,
    /// or else the `kind` (`mutex`, `semop`, `pipe` …). Otherwise `thread`, `syscall`, `softirq` …
    pub kind: &'static str,
    /// Id of the culprit within its kind. For objects that threads wait for: the `object` of its
    /// row in `waits`. Otherwise a thread id, a system call number or an address.
    pub id: String,
    /// Name of the culprit. For objects that threads wait for, it includes the kind and the
    /// process: `mutex 0x7f71238a0108 of wl (587)`.
    pub name: String,
    /// Id of the thread, if the culprit is a thread.
    pub tid: Option<u32>,
    /// Process of the culprit.
    pub pid: Option<u32>,
    /// CPU time that the culprit accounts for: CPU time that was lost to it, or for which it ran.
    pub ns: u64,
    /// Threads that had the object while other threads waited for it, longest first. Empty if the
    /// culprit is not an object, or if the trace does not show which threads had it.
    pub holders: Vec<Person>,
    /// What the holders did while other threads waited, longest first. The times add up to the time
    /// for which they had the object while threads waited for it. Empty if the culprit is not a
    /// lock, or if the trace does not show which threads had it.
    pub holders_did: Vec<HolderTime>,
    /// The gain if the holders never slept while other threads waited, or if the holders always had
    /// a CPU. Empty if neither makes a difference, or if nothing was replayed.
    pub holders_worth: Vec<HolderWorth>,
    /// Threads that waited for the culprit, longest wait first. Empty if no waiter is known.
    pub waiters: Vec<Person>,
    /// Number of threads that held the culprit; `holders` lists the most important of them. `null`
    /// if no holder is known.
    pub holders_in_all: Option<u64>,
    /// Number of threads that waited for the culprit; `waiters` lists the most important of them.
    /// `null` if no waiter is known.
    pub waiters_in_all: Option<u64>,
    /// Total time for which all waiters waited for the culprit; `null` if no waiter is known.
    pub waited_ns: Option<u64>,
    /// The code of the threads that wait for the culprit, that end the waits, or that run; `null`
    /// without call chains.
    pub code: Option<Around>,
    /// What it does to the others, for those who put it into words.
    #[serde(skip)]
    pub role: Role,
}

/// How a [`Culprit`] affects other threads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Role {
    /// It costs CPU time; nothing else is known.
    #[default]
    Costs,
    /// One thread at a time holds it, the others sleep.
    Contended,
    /// One thread at a time holds something, and the others repeat this call meanwhile.
    Spins,
    /// Threads spin in this code, in user mode, until another one lets them continue.
    Loops,
    /// Threads sleep until another one hands something over through it.
    Handover,
    /// Threads sleep until the last one arrives.
    Barrier,
    /// Threads sleep until one busy thread has served them through it.
    Served,
    /// Threads sleep for a device behind it.
    Device,
    /// Threads sleep or spin for a kernel lock.
    KernelLock,
    /// A thread that others wait for.
    Server,
    /// The thread that others wait for at a barrier.
    Straggler,
    /// A thread that runs.
    Runs,
    /// A thread that is ready to run, while only other CPUs idle; or a program whose threads are
    /// ready, while no CPU idles.
    Queued,
    /// A program that is ready to run, but throttled.
    Throttled,
    /// Work of a driver that others wait for.
    Driver,
}

/// A thread's part in a [`Culprit`]: how long it held the object, or waited for it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Person {
    /// Id of the thread.
    pub tid: u32,
    /// Process of the thread; `null` if the trace does not contain it.
    pub pid: Option<u32>,
    /// Name of the thread.
    pub comm: String,
    /// Time for which a holder held the object, or a waiter waited for it.
    pub ns: u64,
    /// Part of all time that threads waited for the object, in per cent: for a holder, the part
    /// during which it had the object; for a waiter, the part that it waited. `null` if no waiter
    /// is known.
    pub pct: Option<f64>,
    /// Whether the time is inferred from wake-ups, and not known from a call that names the object.
    pub inferred: bool,
}

/// One figure on which a rule decides.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Evidence {
    /// What was measured.
    pub metric: String,
    /// The value; `null` if the trace does not contain it.
    pub value: Option<f64>,
    /// Unit of the value: `%`, `threads`, `1/s`.
    pub unit: &'static str,
    /// The threshold in force that the value is compared with, if there is one.
    pub threshold: Option<f64>,
    /// The key of that threshold.
    #[serde(skip)]
    pub threshold_key: Option<&'static str>,
    /// Where the figure, or its threshold, comes from.
    pub source: &'static str,
}

impl Evidence {
    /// A figure without threshold.
    pub(crate) fn of(
        metric: impl Into<String>,
        value: f64,
        unit: &'static str,
        source: &'static str,
    ) -> Evidence {
        Evidence {
            metric: metric.into(),
            value: Some((value * 1000.0).round() / 1000.0),
            unit,
            threshold: None,
            threshold_key: None,
            source,
        }
    }

    /// The figure of a check, with the limit that it is compared with.
    pub(crate) fn checked(
        metric: impl Into<String>,
        check: &Check,
        unit: &'static str,
        source: &'static str,
    ) -> Evidence {
        Evidence {
            threshold: Some(check.limit),
            threshold_key: Some(check.threshold.key),
            ..Evidence::of(metric, check.value, unit, source)
        }
    }

    /// Compared with this threshold, whose value is the one in force.
    pub(crate) fn against(self, thresholds: &Thresholds, threshold: &Threshold) -> Evidence {
        Evidence {
            threshold: Some(thresholds.get(threshold)),
            threshold_key: Some(threshold.key),
            ..self
        }
    }
}

/// The number of programs that are named.
pub(crate) const PROGRAMS: usize = 3;

/// What the chosen threads did with their time, and which other programs used the CPUs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Chosen {
    /// The chosen threads: names, each with its process.
    pub names: Vec<String>,
    /// Number of the chosen threads.
    pub threads: u64,
    /// Total lifetime of the threads.
    pub life_ns: u64,
    /// Time for which the chosen threads were on a CPU.
    pub running_ns: u64,
    /// Time for which the chosen threads were ready, but without a CPU.
    pub ready_ns: u64,
    /// Time for which the chosen threads were asleep.
    pub asleep_ns: u64,
    /// The objects that the chosen threads slept for, longest first.
    pub waits: Vec<ChosenWait>,
    /// The other programs that used the CPUs, the most CPU time first; all kernel threads count as
    /// one program.
    pub others: Vec<BackgroundProgram>,
}

/// An object that chosen threads slept for.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct ChosenWait {
    /// Name of the object, as in `holdup waits`.
    pub object: String,
    /// Total time for which the chosen threads slept for the object.
    pub ns: u64,
    /// Id of the rule that classified the waits as harmful or idle, as in the object's row of
    /// `holdup waits`.
    pub rule: &'static str,
    /// The threads that held the object or ended the waits, the longest time first.
    pub by: Vec<String>,
}

impl Chosen {
    /// The threads, in few words.
    pub fn listed(&self) -> String {
        let few = self.names.iter().take(PROGRAMS).cloned().collect::<Vec<_>>().join(", ");
        match self.names.len().saturating_sub(PROGRAMS) {
            0 => few,
            more => format!("{few} and {more} more"),
        }
    }

    /// What they did, in a sentence.
    pub fn course(&self) -> String {
        let of = |ns| percent(ns, self.life_ns);
        format!(
            "{}: running {:.1} % of the time, ready but without a CPU {:.1} %, asleep {:.1} %",
            self.listed(),
            of(self.running_ns),
            of(self.ready_ns),
            of(self.asleep_ns)
        )
    }

    /// What they slept for, a line each.
    pub fn slept(&self) -> Vec<String> {
        let line = |w: &ChosenWait| {
            let by = match &w.by[..] {
                [] => String::new(),
                by => format!("; by {}", by.join(", ")),
            };
            let pct = percent(w.ns, self.life_ns);
            format!("asleep {pct:.1} % for {} ({}{by})", w.object, w.rule)
        };
        self.waits.iter().map(line).collect()
    }

    /// The other programs on the CPUs, in a line.
    pub fn concurrent(&self) -> Option<String> {
        let of = |p: &BackgroundProgram| format!("{} {:.1} %", p.name(), p.pct);
        let others: Vec<String> = self.others.iter().map(of).collect();
        let all = others.join(", ");
        (!others.is_empty()).then(|| format!("capacity taken by other programs: {all}"))
    }
}

/// The story of findings that the trace cannot show.
pub(crate) const NOT_JUDGED: &str = "not-judged";
