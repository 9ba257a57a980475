//! pyarrow and DuckDB read what is written.

use super::{export, name};
use crate::support::root;
use holdup_export::{Type, definitions};
use holdup_testkit::needs;
use serde_json::Value;
use std::process::Command;

/// What others say is in the files of a folder.
fn read(folder: &std::path::Path) -> Value {
    let script = root().join("tests/program/tables/read.py");
    let out = Command::new("python3").arg(script).arg(folder).output().unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    serde_json::from_slice(&out.stdout).unwrap()
}

#[needs(pyarrow)]
#[test]
fn pyarrow_and_duckdb_read_the_documented_types_and_the_same_sums() {
    let scenario = "thr_mutex_perfz_c8";
    let parquet = export(scenario, "parquet", &[]);
    let arrow = export(scenario, "arrow", &[]);
    let lines = export(scenario, "ndjson", &[]);
    let (files, arrows) = (read(parquet.path()), read(arrow.path()));
    for table in definitions().iter().filter(|t| t.name != "path") {
        let file = &files[table.name];
        let rows = super::sums::rows(lines.path(), table.name);
        assert_eq!(file["metadata"]["holdup.table"], table.name);
        assert_eq!(file["metadata"]["holdup.schema"], "holdup/1");
        assert_eq!(file["metadata"]["trace.file"], "perf.data");
        assert_eq!(file["rows"], rows.len(), "{}", table.name);
        for (i, column) in table.columns.iter().enumerate() {
            let at = format!("{}.{}", table.name, column.name);
            assert_eq!(file["columns"][i], column.name, "{at}");
            assert_eq!(file["types"][i], column.ty.name(), "{at}");
            let words = column.ty == Type::Words;
            let in_arrow = match words {
                true => "dictionary<values=string, indices=int32, ordered=0>",
                false => column.ty.name(),
            };
            assert_eq!(arrows[table.name]["types"][i], in_arrow, "{at}");
            let nulls = rows.iter().filter(|row| row[column.name].is_null()).count();
            assert_eq!(file["nulls"][i], nulls, "{at}");
            assert_eq!(file["duckdb_nulls"][i], nulls, "{at}");
            if column.ty == Type::Int || column.ty == Type::Id {
                let of = |row: &Value| i128::from(row[column.name].as_i64().unwrap_or(0));
                let sum: i128 = rows.iter().map(of).sum();
                assert_eq!(file["sums"][i], sum.to_string(), "{at}");
                assert_eq!(file["duckdb_sums"][i], sum.to_string(), "{at}");
            }
        }
    }
    assert!(name(parquet.path()).len() > 1);
}
