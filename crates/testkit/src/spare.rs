//! A trace as if the machine had more CPUs, all idle.

use holdup_trace::{
    Batch, Cpu, Event, EventId, NameId, Opened, Pid, Reader, Result, Run, RunDecoder, TaskState,
    Tid, What,
};
use std::ops::Range;

/// The trace of a machine with twice the CPUs, of which the new ones are idle. One event on each of
/// them, at the trace's start, shows its idle task; nothing else happens there. The bottleneck of
/// the smaller machine is the bottleneck of this one, too.
pub struct SpareCpus<'a> {
    reader: &'a dyn Reader,
    opened: Opened,
    switch: EventId,
    new: Range<u16>,
}

impl SpareCpus<'_> {
    /// A view of a trace from a machine with `cpus` CPUs. `None` if it is empty, or has no
    /// `sched_switch`.
    pub fn added_to(reader: &dyn Reader, cpus: u16) -> Option<SpareCpus<'_>> {
        let info = reader.info();
        let (first_ts, _) = info.span?;
        let switch = info.events.iter().position(|e| e.short_name() == "sched_switch")?;
        let mut opened = reader.opened().clone();
        opened.runs.push(Run { first_ts });
        Some(SpareCpus { reader, opened, switch: EventId(switch as u16), new: cpus..cpus * 2 })
    }
}

impl Reader for SpareCpus<'_> {
    fn opened(&self) -> &Opened {
        &self.opened
    }

    fn opened_mut(&mut self) -> &mut Opened {
        &mut self.opened
    }

    fn is_slow_to_decode(&self) -> bool {
        self.reader.is_slow_to_decode()
    }

    fn decoder(&self, run: usize) -> Box<dyn RunDecoder + '_> {
        match run + 1 == self.runs().len() {
            false => self.reader.decoder(run),
            true => Box::new(Idle(self)),
        }
    }
}

/// The idle tasks of the new CPUs.
struct Idle<'a>(&'a SpareCpus<'a>);

impl RunDecoder for Idle<'_> {
    fn fill(&mut self, batch: &mut Batch) -> Result<bool> {
        let SpareCpus { opened, switch, new, .. } = self.0;
        let ts = opened.runs.last().map_or(0, |run| run.first_ts);
        batch.events.extend(new.clone().map(|cpu| Event {
            ts,
            tid: Tid::IDLE,
            pid: Pid::UNKNOWN,
            comm: NameId::NONE,
            cpu: Cpu(cpu),
            id: *switch,
            what: What::Switch {
                prev: Tid::IDLE,
                next: Tid::IDLE,
                prev_state: TaskState::from_text(b"R"),
                prev_comm: NameId::NONE,
                next_comm: NameId::NONE,
                prev_prio: 120,
                next_prio: 120,
            },
        }));
        Ok(false)
    }
}
