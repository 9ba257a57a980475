//! The tables of single facts, each declared once: its columns with type, unit and meaning.

use crate::column::{Column, TableDef, Type};
use crate::rows::{Value, Word};

/// The type of a field: determines the column's type and unit, and whether it may be null.
pub(crate) trait Field {
    const TYPE: Type;
    const UNIT: &'static str = "";
    const NULLABLE: bool = false;
    fn value(self) -> Value;
}

impl<T: Field> Field for Option<T> {
    const TYPE: Type = T::TYPE;
    const UNIT: &'static str = T::UNIT;
    const NULLABLE: bool = true;

    fn value(self) -> Value {
        self.map_or(Value::Null, T::value)
    }
}

macro_rules! fields {
    ($(
        $(#[doc = $doc:literal])+
        $name:ident($of:ty) $unit:literal, $ty:ident |$v:ident| $value:expr;
    )+) => {
        $(
            $(#[doc = $doc])+
            #[derive(Clone, Copy)]
            pub(crate) struct $name(pub(crate) $of);

            impl Field for $name {
                const TYPE: Type = Type::$ty;
                const UNIT: &'static str = $unit;

                fn value(self) -> Value {
                    let $v = self.0;
                    Value::$ty($value)
                }
            }
        )+
    };
}

/// A value too large for a column becomes the column's largest value: only damaged times are that
/// large.
pub(crate) fn int(n: u64) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}

fields! {
    /// A duration, or a time since the trace's start.
    Ns(u64) "ns", Int |n| int(n);
    /// A time of the trace's clock.
    Time(u64) "ns of the trace's clock", Int |n| int(n);
    /// An id or number.
    Id(u32) "", Id |n| n;
    /// An address.
    Address(u64) "", Address |n| n;
    /// Any number.
    Number(i64) "", Int |n| n;
    /// A boolean.
    Flag(bool) "", Flag |b| b;
}

impl Field for Word {
    const TYPE: Type = Type::Words;

    fn value(self) -> Value {
        Value::Words(self)
    }
}

macro_rules! name {
    ($field:ident) => {
        stringify!($field)
    };
    ($field:ident $name:literal) => {
        $name
    };
}

/// `TABLE "NAME" { COLUMN: TYPE, … }`, with the meaning of a row and of each column as comments.
macro_rules! tables {
    ($(
        $(#[doc = $about:literal])+
        $row:ident $name:literal {
            $($(#[doc = $meaning:literal])+ $field:ident $($key:literal)? : $ty:ty,)+
        }
    )+) => {
        $(
            $(#[doc = $about])+
            pub(crate) struct $row { $($(#[doc = $meaning])+ pub(crate) $field: $ty),+ }

            impl $row {
                const COLUMNS: usize = [$(stringify!($field)),+].len();

                /// The table of such rows.
                pub(crate) fn table() -> TableDef {
                    TableDef {
                        name: $name,
                        about: concat!($($about),+),
                        columns: vec![$(Column {
                            name: name!($field $($key)?),
                            ty: <$ty as Field>::TYPE,
                            unit: <$ty as Field>::UNIT,
                            nullable: <$ty as Field>::NULLABLE,
                            about: concat!($($meaning),+),
                        }),+],
                    }
                }

                /// Its values, in the order of the columns.
                pub(crate) fn values(self) -> [Value; $row::COLUMNS] {
                    [$(self.$field.value()),+]
                }
            }
        )+

        /// The tables of this file.
        pub(crate) fn tables() -> Vec<TableDef> {
            vec![$($row::table()),+]
        }
    };
}

tables! {
    /// A context switch.
    SwitchRow "switches" {
        /// When, since the trace's start.
        at_ns: Ns,
        /// When.
        time_ns: Time,
        /// Where.
        cpu: Id,
        /// Thread that left, 0 for the idle task.
        prev_tid: Option<Id>,
        /// Its process.
        prev_pid: Option<Id>,
        /// Its name.
        prev_comm: Option<Word>,
        /// State of the thread that left, as the kernel prints it: `R`, `S`, `D` …
        prev_state: Option<Word>,
        /// Time since the previous switch on this CPU: how long the thread that left was there.
        stay_ns: Option<Ns>,
        /// Thread that came, 0 for the idle task.
        next_tid: Option<Id>,
        /// Its process.
        next_pid: Option<Id>,
        /// Its name.
        next_comm: Option<Word>,
    }

    /// A stay of a thread on a CPU.
    RunRow "runs" {
        /// When it began, since the trace's start.
        at_ns: Ns,
        /// When it began.
        start_ns: Time,
        /// When it ended.
        end_ns: Time,
        /// Between the two.
        duration_ns: Ns,
        /// Where.
        cpu: Id,
        /// Thread.
        tid: Id,
        /// Its process.
        pid: Option<Id>,
        /// Its name.
        comm: Word,
        /// It is a kernel thread.
        kthread: Flag,
        /// Part of the stay that is the thread's own time: application and kernel, without
        /// interrupts.
        combined_ns: Ns,
        /// Part of `combined_ns` in application code; null as in `by_thread`.
        app_ns: Option<Ns>,
        /// Part of `combined_ns` in the kernel; null as in `by_thread`.
        kernel_ns: Option<Ns>,
        /// Interrupts and softirqs that ran on top of the thread.
        interrupted_ns: Option<Ns>,
        /// Time that the thread was ready before the stay, waiting for a CPU.
        delay_ns: Option<Ns>,
        /// How the stay ended: `slept`, `preempted`, `exited`, `trace-end`, or `unseen` (events are
        /// missing).
        ended: Word,
    }

    /// A system call that returned.
    CallRow "syscalls" {
        /// When it was entered, since the trace's start.
        at_ns: Ns,
        /// When it was entered.
        start_ns: Time,
        /// When it returned.
        end_ns: Time,
        /// Between the two; 0 for calls of which only the return was seen.
        duration_ns: Ns,
        /// Where it returned.
        cpu: Id,
        /// Thread.
        tid: Id,
        /// Its process.
        pid: Option<Id>,
        /// Its name.
        comm: Word,
        /// The call's number.
        nr: Id,
        /// Its name.
        name: Word,
        /// What it returned.
        ret: Number,
        /// Name of the error, if it failed.
        errno: Option<Word>,
        /// Part of the duration on a CPU.
        cpu_ns: Option<Ns>,
        /// Part of the duration on a CPU, but interrupted.
        interrupted_ns: Option<Ns>,
        /// Part of the duration ready to run, but without a CPU.
        runnable_ns: Option<Ns>,
        /// Part of the duration asleep.
        blocked_ns: Option<Ns>,
        /// The entry of the call was not seen: it was before the trace, or the event was lost.
        returned_only: Flag,
    }

    /// A sleep of an application's thread.
    WaitRow "waits" {
        /// When it began, since the trace's start.
        at_ns: Ns,
        /// When it began.
        start_ns: Time,
        /// When it ended.
        end_ns: Time,
        /// Between the two.
        duration_ns: Ns,
        /// Thread that slept.
        tid: Id,
        /// Its process.
        pid: Option<Id>,
        /// Its name.
        comm: Word,
        /// Kind of object that it slept for: `futex`, `semop`, `pipe`, `disk` …
        kind: Word,
        /// What a futex is used for: `mutex`, `condvar`, `barrier` …
        usage: Option<Word>,
        /// Address, id or descriptor of the object.
        object: Word,
        /// Number of the object in this export.
        object_id: Id,
        /// System call in which it slept.
        call: Option<Word>,
        /// Cause of the sleep: `thread-sync`, `kernel-service`, `kernel-lock`, `io`, `external`,
        /// `unknown`.
        cause: Word,
        /// Sleeps for this object are harmful: they cost the work time.
        harmful: Flag,
        /// Id of the rule that classified these sleeps as harmful or idle, see docs/waits.md.
        rule: Word,
        /// Thread that ended the sleep; null if no thread did.
        waker_tid: Option<Id>,
        /// Its process.
        waker_pid: Option<Id>,
        /// Its name.
        waker_comm: Option<Word>,
        /// How it ended: `woken`, `unseen` (the wake-up is missing), `trace-end`.
        ended: Word,
    }

    /// A wait for a kernel lock, spinning or asleep, whose end was recorded.
    LockWaitRow "lock_waits" {
        /// When it began, since the trace's start.
        at_ns: Ns,
        /// When it began.
        start_ns: Time,
        /// When it ended.
        end_ns: Time,
        /// Between the two.
        duration_ns: Ns,
        /// Thread that waited, 0 for interrupts on top of an idle task; null if the thread is not
        /// known.
        tid: Option<Id>,
        /// Its process.
        pid: Option<Id>,
        /// Its name.
        comm: Option<Word>,
        /// Address of the lock; with lockdep, address of the `lockdep_map` in the lock.
        address: Address,
        /// Class (lockdep) or variable (symbols).
        lock: Option<Word>,
        /// `mutex`, `rwsem:R` …; null from lockdep.
        lock_type "type": Option<Word>,
        /// Function and offset of the code that asked for the lock.
        caller: Option<Word>,
        /// Part of the duration on a CPU.
        spin_ns: Option<Ns>,
        /// Part of the duration ready to run, but without a CPU.
        runnable_ns: Option<Ns>,
        /// Part of the duration asleep.
        block_ns: Option<Ns>,
        /// The events that recorded the wait: `contention` or `lockdep`. In a trace with both, each
        /// wait has two rows: choose one source.
        source: Word,
    }

    /// A wake-up event of a thread.
    WakeupRow "wakeups" {
        /// When, since the trace's start.
        at_ns: Ns,
        /// When.
        time_ns: Time,
        /// Which event: `waking` (the sleep is over), `wakeup` (the thread is on a run queue),
        /// `wakeup-new`.
        event: Word,
        /// Where.
        cpu: Id,
        /// Thread that is woken.
        tid: Id,
        /// Its process.
        pid: Option<Id>,
        /// Its name.
        comm: Word,
        /// Thread that wakes it; null for an interrupt.
        waker_tid: Option<Id>,
        /// Its process.
        waker_pid: Option<Id>,
        /// Its name.
        waker_comm: Option<Word>,
        /// CPU to whose run queue the thread goes.
        target_cpu: Option<Id>,
    }

    /// An interrupt, softirq or work item.
    IrqRow "irqs" {
        /// When it began, since the trace's start.
        at_ns: Ns,
        /// When it began.
        start_ns: Time,
        /// When it ended.
        end_ns: Time,
        /// Between the two, nested interrupts included.
        duration_ns: Ns,
        /// Where.
        cpu: Id,
        /// `irq`, `softirq` or `workqueue`.
        kind: Word,
        /// Line, vector or function address; 0 where the trace has only the name of a function.
        id: Address,
        /// Handler, softirq or function name.
        name: Word,
    }

    /// The trace: one row.
    TraceRow "trace" {
        /// Name of the file, without its folder.
        file: Word,
        /// Its format.
        format: Word,
        /// Size; null if the trace came through a pipe.
        bytes: Option<Number>,
        /// CPUs.
        cpus: Id,
        /// Events as the recorder's own tool would print them.
        events: Number,
        /// Events that the recorder lost.
        lost_events: Number,
        /// First time analysed.
        start_ns: Time,
        /// Last time analysed.
        end_ns: Time,
        /// Between the two.
        wall_ns: Ns,
        /// The clock of all times, if the file says.
        clock: Option<Word>,
        /// Name of the recorded host, if the file says.
        hostname: Option<Word>,
        /// Its kernel, if the file says.
        os_release: Option<Word>,
        /// Its architecture, if the file says.
        arch: Option<Word>,
        /// The verdict's class.
        verdict: Word,
        /// Confidence of the verdict, 0 to 1.
        confidence: Ratio,
        /// The verdict in one sentence.
        summary: Word,
    }

    /// What one rule found.
    FindingRow "findings" {
        /// Number of the finding: findings that hold come first, the largest gain first. Other
        /// tables refer to it.
        finding: Id,
        /// The class that the finding is about.
        class: Word,
        /// The rule's id.
        rule: Word,
        /// Which of the rule's explanations (stories) it is.
        story: Word,
        /// The finding holds.
        holds: Flag,
        /// Its class is the verdict.
        verdict: Flag,
        /// CPU time lost to it; null if it cannot be known.
        lost_cpu_ns: Option<Ns>,
        /// `lost_cpu_ns` as per cent of capacity.
        share: Option<Percent>,
        /// The claim in one sentence.
        summary: Word,
        /// Why it does not hold.
        ruled_out: Option<Word>,
    }

    /// A figure that supports or contradicts a finding.
    EvidenceRow "evidence" {
        /// The finding's number.
        finding: Id,
        /// The rule's id.
        rule: Word,
        /// What was measured.
        metric: Word,
        /// How much.
        value: Option<Ratio>,
        /// Unit of the value.
        unit: Word,
        /// The threshold that the value is compared with.
        threshold: Option<Ratio>,
        /// Where the figure or the threshold comes from.
        source: Word,
    }

    /// Who or what a finding names.
    CulpritRow "culprits" {
        /// The finding's number.
        finding: Id,
        /// The rule's id.
        rule: Word,
        /// Kind of the culprit: `mutex`, `semop`, `thread`, `syscall` …
        kind: Word,
        /// Id, unique among culprits of its kind.
        id: Word,
        /// Its name.
        name: Word,
        /// Thread, if the culprit is a thread.
        tid: Option<Id>,
        /// Its process.
        pid: Option<Id>,
        /// CPU time that the culprit accounts for.
        ns: Ns,
        /// Number of threads that held it; null if no holder is known.
        holders: Option<Number>,
        /// Number of threads that waited for it; null if no waiter is known.
        waiters: Option<Number>,
    }

    /// What a finding advises.
    AdviceRow "advice" {
        /// The finding's number.
        finding: Id,
        /// The rule's id.
        rule: Word,
        /// What to do.
        advice: Word,
    }

    /// A defect of the trace, and how it was handled.
    QualityRow "quality" {
        /// Stable id.
        code: Word,
        /// How bad: `info`, `warning`, `error`.
        severity: Word,
        /// How often.
        count: Number,
        /// In words.
        message: Word,
    }
}

fields! {
    /// Per cent.
    Percent(f64) "%", Float |x| x;
    /// A fraction.
    Ratio(f64) "", Float |x| x;
}
