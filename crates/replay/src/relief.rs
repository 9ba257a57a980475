//! How much less time each thread takes without waiting for a resource, by the chains of wake-ups.
//!
//! A waiting thread is delayed by whatever delays its waker, for as long as the wait lasts. So the
//! part of a wait that goes away is the part of the waker's time that goes away meanwhile: all of
//! it if the waker itself waited for the resource; nothing if it ran, slept for a timer or waited
//! for an outside client. One pass over the waits in order of their ends gives this for every
//! thread, because a waker's own wait ended earlier.
//!
//! A replay keeps the traced order in which a server serves its clients: a client waits for the
//! answer to another's request, as it did while only one of them could ask. The chains keep no such
//! order, so they know no queue that forms only once the resource is gone. In both, CPUs do at most
//! one second of work in a second ([`bound`]) and no thread runs twice at once. But what one thread
//! of a team does in the time it saves is work that another need not do.
//!
//! [`bound`]: crate::bound

use crate::change::{Change, LockChange};
use crate::program::{ObjectId, Op, Program, ReplayObject};
use crate::spans::Spans;
use holdup_passes::{ObjectKind, Slot, role};
use holdup_trace::Nanos;
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeMap;

/// A sleep of the trace.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wait {
    pub(crate) to: Nanos,
    pub(crate) from: Nanos,
    /// When the thread ran again: it was ready before, and had no CPU yet.
    pub(crate) goes_on: Nanos,
    pub(crate) thread: u32,
    pub(crate) object: ObjectId,
    /// The thread that ended it, if a thread did.
    pub(crate) waker: Option<u32>,
}

/// The sleeps of a program.
#[derive(Clone, Debug)]
pub(crate) struct Waits {
    /// In order of their ends.
    all: Vec<Wait>,
    /// For each thread, its sleeps in `epoll_wait`: there an event loop has neither work nor locks.
    in_loops: Vec<Spans>,
}

impl Waits {
    /// `is_lock` says of an object for any of several events that threads hand it to each other.
    pub(crate) fn of(program: &Program, is_lock: impl Fn(&ReplayObject) -> bool) -> Waits {
        let mut ends: FxHashMap<u32, (Nanos, u32)> = FxHashMap::default();
        let mut last: Vec<(Nanos, u32)> = vec![(0, 0); program.rounds.len()];
        for (t, thread) in program.threads.iter().zip(0..) {
            for at in t.from as usize..t.to as usize {
                let time = program.times[at];
                match program.ops[at] {
                    Op::Wake { number, .. } => {
                        ends.insert(number, (time, thread));
                    }
                    Op::Arrive { round, .. } => {
                        let last = &mut last[round as usize];
                        *last = (*last).max((time, thread));
                    }
                    _ => {}
                }
            }
        }
        let mut waits = Vec::new();
        for (t, thread) in program.threads.iter().zip(0..) {
            for at in t.from as usize..t.to as usize {
                let from = program.times[at];
                let (object, to, waker) = match program.ops[at] {
                    Op::Sleep(ns, object) => (object, from + ns, None),
                    Op::Wait { number, object, .. } => match ends.get(&number) {
                        Some(&(to, waker)) => (object, to, Some(waker)),
                        None => continue,
                    },
                    Op::Arrive { round, object, .. } => {
                        let (to, waker) = last[round as usize];
                        (object, to, Some(waker))
                    }
                    _ => continue,
                };
                if to > from {
                    let waker = waker.filter(|&w| w != thread);
                    let next = (at + 1 < t.to as usize).then(|| program.times[at + 1]);
                    let goes_on = next.map_or(to, |next| next.max(to));
                    waits.push(Wait { to, from, goes_on, thread, object, waker });
                }
            }
        }
        waits.sort_unstable_by_key(|w| (w.to, w.from, w.thread));
        let mut in_loops = vec![Spans::default(); program.threads.len()];
        for w in &waits {
            let object = program.objects.get(w.object.0 as usize);
            if object.is_some_and(|o| o.kind == ObjectKind::Epoll && !is_lock(o)) {
                in_loops[w.thread as usize].add(w.from, w.to, w.to - w.from);
            }
        }
        Waits { all: waits, in_loops }
    }

    /// The sleeps, in order of their ends.
    pub(crate) fn all(&self) -> &[Wait] {
        &self.all
    }

    /// How long each thread sleeps.
    pub(crate) fn by_slot(&self, program: &Program) -> FxHashMap<Slot, Nanos> {
        let mut by = FxHashMap::default();
        for wait in &self.all {
            let slot = program.threads[wait.thread as usize].slot;
            *by.entry(slot).or_default() += wait.to - wait.from;
        }
        by
    }

    /// The sleeps of each thread, in order.
    pub(crate) fn by_thread(&self, threads: usize) -> Vec<Vec<Wait>> {
        let mut by = vec![Vec::new(); threads];
        for wait in &self.all {
            by[wait.thread as usize].push(*wait);
        }
        by
    }

    /// The part of a wait that passed before the thread that ended it left its event loop: until
    /// then it had no work to hand on, and no lock. Go's threads sleep like this.
    fn without_work(&self, wait: &Wait, waker: u32) -> Nanos {
        self.in_loops[waker as usize].within(wait.from, wait.to)
    }

    /// For each of these objects the waiting, and how much of it ended as a lock is handed on: the
    /// waker had itself been woken for the object, and no other thread had woken a waiter since.
    /// Idle workers sleep and are woken alike, but any thread with work to hand out wakes them.
    ///
    /// A thread that wakes `all` waiters at once wakes some after the one that has the next turn.
    pub(crate) fn handed_on(
        &self,
        is_one: impl Fn(ObjectId) -> bool,
        all: impl Fn(ObjectId) -> bool,
    ) -> FxHashMap<ObjectId, Handed> {
        // When each thread was woken last, and by which.
        let mut since: FxHashMap<u32, (Nanos, u32)> = FxHashMap::default();
        // The latest three wakers.
        let mut latest: Vec<(u32, Nanos)> = Vec::new();
        let mut by: FxHashMap<ObjectId, Handed> = FxHashMap::default();
        // A client that wakes them through the same object has no turn.
        let takers: FxHashSet<u32> =
            self.all.iter().filter(|w| is_one(w.object)).map(|w| w.thread).collect();
        for wait in self.all.iter().filter(|w| is_one(w.object)) {
            let ns = wait.to - wait.from;
            by.entry(wait.object).or_default().all += ns;
            let Some(waker) = wait.waker else { continue };
            if let Some(&(woken, by_whom)) = since.get(&waker) {
                let same = |who: u32| who == waker || who == by_whom && all(wait.object);
                let other = latest.iter().find(|(who, _)| !same(*who));
                if other.is_none_or(|&(_, at)| at <= woken) {
                    by.entry(wait.object).or_default().handed +=
                        ns - self.without_work(wait, waker);
                }
            }
            if takers.contains(&waker) {
                latest.retain(|(who, _)| *who != waker);
                latest.insert(0, (waker, wait.to));
                latest.truncate(3);
            }
            since.insert(wait.thread, (wait.to, waker));
        }
        by
    }
}

/// Waiting for one object, in ns.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Handed {
    /// All waiting for it.
    pub(crate) all: Nanos,
    /// Waiting that ended as a lock is handed on.
    pub(crate) handed: Nanos,
}

/// The objects that no thread waits for any more; `None` if a change is of another kind.
fn freed(program: &Program, changes: &[Change]) -> Option<Vec<bool>> {
    let mut freed = vec![false; program.objects.len()];
    for change in changes {
        let Change::Lock(id, LockChange::None) = change else { return None };
        freed[id.0 as usize] = true;
    }
    Some(freed)
}

/// Threads of one role: in the time that one saves, it does more of the others' work.
#[derive(Default)]
struct Team {
    /// Their CPU time.
    run: f64,
    /// The CPU time they would use in the time they had, each running as fast as it can.
    in_time: f64,
}

/// The part of the work's time that is left without what the changes take away: the mean over the
/// working threads, weighted by CPU time. `None` if more is changed than that threads no longer
/// wait for some objects.
///
/// If threads contend for the objects, `calls_ns` is the CPU time of the calls in which each of
/// them went to sleep for them or woke others, which goes too. Of two contending threads one may
/// nearly always have the lock. Without it both do as much: a team becomes faster than its fastest
/// thread.
pub(crate) fn left(
    program: &Program,
    waits: &Waits,
    changes: &[Change],
    calls_ns: Option<&[Nanos]>,
) -> Option<f64> {
    let freed = freed(program, changes)?;
    let is_freed = |object: ObjectId| freed.get(object.0 as usize).copied().unwrap_or(false);
    // The part of each thread's time that goes away.
    let mut gone: Vec<Spans> = vec![Spans::default(); program.threads.len()];
    // Spinning that goes away, in order of time, apart from the waits.
    let mut runs: Vec<(Nanos, Nanos, u32, Nanos)> = Vec::new();
    for (t, thread) in program.threads.iter().zip(0_u32..) {
        for at in t.from as usize..t.to as usize {
            if let Op::Spin(ns, lock) = program.ops[at]
                && is_freed(lock)
            {
                let from = program.times[at];
                runs.push((from + ns, from, thread, ns));
            }
        }
    }
    runs.sort_unstable();
    let mut runs = runs.into_iter().peekable();
    for wait in &waits.all {
        while let Some((to, from, thread, ns)) = runs.next_if(|run| run.0 <= wait.to) {
            gone[thread as usize].add(from, to, ns);
        }
        // A thread that does not sleep need not get a CPU again either.
        let freed = is_freed(wait.object);
        let to = if freed && calls_ns.is_some() { wait.goes_on } else { wait.to };
        let ns = match wait.waker {
            Some(waker) if freed => to - wait.from - waits.without_work(wait, waker),
            None if freed && !program.times_out(wait.object) => to - wait.from,
            Some(waker) => gone[waker as usize].within(wait.from, wait.to),
            None => 0,
        };
        gone[wait.thread as usize].add(wait.from, to, ns);
    }
    for (to, from, thread, ns) in runs {
        gone[thread as usize].add(from, to, ns);
    }
    let mut teams: BTreeMap<(&[u8], u32), Team> = BTreeMap::new();
    for (i, (t, gone)) in program.threads.iter().zip(&gone).enumerate() {
        if !t.works || t.run_ns == 0 || t.to == t.from {
            continue;
        }
        let end = t.work_ends(program);
        let span = end.saturating_sub(program.times[t.from as usize]).max(t.run_ns) as f64;
        let run = t.run_ns as f64;
        let slept = calls_ns.and_then(|of| of.get(i)).map_or(0.0, |&ns| (ns as f64).min(run));
        let part = (span - gone.until(end) as f64 - slept).max(run - slept).max(1.0) / span;
        let role = role(t.comm.as_bytes());
        let team = if calls_ns.is_some() { (role, 0) } else { (role, t.tid) };
        let team = teams.entry(team).or_default();
        team.run += run;
        team.in_time += run / part;
    }
    let all: f64 = teams.values().map(|of| of.run).sum();
    let left: f64 = teams.values().map(|of| of.run * of.run / of.in_time).sum();
    (all > 0.0).then(|| left / all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::{LOCK, program, waits};

    const OTHER: ObjectId = ObjectId::NONE;

    fn without_lock(p: &Program) -> f64 {
        left(p, &waits(p), &[Change::Lock(LOCK, LockChange::None)], None).unwrap()
    }

    /// The first holds the lock while it runs; the second waits for it, and the third for what the
    /// second does then: both save what the second waited.
    #[test]
    fn who_waits_for_a_waiter_saves_what_that_one_saves() {
        let wait = |number, object| Op::Wait { number, object, delay: 0 };
        let wake = |thread, number| Op::Wake { thread, number };
        let mut p = program(
            3,
            &[
                vec![Op::Run(60), wake(1, 1), Op::Run(40)],
                vec![wait(1, LOCK), Op::Run(40), wake(2, 2)],
                vec![wait(2, OTHER), Op::Run(100)],
            ],
        );
        p.times = vec![0, 60, 60, 0, 60, 100, 0, 100];
        let expected = (100.0 * 1.0 + 40.0 * 0.4 + 100.0 * 0.7) / 240.0;
        assert!((without_lock(&p) - expected).abs() < 1e-9, "{}", without_lock(&p));
        // Changes other than waiting for some objects have no such estimate.
        assert_eq!(left(&p, &waits(&p), &[Change::NoDevices], None), None);
    }

    /// The first has the lock for 90 of 100 ns and the second for 10. Without it both work all the
    /// time, and the two do twice as much; each alone gains as much as it waited.
    #[test]
    fn who_seldom_gets_a_lock_does_as_much_as_the_other_without_it() {
        let wait = |number| Op::Wait { number, object: LOCK, delay: 0 };
        let wake = |thread, number| Op::Wake { thread, number };
        let mut p = program(
            2,
            &[vec![Op::Run(90), wake(1, 1), wait(2)], vec![wait(1), Op::Run(10), wake(0, 2)]],
        );
        p.times = vec![0, 90, 90, 0, 90, 100];
        (p.threads[0].comm, p.threads[1].comm) = ("worker-0".into(), "worker-1".into());
        let changes = [Change::Lock(LOCK, LockChange::None)];
        let of = |calls_ns: Option<&[Nanos]>| left(&p, &waits(&p), &changes, calls_ns).unwrap();
        let none = of(Some(&[0, 0]));
        assert!((none - 0.5).abs() < 0.06, "{none}");
        assert!((of(None) - (90.0 * 1.0 + 10.0 * 0.1) / 100.0).abs() < 0.1, "{}", of(None));
        // A fifth of the CPU time was in calls that are no longer made.
        let calls = of(Some(&[18, 2]));
        assert!(calls < none * 0.95, "{calls}");
    }

    /// Three threads hand the lock round; in the pool, one that never waits wakes the two others.
    #[test]
    fn a_lock_is_handed_on_and_a_pool_is_woken() {
        let wait = |number| Op::Wait { number, object: LOCK, delay: 0 };
        let wake = |thread, number| Op::Wake { thread, number };
        let mut lock = program(
            3,
            &[vec![wake(1, 1), wait(3)], vec![wait(1), wake(2, 2)], vec![wait(2), wake(0, 3)]],
        );
        lock.times = vec![10, 11, 0, 20, 0, 30];
        let handed = |p: &Program| waits(p).handed_on(|id| id == LOCK, |_| false)[&LOCK];
        // The first had it from the beginning: a woken thread ended 39 of 49 ns of waiting.
        assert_eq!(handed(&lock), Handed { all: 49, handed: 39 });
        let mut pool = program(
            3,
            &[vec![wake(1, 1), wake(2, 2), wake(1, 3)], vec![wait(1), wait(3)], vec![wait(2)]],
        );
        pool.times = vec![10, 20, 30, 0, 11, 0];
        assert_eq!(handed(&pool).handed, 0);
    }

    /// Whoever has had its turn wakes both others; the one that has the next turn is woken first.
    #[test]
    fn a_turn_that_is_announced_to_all_is_handed_on() {
        let wait = |number| Op::Wait { number, object: LOCK, delay: 0 };
        let wake = |thread, number| Op::Wake { thread, number };
        let mut turns = program(
            3,
            &[
                vec![wake(1, 1), wake(2, 2), wait(3)],
                vec![wait(1), wake(2, 4), wake(0, 3)],
                vec![wait(2), wait(4)],
            ],
        );
        turns.times = vec![10, 11, 12, 0, 20, 21, 0, 12];
        let handed = |all| waits(&turns).handed_on(|id| id == LOCK, |_| all)[&LOCK];
        assert_eq!((handed(false).handed, handed(true).handed), (0, 8 + 9));
    }

    /// The first hands its turn to the second, which later hands it back. A client wakes the first
    /// in between, at the same object.
    #[test]
    fn a_client_that_wakes_them_has_no_turn() {
        let wait = |number| Op::Wait { number, object: LOCK, delay: 0 };
        let wake = |thread, number| Op::Wake { thread, number };
        let mut p = program(
            3,
            &[vec![wake(1, 1), wait(2), wait(3)], vec![wait(1), wake(0, 3)], vec![wake(0, 2)]],
        );
        p.times = vec![10, 11, 13, 0, 20, 12];
        let handed = waits(&p).handed_on(|id| id == LOCK, |_| false)[&LOCK];
        assert_eq!(handed, Handed { all: 10 + 1 + 7, handed: 7 });
    }

    /// Two threads of a runtime wake each other as work comes in. The waker sleeps in `epoll_wait`
    /// meanwhile and holds no lock.
    #[test]
    fn what_passes_until_an_event_loop_wakes_is_no_waiting_for_a_lock() {
        let left_if_it_sleeps_for = |object, is_lock: bool| {
            let mut p = program(
                2,
                &[
                    vec![Op::Sleep(90, object), Op::Wake { thread: 1, number: 1 }, Op::Run(10)],
                    vec![Op::Wait { number: 1, object: LOCK, delay: 0 }, Op::Run(100)],
                ],
            );
            p.objects.push(ReplayObject { kind: ObjectKind::Epoll, ..p.objects[0].clone() });
            p.times = vec![0, 100, 100, 0, 100];
            let gone = [Change::Lock(LOCK, LockChange::None)];
            left(&p, &Waits::of(&p, |_| is_lock), &gone, None).unwrap()
        };
        let lock = left_if_it_sleeps_for(OTHER, false);
        let event_loop = left_if_it_sleeps_for(ObjectId(1), false);
        assert!(lock < 0.6 && event_loop > 0.9, "{lock} {event_loop}");
        let in_turn = left_if_it_sleeps_for(ObjectId(1), true);
        assert!(in_turn < 0.6, "processes take turns there: {in_turn}");
    }
}
