//! One place per row type: which field is which column.

use crate::table::{Cell, Column, Table, ToCell, Unit};
use holdup_attribution::{Edge, Holder, LedgerNode, PathRow, WaitsBy, WaitsRow};
use holdup_passes::{
    CpuRow, Group, IrqRow, LockBy, LockRow, ProcRow, SarRow, SwitchRow, SyscallRow,
};

impl ToCell for Vec<Holder> {
    fn to_cell(&self) -> Cell {
        let record = |h: &Holder| {
            vec![
                ("tid", h.tid.to_cell()),
                ("comm", h.comm.to_cell()),
                ("hold_ns", h.hold_ns.to_cell()),
                ("pct_explained", h.pct_explained.to_cell()),
                ("inferred", h.inferred.to_cell()),
            ]
        };
        Cell::List(self.iter().map(record).collect())
    }
}

/// A column of rows of type `R`.
struct Def<R> {
    column: Column,
    get: fn(&R) -> Cell,
}

macro_rules! columns {
    ($row:ty: $($key:ident $(($field:ident))? $unit:ident),+ $(,)?) => {
        &[$(Def::<$row> { column: Column { key: stringify!($key), unit: Unit::$unit }, get: |row| field!(row $key $($field)?).to_cell() }),+]
    };
}

/// The field a key names, or the one in parentheses after it where the key is no name for a field.
macro_rules! field {
    ($row:ident $key:ident) => {
        $row.$key
    };
    ($row:ident $key:ident $field:ident) => {
        $row.$field
    };
}

const SYSCALLS: &[Def<SyscallRow>] = columns! { SyscallRow:
    comm Text, pid Id, tid Id, name Text, nr Id, count Count, errors Count, total_ns Ns, cpu_ns Ns, interrupted_ns Ns,
    runnable_ns Ns, blocked_ns Ns, min_ns Ns, avg_ns Ns, max_ns Ns, p50_ns Ns, p99_ns Ns, pending Count, pending_ns Ns,
    returned_only Count, pct_capacity Percent, errnos Map,
};

const PROCS: &[Def<ProcRow>] = columns! { ProcRow:
    comm Text, pid Id, pid_inferred Flag, tid Id, processes Count, threads Count, kthread Flag, combined_ns Ns, app_ns Ns, kernel_ns Ns,
    interrupted_ns Ns, runnable_ns Ns, blocked_ns Ns, pct_capacity Percent, switches Count, voluntary Count,
    involuntary Count, switches_per_s Rate, migrations Count, lock_ratio Ratio, waiting_ratio Ratio,
};

const CPUS: &[Def<CpuRow>] = columns! { CpuRow:
    cpu Id, user_ns Ns, kernel_ns Ns, kthread_ns Ns, irq_ns Ns, softirq_ns Ns, idle_ns Ns, iowait_ns Ns, unaccounted_ns Ns,
    wall_ns Ns, switches Count, switches_per_s Rate, irqs Count,
};

const SWITCHES: &[Def<SwitchRow>] = columns! { SwitchRow:
    comm Text, pid Id, tid Id, runtime_ns Ns, switches Count, delay_count Count, avg_delay_ns Ns, max_delay_ns Ns,
    max_delay_start_ns Time, max_delay_end_ns Time, voluntary Count, involuntary Count, preempted_ns Ns, migrations Count,
    stat_runtime_ns Ns,
};

const IRQS: &[Def<IrqRow>] = columns! { IrqRow:
    kind Text, id Address, name Text, cpu Id, count Count, total_ns Ns, avg_ns Ns, max_ns Ns, max_start_ns Time,
};

const SAR: &[Def<SarRow>] = columns! { SarRow:
    cpu Id, pct_usr Percent, pct_sys Percent, pct_wio Percent, pct_idle Percent, pct_unaccounted Percent, scall_per_s Rate,
    sread_per_s Rate, swrit_per_s Rate, rchar_per_s Rate, wchar_per_s Rate, fork_per_s Rate, exec_per_s Rate,
    cswch_per_s Rate, runq_sz Ratio, pct_runocc Percent, sema_per_s Rate, msg_per_s Rate, fault_per_s Rate,
};

const WAITS: &[Def<WaitsRow>] = columns! { WaitsRow:
    kind Text, usage Text, object Text, objects Count, pid Id, tid Id, comm Text, waits Count, waiters Count, wait_total_ns Ns,
    wait_avg_ns Ns, wait_p99_ns Ns, wait_max_ns Ns, elapsed_ns Ns, wake_delay_ns Ns, retries Count, holders List, pct_explained Percent,
    top_waker Id, harmful Flag, rule Text, idle_blamed_ns Ns, pct_idle_blamed Percent,
};

const PATH: &[Def<PathRow>] = columns! { PathRow:
    state Text, tid Id, pid Id, comm Text, kind Text, usage Text, object Text, pieces Count, total_ns Ns, max_ns Ns, pct_path Percent,
};

const EDGES: &[Def<Edge>] = columns! { Edge: waiter Id, waker Id, kind Text, usage Text, object Text, waits Count, wait_ns Ns };

const LOCKS: &[Def<LockRow>] = columns! { LockRow:
    comm Text, tid Id, address Address, name Text, type(lock_type) Text, caller Text, contended Count, wait_total_ns Ns,
    wait_min_ns Ns, wait_avg_ns Ns, wait_max_ns Ns, wait_p50_ns Ns, wait_p99_ns Ns, spin_ns Ns, runnable_ns Ns, block_ns Ns,
    slept Count, slept_wait_ns Ns, open Count, open_ns Ns, first_ns Time, last_ns Time, max_waiters Count,
    contended_per_s Rate, pct_wait Percent, acquired Count, acquired_per_s Rate, miss_rate Ratio, hold_total_ns Ns,
    hold_min_ns Ns, hold_avg_ns Ns, hold_max_ns Ns, utilization Ratio, block_pct Percent, sleep_pct Percent, trylocks Count,
    reads Count, recursion Count, preempted_holds Count, preempted_hold_ns Ns, slept_holds Count, slept_hold_ns Ns,
    con_bounces Count, acq_bounces Count,
};

const NODES: &[Def<LedgerNode>] = columns! { LedgerNode: path Text, ns Ns, pct Percent };

fn build<R>(name: &'static str, defs: &[Def<R>], rows: &[R], absent: &[&str], sort: &str) -> Table {
    let defs: Vec<&Def<R>> = defs.iter().filter(|d| !absent.contains(&d.column.key)).collect();
    let mut table = Table {
        name,
        columns: defs.iter().map(|d| d.column).collect(),
        rows: rows.iter().map(|row| defs.iter().map(|d| (d.get)(row)).collect()).collect(),
        entries: None,
        missing: None,
        view: "",
        notes: Vec::new(),
    };
    if !sort.is_empty() {
        let known = table.sort(sort);
        debug_assert!(known.is_ok(), "{name} has no column {sort}");
    }
    table
}

/// `syscalls`, longest total first.
pub fn syscalls(rows: &[SyscallRow], by: Group) -> Table {
    let absent: &[&str] = match by {
        Group::System | Group::Command => &["comm", "pid", "tid"],
        Group::Process => &["tid"],
        Group::Thread => &[],
    };
    let mut table = build("syscalls", SYSCALLS, rows, absent, "total_ns");
    // A call that never returned has no shortest time; 0 would be a lie.
    let count = table.column("count");
    let times: Vec<usize> =
        ["min_ns", "avg_ns", "max_ns"].iter().filter_map(|key| table.column(key)).collect();
    for row in table.rows.iter_mut().filter(|row| count.is_some_and(|i| row[i] == Cell::Int(0))) {
        times.iter().for_each(|&i| row[i] = Cell::Null);
    }
    table
}

/// `procs`, most CPU time first.
pub fn procs(rows: &[ProcRow], by: Group) -> Table {
    let absent: &[&str] = match by {
        Group::Command | Group::System => &["pid", "pid_inferred", "tid"],
        Group::Process => &["tid", "processes"],
        Group::Thread => &["processes", "threads"],
    };
    build("procs", PROCS, rows, absent, "combined_ns")
}

/// `cpus`, by number.
pub fn cpus(rows: &[CpuRow]) -> Table {
    build("cpus", CPUS, rows, &[], "cpu")
}

/// `switches`, longest delay first: one long wait for a CPU is what a user feels, and a mean hides
/// it.
pub fn switches(rows: &[SwitchRow]) -> Table {
    build("switches", SWITCHES, rows, &[], "max_delay_ns")
}

/// `irqs`, longest total first.
pub fn irqs(rows: &[IrqRow], per_cpu: bool) -> Table {
    build("irqs", IRQS, rows, if per_cpu { &[] } else { &["cpu"] }, "total_ns")
}

/// `sar`, in the order given: the system, then its CPUs.
pub fn sar(rows: &[SarRow], per_cpu: bool) -> Table {
    build("sar", SAR, rows, if per_cpu { &[] } else { &["cpu"] }, "")
}

/// `locks`, most waiting first.
pub fn locks(rows: &[LockRow], by: LockBy) -> Table {
    let absent: &[&str] = match by {
        LockBy::Lock | LockBy::Class => &["comm", "tid", "caller"],
        LockBy::Caller => &["comm", "tid", "address", "name"],
        LockBy::Type => &["comm", "tid", "address", "name", "caller"],
        LockBy::Task => &["address", "name", "type", "caller"],
    };
    build("locks", LOCKS, rows, absent, "wait_total_ns,contended,acquired")
}

/// `waits`, in the order given: harmful ones first, largest part of the idle time first.
pub fn waits(rows: &[WaitsRow], by: WaitsBy) -> Table {
    let absent: &[&str] = match by {
        WaitsBy::Object => &["objects", "tid"],
        WaitsBy::Kind => &["tid"],
        WaitsBy::Thread => &[
            "holders",
            "pct_explained",
            "wait_p99_ns",
            "wait_max_ns",
            "elapsed_ns",
            "waiters",
            "wake_delay_ns",
            "retries",
        ],
    };
    build("waits", WAITS, rows, absent, "")
}

/// `path`, in the order given: longest part first.
pub fn path(rows: &[PathRow]) -> Table {
    build("path", PATH, rows, &[], "")
}

/// The edges of the blocking graph.
pub(crate) fn edges(rows: &[Edge]) -> Table {
    build("edges", EDGES, rows, &[], "")
}

/// The nodes of the ledger, in pre-order.
pub(crate) fn nodes(rows: &[LedgerNode]) -> Table {
    build("ledger", NODES, rows, &[], "")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Serialize;

    /// The row structs are the contract: every field is a column, in the same order.
    fn same_keys<R: Serialize>(row: R, defs: &[Def<R>]) {
        let json = serde_json::to_string(&row).unwrap();
        let mut at = 0;
        for def in defs {
            let key = format!("\"{}\":", def.column.key);
            at += json[at..]
                .find(&key)
                .unwrap_or_else(|| panic!("{key} not in this order in {json}"));
        }
        let value: serde_json::Value = serde_json::from_str(&json).unwrap();
        let keys: Vec<&String> = value.as_object().unwrap().keys().collect();
        assert_eq!(keys.len(), defs.len(), "{keys:?}");
    }

    #[test]
    fn columns_are_the_fields_of_the_rows() {
        same_keys(
            SyscallRow {
                comm: Some(String::new()),
                pid: Some(None),
                tid: Some(1),
                ..Default::default()
            },
            SYSCALLS,
        );
        let waits = WaitsRow { objects: Some(1), tid: Some(1), ..Default::default() };
        same_keys(waits, WAITS);
        same_keys(PathRow::default(), PATH);
        same_keys(
            ProcRow {
                pid: Some(None),
                pid_inferred: Some(false),
                tid: Some(1),
                processes: Some(1),
                threads: Some(1),
                ..Default::default()
            },
            PROCS,
        );
        same_keys(CpuRow::default(), CPUS);
        same_keys(SwitchRow::default(), SWITCHES);
        same_keys(IrqRow { cpu: Some(0), ..Default::default() }, IRQS);
        same_keys(SarRow { cpu: Some(0), ..Default::default() }, SAR);
        let lock = LockRow {
            comm: Some(String::new()),
            tid: Some(Some(1)),
            address: Some(None),
            name: Some(None),
            lock_type: Some(None),
            caller: Some(None),
            ..Default::default()
        };
        same_keys(lock, LOCKS);
        same_keys(LedgerNode { path: "", ns: 0, pct: 0.0 }, NODES);
    }

    #[test]
    fn ties_are_broken_by_name_and_thread_and_unknown_values_come_last() {
        let row = |comm: &str, tid, max_delay_ns| SwitchRow {
            comm: comm.into(),
            tid,
            max_delay_ns,
            ..Default::default()
        };
        let rows = [
            row("b", 1, Some(5)),
            row("a", 3, Some(5)),
            row("z", 9, None),
            row("a", 2, Some(5)),
            row("c", 4, Some(9)),
        ];
        let mut table = switches(&rows);
        let tids =
            |t: &Table| t.rows.iter().map(|r| t.line(r).int("tid").unwrap()).collect::<Vec<_>>();
        assert_eq!(tids(&table), [4, 2, 3, 1, 9]);
        table.sort("comm,max_delay").unwrap();
        assert_eq!(tids(&table), [2, 3, 1, 4, 9]);
        let error = table.sort("nonsense").unwrap_err().to_string();
        assert!(error.contains("'nonsense'") && error.contains("max_delay_ns"), "{error}");
    }
}
