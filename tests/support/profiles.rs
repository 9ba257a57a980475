//! Profiles of the fixtures that have their programs beside them.

use super::{fixture, holdup, recording};
use serde_json::Value;
use std::process::Command;

/// The arguments, with the recording of a fixture and its files; caches of perf and debuginfod are
/// out of sight.
pub(crate) fn command(name: &str, args: &[&str]) -> Command {
    let mut holdup = holdup();
    holdup.env("HOME", fixture(name)).args(["profile", "--symfs"]).arg(fixture(name).join("root"));
    holdup.args(args).arg(recording(name));
    holdup
}

/// What that prints.
#[track_caller]
pub(crate) fn profile(name: &str, args: &[&str]) -> String {
    String::from_utf8(written(name, args)).unwrap()
}

/// The same, if it is not text.
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
