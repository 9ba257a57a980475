//! Profiles of the fixtures that include their programs.

use super::{fixture, holdup, recording};
use serde_json::Value;
use std::process::Command;

/// The command's arguments, with the recording of a fixture and its files; caches of perf and
/// debuginfod are hidden.
pub(crate) fn command(name: &str, args: &[&str]) -> Command {
    let mut holdup = holdup();
    holdup.env("HOME", fixture(name)).args(["profile", "--symfs"]).arg(fixture(name).join("root"));
    holdup.args(args).arg(recording(name));
    holdup
}

/// The output of that command.
#[track_caller]
pub(crate) fn profile(name: &str, args: &[&str]) -> String {
    String::from_utf8(written(name, args)).unwrap()
}

/// The output of that command as bytes.
#[track_caller]
pub(crate) fn written(name: &str, args: &[&str]) -> Vec<u8> {
    let out = command(name, args).output().unwrap();
    assert!(out.status.success(), "{args:?}: {}", String::from_utf8_lossy(&out.stderr));
    out.stdout
}

pub(crate) fn json(name: &str, args: &[&str]) -> Value {
    serde_json::from_str(&profile(name, &[args, &["-j"]].concat())).unwrap()
}

pub(crate) fn rows(answer: &Value) -> &Vec<Value> {
    answer["rows"].as_array().unwrap()
}

pub(crate) fn samples<'a>(rows: impl IntoIterator<Item = &'a Value>) -> u64 {
    rows.into_iter().map(|r| r["samples"].as_u64().unwrap()).sum()
}
