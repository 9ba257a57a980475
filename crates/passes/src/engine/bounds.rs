//! The part analysed begins and ends.

use super::Engine;
use super::current::draw;
use crate::cpus::CpuState;
use crate::facts::RunEnd;
use crate::grid::Grid;
use crate::hist::Histogram;
use crate::judge::Ended;
use crate::options::Detail;
use crate::slot::Slot;
use crate::state::{Mode, State};
use crate::threads::Thread;
use crate::throttle::Throttles;
use crate::timeline::Timeline;
use holdup_trace::{Cpu, Nanos, Quality, QualityCode};

impl Engine {
    /// Sets the part to analyse, `from` up to `to`, and how much is kept about its waits.
    pub(crate) fn look_at(&mut self, from: Nanos, to: Nanos, detail: Detail) {
        self.last = to;
        let fresh = from <= self.start && self.events == 0;
        let slots = self.threads.iter().map(|(slot, _)| slot.0 as usize + 1).max();
        self.waits.keep(detail, from, slots.filter(|_| !fresh).unwrap_or(0));
        if !fresh {
            self.restart(from);
        }
    }

    /// Extends the part to analyse up to `to`.
    pub(crate) fn goes_on(&mut self, to: Nanos) {
        self.last = to;
    }

    /// Clears every sum, keeps every state: the part of the trace to be analysed starts at `now`.
    pub(crate) fn restart(&mut self, now: Nanos) {
        self.catch_up_with_all();
        let now = now.max(self.now);
        let slots: Vec<Slot> = self.threads.iter().map(|(slot, _)| slot).collect();
        slots.into_iter().for_each(|slot| self.settle_reason(now, slot));
        let cpus: Vec<Cpu> = self.cpus.iter().map(|(c, _)| c).collect();
        for cpu in cpus {
            // A thread only presumed to run still is; what it did before is unknown.
            if !self.cpus.get_mut(cpu).is_presumed() {
                self.charge(now, cpu);
            }
        }
        let grid = Grid::new(now, self.last);
        self.cpus.restart(now, grid);
        self.timeline = Timeline::new(grid);
        self.irqs.restart();
        self.blame.restart(now, grid);
        self.throttles.values_mut().for_each(Throttles::restart);
        self.rivals.restart();
        self.programs.restart(now);
        let inside = |t: &&Thread| t.living.call.as_ref().is_some_and(|call| call.inside);
        let inside = self.threads.iter().filter(|(_, t)| inside(t)).count();
        self.costs.restart(inside as u32);
        self.spaces.restart();
        self.user_intervals.restart();
        self.counters.restart();
        self.code.restart();
        self.ticks.restart();
        self.quality = Quality::default();
        self.invariants.clear();
        self.lost_before = self.lost_events;
        self.events = 0;
        self.delays = Histogram::default();
        self.others.fill(0);
        let waits = self.threads.iter().filter(|(_, t)| t.living.blame_mark.is_some());
        let marks: Vec<(Slot, State)> = waits.map(|(slot, t)| (slot, t.state)).collect();
        for t in self.threads.iter_mut() {
            t.restart(now);
        }
        if let Some(facts) = &mut self.facts {
            facts.restart(now);
        }
        self.restart_locks(now);
        for (slot, state) in marks {
            // The wait goes on; its share counts from here. A wake-up in progress is the cost of a
            // wait that is over and that is not in the part.
            self.blame.wait_ends(now, 0);
            let goes_on = state != State::Waking;
            let mark = goes_on.then(|| self.blame.wait_begins(now));
            self.threads[slot].living.blame_mark = mark;
        }
        let (g, ready) = (self.blame.integral_at(now), self.blame.ready_at(now));
        let held = self.blame.throttled_at(now);
        self.waits.restart(now, g);
        for t in self.threads.iter_mut() {
            if !t.living.is_over() {
                t.living.ready_mark = ready;
            }
            if let Some(throttle) = &mut t.throttle {
                **throttle = throttle.restarted(now, held);
            }
        }
        self.start = now;
        self.now = now;
    }

    /// The trace ends at `end`: close what is open.
    pub(crate) fn finish(&mut self, end: Nanos, cpus: &[Cpu]) {
        self.catch_up_with_all();
        let end = end.max(self.now);
        self.now = end;
        // If no event says its CPU, no CPU is more silent than the others.
        let has_met = self.cpus.iter().any(|(_, c)| c.met);
        for &cpu in cpus {
            // A busy CPU has at least its timer's interrupts; but if only some tasks were recorded,
            // the interrupts of others were not.
            let silent_is_idle = self.system_wide && (self.caps.irqs || self.caps.softirqs);
            let c = self.cpus.get_mut(cpu);
            if !c.seen {
                self.quality.add(QualityCode::SilentCpu, (has_met && !c.met) as u64);
                // A thread sent to this CPU ran there: its events are missing.
                let idle = silent_is_idle && !c.is_target && !self.lost;
                let what: fn(&mut CpuState, Nanos) = match idle {
                    true => |c, span| c.idle += span,
                    false => |c, span| c.unaccounted += span,
                };
                self.charge_as(end, cpu, what);
            }
            self.last_of_queues(end, cpu);
            self.charge(end, cpu);
            let c = self.cpus.get_mut(cpu);
            draw(c, &self.threads, None);
            if let Some(lane) = &mut c.lane {
                lane.finish();
            }
        }
        let slots: Vec<Slot> = self.threads.iter().map(|(s, _)| s).collect();
        for slot in slots {
            // A thread that has ended waits for nothing. That is most threads if there are very
            // many.
            if !self.threads[slot].living.is_over() {
                self.stop_waiting(end, slot, None, Ended::Trace);
            }
            if self.threads[slot].is_throttled() {
                self.unthrottle(end, slot, end);
            }
            let t = &mut self.threads[slot];
            t.settle(end);
            if let Some(lane) = &mut t.lane {
                lane.finish();
            }
            if let Some(steps) = &mut self.waits.steps {
                steps.ran(end, slot, t.running_ns);
            }
            if let Some(facts) = &mut self.facts {
                facts.run_ends(end, slot, t, RunEnd::Trace);
            }
            if let Some(call) = t.living.call {
                t.living.call = None;
                let stats = t.living.calls.entry(call.nr);
                stats.pending += 1;
                stats.pending_ns += end - call.start;
            }
            // The mode of a thread that made a call is known.
            if self.threads[slot].mode == Mode::Unknown {
                let mode = self.mode_without_calls(slot);
                self.decide(slot, mode);
            }
        }
        for &cpu in cpus {
            self.close_bin(cpu);
        }
        self.finish_locks(end);
        self.blame.finish(end);
        self.programs.finish(end);
    }
}
