//! What cannot be written is named, and what was not finished can be told from what was; names of
//! threads that are made to do harm do none.

use super::{export, name};
use crate::support::{recording, run};
use std::fs;

#[test]
fn a_file_is_no_folder() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("tables");
    fs::write(&file, "").unwrap();
    let trace = recording("native_ticks");
    let out = run(&["export", name(&trace), "--to", name(&file)]);
    assert_eq!(out.status.code(), Some(2));
    let said = String::from_utf8_lossy(&out.stderr).into_owned();
    assert!(said.contains(name(&file)) && said.contains("not a folder"), "{said}");
}

#[test]
fn a_table_that_cannot_be_written_is_named() {
    let folder = tempfile::tempdir().unwrap();
    // Whoever runs this: nobody can write a file where a folder is.
    fs::create_dir(folder.path().join("runs.parquet.part")).unwrap();
    let trace = recording("native_ticks");
    let out = run(&["export", name(&trace), "--to", name(folder.path())]);
    assert_eq!(out.status.code(), Some(2));
    let said = String::from_utf8_lossy(&out.stderr).into_owned();
    assert!(said.contains("runs.parquet.part: cannot be written"), "{said}");
    // Nothing that looks whole was left behind.
    let whole = fs::read_dir(folder.path()).unwrap().map(|e| e.unwrap().file_name());
    let whole: Vec<_> = whole.filter(|n| n.to_string_lossy().ends_with(".parquet")).collect();
    assert!(whole.is_empty(), "{whole:?}");
}

#[test]
fn a_full_disk_is_an_error_that_names_the_file() {
    let folder = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink("/dev/full", folder.path().join("runs.csv.part")).unwrap();
    let trace = recording("thr_mutex_perfz_c8");
    let to = name(folder.path());
    let args = ["export", name(&trace), "--to", to, "--format", "csv", "--tables", "runs"];
    let out = run(&args);
    assert_eq!(out.status.code(), Some(2));
    let said = String::from_utf8_lossy(&out.stderr).into_owned();
    assert!(said.contains("runs.csv") && said.contains("cannot be written"), "{said}");
}

#[test]
fn a_wrong_name_of_a_table_lists_the_right_ones() {
    let trace = recording("native_ticks");
    let out = run(&["export", name(&trace), "--to", "/tmp", "--tables", "run"]);
    assert_eq!(out.status.code(), Some(2));
    let said = String::from_utf8_lossy(&out.stderr).into_owned();
    assert!(said.contains("there is no table run; the tables are switches, runs"), "{said}");
}

#[test]
fn a_second_export_replaces_the_first() {
    let folder = export("native_ticks", "csv", &["--tables", "runs,by_cpu"]);
    let trace = recording("native_ticks");
    let before = fs::read(folder.path().join("runs.csv")).unwrap();
    let to = name(folder.path());
    let args = ["export", name(&trace), "--to", to, "--format", "csv", "--tables", "runs"];
    assert_eq!(run(&args).status.code(), Some(0));
    assert_eq!(fs::read(folder.path().join("runs.csv")).unwrap(), before);
    assert!(!folder.path().join("runs.csv.part").exists());
}
