//! A sample of running code.

use super::Engine;
use holdup_trace::{Event, Tid};

impl Engine {
    /// A thread was sampled, perhaps in the kernel; `chain` begins with the sampled address.
    pub(super) fn sampled(&mut self, e: &Event, in_kernel: bool, chain: &[u64]) {
        if e.tid == Tid::IDLE || e.tid == Tid::UNKNOWN {
            return;
        }
        let slot = self.find_or_add(e.tid);
        // An interrupt is not the thread's own time.
        let interrupted = self.cpus.get(e.cpu).is_some_and(|c| !c.stack.is_empty());
        let t = &self.threads[slot];
        // The time in a recorded call is known without samples.
        let counts = !interrupted && t.living.call.is_none();
        let Some(&address) = chain.first().filter(|_| counts) else { return };
        let address = (!in_kernel).then_some(address);
        let mapping = address.and_then(|address| self.waits.code_below(t.pid, address));
        self.code.sample(slot, address, mapping, &self.names);
    }
}
