//! What threads wait for: one busy server, the last thread at a barrier, or the partner in a
//! ping-pong pair.

use crate::leaf::Leaf;
use crate::limits::{ALONE, Check, SERVER_ENDS, Thresholds};
use crate::{Contenders, ObjectThreads, is_recorder};
use holdup_passes::{
    Analysis, Cause, FutexUse, Object, ObjectKind, ObjectStats, Outside, PairSum, Slot, Thread,
    WaitRow,
};
use holdup_syscalls::wait_kind;
use holdup_trace::Nanos;
use std::collections::{BTreeMap, BTreeSet};

/// The thread that the others wait for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Server {
    /// The thread.
    pub slot: Slot,
    /// It is not busy all the time, but most often the last to arrive at a barrier.
    pub at_barriers: bool,
    /// How long it ran or was ready.
    pub busy_ns: Nanos,
    /// How long it existed.
    pub life_ns: Nanos,
    /// Waiting time of others that it ended.
    pub ended_wait_ns: Nanos,
    /// All such waiting time.
    pub all_wait_ns: Nanos,
}

impl Server {
    /// Waiting time of others that it ended, in per cent of all such waiting time.
    pub fn ended_pct(&self) -> f64 {
        pct(self.ended_wait_ns, self.all_wait_ns)
    }

    /// Time running or ready, in per cent of its life.
    pub fn busy_pct(&self) -> f64 {
        pct(self.busy_ns, self.life_ns)
    }
}

fn pct(part: Nanos, whole: Nanos) -> f64 {
    part as f64 * 100.0 / whole.max(1) as f64
}

/// The thread that ended most of the waiting time, and that time.
pub(crate) fn top_waker(ended_by: &BTreeMap<Slot, Nanos>) -> Option<(Slot, Nanos)> {
    ended_by.iter().max_by_key(|(s, ns)| (**ns, std::cmp::Reverse(**s))).map(|(&s, &ns)| (s, ns))
}

/// A wait for what another thread sends through a pipe or socket. A kernel service in an untraced
/// call counts too: those in which threads contend are always traced.
fn is_stream(analysis: &Analysis, row: &WaitRow) -> bool {
    row.cause == Cause::KernelService
        && match row.call.as_deref() {
            Some(call) => wait_kind(call).is_stream(),
            None => analysis.outside() == Outside::UntracedCall,
        }
}

/// The barriers: threads there wait for the slowest of them, which is imbalance.
fn barriers(analysis: &Analysis) -> BTreeSet<Object> {
    let barrier =
        |o: &ObjectStats| o.kind == ObjectKind::Futex && o.usage == Some(FutexUse::Barrier);
    analysis.objects().filter(barrier).map(|o| o.object).collect()
}

/// The one thread that is busy nearly all the time and that most of the waiting is for; or the one
/// that most often arrives last at a barrier.
pub(crate) fn server(
    analysis: &Analysis,
    rows: &[WaitRow],
    contenders: &Contenders,
    thresholds: &Thresholds,
) -> Option<Server> {
    let barriers = barriers(analysis);
    let mut ended: BTreeMap<Slot, Nanos> = BTreeMap::new();
    let mut last: BTreeMap<Slot, Nanos> = BTreeMap::new();
    let (mut all, mut all_at_barriers) = (0, 0);
    for r in rows.iter().filter(|r| r.cause.is_ended_by_thread()) {
        let object = analysis.final_object(r.object);
        let barrier = barriers.contains(&object);
        all += r.sum.wait_ns;
        all_at_barriers += if barrier { r.sum.wait_ns } else { 0 };
        // A kernel thread is a driver's, which is another bottleneck. The recorder's end is the end
        // of the recording.
        let may_serve = |t: &Thread| !t.is_kthread() && !is_recorder(&analysis.comm(t));
        if let Some(w) = r.waker.filter(|&w| may_serve(analysis.thread(w))) {
            if barrier || !contenders.takes(object, w) {
                *ended.entry(w).or_default() += r.sum.wait_ns;
            }
            if barrier {
                *last.entry(w).or_default() += r.sum.wait_ns;
            }
        }
    }
    let candidate = |(slot, ended_wait_ns): (Slot, Nanos), at_barriers: bool| {
        let t = analysis.thread(slot);
        let all_wait_ns = if at_barriers { all_at_barriers } else { all };
        let (busy_ns, life_ns) = (t.active_ns(), analysis.life_ns(t));
        Server { slot, at_barriers, busy_ns, life_ns, ended_wait_ns, all_wait_ns }
    };
    let is_busy = |s: &Server| thresholds.at_least(s.busy_pct(), &ALONE).holds();
    let ends = |s: &Server| thresholds.at_least(s.ended_pct(), &SERVER_ENDS).holds();
    let most_of = |part: Nanos, whole: Nanos| part * 2 > whole;
    top_waker(&ended)
        .map(|m| candidate(m, false))
        .filter(|s| ends(s) && is_busy(s) && most_of(s.life_ns * 2, analysis.wall_ns()))
        .or_else(|| {
            top_waker(&last).map(|m| candidate(m, true)).filter(|s| {
                most_of(s.ended_wait_ns, s.all_wait_ns) && most_of(all_at_barriers, all)
            })
        })
}

/// Whether there was work for one thread at a time only, whichever thread that was: of all
/// applications or, if `program` is the work, of that program alone.
pub(crate) fn serial(analysis: &Analysis, program: Option<u32>, thresholds: &Thresholds) -> Check {
    // Work that fills less than two thirds of the recording delayed nothing in the rest.
    let shortest = analysis.wall_ns() / 3 * 2;
    let pct = |one: Nanos, any: Nanos| pct(one, any.max(shortest));
    let of_all = pct(analysis.serial_wall_ns(), analysis.occupied_ns());
    let of_program = program
        .and_then(|pid| analysis.together(pid))
        .map_or(0.0, |t| pct(t.one_ns, t.one_ns + t.several_ns));
    thresholds.at_least(of_all.max(of_program), &ALONE)
}

/// What threads wait for, over all waits.
pub(crate) struct Awaited<'a> {
    analysis: &'a Analysis,
    server: Option<Server>,
    barriers: BTreeSet<Object>,
    partners: BTreeSet<Slot>,
    between_two: BTreeSet<Object>,
    one_way: BTreeSet<Object>,
    /// Threads that are busy nearly all the time.
    busy: BTreeSet<Slot>,
    /// The thread that ends most of the waiting for an object, as far as that is seen: likely the
    /// one that ends a wait whose end is not seen.
    usual: BTreeMap<Object, Slot>,
    /// The leaf of waits for the partner in a ping-pong pair.
    in_turn: Leaf,
    /// Objects that only programs outside the work wait for.
    unrelated: BTreeSet<Object>,
    /// Objects that one thread waited for once: an end or a result, without contention.
    once: BTreeSet<Object>,
    /// Objects of event loops that their own process wakes.
    loops: BTreeSet<Object>,
}

impl Awaited<'_> {
    pub(crate) fn new<'a>(
        analysis: &'a Analysis,
        rows: &[WaitRow],
        server: Option<Server>,
        (by_object, work, contenders): (&ObjectThreads, &BTreeSet<u32>, &Contenders),
        serial: Check,
        thresholds: &Thresholds,
    ) -> Awaited<'a> {
        let busy = |t: &Thread| {
            let pct = pct(t.active_ns(), analysis.life_ns(t));
            thresholds.at_least(pct, &ALONE).holds()
        };
        Awaited {
            analysis,
            server,
            barriers: barriers(analysis),
            partners: partners(analysis, rows),
            between_two: between_two(by_object, contenders),
            one_way: one_way(by_object),
            busy: analysis.all_threads().filter(|t| busy(t.1)).map(|t| t.0).collect(),
            usual: usual(by_object),
            in_turn: if serial.holds() { Leaf::Serial } else { Leaf::NoWork },
            unrelated: unrelated(analysis, by_object, work),
            once: analysis.objects().filter(is_event).map(|o| o.object).collect(),
            loops: loops(analysis, by_object),
        }
    }

    /// The leaf of the ledger that a wait's share belongs to.
    pub(crate) fn leaf(&self, r: &WaitRow) -> Leaf {
        let object = self.analysis.final_object(r.object);
        // At latches each thread is woken at an object of its own: one way, and yet contention.
        let one_way = r.cause == Cause::ThreadSync && self.one_way.contains(&object);
        let waker = match r.waker {
            None if one_way => self.usual.get(&object).copied(),
            seen => seen,
        };
        // At a barrier all threads wait for the last one.
        let one = r.cause.is_ended_by_thread()
            && (self.server.is_some_and(|s| waker == Some(s.slot))
                || self.barriers.contains(&object));
        let partner = || {
            is_stream(self.analysis, r)
                && r.waker.is_some_and(|w| self.partners.contains(&w))
                && self.between_two.contains(&object)
        };
        // Waiting for a producer is no contention: a busy thread cannot deliver earlier.
        let order = || one_way && waker.is_some_and(|w| self.busy.contains(&w));
        match r.cause {
            _ if r.cause.is_ended_by_thread() && self.once.contains(&object) => Leaf::NoWork,
            _ if one => Leaf::OneServer,
            // Two alternating threads are one CPU's worth of work, which matters if that is all.
            _ if partner() => self.in_turn,
            _ if order() => Leaf::Order,
            Cause::ThreadSync => Leaf::ThreadSync,
            // It waits for work, and not for what others hold.
            Cause::KernelService if self.loops.contains(&object) => self.in_turn,
            Cause::KernelService => Leaf::KernelServices,
            Cause::KernelLock => Leaf::KernelLocks,
            // The recorder writing its file does not delay the work.
            Cause::Io if self.unrelated.contains(&object) => Leaf::NoWork,
            Cause::Io => Leaf::Io,
            Cause::External | Cause::Unknown => Leaf::NoWork,
        }
    }
}

/// Threads of an alternating pair. Of two that alternate each waits as long as the other runs, of
/// three twice as long; the limit lies between.
fn partners(analysis: &Analysis, rows: &[WaitRow]) -> BTreeSet<Slot> {
    let mut streams: BTreeMap<Slot, Nanos> = BTreeMap::new();
    for r in rows.iter().filter(|r| is_stream(analysis, r)) {
        if let Some(w) = r.waker {
            *streams.entry(w).or_default() += r.sum.wait_ns;
        }
    }
    let of_two = |&(w, wait): &(Slot, Nanos)| wait * 2 <= analysis.thread(w).active_ns() * 3;
    streams.into_iter().filter(of_two).map(|s| s.0).collect()
}

/// Waited for once at most (a wait may have begun before the recording), and not a lock.
fn is_event(o: &ObjectStats) -> bool {
    o.waits <= 1 && !o.is_lock
}

/// Objects for which no thread of these processes waits.
fn unrelated(
    analysis: &Analysis,
    by_object: &ObjectThreads,
    work: &BTreeSet<u32>,
) -> BTreeSet<Object> {
    let is_work = |slot: &Slot| {
        let t = analysis.thread(*slot);
        work.contains(&analysis.pid(t).unwrap_or(t.tid.0))
    };
    let waited = by_object.waited_by.iter();
    waited.filter(|(_, by)| !by.keys().any(is_work)).map(|(&object, _)| object).collect()
}

/// The thread that ends most of the waiting for each object.
fn usual(by_object: &ObjectThreads) -> BTreeMap<Object, Slot> {
    let most = |(&object, by): (&Object, &BTreeMap<Slot, PairSum>)| {
        let by = by.iter().map(|(&slot, sum)| (slot, sum.wait_ns)).collect();
        Some((object, top_waker(&by)?.0))
    };
    by_object.ended_by.iter().filter_map(most).collect()
}

/// Objects whose wakers mostly do not wait for them themselves.
fn one_way(by_object: &ObjectThreads) -> BTreeSet<Object> {
    let waited = &by_object.waited_by;
    let given = |(&object, wakers): (&Object, &BTreeMap<Slot, PairSum>)| {
        let waits = |slot: &Slot| waited.get(&object).is_some_and(|by| by.contains_key(slot));
        let sum = |only: bool| -> Nanos {
            wakers.iter().filter(|w| !only || waits(w.0)).map(|w| w.1.wait_ns).sum()
        };
        (sum(true) * 2 < sum(false)).then_some(object)
    };
    by_object.ended_by.iter().filter_map(given).collect()
}

/// Objects of event loops that only threads of their own process wake. Processes that wake each
/// other's loops may hand something on, as PostgreSQL's do.
fn loops(analysis: &Analysis, by_object: &ObjectThreads) -> BTreeSet<Object> {
    let is_loop = |o: &ObjectStats| matches!(o.kind, ObjectKind::Epoll | ObjectKind::Poll);
    let mut loops: BTreeSet<Object> =
        analysis.objects().filter(is_loop).map(|o| o.object).collect();
    let mut pids: BTreeMap<Object, Option<u32>> = BTreeMap::new();
    for (object, threads) in by_object.around() {
        if !loops.contains(&object) {
            continue;
        }
        for pid in threads.map(|slot| analysis.pid(analysis.thread(slot))) {
            if pid.is_none() || *pids.entry(object).or_insert(pid) != pid {
                loops.remove(&object);
            }
        }
    }
    loops
}

/// Objects between two threads that wait only for each other. If they contend for one thing, one is
/// in the other's way.
fn between_two(by_object: &ObjectThreads, contenders: &Contenders) -> BTreeSet<Object> {
    let mut of: BTreeMap<Object, BTreeSet<Slot>> = BTreeMap::new();
    for (object, threads) in by_object.around() {
        of.entry(object).or_default().extend(threads);
    }
    let in_turn =
        |o: &Object, of: &BTreeSet<Slot>| of.iter().any(|&slot| contenders.takes(*o, slot));
    of.retain(|o, of| of.len() <= 2 && !in_turn(o, of));
    of.into_keys().collect()
}
