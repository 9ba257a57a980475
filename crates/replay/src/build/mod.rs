//! From the steps of an analysis to programs.
//!
//! What happened becomes what must happen again. A sleep that another thread ended becomes a wait
//! for that thread to reach the same step, so a lock is passed on in the order of the trace. A
//! sleep that no traced thread ended keeps its length. Only a barrier waits for all its threads and
//! not for one: under a change another thread may arrive last.

mod backlog;
mod barriers;
mod bound;
mod clocks;
mod ends;
mod holds;
mod objects;
mod polls;
mod queues;
mod requests;
mod runs;
mod taken;
mod teams;
mod thread;
mod unseen;
mod work;
mod writer;

use crate::bits::BitSet;
use crate::program::{ObjectId, Op, Program, ReplayObject, ThreadProgram};
use crate::spans::Spans;
use holdup_attribution::{Attribution, JudgedObject, ObjectThreads};
use holdup_passes::limits::{ENOUGH, MATTERS, WELL_MET};
use holdup_passes::{Analysis, Held, Object, Slot, Thread};
use holdup_trace::Nanos;
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeMap;
use std::sync::OnceLock;

/// A thread's time slice while others wait, if the trace does not tell (`sysctl_sched_base_slice`
/// of machines with a few CPUs).
const SLICE_NS: Nanos = 3_000_000;
/// The kernel accepts no shorter slice (`min_sched_granularity_ns`); a damaged trace may show one.
pub(crate) const SHORTEST_SLICE_NS: Nanos = 100_000;
/// So many slices may be replayed for each step: in a trace each of them ends with a switch.
const SLICES: u64 = 64;
/// As many in any case.
const FEW_SLICES: u64 = 100_000;

/// The length of a slice. A damaged trace may last for years, because of one wrong time: then it is
/// so long that a replay ends.
fn slice_ns(analysis: &Analysis, steps: usize) -> Nanos {
    let traced = analysis.slice_ns().unwrap_or(SLICE_NS);
    let most = (steps as u64).saturating_mul(SLICES).max(FEW_SLICES);
    traced.max(SHORTEST_SLICE_NS).max(analysis.wall_ns() / most)
}

/// Why a trace cannot be replayed.
#[derive(Debug, thiserror::Error)]
pub enum CannotReplay {
    /// The trace does not say which threads ran.
    #[error("the trace has no sched_switch events, so it is unknown which threads ran when")]
    NoSwitches,
    /// No thread ran.
    #[error("no thread runs in this trace")]
    NothingRan,
}

struct Builder<'a> {
    analysis: &'a Analysis,
    slots: Vec<(Slot, &'a Thread)>,
    /// Thread number by slot.
    numbers: FxHashMap<Slot, u32>,
    /// The number of each thread's first wait.
    bases: Vec<u32>,
    /// What threads waited for.
    waited: &'a BTreeMap<Object, JudgedObject>,
    /// The threads around each object.
    around: &'a ObjectThreads,
    objects: Vec<ReplayObject>,
    ids: FxHashMap<Object, ObjectId>,
    /// Locks of the kernel by address.
    kernel: FxHashMap<u64, ObjectId>,
    /// Holds of locks whose acquisition is not traced.
    inferred: FxHashMap<Slot, Vec<Held>>,
    /// Holds of locks that go to the first thread to arrive.
    taken: FxHashMap<Slot, Vec<writer::Hold>>,
    /// Rounds of barriers, by the thread that slept in them and the sleep's index.
    in_round: FxHashMap<(Slot, u32), u32>,
    /// How idle CPUs skipped groups of threads.
    waited_while_idle: FxHashMap<bound::Alike, bound::WaitedWhileIdle>,
    /// When threads of the kernel slept.
    kernel_slept: FxHashMap<Slot, Spans>,
    /// Sleeps that a thread of the trace ended, by number.
    woken: BitSet,
    /// When other processes asked servers for something.
    asked: requests::Asked,
    /// Threads that other threads created.
    spawned: FxHashSet<Slot>,
    rounds: Vec<u32>,
    ops: Vec<Op>,
    times: Vec<Nanos>,
    usual_delay: Nanos,
    /// CPU time of a call outside of its events.
    around_call_ns: Nanos,
    looks_ns: Nanos,
}

impl Program {
    /// Builds the program from a judged analysis with [`holdup_passes::Detail::Steps`].
    ///
    /// # Errors
    /// The trace does not say which threads ran.
    pub fn new(judged: &Attribution<'_>) -> Result<Program, CannotReplay> {
        let analysis = judged.analysis;
        if !analysis.capabilities.switches {
            return Err(CannotReplay::NoSwitches);
        }
        let slots: Vec<(Slot, &Thread)> =
            analysis.all_threads().filter(|&(slot, _)| slot != Slot::IDLE).collect();
        let numbers = slots.iter().zip(0..).map(|(&(slot, _), i)| (slot, i)).collect();
        let mut bases = Vec::with_capacity(slots.len());
        let mut total = 0_u32;
        for &(slot, _) in &slots {
            bases.push(total);
            total = total.saturating_add(analysis.steps(slot).steps.len() as u32);
        }
        let asked = requests::Asked::new(analysis, &slots);
        let mut builder = Builder {
            analysis,
            slots,
            numbers,
            bases,
            waited: &judged.objects,
            around: &judged.by_object,
            objects: Vec::new(),
            ids: FxHashMap::default(),
            kernel: FxHashMap::default(),
            inferred: FxHashMap::default(),
            taken: FxHashMap::default(),
            in_round: FxHashMap::default(),
            waited_while_idle: FxHashMap::default(),
            kernel_slept: FxHashMap::default(),
            woken: BitSet::new(total),
            asked,
            spawned: FxHashSet::default(),
            rounds: Vec::new(),
            ops: Vec::new(),
            times: Vec::new(),
            usual_delay: 0,
            around_call_ns: analysis.around_call_ns(),
            looks_ns: 0,
        };
        builder.name_objects();
        builder.name_spinlocks();
        builder.tell_apart();
        builder.find_kernel_sleeps();
        builder.find_ends();
        builder.infer_holds();
        builder.find_taken();
        builder.find_rounds();
        builder.find_passed_over();
        builder.usual_delay = builder.usual_delay(builder.slots.iter().map(|s| s.0)).unwrap_or(0);
        builder.looks_ns = builder.usual_look();
        let mut threads: Vec<ThreadProgram> =
            (0..builder.slots.len()).map(|i| builder.thread(i)).collect();
        work::mark_workers(judged, &mut threads);
        teams::find_teams(analysis, &mut threads);
        let matters_pct = analysis.limit(&MATTERS);
        clocks::keep_waits(&threads, &mut builder.ops, &builder.times, matters_pct);
        let traced_wall_ns = builder.traced_span(&threads).ok_or(CannotReplay::NothingRan)?;
        let irq_ns = analysis.irq_ns();
        Ok(Program {
            threads,
            objects: builder.objects,
            cpus: analysis.cpu_list().len().max(1) as u32,
            traced_wall_ns,
            irq_ns,
            wall_ns: analysis.wall_ns(),
            slice_ns: slice_ns(analysis, builder.ops.len()),
            ops: builder.ops,
            times: builder.times,
            looks_ns: builder.looks_ns,
            numbers: total,
            rounds: builder.rounds,
            unchanged: OnceLock::new(),
            free_pct: matters_pct,
            met_pct: analysis.limit(&WELL_MET),
            free: OnceLock::new(),
            enough: analysis.limit(&ENOUGH) as usize,
            joins: OnceLock::new(),
            dealt: OnceLock::new(),
        })
    }
}

/// Whether `part` is at least `pct` per cent of `whole`.
pub(crate) fn is_part(part: Nanos, whole: Nanos, pct: f64) -> bool {
    part as f64 * 100.0 >= whole as f64 * pct
}
