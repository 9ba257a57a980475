//! The critical path of a thread: what it did, and while it slept, what those did it slept for.
//!
//! ```text
//!   T   ─run──┐ asleep ........... ┌─run─┐ asleep ......... ┌─run──
//!             │                    │woken │                 │woken
//!   W         └──run──┐ asleep ...─┘ by W └ (the disk) ─────┘ by an interrupt
//!   V                 └──run───────┘ W woken by V
//! ```
//!
//! Every moment of T's life in the trace belongs to exactly one row, so the path closes: its parts
//! add up to that life. A wait of T from s to e that W ended is replaced by what W did from s to e,
//! and so on; what no thread ended stays a wait. The moments another thread fills are charged to
//! the object of the innermost wait they stand in for.

use crate::{Attribution, is_recorder};
use holdup_passes::{Interval, Object, Slot, Thread, percent};
use holdup_trace::Nanos;
use serde::Serialize;
use std::collections::BTreeMap;

/// One part of the critical path, over all its occurrences.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PathRow {
    /// `run` (running, or ready to) or `wait` (asleep, and no thread ended it).
    pub state: &'static str,
    /// Thread.
    pub tid: u32,
    /// Its process.
    pub pid: Option<u32>,
    /// Its name.
    pub comm: String,
    /// Kind of the object that the path went through to get there; empty for the thread's own
    /// running.
    pub kind: &'static str,
    /// What a futex is used for.
    pub usage: Option<&'static str>,
    /// That object.
    pub object: String,
    /// Pieces of the path.
    pub pieces: u64,
    /// Their time.
    pub total_ns: u64,
    /// Longest piece.
    pub max_ns: u64,
    /// Of the path.
    pub pct_path: f64,
    /// The function of the program in which threads wait for the object, or which the thread runs,
    /// with its source line or file: the one with the most time. `null` without call chains.
    pub code: Option<String>,
}

/// A critical path.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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

/// Why there is no path to show.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NoPath {
    /// No thread has this number; or none that is chosen ran or slept.
    NoThread,
    /// A thread of the kernel, of this name: what those sleep for is not kept.
    Kernel(String),
    /// The thread of this name did nothing: it slept from the first event to the last.
    Still(String),
}

/// A piece of a critical path.
#[derive(Clone, Copy, Debug)]
pub struct Piece {
    /// Whose doings it is.
    pub slot: Slot,
    /// When it begins.
    pub from: Nanos,
    /// When it ends.
    pub to: Nanos,
    /// The thread ran or was ready to; else it slept, and no thread ended that.
    pub runs: bool,
    /// The object that the path went through to get there.
    pub through: Option<Object>,
}

/// Chains longer than this end in the last thread's waits.
const DEPTH: usize = 48;

/// Whose time, whether running, and through which object.
type Part = (Slot, bool, Option<Object>);

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
    /// Why there is none.
    pub fn path(&self, tid: Option<u32>) -> Result<Path, NoPath> {
        let a = self.analysis;
        let (slot, t) = match tid {
            // A number used twice: the thread that lived longer.
            Some(tid) => a
                .all_threads()
                .filter(|(_, t)| t.tid.0 == tid)
                .max_by_key(|(s, t)| (a.life_ns(t), *s))
                .ok_or(NoPath::NoThread)?,
            None => {
                let slot = self.path_of().ok_or(NoPath::NoThread)?;
                (slot, a.thread(slot))
            }
        };
        if t.is_kthread() {
            return Err(NoPath::Kernel(a.comm(t)));
        }
        if t.running_ns + t.woken_ns + t.preempted_ns == 0 && a.sleeps(slot).is_empty() {
            return Err(NoPath::Still(a.comm(t)));
        }
        let (from, to) = (t.born.max(a.start), t.died.unwrap_or(a.end));
        let mut parts: BTreeMap<Part, (u64, Nanos, Nanos)> = BTreeMap::new();
        self.pieces(slot, &mut |piece| {
            let ns = piece.to - piece.from;
            let p = parts.entry((piece.slot, piece.runs, piece.through)).or_default();
            *p = (p.0 + 1, p.1 + ns, p.2.max(ns));
        });
        let total_ns = to.saturating_sub(from);
        let names = self.object_names();
        let mut rows: Vec<PathRow> = parts
            .into_iter()
            .map(|((slot, runs, through), (pieces, ns, max_ns))| {
                let t = a.thread(slot);
                let (kind, usage, object) =
                    through.and_then(|o| names.get(&o).cloned()).unwrap_or_default();
                PathRow {
                    state: if runs { "run" } else { "wait" },
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

    /// The thread whose path is shown where nobody asks for another: the one that works and waits
    /// most.
    pub fn path_of(&self) -> Option<Slot> {
        let a = self.analysis;
        let threads = a.threads().filter(|(_, t)| !t.is_kthread() && !is_recorder(&a.comm(t)));
        threads
            .max_by_key(|(s, t)| (self.effort(*s, t), std::cmp::Reverse(*s)))
            .map(|(slot, _)| slot)
    }

    /// Time a thread ran, was ready, or waited for what holds it up.
    fn effort(&self, slot: Slot, t: &Thread) -> Nanos {
        let a = self.analysis;
        let harmful = |i: &&Interval| {
            let object = self.objects.get(&a.final_object(i.object));
            object.is_some_and(|o| o.rule.is_harmful())
        };
        let sleeps = a.sleeps(slot);
        let asleep: Nanos = sleeps.iter().map(|i| i.to - i.from).sum();
        let waited: Nanos = sleeps.iter().filter(harmful).map(|i| i.to - i.from).sum();
        let active = t.running_ns + t.woken_ns + t.preempted_ns;
        active + waited.min(asleep.saturating_sub(a.idle_wait_ns(slot)))
    }

    /// The critical path of a thread piece by piece, in no order: they cover its life without gap
    /// or overlap.
    pub fn pieces(&self, slot: Slot, take: &mut dyn FnMut(Piece)) {
        let (a, t) = (self.analysis, self.analysis.thread(slot));
        let (from, to) = (t.born.max(a.start), t.died.unwrap_or(a.end));
        let mut add =
            |slot: Slot, runs: bool, through: Option<Object>, (from, to): (Nanos, Nanos)| {
                if to > from {
                    take(Piece { slot, from, to, runs, through });
                }
            };
        let mut work = vec![Task { slot, from, to, through: None, depth: 0 }];
        while let Some(task) = work.pop() {
            let all = a.sleeps(task.slot);
            let mut at = task.from;
            let first = all.partition_point(|i| i.to <= task.from);
            for i in all[first..].iter().take_while(|i| i.from < task.to) {
                let Interval { from, to, waker, object } = *i;
                let (from, to) = (from.max(task.from), to.min(task.to));
                add(task.slot, true, task.through, (at, from));
                at = at.max(to);
                let object = a.final_object(object);
                // Woken later than the span ends: the waker's doings until then are not known to
                // matter.
                if waker == Slot::IDLE || task.depth >= DEPTH || a.thread(waker).is_kthread() {
                    add(task.slot, false, Some(object), (from, to));
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
            add(task.slot, true, task.through, (at, task.to));
        }
    }
}
