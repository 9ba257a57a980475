//! The lab's recordings, and what it proves with them.

use crate::support::holdup;
use crate::{done, said};
use holdup_testkit::needs;
use serde_json::Value;

#[needs(tracepoints)]
#[test]
fn a_recording_of_a_workload_has_its_truth_beside_it() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("of-flock.data");
    let mut record = holdup();
    record.args(["lab", "record", "-q", "flock", "--set", "duration=200ms", "-o"]).arg(&file);
    done(&mut record);
    let truth = std::fs::read(folder.path().join("of-flock.truth.json")).unwrap();
    let truth: Value = serde_json::from_slice(&truth).unwrap();
    assert_eq!(
        (&truth["name"], &truth["makes"]),
        (&"flock".into(), &"application-serialization".into())
    );

    let procs = done(holdup().args(["procs", "-j"]).arg(&file));
    let procs: Value = serde_json::from_slice(&procs.stdout).unwrap();
    let rows = procs["rows"].as_array().unwrap();
    for worker in truth["workers"].as_array().unwrap() {
        let row = rows.iter().find(|row| row["tid"] == worker["pid"]);
        let row = row.unwrap_or_else(|| panic!("{worker:#} is not recorded"));
        assert_eq!(row["comm"], worker["role"]);
    }
}

#[needs(tracepoints)]
#[test]
fn what_is_proved_has_a_row_for_each_workload() {
    let mut prove = holdup();
    prove.args(["lab", "prove", "-j", "--only", "compute,bandwidth,mutex,kernel-path"]);
    let out = prove.output().unwrap();
    // Tests run beside it, so verdicts may be open or wrong.
    assert!(matches!(out.status.code(), Some(0 | 1 | 4)), "{}", said(&out));
    let all: Value = serde_json::from_slice(&out.stdout).unwrap();
    let (rows, dark) = (all["rows"].as_array().unwrap(), all["not_shown"].as_array().unwrap());
    assert_eq!(rows.len() + dark.len(), 4);
    let dark = |name: &str| dark.iter().find(|row| row["name"] == name);
    assert!(dark("kernel-path").unwrap()["way_out"].as_str().unwrap().contains("nosmp"));
    let wrong = rows.iter().filter(|r| r["right"] == false || r["fixed_right"] == false).count();
    assert_eq!(all["wrong"], wrong);
    assert_eq!(out.status.code() == Some(1), wrong > 0);
    let mutex = rows.iter().find(|row| row["name"] == "mutex").unwrap();
    assert!(mutex["gained"].as_f64().unwrap() > 0.0);
    assert!(mutex["fixed"]["class"].is_string());
    let compute = rows.iter().find(|row| row["name"] == "compute").unwrap();
    assert!(compute["gained"].is_null() && compute["fixed"].is_null());
}
