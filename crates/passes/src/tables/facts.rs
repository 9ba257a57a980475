//! Names of handlers, threads and locks for facts.

use crate::analysis::Analysis;
use crate::irqs::Handler;
use crate::locks::{LockSource, SWAPPER};
use crate::options::Filter;
use crate::slot::Slot;

impl Analysis {
    /// Kind, number and name of a handler, as the table of interrupts has them.
    pub fn handler(&self, handler: Handler) -> (&'static str, u64, String) {
        let Handler { kind, id, cpu } = handler;
        let name = self.engine.irqs.rows.get(&(kind, id, cpu)).map(|s| s.name).unwrap_or_default();
        self.handler_words(kind, id, name)
    }

    /// The name of the thread in `slot`; `swapper` for the idle task.
    pub fn slot_comm(&self, slot: Slot) -> String {
        if slot == Slot::IDLE { SWAPPER.to_owned() } else { self.comm(self.thread(slot)) }
    }

    /// Whether the filter chooses some threads only.
    pub fn has_filter(&self) -> bool {
        self.shown.is_some() || self.options.filter != Filter::default()
    }

    /// Name of a kernel lock in the table that is made from these events.
    pub fn lock_named(&self, lock: u64, source: LockSource) -> Option<String> {
        match source {
            LockSource::Contention => self.lock_name(lock),
            LockSource::Lockdep => self.class(lock),
        }
    }

    /// Function and offset of the code at this address, or the address; `None` for 0.
    pub fn lock_caller(&self, caller: u64) -> Option<String> {
        self.caller_name(caller)
    }
}
