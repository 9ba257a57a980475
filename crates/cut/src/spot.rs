//! Records that mean nothing alone stay in pairs: a call's entry with its return, `sched_waking`
//! with `sched_wakeup`, the beginning of an interrupt with its end. If a call never returned,
//! everything that its thread does later would seem to happen in it.

use holdup_trace::{Cpu, Event, Nanos, Tid, What};
use rustc_hash::{FxHashMap, FxHashSet};
use std::cell::{OnceCell, RefCell};
use std::rc::Rc;

/// Identifies a record in the file, whatever its format. Several records with the same place stay
/// together.
pub(crate) type Place = (Nanos, Cpu);

/// A record, the switch that brought its thread to the CPU, the call or lock that it is in, and,
/// for a wake-up, the interrupt that caused it.
pub(crate) struct Record {
    place: Place,
    came: Option<Place>,
    within: Option<Rc<Pair>>,
    on_top: Option<Rc<Pair>>,
}

impl Record {
    fn places(&self) -> impl Iterator<Item = Place> {
        let on_top = self.on_top.iter().flat_map(|pair| {
            let exit = pair.second.get().map(|exit| exit.place);
            exit.into_iter().chain([pair.first.place])
        });
        self.came.into_iter().chain([self.place]).chain(on_top)
    }
}

/// The places of a pair of records; the second may not have come yet.
pub(crate) struct Pair {
    first: Record,
    second: OnceCell<Record>,
    /// The call that releases what this one acquired, or acquired what this one releases.
    turn: RefCell<Vec<Place>>,
}

/// Flags of `lock_acquire`.
const TRY: u32 = 1;
const READ: u32 = 2;

impl Pair {
    fn begun(first: Record) -> Pair {
        Pair { first, second: OnceCell::new(), turn: RefCell::default() }
    }

    fn places(&self) -> impl Iterator<Item = Place> {
        self.first.places().chain(self.second.get().into_iter().flat_map(Record::places))
    }

    /// Its own places, those of its matching acquisition or release, and those of the call or lock
    /// it is in.
    fn all_places(&self, places: &mut FxHashSet<Place>) {
        places.extend(self.places());
        places.extend(self.turn.borrow().iter());
        if let Some(around) = &self.first.within {
            around.all_places(places);
        }
    }
}

/// Records that stay together.
#[derive(Clone)]
pub(crate) enum Spot {
    One(Rc<Record>),
    Both(Rc<Pair>),
}

impl Spot {
    /// The places of its records.
    pub(crate) fn places(&self, places: &mut FxHashSet<Place>) {
        match self {
            Spot::One(record) => {
                places.extend(record.places());
                if let Some(around) = &record.within {
                    around.all_places(places);
                }
            }
            Spot::Both(pair) => pair.all_places(places),
        }
    }

    /// This call acquired what `release` released. Whether a call acquires or releases depends on
    /// whether its thread holds the lock, so one of the two alone would reverse all later calls.
    pub(crate) fn took(&self, release: &Spot) {
        if let (Spot::Both(acquire), Spot::Both(release)) = (self, release) {
            acquire.turn.replace(release.places().collect());
            release.turn.replace(acquire.places().collect());
        }
    }
}

/// What identifies a pair.
#[derive(PartialEq, Eq, Hash)]
enum Of {
    Call(Tid),
    Wake(Tid),
    Irq(Cpu, u32),
    Vector(Cpu, u32),
    Softirq(Cpu, u32),
    Work(Tid),
    Contention(Who, u64),
    Contended(Who, u64),
}

/// The taker of a lock; idle tasks share one id and are distinguished by CPU.
type Who = (Tid, Option<Cpu>);

fn who(e: &Event) -> Who {
    (e.tid, (e.tid == Tid::IDLE).then_some(e.cpu))
}

/// Deepest nesting of interrupts; more are left over from losses.
const NESTED: usize = 16;
/// Most locks that one thread holds at once; the kernel allows 48.
const MOST: usize = 64;

/// A lock that is being taken, or has been.
struct Held {
    lock: u64,
    taken: bool,
    pair: Rc<Pair>,
}

/// Finds records that belong together.
#[derive(Default)]
pub(crate) struct Spots {
    /// Pairs whose second record has not come yet.
    open: FxHashMap<Of, Rc<Pair>>,
    /// Locks of lockdep. A thread may take a lock again that it holds, and releases the latest
    /// first.
    held: FxHashMap<Who, Vec<Held>>,
    /// The latest switch of each CPU.
    switches: FxHashMap<Cpu, Place>,
    /// Interrupts and softirqs in progress, the innermost last.
    interrupts: FxHashMap<Cpu, Vec<Rc<Pair>>>,
}

impl Spots {
    /// The record `e` at `place`, with the records to which it belongs.
    pub(crate) fn spot(&mut self, e: &Event, place: Place) -> Spot {
        let came = match e.what {
            What::Switch { .. } => self.switches.insert(e.cpu, place),
            _ => self.switches.get(&e.cpu).copied(),
        };
        let record = Record { place, came, within: self.around(e), on_top: self.on_top(e) };
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
            What::ContentionBegin { lock, .. } => (Of::Contention(who(e), lock), true),
            What::ContentionEnd { lock, .. } => (Of::Contention(who(e), lock), false),
            What::LockContended { lock, .. } => (Of::Contended(who(e), lock), true),
            What::LockAcquired { lock, .. } => {
                self.is_taken(who(e), lock);
                (Of::Contended(who(e), lock), false)
            }
            What::LockAcquire { lock, flags, .. } => {
                return self.takes(who(e), lock, flags, record);
            }
            What::LockRelease { lock, .. } => return self.releases(who(e), lock, record),
            _ => return Spot::One(Rc::new(record)),
        };
        let interrupts = matches!(of, Of::Irq(..) | Of::Vector(..) | Of::Softirq(..));
        if first {
            let pair = Rc::new(Pair::begun(record));
            self.open.insert(of, pair.clone());
            if interrupts {
                let stack = self.interrupts.entry(e.cpu).or_default();
                if stack.len() == NESTED {
                    stack.clear();
                }
                stack.push(pair.clone());
            }
            return Spot::Both(pair);
        }
        if interrupts && let Some(stack) = self.interrupts.get_mut(&e.cpu) {
            stack.pop();
        }
        ended(self.open.remove(&of), record)
    }

    /// The interrupt that a wake-up comes from, because a thread woken by it has no waking thread.
    fn on_top(&self, e: &Event) -> Option<Rc<Pair>> {
        let wakes =
            matches!(e.what, What::Waking { .. } | What::Wakeup { .. } | What::WakeupNew { .. });
        self.interrupts.get(&e.cpu).filter(|_| wakes)?.last().cloned()
    }

    /// The call that a record is in, or the lock that its thread is acquiring.
    fn around(&self, e: &Event) -> Option<Rc<Pair>> {
        let held = || self.held.get(&who(e)).into_iter().flatten().rev();
        let lock = match e.what {
            What::SysEnter { .. } | What::SysExit { .. } => return None,
            What::LockContended { lock, .. } | What::LockAcquired { lock, .. } => {
                held().find(|h| h.lock == lock)
            }
            // The lock being acquired meanwhile shows the kind of lock.
            What::ContentionBegin { .. } => held().find(|h| !h.taken),
            _ => None,
        };
        lock.map(|h| &h.pair).or_else(|| self.open.get(&Of::Call(e.tid))).cloned()
    }

    fn takes(&mut self, who: Who, lock: u64, flags: u32, record: Record) -> Spot {
        let held = self.held.entry(who).or_default();
        if flags & (READ | TRY) == 0 {
            // Only readers take a lock twice, so another thread released this one.
            held.retain(|h| h.lock != lock);
        }
        if held.len() == MOST {
            held.remove(0);
        }
        let pair = Rc::new(Pair::begun(record));
        held.push(Held { lock, taken: flags & TRY != 0, pair: pair.clone() });
        Spot::Both(pair)
    }

    fn is_taken(&mut self, who: Who, lock: u64) {
        let mut held = self.held.get_mut(&who).into_iter().flatten().rev();
        if let Some(held) = held.find(|h| h.lock == lock && !h.taken) {
            held.taken = true;
        }
    }

    fn releases(&mut self, who: Who, lock: u64, record: Record) -> Spot {
        let pair = self.held.get_mut(&who).and_then(|held| {
            let at = held.iter().rposition(|h| h.lock == lock)?;
            Some(held.remove(at).pair)
        });
        ended(pair, record)
    }

    /// The locks that threads have taken and not released.
    pub(crate) fn held(&self) -> impl Iterator<Item = Spot> {
        self.held.values().flatten().map(|h| Spot::Both(h.pair.clone()))
    }
}

/// The pair whose second record this is; the record alone if the first is missing.
fn ended(pair: Option<Rc<Pair>>, record: Record) -> Spot {
    match pair {
        Some(pair) => {
            // Succeeds, because the pair was open.
            let _ = pair.second.set(record);
            Spot::Both(pair)
        }
        None => Spot::One(Rc::new(record)),
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

    /// Regression: the outer of two acquisitions lost its release, and seemed held for ever.
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

    /// Regression: a softirq kept the call that it interrupted, but not that call's matching
    /// release.
    #[test]
    fn what_happens_in_a_turn_brings_the_other_half() {
        let mut spots = Spots::default();
        enters(&mut spots, 10);
        let within = at(&mut spots, 11, What::Other);
        let acquire = returns(&mut spots, 12);
        enters(&mut spots, 20);
        acquire.took(&returns(&mut spots, 21));
        assert_eq!(places(&within), [10, 11, 12, 20, 21]);
    }

    /// Regression: without the end of a wait, its thread seemed to wait until the next one.
    #[test]
    fn a_contended_lock_is_acquired_also_where_that_it_is_asked_for_is_not_recorded() {
        let mut spots = Spots::default();
        let contended = at(&mut spots, 10, What::LockContended { lock: 5, name: NameId::NONE });
        at(&mut spots, 20, What::LockAcquired { lock: 5, name: NameId::NONE });
        assert_eq!(places(&contended), [10, 20]);
    }

    #[test]
    fn the_idle_tasks_of_two_cpus_take_their_own_locks() {
        let mut spots = Spots::default();
        let mut idle = |ts, cpu: u16, what| {
            let (comm, cpu) = (NameId::NONE, Cpu(cpu));
            let (tid, pid, id) = (Tid::IDLE, Pid(0), EventId(1));
            spots.spot(&Event { ts, tid, pid, comm, cpu, id, what }, (ts, cpu))
        };
        let take = What::LockAcquire { lock: 5, flags: 2, name: NameId::NONE };
        let give = What::LockRelease { lock: 5, name: NameId::NONE };
        let first = idle(10, 0, take);
        let second = idle(11, 1, take);
        idle(12, 0, give);
        assert_eq!((places(&first), places(&second)), (vec![10, 12], vec![11]));
    }

    /// Regression: without the interrupt, two files seemed to be one, because its thread wrote
    /// then.
    #[test]
    fn a_wake_up_by_an_interrupt_stays_one() {
        let mut spots = Spots::default();
        let (tid, comm, prio, target) = (Tid(9), NameId::NONE, 120, Cpu(0));
        let wakes = What::Waking { tid, comm, prio, target, in_irq: false };
        at(&mut spots, 10, What::SoftirqEntry { vec: 4 });
        let woken = at(&mut spots, 11, wakes);
        at(&mut spots, 12, What::SoftirqExit { vec: 4 });
        let later = at(&mut spots, 13, wakes);
        assert_eq!((places(&woken), places(&later)), (vec![10, 11, 12], vec![13]));
    }

    /// A wait shows the kind of a lock, so it must stay with the acquisition.
    #[test]
    fn a_wait_for_a_lock_stays_with_its_taking() {
        let mut spots = Spots::default();
        at(&mut spots, 10, What::LockAcquire { lock: 5, flags: 0, name: NameId::NONE });
        let stack = holdup_trace::StackRef::NONE;
        let waits = at(&mut spots, 11, What::ContentionBegin { lock: 4, flags: 2, stack });
        at(&mut spots, 12, What::LockAcquired { lock: 5, name: NameId::NONE });
        let later = at(&mut spots, 13, What::ContentionBegin { lock: 6, flags: 2, stack });
        at(&mut spots, 20, What::LockRelease { lock: 5, name: NameId::NONE });
        assert_eq!((places(&waits), places(&later)), (vec![10, 11, 20], vec![13]));
    }
}
