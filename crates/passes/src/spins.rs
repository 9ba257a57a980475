//! Samples of running code: how many of a thread's were taken while it was spinning.
//!
//! A thread that spins in user mode causes no event. But samples of the running code show it, if
//! the code at the sampled address is a loop that only waits ([`Spin`]). The recorder may have
//! looked at the code already ([`holdup_trace::Spins`]); otherwise the files of this machine tell,
//! if they are the recorded ones. Each place in a file is looked up once.
//!
//! Only samples outside recorded system calls count, because only that time may be spinning in
//! user mode. Samples are rare, so a map from thread to sums is fast enough.

use crate::slot::Slot;
use crate::source::Source;
use holdup_trace::{
    BuildId, Built, EventId, Mapping, NameId, Names, Nanos, Spin, Spins, Spot, TraceInfo,
};
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// Events whose samples say where CPU time went, the preferred one first.
const OF_CPU_TIME: [&str; 4] = ["cpu-clock", "task-clock", "cycles", "cpu-cycles"];

/// The rank of an event among those whose samples say where CPU time went, 0 for the best:
/// `cycles:u`, `cpu_core/cycles/`, `cpu-clock/freq=99/`. `None` if they do not.
pub fn plainness(name: &str) -> Option<usize> {
    let mut words = name.split(['/', ',', ':']).take(2);
    words.find_map(|word| OF_CPU_TIME.iter().position(|n| *n == word))
}

/// Tells where code of files spins.
pub trait FindsSpins: Send + Sync {
    /// Whether threads at this offset of a file spin: `None` if the file cannot be read,
    /// `Some(None)` if they do not.
    fn at(&self, file: &str, build: Option<BuildId>, offset: u64) -> Option<Option<Spot>>;
}

/// Number of a place in code.
type PlaceId = u32;

/// Samples of one thread's running code, outside recorded system calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SampledRun {
    /// All of them.
    pub all: u64,
    /// In the kernel: page faults, and calls that are not recorded.
    pub in_kernel: u64,
    /// At code whose bytes are not known.
    pub unknown: u64,
    /// At the instruction by which code tells that it spins, or right after it.
    pub pause: u64,
    /// Elsewhere in the loop around such an instruction.
    pub near: u64,
}

impl SampledRun {
    /// Samples of spinning. The loop of some locks also runs when the lock is free: so it counts
    /// only as far as the pause in it does.
    pub fn spinning(&self) -> u64 {
        self.pause + self.near.min(self.pause)
    }

    /// The part of `ns` of its time that it spun, if its samples are typical.
    pub fn spun_ns(&self, ns: Nanos) -> Nanos {
        self.part_ns(self.spinning(), ns)
    }

    /// As [`SampledRun::spun_ns`], of its time in the kernel.
    pub fn in_kernel_ns(&self, ns: Nanos) -> Nanos {
        self.part_ns(self.in_kernel, ns)
    }

    fn part_ns(&self, samples: u64, ns: Nanos) -> Nanos {
        let part = u128::from(ns) * u128::from(samples.min(self.all));
        (part / u128::from(self.all.max(1))) as Nanos
    }

    fn add(&mut self, known: Option<Option<Spin>>) {
        self.all += 1;
        match known {
            None => self.unknown += 1,
            Some(Some(Spin::Pause)) => self.pause += 1,
            Some(Some(Spin::Loop)) => self.near += 1,
            Some(None) => {}
        }
    }
}

/// A place in code.
#[derive(Clone, Debug)]
struct Place {
    /// Whether threads spin there; `None` if the code is not known.
    spin: Option<Option<Spin>>,
    function: String,
}

/// The samples of all threads.
#[derive(Clone)]
pub(crate) struct SampledCode {
    /// The event whose samples count.
    event: Option<EventId>,
    found: Arc<Spins>,
    built: Arc<[Built]>,
    source: Option<Source<dyn FindsSpins>>,
    ids: FxHashMap<(NameId, u64), PlaceId>,
    places: Vec<Place>,
    threads: FxHashMap<Slot, SampledRun>,
    /// How often each thread spun where.
    spots: FxHashMap<(Slot, PlaceId), u64>,
}

impl SampledCode {
    pub(crate) fn new(info: &TraceInfo, source: Option<&Source<dyn FindsSpins>>) -> SampledCode {
        let ranked = info.events.iter().zip(0..);
        let event = ranked.filter_map(|(e, id)| Some((plainness(&e.name)?, id))).min();
        SampledCode {
            event: event.map(|(_, id)| EventId(id)),
            found: info.spins.clone(),
            built: info.built.clone().into(),
            source: source.cloned(),
            ids: FxHashMap::default(),
            places: Vec::new(),
            threads: FxHashMap::default(),
            spots: FxHashMap::default(),
        }
    }

    pub(crate) fn is_of(&self, event: EventId) -> bool {
        self.event == Some(event)
    }

    /// A thread was sampled at this address, in memory that is mapped like this; in the kernel if
    /// there is no address.
    pub(crate) fn sample(
        &mut self,
        slot: Slot,
        address: Option<u64>,
        mapping: Option<Mapping>,
        names: &Names,
    ) {
        let place = address.map(|address| {
            let mapping = mapping.filter(|m| address - m.start < m.len)?;
            Some(self.place(
                &mapping,
                (address - mapping.start).wrapping_add(mapping.offset),
                names,
            ))
        });
        let run = self.threads.entry(slot).or_default();
        run.in_kernel += u64::from(place.is_none());
        let known = match place {
            None => Some(None),
            Some(place) => place.and_then(|place| self.places[place as usize].spin),
        };
        run.add(known);
        if let (Some(Some(place)), Some(Some(_))) = (place, known) {
            *self.spots.entry((slot, place)).or_default() += 1;
        }
    }

    fn place(&mut self, mapping: &Mapping, offset: u64, names: &Names) -> PlaceId {
        if let Some(&id) = self.ids.get(&(mapping.file, offset)) {
            return id;
        }
        let file = &*names.get(mapping.file);
        let named = || self.built.iter().find(|built| built.file == file).map(|b| b.build_id);
        let spot = self.look(file, mapping.build_id.or_else(named), offset);
        let place = Place {
            spin: spot.as_ref().map(|spot| spot.as_ref().map(|spot| spot.spin)),
            function: spot.flatten().map_or_else(String::new, |spot| spot.function),
        };
        let id = self.places.len() as PlaceId;
        self.places.push(place);
        self.ids.insert((mapping.file, offset), id);
        id
    }

    fn look(&self, file: &str, build: Option<BuildId>, offset: u64) -> Option<Option<Spot>> {
        if let Some(known) = self.found.at(file, build, offset) {
            return Some(known.cloned());
        }
        self.source.as_ref()?.0.at(file, build, offset)
    }

    /// Clears the sums.
    pub(crate) fn restart(&mut self) {
        self.threads.clear();
        self.spots.clear();
    }

    pub(crate) fn of_thread(&self, slot: Slot) -> SampledRun {
        self.threads.get(&slot).copied().unwrap_or_default()
    }

    pub(crate) fn of_all(&self) -> SampledRun {
        let mut sum = SampledRun::default();
        for run in self.threads.values() {
            sum.all += run.all;
            sum.in_kernel += run.in_kernel;
            sum.unknown += run.unknown;
            sum.pause += run.pause;
            sum.near += run.near;
        }
        sum
    }

    /// Functions in which these threads spin, with the number of samples, most first.
    pub(crate) fn functions(&self, threads: &[Slot]) -> Vec<(String, u64)> {
        let mut by: FxHashMap<&str, u64> = FxHashMap::default();
        for ((slot, place), samples) in &self.spots {
            if threads.contains(slot) {
                *by.entry(&self.places[*place as usize].function).or_default() += samples;
            }
        }
        let mut by: Vec<(String, u64)> = by.into_iter().map(|(f, n)| (f.to_owned(), n)).collect();
        by.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
        by
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loop_counts_as_far_as_its_pause_was_seen() {
        let run = |pause, near| SampledRun { all: 100, pause, near, ..SampledRun::default() };
        assert_eq!(run(50, 20).spinning(), 70);
        assert_eq!(run(0, 60).spinning(), 0, "an uncontended lock runs through the loop");
        assert_eq!(run(5, 60).spinning(), 10);
        assert_eq!(run(50, 20).spun_ns(1_000), 700);
        assert_eq!(run(100, 0).spun_ns(u64::MAX), u64::MAX);
        assert_eq!(SampledRun::default().spun_ns(1_000), 0);
    }

    #[test]
    fn places_are_looked_up_in_what_the_recorder_found() {
        let mut info = TraceInfo::new("t".into(), "test");
        let text = "holdup spins 1\nfile - /bin/x\npause 1010 lock\nloop 1012 lock\n";
        info.spins = Arc::new(Spins::parse(text.as_bytes()).unwrap());
        let mut code = SampledCode::new(&info, None);
        let file = info.names.intern(b"/bin/x");
        let mapping = Mapping {
            start: 0x5000,
            len: 0x100,
            offset: 0x1000,
            file,
            kernel: false,
            build_id: None,
        };
        for address in [0x5010, 0x5010, 0x5012, 0x5050] {
            code.sample(Slot(1), Some(address), Some(mapping), &info.names);
        }
        code.sample(Slot(1), Some(0x5100), Some(mapping), &info.names);
        code.sample(Slot(1), None, None, &info.names);
        let unnamed = Mapping { file: NameId::NONE, ..mapping };
        code.sample(Slot(2), Some(0x5010), Some(unnamed), &info.names);
        let expected = SampledRun { all: 6, in_kernel: 1, unknown: 1, pause: 2, near: 1 };
        assert_eq!(code.of_thread(Slot(1)), expected);
        assert_eq!(
            code.of_thread(Slot(2)),
            SampledRun { all: 1, unknown: 1, ..SampledRun::default() }
        );
        assert_eq!(code.functions(&[Slot(1), Slot(2)]), [("lock".to_owned(), 3)]);
        assert_eq!(code.of_all().all, 7);
        code.restart();
        assert_eq!(code.of_thread(Slot(1)), SampledRun::default());
    }
}
