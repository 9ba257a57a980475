//! Which columns each table shows on a terminal, and under which headings.
//!
//! Order and headings follow AIX `utld` and `curt` where those have the table, so that the name
//! stands last and long names disturb nothing.

use super::escape::escape;
use crate::table::{Line, Table};

/// Where a column's cells come from.
#[derive(Clone, Copy)]
pub(crate) enum Show {
    /// The cell `key`.
    Key(&'static str),
    /// The cell `key` as per cent of the machine's capacity.
    Share(&'static str),
    /// The cell `key` as per cent of the wall time: of one CPU.
    OfWall(&'static str),
    /// The first cell divided by the second.
    Mean(&'static str, &'static str),
    /// Words made of several cells.
    Words(fn(Line<'_>) -> String),
}

/// When a column is shown.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum When {
    /// Always.
    Always,
    /// If any row has a value.
    Known,
    /// Only with `-v`.
    Verbose,
}

/// One column of text.
pub(crate) struct Field {
    /// `{}` in a group stands for the unit its durations share.
    pub(crate) group: &'static str,
    pub(crate) title: &'static str,
    pub(crate) show: Show,
    pub(crate) rank: u8,
    pub(crate) when: When,
}

/// A block of text made from a table.
pub(crate) struct Layout {
    /// `{}` stands for the unit all durations of the block share.
    pub(crate) title: &'static str,
    pub(crate) fields: &'static [Field],
    /// Rows it is about.
    pub(crate) filter: fn(Line<'_>) -> bool,
    /// A last row that adds up the others.
    pub(crate) total: bool,
    /// Leave the block out if no row passes the filter.
    pub(crate) hide_empty: bool,
}

use Show::{Key, Mean, OfWall, Share, Words};
use When::{Always, Known, Verbose};

const fn field(group: &'static str, title: &'static str, show: Show, rank: u8) -> Field {
    Field { group, title, show, rank, when: Always }
}

const fn only(when: When, f: Field) -> Field {
    Field { when, ..f }
}

const fn block(title: &'static str, fields: &'static [Field]) -> Layout {
    Layout { title, fields, filter: |_| true, total: false, hide_empty: false }
}

/// The blocks that show `table`, in order.
pub(crate) fn layouts(table: &Table) -> &'static [Layout] {
    match table.name {
        "syscalls" => SYSCALLS,
        "procs" => PROCS,
        "cpus" => CPUS,
        "switches" => SWITCHES,
        "irqs" if table.column("cpu").is_some() => IRQS_PER_CPU,
        "irqs" => IRQS,
        "waits" => WAITS,
        "path" => PATH,
        "locks" if table.column("comm").is_some() => LOCKS_TASK,
        "locks" if table.column("caller").is_some() => LOCKS_CALLER,
        "locks" if table.column("address").is_some() => LOCKS,
        "locks" => LOCKS_TYPE,
        _ => &[],
    }
}

const SYSCALLS: &[Layout] = &[
    block(
        "System calls",
        &[
            field("", "count", Key("count"), 0),
            field("", "errors", Key("errors"), 0),
            field("CPU time", "total", Key("cpu_ns"), 0),
            field("CPU time", "%", Key("pct_capacity"), 0),
            field("CPU time", "avg", Mean("cpu_ns", "count"), 7),
            field("elapsed", "total", Key("total_ns"), 0),
            field("elapsed", "min", Key("min_ns"), 8),
            field("elapsed", "avg", Key("avg_ns"), 3),
            field("elapsed", "max", Key("max_ns"), 2),
            only(Verbose, field("elapsed", "p50", Key("p50_ns"), 10)),
            only(Verbose, field("elapsed", "p99", Key("p99_ns"), 10)),
            field("of elapsed", "runnable", Key("runnable_ns"), 5),
            field("of elapsed", "blocked", Key("blocked_ns"), 1),
            only(Verbose, field("of elapsed", "interrupted", Key("interrupted_ns"), 10)),
            field("", "pending", Key("pending"), 6),
            only(Verbose, field("", "returned only", Key("returned_only"), 10)),
            field("", "system call", Words(syscall), 0),
            field("", "process", Words(syscall_owner), 0),
        ],
    ),
    Layout {
        filter: |l| l.int("pending").unwrap_or(0) > 0,
        hide_empty: true,
        ..block(
            "Pending system calls: had not returned at the end",
            &[
                field("", "pending", Key("pending"), 0),
                field("", "elapsed so far", Key("pending_ns"), 0),
                field("", "system call", Words(syscall), 0),
                field("", "process", Words(syscall_owner), 0),
            ],
        )
    },
    Layout {
        filter: |l| l.int("errors").unwrap_or(0) > 0,
        hide_empty: true,
        ..block(
            "Errors returned",
            &[
                only(Verbose, field("", "errors", Key("errors"), 0)),
                only(Verbose, field("", "system call", Words(syscall), 0)),
                only(Verbose, field("", "process", Words(syscall_owner), 0)),
                only(Verbose, field("", "of these", Key("errnos"), 0)),
            ],
        )
    },
];

const PROCS: &[Layout] = &[block(
    "Processing time",
    &[
        field("Processing total ({})", "Combined", Key("combined_ns"), 0),
        field("Processing total ({})", "Appl", Key("app_ns"), 0),
        field("Processing total ({})", "Kernel", Key("kernel_ns"), 0),
        field("Percent of total", "Combined", Key("pct_capacity"), 0),
        field("Percent of total", "Appl", Share("app_ns"), 3),
        field("Percent of total", "Kernel", Share("kernel_ns"), 3),
        only(Verbose, field("", "interrupted", Key("interrupted_ns"), 10)),
        field("waiting ({})", "runnable", Key("runnable_ns"), 1),
        field("waiting ({})", "blocked", Key("blocked_ns"), 2),
        field("switches", "all", Key("switches"), 4),
        only(Verbose, field("switches", "per s", Key("switches_per_s"), 9)),
        field("switches", "vol", Key("voluntary"), 8),
        field("switches", "invol", Key("involuntary"), 7),
        field("", "migr", Key("migrations"), 5),
        only(Known, field("", "lock ratio", Key("lock_ratio"), 7)),
        only(Known, field("", "wait ratio", Key("waiting_ratio"), 7)),
        field("", "process", Words(process), 0),
    ],
)];

const CPUS: &[Layout] = &[
    Layout {
        total: true,
        ..block(
            "CPUs: percent of wall time",
            &[
                field("", "cpu", Key("cpu"), 0),
                field("busy", "user", Share("user_ns"), 0),
                field("busy", "kernel", Share("kernel_ns"), 0),
                field("busy", "kthread", Share("kthread_ns"), 0),
                field("busy", "irq", Share("irq_ns"), 0),
                field("busy", "softirq", Share("softirq_ns"), 0),
                field("idle", "all", Share("idle_ns"), 0),
                field("idle", "iowait", Share("iowait_ns"), 1),
                field("", "unacc", Share("unaccounted_ns"), 0),
                field("", "switches/s", Key("switches_per_s"), 2),
                field("", "irqs", Key("irqs"), 3),
            ],
        )
    },
    Layout {
        total: true,
        ..block(
            "CPUs: time ({})",
            &[
                field("", "cpu", Key("cpu"), 0),
                field("busy", "user", Key("user_ns"), 0),
                field("busy", "kernel", Key("kernel_ns"), 0),
                field("busy", "kthread", Key("kthread_ns"), 0),
                field("busy", "irq", Key("irq_ns"), 0),
                field("busy", "softirq", Key("softirq_ns"), 0),
                field("idle", "all", Key("idle_ns"), 0),
                field("idle", "iowait", Key("iowait_ns"), 1),
                field("", "unacc", Key("unaccounted_ns"), 0),
                field("", "wall", Key("wall_ns"), 3),
                field("", "switches", Key("switches"), 4),
            ],
        )
    },
];

const SWITCHES: &[Layout] = &[block(
    "Waiting for a CPU",
    &[
        field("on a CPU", "total", Key("runtime_ns"), 0),
        only(Verbose, field("on a CPU", "charged", Key("stat_runtime_ns"), 9)),
        field("on a CPU", "stays", Key("switches"), 0),
        field("delay from wake-up to running", "count", Key("delay_count"), 0),
        field("delay from wake-up to running", "avg", Key("avg_delay_ns"), 0),
        field("delay from wake-up to running", "max", Key("max_delay_ns"), 0),
        field("delay from wake-up to running", "max start", Key("max_delay_start_ns"), 2),
        field("delay from wake-up to running", "max end", Key("max_delay_end_ns"), 8),
        field("left the CPU", "vol", Key("voluntary"), 4),
        field("left the CPU", "invol", Key("involuntary"), 3),
        field("", "preempted", Key("preempted_ns"), 1),
        field("", "migr", Key("migrations"), 5),
        field("", "process", Words(process), 0),
    ],
)];

const WAITS: &[Layout] = &[block(
    "What threads waited for",
    &[
        field("idle time", "%", Key("pct_idle_blamed"), 0),
        only(Verbose, field("idle time", "blamed", Key("idle_blamed_ns"), 9)),
        field("", "waits", Key("waits"), 0),
        field("", "threads", Key("waiters"), 3),
        field("asleep", "total", Key("wait_total_ns"), 0),
        field("asleep", "avg", Key("wait_avg_ns"), 0),
        field("asleep", "p99", Key("wait_p99_ns"), 6),
        field("asleep", "max", Key("wait_max_ns"), 2),
        only(Verbose, field("", "in calls", Key("elapsed_ns"), 9)),
        only(Verbose, field("", "wake delay", Key("wake_delay_ns"), 9)),
        field("", "retries", Key("retries"), 8),
        field("", "rule", Key("rule"), 1),
        field("", "object", Words(object), 0),
        field("", "process", Words(process), 0),
        field("", "held meanwhile by (~ inferred)", Words(holders), 0),
    ],
)];

const PATH: &[Layout] = &[block(
    "Critical path",
    &[
        field("", "%", Key("pct_path"), 0),
        field("", "total", Key("total_ns"), 0),
        field("", "pieces", Key("pieces"), 0),
        field("", "longest", Key("max_ns"), 0),
        field("", "state", Key("state"), 0),
        field("", "thread", Words(process), 0),
        field("", "through", Words(object), 0),
    ],
)];

const IRQS: &[Layout] = &[block(
    "Interrupts, softirqs and kernel work",
    &[
        field("", "kind", Key("kind"), 0),
        field("", "count", Key("count"), 0),
        field("run time", "total", Key("total_ns"), 0),
        field("run time", "%", Share("total_ns"), 0),
        field("run time", "avg", Key("avg_ns"), 0),
        field("run time", "max", Key("max_ns"), 0),
        field("run time", "max start", Key("max_start_ns"), 1),
        field("", "name", Words(irq), 0),
    ],
)];

const IRQS_PER_CPU: &[Layout] = &[block(
    "Interrupts, softirqs and kernel work, per CPU",
    &[
        field("", "kind", Key("kind"), 0),
        field("", "cpu", Key("cpu"), 0),
        field("", "count", Key("count"), 0),
        field("run time", "total", Key("total_ns"), 0),
        field("run time", "% of CPU", OfWall("total_ns"), 0),
        field("run time", "avg", Key("avg_ns"), 0),
        field("run time", "max", Key("max_ns"), 0),
        field("run time", "max start", Key("max_start_ns"), 1),
        field("", "name", Words(irq), 0),
    ],
)];

macro_rules! lock_layout {
    ($title:literal, $($last:expr),+) => {
        &[block(
            $title,
            &[
                field("", "contended", Key("contended"), 0),
                only(Known, field("", "per s", Key("contended_per_s"), 6)),
                field("wait", "total", Key("wait_total_ns"), 0),
                only(Known, field("wait", "%", Key("pct_wait"), 0)),
                only(Verbose, field("wait", "min", Key("wait_min_ns"), 10)),
                field("wait", "avg", Key("wait_avg_ns"), 1),
                field("wait", "max", Key("wait_max_ns"), 0),
                only(Known, field("wait", "p99", Key("wait_p99_ns"), 3)),
                field("of wait", "spin", Key("spin_ns"), 2),
                only(Verbose, field("of wait", "runnable", Key("runnable_ns"), 10)),
                field("of wait", "blocked", Key("block_ns"), 2),
                only(Verbose, field("", "open", Key("open"), 10)),
                only(Verbose, field("", "waiters", Key("max_waiters"), 10)),
                only(Known, field("", "acquired", Key("acquired"), 4)),
                only(Known, field("", "miss rate", Key("miss_rate"), 4)),
                only(Known, field("hold", "total", Key("hold_total_ns"), 5)),
                only(Known, field("hold", "avg", Key("hold_avg_ns"), 5)),
                only(Known, field("hold", "max", Key("hold_max_ns"), 5)),
                only(Known, field("hold", "util", Key("utilization"), 5)),
                only(Verbose, field("while held", "preempted", Key("preempted_holds"), 10)),
                only(Verbose, field("while held", "for", Key("preempted_hold_ns"), 10)),
                only(Verbose, field("while held", "slept", Key("slept_holds"), 10)),
                only(Verbose, field("while held", "for", Key("slept_hold_ns"), 10)),
                only(Verbose, field("", "trylocks", Key("trylocks"), 10)),
                only(Verbose, field("", "recursion", Key("recursion"), 10)),
                only(Verbose, field("bounces", "con", Key("con_bounces"), 10)),
                only(Verbose, field("bounces", "acq", Key("acq_bounces"), 10)),
                $($last),+
            ],
        )]
    };
}

const LOCKS: &[Layout] = lock_layout!(
    "Kernel locks",
    only(Known, field("", "type", Key("type"), 0)),
    field("", "lock", Words(lock), 0)
);
const LOCKS_CALLER: &[Layout] = lock_layout!(
    "Kernel locks, by caller",
    field("", "type", Key("type"), 0),
    field("", "caller", Key("caller"), 0)
);
const LOCKS_TYPE: &[Layout] =
    lock_layout!("Kernel locks, by type", field("", "type", Key("type"), 0));
const LOCKS_TASK: &[Layout] = lock_layout!(
    "Kernel locks, by waiting thread",
    field("", "tid", Key("tid"), 0),
    field("", "thread", Key("comm"), 0)
);

/// `&mm->mmap_lock ff1100007d898970`, or what is known of the two.
pub(super) fn lock(l: Line<'_>) -> String {
    let name = escape(l.text("name"));
    match (name.is_empty(), l.int("address")) {
        (true, None) => "n/a".to_owned(),
        (true, Some(address)) => format!("{address:016x}"),
        (false, None) => name.into_owned(),
        (false, Some(address)) => format!("{name} {address:016x}"),
    }
}

/// `mutex 0x7f00`, `semop semid 1`; several objects as the longest and how many more.
fn object(l: Line<'_>) -> String {
    let usage = l.text("usage");
    let kind = if usage.is_empty() { l.text("kind") } else { usage };
    let more = l
        .int("objects")
        .filter(|&n| n > 1)
        .map(|n| format!(" and {} more", n - 1))
        .unwrap_or_default();
    format!("{kind} {}{more}", escape(l.text("object"))).trim().to_owned()
}

/// Holders shown in a line.
const HOLDERS: usize = 3;

/// `a (7) 41 %, ~b (9) 22 %, 3 more`.
fn holders(l: Line<'_>) -> String {
    let Some(crate::Cell::List(list)) = l.get("holders") else { return String::new() };
    let one = |record: &Vec<(&'static str, crate::Cell)>| {
        let get = |key| record.iter().find(|(k, _)| *k == key).map(|(_, c)| c);
        let inferred = if get("inferred") == Some(&crate::Cell::Bool(true)) { "~" } else { "" };
        let pct = if let Some(crate::Cell::Float(x)) = get("pct_explained") { *x } else { 0.0 };
        let tid = get("tid").and_then(crate::Cell::int).unwrap_or(0);
        format!(
            "{inferred}{} ({tid}) {pct:.0} %",
            escape(get("comm").map_or("", crate::Cell::text))
        )
    };
    let mut words: Vec<String> = list.iter().take(HOLDERS).map(one).collect();
    if list.len() > HOLDERS {
        words.push(format!("{} more", list.len() - HOLDERS));
    }
    words.join(", ")
}

/// `futex`.
fn syscall(l: Line<'_>) -> String {
    escape(l.text("name")).into_owned()
}

/// `lazyp (5874 5683)`; empty for the system.
fn syscall_owner(l: Line<'_>) -> String {
    if l.get("comm").is_some() { process(l) } else { String::new() }
}

/// `lazyp (5874 5683)` for a thread, `lazyp (5874)` for a process, with the number of what it
/// stands for; kernel threads in brackets, as ps has it.
fn process(l: Line<'_>) -> String {
    let comm = escape(l.text("comm"));
    let comm = if l.get("kthread") == Some(&crate::Cell::Bool(true)) {
        format!("[{comm}]")
    } else {
        comm.into_owned()
    };
    let id = |key| {
        l.get(key).map(|c| c.int().map_or_else(|| "n/a".to_owned(), |n| (n as i32).to_string()))
    };
    let ids: Vec<String> = [id("pid"), id("tid")].into_iter().flatten().collect();
    let mut words = comm;
    if !ids.is_empty() {
        words += &format!(" ({})", ids.join(" "));
    }
    let counts: Vec<String> =
        [("processes", "process", "processes"), ("threads", "thread", "threads")]
            .into_iter()
            .filter_map(|(key, one, many)| l.int(key).map(|n| super::units::count(n, one, many)))
            .collect();
    if !counts.is_empty() {
        words += &format!(" {}", counts.join(", "));
    }
    words
}

/// `eth0:10`, `RCU:9`, or a work function, by name if it has one.
fn irq(l: Line<'_>) -> String {
    let name = escape(l.text("name"));
    let id = l.int("id").unwrap_or(0);
    match (l.text("kind"), name.is_empty()) {
        ("workqueue", true) => format!("{id:#x}"),
        ("workqueue", false) => name.into_owned(),
        _ => format!("{name}:{id}"),
    }
}
