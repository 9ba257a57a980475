//! The tables of single facts, each declared once: its columns with type, unit and meaning.

use crate::column::{Column, TableDef, Type};
use crate::rows::{Value, Word};

/// What may stand in a column: decides its type and unit, and whether it may be missing.
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

/// What is too large for a column is its largest value: only damage makes such times.
pub(crate) fn int(n: u64) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}

fields! {
    /// A duration, or a time since the trace's start.
    Ns(u64) "ns", Int |n| int(n);
    /// A time of the trace's clock.
    Time(u64) "ns of the trace's clock", Int |n| int(n);
    /// A number of something.
    Id(u32) "", Id |n| n;
    /// An address.
    Address(u64) "", Address |n| n;
    /// Any number.
    Number(i64) "", Int |n| n;
    /// Yes or no.
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

/// `TABLE "NAME" { COLUMN: TYPE, … }`, with what a row and what each column means as comments.
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
        /// In which state it left, as the kernel prints it: `R`, `S`, `D` …
        prev_state: Option<Word>,
        /// Since the switch before it on this CPU: how long it was there.
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
        /// It is the kernel's own.
        kthread: Flag,
        /// Of the stay, the thread's own: application and kernel, without interrupts.
        combined_ns: Ns,
        /// Of that, application code; null as in `by_thread`.
        app_ns: Option<Ns>,
        /// Of that, the kernel; null as in `by_thread`.
        kernel_ns: Option<Ns>,
        /// Interrupts and softirqs on top of it.
        interrupted_ns: Option<Ns>,
        /// Ready before it, waiting for a CPU.
        delay_ns: Option<Ns>,
        /// How it ended: `slept`, `preempted`, `exited`, `trace-end`, or `unseen`: events are
        /// missing.
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
        /// Between the two; 0 of calls seen only to return.
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
        /// Of the duration: on a CPU.
        cpu_ns: Option<Ns>,
        /// Of the duration: on a CPU, but interrupted.
        interrupted_ns: Option<Ns>,
        /// Of the duration: ready to run, without a CPU.
        runnable_ns: Option<Ns>,
        /// Of the duration: asleep.
        blocked_ns: Option<Ns>,
        /// Its beginning was not seen: it began before the trace, or was lost.
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
        /// What it slept for: `futex`, `semop`, `pipe`, `disk` …
        kind: Word,
        /// What a futex is used for: `mutex`, `condvar`, `barrier` …
        usage: Option<Word>,
        /// Address, id or descriptor of the object.
        object: Word,
        /// Number of the object in this export.
        object_id: Id,
        /// System call slept in.
        call: Option<Word>,
        /// What this sleep was for: `thread-sync`, `kernel-service`, `kernel-lock`, `io`,
        /// `external`, `unknown`.
        cause: Word,
        /// Sleeps for this object cost something.
        harmful: Flag,
        /// Why they count as harmful or idle: the rule's id, see docs/waits.md.
        rule: Word,
        /// Thread that ended it; null if none did.
        waker_tid: Option<Id>,
        /// Its process.
        waker_pid: Option<Id>,
        /// Its name.
        waker_comm: Option<Word>,
        /// How it ended: `woken`, `unseen` (the wake-up is missing), `trace-end`.
        ended: Word,
    }

    /// A wait for a lock of the kernel that ended, spinning or asleep.
    LockWaitRow "lock_waits" {
        /// When it began, since the trace's start.
        at_ns: Ns,
        /// When it began.
        start_ns: Time,
        /// When it ended.
        end_ns: Time,
        /// Between the two.
        duration_ns: Ns,
        /// Thread that waited, 0 for interrupts on top of an idle task; null if it is not known.
        tid: Option<Id>,
        /// Its process.
        pid: Option<Id>,
        /// Its name.
        comm: Option<Word>,
        /// Address of the lock, or with lockdep of the `lockdep_map` in it.
        address: Address,
        /// Class (lockdep) or variable (symbols).
        lock: Option<Word>,
        /// `mutex`, `rwsem:R` …; null from lockdep.
        lock_type "type": Option<Word>,
        /// Function and offset in the code that asked for it.
        caller: Option<Word>,
        /// Of the duration: on a CPU.
        spin_ns: Option<Ns>,
        /// Of the duration: ready to run, without a CPU.
        runnable_ns: Option<Ns>,
        /// Of the duration: asleep.
        block_ns: Option<Ns>,
        /// The events that tell of it: `contention` or `lockdep`. A trace with both tells of one
        /// wait twice: choose one.
        source: Word,
    }

    /// An event that tells that a thread is woken.
    WakeupRow "wakeups" {
        /// When, since the trace's start.
        at_ns: Ns,
        /// When.
        time_ns: Time,
        /// Which: `waking` (its sleep is over), `wakeup` (it is on a run queue), `wakeup-new`.
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
        /// CPU that it goes to.
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
        /// Size; null of what came through a pipe.
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
        /// How sure it is, 0 to 1.
        confidence: Ratio,
        /// The verdict in one sentence.
        summary: Word,
    }

    /// What one rule found.
    FindingRow "findings" {
        /// Its number: those that hold first, largest loss first. Other tables refer to it.
        finding: Id,
        /// What it is about.
        class: Word,
        /// The rule's id.
        rule: Word,
        /// Which of the rule's stories it is.
        story: Word,
        /// It holds.
        holds: Flag,
        /// Its class is the verdict.
        verdict: Flag,
        /// CPU time lost to it; null where it cannot be known.
        lost_cpu_ns: Option<Ns>,
        /// That, as per cent of capacity.
        share: Option<Percent>,
        /// The claim in one sentence.
        summary: Word,
        /// Why it does not hold.
        ruled_out: Option<Word>,
    }

    /// A figure that speaks for or against a finding.
    EvidenceRow "evidence" {
        /// The finding's number.
        finding: Id,
        /// The rule's id.
        rule: Word,
        /// What was measured.
        metric: Word,
        /// How much.
        value: Option<Ratio>,
        /// Of what.
        unit: Word,
        /// What it is held against.
        threshold: Option<Ratio>,
        /// Where figure or threshold come from.
        source: Word,
    }

    /// Who or what a finding names.
    CulpritRow "culprits" {
        /// The finding's number.
        finding: Id,
        /// The rule's id.
        rule: Word,
        /// What it is: `mutex`, `semop`, `thread`, `syscall` …
        kind: Word,
        /// Its id among those of its kind.
        id: Word,
        /// Its name.
        name: Word,
        /// Thread, if it is one.
        tid: Option<Id>,
        /// Its process.
        pid: Option<Id>,
        /// CPU time that it stands for.
        ns: Ns,
        /// Threads that held it; null where nobody is known.
        holders: Option<Number>,
        /// Threads that waited for it; null where nobody is known.
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

    /// What is wrong with the trace, and what was put right.
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
