//! Plans: an event's format compiled to loads at fixed offsets.
//!
//! A plan is made once per event of a file. It has the offset and width of each field that holdup
//! needs and the length of the shortest record that holds them all, so decoding costs one length
//! check and a few loads. Events that holdup does not interpret get [`Plan::Other`], a known event
//! that lacks a needed field gets [`Plan::Incomplete`]; both decode to
//! [`What::Other`](holdup_trace::What::Other).

mod compile;
mod decode;
mod fields;

pub use decode::{CallNumber, sys_enter_64, sys_exit_64};
pub use fields::{Int, Str};

use holdup_trace::{StatKind, StateTable};

/// Properties of the recorded machine that change how a payload is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Abi {
    /// Bytes of a C `long`: 4 or 8.
    pub long_size: u8,
}

/// Where an event's fields are. See the module's description.
#[allow(missing_docs, reason = "fields are named after the tracepoint fields they locate")]
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Plan {
    /// Not an event holdup interprets.
    Other,
    /// An event holdup would interpret, but this field is missing.
    Incomplete(&'static str),
    Switch {
        min: u16,
        prev_comm: Str,
        prev_pid: Int,
        prev_prio: Int,
        prev_state: Int,
        /// Meaning of the state numbers on the recorded kernel.
        states: StateTable,
        next_comm: Str,
        next_pid: Int,
        next_prio: Int,
    },
    /// The three wake-ups share a layout; `kind` says which.
    Wake {
        min: u16,
        kind: WakeKind,
        comm: Str,
        pid: Int,
        prio: Int,
        target_cpu: Int,
        /// `common_flags`.
        flags: Option<Int>,
    },
    Migrate {
        min: u16,
        pid: Int,
        orig_cpu: Int,
        dest_cpu: Int,
    },
    Fork {
        min: u16,
        parent_pid: Int,
        child_pid: Int,
        child_comm: Str,
    },
    Exec {
        min: u16,
        pid: Int,
        old_pid: Int,
        filename: Str,
    },
    Exit {
        min: u16,
        pid: Int,
        comm: Str,
    },
    StatRuntime {
        min: u16,
        pid: Int,
        runtime: Int,
    },
    StatDelay {
        min: u16,
        kind: StatKind,
        pid: Int,
        delay: Int,
    },
    BlockedReason {
        min: u16,
        pid: Int,
        io_wait: Int,
        caller: Int,
    },
    AttachTask {
        min: u16,
        pid: Int,
        dst_root: Int,
        dst_path: Str,
    },
    PiSetPrio {
        min: u16,
        pid: Int,
        oldprio: Int,
        newprio: Int,
    },
    /// `raw_syscalls:sys_enter` or `syscalls:sys_enter_NAME` in the layout of 64-bit kernels:
    /// number at 8, `args` arguments of 8 bytes from 16.
    SysEnter64 {
        nr: CallNumber,
        args: u8,
    },
    /// `raw_syscalls:sys_exit` or `syscalls:sys_exit_NAME` in the layout of 64-bit kernels: number
    /// at 8, result at 16.
    SysExit64 {
        nr: CallNumber,
    },
    /// `raw_syscalls:sys_enter`: six longs.
    SysEnter {
        min: u16,
        id: Int,
        args: u16,
        arg_size: u8,
    },
    /// `syscalls:sys_enter_NAME`: a field per argument.
    SysEnterNamed {
        min: u16,
        nr: Int,
        args: [Option<Int>; 6],
    },
    SysExit {
        min: u16,
        id: Int,
        ret: Int,
    },
    IrqEntry {
        min: u16,
        irq: Int,
        name: Str,
    },
    IrqExit {
        min: u16,
        irq: Int,
    },
    VectorEntry {
        min: u16,
        vector: Int,
        name: Box<str>,
    },
    VectorExit {
        min: u16,
        vector: Int,
    },
    Softirq {
        min: u16,
        kind: SoftirqKind,
        vec: Int,
    },
    WorkQueue {
        min: u16,
        work: Int,
        function: Int,
    },
    WorkStart {
        min: u16,
        work: Int,
        function: Int,
    },
    WorkEnd {
        min: u16,
        work: Int,
    },
    PageFault {
        min: u16,
        user: bool,
        address: Int,
        ip: Int,
    },
    ContentionBegin {
        min: u16,
        lock_addr: Int,
        flags: Int,
    },
    ContentionEnd {
        min: u16,
        lock_addr: Int,
        ret: Int,
    },
    ContendedRelease {
        min: u16,
        lock_addr: Int,
    },
    /// The four lockdep events; `kind` says which.
    Lockdep {
        min: u16,
        kind: LockdepKind,
        lock: Int,
        name: Str,
        flags: Option<Int>,
    },
    CpuIdle {
        min: u16,
        state: Int,
        cpu_id: Int,
    },
}

/// Which wake-up.
#[allow(missing_docs, reason = "named after their events")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WakeKind {
    Waking,
    Wakeup,
    WakeupNew,
}

/// Which softirq event.
#[allow(missing_docs, reason = "named after their events")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SoftirqKind {
    Raise,
    Entry,
    Exit,
}

/// Which lockdep event.
#[allow(missing_docs, reason = "named after their events")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockdepKind {
    Acquire,
    Contended,
    Acquired,
    Release,
}

impl Plan {
    /// How the states of a [`Plan::Switch`] are read, unless its own format defines it: a label and
    /// text for `info`.
    pub fn note(&self) -> Option<(String, String)> {
        match self {
            Plan::Switch { states, .. } => states.note(),
            _ => None,
        }
    }
}
