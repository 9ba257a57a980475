//! The rows as JSON and as columns; the order of rows.

use super::*;
use holdup_attribution::{HoldingRow, LedgerNode, PathRow, WaitsRow};
use holdup_diagnose::predict::PredictRow;
use holdup_passes::{CgroupRow, CpuRow, IrqRow, LockRow, ProcRow, SarRow, SwitchRow, SyscallRow};
use holdup_profile::ProfileRow;
use serde::Serialize;

/// The row structs define the interface: every field is a column, in the same order.
fn same_keys<R: Serialize>(row: R, verb: &Verb<R>) {
    let defs = verb.columns;
    let json = serde_json::to_string(&row).unwrap();
    let mut at = 0;
    for def in defs {
        let key = format!("\"{}\":", def.column.key);
        at += json[at..].find(&key).unwrap_or_else(|| panic!("{key} not in this order in {json}"));
    }
    let value: serde_json::Value = serde_json::from_str(&json).unwrap();
    let keys: Vec<&String> = value.as_object().unwrap().keys().collect();
    assert_eq!(keys.len(), defs.len(), "{keys:?}");
}

#[test]
fn columns_are_the_fields_of_the_rows() {
    same_keys(
        SyscallRow {
            cgroup: Some(None),
            comm: Some(String::new()),
            pid: Some(None),
            tid: Some(1),
            ..Default::default()
        },
        &syscalls::VERB,
    );
    let waits =
        WaitsRow { cgroup: Some(None), objects: Some(1), tid: Some(1), ..Default::default() };
    same_keys(waits, &waits::VERB);
    same_keys(PathRow::default(), &waits::PATH_VERB);
    same_keys(PredictRow::default(), &predict::VERB);
    same_keys(ProfileRow::default(), &profile::VERB);
    same_keys(holdup_profile::TreeRow::default(), &profile::TREE);
    same_keys(holdup_profile::CallerRow::default(), &callers::VERB);
    same_keys(holdup_profile::CallRow::default(), &calls::VERB);
    same_keys(crate::WhatifRow::default(), &whatif::VERB);
    same_keys(
        ProcRow {
            pid: Some(None),
            pid_inferred: Some(false),
            tid: Some(1),
            cgroup: Some(None),
            processes: Some(1),
            threads: Some(1),
            ..Default::default()
        },
        &procs::VERB,
    );
    same_keys(CpuRow::default(), &cpus::VERB);
    let switch = SwitchRow { cgroup: Some(None), threads: Some(1), ..Default::default() };
    same_keys(switch, &switches::VERB);
    same_keys(CgroupRow::default(), &cgroups::VERB);
    same_keys(IrqRow { cpu: Some(0), ..Default::default() }, &irqs::VERB);
    same_keys(SarRow { cpu: Some(0), ..Default::default() }, &sar::VERB);
    let lock = LockRow {
        comm: Some(String::new()),
        tid: Some(Some(1)),
        cgroup: Some(None),
        address: Some(None),
        name: Some(None),
        likely: Some(None),
        lock_type: Some(None),
        caller: Some(None),
        holder: Some(None),
        holder_comm: Some(None),
        holder_ns: Some(None),
        pct_holder: Some(None),
        holders: Some(0),
        holders_did: Some(Vec::new()),
        ..Default::default()
    };
    same_keys(lock, &locks::VERB);
    same_keys(HoldingRow::default(), &holders::VERB);
    same_keys(LedgerNode { path: "", ns: 0, pct: 0.0 }, &ledger::VERB);
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
    let tids = |t: &Table| t.rows.iter().map(|r| t.line(r).int("tid").unwrap()).collect::<Vec<_>>();
    assert_eq!(tids(&table), [4, 2, 3, 1, 9]);
    table.sort("comm,max_delay").unwrap();
    assert_eq!(tids(&table), [2, 3, 1, 4, 9]);
    let error = table.sort("nonsense").unwrap_err().to_string();
    assert!(error.contains("'nonsense'") && error.contains("max_delay_ns"), "{error}");
}
