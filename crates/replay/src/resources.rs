//! What may be scarce, as it would be fixed: which objects are one lock, which threads serve.

use crate::build::is_part;
use crate::change::{Change, LockChange, PARTS};
use crate::exclusive::exclude_each_other;
use crate::program::{ObjectId, Op, Program, ReplayObject, ThreadProgram};
use crate::relief::Waits;
use holdup_attribution::graph::{CYCLE_PCT, components};
use holdup_attribution::{Attribution, Resource, WaitRule};
use holdup_passes::limits::{ALONE, MATTERS, NAMED, Thresholds, WELL_MET};
use holdup_passes::{Analysis, ByThread, FutexUse, Object, ObjectKind, PairSum, Slot};
use holdup_trace::Nanos;
use rustc_hash::{FxHashMap, FxHashSet};
use std::cmp::Reverse;
use std::collections::BTreeMap;

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
    let finder = Finder {
        program,
        waits,
        judged,
        analysis: judged.analysis,
        waited: judged.analysis.waited_by(),
        ended: judged.analysis.ended_by(),
    };
    let mut found = finder.machine();
    found.extend(finder.locks());
    found.extend(finder.kernel());
    found.extend(finder.threads());
    // The work ends earlier by no more than all waiting for it.
    let gain = judged.thresholds.get(&WELL_MET);
    found.retain(|r| !r.change.is_empty() && is_part(r.weight, program.wall_ns, gain));
    found.sort_by_key(|r| (r.resource, Reverse(r.weight)));
    found
}

struct Finder<'a> {
    program: &'a Program,
    waits: &'a Waits,
    judged: &'a Attribution<'a>,
    analysis: &'a Analysis,
    waited: ByThread<PairSum>,
    ended: ByThread<PairSum>,
}

fn gone(objects: &[ObjectId]) -> Vec<Change> {
    objects.iter().map(|&id| Change::Lock(id, LockChange::None)).collect()
}

impl Finder<'_> {
    /// What the whole machine has too little of.
    fn machine(&self) -> Vec<Scarce> {
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
        let more = Change::Cpus(want.min(crate::MAX_CPUS));
        let mut found = vec![one(Resource::Cpus, vec![more], ready)];
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
        if p.threads.iter().any(|t| t.at_barriers) {
            let barrier = |o: &&ReplayObject| o.usage == Some(FutexUse::Barrier);
            let waits = p.objects.iter().filter(barrier).map(|o| o.wait_ns).sum();
            found.push(one(Resource::Parallelism, vec![Change::Deal, Change::AnyCpu], waits));
        }
        if let Some(stolen) = self.analysis.stolen().map(|s| s.total_ns()).filter(|&ns| ns > 0) {
            let all: Nanos = p.threads.iter().map(|t| t.run_ns).sum();
            let left = 1.0 - stolen as f64 / all.max(stolen).max(1) as f64;
            let factors = vec![left.max(*crate::FACTORS.start()); p.threads.len()];
            let name = "the stolen CPU time".to_owned();
            found.push(one(Resource::Hypervisor, vec![Change::Calls { name, factors }], stolen));
        }
        found
    }

    /// Threads that do the work.
    fn works(&self) -> impl Iterator<Item = (usize, &ThreadProgram)> {
        self.program.threads.iter().enumerate().filter(|(_, t)| t.works)
    }

    /// Whether threads wait for it until one busy thread answers. Then that thread's work is
    /// scarce, not the object through which it answers.
    fn is_served(&self, o: &ReplayObject) -> bool {
        let rule = |of: &Object| self.judged.objects.get(of).map(|judged| judged.rule);
        !o.of.is_empty() && o.of.iter().all(|of| rule(of) == Some(WaitRule::OneServer))
    }

    /// Locks and services, each with all its members.
    fn locks(&self) -> Vec<Scarce> {
        let mut found = Vec::new();
        // Futex words through which threads wake each other, by the process that can see them.
        let mut words: BTreeMap<Option<u32>, Vec<ObjectId>> = BTreeMap::new();
        let mut files = Vec::new();
        // What threads of one kind tell each other, such as signals.
        let mut descriptors = Vec::new();
        for (o, id) in self.program.objects.iter().zip(0..).map(|(o, i)| (o, ObjectId(i))) {
            if o.wait_ns == 0 || o.is_device || self.is_served(o) {
                continue;
            }
            match o.kind {
                ObjectKind::Futex => match o.usage {
                    // Barriers and joins are uneven work, not a lock.
                    Some(FutexUse::Barrier | FutexUse::Join) => {}
                    // Waited for once: an end or a result, without contention.
                    _ if o.waits <= 1 && !o.is_lock => {}
                    _ if o.is_lock => found.push(self.of_objects(self.futex(&[id]), vec![id])),
                    _ => words.entry(self.process(&[id])).or_default().push(id),
                },
                ObjectKind::Flock | ObjectKind::PosixLock => files.push(id),
                ObjectKind::Semop | ObjectKind::MessageQueue | ObjectKind::Mqueue => {
                    found.push(self.of_objects(Resource::Service, vec![id]));
                }
                ObjectKind::Pipe
                | ObjectKind::Eventfd
                | ObjectKind::Signal
                | ObjectKind::Descriptor => descriptors.push(id),
                ObjectKind::KernelLock | ObjectKind::Uninterruptible if o.is_kernel_lock => {
                    found.push(self.of_objects(Resource::KernelLock, vec![id]))
                }
                _ => {}
            }
        }
        for words in words.into_values() {
            let (exclusive, others) = self.exclusive(words);
            found.extend(exclusive.into_iter().map(|ids| self.of_objects(self.futex(&ids), ids)));
            for words in self.circles(others) {
                found.push(self.of_words(self.futex(&words), words));
            }
        }
        descriptors.retain(|&id| self.is_among_peers(id));
        // A token in a pipe is taken by whoever comes first, not by the thread that is woken.
        let (tokens, others): (Vec<ObjectId>, Vec<ObjectId>) =
            descriptors.into_iter().partition(|&id| self.is_taken(id));
        found.push(self.of_objects(Resource::Service, tokens));
        found.push(self.of_words(Resource::Service, others));
        found.push(self.of_objects(Resource::Service, files));
        found
    }

    /// The words at which threads of one kind wait for each other whose other sleeps exclude each
    /// other, by kind of thread; and the rest.
    fn exclusive(&self, words: Vec<ObjectId>) -> (Vec<Vec<ObjectId>>, Vec<ObjectId>) {
        let role = |slot| self.analysis.role(self.analysis.thread(slot));
        let mut by_role: BTreeMap<Vec<u8>, Vec<ObjectId>> = BTreeMap::new();
        let mut others = Vec::new();
        for id in words {
            let of = [id];
            let waited = self.words(&of).filter_map(|o| self.waited.get(&o)).flatten();
            match waited.max_by_key(|by| by.1.wait_ns).filter(|_| self.is_among_peers(id)) {
                Some((&slot, _)) => by_role.entry(role(slot)).or_default().push(id),
                None => others.push(id),
            }
        }
        let limits = &self.judged.thresholds;
        let mut exclusive = Vec::new();
        for (kind, ids) in by_role {
            let by = self.words(&ids).flat_map(|o| [self.waited.get(&o), self.ended.get(&o)]);
            let met: FxHashSet<Slot> = by.flatten().flat_map(|by| by.keys().copied()).collect();
            let is_one =
                |t: &ThreadProgram| t.works && met.contains(&t.slot) && role(t.slot) == kind;
            let threads: Vec<bool> = self.program.threads.iter().map(is_one).collect();
            match exclude_each_other(self.program, self.waits, &threads, limits) {
                true => exclusive.push(ids),
                false => others.extend(ids),
            }
        }
        others.sort_unstable();
        (exclusive, others)
    }

    /// Whether threads take it and give it back, as [`holdup_attribution::Contenders`] says.
    fn is_taken(&self, id: ObjectId) -> bool {
        self.judged.contenders.are_at_any(&self.program.objects[id.0 as usize].of)
    }

    /// Whether threads of one kind end most of their waiting for it themselves.
    fn is_among_peers(&self, id: ObjectId) -> bool {
        let role = |slot| self.analysis.role(self.analysis.thread(slot));
        let (mut all, mut own) = (0, 0);
        for word in self.words(&[id]) {
            let waited = || self.waited.get(&word).into_iter().flatten();
            let Some((&waiter, _)) = waited().max_by_key(|by| by.1.wait_ns) else { continue };
            let waiter = role(waiter);
            all += waited().map(|by| by.1.wait_ns).sum::<Nanos>();
            for (&waker, pair) in self.ended.get(&word).into_iter().flatten() {
                own += if role(waker) == waiter { pair.wait_ns } else { 0 };
            }
        }
        own * 2 >= all
    }

    /// Futex words by the circle of threads that wake each other through them. A lock goes round in
    /// one circle: its threads may wake others, for example one that adds connections to their
    /// pool, but are not woken by them.
    fn circles(&self, ids: Vec<ObjectId>) -> Vec<Vec<ObjectId>> {
        // What each thread waits in all: a handshake when it starts closes no circle.
        let mut waits: FxHashMap<Slot, Nanos> = FxHashMap::default();
        for (&slot, pair) in self.words(&ids).filter_map(|o| self.waited.get(&o)).flatten() {
            *waits.entry(slot).or_default() += pair.wait_ns;
        }
        let matters = |part: Nanos, all: Nanos| is_part(part, all, CYCLE_PCT as f64);
        // From each word to the threads that wait there, and from each waker to its words.
        let mut next: Vec<Vec<usize>> = vec![Vec::new(); ids.len()];
        let mut nodes: FxHashMap<Slot, usize> = FxHashMap::default();
        let mut node = |slot: Slot, next: &mut Vec<Vec<usize>>| {
            *nodes.entry(slot).or_insert_with(|| {
                next.push(Vec::new());
                next.len() - 1
            })
        };
        for (i, &id) in ids.iter().enumerate() {
            for word in self.words(&[id]) {
                for (&waiter, pair) in self.waited.get(&word).into_iter().flatten() {
                    if matters(pair.wait_ns, waits[&waiter]) {
                        let waiter = node(waiter, &mut next);
                        next[i].push(waiter);
                    }
                }
                let ended = || self.ended.get(&word).into_iter().flatten();
                let all = ended().map(|by| by.1.wait_ns).sum();
                for (&waker, pair) in ended() {
                    if matters(pair.wait_ns, all) {
                        let waker = node(waker, &mut next);
                        next[waker].push(i);
                    }
                }
            }
        }
        let of_words = |circle: Vec<usize>| {
            circle.into_iter().filter_map(|node| ids.get(node).copied()).collect::<Vec<_>>()
        };
        components(&next).into_iter().map(of_words).filter(|words| !words.is_empty()).collect()
    }

    /// The process of the threads that wait for these, if most of the waiting is of one process and
    /// for objects of one process.
    fn process(&self, ids: &[ObjectId]) -> Option<u32> {
        let of = |map: &ByThread<PairSum>| {
            let mut by: BTreeMap<u32, Nanos> = BTreeMap::new();
            for (&slot, pair) in self.words(ids).filter_map(|o| map.get(&o)).flatten() {
                if let Some(pid) = self.analysis.pid(self.analysis.thread(slot)) {
                    *by.entry(pid).or_default() += pair.wait_ns;
                }
            }
            let all: Nanos = by.values().sum();
            let (pid, ns) = by.into_iter().max_by_key(|of| of.1)?;
            (ns * 2 > all).then_some(pid)
        };
        let waits = of(&self.waited)?;
        of(&self.ended).is_none_or(|ends| ends == waits).then_some(waits)
    }

    fn words<'a>(&'a self, ids: &'a [ObjectId]) -> impl Iterator<Item = Object> + 'a {
        ids.iter().flat_map(|id| self.program.objects[id.0 as usize].of.iter().copied())
    }

    fn futex(&self, ids: &[ObjectId]) -> Resource {
        let private = |id: &ObjectId| self.program.objects[id.0 as usize].is_private;
        match self.process(ids).is_some() || ids.iter().any(private) {
            true => Resource::ThreadLock,
            false => Resource::Service,
        }
    }

    /// Words that threads wake each other through. Those that are handed on are one lock. The
    /// others are a pool of workers that sleep without work, or an end that is waited for.
    fn of_words(&self, resource: Resource, mut words: Vec<ObjectId>) -> Scarce {
        let stats = |of: Object| self.judged.objects.get(&of).map(|judged| &judged.stats);
        let wakes_all = |id| self.words(&[id]).any(|of| stats(of).is_some_and(|o| o.wakes_all));
        loop {
            let by = self.waits.handed_on(|id| words.contains(&id), wakes_all);
            let before = words.len();
            words.retain(|id| by.get(id).is_some_and(|of| of.handed * 2 >= of.all));
            if words.len() == before {
                return self.of_objects(resource, words);
            }
        }
    }

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

    /// Kernel locks: those that threads are seen to spin for, and what calls cost because of other
    /// threads.
    fn kernel(&self) -> Vec<Scarce> {
        let mut found = Vec::new();
        let p = self.program;
        let mut spun: FxHashMap<ObjectId, Nanos> = FxHashMap::default();
        let mut by_thread = vec![0; p.threads.len()];
        for (i, t) in p.threads.iter().enumerate() {
            for op in &p.ops[t.from as usize..t.to as usize] {
                if let &Op::Spin(ns, lock) = op {
                    *spun.entry(lock).or_default() += ns;
                    by_thread[i] += ns;
                }
            }
        }
        let mut spun: Vec<(Nanos, ObjectId)> = spun
            .into_iter()
            .filter(|(id, _)| p.objects[id.0 as usize].wait_ns == 0)
            .map(|(id, ns)| (ns, id))
            .collect();
        spun.sort_unstable();
        for (ns, id) in spun {
            found.push(Scarce { weight: ns, ..self.of_objects(Resource::KernelLock, vec![id]) });
        }
        found.extend(self.lost_in_calls(&by_thread));
        found
    }

    /// What calls cost beyond their own work, given back to each thread in proportion.
    fn lost_in_calls(&self, spun: &[Nanos]) -> Option<Scarce> {
        let (p, judged) = (self.program, self.judged);
        let of_all = judged.calls.iter().map(|row| (row.nr, row.cpu_ns.unwrap_or(0)));
        let all: FxHashMap<u32, Nanos> = of_all.collect();
        let lost: FxHashMap<u32, f64> = judged
            .contended
            .iter()
            .filter(|c| !c.for_others)
            .filter_map(|c| {
                let cpu = *all.get(&c.nr)?;
                Some((c.nr, (c.lost_ns as f64 / cpu.max(1) as f64).min(1.0)))
            })
            .collect();
        let mut by_tid: FxHashMap<u32, f64> = FxHashMap::default();
        for (tid, nr, ns) in self.analysis.cpu_in_calls() {
            if let Some(part) = lost.get(&nr) {
                *by_tid.entry(tid.0).or_default() += ns as f64 * part;
            }
        }
        let mut weight = 0.0;
        let mut factors = vec![1.0; p.threads.len()];
        for (i, t) in p.threads.iter().enumerate() {
            let lost = by_tid.get(&t.tid).copied().unwrap_or(0.0) - spun[i] as f64;
            let own = t.run_ns.saturating_sub(spun[i]) as f64;
            if lost > 0.0 && own > 0.0 {
                factors[i] = (1.0 - lost / own).max(*crate::FACTORS.start());
                weight += lost;
            }
        }
        let name = "the additional cost of contended calls".to_owned();
        (weight > 0.0).then(|| Scarce {
            resource: Resource::KernelLock,
            members: Vec::new(),
            chained: Vec::new(),
            change: vec![Change::Calls { name, factors }],
            weight: weight as Nanos,
            is_thread: false,
            is_bound: false,
        })
    }

    /// Threads that do too much.
    fn threads(&self) -> Vec<Scarce> {
        let (p, judged) = (self.program, self.judged);
        let limits = &judged.thresholds;
        let alone = p.cpus > 1 && !judged.alone.is_contended;
        let mut found = Vec::from_iter(self.few());
        let parts = p.cpus.clamp(*PARTS.start(), *PARTS.end());
        let mut irqs = Vec::new();
        let all: Nanos = self.works().map(|(_, t)| t.run_ns).sum();
        for (i, t) in p.threads.iter().enumerate() {
            let serves_ns = t.run_ns + t.occupied_ns;
            if !is_part(serves_ns, p.traced_wall_ns, limits.get(&MATTERS)) || t.run_ns == 0 {
                continue;
            }
            let one = |resource, change, is_bound| Scarce {
                resource,
                members: vec![Member::Thread(i)],
                change: vec![change],
                weight: serves_ns,
                is_thread: !t.is_kthread,
                is_bound,
                chained: Vec::new(),
            };
            if t.is_softirq {
                irqs.push(Member::Thread(i));
            } else if !self.is_busy(t, limits) {
                continue;
            } else if t.is_kthread {
                found.push(one(Resource::Driver, Change::Split(i, parts), false));
            } else if t.works && !t.at_barriers {
                // More threads make a stage that others wait for faster too.
                let resource = match t.keeps_waiting || self.serves(i) {
                    true => Resource::Server,
                    false => Resource::Parallelism,
                };
                let served_ns = t.ends_ns.saturating_sub(judged.contenders.ended_ns(t.slot));
                if is_part(served_ns, p.traced_wall_ns, limits.get(&MATTERS)) {
                    found.push(one(resource, Change::Split(i, parts), false));
                } else if alone && is_part(t.run_ns, all, limits.get(&ALONE)) {
                    let faster = Change::Speed(i, f64::from(p.cpus));
                    found.push(one(Resource::Parallelism, faster, true));
                }
            }
        }
        if !found.iter().any(|of| of.is_thread) {
            found.extend(self.one_at_a_time());
        }
        let capacity = p.wall_ns.saturating_mul(Nanos::from(p.cpus));
        if p.irq_ns > 0 && is_part(p.irq_ns, capacity, limits.get(&NAMED)) || !irqs.is_empty() {
            found.push(Scarce {
                resource: Resource::Driver,
                members: irqs,
                change: vec![Change::SpreadIrqs],
                weight: p.irq_ns,
                is_thread: false,
                is_bound: false,
                chained: Vec::new(),
            });
        }
        found
    }

    /// One thread at a time has work, each of them in turn: all of it would be divided. Threads that
    /// sleep for a time gain nothing from that.
    fn one_at_a_time(&self) -> Option<Scarce> {
        let (p, alone) = (self.program, &self.judged.alone);
        if !alone.is_serial {
            return None;
        }
        let part = (1.0 / f64::from(p.cpus)).max(*crate::FACTORS.start());
        let factors = p.threads.iter().map(|t| if t.works { part } else { 1.0 }).collect();
        let name = "serial execution (all work divided over all CPUs)".to_owned();
        Some(Scarce {
            resource: Resource::Parallelism,
            members: Vec::new(),
            change: vec![Change::Calls { name, factors }],
            weight: self.works().map(|(_, t)| t.run_ns).sum(),
            is_thread: true,
            is_bound: true,
            chained: Vec::new(),
        })
    }

    /// Several threads that have all the work, but are fewer than the CPUs: more threads would make
    /// all of them faster.
    fn few(&self) -> Option<Scarce> {
        let (p, few) = (self.program, &self.judged.alone.few);
        let is_of = |of: &&(usize, &ThreadProgram)| few.contains(&of.1.slot);
        let threads: Vec<usize> = self.works().filter(|of| is_of(&of)).map(|of| of.0).collect();
        let faster = f64::from(p.cpus) / threads.len().max(1) as f64;
        (threads.len() > 1 && threads.len() == few.len()).then(|| Scarce {
            resource: Resource::Parallelism,
            members: threads.iter().map(|&i| Member::Thread(i)).collect(),
            change: threads.iter().map(|&i| Change::Speed(i, faster)).collect(),
            weight: threads.iter().map(|&i| p.threads[i].run_ns).sum(),
            is_thread: true,
            is_bound: true,
            chained: Vec::new(),
        })
    }

    /// Whether a thread has work, or a request in hand, nearly all the time, from its start on if
    /// it was started while others worked. A thread that idles part of the time is not what the
    /// others wait for, whatever the traced order of requests makes of it.
    fn is_busy(&self, of: &ThreadProgram, limits: &Thresholds) -> bool {
        let t = self.analysis.thread(of.slot);
        let wall_ns = self.program.traced_wall_ns;
        let life_ns = self.analysis.life_ns(t).min(wall_ns);
        is_part(t.active_ns() + of.occupied_ns, life_ns, limits.get(&ALONE))
            && life_ns * 2 > wall_ns
    }

    /// Whether most of the waits that a thread ends had begun before its work for them began. A
    /// stage of a pipeline, in contrast, works ahead of the threads that need its results.
    fn serves(&self, thread: usize) -> bool {
        let p = self.program;
        let parts = [Change::Split(thread, *PARTS.start())];
        let Ok(view) = crate::change::View::new(p, &parts) else { return false };
        let t = &p.threads[thread];
        let ops = &p.ops[t.from as usize..t.to as usize];
        let wakes = || ops.iter().filter(|op| matches!(op, Op::Wake { .. })).count();
        view.asked.len() * 2 >= wakes()
    }
}
