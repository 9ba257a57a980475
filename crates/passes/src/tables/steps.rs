//! What each thread did, step by step, for a replay.

use crate::analysis::Analysis;
use crate::slot::Slot;
use crate::steps::ThreadSteps;
use crate::waits::{Key, Object};
use holdup_trace::Nanos;

impl Analysis {
    /// CPU time of a thread in calls by which threads contend for a mutex, by mutex in no order;
    /// without others there would be no such calls.
    pub fn turns_at(&self, slot: Slot) -> impl Iterator<Item = (Object, Nanos)> {
        let steps = self.engine.waits.steps.as_ref();
        steps.into_iter().flat_map(move |steps| steps.turns(slot))
    }

    /// The address of a lock of the kernel; `None` of other objects, and where it is not known.
    pub fn kernel_lock(&self, object: Object) -> Option<u64> {
        match self.engine.waits.keys[object.0 as usize] {
            Key::KernelLock { addr, .. } if addr != 0 => Some(addr),
            _ => None,
        }
    }

    /// How long threads keep a CPU that others queue for, on average; `None` if none was seen to
    /// lose one for that, and without [`crate::Detail::Steps`].
    pub fn slice_ns(&self) -> Option<Nanos> {
        self.engine.waits.steps.as_ref()?.slice_ns()
    }

    /// Whether it has what threads did: [`crate::Detail::Steps`].
    pub fn keeps_steps(&self) -> bool {
        self.engine.waits.steps.is_some()
    }

    /// What a thread did; nothing without [`crate::Detail::Steps`].
    pub fn steps(&self, slot: Slot) -> ThreadSteps<'_> {
        let steps = self.engine.waits.steps.as_ref();
        steps.map_or_else(ThreadSteps::default, |steps| steps.of(slot))
    }
}
