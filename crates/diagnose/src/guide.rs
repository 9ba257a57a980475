//! The findings as a walk: one question after the other, each with its figures.
//!
//! ```text
//!  busy? ──► each class that shows on busy CPUs ──┬──► healthy
//!    └─────► each class that shows on idle CPUs ──┘
//! ```
//!
//! A question asks whether one class is a bottleneck, the one with the largest gain first. Its
//! figures and answers are those of that class's finding, so the walk has no further conditions,
//! and following all recommendations leads to the verdict of `diagnose`. Any other branch says why
//! that class does not hold.

use crate::Extras;
use crate::facts::Facts;
use crate::phases::{Judged, PhaseRow};
use crate::report::{Class, Diagnosis, Finding};
use holdup_attribution::{Thresholds, Total};
use holdup_passes::Analysis;
use holdup_trace::TraceInfo;
use serde::{Serialize, Serializer};

/// A walk and what it ends in.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Walk {
    /// All questions of the guide, the first question first.
    pub questions: Vec<Question>,
    /// The report at its end.
    #[serde(skip)]
    pub diagnosis: Diagnosis,
}

/// A question of the guide.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Question {
    /// The id by which branches refer to it.
    pub id: &'static str,
    /// The question.
    pub text: String,
    /// Figures that help to answer the question.
    pub figures: Vec<Figure>,
    /// The possible answers.
    pub branches: Vec<Branch>,
    /// Index of the recommended branch.
    pub recommended: usize,
    /// Tables that show more, by the verb that prints them.
    pub tables: &'static [&'static str],
}

/// A figure that helps to answer a question.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Figure {
    /// What the figure measures.
    pub label: String,
    /// The value; `null` if the trace does not contain it.
    pub value: Option<f64>,
    /// Unit of the value.
    pub unit: &'static str,
}

/// A possible answer to a question.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Branch {
    /// The answer in words.
    pub answer: String,
    /// Why the figures support this answer.
    pub why: String,
    /// The question or the class that this answer leads to.
    pub to: To,
}

/// The end of a branch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, schemars::JsonSchema)]
#[schemars(with = "String", inline)]
pub enum To {
    /// Another question.
    Question(&'static str),
    /// The rule that judges this class, and with it the report.
    Class(Class),
}

impl Serialize for To {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        match self {
            To::Question(id) => s.serialize_str(id),
            To::Class(class) => s.serialize_str(class.id()),
        }
    }
}

impl Walk {
    /// The question with this id.
    pub fn question(&self, id: &str) -> Option<&Question> {
        self.questions.iter().find(|q| q.id == id)
    }

    /// The questions on the recommended way, and the class at its end.
    pub fn recommended(&self) -> (Vec<&Question>, Class) {
        let mut way = Vec::new();
        let mut at = self.questions.first();
        while let Some(q) = at.filter(|_| way.len() < self.questions.len()) {
            way.push(q);
            match q.branches[q.recommended].to {
                To::Class(class) => return (way, class),
                To::Question(id) => at = self.question(id),
            }
        }
        (way, self.diagnosis.verdict.class)
    }
}

/// Build the walk through a trace.
pub fn walk(info: &TraceInfo, analysis: &Analysis, thresholds: Thresholds) -> Walk {
    of(&Facts::with(info, analysis, None, thresholds), Vec::new())
}

/// The walk through the part of a trace that the verdict is about.
pub fn walk_judged(
    info: &TraceInfo,
    judged: &Judged,
    extras: Extras<'_>,
    thresholds: Thresholds,
) -> Walk {
    let mut facts = Facts::with_extras(info, &judged.analysis, extras, thresholds);
    facts.left_out_ns = judged.left_out_ns;
    facts.replay(judged);
    of(&facts, judged.several_phases().to_vec())
}

fn of(facts: &Facts<'_>, phases: Vec<PhaseRow>) -> Walk {
    let diagnosis = Diagnosis { phases, ..crate::judge(facts) };
    let on_busy = |f: &&Finding| shows_on_busy_cpus(f.class);
    let (busy, idle): (Vec<&Finding>, Vec<&Finding>) =
        diagnosis.findings.iter().partition(|f| on_busy(f));
    let mut questions = vec![first(facts, &diagnosis, &busy, &idle)];
    questions.extend(busy.iter().chain(&idle).map(|f| question(f, &busy, &idle)));
    Walk { questions, diagnosis }
}

/// Whether CPUs are busy, and not idle, while a class is the bottleneck.
fn shows_on_busy_cpus(class: Class) -> bool {
    matches!(
        class,
        Class::CpuOverload
            | Class::KernelLockConflict
            | Class::HardwareBandwidth
            | Class::MpUpOverhead
    )
}

fn figure(label: impl Into<String>, value: Option<f64>, unit: &'static str) -> Figure {
    Figure { label: label.into(), value: value.map(|v| (v * 100.0).round() / 100.0), unit }
}

/// The first question.
fn first(f: &Facts<'_>, d: &Diagnosis, busy: &[&Finding], idle: &[&Finding]) -> Question {
    const OF_CAPACITY: &str = "% of capacity";
    let (busy_pct, idle_pct) = (f.total_pct(Total::Busy), f.total_pct(Total::Idle));
    let rate = f.analysis.sar(false).first().and_then(|s| s.cswch_per_s);
    let to = |of: &[&Finding]| {
        of.first().map_or(To::Class(Class::Healthy), |f| To::Question(f.class.id()))
    };
    let holds = |of: &[&Finding]| of.iter().any(|f| f.class == d.verdict.class);
    Question {
        id: "busy",
        text: "Are the CPUs busy?".to_owned(),
        figures: vec![
            figure("CPUs", Some(f64::from(f.analysis.cpus)), ""),
            figure("busy", Some(busy_pct), OF_CAPACITY),
            figure("idle", Some(idle_pct), OF_CAPACITY),
            figure("unaccounted for", Some(f.pct(f.unseen())), OF_CAPACITY),
            figure("threads running or ready, on average", Some(f.queue), "threads"),
            figure("context switches", rate, "1/s"),
        ],
        branches: vec![
            Branch {
                answer: "yes: find out what keeps them busy".to_owned(),
                why: format!("{busy_pct:.0} % of capacity is used"),
                to: to(busy),
            },
            Branch {
                answer: "no: find out what threads wait for".to_owned(),
                why: format!("{idle_pct:.0} % of capacity is idle"),
                to: to(idle),
            },
        ],
        // Both may hold: then the one that leads on.
        recommended: match (holds(busy), holds(idle)) {
            (true, _) => 0,
            (_, true) => 1,
            _ => usize::from(busy_pct < idle_pct),
        },
        tables: &["cpus"],
    }
}

/// The question whether this finding holds.
fn question(f: &Finding, busy: &[&Finding], idle: &[&Finding]) -> Question {
    let own = if shows_on_busy_cpus(f.class) { busy } else { idle };
    let next = own.iter().skip_while(|o| o.class != f.class).nth(1);
    let why = match &f.ruled_out {
        None => format!("without this loss the work would be {:.2} times as fast", f.worth.times),
        Some(why) => why.clone(),
    };
    Question {
        id: f.class.id(),
        text: asked(f.class).to_owned(),
        figures: f.evidence.iter().map(|e| figure(e.metric.clone(), e.value, e.unit)).collect(),
        branches: vec![
            Branch { answer: "yes".to_owned(), why: f.summary.clone(), to: To::Class(f.class) },
            Branch {
                answer: "no".to_owned(),
                why,
                to: next.map_or(To::Class(Class::Healthy), |n| To::Question(n.class.id())),
            },
        ],
        recommended: usize::from(f.ruled_out.is_some()),
        tables: tables(f.class),
    }
}

fn asked(class: Class) -> &'static str {
    match class {
        Class::WorkloadImbalance => "Do threads wait for the work of one busy thread?",
        Class::ApplicationSerialization => "Do threads contend for a service of the kernel?",
        Class::ThreadSerialization => "Do threads contend for a lock of their process?",
        Class::KernelLockConflict => "Do threads wait for locks of the kernel itself?",
        Class::FunneledDriver => {
            "Do threads wait for interrupts or kernel workers that run on one CPU?"
        }
        Class::MpUpOverhead => "Do system calls take longer than on one CPU?",
        Class::HardwareBandwidth => "Does the hardware slow the application's code down?",
        Class::IoBound => "Do threads wait for disks?",
        Class::CpuQuota => "Does a CPU quota keep threads off idle CPUs?",
        Class::CpuOverload => "Are there more ready threads than CPUs?",
        Class::Healthy | Class::NotEnoughEvidence => "Is nothing wrong?",
    }
}

/// Tables with details, by the verb that prints them.
fn tables(class: Class) -> &'static [&'static str] {
    match class {
        Class::ApplicationSerialization | Class::ThreadSerialization => &["waits", "syscalls"],
        Class::KernelLockConflict => &["locks", "syscalls"],
        Class::FunneledDriver => &["irqs", "cpus"],
        Class::IoBound => &["waits", "irqs"],
        Class::CpuQuota | Class::CpuOverload => &["switches", "procs"],
        Class::MpUpOverhead | Class::HardwareBandwidth => &["syscalls", "procs"],
        Class::WorkloadImbalance | Class::Healthy | Class::NotEnoughEvidence => &["procs", "waits"],
    }
}
