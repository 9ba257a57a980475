//! One event, in the fixed-size form that decoders write and passes read.

use crate::{ArgsRef, MappingRef, NameId, Parked, ReadingsRef, Runtime, StackRef, TaskState};
use serde::Serialize;
use std::fmt;

/// A point in time or a span, in nanoseconds of the trace's own clock.
pub type Nanos = u64;

/// A CPU number as the kernel counts them.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize)]
#[serde(transparent)]
pub struct Cpu(pub u16);

/// A thread id (`task_struct::pid`, what perf calls tid). 0 is the idle task of every CPU.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize)]
#[serde(transparent)]
pub struct Tid(pub u32);

/// A process id: the thread-group id (`task_struct::tgid`, what perf calls pid).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize)]
#[serde(transparent)]
pub struct Pid(pub u32);

impl Tid {
    /// The idle task.
    pub const IDLE: Tid = Tid(0);
    /// The format did not say, or the kernel had already released the number (perf writes -1).
    pub const UNKNOWN: Tid = Tid(u32::MAX);
    /// Numbers from here on are not the kernel's, which end at 2^22: they stand for tasks that a
    /// runtime schedules on threads, numbered in the order of their appearance.
    pub const FIRST_TASK: u32 = 1 << 30;

    /// The name for messages: `tid 17`, `goroutine #3`.
    pub fn words(self) -> String {
        match self.task() {
            Some(number) => format!("goroutine #{number}"),
            None => format!("tid {self}"),
        }
    }

    /// The number only: `17`, `#3`.
    pub fn number(self) -> String {
        self.task().map_or_else(|| self.to_string(), |number| format!("#{number}"))
    }

    /// The number among the tasks, from 1 on; `None` for a thread.
    pub fn task(self) -> Option<u32> {
        (self != Tid::UNKNOWN && self.0 > Tid::FIRST_TASK).then(|| self.0 - Tid::FIRST_TASK)
    }
}

impl Pid {
    /// The format did not say, or the kernel had already released the number (perf writes -1).
    pub const UNKNOWN: Pid = Pid(u32::MAX);
}

impl Cpu {
    /// The format did not say on which CPU.
    pub const UNKNOWN: Cpu = Cpu(u16::MAX);
}

impl fmt::Display for Cpu {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for Tid {
    /// Unknown is printed as -1, as in perf.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (self.0 as i32).fmt(f)
    }
}

impl fmt::Display for Pid {
    /// Unknown is printed as -1, as in perf.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (self.0 as i32).fmt(f)
    }
}

/// Index into [`crate::TraceInfo::events`]: which event of the file this is, by its own name.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct EventId(pub u16);

impl EventId {
    /// A record that is not an event the peers would print (COMM, FORK, LOST …).
    pub const SIDEBAND: EventId = EventId(u16::MAX);
}

/// One event: who, where, when, and [`What`].
///
/// 48 bytes, no owned memory: batches of these are recycled, so nothing is allocated per event.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Event {
    /// Nanoseconds of the trace's clock.
    pub ts: Nanos,
    /// The thread that was current on `cpu`.
    pub tid: Tid,
    /// Its process, or [`Pid::UNKNOWN`] if the format does not carry it.
    pub pid: Pid,
    /// Name of the current thread if the format repeats it with every event (text forms);
    /// [`NameId::NONE`] otherwise.
    pub comm: NameId,
    /// The CPU on which it happened.
    pub cpu: Cpu,
    /// Which of the file's events it is.
    pub id: EventId,
    /// The meaning, in holdup's terms.
    pub what: What,
}

/// Whether the kernel recorded an event in a hardware interrupt or an NMI, by its `common_flags`
/// (`TRACE_FLAG_HARDIRQ` and `TRACE_FLAG_NMI` in `include/linux/trace_events.h`).
pub const fn in_irq(common_flags: u64) -> bool {
    common_flags & (0x08 | 0x40) != 0
}

/// What happened. Names of variants and fields are the kernel's own (`include/trace/events/*.h`).
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum What {
    /// An event that holdup does not interpret; it still counts and shows in `events`.
    Other,

    /// `sched:sched_switch`.
    Switch {
        /// The thread leaving the CPU.
        prev: Tid,
        /// The thread taking it.
        next: Tid,
        /// State `prev` is left in.
        prev_state: TaskState,
        /// Name of `prev`.
        prev_comm: NameId,
        /// Name of `next`.
        next_comm: NameId,
        /// Kernel priority of `prev` (0-99 real time, 100-139 normal, below 0 deadline).
        prev_prio: i16,
        /// Kernel priority of `next`.
        next_prio: i16,
    },
    /// `sched:sched_waking`: fires in the waker's context, always.
    Waking {
        /// The woken thread.
        tid: Tid,
        /// Its name.
        comm: NameId,
        /// Its priority.
        prio: i16,
        /// The CPU on which it will run, as far as the kernel knows yet.
        target: Cpu,
        /// A hardware interrupt woke it, for example a timer's, and not the current thread; `false`
        /// too where the format does not say.
        in_irq: bool,
    },
    /// `sched:sched_wakeup`: the thread is runnable now. May fire in an interrupt on the target
    /// CPU, so the current thread is not always the waker.
    Wakeup {
        /// The woken thread.
        tid: Tid,
        /// Its name.
        comm: NameId,
        /// Its priority.
        prio: i16,
        /// The CPU whose queue it joined.
        target: Cpu,
    },
    /// `sched:sched_wakeup_new`: first time runnable after fork.
    WakeupNew {
        /// The new thread.
        tid: Tid,
        /// Its name.
        comm: NameId,
        /// Its priority.
        prio: i16,
        /// The CPU whose queue it joined.
        target: Cpu,
    },
    /// `sched:sched_migrate_task`. The current thread is the one doing the moving, not the moved.
    Migrate {
        /// The thread moved.
        tid: Tid,
        /// From.
        from: Cpu,
        /// To.
        to: Cpu,
    },
    /// `sched:sched_process_fork` (also for threads).
    Fork {
        /// The caller of fork/clone.
        parent: Tid,
        /// The new thread.
        child: Tid,
        /// Name the child starts with.
        child_comm: NameId,
    },
    /// `sched:sched_process_exec`. The thread's new name shows only in later events.
    Exec {
        /// Thread id afterwards (a non-leader that calls exec takes the leader's id).
        tid: Tid,
        /// Thread id before.
        old: Tid,
        /// The file executed.
        filename: NameId,
    },
    /// `sched:sched_process_exit`. The thread still runs for a while and then switches out.
    Exit {
        /// The thread that exits.
        tid: Tid,
        /// Its name.
        comm: NameId,
    },
    /// `sched:sched_stat_runtime`: CPU time charged to a thread since the last such event.
    StatRuntime {
        /// The thread that is charged.
        tid: Tid,
        /// How much, ns.
        runtime: Nanos,
    },
    /// `sched:sched_stat_wait` (on the run queue), `_sleep`, `_iowait`, `_blocked`.
    StatDelay {
        /// Which of the four.
        kind: StatKind,
        /// The thread that was delayed.
        tid: Tid,
        /// How long, ns.
        delay: Nanos,
    },
    /// `sched:sched_blocked_reason` (kernels of Android): what an uninterruptible sleep that ends
    /// now was for. Fires while the thread is put back on a run queue: after its `sched_waking`,
    /// before its `sched_wakeup`. Kernels that give its length (`delay=`) give nothing else.
    BlockedReason {
        /// The thread that slept.
        tid: Tid,
        /// The kernel had marked it as waiting for I/O (`task_struct::in_iowait`).
        io_wait: bool,
        /// Address in the function that slept; 0 if the file gives only a name.
        caller: u64,
        /// Name of that function and the offset in it, if the file gives it (text).
        name: NameId,
    },
    /// `cgroup:cgroup_attach_task`: a thread is moved to another control group; moving the first
    /// thread of a process moves the others too. Each hierarchy has its own events.
    AttachTask {
        /// The moved thread.
        tid: Tid,
        /// The number of the hierarchy; 0 is that of control groups, version 2.
        root: u32,
        /// The group, a path below the hierarchy's root.
        path: NameId,
    },
    /// `sched:sched_pi_setprio`.
    PiSetPrio {
        /// The lock owner boosted or restored.
        tid: Tid,
        /// Priority before.
        old: i16,
        /// Priority after.
        new: i16,
    },

    /// `raw_syscalls:sys_enter` or `syscalls:sys_enter_NAME`.
    SysEnter {
        /// The architecture's syscall number.
        nr: u32,
        /// The arguments, in the batch.
        args: ArgsRef,
    },
    /// `raw_syscalls:sys_exit` or `syscalls:sys_exit_NAME`.
    SysExit {
        /// The architecture's syscall number; `u32::MAX` (-1) when the kernel was restarting it.
        nr: u32,
        /// Result, negative errno in -4095..=-1.
        ret: i64,
    },

    /// `irq:irq_handler_entry`.
    IrqEntry {
        /// The interrupt line.
        irq: u32,
        /// The handler's name.
        name: NameId,
    },
    /// `irq:irq_handler_exit`.
    IrqExit {
        /// The interrupt line.
        irq: u32,
    },
    /// `irq_vectors:NAME_entry` (local timer, reschedule, call function …; x86).
    VectorEntry {
        /// The vector.
        vector: u32,
        /// NAME.
        name: NameId,
    },
    /// `irq_vectors:NAME_exit`.
    VectorExit {
        /// The vector.
        vector: u32,
    },
    /// `irq:softirq_raise`.
    SoftirqRaise {
        /// `HI`=0, `TIMER`=1 … `RCU`=9.
        vec: u32,
    },
    /// `irq:softirq_entry`.
    SoftirqEntry {
        /// See [`What::SoftirqRaise`].
        vec: u32,
    },
    /// `irq:softirq_exit`.
    SoftirqExit {
        /// See [`What::SoftirqRaise`].
        vec: u32,
    },
    /// `workqueue:workqueue_queue_work`.
    WorkQueue {
        /// Address of the `work_struct`.
        work: u64,
        /// Address of its function; 0 if the file gives only a name.
        function: u64,
        /// Name of the function if the file gives it (text).
        name: NameId,
    },
    /// `workqueue:workqueue_execute_start`.
    WorkStart {
        /// Address of the `work_struct`.
        work: u64,
        /// Address of its function; 0 if the file gives only a name.
        function: u64,
        /// Name of the function if the file gives it (text).
        name: NameId,
    },
    /// `workqueue:workqueue_execute_end`.
    WorkEnd {
        /// Address of the `work_struct`.
        work: u64,
    },

    /// `exceptions:page_fault_user` / `page_fault_kernel`. There is no matching end event.
    PageFault {
        /// Taken in user mode.
        user: bool,
        /// Faulting address.
        address: u64,
        /// Instruction.
        ip: u64,
    },

    /// `lock:contention_begin`.
    ContentionBegin {
        /// Address of the lock.
        lock: u64,
        /// `LCB_F_*`: SPIN=1 READ=2 WRITE=4 RT=8 PERCPU=16 MUTEX=32.
        flags: u32,
        /// Call chain if recorded.
        stack: StackRef,
    },
    /// `lock:contention_end`.
    ContentionEnd {
        /// Address of the lock.
        lock: u64,
        /// 0, or the negative errno of an interrupted wait.
        ret: i32,
    },
    /// `lock:contended_release` (Linux 7.2): the current thread releases it while others wait.
    ContendedRelease {
        /// Address of the lock.
        lock: u64,
    },
    /// `lock:lock_acquire` (lockdep): about to take it.
    LockAcquire {
        /// Address of the `lockdep_map`.
        lock: u64,
        /// Name of the lock class.
        name: NameId,
        /// 1 try, 2 read.
        flags: u32,
    },
    /// `lock:lock_contended` (lockdep): has to wait.
    LockContended {
        /// Address of the `lockdep_map`.
        lock: u64,
        /// Name of the lock class.
        name: NameId,
    },
    /// `lock:lock_acquired` (lockdep): got it.
    LockAcquired {
        /// Address of the `lockdep_map`.
        lock: u64,
        /// Name of the lock class.
        name: NameId,
    },
    /// `lock:lock_release` (lockdep).
    LockRelease {
        /// Address of the `lockdep_map`.
        lock: u64,
        /// Name of the lock class.
        name: NameId,
    },

    /// `power:cpu_idle`: `state` is `u32::MAX` on leaving idle.
    CpuIdle {
        /// C-state entered, or `u32::MAX`.
        state: u32,
        /// The affected CPU.
        cpu: Cpu,
    },

    /// A task that a runtime schedules on the current thread leaves the thread to sleep
    /// (`runtime.gopark` of Go).
    TaskParks {
        /// Address of the task.
        task: u64,
        /// Address of what it waits for; 0 if unknown.
        on: u64,
        /// Kind of what it waits for.
        why: Parked,
    },
    /// A runtime that schedules its own tasks does something else.
    Runtime {
        /// What the runtime does.
        does: Runtime,
        /// The address of the task or lock it does this to; 0 if there is none.
        with: u64,
    },

    /// A sample of a counter or software event (`cycles`, `page-faults`, `cpu-clock` …).
    Sample {
        /// Events counted since the previous sample.
        period: u64,
        /// Call chain if recorded, else the instruction address alone, else nothing.
        stack: StackRef,
    },

    /// Side band: the call chain of the next event in the batch, which has the same time. A
    /// [`What::Sample`] and a [`What::ContentionBegin`] carry theirs themselves.
    Stack {
        /// The chain, in the batch.
        of: StackRef,
    },
    /// Side band: where in the kernel the thread leaves its CPU by the next switch, which has the
    /// same time. This shows the system call that the thread is in, even if it is untraced.
    Leaves {
        /// The kernel's part of the call chain.
        of: StackRef,
        /// The register of a call's first argument.
        argument: u64,
    },
    /// Side band: code was mapped into the memory of a process, or of the kernel.
    Mapped {
        /// The process; [`Pid::UNKNOWN`] for the kernel.
        pid: Pid,
        /// The mapping, in the batch.
        mapping: MappingRef,
    },
    /// Side band: the values of the counters of a group (`perf record -e '{leader,members}:S'`),
    /// read with the leader's event, which follows at the same time.
    Readings {
        /// The leader's event.
        leader: EventId,
        /// The readings, in the batch.
        of: ReadingsRef,
    },
    /// Side band: a thread's name (PERF_RECORD_COMM; trace.dat's saved comms).
    Comm {
        /// The thread.
        tid: Tid,
        /// Its process.
        pid: Pid,
        /// Its name from now on.
        comm: NameId,
        /// Set by execve, not prctl.
        exec: bool,
    },
    /// Side band: PERF_RECORD_FORK.
    TaskNew {
        /// The new thread.
        tid: Tid,
        /// Its process.
        pid: Pid,
        /// The thread that created it.
        parent_tid: Tid,
        /// The creator's process.
        parent_pid: Pid,
    },
    /// Side band: PERF_RECORD_EXIT.
    TaskEnd {
        /// The ended thread.
        tid: Tid,
        /// Its process.
        pid: Pid,
    },
    /// Side band: PERF_RECORD_SWITCH / SWITCH_CPU_WIDE, the poorer source of scheduling events.
    ContextSwitch {
        /// The current thread leaves the CPU (true) or gets it (false).
        out: bool,
        /// It left because it was preempted.
        preempt: bool,
        /// The other thread (SWITCH_CPU_WIDE), or [`Tid::UNKNOWN`].
        other: Tid,
    },
    /// Side band: the thread of the next event is in this control group (PERF_SAMPLE_CGROUP).
    /// Emitted when a decoder first meets the thread, when its group changes, and repeated now and
    /// then.
    InGroup {
        /// The thread.
        tid: Tid,
        /// The group, a path below the hierarchy's root.
        group: NameId,
    },
    /// Side band: events were lost on this CPU (all CPUs if [`Cpu::UNKNOWN`]) up to here.
    Lost {
        /// How many, 0 if the file does not say.
        count: u64,
    },
}

/// Which run-queue statistic a [`What::StatDelay`] has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StatKind {
    /// Time on the run queue.
    Wait,
    /// Interruptible sleep.
    Sleep,
    /// Uninterruptible sleep for I/O.
    IoWait,
    /// Uninterruptible sleep.
    Blocked,
}

// A cache line holds one event and a bit; a variant that grows the enum slows every pass down.
const _: () = assert!(size_of::<Event>() == 48);
