//! What mending that which the verdict names would gain: the trace replayed without it.
//!
//! A rule says what something costs in CPU time. Whether the work would be done sooner without it
//! is another question: something else may hold it up just as long.

use crate::report::{Class, Culprit, Diagnosis, Role};
use holdup_attribution::Leaf;
use holdup_passes::Analysis;
use holdup_replay::{
    Change, LockChange, ObjectId, Program, Seeds, doubts, off_pct, predict_all, relief, words,
};
use serde::Serialize;
use std::fmt;
use std::path::Path;

/// Recordings of up to so many bytes are replayed unasked. The steps of a larger one take more
/// memory than the rest of a diagnosis, and its replay more time (docs/models.md).
const SMALL: u64 = 64 << 20;

/// Whether a recording is replayed unasked. Nobody knows how long standard input is, or a folder.
pub fn is_small(trace: &Path) -> bool {
    std::fs::metadata(trace).is_ok_and(|meta| meta.is_file() && meta.len() <= SMALL)
}

/// What a replay says of the verdict.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Gain {
    /// It was replayed without what the verdict names.
    Replayed(Replayed),
    /// There is no figure.
    Unknown(Unknown),
}

/// The work without what the verdict names.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Replayed {
    /// What is different, in the words of `holdup whatif`.
    pub change: String,
    /// The same in plain words.
    #[serde(skip)]
    pub fix: String,
    /// Time of the work in the unchanged replay.
    pub unchanged_ns: u64,
    /// Time of the work with the change.
    pub wall_ns: u64,
    /// `unchanged_ns / wall_ns`.
    pub gain: f64,
    /// The same of the longest replay of the change; all are alike but for chance.
    pub gain_low: f64,
    /// The same of the shortest.
    pub gain_high: f64,
    /// The replays with the change and those without it do not overlap.
    pub beyond_chance: bool,
    /// Times that threads waited for each other in a ring in the replay and one was let go: the
    /// more, the less the figure means.
    pub forced: u64,
    /// What holds the work up then; `null` where nothing that was tried gains more.
    pub next: Option<Then>,
}

/// The hold-up after the first.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Then {
    /// What removes it, in the words of `holdup whatif`.
    pub change: String,
    /// The same in plain words.
    #[serde(skip)]
    pub fix: String,
    /// How many times as fast that too would make it, beyond the first change.
    pub gain: f64,
}

/// Why there is no figure.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Unknown {
    /// Always `null`.
    pub gain: (),
    /// Why.
    pub reason: String,
}

impl Gain {
    /// There is no figure, and why.
    pub fn unknown(reason: impl Into<String>) -> Gain {
        Gain::Unknown(Unknown { gain: (), reason: reason.into() })
    }

    /// Replay what was analysed with [`holdup_passes::Detail::Steps`], without what the verdict of
    /// `diagnosis` names.
    pub fn of(analysis: &Analysis, diagnosis: &Diagnosis) -> Gain {
        replayed(analysis, diagnosis).map_or_else(Gain::unknown, Gain::Replayed)
    }
}

fn replayed(analysis: &Analysis, diagnosis: &Diagnosis) -> Result<Replayed, String> {
    // Some classes need no program to be refused.
    refused(diagnosis.verdict.class)?;
    let program = Program::new(analysis).map_err(|e| e.to_string())?;
    let changes = changes(&program, diagnosis)?;
    let mut found =
        predict_all(&program, &[Vec::new(), changes.clone()], Seeds::of(&program)).into_iter();
    let mut next = || found.next().and_then(Result::ok).ok_or("it cannot be replayed");
    let (unchanged, changed) = (next()?, next()?);
    let doubts = doubts(analysis, off_pct(&program, &unchanged));
    if let Some(doubt) = doubts.into_iter().next() {
        return Err(doubt);
    }
    if changed.wall_ns > unchanged.wall_ns && changed.is_beyond_chance(&unchanged) {
        return Err("the replay is slower with it mended: threads would do their work in another \
                    order than the traced one"
            .to_owned());
    }
    let gain = |wall_ns: u64| unchanged.wall_ns as f64 / wall_ns.max(1) as f64;
    let then = holdup_replay::next_holdup(&program, &changes).map(|(change, gain)| Then {
        fix: words::fix(&program, &change),
        change: words::shown(&program, &[change]),
        gain,
    });
    Ok(Replayed {
        fix: changes.iter().map(|c| words::fix(&program, c)).collect::<Vec<_>>().join(" and "),
        change: words::shown(&program, &changes),
        unchanged_ns: unchanged.wall_ns,
        wall_ns: changed.wall_ns,
        gain: gain(changed.wall_ns),
        gain_low: gain(changed.wall_high_ns),
        gain_high: gain(changed.wall_low_ns),
        beyond_chance: changed.is_beyond_chance(&unchanged),
        forced: changed.forced,
        next: then,
    })
}

const SPUN: &str = "threads spin for it, which a replay cannot tell from work";

/// Classes that no change of a replay answers.
fn refused(class: Class) -> Result<(), String> {
    let why = match class {
        Class::Healthy => "nothing holds the work up",
        Class::NotEnoughEvidence => "there is no verdict",
        Class::MpUpOverhead => "a replay keeps the CPU time that each call took",
        Class::HardwareBandwidth => "a replay keeps the CPU time that the work took",
        Class::CpuQuota => "a replay does not know what the quota would allow",
        _ => return Ok(()),
    };
    Err(why.to_owned())
}

/// What is done about that which the verdict names.
fn changes(program: &Program, diagnosis: &Diagnosis) -> Result<Vec<Change>, String> {
    let class = diagnosis.verdict.class;
    let finding = diagnosis.findings.iter().find(|f| f.class == class && f.ruled_out.is_none());
    let culprits = finding.map_or(&[][..], |f| &f.culprits[..]);
    // Waiting that is known by what calls cost is CPU time to the replay.
    let spun = finding.map_or(0, |f| {
        f.leaves.iter().filter(|p| p.path == Leaf::LockWait.path()).map(|p| p.ns).sum()
    });
    if finding.is_some_and(|f| spun * 2 > f.lost_cpu_ns) {
        return Err(SPUN.to_owned());
    }
    match class {
        Class::CpuOverload => {
            return Ok(vec![Change::Cpus((program.cpus * 2).min(holdup_replay::MAX_CPUS))]);
        }
        Class::IoBound => return no_devices(program),
        Class::FunneledDriver => return driver(program, culprits),
        _ => {}
    }
    // A thread that others wait for matters more than what they wait at.
    let one = culprits.iter().find(|c| matches!(c.role, Role::Server | Role::Late));
    let first = one.or(culprits.first()).ok_or("the verdict names nothing that can be changed")?;
    match first.role {
        Role::Server | Role::Late | Role::Runs => {
            Ok(vec![relief(program, thread(program, first)?)])
        }
        Role::Queued => Ok(vec![Change::AnyCpu]),
        Role::Device => no_devices(program),
        Role::Spins => Err(SPUN.to_owned()),
        Role::Inside => Err(format!(
            "of {} the replay does not know which thread would have had what to do",
            first.name
        )),
        Role::Throttled | Role::Driver | Role::Costs => Err(format!(
            "of {} {} the replay does not know who waits for whom",
            first.kind, first.name
        )),
        Role::Turns | Role::Handover | Role::Barrier | Role::Served | Role::KernelLock => {
            let mut ids: Vec<ObjectId> =
                culprits.iter().filter_map(|c| object(program, c)).collect();
            ids.sort_unstable();
            ids.dedup();
            match ids.is_empty() {
                true => Err(format!("no thread is seen to sleep for {}", first.name)),
                false => Ok(ids.into_iter().map(|id| Change::Lock(id, LockChange::None)).collect()),
            }
        }
    }
}

fn no_devices(program: &Program) -> Result<Vec<Change>, String> {
    match program.objects.iter().any(|o| o.is_device && o.waits > 0) {
        true => Ok(vec![Change::NoDevices]),
        false => Err("no wait of the trace is known to be for a device".to_owned()),
    }
}

/// Interrupts can be spread, and a thread of the kernel can be several.
fn driver(program: &Program, culprits: &[Culprit]) -> Result<Vec<Change>, String> {
    match culprits.first() {
        Some(c) if matches!(c.kind, "irq" | "softirq") => Ok(vec![Change::SpreadIrqs]),
        Some(c) if c.tid.is_some() => Ok(vec![relief(program, thread(program, c)?)]),
        Some(c) => Err(format!(
            "a replay knows interrupts and threads; who would do the work of {} {} is not known",
            c.kind, c.name
        )),
        None => Err("the verdict names no driver".to_owned()),
    }
}

/// The thread with this id that ran longest: an id may have been used again.
fn thread(program: &Program, culprit: &Culprit) -> Result<usize, String> {
    let threads = program.threads.iter().enumerate();
    let same = threads.filter(|(_, t)| Some(t.tid) == culprit.tid);
    let found = same.max_by_key(|(_, t)| t.run_ns).map(|(i, _)| i);
    found.ok_or_else(|| format!("{} is no thread of the replay", culprit.name))
}

/// What threads wait for, by the name that it has in all tables; of several that of the threads
/// which the verdict names, and that which was waited for longest.
fn object(program: &Program, culprit: &Culprit) -> Option<ObjectId> {
    let name = format!("{} {}", culprit.kind, culprit.id);
    let pid = culprit.pid.map(|pid| format!(", pid {pid}"));
    let fits = |known: &str| match known.strip_prefix(&name) {
        Some(rest) if rest.is_empty() || rest.starts_with(" of ") || rest.starts_with(", pid ") => {
            // One that has no other of its name is not told apart.
            pid.as_ref().is_none_or(|pid| known.ends_with(pid) || !known.contains(", pid "))
        }
        _ => false,
    };
    let objects = program.objects.iter().zip(0..);
    let fitting = objects.filter(|(o, _)| fits(&o.name));
    let people = || culprit.waiters.iter().chain(&culprit.holders);
    let of_them = |known: &str| people().any(|p| known.contains(&format!(" of {}", p.comm)));
    fitting.max_by_key(|(o, _)| (of_them(&o.name), o.wait_ns)).map(|(_, i)| ObjectId(i))
}

fn time(ns: u64) -> String {
    match ns {
        0..1_000_000 => format!("{:.1} us", ns as f64 / 1e3),
        1_000_000..1_000_000_000 => format!("{:.1} ms", ns as f64 / 1e6),
        _ => format!("{:.2} s", ns as f64 / 1e9),
    }
}

/// One sentence, or two.
impl fmt::Display for Gain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let r = match self {
            Gain::Unknown(why) => {
                return write!(f, "What mending this would gain is not known: {}.", why.reason);
            }
            Gain::Replayed(r) => r,
        };
        write!(f, "Replayed with a change, {}, the work takes ", r.fix)?;
        if r.beyond_chance {
            write!(
                f,
                "{} instead of {}: {:.2} times as fast ({:.2} to {:.2}).",
                time(r.wall_ns),
                time(r.unchanged_ns),
                r.gain,
                r.gain_low,
                r.gain_high
            )?;
        } else {
            write!(f, "as long as before ({}), but for chance.", time(r.unchanged_ns))?;
        }
        match &r.next {
            Some(then) => {
                write!(f, " After that most is gained by {}: {:.2} times", then.fix, then.gain)
            }
            None => return write!(f, " After that nothing that was tried gains more."),
        }?;
        f.write_str(" as fast again.")
    }
}
