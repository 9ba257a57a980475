//! Threads that may not run for a while, though they are ready: see [`crate::throttle`].

use super::Engine;
use crate::threads::{Mode, Slot, State};
use holdup_trace::{Cpu, Nanos};

impl Engine {
    /// A thread that is ready may not run from now on.
    #[cold]
    pub(super) fn throttle(&mut self, now: Nanos, slot: Slot) {
        let t = &self.threads[slot];
        // Kernel threads have no quota.
        if t.is_throttled() || t.mode == Mode::Kthread {
            return;
        }
        let mark = self.blame.throttled(now, true);
        let t = &mut self.threads[slot];
        let ran_to = t.running_ns;
        let throttle = t.throttle.get_or_insert_with(|| {
            Box::new(crate::throttle::Throttle { ran_to, ..Default::default() })
        });
        throttle.off = Some((now, mark));
        if let Some(past) = &mut t.past {
            past.was(t.state, t.since, now);
        }
        self.throttles.begins();
    }

    /// A throttled thread has been able to run since `until`, at most now; if that is when it was
    /// throttled, it never was.
    #[cold]
    pub(super) fn unthrottle(&mut self, now: Nanos, slot: Slot, until: Nanos) {
        let integral = self.blame.throttled(now, false);
        let ready = self.blame.ready_at(now);
        let t = &mut self.threads[slot];
        // What it has of the scheduler's part from before it was throttled stays there.
        t.living.ready_mark = ready;
        let Some(throttle) = &mut t.throttle else { return };
        let Some((since, mark)) = throttle.off.take() else { return };
        let (ns, share) = (until.saturating_sub(since), integral - mark);
        let kept = share.min((ns as u128) << crate::blame::FRACTION);
        self.blame.not_throttled(share - kept);
        if let Some(past) = &mut t.past {
            past.throttled(since, until);
        }
        if let Some(steps) = &mut self.waits.steps {
            steps.held_off(slot, since, until);
        }
        if ns > 0 {
            throttle.spells += 1;
            throttle.ns += ns;
            throttle.share += kept;
            self.throttles.ends(until);
        }
    }

    /// `cpu` goes idle though threads are on its queue, one of them throttled: all are.
    pub(super) fn throttle_queue(&mut self, now: Nanos, cpu: Cpu) {
        let queue = self.cpus.get_mut(cpu).queue.clone();
        for slot in queue {
            self.throttle(now, slot);
        }
    }

    /// A thread is queued on `cpu`, which idles and has a throttled thread of the same process: it
    /// may not run either.
    #[inline]
    pub(super) fn joins_throttled(&mut self, now: Nanos, slot: Slot, cpu: Cpu) {
        let Some(c) = self.cpus.known_mut(cpu) else { return };
        if c.queue.len() < 2 || !matches!(c.current, Some((_, Slot::IDLE))) {
            return;
        }
        let (threads, pid) = (&self.threads, self.threads[slot].pid);
        if c.queue.iter().any(|&s| threads[s].is_throttled() && threads[s].pid == pid) {
            self.throttle(now, slot);
        }
    }

    /// Whether a thread that is on the queue of a CPU as that goes idle is out of quota rather than
    /// gone unseen: it was out of quota before, and no event is missing.
    pub(super) fn is_out_of_quota(&self, slot: Slot) -> bool {
        let t = &self.threads[slot];
        t.throttle.is_some()
            && matches!(t.state, State::Preempted(_))
            && self.caps.wakeups
            && !self.lost
    }

    /// When a throttled thread came back that shows on `cpu`, whose switches out of idle are not
    /// recorded: with the others, or about now.
    pub(super) fn came_back(&self, now: Nanos, slot: Slot) -> Option<Nanos> {
        let (since, _) = self.threads[slot].throttle.as_ref()?.off?;
        Some(self.throttles.last_return().filter(|&at| at > since).unwrap_or(now).min(now))
    }
}
