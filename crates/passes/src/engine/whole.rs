//! Calls whose two events follow each other in the stream: see
//! [`holdup_trace::merge::Sink::whole_calls`].
//!
//! Nothing else happened on their CPU meanwhile, so nearly all that such a call changes is added up
//! when it begins, without a state in between. What depends on the other CPUs waits until the
//! stream has got to the end of the call.

use super::Engine;
use super::calls::{At, CallTraits};
use super::current::spend;
use crate::slot::Slot;
use crate::state::Mode;
use crate::stolen::SHORTEST;
use crate::user_intervals::UserInterval;
use holdup_trace::{Batch, Cpu, Event, NameId, Nanos, QualityCode, What};

/// What happens later than the stream has got: at most one thing for each CPU.
#[derive(Clone)]
pub(super) struct Later {
    /// When and on which CPU the first of them happens; [`NEVER`] if none does.
    next: When,
    /// Ends of calls that are accounted for, the first of them last.
    ends: Vec<End>,
    /// Other exits, the first of them last.
    exits: Vec<Event>,
}

/// A time and a CPU. Of what happens at the same time, the lower CPU comes first: recorders write
/// their rings in this order.
///
/// One integer: tuples take a dozen instructions more to compare.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct When(u128);

const NEVER: When = When(u128::MAX);

impl When {
    #[inline(always)]
    fn new(at: Nanos, cpu: Cpu) -> When {
        When(u128::from(at) << 64 | u128::from(cpu.0))
    }

    #[inline(always)]
    fn of(e: &Event) -> When {
        When::new(e.ts, e.cpu)
    }

    #[inline(always)]
    fn time(self) -> Nanos {
        (self.0 >> 64) as Nanos
    }
}

/// A call that is accounted for ends.
#[derive(Clone, Copy)]
struct End {
    at: When,
    nr: u32,
    slot: Slot,
    /// How many of the CPUs were busy when it began.
    busy: u8,
}

impl Default for Later {
    fn default() -> Later {
        Later { next: NEVER, ends: Vec::new(), exits: Vec::new() }
    }
}

impl Later {
    #[inline(always)]
    fn ends(&mut self, end: End) {
        self.next = self.next.min(end.at);
        self.ends.push(end);
        let mut i = self.ends.len() - 1;
        while i > 0 && self.ends[i - 1].at < self.ends[i].at {
            self.ends.swap(i - 1, i);
            i -= 1;
        }
    }

    fn exits(&mut self, exit: Event) {
        self.next = self.next.min(When::of(&exit));
        let at = self.exits.partition_point(|e| When::of(e) > When::of(&exit));
        self.exits.insert(at, exit);
    }

    #[inline(always)]
    fn first(&self) -> When {
        let end = self.ends.last().map_or(NEVER, |end| end.at);
        end.min(self.exits.last().map_or(NEVER, When::of))
    }
}

impl Engine {
    /// The calls that can be added up at once, by number.
    pub(crate) fn whole_calls(&self) -> Vec<bool> {
        self.traits.iter().map(CallTraits::is_plain).collect()
    }

    /// The traits of a call that can be added up at once.
    #[inline(always)]
    pub(super) fn comes_whole(&self, nr: u32) -> Option<CallTraits> {
        self.traits.get(nr as usize).copied().filter(CallTraits::is_plain)
    }

    /// A call from `enter` to `exit`, between which its CPU did nothing else.
    #[inline(always)]
    pub(super) fn whole_call(
        &mut self,
        enter: &Event,
        exit: &Event,
        traits: CallTraits,
        batch: &Batch,
    ) {
        self.catch_up(enter);
        if !self.plain_call(enter, exit, traits) {
            self.any_call(enter, exit, batch);
        }
    }

    #[inline(never)]
    fn any_call(&mut self, enter: &Event, exit: &Event, batch: &Batch) {
        if self.cpus.get(enter.cpu).is_some_and(|c| c.charged_to > enter.ts) {
            // perf sometimes writes a part of its ring twice.
            self.quality.add(QualityCode::OrphanSysEnter, 1);
            self.cpus.get_mut(enter.cpu).counts.scalls += 1;
        } else {
            self.event::<false>(enter, batch);
        }
        self.later.exits(*exit);
    }

    /// Everything that happens up to the next event of the stream.
    #[inline(always)]
    pub(super) fn catch_up(&mut self, e: &Event) {
        while self.later.next <= When::of(e) {
            self.do_next();
        }
    }

    /// Everything that happens later than the stream has got, as the stream ends.
    pub(super) fn catch_up_with_all(&mut self) {
        while self.later.next < NEVER {
            self.do_next();
        }
    }

    #[inline(always)]
    fn do_next(&mut self) {
        let next = self.later.next;
        let Some(End { at, nr, slot, busy }) = self.later.ends.pop_if(|end| end.at == next) else {
            return self.next_exit();
        };
        self.later.next = self.later.first();
        self.costs.whole_call_ended(nr, at.time(), slot);
        // How many CPUs are busy when the application continues.
        if busy != self.busy
            && let Some(interval) = &mut self.threads[slot].living.user_interval
        {
            interval.quarter = self.busy;
        }
    }

    #[inline(never)]
    fn next_exit(&mut self) {
        let exit = self.later.exits.pop();
        self.later.next = self.later.first();
        if let Some(exit) = exit {
            self.event::<false>(&exit, &Batch::default());
        }
    }

    /// The common case of [`Engine::whole_call`]; false if this is not it. Then at most the time up
    /// to `enter` is settled, and nothing of it is left for the event itself.
    #[inline(always)]
    fn plain_call(&mut self, enter: &Event, exit: &Event, traits: CallTraits) -> bool {
        let What::SysEnter { nr, .. } = enter.what else { return false };
        let What::SysExit { nr: of, ret } = exit.what else { return false };
        let (begin, end) = (enter.ts, exit.ts);
        let inside = end.wrapping_sub(begin);
        if of != nr
            || begin < self.now
            || end > self.last
            || inside >= SHORTEST
            || !self.unused_ids.is_empty()
            || enter.comm != NameId::NONE
        {
            return false;
        }
        let at = At::plain(&mut self.cpus, &mut self.threads, begin, enter, Mode::User);
        let Some(At { c, t, slot }) = at else { return false };
        // What a holder did, and the bins of the timeline, are told in the order of time.
        if t.past.is_some() || end >= c.border {
            return false;
        }
        self.now = begin;
        c.charged_to = end;
        spend(c, t, Mode::Kernel, inside);
        t.syscall_events += 2;
        c.counts.scalls += 1;
        c.counts.returned(traits.sort, ret);
        let (since, busy) = (t.user_ns, self.busy);
        let living = &mut *t.living;
        let stats = living.calls.entry(nr);
        stats.returned(inside, ret);
        stats.running += inside;
        let next = UserInterval { since, quarter: busy, faulted: false };
        let mut before = None;
        if let Some(interval) = living.user_interval.replace(next) {
            let ns = since.saturating_sub(interval.since);
            self.user_intervals.add(slot, nr, ns, interval);
            before = Some(ns);
        }
        self.costs.whole_call(nr, before, inside);
        self.later.ends(End { at: When::new(end, enter.cpu), nr, slot, busy });
        true
    }
}
