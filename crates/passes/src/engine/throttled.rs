//! Ready threads that may not run for a while: see [`crate::throttle`].

use super::Engine;
use crate::slot::Slot;
use crate::state::{Mode, State};
use crate::threads::Thread;
use crate::throttle::{Off, Throttles};
use holdup_trace::{Cpu, NameId, Nanos};

impl Engine {
    /// From now on a ready thread may not run.
    #[cold]
    pub(super) fn throttle(&mut self, now: Nanos, slot: Slot) {
        let t = &self.threads[slot];
        // Kernel threads have no quota.
        if t.is_throttled() || t.mode == Mode::Kthread {
            return;
        }
        let since = self.off_since(now, slot);
        let mark = self.blame.throttled(now, true);
        let t = &mut self.threads[slot];
        let ran_to = t.running_ns;
        let throttle = t.throttle.get_or_insert_with(|| {
            Box::new(crate::throttle::Throttle { ran_to, ..Default::default() })
        });
        throttle.off = Some(Off { since, shown: now, mark });
        if let Some(past) = &mut t.past {
            past.was(t.state, t.since, now);
        }
        let group = t.group;
        self.throttles.entry(group).or_default().begins();
    }

    /// A throttled thread has been able to run since `until`, which is not after now; if that is
    /// when it was throttled, it never was.
    #[cold]
    pub(super) fn unthrottle(&mut self, now: Nanos, slot: Slot, until: Nanos) {
        let integral = self.blame.throttled(now, false);
        let ready = self.blame.ready_at(now);
        let t = &mut self.threads[slot];
        // Its share of the scheduler's part from before it was throttled stays.
        t.living.ready_mark = ready;
        let Some(throttle) = &mut t.throttle else { return };
        let Some(Off { since, shown, mark }) = throttle.off.take() else { return };
        let (ns, share) = (until.saturating_sub(shown), integral - mark);
        let kept = share.min((ns as u128) << crate::cause::FRACTION);
        self.blame.not_throttled(share - kept);
        if let Some(past) = &mut t.past {
            past.throttled(shown, until);
        }
        if let Some(steps) = &mut self.waits.steps {
            steps.held_off(slot, shown, until);
        }
        if ns > 0 {
            throttle.spells += 1;
            throttle.ns += until.saturating_sub(since);
            throttle.until = until;
            throttle.share += kept;
            self.throttles.entry(t.group).or_default().ends(until);
        }
    }

    /// `cpu` goes idle with threads on its queue, one of them throttled: then all are throttled.
    pub(super) fn throttle_queue(&mut self, now: Nanos, cpu: Cpu) {
        let queue = self.cpus.get_mut(cpu).queue.clone();
        for slot in queue {
            self.throttle(now, slot);
        }
    }

    /// A thread is queued on `cpu`, which idles and has a throttled thread of the same process or
    /// control group: the queued thread may not run either.
    #[inline]
    pub(super) fn joins_throttled(&mut self, now: Nanos, slot: Slot, cpu: Cpu) {
        let Some(c) = self.cpus.get(cpu) else { return };
        if c.queue.len() < 2 || !matches!(c.current(), Some((_, Slot::IDLE))) {
            return;
        }
        let (threads, t) = (&self.threads, &self.threads[slot]);
        let in_group = self.is_below_root(t.group);
        let is_sibling = |s: &Thread| s.pid == t.pid || s.group == t.group && in_group;
        if c.queue.iter().any(|&s| threads[s].is_throttled() && is_sibling(&threads[s])) {
            self.throttle(now, slot);
        }
    }

    /// Whether a thread on the queue of a CPU that goes idle is out of quota, and did not leave
    /// unseen: it, or another thread of its control group, was out of quota before, or the group is
    /// one with a quota; and no event is missing.
    pub(super) fn is_out_of_quota(&self, slot: Slot) -> bool {
        let t = &self.threads[slot];
        matches!(t.state, State::Preempted(_))
            && self.caps.wakeups
            && !self.lost
            && (t.throttle.is_some() || self.may_have_quota(t.group))
    }

    /// Whether this is a control group other than the root, which has no quota. Threads are in the
    /// root too if their group is of another hierarchy.
    fn is_below_root(&self, group: NameId) -> bool {
        group != NameId::NONE && group != self.root_group
    }

    /// Whether a control group has a quota, or may have: if the recorder read no quotas, any group
    /// except the root may have, provided that the recording has all events by which a thread
    /// leaves a queue.
    fn may_have_quota(&self, group: NameId) -> bool {
        if !self.is_below_root(group) {
            return false;
        }
        if !self.groups.limits.is_empty() {
            return self.groups.limit(&self.names.get(group)).is_some();
        }
        let blind = || self.cpus.iter().any(|(_, c)| c.is_blind());
        self.throttles.contains_key(&group) || self.caps.migrations && !blind()
    }

    /// When a throttled thread came back that shows on `cpu`, whose switches out of idle are not
    /// recorded: together with the others, or about now.
    pub(super) fn came_back(&self, now: Nanos, slot: Slot) -> Option<Nanos> {
        let t = &self.threads[slot];
        let shown = t.throttle.as_ref()?.off?.shown;
        let last = self.throttles.get(&t.group).and_then(Throttles::last_return);
        Some(last.filter(|&at| at > shown).unwrap_or(now).min(now))
    }
}
