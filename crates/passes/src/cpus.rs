//! Where each CPU's time went: the parts add up to the whole.
//!
//! At any instant a CPU does exactly one thing, the innermost entry of its stack:
//!
//! ```text
//!   interrupt handler        IrqEntry .. IrqExit          irq
//!   softirq                  SoftirqEntry .. SoftirqExit  softirq
//!   current thread           Switch                       user | kernel | kthread | idle
//! ```
//!
//! Each event that changes the stack charges the span since the last change to the top entry. So
//! per CPU: user + kernel + kthread + irq + softirq + idle + unaccounted = wall.
//!
//! Before its first event a CPU did what that event says it was doing, because a switch would have
//! been an event. A current thread that changes without a switch event means lost events (or a
//! recording of some tasks only): the span since the last charge is unaccounted. A CPU without
//! events is idle if interrupts were recorded (a busy CPU has at least its timer's), else
//! unaccounted.

use crate::grid::NEVER;
use crate::grid::{Grid, Spent};
use crate::lanes::Lane;
use crate::slot::Slot;
use crate::stolen::Stolen;
use holdup_trace::{Cpu, Nanos, Tid};

/// What sits on top of the current thread.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Level {
    Irq,
    Softirq,
}

/// One interrupt or softirq in progress.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Frame {
    pub(crate) level: Level,
    /// Line, vector.
    pub(crate) id: u32,
    pub(crate) start: Nanos,
}

/// Interrupts nest at most a few deep (hard irq on softirq on task; nested hard irqs are gone
/// since 2.6.35): more means lost exits.
const MAX_NESTING: usize = 8;

/// One CPU.
#[derive(Clone, Debug)]
pub(crate) struct CpuState {
    /// Some event happened on this CPU.
    pub(crate) met: bool,
    /// Some event told which thread was on it.
    pub(crate) seen: bool,
    /// Threads were woken on or moved to this CPU: it exists even without events of its own.
    pub(crate) is_target: bool,
    /// The current thread, if known.
    current: Option<(Tid, Slot)>,
    /// [`CpuState::plain`], kept because each system call asks for it.
    plain: (Tid, Slot),
    /// Up to here the CPU's time has been charged.
    pub(crate) charged_to: Nanos,
    /// Time of its last event, if later than `charged_to`.
    pub(crate) heard: Nanos,
    /// Changed by [`CpuState::push`], [`CpuState::pop`] and [`CpuState::clear_stack`].
    pub(crate) stack: Vec<Frame>,
    /// When an interrupt handler ended here last.
    pub(crate) irq_left: Nanos,
    /// Time of the last switch here; 0 before the first.
    pub(crate) last_switch: Nanos,
    /// When it went idle, if the switch out of idle to the current thread was not recorded.
    pub(crate) idle_before: Option<Nanos>,
    /// Threads in an uninterruptible wait, perhaps for I/O, that last ran here, by the start of
    /// their wait.
    pub(crate) iowaiters: Vec<IoWaiter>,
    /// Counted as idle in the blame pass.
    pub(crate) counted_idle: bool,
    /// It has run threads without a break since then; the trace's start if it never idled.
    pub(crate) busy_since: Nanos,
    /// Threads ready on this CPU's run queue, unordered.
    pub(crate) queue: Vec<Slot>,
    /// Since when the current thread is presumed to be here without an event of its own that
    /// confirms it, as long as `charged_to` has not moved on; [`NEVER`] otherwise.
    pub(crate) presumed_at: Nanos,
    /// A thread has been seen on this CPU.
    pub(crate) used: bool,
    /// A switch out of idle was recorded.
    pub(crate) idle_left_seen: bool,
    /// A switch out of idle happened and was not recorded.
    pub(crate) idle_left_unseen: bool,

    pub(crate) user: Nanos,
    pub(crate) kernel: Nanos,
    /// Part of `kernel`: on the CPU while waiting for a kernel lock.
    pub(crate) lock_spin: Nanos,
    pub(crate) kthread: Nanos,
    pub(crate) irq: Nanos,
    pub(crate) softirq: Nanos,
    pub(crate) idle: Nanos,
    pub(crate) iowait: Nanos,
    pub(crate) unaccounted: Nanos,
    /// Part of the times above: while a hypervisor ran something else.
    pub(crate) stolen: Stolen,
    /// Charged to a thread whose mode is not known yet; moves to user or kernel once it is.
    pub(crate) undecided: Nanos,

    /// The bin of the timeline that `charged_to` is in.
    pub(crate) bin: u16,
    /// When that bin ends.
    pub(crate) border: Nanos,
    /// The totals when the bin began.
    pub(crate) mark: Spent,
    /// CPU time of threads when the current thread got the CPU, or when the bin began.
    pub(crate) ran_mark: Nanos,

    pub(crate) switches: u64,
    /// Number of switches when the bin began.
    pub(crate) switches_mark: u64,
    pub(crate) irqs: u64,
    pub(crate) counts: Counts,
    /// The picture of this CPU, if it is followed.
    pub(crate) lane: Option<Box<Lane>>,
}

/// [`CpuState::plain`] if it is neither.
const NOT_PLAIN: (Tid, Slot) = (Tid::UNKNOWN, Slot::IDLE);

/// A thread in a wait that may turn out to be for I/O.
#[derive(Clone, Copy, Debug)]
pub(crate) struct IoWaiter {
    pub(crate) slot: Slot,
    /// Idle time of the CPU between the start of this wait and that of the next wait in the list,
    /// without idle time already known to be a wait for I/O.
    pub(crate) idle_ns: Nanos,
}

/// What sar counts a call as.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Sort {
    #[default]
    Other,
    Read,
    Write,
    Semaphore,
    Message,
}

const SORTS: usize = Sort::Message as usize + 1;

/// Events sar counts.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counts {
    pub(crate) scalls: u64,
    /// Calls that returned, by [`Sort`].
    returned: [u64; SORTS],
    /// Sums of positive results: characters, for reads and writes.
    results: [u64; SORTS],
    pub(crate) forks: u64,
    pub(crate) execs: u64,
    pub(crate) faults: u64,
}

impl Counts {
    pub(crate) fn add(&mut self, o: &Counts) {
        self.scalls += o.scalls;
        for sort in 0..SORTS {
            self.returned[sort] += o.returned[sort];
            self.results[sort] = self.results[sort].saturating_add(o.results[sort]);
        }
        self.forks += o.forks;
        self.execs += o.execs;
        self.faults += o.faults;
    }

    /// A call returned. Without branches: reads and writes come in no order.
    #[inline(always)]
    pub(crate) fn returned(&mut self, sort: Sort, ret: i64) {
        self.returned[sort as usize] += 1;
        let result = &mut self.results[sort as usize];
        *result = result.wrapping_add(ret.max(0) as u64);
    }

    /// Calls of this sort that returned.
    pub(crate) fn calls(&self, sort: Sort) -> u64 {
        self.returned[sort as usize]
    }

    /// Characters that calls of this sort moved.
    pub(crate) fn chars(&self, sort: Sort) -> u64 {
        self.results[sort as usize]
    }
}

impl CpuState {
    pub(crate) fn new(start: Nanos, border: Nanos) -> CpuState {
        CpuState {
            met: false,
            seen: false,
            is_target: false,
            current: None,
            plain: NOT_PLAIN,
            charged_to: start,
            heard: start,
            stack: Vec::new(),
            irq_left: 0,
            last_switch: 0,
            idle_before: None,
            iowaiters: Vec::new(),
            counted_idle: false,
            busy_since: 0,
            queue: Vec::new(),
            presumed_at: NEVER,
            used: false,
            idle_left_seen: false,
            idle_left_unseen: false,
            user: 0,
            kernel: 0,
            lock_spin: 0,
            kthread: 0,
            irq: 0,
            softirq: 0,
            idle: 0,
            iowait: 0,
            unaccounted: 0,
            stolen: Stolen::default(),
            undecided: 0,
            bin: 0,
            border,
            mark: Spent::default(),
            ran_mark: 0,
            switches: 0,
            switches_mark: 0,
            irqs: 0,
            counts: Counts::default(),
            lane: None,
        }
    }

    /// A thread that last ran here begins a wait that may be for I/O.
    pub(crate) fn io_begins(&mut self, slot: Slot) {
        self.iowaiters.push(IoWaiter { slot, idle_ns: 0 });
    }

    /// The CPU idles for `span`.
    #[inline]
    pub(crate) fn idles(&mut self, span: Nanos) {
        self.idle += span;
        if let Some(last) = self.iowaiters.last_mut() {
            last.idle_ns += span;
        }
    }

    /// Such a wait ends, and was for I/O or not. If it was, all idle time since its start was
    /// iowait; idle time during a wait for something else may still belong to an earlier waiter.
    pub(crate) fn io_ends(&mut self, slot: Slot, io: bool) {
        let Some(i) = self.iowaiters.iter().position(|w| w.slot == slot) else { return };
        if io {
            for waiter in &mut self.iowaiters[i..] {
                self.iowait += std::mem::take(&mut waiter.idle_ns);
            }
        }
        let gone = self.iowaiters.remove(i);
        if let Some(before) = i.checked_sub(1) {
            self.iowaiters[before].idle_ns += gone.idle_ns;
        }
    }

    /// Pushes a frame; false if the stack is implausibly deep (exits were lost).
    pub(crate) fn push(&mut self, frame: Frame) -> bool {
        if self.stack.len() >= MAX_NESTING {
            self.stack.clear();
            self.stack.push(frame);
            return false;
        }
        self.stack.push(frame);
        self.plain = NOT_PLAIN;
        true
    }

    /// Pops the matching frame and all frames above it. `None` if no frame matches.
    pub(crate) fn pop(&mut self, level: Level, id: u32) -> Option<Frame> {
        let i = self.stack.iter().rposition(|f| f.level == level && f.id == id)?;
        let frame = self.stack[i];
        self.stack.truncate(i);
        self.set_plain();
        Some(frame)
    }

    /// Nothing is on top of the current thread.
    pub(crate) fn clear_stack(&mut self) {
        self.stack.clear();
        self.set_plain();
    }

    /// The current thread, if known.
    #[inline]
    pub(crate) fn current(&self) -> Option<(Tid, Slot)> {
        self.current
    }

    /// The current thread if it is no idle task and nothing interrupts it; otherwise no thread has
    /// this id, and the slot is [`Slot::IDLE`].
    #[inline(always)]
    pub(crate) fn plain(&self) -> (Tid, Slot) {
        self.plain
    }

    /// From now on the current thread is this one, if it is known.
    pub(crate) fn set_current(&mut self, current: Option<(Tid, Slot)>) {
        self.current = current;
        self.set_plain();
    }

    fn set_plain(&mut self) {
        let thread = self.current.filter(|&(_, slot)| slot != Slot::IDLE);
        self.plain = thread.filter(|_| self.stack.is_empty()).unwrap_or(NOT_PLAIN);
    }

    /// Whether its switches out of idle happen but are not recorded.
    pub(crate) fn is_blind(&self) -> bool {
        self.idle_left_unseen && !self.idle_left_seen
    }

    /// Whether the current thread is only presumed to be here.
    pub(crate) fn is_presumed(&self) -> bool {
        self.presumed_at == self.charged_to
    }

    /// A switch was not recorded: the current stay began at `since` and not at the last recorded
    /// switch.
    pub(crate) fn switched_unseen(&mut self, since: Nanos) {
        if self.last_switch != 0 {
            let idle = matches!(self.current, Some((Tid::IDLE, _)));
            self.idle_before = idle.then_some(self.last_switch);
            self.last_switch = since;
        }
    }

    /// A switch was recorded.
    #[inline]
    pub(crate) fn switched(&mut self, now: Nanos) {
        self.switches += 1;
        self.last_switch = now;
        self.idle_before = None;
    }

    /// What its time was spent on.
    pub(crate) fn spent(&self) -> Spent {
        Spent {
            user: self.user,
            kernel: self.kernel,
            kthread: self.kthread,
            irq: self.irq,
            softirq: self.softirq,
            idle: self.idle,
            unaccounted: self.unaccounted,
            undecided: self.undecided,
        }
    }

    pub(crate) fn restart(&mut self, now: Nanos, border: Nanos) {
        let fresh = CpuState::new(now, border);
        *self = CpuState {
            met: self.met,
            seen: self.seen,
            is_target: self.is_target,
            current: self.current,
            plain: self.plain,
            stack: std::mem::take(&mut self.stack),
            last_switch: self.last_switch,
            idle_before: self.idle_before,
            iowaiters: {
                let mut waiters = std::mem::take(&mut self.iowaiters);
                waiters.iter_mut().for_each(|w| w.idle_ns = 0);
                waiters
            },
            counted_idle: self.counted_idle,
            busy_since: self.busy_since,
            queue: std::mem::take(&mut self.queue),
            presumed_at: if self.is_presumed() { now } else { NEVER },
            used: self.used,
            idle_left_seen: self.idle_left_seen,
            idle_left_unseen: self.idle_left_unseen,
            lane: self.lane.take().map(|mut lane| {
                lane.restart(now);
                lane
            }),
            ..fresh
        };
    }
}

/// All CPUs by number.
#[derive(Clone, Debug)]
pub(crate) struct Cpus {
    start: Nanos,
    border: Nanos,
    cpus: Vec<CpuState>,
    used: usize,
}

/// The kernel's largest `NR_CPUS`; a higher number is a damaged record.
pub(crate) const MAX_CPUS: u16 = 8192;

impl Cpus {
    pub(crate) fn new(start: Nanos, grid: Grid) -> Cpus {
        Cpus { start, border: grid.border(0), cpus: Vec::new(), used: 0 }
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, cpu: Cpu) -> &mut CpuState {
        let i = cpu.0 as usize;
        if i >= self.cpus.len() {
            let (start, border) = (self.start, self.border);
            self.cpus.resize_with(i + 1, || CpuState::new(start, border));
        }
        &mut self.cpus[i]
    }

    /// A CPU that is known already.
    #[inline(always)]
    pub(crate) fn known_mut(&mut self, cpu: Cpu) -> Option<&mut CpuState> {
        self.cpus.get_mut(cpu.0 as usize)
    }

    /// Whether switches out of idle are never recorded for some CPU.
    pub(crate) fn any_blind(&self) -> bool {
        self.cpus.iter().any(CpuState::is_blind)
    }

    pub(crate) fn get(&self, cpu: Cpu) -> Option<&CpuState> {
        self.cpus.get(cpu.0 as usize)
    }

    /// A thread was woken on or moved to this CPU.
    #[inline]
    pub(crate) fn target(&mut self, cpu: Cpu) {
        if cpu.0 < MAX_CPUS {
            self.get_mut(cpu).is_target = true;
        }
    }

    /// A thread is on this CPU.
    pub(crate) fn use_one(&mut self, cpu: Cpu) {
        let c = self.get_mut(cpu);
        if !std::mem::replace(&mut c.used, true) {
            self.used += 1;
        }
    }

    /// Number of CPUs that a thread has been seen on so far. CPUs that are always idle leave memory
    /// bandwidth and caches to the others, however many they are.
    #[inline]
    pub(crate) fn used(&self) -> usize {
        self.used
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (Cpu, &CpuState)> {
        self.cpus.iter().enumerate().map(|(i, c)| (Cpu(i as u16), c))
    }

    pub(crate) fn restart(&mut self, now: Nanos, grid: Grid) {
        self.start = now;
        self.border = grid.border(0);
        for c in &mut self.cpus {
            c.restart(now, self.border);
        }
    }
}
