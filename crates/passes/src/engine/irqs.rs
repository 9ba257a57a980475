//! Interrupts and softirqs, on top of whatever a CPU was doing.

use super::Engine;
use crate::cpus::{Frame, Level, MAX_CPUS};
use crate::facts::{Fact, Handled};
use crate::irqs::Handler;
use crate::irqs::IrqKind;
use holdup_trace::{Event, NameId, Nanos, QualityCode, Tid};

impl Engine {
    pub(super) fn enter_level(
        &mut self,
        now: Nanos,
        e: &Event,
        level: Level,
        kind: IrqKind,
        id: u32,
        name: NameId,
    ) {
        if e.cpu.0 >= MAX_CPUS {
            return;
        }
        // A thread that ends has no id for its last few microseconds; the CPU knows the thread.
        if e.tid != Tid::UNKNOWN {
            self.current(now, e.cpu, e.tid, e.pid);
        }
        self.charge(now, e.cpu);
        let c = self.cpus.get_mut(e.cpu);
        if level == Level::Irq {
            c.irqs += 1;
        }
        if !c.push(Frame { level, id, start: now }) {
            self.quality.add(QualityCode::UnmatchedIrq, 1);
        }
        self.refresh_idle(now, e.cpu);
        if name != NameId::NONE {
            self.irqs.named(kind, id as u64, e.cpu, name);
        }
    }

    pub(super) fn leave_level(
        &mut self,
        now: Nanos,
        e: &Event,
        level: Level,
        kind: IrqKind,
        id: u32,
    ) {
        if e.cpu.0 >= MAX_CPUS {
            return;
        }
        // A thread that ends has no id for its last few microseconds; the CPU knows the thread.
        if e.tid != Tid::UNKNOWN {
            self.current(now, e.cpu, e.tid, e.pid);
        }
        self.charge(now, e.cpu);
        let c = self.cpus.get_mut(e.cpu);
        let frame = c.pop(level, id);
        if level == Level::Irq {
            c.irq_left = now;
        }
        self.refresh_idle(now, e.cpu);
        match frame {
            Some(frame) => {
                let handler = Handler { kind, id: id as u64, cpu: e.cpu };
                self.irqs.ran(kind, handler.id, e.cpu, frame.start, now);
                self.handled(frame.start, now, handler);
            }
            None => self.quality.add(QualityCode::UnmatchedIrq, 1),
        }
    }

    pub(super) fn work_end(&mut self, now: Nanos, work: u64) {
        match self.irqs.work_end(now, work) {
            Some((start, handler)) => self.handled(start, now, handler),
            None => self.quality.add(QualityCode::UnmatchedIrq, 1),
        }
    }

    fn handled(&mut self, start: Nanos, end: Nanos, handler: Handler) {
        if let Some(facts) = &mut self.facts {
            facts.rows.push(Fact::Irq(Handled { start, end, cpu: handler.cpu, handler }));
        }
    }
}
