//! When threads slept in futex calls, and when uninterruptibly, from the events alone.

use holdup_passes::Analysis;
use holdup_trace::{Batch, Event, Nanos, Reader, TaskState, Tid, What, merge};
use std::collections::BTreeMap;
use std::ops::ControlFlow;

/// How long at least one thread slept so.
#[derive(Default)]
pub(crate) struct Slept {
    /// In a futex call.
    pub(crate) futex: Nanos,
    /// In state D.
    pub(crate) device: Nanos,
}

/// Time with at least one member.
#[derive(Default)]
struct Union {
    members: u32,
    since: Nanos,
    total: Nanos,
}

impl Union {
    fn enter(&mut self, now: Nanos) {
        if self.members == 0 {
            self.since = now;
        }
        self.members += 1;
    }

    fn leave(&mut self, now: Nanos) {
        self.members -= 1;
        if self.members == 0 {
            self.total += now - self.since;
        }
    }
}

#[derive(Default)]
struct Scan {
    calls: BTreeMap<Tid, u32>,
    /// Asleep: in a futex call, in state D.
    asleep: BTreeMap<Tid, (bool, bool)>,
    futex: Union,
    device: Union,
}

impl Scan {
    fn event(&mut self, e: &Event, is_futex: &impl Fn(u32) -> bool) {
        match e.what {
            What::Switch { prev, next, prev_state, .. } => {
                self.awake(e.ts, next);
                if prev != Tid::IDLE && is_asleep(prev_state) {
                    self.sleeps(e.ts, prev, prev_state, is_futex);
                }
                return;
            }
            What::SysEnter { nr, .. } => {
                self.calls.insert(e.tid, nr);
            }
            What::SysExit { .. } => {
                self.calls.remove(&e.tid);
            }
            _ => {}
        }
        if matches!(e.what, What::SysEnter { .. } | What::SysExit { .. }) {
            self.awake(e.ts, e.tid);
        }
    }

    fn sleeps(&mut self, now: Nanos, tid: Tid, s: TaskState, is_futex: &impl Fn(u32) -> bool) {
        self.awake(now, tid);
        let futex = self.calls.get(&tid).is_some_and(|&nr| is_futex(nr));
        let device = s.is_uninterruptible();
        if futex {
            self.futex.enter(now);
        }
        if device {
            self.device.enter(now);
        }
        self.asleep.insert(tid, (futex, device));
    }

    fn awake(&mut self, now: Nanos, tid: Tid) {
        let (futex, device) = self.asleep.remove(&tid).unwrap_or_default();
        if futex {
            self.futex.leave(now);
        }
        if device {
            self.device.leave(now);
        }
    }
}

/// Certain to be off the run queue, and to come back.
fn is_asleep(s: TaskState) -> bool {
    !s.is_runnable() && !s.is_dead() && !s.is_unknown()
}

pub(crate) fn times(reader: &dyn Reader, a: &Analysis) -> Slept {
    let is_futex = |nr: u32| a.call_name(nr).starts_with("futex");
    let mut scan = Scan::default();
    merge::drive(reader, 1, &mut |events: &[Event], _: &Batch| {
        for e in events {
            scan.event(e, &is_futex);
        }
        ControlFlow::Continue(())
    })
    .expect("readable before");
    let left: Vec<Tid> = scan.asleep.keys().copied().collect();
    for tid in left {
        scan.awake(a.end, tid);
    }
    Slept { futex: scan.futex.total, device: scan.device.total }
}
