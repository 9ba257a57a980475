//! The first look at all events: which occur, when, which threads existed, and which ran where no
//! earlier switch tells.

use crate::exec::Regs;
use crate::kind::{Meaning, reg};
use crate::lane::{Here, Lane, LaneCursor, Next, Passed, Store};
use crate::packet::text;
use crate::plan::Slot;
use holdup_trace::{EventId, EventKind, Names, Nanos, Pid, Quality, Task, Tid, union};
use rustc_hash::FxHashMap;
use std::sync::atomic::{AtomicUsize, Ordering};

/// What was found in one lane, or in all lanes.
#[derive(Clone, Default)]
pub(crate) struct Scan {
    /// First and last time of anything (losses included), and of an event.
    pub(crate) reach: Option<(Nanos, Nanos)>,
    pub(crate) span: Option<(Nanos, Nanos)>,
    pub(crate) events: u64,
    /// By event, whether it occurs.
    occurs: Vec<bool>,
    /// The threads that ran at the beginning and after each loss of switches.
    pub(crate) hints: Vec<Tid>,
    /// What went wrong on the way.
    pub(crate) quality: Quality,
    /// Threads that existed when recording began.
    pub(crate) tasks: Vec<Task>,
}

impl Scan {
    pub(crate) fn new(events: usize) -> Scan {
        Scan { occurs: vec![false; events], ..Scan::default() }
    }

    pub(crate) fn occurs(&self, event: EventId) -> bool {
        self.occurs.get(usize::from(event.0)) == Some(&true)
    }

    pub(crate) fn absorb(&mut self, other: &Scan) {
        self.reach = union(self.reach, other.reach);
        self.span = union(self.span, other.span);
        self.events += other.events;
        for (all, one) in self.occurs.iter_mut().zip(&other.occurs) {
            *all |= one;
        }
        self.tasks.extend(&other.tasks);
    }
}

/// Look at all lanes, on all cores.
pub(crate) fn scan(store: &Store, lanes: &[Lane], events: usize, names: &Names) -> Vec<Scan> {
    let next = AtomicUsize::new(0);
    let workers = std::thread::available_parallelism().map_or(1, |n| n.get()).min(lanes.len());
    let work = || {
        let mut done = Vec::new();
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            let Some(lane) = lanes.get(number) else { return done };
            done.push((number, one(store, lane, events, names)));
        }
    };
    let mut scans = vec![Scan::new(events); lanes.len()];
    std::thread::scope(|scope| {
        let helpers: Vec<_> = (1..workers).map(|_| scope.spawn(work)).collect();
        let own = work();
        let theirs = helpers
            .into_iter()
            .flat_map(|h| h.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        for (number, scan) in own.into_iter().chain(theirs) {
            scans[number] = scan;
        }
    });
    scans
}

fn one(store: &Store, lane: &Lane, events: usize, names: &Names) -> Scan {
    let mut scan = Scan::new(events);
    // Problems found here are found and counted again when the events are decoded, except where
    // there is nothing to decode.
    let mut quality = Quality::default();
    let mut cursor = LaneCursor::<true>::new(store, lane, &mut quality);
    let mut tasks: FxHashMap<u32, usize> = FxHashMap::default();
    scan.hints.push(Tid::UNKNOWN);
    let mut regs = Regs::new();
    // Whether the next switch supplies a hint.
    let mut open = true;
    while let Some(next) = cursor.next(&mut quality) {
        match next {
            Next::Gap(gap) => {
                scan.reach = union(scan.reach, Some((gap.ts, gap.ts)));
                if gap.switches {
                    scan.hints.push(Tid::UNKNOWN);
                    open = true;
                }
            }
            Next::Event(here) => {
                scan.event(&here);
                match here.class.meaning {
                    Meaning::Kernel(EventKind::Switch) if open && !here.class.incomplete => {
                        let here = here.read(&mut regs);
                        let prev = Tid(here.regs.int[usize::from(reg::OWN)] as u32);
                        if let Some(hint) = scan.hints.last_mut() {
                            *hint = prev;
                        }
                        open = false;
                    }
                    Meaning::Process if !here.class.incomplete => {
                        let task = task(&here.read(&mut regs), names);
                        let at = *tasks.entry(task.tid.0).or_insert(scan.tasks.len());
                        match scan.tasks.get_mut(at) {
                            Some(known) => *known = task,
                            None => scan.tasks.push(task),
                        }
                    }
                    _ => {}
                }
            }
        }
        let passed = cursor.pass(|class| {
            let passes = match class.meaning {
                Meaning::Kernel(EventKind::Switch) => !open,
                Meaning::Process => false,
                _ => true,
            };
            if let Some(occurs) = scan.occurs.get_mut(usize::from(class.event.0)) {
                *occurs |= passes;
            }
            passes
        });
        if let Some(Passed { events, first, last }) = passed {
            scan.span = union(scan.span, Some((first, last)));
            scan.events += events;
        }
    }
    scan.reach = union(scan.reach, scan.span);
    scan.quality = quality;
    scan
}

impl Scan {
    #[inline(always)]
    fn event(&mut self, here: &Here<'_>) {
        let ts = here.ts;
        match &mut self.span {
            Some((first, last)) => {
                *first = (*first).min(ts);
                *last = (*last).max(ts);
            }
            None => self.span = Some((ts, ts)),
        }
        self.events += 1;
        if let Some(occurs) = self.occurs.get_mut(usize::from(here.class.event.0)) {
            *occurs = true;
        }
    }
}

/// `lttng_statedump_process_state`. A parent 2 marks threads of the kernel.
fn task(here: &Here<'_>, names: &Names) -> Task {
    let absent = |slot: Slot| here.class.absent.iter().any(|(s, _)| *s == slot);
    let int = |n: u8| {
        let register = reg::OWN + n;
        let value = here.regs.int[usize::from(register)] as u32;
        (!absent(Slot::Register(register))).then_some(value)
    };
    let comm = text(here.data, here.regs.text[usize::from(reg::TEXT)]);
    Task {
        tid: Tid(here.regs.int[usize::from(reg::OWN)] as u32),
        pid: int(1).map_or(Pid::UNKNOWN, Pid),
        parent: int(2).map(Tid),
        comm: if absent(Slot::Text(reg::TEXT)) { Default::default() } else { names.intern(comm) },
    }
}
