//! What threads wait for: one busy server, the last thread at a barrier, or the partner in a
//! ping-pong pair.

use crate::leaf::Leaf;
use crate::limits::{ALONE, Check, SERVER_ENDS, Thresholds};
use crate::object::{JudgedObject, top_waker};
use crate::per_object::PerObject;
use crate::{Contenders, ObjectThreads, is_recorder};
use holdup_passes::{
    Analysis, Cause, FutexUse, Object, ObjectKind, ObjectStats, Outside, PairSum, Slot, Thread,
    WaitRow,
};
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

/// A wait for what another thread sends through a pipe or socket. A kernel service in an untraced
/// call counts too: those in which threads contend are always traced.
fn is_stream(analysis: &Analysis, row: &WaitRow) -> bool {
    row.cause == Cause::KernelService
        && match row.kind {
            Some(kind) => kind.is_stream(),
            None => analysis.outside() == Outside::UntracedCall,
        }
}

/// Whether it is a barrier: threads there wait for the slowest of them, which is imbalance.
fn is_barrier(o: &ObjectStats) -> bool {
    o.kind == ObjectKind::Futex && o.usage == Some(FutexUse::Barrier)
}

/// The one thread that is busy nearly all the time and that most of the waiting is for; or the one
/// that most often arrives last at a barrier.
pub(crate) fn server(
    analysis: &Analysis,
    rows: &[WaitRow],
    objects: &BTreeMap<Object, JudgedObject>,
    contenders: &Contenders,
    thresholds: &Thresholds,
) -> Option<Server> {
    let barriers: BTreeSet<Object> =
        objects.iter().filter(|(_, o)| is_barrier(&o.stats)).map(|of| *of.0).collect();
    let mut ended: BTreeMap<Slot, Nanos> = BTreeMap::new();
    let mut last: BTreeMap<Slot, Nanos> = BTreeMap::new();
    let (mut all, mut all_at_barriers) = (0, 0);
    for r in rows.iter().filter(|r| r.cause.is_ended_by_thread()) {
        let barrier = barriers.contains(&r.object);
        all += r.sum.wait_ns;
        all_at_barriers += if barrier { r.sum.wait_ns } else { 0 };
        if let Some(w) = r.waker {
            if barrier || !contenders.takes(r.object, w) {
                *ended.entry(w).or_default() += r.sum.wait_ns;
            }
            if barrier {
                *last.entry(w).or_default() += r.sum.wait_ns;
            }
        }
    }
    // A kernel thread is a driver's, which is another bottleneck. The recorder's end is the end of
    // the recording.
    let may_serve = |&(slot, _): &(Slot, Nanos)| {
        let t = analysis.thread(slot);
        !t.is_kthread() && !is_recorder(&analysis.comm(t))
    };
    let top_server = |by: BTreeMap<Slot, Nanos>| top_waker(by.into_iter().filter(may_serve));
    let candidate = |(slot, ended_wait_ns): (Slot, Nanos), at_barriers: bool| {
        let t = analysis.thread(slot);
        let all_wait_ns = if at_barriers { all_at_barriers } else { all };
        let (busy_ns, life_ns) = (t.active_ns(), analysis.life_ns(t));
        Server { slot, at_barriers, busy_ns, life_ns, ended_wait_ns, all_wait_ns }
    };
    let is_busy = |s: &Server| thresholds.at_least(s.busy_pct(), &ALONE).holds();
    let ends = |s: &Server| thresholds.at_least(s.ended_pct(), &SERVER_ENDS).holds();
    let most_of = |part: Nanos, whole: Nanos| part * 2 > whole;
    top_server(ended)
        .map(|m| candidate(m, false))
        .filter(|s| ends(s) && is_busy(s) && most_of(s.life_ns * 2, analysis.wall_ns()))
        .or_else(|| {
            top_server(last).map(|m| candidate(m, true)).filter(|s| {
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

/// The objects, the threads around them, the processes of the work, and who contends.
pub(crate) type Around<'a> =
    (&'a BTreeMap<Object, JudgedObject>, &'a ObjectThreads, &'a BTreeSet<u32>, &'a Contenders);

/// What threads wait for, over all waits.
pub(crate) struct Awaited<'a> {
    analysis: &'a Analysis,
    server: Option<Server>,
    partners: BTreeSet<Slot>,
    /// Threads that are busy nearly all the time.
    busy: BTreeSet<Slot>,
    /// The leaf of waits for the partner in a ping-pong pair.
    in_turn: Leaf,
    objects: PerObject<Traits>,
}

/// What decides what the waits for an object were for.
#[derive(Clone, Copy, Default)]
struct Traits {
    is_barrier: bool,
    /// Two threads wait only for each other.
    is_between_two: bool,
    /// Its wakers mostly do not wait for it themselves.
    is_one_way: bool,
    /// The thread that ends most of the waiting for it, as far as that is seen: likely the one that
    /// ends a wait whose end is not seen.
    usual: Option<Slot>,
    /// Only programs outside the work wait for it.
    is_unrelated: bool,
    /// One thread waited for it once: an end or a result, without contention. (A wait may have
    /// begun before the recording.)
    is_event: bool,
    /// Of an event loop that its own process wakes.
    is_own_loop: bool,
}

impl Traits {
    fn of(
        analysis: &Analysis,
        o: &JudgedObject,
        (_, by_object, work, contenders): Around<'_>,
    ) -> Traits {
        let object = o.stats.object;
        let pid = |slot: Slot| analysis.pid(analysis.thread(slot));
        let is_work = |&(slot, _): &(Slot, PairSum)| {
            work.contains(&pid(slot).unwrap_or(analysis.thread(slot).tid.0))
        };
        let waited = by_object.waited_by.of(object);
        Traits {
            is_barrier: is_barrier(&o.stats),
            is_between_two: is_between_two(by_object, contenders, object),
            is_one_way: is_one_way(by_object, object),
            usual: o.top_waker.map(|top| top.0),
            is_unrelated: !waited.is_empty() && !waited.iter().any(is_work),
            is_event: o.stats.waits <= 1 && !o.stats.is_lock,
            is_own_loop: matches!(o.stats.kind, ObjectKind::Epoll | ObjectKind::Poll)
                && are_of_one_process(by_object.around(object).map(pid)),
        }
    }
}

impl Awaited<'_> {
    pub(crate) fn new<'a>(
        analysis: &'a Analysis,
        rows: &[WaitRow],
        server: Option<Server>,
        around: Around<'_>,
        serial: Check,
        thresholds: &Thresholds,
    ) -> Awaited<'a> {
        let busy = |t: &Thread| {
            let pct = pct(t.active_ns(), analysis.life_ns(t));
            thresholds.at_least(pct, &ALONE).holds()
        };
        let mut objects = PerObject::<Traits>::new(analysis);
        for (&object, o) in around.0 {
            objects[object] = Traits::of(analysis, o, around);
        }
        Awaited {
            analysis,
            server,
            partners: partners(analysis, rows),
            busy: analysis.all_threads().filter(|t| busy(t.1)).map(|t| t.0).collect(),
            in_turn: if serial.holds() { Leaf::Serial } else { Leaf::NoWork },
            objects,
        }
    }

    /// The leaf of the ledger that a wait's share belongs to.
    pub(crate) fn leaf(&self, r: &WaitRow) -> Leaf {
        let object = &self.objects[r.object];
        // At latches each thread is woken at an object of its own: one way, and yet contention.
        let one_way = r.cause == Cause::ThreadSync && object.is_one_way;
        let waker = match r.waker {
            None if one_way => object.usual,
            seen => seen,
        };
        // At a barrier all threads wait for the last one.
        let one = r.cause.is_ended_by_thread()
            && (self.server.is_some_and(|s| waker == Some(s.slot)) || object.is_barrier);
        let partner = || {
            object.is_between_two
                && is_stream(self.analysis, r)
                && r.waker.is_some_and(|w| self.partners.contains(&w))
        };
        // Waiting for a producer is no contention: a busy thread cannot deliver earlier.
        let order = || one_way && waker.is_some_and(|w| self.busy.contains(&w));
        match r.cause {
            _ if r.cause.is_ended_by_thread() && object.is_event => Leaf::NoWork,
            _ if one => Leaf::OneServer,
            // Two alternating threads are one CPU's worth of work, which matters if that is all.
            _ if partner() => self.in_turn,
            _ if order() => Leaf::Order,
            Cause::ThreadSync => Leaf::ThreadSync,
            // It waits for work, and not for what others hold.
            Cause::KernelService if object.is_own_loop => self.in_turn,
            Cause::KernelService => Leaf::KernelServices,
            Cause::KernelLock => Leaf::KernelLocks,
            // The recorder writing its file does not delay the work.
            Cause::Io if object.is_unrelated => Leaf::NoWork,
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

/// Whether the wakers of an object mostly do not wait for it themselves.
fn is_one_way(by_object: &ObjectThreads, object: Object) -> bool {
    let (mut all, mut own) = (0, 0);
    for &(slot, sum) in by_object.ended_by.of(object) {
        all += sum.wait_ns;
        own += by_object.waited_by.at(object, slot).map_or(0, |_| sum.wait_ns);
    }
    own * 2 < all
}

/// Whether these are threads of one process, which is known. Processes that wake each other's event
/// loops may hand something on, as PostgreSQL's do.
fn are_of_one_process(mut pids: impl Iterator<Item = Option<u32>>) -> bool {
    match pids.next() {
        Some(first) => first.is_some() && pids.all(|pid| pid == first),
        None => true,
    }
}

/// Whether an object is between two threads that wait only for each other. If they contend for one
/// thing, one is in the other's way.
fn is_between_two(by_object: &ObjectThreads, contenders: &Contenders, object: Object) -> bool {
    let mut two: Vec<Slot> = Vec::with_capacity(2);
    for slot in by_object.around(object) {
        if !two.contains(&slot) {
            if two.len() == 2 || contenders.takes(object, slot) {
                return false;
            }
            two.push(slot);
        }
    }
    !two.is_empty()
}
