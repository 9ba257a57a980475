//! The tables of the verbs, from the renderer: one name for each form of each table.

use crate::column::{Column, TableDef, Type};
use crate::error::ExportError;
use crate::facts::int;
use crate::rows::{Pool, Put, Value};
use holdup_attribution::{Attribution, WaitsBy};
use holdup_diagnose::PhaseRow;
use holdup_passes::{Group, LockBy};
use holdup_render::{Cell, Table, Unit, schema};

/// What the tables are made from.
pub struct Source<'a> {
    /// The analysis, judged.
    pub judged: &'a Attribution<'a>,
    /// The phases.
    pub phases: &'a [PhaseRow],
}

/// A table of a verb.
pub struct Made {
    /// Its name in an export.
    pub name: &'static str,
    /// What a row is.
    pub about: &'static str,
    /// Name of the type of its rows in docs/schema/holdup-1.json, which says what columns mean.
    pub row: &'static str,
    /// Its columns and, if there is a source, its rows.
    pub make: fn(Option<&Source<'_>>) -> Table,
}

/// `NAME ROW "a row is …" |source| rows => table group`.
macro_rules! made {
    ($(
        $name:literal $row:literal $about:literal
        |$s:ident| $rows:expr => $table:ident $($by:expr)?;
    )+) => {
        /// All of them. `path`, which costs memory for every sleep, is made only on request.
        pub const MADE: &[Made] = &[$(Made {
            name: $name,
            about: $about,
            row: $row,
            make: |source| {
                let rows = source.map(|$s| $rows).unwrap_or_default();
                schema::$table(&rows $(, $by)?)
            },
        }),+];
    };
}

made! {
    "by_command" "ProcRow" "CPU time of all threads of one name, as in `procs --by command`."
        |s| s.judged.analysis.procs(Group::Command) => procs Group::Command;
    "by_process" "ProcRow" "CPU time of one process, as in `procs --by process`."
        |s| s.judged.analysis.procs(Group::Process) => procs Group::Process;
    "by_thread" "ProcRow" "CPU time of one thread, as in `procs`."
        |s| s.judged.analysis.procs(Group::Thread) => procs Group::Thread;
    "by_thread_delay" "SwitchRow" "How long one thread waited for CPUs, as in `switches`."
        |s| s.judged.analysis.switches() => switches;
    "by_cgroup" "CgroupRow"
        "CPU time that one control group used and wanted, or CPU time that belongs to no group, as \
         in `ledger --by cgroup`."
        |s| s.judged.analysis.cgroups() => cgroups;
    "by_cpu" "CpuRow" "Where the time of one CPU went, as in `cpus`."
        |s| s.judged.analysis.cpu_rows() => cpus;
    "rates" "SarRow" "Figures of sar for the whole machine, as in `summary`. The table has one row."
        |s| s.judged.analysis.sar(false) => sar false;
    "rates_by_cpu" "SarRow" "Figures of sar for one CPU, as in `summary --per-cpu`."
        |s| s.judged.analysis.sar(true) => sar true;
    "by_syscall" "SyscallRow" "All calls of one system call, as in `syscalls`."
        |s| s.judged.analysis.syscalls(Group::System) => syscalls Group::System;
    "by_process_syscall" "SyscallRow"
        "Calls of one system call by one process, as in `syscalls --by process`."
        |s| s.judged.analysis.syscalls(Group::Process) => syscalls Group::Process;
    "by_thread_syscall" "SyscallRow"
        "Calls of one system call by one thread, as in `syscalls --by thread`."
        |s| s.judged.analysis.syscalls(Group::Thread) => syscalls Group::Thread;
    "by_lock" "LockRow" "Waits for one kernel lock, as in `locks --by lock`."
        |s| s.judged.analysis.locks(LockBy::Lock) => locks LockBy::Lock;
    "by_lock_class" "LockRow" "Waits for kernel locks of one class or name, as in `locks`."
        |s| s.judged.analysis.locks(LockBy::Class) => locks LockBy::Class;
    "by_lock_caller" "LockRow"
        "Waits for kernel locks that one place in the code requested, as in `locks --by caller`."
        |s| s.judged.analysis.locks(LockBy::Caller) => locks LockBy::Caller;
    "by_lock_type" "LockRow" "Waits for kernel locks of one type, as in `locks --by type`."
        |s| s.judged.analysis.locks(LockBy::Type) => locks LockBy::Type;
    "by_lock_thread" "LockRow" "Waits of one thread for kernel locks, as in `locks --by task`."
        |s| s.judged.analysis.locks(LockBy::Task) => locks LockBy::Task;
    "by_object" "WaitsRow" "Waits for one object, as in `waits`."
        |s| s.judged.waits(WaitsBy::Object) => waits WaitsBy::Object;
    "by_object_kind" "WaitsRow" "Waits for objects of one kind, as in `waits --by kind`."
        |s| s.judged.waits(WaitsBy::Kind) => waits WaitsBy::Kind;
    "by_thread_object" "WaitsRow"
        "Waits of one thread for objects of one kind, as in `waits --by thread`."
        |s| s.judged.waits(WaitsBy::Thread) => waits WaitsBy::Thread;
    "by_holding" "HoldingRow"
        "One activity of the holders of an object while other threads waited for the object, as in \
         `holders_did` of `waits`."
        |s| s.judged.holding() => holding;
    "by_irq" "IrqRow"
        "Executions of one interrupt handler, softirq or work function, as in `irqs --by total`."
        |s| s.judged.analysis.irqs(false) => irqs false;
    "by_irq_cpu" "IrqRow"
        "Executions of one interrupt handler, softirq or work function on one CPU, as in `irqs`."
        |s| s.judged.analysis.irqs(true) => irqs true;
    "ledger" "LedgerNode"
        "One node of the capacity ledger, parents before children, as in `ledger`."
        |s| s.judged.ledger.nodes() => nodes;
    "phases" "PhaseRow" "One phase of the trace, as in `phases`."
        |s| s.phases.to_vec() => phases;
    "path" "PathRow"
        "One part of the critical path of the thread that works and waits most, as in `path`."
        |s| s.judged.path(None).map(|p| p.rows).unwrap_or_default() => path;
}

/// The table that needs every sleep in memory: left out unless requested.
pub const PATH: &str = "path";

fn ty(unit: Unit) -> (Type, &'static str) {
    match unit {
        Unit::Text | Unit::Map | Unit::List => (Type::Words, ""),
        Unit::Count => (Type::Int, ""),
        Unit::Ns => (Type::Int, "ns"),
        Unit::Time => (Type::Int, "ns of the trace's clock"),
        Unit::Percent => (Type::Float, "%"),
        Unit::Rate => (Type::Float, "1/s"),
        Unit::Ratio => (Type::Float, ""),
        Unit::Address => (Type::Address, ""),
        Unit::Id => (Type::Id, ""),
        Unit::Flag => (Type::Flag, ""),
    }
}

impl Made {
    /// Its columns.
    pub fn table(&self) -> TableDef {
        let column = |c: &holdup_render::Column| {
            let (ty, unit) = ty(c.unit);
            // The JSON schema says which columns are never null.
            Column { name: c.key, ty, unit, nullable: true, about: "" }
        };
        let columns = (self.make)(None).columns.iter().map(column).collect();
        TableDef { name: self.name, about: self.about, columns }
    }

    /// Pass on its first rows, at most `most`.
    pub(crate) fn rows(
        &self,
        source: &Source<'_>,
        most: usize,
        pool: &mut Pool,
        put: &mut Put<'_>,
    ) -> Result<(), ExportError> {
        let table = (self.make)(Some(source));
        let types: Vec<Type> = table.columns.iter().map(|c| ty(c.unit).0).collect();
        for row in table.rows.iter().take(most) {
            let cells = row.iter().zip(&types);
            let values: Vec<Value> = cells.map(|(cell, &ty)| value(cell, ty, pool)).collect();
            put(self.name, &values, pool)?;
        }
        Ok(())
    }
}

/// A cell of the renderer in a column of this type. Lists and maps are JSON.
fn value(cell: &Cell, ty: Type, pool: &mut Pool) -> Value {
    match (cell, ty) {
        (Cell::Bool(b), Type::Flag) => Value::Flag(*b),
        (Cell::Int(n), Type::Int) => Value::Int(int(*n)),
        (Cell::Int(n), Type::Address) => Value::Address(*n),
        (Cell::Int(n), Type::Id) => u32::try_from(*n).map_or(Value::Null, Value::Id),
        (Cell::Int(n), Type::Float) => Value::Float(*n as f64),
        (Cell::Float(x), Type::Float) => Value::Float(*x),
        (Cell::Text(text), Type::Words) => Value::Words(pool.word(text)),
        (Cell::Map(_) | Cell::List(_), Type::Words) => {
            serde_json::to_string(cell).map_or(Value::Null, |json| Value::Words(pool.word(&json)))
        }
        _ => Value::Null,
    }
}
