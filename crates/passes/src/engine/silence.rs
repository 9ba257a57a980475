//! CPUs without events while they run: see [`crate::stolen`].

use super::Engine;
use crate::cpus::{Level, MAX_CPUS};
use crate::past::HolderPart;
use crate::slot::Slot;
use crate::state::Mode;
use crate::stolen::{From, SHORTEST};
use holdup_trace::{Event, Nanos};

impl Engine {
    /// An event of a CPU: that CPU has left none since its previous one.
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

    /// The first event of a CPU since `since`. If it ran the same thread all the time, its ticks
    /// are missing.
    #[cold]
    #[inline(never)]
    fn was_silent(&mut self, now: Nanos, e: &Event, since: Nanos) {
        let c = self.cpus.get_mut(e.cpu);
        let Some((tid, slot)) = c.current() else { return };
        let ran = c.seen && tid == e.tid && slot != Slot::IDLE && !c.is_presumed();
        // Silence proves nothing if events were lost or only some tasks were recorded.
        if !ran || !self.system_wide || self.lost {
            return;
        }
        let t = &mut self.threads[slot];
        let from = match c.stack.last() {
            // An interrupt handler delays the tick.
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
        // Stolen time is not part of the cost of the thread's code and calls.
        t.ran(since, since + ns, HolderPart::Stolen);
        let living = &mut *t.living;
        match (from, &mut living.call, &mut living.user_interval) {
            (From::User, _, Some(interval)) => interval.since += ns,
            (From::Kernel { .. }, Some(call), _) => call.stolen += ns,
            _ => {}
        }
    }
}
