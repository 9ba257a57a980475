//! Records that mean nothing alone stay in pairs: a call's entry with its return, `sched_waking`
//! with `sched_wakeup`, the beginning of an interrupt with its end. A call that never returned
//! would have its thread in it for ever, and whatever the thread does later would be done in it.

use crate::head::Place;
use holdup_trace::{Cpu, Event, Tid, What};
use rustc_hash::{FxHashMap, FxHashSet};
use std::cell::{OnceCell, RefCell};
use std::rc::Rc;

/// A record, the switch that brought its thread to the CPU, and the call or the lock that it is in.
pub(crate) struct Record {
    place: Place,
    came: Option<Place>,
    within: Option<Rc<Pair>>,
}

impl Record {
    fn places(&self) -> impl Iterator<Item = Place> {
        self.came.into_iter().chain([self.place])
    }
}

/// Where a pair of records is; the second may be yet to come.
pub(crate) struct Pair {
    first: Record,
    second: OnceCell<Record>,
    /// The call that gives back what this one took, or took what this one gives back.
    turn: RefCell<Vec<Place>>,
}

impl Pair {
    fn places(&self) -> impl Iterator<Item = Place> {
        self.first.places().chain(self.second.get().into_iter().flat_map(Record::places))
    }
}

/// What stays together.
#[derive(Clone)]
pub(crate) enum Spot {
    One(Rc<Record>),
    Both(Rc<Pair>),
}

impl Spot {
    /// Where its records are.
    pub(crate) fn places(&self, places: &mut FxHashSet<Place>) {
        match self {
            Spot::One(record) => {
                places.extend(record.places());
                places.extend(record.within.iter().flat_map(|pair| pair.places()));
            }
            Spot::Both(pair) => {
                places.extend(pair.places());
                places.extend(pair.first.within.iter().flat_map(|pair| pair.places()));
                places.extend(pair.turn.borrow().iter());
            }
        }
    }

    /// This call took what `release` gave back. Whether a call takes or gives back is told by
    /// whether its thread has the lock, so one of the two alone would turn all that follows around.
    pub(crate) fn took(&self, release: &Spot) {
        if let (Spot::Both(acquire), Spot::Both(release)) = (self, release) {
            acquire.turn.replace(release.places().collect());
            release.turn.replace(acquire.places().collect());
        }
    }
}

/// What a pair is about.
#[derive(PartialEq, Eq, Hash)]
enum Of {
    Call(Tid),
    Wake(Tid),
    Irq(Cpu, u32),
    Vector(Cpu, u32),
    Softirq(Cpu, u32),
    Work(Tid),
    Contention(Tid, u64),
    Lock(Tid, u64),
}

/// So many times one thread may hold one lock; the kernel allows 48 locks in all.
const DEEPEST: usize = 64;

/// Finds what belongs together.
#[derive(Default)]
pub(crate) struct Spots {
    /// Pairs whose second record is yet to come. A thread may take a lock again that it holds, and
    /// gives back first what it took last.
    open: FxHashMap<Of, Vec<Rc<Pair>>>,
    /// The latest switch of each CPU.
    switches: FxHashMap<Cpu, Place>,
}

impl Spots {
    /// The record `e` at `place`, with those that it belongs to.
    pub(crate) fn spot(&mut self, e: &Event, place: Place) -> Spot {
        let came = match e.what {
            What::Switch { .. } => self.switches.insert(e.cpu, place),
            _ => self.switches.get(&e.cpu).copied(),
        };
        let within = match e.what {
            What::SysEnter { .. } | What::SysExit { .. } => None,
            What::LockContended { lock, .. } | What::LockAcquired { lock, .. } => {
                self.innermost(&Of::Lock(e.tid, lock))
            }
            _ => self.innermost(&Of::Call(e.tid)),
        };
        let record = Record { place, came, within };
        let (of, first) = match e.what {
            What::SysEnter { .. } => (Of::Call(e.tid), true),
            What::SysExit { .. } => (Of::Call(e.tid), false),
            What::Waking { tid, .. } => (Of::Wake(tid), true),
            What::Wakeup { tid, .. } | What::WakeupNew { tid, .. } => (Of::Wake(tid), false),
            What::IrqEntry { irq, .. } => (Of::Irq(e.cpu, irq), true),
            What::IrqExit { irq } => (Of::Irq(e.cpu, irq), false),
            What::VectorEntry { vector, .. } => (Of::Vector(e.cpu, vector), true),
            What::VectorExit { vector } => (Of::Vector(e.cpu, vector), false),
            What::SoftirqEntry { vec } => (Of::Softirq(e.cpu, vec), true),
            What::SoftirqExit { vec } => (Of::Softirq(e.cpu, vec), false),
            What::WorkStart { .. } => (Of::Work(e.tid), true),
            What::WorkEnd { .. } => (Of::Work(e.tid), false),
            What::ContentionBegin { lock, .. } => (Of::Contention(e.tid, lock), true),
            What::ContentionEnd { lock, .. } => (Of::Contention(e.tid, lock), false),
            What::LockAcquire { lock, .. } => (Of::Lock(e.tid, lock), true),
            What::LockRelease { lock, .. } => (Of::Lock(e.tid, lock), false),
            _ => return Spot::One(Rc::new(record)),
        };
        if first {
            let pair = Pair { first: record, second: OnceCell::new(), turn: RefCell::default() };
            let pair = Rc::new(pair);
            let deepest = if matches!(of, Of::Lock(..)) { DEEPEST } else { 1 };
            let open = self.open.entry(of).or_default();
            if open.len() == deepest {
                open.remove(0);
            }
            open.push(pair.clone());
            return Spot::Both(pair);
        }
        let Some(open) = self.open.get_mut(&of) else { return Spot::One(Rc::new(record)) };
        let pair = open.pop();
        if open.is_empty() {
            self.open.remove(&of);
        }
        match pair {
            Some(pair) => {
                // It was open.
                let _ = pair.second.set(record);
                Spot::Both(pair)
            }
            None => Spot::One(Rc::new(record)),
        }
    }

    /// The pair begun last of those that are open.
    fn innermost(&self, of: &Of) -> Option<Rc<Pair>> {
        self.open.get(of)?.last().cloned()
    }

    /// The locks that threads have taken and not given back.
    pub(crate) fn held(&self) -> impl Iterator<Item = Spot> {
        let locks = self.open.iter().filter(|(of, _)| matches!(of, Of::Lock(..)));
        locks.flat_map(|(_, pairs)| pairs.iter().cloned().map(Spot::Both))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use holdup_trace::{ArgsRef, EventId, NameId, Pid, TaskState};

    const ME: Tid = Tid(7);

    fn at(spots: &mut Spots, ts: u64, what: What) -> Spot {
        let (comm, cpu) = (NameId::NONE, Cpu(0));
        let e = Event { ts, tid: ME, pid: Pid(7), comm, cpu, id: EventId(1), what };
        spots.spot(&e, (ts, cpu))
    }

    fn comes(spots: &mut Spots, ts: u64) -> Spot {
        let what = What::Switch {
            prev: Tid(1),
            next: ME,
            prev_state: TaskState::default(),
            prev_comm: NameId::NONE,
            next_comm: NameId::NONE,
            prev_prio: 120,
            next_prio: 120,
        };
        at(spots, ts, what)
    }

    fn enters(spots: &mut Spots, ts: u64) -> Spot {
        at(spots, ts, What::SysEnter { nr: 1, args: ArgsRef::NONE })
    }

    fn returns(spots: &mut Spots, ts: u64) -> Spot {
        at(spots, ts, What::SysExit { nr: 1, ret: 0 })
    }

    fn places(spot: &Spot) -> Vec<u64> {
        let mut places = FxHashSet::default();
        spot.places(&mut places);
        let mut times: Vec<u64> = places.into_iter().map(|p| p.0).collect();
        times.sort_unstable();
        times
    }

    #[test]
    fn a_return_that_is_yet_to_come_stays_with_its_entry() {
        let mut spots = Spots::default();
        let entry = enters(&mut spots, 10);
        assert_eq!(places(&entry), [10]);
        let exit = returns(&mut spots, 20);
        assert_eq!(places(&entry), [10, 20]);
        assert_eq!(places(&exit), [10, 20]);
        assert_eq!(places(&returns(&mut spots, 30)), [30]);
    }

    #[test]
    fn a_record_stays_with_the_switch_before_it_and_the_call_it_is_in() {
        let mut spots = Spots::default();
        comes(&mut spots, 1);
        enters(&mut spots, 10);
        let fault = at(&mut spots, 11, What::Other);
        returns(&mut spots, 20);
        let later = at(&mut spots, 21, What::Other);
        assert_eq!(places(&fault), [1, 10, 11, 20]);
        assert_eq!(places(&later), [1, 21]);
        // A switch stays with the one before it.
        assert_eq!(places(&comes(&mut spots, 30)), [1, 30]);
    }

    /// The outer of two was left without its release, and held for ever.
    #[test]
    fn a_lock_taken_twice_is_given_back_twice() {
        let mut spots = Spots::default();
        let take = What::LockAcquire { lock: 5, flags: 2, name: NameId::NONE };
        let give = What::LockRelease { lock: 5, name: NameId::NONE };
        let outer = at(&mut spots, 10, take);
        let inner = at(&mut spots, 11, take);
        assert_eq!(spots.held().count(), 2);
        at(&mut spots, 12, give);
        assert_eq!(spots.held().count(), 1);
        at(&mut spots, 13, give);
        assert_eq!(spots.held().count(), 0);
        assert_eq!((places(&outer), places(&inner)), (vec![10, 13], vec![11, 12]));
    }

    #[test]
    fn taking_and_giving_back_stay_together() {
        let mut spots = Spots::default();
        let mut call = |ts| {
            enters(&mut spots, ts);
            returns(&mut spots, ts + 1)
        };
        let (acquire, release) = (call(10), call(20));
        acquire.took(&release);
        assert_eq!(places(&acquire), [10, 11, 20, 21]);
        assert_eq!(places(&release), [10, 11, 20, 21]);
    }
}
