//! The critical path of a thread: what it did and, while it slept, what the threads did that it
//! slept for.
//!
//! ```text
//!   T   ─run──┐ asleep ........... ┌─run─┐ asleep ......... ┌─run──
//!             │                    │woken │                 │woken
//!   W         └──run──┐ asleep ...─┘ by W └ (the disk) ─────┘ by an interrupt
//!   V                 └──run───────┘ W woken by V
//! ```
//!
//! Every moment of thread T's life in the trace belongs to exactly one row, so the parts add up to
//! that life. A wait of T from s to e that W ended is replaced by what W did from s to e, and so
//! on; a wait that no thread ended stays a wait. The moments that another thread fills are charged
//! to the object of the innermost wait they replace.
//!
//! If a thread was created after s, its parent's activity counts until then. What the trace does
//! not show is unknown, not running.

use crate::{Attribution, is_recorder};
use holdup_passes::{Analysis, Interval, Object, Slot, Thread, percent};
use holdup_trace::{Nanos, Tid};
use serde::Serialize;
use std::collections::BTreeMap;

/// One part of the critical path, added up over all its occurrences.
#[derive(Clone, Debug, Default, PartialEq, Serialize, schemars::JsonSchema)]
pub struct PathRow {
    /// State of the thread: `run` (running, or ready to run), `wait` (asleep, and no thread ended
    /// the sleep) or `unknown` (the trace does not show it).
    pub state: &'static str,
    /// Thread that the path leads through.
    pub tid: u32,
    /// Process of the thread.
    pub pid: Option<u32>,
    /// Name of the thread.
    pub comm: String,
    /// Kind of the object through which the path reached the thread; empty if the path did not
    /// reach it through an object.
    pub kind: &'static str,
    /// What a futex is used for.
    pub usage: Option<&'static str>,
    /// The object through which the path reached the thread.
    pub object: String,
    /// Number of occurrences on the path.
    pub pieces: u64,
    /// Total time of the occurrences.
    pub total_ns: u64,
    /// Time of the longest occurrence.
    pub max_ns: u64,
    /// Part of the whole path, in per cent.
    pub pct_path: f64,
    /// The function of the program in which threads wait longest for the object, or which the
    /// thread runs longest, with its source line or file. `null` without call chains.
    pub code: Option<String>,
}

/// A critical path.
#[derive(Clone, Debug, Default, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Path {
    /// Whose.
    pub tid: u32,
    /// Its name.
    pub comm: String,
    /// Its length: the thread's life within the trace.
    pub total_ns: u64,
    /// Parts, longest first; they add up to `total_ns`.
    pub rows: Vec<PathRow>,
}

/// Why there is no critical path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NoPath {
    /// No thread has this number; or no chosen thread ran or slept.
    NoThread,
    /// A kernel thread of this name: what those sleep for is not kept.
    Kernel(String),
    /// The thread of this name did nothing: it slept from the first event to the last.
    Still(String),
}

/// A piece of a critical path.
#[derive(Clone, Copy, Debug)]
pub struct Piece {
    /// The thread that is active in it.
    pub slot: Slot,
    /// When it begins.
    pub from: Nanos,
    /// When it ends.
    pub to: Nanos,
    /// What the thread did.
    pub state: PieceState,
    /// The object of the wait through which the path got to this thread.
    pub through: Option<Object>,
}

/// What a thread did in a piece of a critical path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PieceState {
    /// It ran or was ready to run.
    Run,
    /// It slept, and no thread ended the sleep.
    Wait,
    /// The trace does not say.
    Unknown,
}

impl PieceState {
    /// As in tables.
    pub fn id(self) -> &'static str {
        match self {
            PieceState::Run => "run",
            PieceState::Wait => "wait",
            PieceState::Unknown => "unknown",
        }
    }
}

/// Chains longer than this end in the last thread's waits.
const DEPTH: usize = 48;

/// A thread, its state, and the object through which the path got there.
type Part = (Slot, PieceState, Option<Object>);

/// A span of time to explain.
struct Task {
    slot: Slot,
    from: Nanos,
    to: Nanos,
    through: Option<Object>,
    depth: usize,
}

impl Attribution<'_> {
    /// The critical path of the thread with this id, or of the one that works and waits most;
    /// needs [`holdup_passes::Detail::Intervals`].
    ///
    /// # Errors
    /// Why there is no path.
    pub fn path(&self, tid: Option<u32>) -> Result<Path, NoPath> {
        let a = self.analysis;
        let (slot, t) = match tid {
            // If a number was used twice: the thread that did more, or lived longer.
            Some(tid) => a
                .all_threads()
                .filter(|(_, t)| t.tid.0 == tid)
                .max_by_key(|(s, t)| (self.effort(*s, t), a.life_ns(t), *s))
                .ok_or(NoPath::NoThread)?,
            None => {
                let slot = self.path_of().ok_or(NoPath::NoThread)?;
                (slot, a.thread(slot))
            }
        };
        if t.is_kthread() {
            return Err(NoPath::Kernel(a.comm(t)));
        }
        if t.active_ns() == 0 && a.sleeps(slot).is_empty() {
            return Err(NoPath::Still(a.comm(t)));
        }
        let (from, to) = (t.born.max(a.start), t.died.unwrap_or(a.end));
        let mut parts: BTreeMap<Part, (u64, Nanos, Nanos)> = BTreeMap::new();
        self.pieces(slot, &mut |piece| {
            let ns = piece.to - piece.from;
            let p = parts.entry((piece.slot, piece.state, piece.through)).or_default();
            *p = (p.0 + 1, p.1 + ns, p.2.max(ns));
        });
        let total_ns = to.saturating_sub(from);
        let names = self.object_names();
        let mut rows: Vec<PathRow> = parts
            .into_iter()
            .map(|((slot, state, through), (pieces, ns, max_ns))| {
                let t = a.thread(slot);
                let (kind, usage, object) =
                    through.and_then(|o| names.get(&o).cloned()).unwrap_or_default();
                PathRow {
                    state: state.id(),
                    tid: t.tid.0,
                    pid: a.pid(t),
                    comm: a.comm(t),
                    kind,
                    usage,
                    object,
                    pieces,
                    total_ns: ns,
                    max_ns,
                    pct_path: percent(ns, total_ns),
                    code: None,
                }
            })
            .collect();
        rows.sort_by(|a, b| {
            (b.total_ns, a.tid, a.state, &a.object).cmp(&(a.total_ns, b.tid, b.state, &b.object))
        });
        Ok(Path { tid: t.tid.0, comm: a.comm(t), total_ns, rows })
    }

    /// The default thread of the path: the one that works and waits most.
    pub fn path_of(&self) -> Option<Slot> {
        let a = self.analysis;
        let threads = a.threads().filter(|(_, t)| !t.is_kthread() && !is_recorder(&a.comm(t)));
        threads
            .max_by_key(|(s, t)| (self.effort(*s, t), std::cmp::Reverse(*s)))
            .map(|(slot, _)| slot)
    }

    /// How long a thread ran, was ready, or had harmful waits.
    fn effort(&self, slot: Slot, t: &Thread) -> Nanos {
        let a = self.analysis;
        let harmful = |i: &&Interval| {
            let object = self.objects.get(&a.final_object(i.object));
            object.is_some_and(|o| o.rule.is_harmful())
        };
        let sleeps = a.sleeps(slot);
        let asleep: Nanos = sleeps.iter().map(|i| i.to - i.from).sum();
        let waited: Nanos = sleeps.iter().filter(harmful).map(|i| i.to - i.from).sum();
        let active = t.active_ns();
        active + waited.min(asleep.saturating_sub(a.idle_wait_ns(slot)))
    }

    /// The critical path of a thread piece by piece, in no order: they cover its life without gap
    /// or overlap.
    pub fn pieces(&self, slot: Slot, take: &mut dyn FnMut(Piece)) {
        let (a, t) = (self.analysis, self.analysis.thread(slot));
        let (from, to) = (t.born.max(a.start), t.died.unwrap_or(a.end));
        let parents = Parents::of(a);
        let mut work = vec![Task { slot, from, to, through: None, depth: 0 }];
        while let Some(mut task) = work.pop() {
            self.before_birth(&mut task, &parents, &mut work, take);
            let all = a.sleeps(task.slot);
            let mut at = task.from;
            let first = all.partition_point(|i| i.to <= task.from);
            for i in all[first..].iter().take_while(|i| i.from < task.to) {
                let Interval { from, to, waker, object } = *i;
                let (from, to) = (from.max(task.from), to.min(task.to));
                self.awake(&task, (at, from), take);
                at = at.max(to);
                let object = a.final_object(object);
                // Woken after the end of the span: what the waker did until then is not known to
                // matter.
                if waker == Slot::IDLE || task.depth >= DEPTH || a.thread(waker).is_kthread() {
                    let (slot, state) = (task.slot, PieceState::Wait);
                    give(Piece { slot, from, to, state, through: Some(object) }, take);
                } else {
                    work.push(Task {
                        slot: waker,
                        from,
                        to,
                        through: Some(object),
                        depth: task.depth + 1,
                    });
                }
            }
            self.awake(&task, (at, task.to), take);
        }
    }

    /// Before its birth a thread did nothing: its parent did.
    fn before_birth(
        &self,
        task: &mut Task,
        parents: &Parents,
        work: &mut Vec<Task>,
        take: &mut dyn FnMut(Piece),
    ) {
        let a = self.analysis;
        let born = a.thread(task.slot).born.min(task.to);
        if born <= task.from {
            return;
        }
        let Task { slot, from, through, depth, .. } = *task;
        match parents.get(a, slot).filter(|&p| depth < DEPTH && !a.thread(p).is_kthread()) {
            Some(slot) => work.push(Task { slot, from, to: born, through, depth: depth + 1 }),
            None => give(Piece { slot, from, to: born, state: PieceState::Unknown, through }, take),
        }
        task.from = born;
    }

    /// What a thread did in a span in which it did not sleep, as far as known.
    fn awake(&self, task: &Task, (from, to): (Nanos, Nanos), take: &mut dyn FnMut(Piece)) {
        let (slot, through) = (task.slot, task.through);
        let mut add = |state, from, to| give(Piece { slot, from, to, state, through }, take);
        let known = self.analysis.known(slot);
        let mut at = from;
        let first = known.partition_point(|k| k.1 <= from);
        for &(begin, end) in known[first..].iter().take_while(|k| k.0 < to) {
            let (begin, end) = (begin.max(from), end.min(to));
            add(PieceState::Unknown, at, begin);
            add(PieceState::Run, begin, end);
            at = end;
        }
        add(PieceState::Unknown, at, to);
    }
}

fn give(piece: Piece, take: &mut dyn FnMut(Piece)) {
    if piece.to > piece.from {
        take(piece);
    }
}

/// The threads that have a number, in the order of their creation.
struct Parents(BTreeMap<Tid, Vec<Slot>>);

impl Parents {
    fn of(a: &Analysis) -> Parents {
        let mut slots: BTreeMap<Tid, Vec<Slot>> = BTreeMap::new();
        for (slot, t) in a.all_threads() {
            slots.entry(t.tid).or_default().push(slot);
        }
        Parents(slots)
    }

    /// A thread's creator: the latest to have the parent's number before the child was created.
    fn get(&self, a: &Analysis, child: Slot) -> Option<Slot> {
        let t = a.thread(child);
        let slots = self.0.get(&t.parent?)?;
        slots.iter().rev().copied().find(|&s| s != child && a.thread(s).born <= t.born)
    }
}
