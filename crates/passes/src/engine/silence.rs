//! CPUs that fall silent while they run: see [`crate::stolen`].

use super::Engine;
use crate::cpus::{Level, MAX_CPUS};
use crate::past::HolderPart;
use crate::slot::Slot;
use crate::state::Mode;
use crate::stolen::{From, SHORTEST};
use holdup_trace::{Event, Nanos};

impl Engine {
    /// An event of a CPU: none came from it since the one before.
    #[inline]
    pub(super) fn heard(&mut self, now: Nanos, e: &Event) {
        let Some(c) = self.cpus.known_mut(e.cpu) else { return self.met(now, e) };
        c.met = true;
        let since = c.heard.max(c.charged_to);
        c.heard = now;
        if now.saturating_sub(since) >= SHORTEST {
            self.was_silent(now, e, since);
        }
    }

    /// The first event of a CPU, whatever it is.
    #[cold]
    #[inline(never)]
    fn met(&mut self, now: Nanos, e: &Event) {
        if e.cpu.0 < MAX_CPUS {
            let c = self.cpus.get_mut(e.cpu);
            (c.met, c.heard) = (true, now);
        }
    }

    /// A CPU says something for the first time since `since`. If it ran the same thread all the
    /// while, its ticks are missing.
    #[cold]
    #[inline(never)]
    fn was_silent(&mut self, now: Nanos, e: &Event, since: Nanos) {
        let c = self.cpus.get_mut(e.cpu);
        let Some((tid, slot)) = c.current else { return };
        let ran = c.seen && tid == e.tid && slot != Slot::IDLE && !c.is_presumed();
        // Where events are missing, or those of other tasks are, silence means nothing.
        if !ran || !self.system_wide || self.lost {
            return;
        }
        let t = &mut self.threads[slot];
        let from = match c.stack.last() {
            // A handler holds the tick off.
            Some(frame) if frame.level == Level::Irq => return,
            Some(_) => From::Softirq,
            None if t.spins && t.mode != Mode::Kthread => From::Kernel { spin: true },
            None => match t.mode {
                Mode::User | Mode::Unknown => From::User,
                Mode::Kernel => From::Kernel { spin: false },
                Mode::Kthread => From::Kthread,
            },
        };
        let ns = self.ticks.silence(now - since);
        if ns == 0 {
            return;
        }
        c.stolen.charge(from, ns);
        // It is not a part of what the thread's code and its calls cost.
        t.ran(since, since + ns, HolderPart::Stolen);
        let living = &mut *t.living;
        match (from, &mut living.call, &mut living.user_interval) {
            (From::User, _, Some((user0, _))) => *user0 += ns,
            (From::Kernel { .. }, Some(call), _) => call.stolen += ns,
            _ => {}
        }
    }
}
