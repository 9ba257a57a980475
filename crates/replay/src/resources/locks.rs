//! Which objects are one lock, or one service of the kernel.

use super::{Finder, Scarce};
use crate::build::is_part;
use crate::exclusive::exclude_each_other;
use crate::program::{ObjectId, ReplayObject, ThreadProgram};
use holdup_attribution::graph::{CYCLE_PCT, components};
use holdup_attribution::{Attribution, Resource, WaitRule};
use holdup_passes::{ByThread, FutexUse, Object, ObjectKind, PairSum, Slot};
use holdup_trace::Nanos;
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeMap;

/// Whether the ledger says that threads hand it to each other.
pub(crate) fn is_handed_on(judged: &Attribution<'_>, o: &ReplayObject) -> bool {
    let rule = |of: &Object| judged.objects.get(of).map(|judged| judged.rule);
    o.of.iter().any(|of| rule(of) == Some(WaitRule::HandoverContention))
}

impl Finder<'_> {
    /// Whether something else is scarce than the object: the work of one busy thread that answers
    /// through it, or work for all, where its holders wait for some.
    fn is_elsewhere(&self, o: &ReplayObject) -> bool {
        let is = |of: &Object| match self.judged.objects.get(of).map(|judged| judged.rule) {
            Some(WaitRule::OneServer) => true,
            Some(WaitRule::IdleNoWork) => o.is_lock,
            // The word of a condition variable may look like that of a mutex.
            Some(WaitRule::IdleTimeout) => o.kind == ObjectKind::Futex,
            _ => false,
        };
        !o.of.is_empty() && o.of.iter().all(is)
    }

    /// Locks and services, each with all its members.
    pub(super) fn locks(&self) -> Vec<Scarce> {
        let mut found = Vec::new();
        // Futex words through which threads wake each other, by the process that can see them.
        let mut words: BTreeMap<Option<u32>, Vec<ObjectId>> = BTreeMap::new();
        let mut files = Vec::new();
        // What threads of one kind tell each other, such as signals.
        let mut descriptors = Vec::new();
        for (o, id) in self.program.objects.iter().zip(0..).map(|(o, i)| (o, ObjectId(i))) {
            if o.wait_ns == 0 || o.is_device || self.is_elsewhere(o) {
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
                ObjectKind::Flock | ObjectKind::PosixLock | ObjectKind::PolledLock => {
                    files.push(id)
                }
                ObjectKind::Semop | ObjectKind::MessageQueue | ObjectKind::Mqueue => {
                    found.push(self.of_objects(Resource::Service, vec![id]));
                }
                ObjectKind::Pipe
                | ObjectKind::Eventfd
                | ObjectKind::Signal
                | ObjectKind::Descriptor => descriptors.push(id),
                // Other threads of their kind wake them there, not only clients.
                ObjectKind::Epoll if is_handed_on(self.judged, o) => descriptors.push(id),
                ObjectKind::KernelLock | ObjectKind::Uninterruptible if o.is_kernel_lock => {
                    found.push(self.of_objects(Resource::KernelLock, vec![id]))
                }
                _ => {}
            }
        }
        for words in words.into_values() {
            let (exclusive, mut others) = self.exclusive(words);
            // Uneven work of threads that run at once is no lock.
            others.retain(|&id| !self.program.joins().are_at(self.program, id));
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
            let waited = self.words(&of).flat_map(|o| self.waited.of(o));
            match waited.max_by_key(|by| by.1.wait_ns).filter(|_| self.is_among_peers(id)) {
                Some(&(slot, _)) => by_role.entry(role(slot)).or_default().push(id),
                None => others.push(id),
            }
        }
        let limits = &self.judged.thresholds;
        let mut exclusive = Vec::new();
        for (kind, ids) in by_role {
            let met: FxHashSet<Slot> =
                self.words(&ids).flat_map(|o| self.judged.by_object.around(o)).collect();
            let is_one =
                |t: &ThreadProgram| t.works && met.contains(&t.slot) && role(t.slot) == kind;
            let threads: Vec<bool> = self.program.threads.iter().map(is_one).collect();
            match exclude_each_other(self.program, self.waits, &ids, &threads, limits) {
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
            let waited = self.waited.of(word);
            let Some(longest) = waited.iter().max_by_key(|by| by.1.wait_ns) else { continue };
            let waiter = role(longest.0);
            all += waited.iter().map(|by| by.1.wait_ns).sum::<Nanos>();
            for &(waker, pair) in self.ended.of(word) {
                own += if role(waker) == waiter { pair.wait_ns } else { 0 };
            }
        }
        own * 2 >= all
    }

    /// Futex words by the circle of threads that wake each other through them. A lock goes round in
    /// one circle: its threads may wake others, for example one that adds connections to their
    /// pool, but are not woken by them.
    fn circles(&self, ids: Vec<ObjectId>) -> Vec<Vec<ObjectId>> {
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
                for &(waiter, pair) in self.waited.of(word) {
                    // A handshake when a thread starts closes no circle.
                    let asleep_ns = self.asleep.get(&waiter).copied().unwrap_or(0);
                    if matters(pair.wait_ns, asleep_ns) {
                        let waiter = node(waiter, &mut next);
                        next[i].push(waiter);
                    }
                }
                let ended = self.ended.of(word);
                let all = ended.iter().map(|by| by.1.wait_ns).sum();
                for &(waker, pair) in ended {
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
            for &(slot, pair) in self.words(ids).flat_map(|o| map.of(o)) {
                if let Some(pid) = self.analysis.pid(self.analysis.thread(slot)) {
                    *by.entry(pid).or_default() += pair.wait_ns;
                }
            }
            let all: Nanos = by.values().sum();
            let (pid, ns) = by.into_iter().max_by_key(|of| of.1)?;
            (ns * 2 > all).then_some(pid)
        };
        let waits = of(self.waited)?;
        of(self.ended).is_none_or(|ends| ends == waits).then_some(waits)
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
        // A process sleeps for any of several events of its own, so who ends a turn wakes each one
        // that may want the next.
        let wakes_all = |id| {
            self.words(&[id]).filter_map(stats).any(|o| o.wakes_all || o.kind == ObjectKind::Epoll)
        };
        loop {
            let by = self.waits.handed_on(|id| words.contains(&id), wakes_all);
            let before = words.len();
            words.retain(|id| by.get(id).is_some_and(|of| of.handed * 2 >= of.all));
            if words.len() == before {
                return self.of_objects(resource, words);
            }
        }
    }
}
