//! What holders of kernel locks did while others waited.
//!
//! For objects of [`crate::waits`] this comes from `contention_begin/end` and `contended_release`,
//! for lockdep's maps from lockdep.

use super::LockSource;
use crate::analysis::Analysis;
use crate::past::HolderDid;
use crate::slot::Slot;
use crate::tables::HolderTime;
use crate::waits::Object;
use holdup_trace::Nanos;
use std::collections::BTreeMap;

/// What the holders of each object did.
pub(super) type Did = BTreeMap<Object, BTreeMap<Slot, Vec<(HolderDid, Nanos)>>>;

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
