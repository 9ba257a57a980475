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
        /// Time of the switch, counted from the start of the analysed part.
        at_ns: Ns,
        /// Time of the switch, by the trace's clock.
        time_ns: Time,
        /// CPU on which the switch happened.
        cpu: Id,
        /// Thread that left the CPU, 0 for the idle task.
        prev_tid: Option<Id>,
        /// Process of the thread that left.
        prev_pid: Option<Id>,
        /// Name of the thread that left.
        prev_comm: Option<Word>,
        /// State of the thread that left, as the kernel prints it: `R`, `S`, `D` …
        prev_state: Option<Word>,
        /// Time since the previous switch on this CPU: how long the thread that left was there.
        stay_ns: Option<Ns>,
        /// Thread that came onto the CPU, 0 for the idle task.
        next_tid: Option<Id>,
        /// Process of the thread that came.
        next_pid: Option<Id>,
        /// Name of the thread that came.
        next_comm: Option<Word>,
    }

    /// A thread's stay on a CPU, from the switch to the thread to the next switch.
    RunRow "runs" {
        /// Start of the stay, counted from the start of the analysed part.
        at_ns: Ns,
        /// Start of the stay, by the trace's clock.
        start_ns: Time,
        /// End of the stay, by the trace's clock.
        end_ns: Time,
        /// Length of the stay: `end_ns` - `start_ns`.
        duration_ns: Ns,
        /// CPU on which the thread ran.
        cpu: Id,
        /// Thread that ran.
        tid: Id,
        /// Process of the thread.
        pid: Option<Id>,
        /// Name of the thread.
        comm: Word,
        /// Whether the thread is a kernel thread.
        kthread: Flag,
        /// Part of the stay that is the thread's own time: application and kernel, without
        /// interrupts.
        combined_ns: Ns,
        /// Part of `combined_ns` in application code; null where `app_ns` of `by_thread` is null.
        app_ns: Option<Ns>,
        /// Part of `combined_ns` in the kernel; null where `kernel_ns` of `by_thread` is null.
        kernel_ns: Option<Ns>,
        /// Part of the stay in which interrupts and softirqs interrupted the thread.
        interrupted_ns: Option<Ns>,
        /// Time for which the thread was ready and waited for a CPU before the stay.
        delay_ns: Option<Ns>,
        /// How the stay ended: `slept`, `preempted`, `exited`, `trace-end`, or `unseen` (events are
        /// missing).
        ended: Word,
    }

    /// A system call that returned.
    CallRow "syscalls" {
        /// Start of the call, counted from the start of the analysed part.
        at_ns: Ns,
        /// Start of the call, by the trace's clock.
        start_ns: Time,
        /// Return of the call, by the trace's clock.
        end_ns: Time,
        /// Length of the call: `end_ns` - `start_ns`; 0 for calls of which only the return was
        /// seen.
        duration_ns: Ns,
        /// CPU on which the call returned.
        cpu: Id,
        /// Thread that made the call.
        tid: Id,
        /// Process of the thread.
        pid: Option<Id>,
        /// Name of the thread.
        comm: Word,
        /// Number of the system call.
        nr: Id,
        /// Name of the system call.
        name: Word,
        /// Return value of the call.
        ret: Number,
        /// Name of the error, if the call failed.
        errno: Option<Word>,
        /// Part of the call in which the thread was on a CPU.
        cpu_ns: Option<Ns>,
        /// Part of the call in which the thread was on a CPU, but was interrupted.
        interrupted_ns: Option<Ns>,
        /// Part of the call in which the thread was ready to run, but without a CPU.
        runnable_ns: Option<Ns>,
        /// Part of the call in which the thread was asleep.
        blocked_ns: Option<Ns>,
        /// Whether the start of the call was not seen: it was before the trace, or the event was
        /// lost.
        returned_only: Flag,
    }

    /// A sleep of an application's thread.
    WaitRow "waits" {
        /// Start of the sleep, counted from the start of the analysed part.
        at_ns: Ns,
        /// Start of the sleep, by the trace's clock.
        start_ns: Time,
        /// End of the sleep, by the trace's clock.
        end_ns: Time,
        /// Length of the sleep: `end_ns` - `start_ns`.
        duration_ns: Ns,
        /// Thread that slept.
        tid: Id,
        /// Process of the thread that slept.
        pid: Option<Id>,
        /// Name of the thread that slept.
        comm: Word,
        /// Kind of object that the thread waited for: `futex`, `semop`, `pipe`, `disk` …
        kind: Word,
        /// What the futex is used for, if the object is a futex: `mutex`, `condvar`, `barrier` …
        usage: Option<Word>,
        /// Address, id or descriptor of the object.
        object: Word,
        /// Number that identifies the object within this export.
        object_id: Id,
        /// System call in which the thread slept.
        call: Option<Word>,
        /// Cause of the sleep: `thread-sync`, `kernel-service`, `kernel-lock`, `io`, `external`,
        /// `unknown`.
        cause: Word,
        /// Whether sleeps for this object are harmful, that is, cost the work time.
        harmful: Flag,
        /// Id of the rule that classified the sleeps for this object as harmful or idle: see
        /// docs/waits.md.
        rule: Word,
        /// Thread that ended the sleep; null if no thread did.
        waker_tid: Option<Id>,
        /// Process of the thread that ended the sleep.
        waker_pid: Option<Id>,
        /// Name of the thread that ended the sleep.
        waker_comm: Option<Word>,
        /// How the sleep ended: `woken`, `unseen` (the wake-up is missing), `trace-end`.
        ended: Word,
    }

    /// A wait for a kernel lock, spinning or asleep, whose end was recorded.
    LockWaitRow "lock_waits" {
        /// Start of the wait, counted from the start of the analysed part.
        at_ns: Ns,
        /// Start of the wait, by the trace's clock.
        start_ns: Time,
        /// End of the wait, by the trace's clock.
        end_ns: Time,
        /// Length of the wait: `end_ns` - `start_ns`.
        duration_ns: Ns,
        /// Thread that waited; 0 for an interrupt that interrupted an idle task; null if the thread
        /// is not known.
        tid: Option<Id>,
        /// Process of the thread that waited.
        pid: Option<Id>,
        /// Name of the thread that waited.
        comm: Option<Word>,
        /// Address of the lock; in events of lockdep, address of the `lockdep_map` in the lock.
        address: Address,
        /// Name of the lock: its class (from lockdep), or the variable that is the lock (from
        /// kernel symbols).
        lock: Option<Word>,
        /// Type of the lock: `mutex`, `rwsem:R` …; null in events of lockdep.
        lock_type "type": Option<Word>,
        /// Function and offset of the code that requested the lock.
        caller: Option<Word>,
        /// Part of the wait in which the thread was on a CPU.
        spin_ns: Option<Ns>,
        /// Part of the wait in which the thread was ready to run, but without a CPU.
        runnable_ns: Option<Ns>,
        /// Part of the wait in which the thread was asleep.
        block_ns: Option<Ns>,
        /// The events that recorded the wait: `contention` or `lockdep`. In a trace with both, each
        /// wait has two rows: use the rows of one source only.
        source: Word,
    }

    /// An event that says that a thread is woken.
    WakeupRow "wakeups" {
        /// Time of the event, counted from the start of the analysed part.
        at_ns: Ns,
        /// Time of the event, by the trace's clock.
        time_ns: Time,
        /// Which event: `waking` (the thread no longer sleeps), `wakeup` (the thread is on a run
        /// queue), `wakeup-new` (the thread is new, and on a run queue).
        event: Word,
        /// CPU on which the event happened.
        cpu: Id,
        /// Thread that is woken.
        tid: Id,
        /// Process of the thread that is woken.
        pid: Option<Id>,
        /// Name of the thread that is woken.
        comm: Word,
        /// Thread that ends the sleep; null if an interrupt does.
        waker_tid: Option<Id>,
        /// Process of the thread that ends the sleep.
        waker_pid: Option<Id>,
        /// Name of the thread that ends the sleep.
        waker_comm: Option<Word>,
        /// CPU to whose run queue the woken thread goes.
        target_cpu: Option<Id>,
    }

    /// One execution of an interrupt handler, a softirq or a work item.
    IrqRow "irqs" {
        /// Start of the execution, counted from the start of the analysed part.
        at_ns: Ns,
        /// Start of the execution, by the trace's clock.
        start_ns: Time,
        /// End of the execution, by the trace's clock.
        end_ns: Time,
        /// Length of the execution: `end_ns` - `start_ns`, nested interrupts included.
        duration_ns: Ns,
        /// CPU on which it was executed.
        cpu: Id,
        /// `irq`, `softirq` or `workqueue`.
        kind: Word,
        /// Interrupt line, softirq vector or address of the work function; 0 where the trace has
        /// only the name of a function.
        id: Address,
        /// Name of the interrupt handler, the softirq or the work function.
        name: Word,
    }

    /// The analysed trace, in one row.
    TraceRow "trace" {
        /// Name of the trace file, without its folder.
        file: Word,
        /// Format of the trace file.
        format: Word,
        /// Size of the trace file; null if the trace came through a pipe.
        bytes: Option<Number>,
        /// Number of CPUs in the trace.
        cpus: Id,
        /// Number of events that the recorder's own tool would print.
        events: Number,
        /// Number of events that the recorder lost.
        lost_events: Number,
        /// Start of the analysed part, by the trace's clock.
        start_ns: Time,
        /// End of the analysed part, by the trace's clock.
        end_ns: Time,
        /// Length of the analysed part: `end_ns` - `start_ns`.
        wall_ns: Ns,
        /// Name of the clock of all times; null if the file does not contain it.
        clock: Option<Word>,
        /// Name of the recorded host; null if the file does not contain it.
        hostname: Option<Word>,
        /// Kernel release of the recorded host; null if the file does not contain it.
        os_release: Option<Word>,
        /// Architecture of the recorded host; null if the file does not contain it.
        arch: Option<Word>,
        /// Class of the verdict on the trace.
        verdict: Word,
        /// Confidence of the verdict, 0 to 1.
        confidence: Ratio,
        /// The verdict in one sentence.
        summary: Word,
    }

    /// What one rule found in the trace.
    FindingRow "findings" {
        /// Number of the finding. Findings of rules that fire come first, the largest gain first.
        /// Other tables refer to this number.
        finding: Id,
        /// The class that the finding is about.
        class: Word,
        /// Id of the rule.
        rule: Word,
        /// Which of the rule's explanations (stories) the finding uses.
        story: Word,
        /// Whether the rule fires.
        holds: Flag,
        /// Whether the class of the finding is the verdict.
        verdict: Flag,
        /// CPU time lost to this bottleneck; null if it cannot be known.
        lost_cpu_ns: Option<Ns>,
        /// `lost_cpu_ns` as per cent of capacity.
        share: Option<Percent>,
        /// The finding in one sentence.
        summary: Word,
        /// Why the rule does not fire; null if it fires.
        ruled_out: Option<Word>,
    }

    /// A figure that supports or contradicts a finding.
    EvidenceRow "evidence" {
        /// Number of the finding.
        finding: Id,
        /// Id of the rule.
        rule: Word,
        /// What was measured.
        metric: Word,
        /// The measured value.
        value: Option<Ratio>,
        /// Unit of the measured value.
        unit: Word,
        /// The threshold that the value is compared with.
        threshold: Option<Ratio>,
        /// Where the figure or the threshold comes from.
        source: Word,
    }

    /// A thread, a lock or another object that a finding names as the cause.
    CulpritRow "culprits" {
        /// Number of the finding.
        finding: Id,
        /// Id of the rule.
        rule: Word,
        /// Kind of the culprit: `mutex`, `semop`, `thread`, `syscall` …
        kind: Word,
        /// Id of the culprit, unique among culprits of its kind.
        id: Word,
        /// Name of the culprit.
        name: Word,
        /// Thread, if the culprit is a thread.
        tid: Option<Id>,
        /// Process of the culprit.
        pid: Option<Id>,
        /// CPU time that the culprit accounts for.
        ns: Ns,
        /// Number of threads that held the culprit; null if no holder is known.
        holders: Option<Number>,
        /// Number of threads that waited for the culprit; null if no waiter is known.
        waiters: Option<Number>,
    }

    /// A piece of advice of a finding.
    AdviceRow "advice" {
        /// Number of the finding.
        finding: Id,
        /// Id of the rule.
        rule: Word,
        /// What to do.
        advice: Word,
    }

    /// A defect of the trace, and how it was handled.
    QualityRow "quality" {
        /// Stable id of the kind of defect.
        code: Word,
        /// Severity of the defect: `info`, `warning`, `error`.
        severity: Word,
        /// How many times the defect occurred.
        count: Number,
        /// The defect in words.
        message: Word,
    }
}

fields! {
    /// Per cent.
    Percent(f64) "%", Float |x| x;
    /// A fraction.
    Ratio(f64) "", Float |x| x;
}
