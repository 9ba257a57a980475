//! Every thread of the trace, and where its time went.
//!
//! A thread is one slot from its first event to its end; a thread id that is reused after an exit
//! gets another slot. Between two events a thread is in exactly one [`State`], and each change of
//! state adds the span to exactly one sum, so for every thread
//!
//! ```text
//! running + runnable + blocked (+ unknown) = time it existed within the trace
//! ```
//!
//! ```text
//!            switch in             sched_wakeup          sched_waking
//!   Running ◄───────── Woken ◄──────────────────── Waking ◄──────── Blocked
//!    │  ▲                ▲ sched_wakeup_new                            ▲
//!    │  └── Preempted   New ◄── fork                                   │
//!    │       ▲ switch out, R                                           │
//!    ├───────┘                                                         │
//!    └─────────────────────────────────────────────────────────────────┘
//!        switch out, S D T …     (X, Z: Dead; contradicted by an event: Lost)
//! ```
//!
//! A thread that first shows up later than the trace starts was in the state that event proves it
//! left: woken, so it was blocked; switched out, so it was running; switched in without a
//! wake-up, so it was runnable.
//!
//! Lost events: a state that no longer fits is corrected by the next event that proves another one,
//! by the invariants in `engine/invariants.rs`; a span in an unknown state is in no sum.

use crate::lanes::{Doing, Follow, Lane};
use crate::latency::Latency;
use crate::living::Living;
use crate::past::{HolderDid, HolderPart, Past};
use crate::slot::Slot;
use crate::state::Mode;
use crate::state::State;
use crate::throttle::Throttle;
use crate::yields::Yields;
use holdup_trace::{Cpu, NameId, Nanos, Pid, Tid};
use rustc_hash::FxHashMap;
use std::mem::offset_of;

/// A wake-up of a thread that still runs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EarlyWake {
    /// The waking thread, and whether certainly nothing ran on top of it; `None` for an interrupt.
    pub(crate) waker: Option<(Slot, bool)>,
}

/// One thread.
///
/// Fields are in the order of use: what each system call touches comes first and shares two cache
/// lines, what each switch touches follows. Cache misses decide the speed with many threads.
#[derive(Clone, Debug)]
#[repr(C, align(64))]
pub struct Thread {
    /// What only a living thread needs.
    pub(crate) living: Living,
    /// Its past, if it has held something that others wait for.
    pub(crate) past: Option<Box<Past>>,
    /// Thread id.
    pub tid: Tid,
    /// Process id, as far as known.
    pub pid: Pid,
    /// Kernel locks it is waiting for (contention_begin without end).
    pub(crate) contending: u32,
    pub(crate) state: State,
    pub(crate) mode: Mode,
    /// Time on a CPU is time spent on waiting for a kernel lock.
    pub(crate) spins: bool,
    /// Since when it is in `state`.
    pub(crate) since: Nanos,
    /// Time on a CPU, including interrupts on top of it.
    pub running_ns: Nanos,
    /// Part of `running_ns`: taken by interrupts and softirqs.
    pub irq_ns: Nanos,
    /// Time ready after a wake-up.
    pub woken_ns: Nanos,
    /// Time ready after losing its CPU.
    pub preempted_ns: Nanos,
    /// Time asleep.
    pub blocked_ns: Nanos,
    /// Part of `running_ns - irq_ns`: application code.
    pub user_ns: Nanos,
    /// Part of `running_ns - irq_ns`: kernel.
    pub kernel_ns: Nanos,
    /// System calls seen, pending ones and returns included.
    pub(crate) syscall_events: u64,

    /// The address of a task that a runtime schedules on threads; 0 for a thread.
    pub task: u64,
    /// How it yields, if it ever does.
    pub(crate) yields: Option<Box<Yields>>,
    /// The picture of what it does, if it is followed.
    pub(crate) lane: Option<Box<Lane>>,
    /// The spans of known state, in order, if they are kept.
    #[expect(clippy::box_collection, reason = "16 bytes less in each of very many threads")]
    pub(crate) known: Option<Box<Vec<(Nanos, Nanos)>>>,
    /// Part of the ready time: behind another thread that had the CPU, not until an idle CPU wakes
    /// up.
    pub queued_ns: Nanos,
    /// Part of `queued_ns`: behind its waker, which then slept and so handed its CPU over.
    pub handed_ns: Nanos,
    /// Number of times it left a CPU to sleep or end.
    pub voluntary: u64,
    /// Number of times it lost a CPU.
    pub involuntary: u64,
    /// Stays on a CPU as `perf sched timehist` counts them.
    pub stays: u64,
    /// Their total time as perf counts it.
    pub stays_ns: Nanos,
    /// Run-queue delays as `perf sched latency` counts them.
    pub latency: Latency,
    /// Latest name.
    pub comm: NameId,
    /// Last CPU it ran on.
    pub(crate) last_cpu: Cpu,
    /// It was woken while still running, when it was about to sleep; the next switch-out does not
    /// begin a long sleep.
    pub(crate) early_wake: Option<EarlyWake>,
    /// It left its CPU in state R, and the CPU went idle: a quota or a sibling keeps, or kept, it
    /// off.
    pub(crate) throttle: Option<Box<Throttle>>,
    /// It writes the recording, judging by its name.
    pub(crate) records: bool,
    /// The block now in progress is uninterruptible (`D`).
    pub(crate) uninterruptible: bool,
    /// It has woken a thread of its process or name that slept until an event.
    pub(crate) hands_over: bool,
    /// It has exited and switches out soon.
    pub(crate) exiting: bool,
    /// It runs tasks of a runtime, which have slots of their own.
    pub carries: bool,
    /// `pid` was not in the trace but follows from how the thread was made.
    pub pid_inferred: bool,
    /// Waiting time of others that its wake-ups ended, and idle CPU time shared out to them.
    pub(crate) ended_wait_ns: Nanos,
    /// Number of CPUs that it came back to from another, at least the one it ran on last: a thread
    /// that is bound to a CPU leaves the one where it was started for good.
    pub homes: u8,
    /// Number of moves to another CPU.
    pub migrations: u64,
    /// Page faults.
    pub faults: u64,
    /// Application or kernel, not known until the first system call shows: per CPU and bin.
    pub(crate) undecided: Vec<Undecided>,
    /// What the undecided time turned out to be.
    pub(crate) decided: Option<Mode>,

    /// The latest control group that it was in.
    pub(crate) group: NameId,
    /// Thread that created it.
    pub parent: Option<Tid>,
    /// When it was created, or the start of the trace.
    pub born: Nanos,
    /// When it ended.
    pub died: Option<Nanos>,
}

const _: () = assert!(offset_of!(Thread, task) == 2 * 64);

/// Time of a thread in a mode that is not known yet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Undecided {
    /// The CPU.
    pub(crate) cpu: Cpu,
    /// The bin of the timeline.
    pub(crate) bin: u16,
    /// The length.
    pub(crate) span: Nanos,
}

/// What a thread is for: `worker-12` without the number at its end.
pub fn role(comm: &[u8]) -> &[u8] {
    let end = comm.iter().rposition(|c| !c.is_ascii_digit()).map_or(0, |last| last + 1);
    &comm[..end]
}

impl Thread {
    /// Time in which it had work: running, or ready.
    pub fn active_ns(&self) -> Nanos {
        self.running_ns + self.woken_ns + self.preempted_ns
    }

    pub(crate) fn new(tid: Tid, born: Nanos, state: State) -> Thread {
        Thread {
            tid,
            pid: Pid::UNKNOWN,
            task: 0,
            comm: NameId::NONE,
            group: NameId::NONE,
            parent: None,
            born,
            died: None,
            state,
            since: born,
            mode: Mode::Unknown,
            last_cpu: Cpu::UNKNOWN,
            early_wake: None,
            records: false,
            throttle: None,
            uninterruptible: false,
            contending: 0,
            spins: false,
            exiting: false,
            carries: false,
            hands_over: false,
            pid_inferred: false,
            running_ns: 0,
            irq_ns: 0,
            woken_ns: 0,
            preempted_ns: 0,
            queued_ns: 0,
            handed_ns: 0,
            blocked_ns: 0,
            user_ns: 0,
            kernel_ns: 0,
            undecided: Vec::new(),
            decided: None,
            voluntary: 0,
            involuntary: 0,
            homes: 1,
            migrations: 0,
            stays: 0,
            stays_ns: 0,
            lane: None,
            past: None,
            known: None,
            latency: Latency::default(),
            living: Living::default(),
            yields: None,
            ended_wait_ns: 0,
            syscall_events: 0,
            faults: 0,
        }
    }

    /// It no longer runs on this CPU.
    pub(crate) fn leaves_cpu(&mut self, cpu: Cpu) {
        if self.last_cpu != cpu {
            let bit = 1 << (cpu.0 % 64);
            self.living.came_back |= self.living.ran_on & bit;
            self.living.ran_on |= bit;
            self.homes = (self.living.came_back | bit).count_ones() as u8;
            self.last_cpu = cpu;
        }
    }

    /// The CPU it ran on last.
    pub fn last_cpu(&self) -> Cpu {
        match self.state {
            State::Running(cpu) => cpu,
            _ => self.last_cpu,
        }
    }

    /// Whether it is ready but kept off the CPUs.
    pub(crate) fn is_throttled(&self) -> bool {
        self.throttle.as_ref().is_some_and(|t| t.off.is_some())
    }

    /// How often and how long it was ready but not allowed to run; `None` if never.
    pub fn throttle(&self) -> Option<&Throttle> {
        self.throttle.as_deref().filter(|t| t.spells > 0)
    }

    /// Whether its undecided time turned out to be an application's.
    pub fn was_application(&self) -> bool {
        self.decided.is_none_or(|mode| matches!(mode, Mode::User | Mode::Unknown))
    }

    /// Whether it is a kernel thread.
    pub fn is_kthread(&self) -> bool {
        self.mode == Mode::Kthread
    }

    /// Add the span since the last change of state to the state's sum.
    pub(crate) fn settle(&mut self, now: Nanos) {
        self.was(self.state, self.since, now);
        self.since = now;
    }

    /// It was in `state` for this span: the only place where the sums of states grow.
    #[inline]
    pub(crate) fn was(&mut self, state: State, from: Nanos, to: Nanos) {
        let span = to.saturating_sub(from);
        match state {
            State::Running(_) => self.running_ns += span,
            State::Woken(_) => self.woken_ns += span,
            State::Preempted(_) => self.preempted_ns += span,
            State::Blocked | State::Waking => self.blocked_ns += span,
            State::Unseen | State::New | State::Lost | State::Dead => {}
        }
        if self.known.is_some() {
            self.was_known(state, from, to);
        }
        if let Some(past) = &mut self.past {
            past.was(state, from, to);
        }
        if let Some(lane) = &mut self.lane {
            lane.was(state, from, to);
        }
    }

    #[cold]
    fn was_known(&mut self, state: State, from: Nanos, to: Nanos) {
        let nothing = matches!(state, State::Unseen | State::New | State::Lost | State::Dead);
        let Some(known) = self.known.as_mut().filter(|_| to > from && !nothing) else { return };
        match known.last_mut() {
            Some(last) if from <= last.1 => last.1 = last.1.max(to),
            _ => known.push((from, to)),
        }
    }

    /// CPU time up to `now` while the thread may be running: (running, interrupted part of it).
    pub(crate) fn running_at(&self, now: Nanos) -> Nanos {
        match self.state {
            State::Running(_) => self.running_ns + now.saturating_sub(self.since),
            _ => self.running_ns,
        }
    }

    /// CPU time of a running thread minus the time: it stays the same as long as the thread keeps
    /// its CPU. May be negative, so it wraps.
    #[inline(always)]
    pub(crate) fn ran_beyond(&self) -> Nanos {
        self.running_ns.wrapping_sub(self.since)
    }

    /// Forget all sums, keep the states: the analysis starts at `now`.
    pub(crate) fn restart(&mut self, now: Nanos) {
        self.settle(now);
        self.born = self.born.max(now);
        (self.running_ns, self.irq_ns, self.woken_ns, self.preempted_ns, self.blocked_ns) =
            (0, 0, 0, 0, 0);
        (self.user_ns, self.kernel_ns) = (0, 0);
        (self.queued_ns, self.handed_ns) = (0, 0);
        (self.voluntary, self.involuntary, self.migrations, self.stays, self.stays_ns) =
            (0, 0, 0, 0, 0);
        self.undecided.clear();
        self.latency.restart();
        self.living.restart(now);
        self.yields = None;
        self.ended_wait_ns = 0;
        self.faults = 0;
        if let Some(lane) = &mut self.lane {
            lane.restart(now);
        }
        if let Some(known) = &mut self.known {
            known.clear();
        }
    }
}

const PAGE: usize = 4096;
/// Thread ids below this (the kernel's `PID_MAX_LIMIT`) are looked up in pages, others by hash:
/// a damaged file must not make us allocate for a thread id of two billion.
const DENSE: u32 = 1 << 22;
const NO_SLOT: u32 = u32::MAX;
/// Maximal number of moments kept for reuse by new threads.
const SPARE: usize = 64;

/// All threads, living and ended.
#[derive(Clone)]
pub struct Threads {
    threads: Vec<Thread>,
    /// Slot of the living thread with an id, by pages of ids.
    pages: Vec<Option<Box<[u32; PAGE]>>>,
    far: FxHashMap<u32, u32>,
    /// Which threads get a lane.
    follow: Follow,
    /// Whether spans of known state are kept.
    keeps_known: bool,
    /// Moments of ended threads, for reuse by new ones.
    spare: Vec<Living>,
}

impl Default for Threads {
    fn default() -> Threads {
        let mut idle = Thread::new(Tid::IDLE, 0, State::Unseen);
        idle.pid = Pid(0);
        let mut t = Threads {
            threads: vec![idle],
            pages: Vec::new(),
            far: FxHashMap::default(),
            follow: Follow::default(),
            keeps_known: false,
            spare: Vec::new(),
        };
        t.map(Tid::IDLE, 0);
        t
    }
}

impl Threads {
    /// The living thread with this id.
    #[inline]
    pub(crate) fn get(&self, tid: Tid) -> Option<Slot> {
        let slot = if tid.0 < DENSE {
            *self.pages.get(tid.0 as usize / PAGE)?.as_ref()?.get(tid.0 as usize % PAGE)?
        } else {
            *self.far.get(&tid.0)?
        };
        (slot != NO_SLOT).then_some(Slot(slot))
    }

    fn map(&mut self, tid: Tid, slot: u32) {
        if tid.0 < DENSE {
            let page = tid.0 as usize / PAGE;
            if page >= self.pages.len() {
                self.pages.resize_with(page + 1, || None);
            }
            self.pages[page].get_or_insert_with(|| Box::new([NO_SLOT; PAGE]))
                [tid.0 as usize % PAGE] = slot;
        } else {
            self.far.insert(tid.0, slot);
        }
    }

    /// Adds a new thread; an older one with its id is no longer found by id.
    pub(crate) fn insert(&mut self, mut thread: Thread) -> Slot {
        let slot = self.threads.len() as u32;
        thread.living = self.spare.pop().unwrap_or_default();
        thread.known = self.keeps_known.then(Box::default);
        // A task is found by the thread that runs it.
        if thread.tid.task().is_none() {
            self.map(thread.tid, slot);
        }
        self.threads.push(thread);
        if !self.follow.threads.is_empty() {
            self[Slot(slot)].lane = self.follow.of_thread(Slot(slot));
        }
        Slot(slot)
    }

    /// Whether threads added from now on keep their spans of known state.
    pub(crate) fn keep_known(&mut self, keeps: bool) {
        self.keeps_known = keeps;
    }

    /// From now on events of the thread with this id belong to `slot`: a task that it runs, or the
    /// thread itself.
    pub(crate) fn stands_for(&mut self, tid: Tid, slot: Slot) {
        self.map(tid, slot.0);
    }

    /// From now on the threads of `follow` have lanes.
    pub(crate) fn follow(&mut self, follow: &Follow) {
        self.follow = follow.clone();
        for (slot, t) in self.threads.iter_mut().enumerate().skip(1) {
            t.lane = follow.of_thread(Slot(slot as u32));
        }
    }

    /// What a CPU does while this thread is on it.
    pub(crate) fn on_cpu(&self, slot: Slot) -> Doing {
        self.follow.on_cpu(slot)
    }

    /// The id is free again.
    pub(crate) fn forget(&mut self, tid: Tid) {
        if tid != Tid::IDLE && self.get(tid).is_some() {
            self.map(tid, NO_SLOT);
        }
    }

    /// Frees what only living threads need of an ended thread.
    pub(crate) fn retire(&mut self, slot: Slot) {
        let t = &mut self[slot];
        t.undecided.shrink_to_fit();
        t.past = None;
        let spare = t.living.end();
        if !spare.is_over() && self.spare.len() < SPARE {
            self.spare.push(spare);
        }
    }

    /// A thread changes its id (exec by one that is not the leader).
    pub(crate) fn rename_tid(&mut self, slot: Slot, old: Tid, new: Tid) {
        self.forget(old);
        self.map(new, slot.0);
        self[slot].tid = new;
    }

    /// Every thread but the idle task, in order of appearance.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Slot, &Thread)> {
        self.threads.iter().enumerate().skip(1).map(|(i, t)| (Slot(i as u32), t))
    }

    /// Every thread but the idle task.
    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Thread> {
        self.threads.iter_mut().skip(1)
    }
}

impl std::ops::Index<Slot> for Threads {
    type Output = Thread;
    #[inline]
    fn index(&self, slot: Slot) -> &Thread {
        &self.threads[slot.0 as usize]
    }
}

impl std::ops::IndexMut<Slot> for Threads {
    #[inline]
    fn index_mut(&mut self, slot: Slot) -> &mut Thread {
        &mut self.threads[slot.0 as usize]
    }
}

pub(crate) fn pid_of(t: &Thread) -> Option<u32> {
    (t.pid != Pid::UNKNOWN).then_some(t.pid.0)
}

impl Thread {
    /// Records a run from one time to another, if the thread's past is followed.
    #[inline(always)]
    pub(crate) fn ran(&mut self, from: Nanos, to: Nanos, part: HolderPart) {
        if self.past.is_some() {
            self.keep_running(from, to, part);
        }
    }

    /// Its current activity on its CPU, for time that may not be charged yet.
    pub(crate) fn does(&self) -> HolderDid {
        match self.state {
            State::Running(_) if self.spins => self.running(HolderPart::Spinning),
            State::Running(_) => self.running(self.mode.into()),
            _ => HolderDid::UNKNOWN,
        }
    }

    fn running(&self, part: HolderPart) -> HolderDid {
        let call = match part {
            HolderPart::User => None,
            _ => self.living.call.map(|call| call.nr),
        };
        HolderDid::running(part, call)
    }

    #[cold]
    #[inline(never)]
    fn keep_running(&mut self, from: Nanos, to: Nanos, part: HolderPart) {
        let did = self.running(part);
        if let Some(past) = &mut self.past {
            past.did(from, to, did);
        }
    }
}
