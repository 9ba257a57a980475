//! Which threads hold what others may wait for.

use super::{HoldSum, Object, Waits};
use crate::past::{HolderTimes, Holding};
use crate::slot::Slot;
use crate::steps::Held;
use holdup_trace::Nanos;

/// Locks one thread is believed to hold at a time.
const MAX_HELD: usize = 64;

#[derive(Clone, Copy, Debug)]
pub(super) struct Hold {
    pub(super) object: Object,
    pub(super) since: Nanos,
    /// The object's integral of waiting threads at that time.
    pub(super) integral: Nanos,
    /// Whether it was certainly taken; otherwise a call on it returned at once, which may have
    /// released it.
    pub(super) certain: bool,
}

impl Waits {
    /// The thread does not hold the object after all. True if it was believed to.
    pub(super) fn forget_hold(&mut self, slot: Slot, object: Object) -> bool {
        let w = self.waiter(slot);
        let Some(i) = w.held.iter().position(|h| h.object == object) else { return false };
        if w.held.swap_remove(i).certain {
            let thing = self.thing(object);
            thing.holding = thing.holding.saturating_sub(1);
        }
        true
    }

    pub(super) fn acquire(&mut self, now: Nanos, slot: Slot, object: Object, certain: bool) {
        if object == Object::OTHER {
            return;
        }
        self.forget_hold(slot, object);
        let thing = self.thing(object);
        let integral = thing.advance(now);
        if certain {
            thing.acquired += 1;
            thing.refuted += (thing.holding > 0) as u64;
            thing.holding += 1;
        }
        let w = self.waiter(slot);
        if w.held.len() < MAX_HELD {
            w.held.push(Hold { object, since: now, integral, certain });
        }
        if certain {
            self.follow_holder(slot);
        }
    }

    /// Follows the past of this thread from now on.
    fn follow_holder(&mut self, slot: Slot) {
        if !std::mem::replace(&mut self.waiter(slot).followed, true) {
            self.news.push(Holding::Has(slot));
        }
    }

    /// A thread releases what it has held since `since`, if others have waited for it meanwhile.
    fn gave_back(&mut self, now: Nanos, slot: Slot, object: Object, since: Nanos) {
        self.follow_holder(slot);
        let thing = self.thing(object);
        let from = since.max(thing.waiting_since);
        let to = if thing.waiting > 0 { now } else { thing.waiting_until.min(now) };
        if from < to {
            self.news.push(Holding::GaveBack { slot, object, from, to });
        }
    }

    /// What this thread did while it held the object and others waited for it.
    pub(crate) fn did_with(&mut self, object: Object, slot: Slot) -> &mut HolderTimes {
        self.holders_did.entry((object, slot)).or_default()
    }

    /// A turn at the kernel's lock at `addr` ends: `holder` releases it while others wait
    /// (`lock:contended_release`), or a thread has it after a wait.
    pub(crate) fn turn_ends(&mut self, now: Nanos, addr: u64, holder: Option<Slot>) {
        let Some(object) = self.kernel_lock(addr) else { return };
        let thing = self.thing(object);
        let integral = thing.advance(now);
        let waited = integral - std::mem::replace(&mut thing.turn_integral, integral);
        let since = thing.waiting_since.max(std::mem::replace(&mut thing.last_release, now));
        let Some(holder) = holder else { return };
        thing.released = Some((now, holder));
        if waited > 0 {
            self.gave_back(now, holder, object, since);
            let sum = self.holds.entry((object, holder)).or_default();
            sum.add(HoldSum {
                holds: 1,
                hold_ns: now.saturating_sub(since),
                explained_ns: waited,
                ..HoldSum::default()
            });
        }
    }

    /// The thread that released the object during a wait that began at `start`, if that was
    /// recorded.
    pub(super) fn released_by(&self, object: Object, start: Nanos) -> Option<Slot> {
        let released = self.things.get(object.0 as usize)?.released;
        released.filter(|(when, _)| *when >= start).map(|(_, holder)| holder)
    }

    pub(super) fn release(&mut self, now: Nanos, slot: Slot, object: Object) {
        if object == Object::OTHER {
            return;
        }
        let w = self.waiter(slot);
        let held = w.held.iter().position(|h| h.object == object).map(|i| w.held.swap_remove(i));
        let thing = self.thing(object);
        let integral = thing.advance(now);
        let last = std::mem::replace(&mut thing.last_release, now);
        let (hold_ns, inferred_ns, explained_ns) = match held {
            Some(h) => {
                thing.holding -= (h.certain && thing.holding > 0) as u32;
                (now.saturating_sub(h.since), 0, integral.saturating_sub(h.integral))
            }
            // It must have held it; only the others' waiting tells since when.
            None if thing.waiting > 0 => {
                let ns = now.saturating_sub(last.max(thing.waiting_since));
                (ns, ns, ns * thing.waiting as u64)
            }
            None => return,
        };
        if let Some(steps) = &mut self.steps {
            let seen = held.is_some();
            steps.held(slot, Held { object, from: now.saturating_sub(hold_ns), to: now, seen });
        }
        if explained_ns > 0 {
            self.gave_back(now, slot, object, now.saturating_sub(hold_ns));
        }
        let sum = self.holds.entry((object, slot)).or_default();
        sum.holds += 1;
        sum.hold_ns += hold_ns;
        sum.inferred += u64::from(held.is_none());
        sum.inferred_ns += inferred_ns;
        sum.explained_ns += explained_ns;
    }
}
