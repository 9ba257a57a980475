//! The simulated machine: CPUs, a scheduler, and threads that follow their programs.

mod events;
mod locks;
mod pieces;
mod queues;
mod scheduler;
mod steps;

use crate::bits::BitSet;
use crate::change::View;
use crate::program::{ObjectId, Op};
use events::Events;
use holdup_trace::Nanos;
use pieces::Pieces;
use queues::Resting;
use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

const NOBODY: u32 = u32::MAX;

/// The result of one run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Ran {
    /// Time from the beginning of the work to its end.
    pub(crate) wall_ns: Nanos,
    /// CPU time used meanwhile, by any thread.
    pub(crate) busy_ns: Nanos,
    /// How often all threads waited for each other and one was released.
    pub(crate) forced: u64,
    /// CPU time of each thread.
    pub(crate) run_ns: Vec<Nanos>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    /// Not created yet.
    Unborn,
    Ready,
    Running,
    /// Until a given time.
    Asleep,
    /// Until its wait of this number is ended.
    Waiting(u32),
    /// At a barrier, or where a client has to ask first.
    Arrived,
    /// A part of a split thread that has nothing to do yet.
    Idle,
    /// Waits for a lock: the object, and which of its parts.
    Locked(ObjectId, u32),
    Ended,
}

#[derive(Clone, Debug)]
struct Thread {
    /// The program's thread that it is, or is a part of.
    of: u32,
    /// It belongs to the work, and has not finished.
    works: bool,
    /// It is a part of a split thread, and has a piece of the work.
    in_piece: bool,
    /// The next step, and the end of this piece of its program.
    at: u32,
    end: u32,
    /// What is left of its current run, in ns.
    left: Nanos,
    /// Its progress, as the time of the trace at which it was there.
    course: Nanos,
    ran: Nanos,
    last_cpu: u32,
    /// The number of its place in a queue.
    queued: u32,
    /// The idle time after which another CPU takes it from there.
    until: Nanos,
    /// How long idle CPUs leave it there if it loses its CPU now.
    left_for: Option<Nanos>,
    state: State,
    /// Locks it holds whose holds are changed.
    held: Vec<ObjectId>,
    /// Locks that it took as the first to come.
    took: Vec<(ObjectId, u32)>,
    /// It was woken to try for a lock: the object, and which of its parts.
    tries: Option<(ObjectId, u32)>,
    /// Product of the factors of the locks that it holds.
    holding: f64,
}

#[derive(Clone, Copy, Debug)]
struct Cpu {
    thread: u32,
    /// Since when it runs the current thread, and the length of its slice.
    since: Nanos,
    slice_ends: Nanos,
    /// Only the latest event of a CPU counts.
    turn: u32,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum What {
    Cpu {
        cpu: u32,
        turn: u32,
    },
    Wakes(u32),
    /// An idle CPU looks for threads.
    Looks(u32),
}

/// Ready threads: the one that is furthest behind comes first.
type Queue = BinaryHeap<Reverse<(Nanos, u32, u32)>>;

pub(crate) struct Machine<'a> {
    view: &'a View<'a>,
    now: Nanos,
    /// Numbers places in queues.
    count: u32,
    events: Events,
    cpus: Vec<Cpu>,
    idle: u32,
    ready: Queue,
    /// Ready threads that may not run everywhere, by the CPU that they were put on.
    ready_on: Vec<Queue>,
    resting: Resting,
    threads: Vec<Thread>,
    /// The pieces of split threads.
    pieces: FxHashMap<u32, Pieces>,
    /// Threads that wait for a client to ask, by the number of the client's wait.
    awaiting: FxHashMap<u32, u32>,
    /// Numbers of the waits that were ended.
    ended: BitSet,
    /// Numbers of the waits that were begun, if a thread is split.
    begun: Option<BitSet>,
    /// Locks that go to the first thread to arrive, by object; a split lock has several.
    locks: Vec<Vec<locks::Lock>>,
    /// The threads that have arrived, by round.
    arrived: Vec<Vec<u32>>,
    chance: u64,
    jitter: bool,
    /// Number of working threads that have not ended.
    left: u32,
    work: Option<Work>,
    /// CPU time used so far.
    ran: Nanos,
    forced: u64,
}

/// When the work began and ended.
#[derive(Clone, Copy, Debug)]
struct Work {
    from: Nanos,
    to: Nanos,
    /// CPU time that had been used at its beginning and end.
    ran_from: Nanos,
    ran_to: Nanos,
}

/// Replay `view` once. Seed 0 is the scheduler without randomness.
pub(crate) fn simulate(view: &View<'_>, seed: u64) -> Ran {
    let mut machine = Machine::new(view, seed);
    machine.go();
    let mut run_ns = vec![0; view.program.threads.len()];
    for t in &machine.threads {
        run_ns[t.of as usize] += t.ran;
    }
    let (wall_ns, busy_ns) =
        machine.work.map_or((0, 0), |work| (work.to - work.from, work.ran_to - work.ran_from));
    Ran { wall_ns, busy_ns, forced: machine.forced, run_ns }
}

impl<'a> Machine<'a> {
    fn new(view: &'a View<'a>, seed: u64) -> Machine<'a> {
        let program = view.program;
        let cpu = Cpu { thread: NOBODY, since: 0, slice_ends: 0, turn: 0 };
        let count = view.cpus as usize;
        let mut threads: Vec<Thread> = Vec::with_capacity(program.threads.len());
        for (t, of) in program.threads.iter().zip(0..) {
            threads.push(Thread {
                of,
                works: t.works,
                in_piece: false,
                at: t.from,
                end: t.to,
                left: 0,
                course: 0,
                ran: 0,
                last_cpu: NOBODY,
                queued: 0,
                until: 0,
                left_for: None,
                state: State::Unborn,
                held: Vec::new(),
                took: Vec::new(),
                tries: None,
                holding: 1.0,
            });
        }
        let mut machine = Machine {
            view,
            now: 0,
            count: 0,
            events: Events::default(),
            cpus: vec![cpu; count],
            idle: view.cpus,
            ready: BinaryHeap::new(),
            ready_on: vec![BinaryHeap::new(); count],
            resting: Resting::default(),
            threads,
            pieces: FxHashMap::default(),
            awaiting: FxHashMap::default(),
            ended: BitSet::new(program.numbers),
            begun: None,
            locks: vec![Vec::new(); program.objects.len()],
            arrived: vec![Vec::new(); program.rounds.len()],
            chance: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1,
            jitter: seed != 0,
            left: 0,
            work: None,
            ran: 0,
            forced: 0,
        };
        for i in 0..program.threads.len() {
            machine.left += u32::from(machine.split(i as u32));
        }
        machine
    }

    fn go(&mut self) {
        self.idle_changed();
        for i in 0..self.threads.len() as u32 {
            let t = &self.view.program.threads[self.threads[i as usize].of as usize];
            if !t.spawned {
                self.wake(i, t.delay);
            }
        }
        loop {
            // After the work nothing matters once anything is changed.
            if self.left == 0 && !self.view.unchanged {
                break;
            }
            let Some((at, what)) = self.events.pop() else {
                if self.left > 0 && self.force() {
                    continue;
                }
                break;
            };
            self.now = at;
            match what {
                What::Wakes(thread) => {
                    if !self.pieces.is_empty() {
                        self.has_slept(thread);
                    }
                    self.wake(thread, 0);
                }
                What::Looks(turn) => self.take_over(turn),
                What::Cpu { cpu, turn } if self.cpus[cpu as usize].turn == turn => self.turn(cpu),
                What::Cpu { .. } => {}
            }
        }
    }

    /// No event is left but work is: the threads wait for each other in an order that the trace did
    /// not have. Releases the first.
    fn force(&mut self) -> bool {
        // A thread with a CPU has an event, and no thread queues for an idle CPU.
        let lost = |t: &Thread| matches!(t.state, State::Running | State::Ready);
        debug_assert!(!self.threads.iter().any(lost), "a thread has lost its CPU");
        let stuck =
            |t: &Thread| matches!(t.state, State::Waiting(_) | State::Arrived | State::Locked(..));
        // A thread whose creator did not get there still has to do its work.
        let unborn = |t: &Thread| t.state == State::Unborn;
        let first = self.threads.iter().position(stuck);
        let first = first.or_else(|| self.threads.iter().position(unborn));
        let Some(thread) = first else { return false };
        self.forced += 1;
        let thread = thread as u32;
        self.awaiting.retain(|_, &mut t| t != thread);
        self.leave_queues(thread);
        for arrived in &mut self.arrived {
            arrived.retain(|&t| t != thread);
        }
        let t = &mut self.threads[thread as usize];
        let waits = |op: &Op| matches!(op, Op::Wait { .. } | Op::Arrive { .. } | Op::Hold(_));
        let past = t.at < t.end && self.view.program.ops.get(t.at as usize).is_some_and(waits);
        t.at += u32::from(past);
        self.wake(thread, 0);
        true
    }

    fn later(&mut self, at: Nanos, what: What) {
        self.events.push(at, what);
    }

    /// A number below `n`; always 0 without randomness.
    fn draw(&mut self, n: u32) -> u32 {
        if self.jitter && n > 1 { self.random(n) } else { 0 }
    }

    fn random(&mut self, n: u32) -> u32 {
        // Marsaglia, "Xorshift RNGs", Journal of Statistical Software 8(14), 2003.
        self.chance ^= self.chance << 13;
        self.chance ^= self.chance >> 7;
        self.chance ^= self.chance << 17;
        (self.chance >> 33) as u32 % n
    }
}
