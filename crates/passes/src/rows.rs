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

/// One system call of the system, a process or a thread.
#[derive(Clone, Debug, Default, PartialEq, Serialize, schemars::JsonSchema)]
pub struct SyscallRow {
    /// Name of the control group: service, container, pod; `null` if the trace does not contain it.
    /// Only when grouped by thread or control group.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cgroup: Option<Option<String>>,
    /// Name of the thread or process; absent when grouped by system.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub comm: Option<String>,
    /// Process; absent when grouped by system, `null` if the trace has no process ids.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pid: Option<Option<u32>>,
    /// Thread; only when grouped by thread.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tid: Option<u32>,
    /// Name on the recorded machine's architecture, or `syscall_NR`.
    pub name: String,
    /// Its number there.
    pub nr: u32,
    /// Calls that returned in the trace.
    pub count: u64,
    /// Calls, of these, that returned a negative errno.
    pub errors: u64,
    /// Elapsed time from entry to return, summed. Calls of which only the return was seen count 0.
    pub total_ns: u64,
    /// Of `total_ns`: running on a CPU, interrupts excluded.
    pub cpu_ns: Option<u64>,
    /// Of `total_ns`: on a CPU, but interrupted by an interrupt or softirq.
    pub interrupted_ns: Option<u64>,
    /// Of `total_ns`: ready to run, waiting for a CPU.
    pub runnable_ns: Option<u64>,
    /// Of `total_ns`: asleep.
    pub blocked_ns: Option<u64>,
    /// Shortest call; `null` if none returned.
    #[schemars(with = "Option<u64>")]
    pub min_ns: u64,
    /// Mean, rounded down; `null` if none returned.
    #[schemars(with = "Option<u64>")]
    pub avg_ns: u64,
    /// Longest call; `null` if none returned.
    #[schemars(with = "Option<u64>")]
    pub max_ns: u64,
    /// Median, within 1/16.
    pub p50_ns: Option<u64>,
    /// 99th percentile, within 1/16.
    pub p99_ns: Option<u64>,
    /// Calls whose start was seen, but which had not returned when the trace or the thread ended.
    pub pending: u64,
    /// Elapsed time of these calls so far; not part of `total_ns`.
    pub pending_ns: u64,
    /// Calls of which only the return was seen: they began before the trace, or while events were
    /// being enabled.
    pub returned_only: u64,
    /// `cpu_ns` as per cent of the machine's capacity (CPUs x wall time).
    pub pct_capacity: Option<f64>,
    /// Errors by name.
    pub errnos: BTreeMap<String, u64>,
    /// The function of the program that makes the call for the longest total time, with its source
    /// line or file. `null` without call chains.
    pub code: Option<String>,
}

/// CPU use of a command, process or thread.
#[derive(Clone, Debug, Default, PartialEq, Serialize, schemars::JsonSchema)]
pub struct ProcRow {
    /// Name.
    pub comm: String,
    /// Process; absent when grouped by command.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pid: Option<Option<u32>>,
    /// `pid` is not in the trace but is inferred from the creation of the thread; absent if `pid`
    /// is absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pid_inferred: Option<bool>,
    /// Thread; only when grouped by thread.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tid: Option<u32>,
    /// Name of the control group: service, container, pod; `null` if the trace does not contain it.
    /// Absent when grouped by command.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cgroup: Option<Option<String>>,
    /// Processes in the group (by command and control group).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub processes: Option<u64>,
    /// Threads in the group (not by thread).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub threads: Option<u64>,
    /// A thread of the kernel itself.
    pub kthread: bool,
    /// On a CPU: `app_ns` + `kernel_ns`. Interrupts during that time are not included.
    pub combined_ns: u64,
    /// Of `combined_ns`: in application code; all of it if no system calls were recorded. `null` if
    /// only chosen calls were recorded: unrecorded calls cannot be distinguished from application
    /// code.
    pub app_ns: Option<u64>,
    /// Of `combined_ns`: in system calls (for kernel threads: all of it).
    pub kernel_ns: Option<u64>,
    /// Interrupts and softirqs that interrupted it.
    pub interrupted_ns: u64,
    /// Ready to run, waiting for a CPU.
    pub runnable_ns: Option<u64>,
    /// Asleep.
    pub blocked_ns: u64,
    /// `combined_ns` as per cent of the machine's capacity.
    pub pct_capacity: f64,
    /// Times it left a CPU.
    pub switches: u64,
    /// Of these: because it went to sleep or ended.
    pub voluntary: u64,
    /// Of these: because another thread preempted it.
    pub involuntary: u64,
    /// `switches` per second of wall time.
    pub switches_per_s: f64,
    /// Moves to another CPU.
    pub migrations: Option<u64>,
    /// Time holding locks / execution time (Kaieda et al.); see docs/waits.md for what is measured.
    pub lock_ratio: Option<f64>,
    /// Time waiting for locks / execution time.
    pub waiting_ratio: Option<f64>,
}

/// Where one CPU's time went. The parts add up to `wall_ns`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, schemars::JsonSchema)]
pub struct CpuRow {
    /// CPU number.
    pub cpu: u16,
    /// Application code; it includes system calls if no system calls were recorded. `null` if only
    /// chosen system calls were recorded: then the rest of `wall_ns` is application code and system
    /// calls.
    pub user_ns: Option<u64>,
    /// System calls of applications.
    pub kernel_ns: Option<u64>,
    /// Kernel threads.
    pub kthread_ns: u64,
    /// Interrupt handlers.
    pub irq_ns: Option<u64>,
    /// Softirqs.
    pub softirq_ns: Option<u64>,
    /// The idle task.
    pub idle_ns: u64,
    /// Of `idle_ns`: while a thread that last ran here was in an uninterruptible wait for I/O.
    /// `null` if the recorded events cannot distinguish such waits from other waits.
    pub iowait_ns: Option<u64>,
    /// Lost events, gaps.
    pub unaccounted_ns: u64,
    /// The trace's wall time.
    pub wall_ns: u64,
    /// Switches on this CPU.
    pub switches: u64,
    /// Per second.
    pub switches_per_s: f64,
    /// Interrupts handled; `null` if interrupts were not recorded.
    pub irqs: Option<u64>,
}

/// Scheduling of one thread, as `perf sched` reports it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, schemars::JsonSchema)]
pub struct SwitchRow {
    /// Name.
    pub comm: String,
    /// Process.
    pub pid: Option<u32>,
    /// Thread.
    pub tid: u32,
    /// Name of the control group: service, container, pod; `null` if the trace does not contain it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cgroup: Option<Option<String>>,
    /// Threads in the row; only by control group.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub threads: Option<u64>,
    /// CPU time of all stays on a CPU that ended in the trace (`perf sched timehist -s` run-time).
    /// Stays that began before the CPU's first switch count 0, as in perf; `procs` includes them.
    /// Stays that began with an unrecorded switch count from the time at which the thread was woken
    /// or first seen; perf counts them from the previous switch.
    pub runtime_ns: u64,
    /// Number of those stays (timehist's sched-in).
    pub switches: u64,
    /// Run-queue delays counted (`perf sched latency`'s Switches).
    pub delay_count: Option<u64>,
    /// Mean delay from wake-up to running, rounded down.
    pub avg_delay_ns: Option<u64>,
    /// Longest.
    pub max_delay_ns: Option<u64>,
    /// When it began.
    pub max_delay_start_ns: Option<u64>,
    /// When it ended.
    pub max_delay_end_ns: Option<u64>,
    /// Times it went to sleep or ended.
    pub voluntary: u64,
    /// Times another thread took the CPU.
    pub involuntary: u64,
    /// Time spent runnable after losing the CPU involuntarily (perf sched latency omits it).
    pub preempted_ns: u64,
    /// Moves to another CPU.
    pub migrations: Option<u64>,
    /// CPU time as the scheduler charged it (`sched_stat_runtime`; `perf sched latency`'s Runtime).
    pub stat_runtime_ns: Option<u64>,
}

/// One interrupt, softirq or work function on one CPU (or all).
#[derive(Clone, Debug, Default, PartialEq, Serialize, schemars::JsonSchema)]
pub struct IrqRow {
    /// `irq`, `softirq` or `workqueue`.
    pub kind: &'static str,
    /// Line, vector or function address; 0 where the trace has only the name of a function.
    pub id: u64,
    /// Handler, softirq or function name.
    pub name: String,
    /// CPU; absent if all CPUs are grouped.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu: Option<u16>,
    /// Executions that ended in the trace.
    pub count: u64,
    /// Run time summed: from entry to exit, as `perf kwork report` counts it (nested interrupts
    /// included).
    pub total_ns: u64,
    /// Mean, rounded down.
    pub avg_ns: u64,
    /// Longest.
    pub max_ns: u64,
    /// When the longest one began.
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
    /// CPU; absent for the system.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu: Option<u16>,
    /// Application code. `null` if only chosen system calls were recorded.
    pub pct_usr: Option<f64>,
    /// Kernel: system calls, kernel threads, interrupts. `null` unless all calls were recorded.
    pub pct_sys: Option<f64>,
    /// Idle while a thread waited for I/O.
    pub pct_wio: Option<f64>,
    /// Idle otherwise.
    pub pct_idle: Option<f64>,
    /// Not known.
    pub pct_unaccounted: f64,
    /// System calls.
    pub scall_per_s: Option<f64>,
    /// read-like calls.
    pub sread_per_s: Option<f64>,
    /// write-like calls.
    pub swrit_per_s: Option<f64>,
    /// Characters read by them.
    pub rchar_per_s: Option<f64>,
    /// Characters written by them.
    pub wchar_per_s: Option<f64>,
    /// Threads and processes made.
    pub fork_per_s: Option<f64>,
    /// Programs started.
    pub exec_per_s: Option<f64>,
    /// Context switches.
    pub cswch_per_s: Option<f64>,
    /// Mean number of runnable threads (including running threads), over the time with at least
    /// one.
    pub runq_sz: Option<f64>,
    /// Per cent of time with a runnable thread.
    pub pct_runocc: Option<f64>,
    /// SysV semaphore calls.
    pub sema_per_s: Option<f64>,
    /// Message queue calls.
    pub msg_per_s: Option<f64>,
    /// Page faults.
    pub fault_per_s: Option<f64>,
}

/// The CPU time that a control group used and wanted, and the reasons why it did not get the rest.
#[derive(Clone, Debug, Default, PartialEq, Serialize, schemars::JsonSchema)]
pub struct CgroupRow {
    /// `cgroup`, or time that belongs to no group: `interrupts`, `idle`, `unaccounted`. The time
    /// used in all rows adds up to the capacity.
    pub kind: &'static str,
    /// Name of the group: service, container, pod; `null` for threads whose group is unknown.
    pub cgroup: Option<String>,
    /// Number of its processes that wanted to run.
    pub processes: Option<u64>,
    /// Their threads.
    pub threads: Option<u64>,
    /// CPU time that its threads had, without the interrupts that interrupted them.
    pub used_ns: u64,
    /// Of capacity.
    pub pct_capacity: f64,
    /// The sum of `used_ns`, `ready_ns` and `throttled_ns`.
    pub wanted_ns: Option<u64>,
    /// Time that its threads were ready and waited for a CPU, summed over the threads.
    pub ready_ns: Option<u64>,
    /// The groups that had the CPU during `ready_ns`, longest first. They add up to less than
    /// `ready_ns` by the time for waking up CPUs, and by stays on a CPU that were not seen.
    pub behind: Vec<Rival>,
    /// Time that its threads were ready but throttled by a quota, summed over the threads, as far
    /// as switches show it (a CPU must have gone idle meanwhile). For a whole recording it is
    /// between `stopped_ns` and `stopped_ns` times the number of threads.
    pub throttled_ns: Option<u64>,
    /// Whether `throttled_ns` is only a minimum: no `cpu.stat` was recorded, and most of the time
    /// that its threads were ready cannot be attributed to the quota, because throttling is visible
    /// only where a CPU goes idle.
    pub throttled_at_least: Option<bool>,
    /// Idle CPU time that the throttled threads could have used.
    pub throttled_idle_ns: Option<u64>,
    /// CPUs that its own quota allows (`cpu.max`). The recorder read this and the following figures
    /// at the beginning and at the end; `null` if it did not read them or if there is no quota.
    pub limit_cpus: Option<f64>,
    /// Periods of the quota in which the group wanted to run (`nr_periods`).
    pub periods: Option<u64>,
    /// Periods, of these, in which the quota was used up (`nr_throttled`).
    pub throttled_periods: Option<u64>,
    /// How long its run queues were stopped, summed over CPUs (`throttled_usec`).
    pub stopped_ns: Option<u64>,
    /// Its path below the mount of control groups.
    pub path: Option<String>,
}

/// A control group whose threads had the CPU while other threads were ready for it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Rival {
    /// Its name; `null` if unknown.
    pub cgroup: Option<String>,
    /// For how long.
    pub ns: u64,
}
