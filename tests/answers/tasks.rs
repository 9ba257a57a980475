//! What goroutines wait for, of a program that was recorded with `--runtime-locks`
//! (`fixtures/code/README.md`): five of them hold a mutex for 3 ms in turn, and sleep with it.

use crate::support::{fixture, run};
use serde_json::Value;

fn answer(args: &[&str]) -> Value {
    let folder = fixture("code").join("go_tasks");
    let root = folder.join("root").display().to_string();
    let trace = folder.join("perf.data.zst").display().to_string();
    let out = run(&[args, &["--symfs", &root, "-j", &trace]].concat());
    serde_json::from_slice(&out.stdout).unwrap()
}

#[test]
fn a_mutex_that_goroutines_hold_over_a_sleep_is_the_verdict() {
    let answer = answer(&["diagnose"]);
    let verdict = &answer["verdict"];
    assert_eq!(verdict["class"], "thread-serialization", "{verdict}");
    let summary = verdict["summary"].as_str().unwrap();
    assert!(summary.contains("mutex sync.Mutex 0x"), "{summary}");
    assert!(summary.contains("taken in main.(*Ledger).Post"), "{summary}");
    // Without the lock all sleep at once, which is 3.9 times as fast.
    let worth = verdict["worth"]["times"].as_f64().unwrap();
    assert!((1.5..=4.0).contains(&worth), "{}", verdict["worth"]);
}

#[test]
fn two_locks_of_one_process_are_two_with_goroutines_as_holders() {
    let answer = answer(&["waits", "-n", "0"]);
    let rows = answer["rows"].as_array().unwrap();
    let own = |r: &&Value| {
        let object = r["object"].as_str().unwrap();
        r["usage"] == "mutex" && object.starts_with("sync.Mutex 0x")
    };
    let locks: Vec<&Value> = rows.iter().filter(own).collect();
    assert!(locks.len() >= 2, "{locks:#?}");
    // The slow one: four wait for one of five.
    let slow = locks.iter().max_by_key(|r| r["wait_total_ns"].as_u64()).unwrap();
    assert_eq!(slow["rule"], "lock-contention", "{slow:#}");
    assert!(slow["waits"].as_u64().unwrap() > 90, "{slow:#}");
    let holders = slow["holders"].as_array().unwrap();
    assert_eq!(holders.len(), 5, "{slow:#}");
    assert!(holders.iter().all(|h| h["tid"].as_u64().unwrap() > 1 << 30), "{holders:#?}");
    let did = slow["holders_did"].as_array().unwrap();
    assert_eq!(did[0]["did"], "timer", "{did:#?}");
}

#[test]
fn callers_are_functions_of_the_program() {
    let answer = answer(&["waits", "--by", "caller", "-n", "0"]);
    let rows = answer["rows"].as_array().unwrap();
    let of = |function: &str, through: &str| {
        rows.iter().any(|r| {
            let starts = |key: &str, with| r[key].as_str().is_some_and(|s| s.starts_with(with));
            starts("caller", function) && starts("through", through) && r["waiters"] == 5
        })
    };
    assert!(of("main.(*Ledger).Post", "internal/sync.(*Mutex).lockSlow"), "{rows:#?}");
    assert!(of("main.(*Ledger).Post", "time.Sleep"), "{rows:#?}");
}
