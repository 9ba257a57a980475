//! The judgements on what the passes measured, made once and only here.
//!
//! ```text
//!  Analysis ──► Attribution ──┬─ waits      what each was for, and its leaf of the ledger
//!  (measured)   (judged)      ├─ contenders who contends for what, and so serves nobody by it
//!                             ├─ server     the one thread that most waiting is for
//!                             ├─ objects    whether waiting for them costs anything, and why
//!                             ├─ spinning   who waits by yielding
//!                             ├─ user_spinning who waits in a loop, by samples
//!                             ├─ contended  what calls cost because others were in the kernel
//!                             ├─ background who else was there
//!                             └─ ledger     where every CPU-second went
//! ```
//!
//! Tables, ledger, rules and guide read these values, so they cannot disagree. What has to be
//! decided while the pass runs is decided by [`JUDGE`] ([`wait`]).
//!
//! Every number that decides is a registered [`Threshold`] ([`limits`]).

mod alone;
mod assign;
pub mod background;
pub mod blamed;
pub mod call;
mod contenders;
pub mod driver;
pub mod graph;
mod held;
mod hist;
mod holding;
mod latency;
pub mod leaf;
pub mod ledger;
pub mod object;
mod one_lock;
pub mod path;
mod peers;
mod per_object;
pub mod phases;
mod resource;
pub mod section;
pub mod server;
pub mod spin;
pub mod table;
pub mod user_spin;
pub mod wait;

pub use alone::Alone;
pub use background::{Background, UnrelatedProgram, is_recorder};
pub use blamed::{Blamed, Sleeper};
pub use call::Contended;
pub use contenders::Contenders;
pub use driver::{Driver, Funnel, Worker};
pub use graph::{Edge, Graph, Node, Root};
pub use held::HeldInAll;
pub use holding::HoldingRow;
pub use holdup_passes::limits::{
    self, ALONE, Check, Direction, ENOUGH, LimitKind, MATTERS, NAMED, SERVER_ENDS, Setting,
    Threshold, ThresholdError, Thresholds,
};
pub use latency::{LatencyBy, LatencyRow, Unit, latencies};
pub use leaf::{Leaf, Total};
pub use ledger::{Ledger, LedgerNode};
pub use object::{JudgedObject, WaitRule};
pub use path::{NoPath, Path, PathRow, Piece, PieceState};
pub use phases::{Part, Phase, phases, phases_by_switches};
pub use resource::Resource;
pub use section::Section;
pub use server::Server;
pub use spin::Spinning;
pub use table::{Holder, WaitsBy, WaitsRow, in_words};
pub use user_spin::UserSpinning;
pub use wait::{JUDGE, Wait};

use holdup_passes::{
    Analysis, ByThread, Follow, Group, HoldSum, Object, Observer, Options, PairSum, See, Slot,
    SyscallRow, Window,
};
use holdup_trace::{Cpu, Quality, Reader, Result};
use std::collections::BTreeMap;

/// Read the whole trace once, with the judge of this crate.
///
/// # Errors
/// The errors of [`holdup_passes::analyze`].
pub fn analyze(reader: &dyn Reader, options: &Options) -> Result<Analysis> {
    holdup_passes::analyze(reader, options, &JUDGE)
}

/// As [`analyze`], with another reader of the trace; see [`holdup_passes::analyze_with`].
///
/// # Errors
/// The errors of [`holdup_passes::analyze_with`].
pub fn analyze_with(reader: &dyn Reader, options: &Options, see: &mut See<'_>) -> Result<Analysis> {
    holdup_passes::analyze_with(reader, options, &JUDGE, see)
}

/// As [`analyze`], with an observer; see [`holdup_passes::analyze_observed`].
///
/// # Errors
/// The errors of [`holdup_passes::analyze_observed`].
pub fn analyze_observed(
    reader: &dyn Reader,
    options: &Options,
    observer: &mut dyn Observer,
) -> Result<Analysis> {
    holdup_passes::analyze_observed(reader, options, &JUDGE, observer)
}

/// Read the trace once and analyse windows of it; see [`holdup_passes::analyze_parts`].
///
/// # Errors
/// The errors of [`holdup_passes::analyze_parts`].
pub fn analyze_parts(
    reader: &dyn Reader,
    options: &Options,
    cpus: &[Cpu],
    windows: &[Window],
    observer: Option<&mut dyn Observer>,
) -> Result<(Vec<Analysis>, Quality)> {
    holdup_passes::analyze_parts(reader, options, &JUDGE, cpus, windows, observer)
}

/// As [`analyze_parts`], each window handed out at its end; see [`holdup_passes::analyze_windows`].
///
/// # Errors
/// The errors of [`holdup_passes::analyze_windows`].
pub fn analyze_windows(
    reader: &dyn Reader,
    options: &Options,
    cpus: &[Cpu],
    windows: &[Window],
    done: &mut dyn FnMut(usize, Analysis),
) -> Result<Quality> {
    holdup_passes::analyze_windows(reader, options, &JUDGE, cpus, windows, None, done)
}

/// Read the trace once more and draw lanes; see [`holdup_passes::follow`].
///
/// # Errors
/// The errors of [`holdup_passes::follow`].
pub fn follow(reader: &dyn Reader, whole: &Analysis, follow: &Follow) -> Result<Analysis> {
    holdup_passes::follow(reader, whole, &JUDGE, follow)
}

/// An analysis, judged.
pub struct Attribution<'a> {
    /// The measurements.
    pub analysis: &'a Analysis,
    /// The limits in force.
    pub thresholds: Thresholds,
    /// System calls of the whole system, most elapsed time first.
    pub calls: Vec<SyscallRow>,
    /// Every wait that may explain idle CPUs, by cause, call, waker and object, in no order.
    pub waits: Vec<Wait>,
    /// Which threads contend for which objects.
    pub contenders: Contenders,
    /// The one thread that the others wait for, if there is one.
    pub server: Option<Server>,
    /// Whether one thread at a time had work.
    pub alone: Alone,
    /// Driver work, and what it is confined to.
    pub driver: Option<Driver>,
    /// The objects that threads waited for.
    pub objects: BTreeMap<Object, JudgedObject>,
    /// The mean factor by which application code is slower than undisturbed, 1 or more.
    pub slowdown: f64,
    /// System calls that cost more because of others in the kernel, most lost time first.
    pub contended: Vec<Contended>,
    /// Programs other than the work.
    pub background: Background,
    /// If the user chose threads: the programs outside that choice.
    pub chosen: Option<Background>,
    /// Programs whose threads wait for each other by yielding, most CPU time first.
    pub spinning: Vec<Spinning>,
    /// Programs whose threads wait for each other by spinning in user mode, most CPU time first.
    pub user_spinning: Vec<UserSpinning>,
    /// Where every CPU-second went.
    pub ledger: Ledger,
    /// The threads around each object.
    pub by_object: ObjectThreads,
}

impl<'a> From<&'a Analysis> for Attribution<'a> {
    /// Judge by the default limits.
    fn from(analysis: &'a Analysis) -> Attribution<'a> {
        Attribution::new(analysis, &Thresholds::default())
    }
}

/// The threads around each object. Built once: there may be many pairs.
pub struct ObjectThreads {
    /// Waits for each object by each thread.
    pub waited_by: ByThread<PairSum>,
    /// Waits for each object that each thread ended.
    pub ended_by: ByThread<PairSum>,
    /// How long each thread held each object.
    pub held_by: ByThread<HoldSum>,
}

impl ObjectThreads {
    fn of(analysis: &Analysis) -> ObjectThreads {
        ObjectThreads {
            waited_by: analysis.waited_by(),
            ended_by: analysis.ended_by(),
            held_by: analysis.held_by(),
        }
    }

    /// Those who waited for an object and those who ended the waits: some threads come twice.
    pub fn around(&self, object: Object) -> impl Iterator<Item = Slot> {
        let both = self.waited_by.of(object).iter().chain(self.ended_by.of(object));
        both.map(|&(slot, _)| slot)
    }
}

impl<'a> Attribution<'a> {
    /// The work and other programs: by the user's choice if there is one.
    pub fn who_works(&self) -> &Background {
        self.chosen.as_ref().unwrap_or(&self.background)
    }

    /// The calls that would want one lock most without the recorder: a name, and the section.
    pub fn fullest_section(&self) -> Option<(&str, Section)> {
        self.contended
            .iter()
            .filter_map(|c| Some((c, c.section?)))
            .max_by(|a, b| a.1.wanted_pct.total_cmp(&b.1.wanted_pct).then(b.0.nr.cmp(&a.0.nr)))
            .map(|(c, s)| (c.name.as_str(), s))
    }

    /// Judge.
    pub fn new(analysis: &'a Analysis, thresholds: &Thresholds) -> Attribution<'a> {
        let mut calls = analysis.syscalls(Group::System);
        calls.sort_by(|a, b| {
            (b.total_ns + b.pending_ns).cmp(&(a.total_ns + a.pending_ns)).then(a.nr.cmp(&b.nr))
        });
        let (rows, by_object) = (analysis.wait_rows(), ObjectThreads::of(analysis));
        let mut objects = object::measured(analysis, &by_object.ended_by);
        let around = (&objects, &by_object);
        let contenders = Contenders::of(analysis, &rows, around, thresholds);
        let server = server::server(analysis, &rows, &objects, &contenders, thresholds);
        let background = background::of(analysis, around, thresholds);
        let serial = server::serial(analysis, background.program, thresholds);
        object::judge(&mut objects, server.map(|s| s.slot));
        let mut waits = {
            let around = (&objects, &by_object, &background.work, &contenders);
            wait::judge(analysis, rows, server, around, serial, thresholds)
        };
        wait::lack_work(&objects, analysis, &mut waits);
        let slowdown = call::slowdown(analysis, &calls, thresholds);
        let contended = call::contended(analysis, &calls, &waits, slowdown, thresholds);
        let spinning = spin::spinning(analysis, thresholds);
        let user_spinning = user_spin::user_spinning(analysis, thresholds);
        let mut ledger = ledger::of(ledger::Judged {
            analysis,
            waits: &waits,
            contended: &contended,
            spinning: &spinning,
            thresholds,
        });
        ledger.bound(&mut waits);
        let alone = {
            let losses = (&ledger, &user_spinning[..]);
            Alone::of(analysis, serial, &background, losses, thresholds)
        };
        let driver = Driver::of(analysis);
        assign::calls(&mut ledger, &spinning);
        let application = ledger::application(analysis);
        assign::spinning(&mut ledger, (&spinning, &user_spinning), application);
        assign::unrecorded(&mut ledger, analysis, application, thresholds);
        if !driver.as_ref().is_some_and(Driver::is_confined) {
            assign::bound(&mut ledger, analysis, thresholds);
        }
        if let Some(driver) = &driver {
            driver.claim(&mut ledger);
        }
        alone.claim(&background, &mut ledger);
        wait::follow_ledger(&mut objects, analysis, &waits);
        let chosen = background::chosen(analysis, (&objects, &by_object));
        Attribution {
            chosen,
            objects,
            ledger,
            alone,
            driver,
            background,
            contended,
            spinning,
            user_spinning,
            analysis,
            thresholds: thresholds.clone(),
            calls,
            waits,
            contenders,
            server,
            slowdown,
            by_object,
        }
    }
}
