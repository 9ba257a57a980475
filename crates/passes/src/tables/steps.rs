//! What each thread did, step by step, for a replay.

use crate::analysis::Analysis;
use crate::connections::Connection;
use crate::limits::ENOUGH;
use crate::slot::Slot;
use crate::steps::{ThreadSteps, Turn};
use crate::waits::{Key, Object};
use holdup_trace::Nanos;

impl Analysis {
    /// Calls of a thread by which threads contend for a mutex, by mutex, unordered. Without other
    /// threads there would be no such calls.
    pub fn fought_for(&self, slot: Slot) -> impl Iterator<Item = (Object, Turn)> {
        let steps = self.engine.waits.steps.as_ref();
        steps.into_iter().flat_map(move |steps| steps.fought_for(slot))
    }

    /// CPU time that any call costs in addition to the time between its events: on the way into the
    /// kernel and back. 0 if too few calls show that.
    pub fn around_call_ns(&self) -> Nanos {
        self.engine.costs.around_call_ns(self.limit(&ENOUGH))
    }

    /// The lock that a thread tries for between naps, if it does.
    pub fn polled_lock(&self, slot: Slot) -> Option<Object> {
        self.engine.waits.polled_lock(slot, self.thread(slot).comm)
    }

    /// The connections that were made, accepted and closed, in the order in which the calls
    /// returned; none without [`crate::Detail::Steps`].
    pub fn connections(&self) -> &[Connection] {
        self.engine.waits.steps.as_ref().map_or(&[], |steps| &steps.connections.all)
    }

    /// The address of a lock of the kernel; `None` for other objects and if it is not known.
    pub fn kernel_lock(&self, object: Object) -> Option<u64> {
        match self.engine.waits.keys[object.0 as usize] {
            Key::KernelLock { addr, .. } if addr != 0 => Some(addr),
            _ => None,
        }
    }

    /// Average time that threads keep a CPU while others queue for it; `None` if no thread was seen
    /// to lose its CPU that way, and without [`crate::Detail::Steps`].
    pub fn slice_ns(&self) -> Option<Nanos> {
        self.engine.waits.steps.as_ref()?.slice_ns()
    }

    /// Whether the steps of threads were kept: [`crate::Detail::Steps`].
    pub fn keeps_steps(&self) -> bool {
        self.engine.waits.steps.is_some()
    }

    /// The steps of a thread; empty without [`crate::Detail::Steps`].
    pub fn steps(&self, slot: Slot) -> ThreadSteps<'_> {
        let steps = self.engine.waits.steps.as_ref();
        steps.map_or_else(ThreadSteps::default, |steps| steps.of(slot))
    }
}
