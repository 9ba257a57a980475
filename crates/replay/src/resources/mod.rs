//! What may be scarce, as it would be fixed: CPUs and devices, locks, threads.

mod kernel;
mod locks;
mod spins;
mod threads;

use crate::build::is_part;
use crate::change::{Change, LockChange, Part};
use crate::program::{Joins, ObjectId, Program, ReplayObject, ThreadProgram};
use crate::relief::Waits;
use holdup_attribution::{Attribution, Resource};
use holdup_passes::limits::WELL_MET;
use holdup_passes::{Analysis, ByThread, FutexUse, PairSum, Slot};
use holdup_trace::Nanos;
use kernel::Contention;
pub(crate) use locks::is_handed_on;
use rustc_hash::FxHashMap;
use std::cmp::Reverse;

/// A member of a resource.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Member {
    /// An object that threads wait for.
    Object(ObjectId),
    /// A thread, by its number in [`Program::threads`].
    Thread(usize),
}

/// A scarce resource, and the change that removes it.
#[derive(Clone, Debug)]
pub(crate) struct Scarce {
    pub(crate) resource: Resource,
    pub(crate) members: Vec<Member>,
    pub(crate) change: Vec<Change>,
    /// How much it delays in the trace, at most, in ns: larger ones are tried first.
    pub(crate) weight: Nanos,
    /// It is the work of certain threads.
    pub(crate) is_thread: bool,
    /// No replay divides their work: they are made faster, by as much as all CPUs could.
    pub(crate) is_bound: bool,
    /// The part of the change that the chains of wake-ups can tell: objects that one thread has at
    /// a time. Not what a device does: its drivers' CPU work stays, one piece after the other.
    pub(crate) chained: Vec<Change>,
}

/// Everything that may be scarce, by what is known of the trace.
pub(crate) fn resources(program: &Program, judged: &Attribution<'_>, waits: &Waits) -> Vec<Scarce> {
    program.joins.get_or_init(|| Joins::of(program, waits));
    let finder = Finder {
        program,
        waits,
        judged,
        analysis: judged.analysis,
        waited: &judged.by_object.waited_by,
        ended: &judged.by_object.ended_by,
        asleep: waits.by_slot(program),
    };
    let contention = finder.contention();
    let mut found = finder.machine(&contention);
    found.extend(finder.locks());
    found.extend(finder.kernel(contention));
    found.extend(finder.threads());
    found.extend(finder.spins());
    // The work ends earlier by no more than all waiting for it.
    let gain = judged.thresholds.get(&WELL_MET);
    found.retain(|r| !r.change.is_empty() && is_part(r.weight, program.wall_ns, gain));
    found.sort_by_key(|r| (r.resource, Reverse(r.weight)));
    found
}

/// So many threads that do more than their part of rounds are named.
const STRAGGLERS: usize = 3;

struct Finder<'a> {
    program: &'a Program,
    waits: &'a Waits,
    judged: &'a Attribution<'a>,
    analysis: &'a Analysis,
    waited: &'a ByThread<PairSum>,
    ended: &'a ByThread<PairSum>,
    /// How long each thread sleeps in all.
    asleep: FxHashMap<Slot, Nanos>,
}

fn gone(objects: &[ObjectId]) -> Vec<Change> {
    objects.iter().map(|&id| Change::Lock(id, LockChange::None)).collect()
}

impl Finder<'_> {
    /// What the whole machine has too little of.
    fn machine(&self, contention: &Contention) -> Vec<Scarce> {
        let p = self.program;
        let one = |resource, change, weight| Scarce {
            resource,
            members: Vec::new(),
            change,
            weight,
            is_thread: false,
            is_bound: false,
            chained: Vec::new(),
        };
        let ready: Nanos = self
            .works()
            .map(|(_, t)| self.analysis.thread(t.slot))
            .fold(0, |all, t| all + t.woken_ns + t.preempted_ns);
        // A further CPU only helps if threads outside the work have enough CPUs too.
        let outside = |t: &&ThreadProgram| t.is_background && !t.is_kthread && t.run_ns > 0;
        let want = self.works().count() + p.threads.iter().filter(outside).count();
        let want = want.clamp(p.cpus as usize + 1, 4 * p.cpus as usize) as u32;
        let want = want.min(crate::MAX_CPUS);
        let mut more = vec![Change::Cpus(want)];
        more.extend(contention.on(want, p.cpus));
        let mut found = vec![one(Resource::Cpus, more, ready)];
        let held_off = p.threads.iter().map(|t| t.held_off_ns).sum();
        if held_off > 0 {
            found.push(one(Resource::Quota, vec![Change::NoQuota], held_off));
        }
        let devices = p.objects.iter().zip(0..).filter(|(o, _)| o.is_device && o.waits > 0);
        let devices: Vec<(&ReplayObject, u32)> = devices.collect();
        if !devices.is_empty() {
            found.push(Scarce {
                members: devices.iter().map(|&(_, id)| Member::Object(ObjectId(id))).collect(),
                ..one(
                    Resource::Device,
                    vec![Change::NoDevices],
                    devices.iter().map(|d| d.0.wait_ns).sum(),
                )
            });
        }
        if self.works().any(|(_, t)| t.allowed != u64::MAX) {
            found.push(one(Resource::Placement, vec![Change::AnyCpu], ready));
        }
        let barrier = |o: &&ReplayObject| o.usage == Some(FutexUse::Barrier);
        let mut waits = p.joins().waited_ns;
        let mut deal = vec![Change::Deal];
        if p.threads.iter().any(|t| t.at_barriers) {
            waits += p.objects.iter().filter(barrier).map(|o| o.wait_ns).sum::<Nanos>();
            deal.push(Change::AnyCpu);
        }
        if waits > 0 {
            let stragglers = p.stragglers(STRAGGLERS).into_iter().map(Member::Thread);
            let members = stragglers.collect();
            found.push(Scarce { members, ..one(Resource::Parallelism, deal, waits) });
        }
        if let Some(stolen) = self.analysis.stolen().map(|s| s.total_ns()).filter(|&ns| ns > 0) {
            let all: Nanos = p.threads.iter().map(|t| t.run_ns).sum();
            let left = 1.0 - stolen as f64 / all.max(stolen).max(1) as f64;
            let factors = vec![left.max(*crate::FACTORS.start()); p.threads.len()];
            let change = Change::Scale { part: Part::Stolen, factors };
            found.push(one(Resource::Hypervisor, vec![change], stolen));
        }
        found
    }

    /// Threads that do the work, or serve those that do.
    fn works(&self) -> impl Iterator<Item = (usize, &ThreadProgram)> {
        self.program.threads.iter().enumerate().filter(|(_, t)| t.takes_part())
    }

    /// These objects as one resource: no thread waits for any of them.
    fn of_objects(&self, resource: Resource, ids: Vec<ObjectId>) -> Scarce {
        let weight = ids.iter().map(|id| self.program.objects[id.0 as usize].wait_ns).sum();
        Scarce {
            resource,
            chained: gone(&ids),
            change: gone(&ids),
            members: ids.into_iter().map(Member::Object).collect(),
            weight,
            is_thread: false,
            is_bound: false,
        }
    }
}
