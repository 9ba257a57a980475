//! One recording, measured.

use crate::figures::{self, Figures};
use crate::metric::Table;
use crate::objects::{self, Object};
use holdup_attribution::{Attribution, is_recorder};
use holdup_diagnose::phases::{self, Wanted};
use holdup_diagnose::{Class, PhaseRow, Thresholds, diagnose_judged};
use holdup_passes::{Analysis, Options, Selection};
use holdup_trace::{EventDesc, Presence, QualityCode, Reader, Result, TraceInfo};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// Where and how a recording was made: what must be the same for figures to compare.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Setting {
    /// Host name, if the file says.
    pub host: Option<String>,
    /// Kernel release, if the file says.
    pub kernel: Option<String>,
    /// Architecture, if the file says.
    pub arch: Option<String>,
    /// CPUs in the ledger.
    pub cpus: u32,
    /// Events recorded: those that were seen, and those that the recorder says it recorded.
    pub events: Vec<String>,
}

/// Busy CPUs of a serial phase: one, and a little for other activity.
const SERIAL_CPUS: f64 = 1.2;

/// The verdict on one recording.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Judgement {
    /// The bottleneck's class.
    #[serde(deserialize_with = "class")]
    pub class: Class,
    /// 0 to 1, in hundredths.
    pub confidence: f64,
}

fn class<'de, D: serde::Deserializer<'de>>(from: D) -> std::result::Result<Class, D::Error> {
    let id = String::deserialize(from)?;
    Class::from_id(&id).ok_or_else(|| serde::de::Error::custom(format!("there is no class '{id}'")))
}

/// CPU time of programs outside the work.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Others {
    /// Their total, with the recorder.
    pub ns: u64,
    /// Whether the programs of the work are known; if not, only the recorder's time is counted.
    pub work_known: bool,
    /// The three that took most, with their time.
    pub programs: Vec<(String, u64)>,
}

/// One recording, measured.
#[derive(Clone, Debug, PartialEq)]
pub struct Run {
    /// The file's name, without its folder.
    pub name: String,
    /// Where and how it was made.
    pub setting: Setting,
    /// Length.
    pub wall_ns: u64,
    /// Serial set-up: how long at most one CPU worked before more did. `None` if unknown: on one
    /// CPU, or if that lasted to the end; not kept in baselines.
    pub setup_ns: Option<u64>,
    /// Events lost.
    pub lost_events: u64,
    /// Places where the recorder lost an unknown number of events.
    pub lost_chunks: u64,
    /// Events read.
    pub events: u64,
    /// Programs outside the work.
    pub others: Others,
    /// The verdict.
    pub verdict: Judgement,
    /// Tables for which the recording lacks the events.
    pub lacks: Vec<Table>,
    /// Everything that it measured.
    pub figures: Figures,
    /// Waiters and holders, by the key of [`Table::Waits`]; not kept in baselines.
    pub objects: Vec<Object>,
    /// What is wrong with the file, so that no conclusion is possible. A baseline has no such runs.
    pub damage: Vec<String>,
}

/// The class of more than half of the runs.
pub fn common_class(runs: &[Run]) -> Option<Class> {
    let count = |class: Class| runs.iter().filter(|r| r.verdict.class == class).count();
    Class::ALL.iter().copied().find(|&class| 2 * count(class) > runs.len())
}

impl Run {
    /// CPUs x wall time.
    pub fn capacity_ns(&self) -> u64 {
        self.wall_ns.saturating_mul(self.setting.cpus.into())
    }

    /// Whether both are one recording, whatever their files are called: no two runs take the same
    /// number of nanoseconds and have the same figures.
    pub fn is_same_recording(&self, other: &Run) -> bool {
        self.setting == other.setting
            && self.wall_ns == other.wall_ns
            && self.events == other.events
            && self.lost_events == other.lost_events
            && self.verdict == other.verdict
            && self.figures.are_those_of(&other.figures)
    }

    /// The part of capacity that other programs took, in per cent.
    pub fn others_pct(&self) -> f64 {
        match self.capacity_ns() {
            0 => 0.0,
            capacity => self.others.ns as f64 * 100.0 / capacity as f64,
        }
    }

    /// Read a trace and measure it, and replay `part` of it ([`holdup_diagnose::replayed_part`]).
    ///
    /// # Errors
    /// The errors of [`phases::read`].
    pub fn measure(reader: &dyn Reader, part: Option<f64>) -> Result<Run> {
        let selection = Selection::default().within(reader.info());
        let options = Options { selection, ..Options::default() };
        let wanted = Wanted { replay: part, whole: true };
        let judged = phases::read(reader, &options, &Thresholds::default(), wanted)?;
        let info = reader.info();
        let diagnosis = diagnose_judged(info, &judged, None, Thresholds::default());
        let verdict = &diagnosis.verdict;
        let setup = serial_setup(judged.several_phases());
        // Figures cover all that was recorded, because the beginnings of phases vary between runs.
        let mut whole = judged.whole.unwrap_or(judged.analysis);
        let Attribution { background, ledger, .. } = Attribution::from(&whole);
        whole.show_threads(threads_of(&whole, |pid| background.work.contains(&pid)));
        let attribution = Attribution::from(&whole);
        let name = info.path.file_name().unwrap_or(info.path.as_os_str());
        Ok(Run {
            name: name.to_string_lossy().into_owned(),
            setting: setting(info, whole.cpus),
            wall_ns: whole.wall_ns(),
            setup_ns: setup.filter(|_| whole.cpus > 1),
            lost_events: whole.lost_events,
            lost_chunks: whole.quality.count(QualityCode::LostChunks),
            events: whole.events,
            others: Others {
                ns: background.ns,
                work_known: background.work_known,
                programs: background.programs.iter().take(3).map(|p| (p.name(), p.ns)).collect(),
            },
            verdict: Judgement { class: verdict.class, confidence: verdict.confidence },
            lacks: lacks(&whole),
            figures: figures::of(&whole, &ledger, &attribution),
            objects: objects::objects(&attribution, &diagnosis),
            damage: damage(&whole),
        })
    }
}

/// The duration of the phases before the first in which more than one CPU works.
fn serial_setup(phases: &[PhaseRow]) -> Option<u64> {
    let serial = |p: &&PhaseRow| p.busy_cpus <= SERIAL_CPUS;
    let setup: Vec<&PhaseRow> = phases.iter().take_while(serial).collect();
    let parallel = setup.len() < phases.len() || phases.is_empty();
    parallel.then(|| setup.iter().map(|p| p.end_ns - p.start_ns).sum())
}

/// A file that was cut off, or that contains bytes that are no records: the rest may be any part.
fn damage(analysis: &Analysis) -> Vec<String> {
    let broken = [QualityCode::Truncated, QualityCode::SkippedBytes];
    let entries = analysis.quality.entries();
    let entries = entries.iter().filter(|e| broken.iter().any(|c| c.code() == e.code));
    entries.map(|e| format!("{} {}", e.count, e.message)).collect()
}

/// The threads of these processes.
fn threads_of(analysis: &Analysis, wanted: impl Fn(u32) -> bool) -> BTreeSet<u32> {
    let of = |pid: Option<u32>, tid: u32| wanted(pid.unwrap_or(tid));
    let threads = analysis.all_threads().map(|(_, t)| t);
    threads
        .filter(|t| !t.is_kthread() && of(analysis.pid(t), t.tid.0))
        .filter(|t| !is_recorder(&analysis.comm(t)))
        .map(|t| t.tid.0)
        .collect()
}

fn setting(info: &TraceInfo, cpus: u32) -> Setting {
    let mut events: Vec<String> = (info.events.iter())
        .filter(|e| e.presence > Presence::Described && !e.system.is_empty())
        .map(EventDesc::full_name)
        .collect();
    events.sort();
    events.dedup();
    Setting {
        host: info.hostname.clone(),
        kernel: info.os_release.clone(),
        arch: info.arch.clone(),
        cpus,
        events,
    }
}

/// The tables that the recording cannot fill.
fn lacks(analysis: &Analysis) -> Vec<Table> {
    let recorded = analysis.capabilities.list();
    let has = |name: &str| recorded.iter().any(|(n, present, _)| *n == name && *present);
    let lacking = |table: &Table| match table.needs() {
        "" => false,
        "contention" => !analysis.sees_locks(),
        "irqs" => !["irqs", "softirqs", "workqueues"].into_iter().any(has),
        needs => !has(needs),
    };
    Table::ALL.iter().copied().filter(lacking).collect()
}
