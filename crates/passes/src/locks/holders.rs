//! What those did who held a lock of the kernel while others waited for it.
//!
//! `contention_begin/end` and `contended_release` tell it of the objects of [`crate::waits`], lockdep
//! of its own maps.

use super::LockSource;
use crate::analysis::Analysis;
use crate::engine::Engine;
use crate::past::{HolderDid, Past};
use crate::tables::HolderTime;
use crate::threads::Slot;
use crate::waits::{ByThread, Object};
use holdup_trace::Nanos;

impl Engine {
    /// A thread held the lock with this lockdep map while others waited. It is followed from its
    /// first such hold on: to follow all who ever take a lock would cost too much.
    #[cold]
    pub(super) fn lock_was_held(
        &mut self,
        now: Nanos,
        lock: u64,
        slot: Slot,
        span: (Nanos, Nanos),
    ) {
        let t = &mut self.threads[slot];
        t.past.get_or_insert_with(|| Box::new(Past::since(now)));
        let t = &self.threads[slot];
        let Some(past) = &t.past else { return };
        let times = self.locks.lockdep.holders_did.entry(lock).or_default();
        // The hold began after its own wait for the lock.
        past.while_it_had(|_: Object| false, span, t.does(), |did, ns| times.add(did, ns));
    }
}

/// What the holders of each object did.
pub(super) type Did = ByThread<Vec<(HolderDid, Nanos)>>;

impl Analysis {
    /// What the holders of these locks did while others waited.
    pub(super) fn lock_holders_did(
        &self,
        locks: &[u64],
        source: LockSource,
        did: &Did,
    ) -> Vec<HolderTime> {
        let final_one = |(did, ns): (HolderDid, Nanos)| {
            let object = did.object.map(|object| self.final_object(object));
            (HolderDid { object, ..did }, ns)
        };
        let of_lock = |&lock: &u64| -> Vec<(HolderDid, Nanos)> {
            match source {
                LockSource::Contention => {
                    let object = self.engine.waits.kernel_lock(lock);
                    let by = object.and_then(|object| did.get(&self.final_object(object)));
                    by.into_iter().flat_map(|by| by.values()).flatten().copied().collect()
                }
                LockSource::Lockdep => {
                    let times = self.engine.locks.lockdep.holders_did.get(&lock);
                    times.into_iter().flat_map(|times| times.iter()).map(final_one).collect()
                }
            }
        };
        self.holder_times(locks.iter().flat_map(of_lock))
    }
}
