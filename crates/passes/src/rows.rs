//! The tables: what the passes found, as plain rows.
//!
//! Field names are the keys of the JSON output and the headers of the CSV output. Times are
//! integer nanoseconds. `None` means that the trace cannot say; it prints as `n/a`, `null` or an
//! empty CSV cell, never as 0.

use serde::Serialize;
use std::collections::BTreeMap;

/// What syscall, switch and process tables are grouped by.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Group {
    /// The whole system (syscalls).
    System,
    /// Threads of one name (processes).
    Command,
    /// One process.
    Process,
    /// One thread.
    Thread,
    /// A control group: a service, a container.
    Cgroup,
}

/// A system call, for the whole system, a process or a thread.
#[derive(Clone, Debug, Default, PartialEq, Serialize, schemars::JsonSchema)]
pub struct SyscallRow {
    /// Name of the control group: service, container or pod; `null` if the trace does not contain
    /// it. Present only with `--by thread` or `--by cgroup`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cgroup: Option<Option<String>>,
    /// Name of the thread or process; absent with `--by system`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub comm: Option<String>,
    /// Id of the process; absent with `--by system`, `null` if the trace has no process ids.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pid: Option<Option<u32>>,
    /// Id of the thread; present only with `--by thread`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tid: Option<u32>,
    /// Name of the system call on the recorded machine's architecture, or `syscall_NR`.
    pub name: String,
    /// Number of the system call on the recorded machine's architecture.
    pub nr: u32,
    /// Number of calls that returned in the trace.
    pub count: u64,
    /// Number of these calls that returned an error (a negative errno).
    pub errors: u64,
    /// Elapsed time of all calls from entry to return. A call of which only the return was seen
    /// adds 0.
    pub total_ns: u64,
    /// Part of `total_ns` in which the thread was on a CPU, without interrupts.
    pub cpu_ns: Option<u64>,
    /// Part of `total_ns` in which an interrupt or softirq interrupted the thread on its CPU.
    pub interrupted_ns: Option<u64>,
    /// Part of `total_ns` in which the thread was ready to run, but without a CPU.
    pub runnable_ns: Option<u64>,
    /// Part of `total_ns` in which the thread was asleep.
    pub blocked_ns: Option<u64>,
    /// Length of the shortest call; `null` if no call returned.
    #[schemars(with = "Option<u64>")]
    pub min_ns: u64,
    /// Mean length of a call, rounded down; `null` if no call returned.
    #[schemars(with = "Option<u64>")]
    pub avg_ns: u64,
    /// Length of the longest call; `null` if no call returned.
    #[schemars(with = "Option<u64>")]
    pub max_ns: u64,
    /// Median length of a call, within 1/16.
    pub p50_ns: Option<u64>,
    /// 99th percentile of the lengths of calls, within 1/16.
    pub p99_ns: Option<u64>,
    /// Number of calls whose start was seen, but which had not returned when the trace or the
    /// thread ended.
    pub pending: u64,
    /// Elapsed time of the calls that had not returned, until the end; not part of `total_ns`.
    pub pending_ns: u64,
    /// Number of calls of which only the return was seen: they began before the trace, or while
    /// events were being enabled.
    pub returned_only: u64,
    /// `cpu_ns` as per cent of the machine's capacity (CPUs x wall time).
    pub pct_capacity: Option<f64>,
    /// Number of errors, by the name of the error.
    pub errnos: BTreeMap<String, u64>,
    /// The function of the program that makes the call for the longest total time, with its source
    /// line or file. `null` without call chains.
    pub code: Option<String>,
}

/// CPU use of a command, a process or a thread.
#[derive(Clone, Debug, Default, PartialEq, Serialize, schemars::JsonSchema)]
pub struct ProcRow {
    /// Name of the command, process or thread.
    pub comm: String,
    /// Id of the process; absent with `--by command`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pid: Option<Option<u32>>,
    /// Whether `pid` is not in the trace, but inferred from the creation of the thread; absent if
    /// `pid` is absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pid_inferred: Option<bool>,
    /// Id of the thread; present only with `--by thread`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tid: Option<u32>,
    /// Name of the control group: service, container or pod; `null` if the trace does not contain
    /// it. Absent with `--by command`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cgroup: Option<Option<String>>,
    /// Number of processes in the row; present with `--by command` or `--by cgroup`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub processes: Option<u64>,
    /// Number of threads in the row; absent with `--by thread`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub threads: Option<u64>,
    /// Whether the row is a kernel thread.
    pub kthread: bool,
    /// Time on a CPU: `app_ns` + `kernel_ns`. Interrupts during that time are not included.
    pub combined_ns: u64,
    /// Part of `combined_ns` in application code; all of `combined_ns` if no system calls were
    /// recorded. `null` if only chosen calls were recorded, because unrecorded calls cannot be
    /// distinguished from application code.
    pub app_ns: Option<u64>,
    /// Part of `combined_ns` in system calls; for kernel threads, all of `combined_ns`.
    pub kernel_ns: Option<u64>,
    /// Time in which interrupts and softirqs interrupted the threads of the row.
    pub interrupted_ns: u64,
    /// Time for which threads of the row were ready to run, but without a CPU.
    pub runnable_ns: Option<u64>,
    /// Time for which threads of the row were asleep.
    pub blocked_ns: u64,
    /// `combined_ns` as per cent of the machine's capacity.
    pub pct_capacity: f64,
    /// Number of times a thread left a CPU.
    pub switches: u64,
    /// Number of these times that the thread went to sleep or ended.
    pub voluntary: u64,
    /// Number of these times that another thread preempted the thread.
    pub involuntary: u64,
    /// `switches` per second of wall time.
    pub switches_per_s: f64,
    /// Number of moves to another CPU.
    pub migrations: Option<u64>,
    /// Time holding locks divided by execution time (Kaieda et al.); docs/waits.md says what is
    /// measured.
    pub lock_ratio: Option<f64>,
    /// Time waiting for locks divided by execution time.
    pub waiting_ratio: Option<f64>,
}

/// Where one CPU's time went. The parts add up to `wall_ns`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, schemars::JsonSchema)]
pub struct CpuRow {
    /// Number of the CPU.
    pub cpu: u16,
    /// Time in application code; it includes system calls if no system calls were recorded. `null`
    /// if only chosen system calls were recorded: then the rest of `wall_ns` is application code
    /// and system calls.
    pub user_ns: Option<u64>,
    /// Time in system calls of applications.
    pub kernel_ns: Option<u64>,
    /// Time in kernel threads.
    pub kthread_ns: u64,
    /// Time in interrupt handlers.
    pub irq_ns: Option<u64>,
    /// Time in softirqs.
    pub softirq_ns: Option<u64>,
    /// Time in the idle task.
    pub idle_ns: u64,
    /// Part of `idle_ns` in which a thread that last ran on this CPU was in an uninterruptible wait
    /// for I/O. `null` if the recorded events cannot distinguish such waits from other waits.
    pub iowait_ns: Option<u64>,
    /// Time for which the trace does not show what the CPU did: events were lost, or the trace has
    /// a gap.
    pub unaccounted_ns: u64,
    /// Wall time of the trace.
    pub wall_ns: u64,
    /// Number of context switches on this CPU.
    pub switches: u64,
    /// Context switches on this CPU per second.
    pub switches_per_s: f64,
    /// Number of interrupts handled; `null` if interrupts were not recorded.
    pub irqs: Option<u64>,
}

/// Scheduling of one thread, as `perf sched` reports it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, schemars::JsonSchema)]
pub struct SwitchRow {
    /// Name of the thread.
    pub comm: String,
    /// Process of the thread.
    pub pid: Option<u32>,
    /// Id of the thread.
    pub tid: u32,
    /// Name of the control group: service, container or pod; `null` if the trace does not contain
    /// it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cgroup: Option<Option<String>>,
    /// Number of threads in the row; present only with `--by cgroup`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub threads: Option<u64>,
    /// CPU time of all stays on a CPU that ended in the trace (run-time of `perf sched timehist
    /// -s`). Stays that began before the CPU's first switch count 0, as in perf; `procs` includes
    /// them. Stays that began with an unrecorded switch count from the time at which the thread was
    /// woken or first seen; perf counts them from the previous switch.
    pub runtime_ns: u64,
    /// Number of stays on a CPU that ended in the trace (sched-in of `perf sched timehist`).
    pub switches: u64,
    /// Number of delays from wake-up to running (Switches of `perf sched latency`).
    pub delay_count: Option<u64>,
    /// Mean delay from wake-up to running, rounded down.
    pub avg_delay_ns: Option<u64>,
    /// Longest delay from wake-up to running.
    pub max_delay_ns: Option<u64>,
    /// Time at which the longest delay began.
    pub max_delay_start_ns: Option<u64>,
    /// Time at which the longest delay ended.
    pub max_delay_end_ns: Option<u64>,
    /// Number of times the thread went to sleep or ended.
    pub voluntary: u64,
    /// Number of times another thread preempted the thread.
    pub involuntary: u64,
    /// Time for which the thread was ready to run after another thread preempted it (`perf sched
    /// latency` omits this time).
    pub preempted_ns: u64,
    /// Number of moves to another CPU.
    pub migrations: Option<u64>,
    /// CPU time as the scheduler charged it (`sched_stat_runtime`; Runtime of `perf sched
    /// latency`).
    pub stat_runtime_ns: Option<u64>,
}

/// An interrupt, softirq or work function, on one CPU or on all CPUs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, schemars::JsonSchema)]
pub struct IrqRow {
    /// Kind of the row: `irq`, `softirq` or `workqueue`.
    pub kind: &'static str,
    /// Interrupt line, softirq vector or address of the work function; 0 where the trace has only
    /// the name of a function.
    pub id: u64,
    /// Name of the interrupt handler, the softirq or the work function.
    pub name: String,
    /// Number of the CPU; absent if a row combines all CPUs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu: Option<u16>,
    /// Number of executions that ended in the trace.
    pub count: u64,
    /// Total run time, from entry to exit, as `perf kwork report` counts it (nested interrupts
    /// included).
    pub total_ns: u64,
    /// Mean run time, rounded down.
    pub avg_ns: u64,
    /// Longest run time.
    pub max_ns: u64,
    /// Time at which the longest execution began.
    pub max_start_ns: u64,
}

/// A thread that made certain system calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Caller {
    /// The thread.
    pub slot: crate::Slot,
    /// Calls of that kind.
    pub calls: u64,
    /// Calls of any kind.
    pub all_calls: u64,
}

/// The first screen of sar: rates over the whole trace, for the system or one CPU.
#[derive(Clone, Debug, Default, PartialEq, Serialize, schemars::JsonSchema)]
pub struct SarRow {
    /// Number of the CPU; absent for the whole system.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu: Option<u16>,
    /// Time in application code, in per cent. `null` if only chosen system calls were recorded.
    pub pct_usr: Option<f64>,
    /// Time in the kernel, in per cent: system calls, kernel threads and interrupts. `null` unless
    /// all calls were recorded.
    pub pct_sys: Option<f64>,
    /// Idle time in which a thread waited for I/O, in per cent.
    pub pct_wio: Option<f64>,
    /// Idle time in which no thread waited for I/O, in per cent.
    pub pct_idle: Option<f64>,
    /// Time for which the trace does not show what the CPUs did, in per cent.
    pub pct_unaccounted: f64,
    /// System calls per second.
    pub scall_per_s: Option<f64>,
    /// Calls per second of `read` and similar calls.
    pub sread_per_s: Option<f64>,
    /// Calls per second of `write` and similar calls.
    pub swrit_per_s: Option<f64>,
    /// Characters per second that `read` and similar calls read.
    pub rchar_per_s: Option<f64>,
    /// Characters per second that `write` and similar calls wrote.
    pub wchar_per_s: Option<f64>,
    /// Threads and processes created per second.
    pub fork_per_s: Option<f64>,
    /// Programs started per second.
    pub exec_per_s: Option<f64>,
    /// Context switches per second.
    pub cswch_per_s: Option<f64>,
    /// Mean number of runnable threads (including running threads), over the time with at least one
    /// runnable thread.
    pub runq_sz: Option<f64>,
    /// Part of the time with at least one runnable thread, in per cent.
    pub pct_runocc: Option<f64>,
    /// SysV semaphore calls per second.
    pub sema_per_s: Option<f64>,
    /// Message queue calls per second.
    pub msg_per_s: Option<f64>,
    /// Page faults per second.
    pub fault_per_s: Option<f64>,
}

/// The CPU time that a control group used and wanted, and the reasons why it did not get the rest.
#[derive(Clone, Debug, Default, PartialEq, Serialize, schemars::JsonSchema)]
pub struct CgroupRow {
    /// `cgroup` for a control group, or `interrupts`, `idle` or `unaccounted` for time that belongs
    /// to no group. The time used in all rows adds up to the capacity.
    pub kind: &'static str,
    /// Name of the control group: service, container or pod; `null` for threads whose group is
    /// unknown.
    pub cgroup: Option<String>,
    /// Number of processes of the group that wanted to run.
    pub processes: Option<u64>,
    /// Number of threads of these processes.
    pub threads: Option<u64>,
    /// CPU time that the group's threads used, without the interrupts that interrupted them.
    pub used_ns: u64,
    /// CPU time used, in per cent of capacity.
    pub pct_capacity: f64,
    /// CPU time that the group's threads wanted: the sum of `used_ns`, `ready_ns` and
    /// `throttled_ns`.
    pub wanted_ns: Option<u64>,
    /// Time for which the group's threads were ready and waited for a CPU, summed over the threads.
    pub ready_ns: Option<u64>,
    /// The groups that had the CPU during `ready_ns`, longest first. Their times add up to less
    /// than `ready_ns`: the time to wake up CPUs, and stays on a CPU that were not seen, are
    /// missing.
    pub behind: Vec<Rival>,
    /// Time for which the group's threads were ready but throttled by a quota, summed over the
    /// threads. Only throttling that switches show is counted: a CPU must have gone idle meanwhile.
    /// For a whole recording it is between `stopped_ns` and `stopped_ns` times the number of
    /// threads.
    pub throttled_ns: Option<u64>,
    /// Whether `throttled_ns` is only a minimum: no `cpu.stat` was recorded, and most of the time
    /// for which the threads were ready cannot be attributed to the quota, because throttling is
    /// visible only where a CPU goes idle.
    pub throttled_at_least: Option<bool>,
    /// Idle CPU time that the throttled threads could have used.
    pub throttled_idle_ns: Option<u64>,
    /// Number of CPUs that the group's own quota allows (`cpu.max`). The recorder read this and the
    /// following figures at the beginning and at the end; `null` if it did not read them or if
    /// there is no quota.
    pub limit_cpus: Option<f64>,
    /// Periods of the quota in which the group wanted to run (`nr_periods`).
    pub periods: Option<u64>,
    /// Number of these periods in which the quota was used up (`nr_throttled`).
    pub throttled_periods: Option<u64>,
    /// Time for which the kernel stopped the group's run queues, summed over CPUs
    /// (`throttled_usec`).
    pub stopped_ns: Option<u64>,
    /// Path of the group below the mount of control groups.
    pub path: Option<String>,
}

/// A control group whose threads had the CPU while other threads were ready for it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Rival {
    /// Name of the control group; `null` if it is unknown.
    pub cgroup: Option<String>,
    /// Time for which threads of this group had the CPU.
    pub ns: u64,
}
