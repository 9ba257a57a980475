//! What threads waited for: its name, its kind, and what a wait for it means in the replay.

use super::Builder;
use crate::program::{ObjectId, Order, ReplayObject};
use holdup_attribution::in_words;
use holdup_passes::{Analysis, FutexUse, Object, ObjectKind, ObjectStats};
use holdup_trace::Nanos;
use rustc_hash::FxHashMap;

/// What a sleep of the trace is in the replay.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Class {
    Lock,
    Barrier,
    Other,
}

impl Builder<'_> {
    pub(super) fn class(&self, object: Object) -> Class {
        match self.stats(self.analysis.final_object(object)) {
            Some(o) if o.is_lock => Class::Lock,
            Some(o) if o.usage == Some(FutexUse::Barrier) => Class::Barrier,
            _ => Class::Other,
        }
    }

    /// What was measured about an object, by its final number.
    pub(super) fn stats(&self, object: Object) -> Option<&ObjectStats> {
        self.waited.get(&object).map(|judged| &judged.stats)
    }

    pub(super) fn id(&self, object: Object) -> ObjectId {
        self.ids.get(&self.analysis.final_object(object)).copied().unwrap_or(ObjectId::NONE)
    }

    pub(super) fn name_objects(&mut self) {
        // A glibc condition variable sleeps on two words in turn. They are one object, named after
        // the word with the longer waits, as in the table of waits.
        let mut words: FxHashMap<(u32, u64), (ObjectId, Nanos)> = FxHashMap::default();
        let held_up = |object: Object| -> u128 {
            let by = self.around.waited_by.of(object).iter();
            by.map(|&(slot, pair)| {
                u128::from(pair.wait_ns) * u128::from(self.analysis.thread(slot).running_ns)
            })
            .sum()
        };
        for (&object, o) in self.waited.iter().map(|(object, judged)| (object, &judged.stats)) {
            if o.waits == 0 && !o.is_lock || object == Object::OTHER {
                continue;
            }
            if let Some((id, longest)) = o.condvar.and_then(|c| words.get_mut(&c)) {
                let known = &mut self.objects[id.0 as usize];
                known.of.push(object);
                known.waits += o.waits;
                known.wait_ns += o.wait_ns;
                known.work_delayed += held_up(object);
                if o.wait_ns > *longest {
                    *longest = o.wait_ns;
                    known.name = name_of(self.analysis, object, o);
                }
                self.ids.insert(object, *id);
                continue;
            }
            let id = ObjectId(self.objects.len() as u32);
            let is_device = matches!(o.kind, ObjectKind::Disk | ObjectKind::PageFault)
                || o.device_ns * 2 > o.wait_ns;
            let object_of = ReplayObject {
                of: vec![object],
                kind: o.kind,
                usage: o.usage,
                is_private: o.private,
                name: name_of(self.analysis, object, o),
                is_lock: o.is_lock,
                in_turn: o.in_turn,
                order: Order::Traced,
                is_contended: is_contended(o),
                waits: o.waits,
                wait_ns: o.wait_ns,
                work_delayed: held_up(object),
                hold_ns: 0,
                is_device,
                is_kernel_lock: o.lock_ns * 2 > o.wait_ns
                    || o.kind == ObjectKind::KernelLock && o.idle_ns * 2 <= o.wait_ns,
            };
            self.objects.push(object_of);
            self.ids.insert(object, id);
            words.extend(o.condvar.map(|c| (c, (id, o.wait_ns))));
            if let Some(address) = self.analysis.kernel_lock(object) {
                self.kernel.insert(address, id);
            }
        }
    }

    /// Name the kernel locks that threads only ever spin for.
    pub(super) fn name_spinlocks(&mut self) {
        for &(slot, _) in &self.slots {
            for spun in self.analysis.steps(slot).contended {
                let next = ObjectId(self.objects.len() as u32);
                let std::collections::hash_map::Entry::Vacant(free) = self.kernel.entry(spun.lock)
                else {
                    continue;
                };
                free.insert(next);
                self.objects.push(ReplayObject {
                    of: Vec::new(),
                    kind: ObjectKind::KernelLock,
                    usage: None,
                    is_private: false,
                    name: format!("{} {:#x}", ObjectKind::KernelLock.name(), spun.lock),
                    is_lock: true,
                    in_turn: false,
                    order: Order::Traced,
                    is_contended: false,
                    waits: 0,
                    wait_ns: 0,
                    work_delayed: 0,
                    hold_ns: 0,
                    is_device: false,
                    is_kernel_lock: true,
                });
            }
        }
    }

    /// The same address in two processes of the same name is two objects: add the process ids to
    /// their names.
    pub(super) fn tell_apart(&mut self) {
        let mut often: FxHashMap<String, u32> = FxHashMap::default();
        for o in &self.objects {
            *often.entry(o.name.clone()).or_default() += 1;
        }
        // Two words of one object have one owner.
        let owners: FxHashMap<ObjectId, u32> = self
            .ids
            .iter()
            .filter_map(|(object, &id)| {
                let slot = self.stats(*object)?.first?;
                Some((id, self.analysis.pid(self.analysis.thread(slot))?))
            })
            .collect();
        for (id, pid) in owners {
            let known = &mut self.objects[id.0 as usize];
            if often[&known.name] > 1 {
                known.name += &format!(", pid {pid}");
            }
        }
    }
}

/// The object's kind, address and process; a kernel lock belongs to no process.
fn name_of(analysis: &Analysis, object: Object, o: &ObjectStats) -> String {
    let kind = o.usage.map_or(analysis.kind_name(object, o.kind), FutexUse::name);
    let of = o.first.filter(|_| o.kind != ObjectKind::KernelLock);
    let of = of.map(|slot| format!(" of {}", analysis.process_name(slot)));
    in_words(kind, None, &analysis.object_name(object)) + &of.unwrap_or_default()
}

/// Whether threads that come to wait for a mutex seldom sleep.
pub(super) fn is_contended(o: &ObjectStats) -> bool {
    matches!(o.usage, Some(FutexUse::Mutex | FutexUse::RwLock)) && o.retries * 2 > o.came
}
