//! What goroutines and threads of Java wait for, of programs that were recorded with
//! `--runtime-locks` (`fixtures/code/README.md`): five goroutines hold a mutex for 3 ms in turn,
//! and sleep with it; three threads spend their time in a monitor.

use crate::support::{fixture, run};
use serde_json::Value;

fn answer(args: &[&str]) -> Value {
    of("go_tasks", args)
}

fn of(program: &str, args: &[&str]) -> Value {
    let folder = fixture("code").join(program);
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
    let worth = &answer["findings"][0]["worth"];
    let times = worth["times"].as_f64().unwrap();
    assert!((1.5..=4.0).contains(&times), "{worth}");
}

#[test]
fn the_holders_of_a_lock_of_goroutines_are_goroutines() {
    let answer = answer(&["waits", "-n", "0"]);
    let rows = answer["rows"].as_array().unwrap();
    let own = |r: &&Value| {
        let object = r["object"].as_str().unwrap();
        r["usage"] == "mutex" && object.starts_with("sync.Mutex 0x")
    };
    let locks: Vec<&Value> = rows.iter().filter(own).collect();
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

#[test]
fn a_monitor_of_java_is_one_lock_whatever_words_its_threads_sleep_at() {
    let verdict = &of("java_monitors", &["diagnose"])["verdict"];
    assert_eq!(verdict["class"], "thread-serialization", "{verdict}");
    let summary = verdict["summary"].as_str().unwrap();
    assert!(summary.contains("mutex monitor 0x"), "{summary}");
    assert!(summary.contains("taken in void Journal.append(long)"), "{summary}");

    let answer = of("java_monitors", &["waits", "-n", "0"]);
    let rows = answer["rows"].as_array().unwrap();
    let is_monitor = |r: &&Value| r["object"].as_str().unwrap().starts_with("monitor 0x");
    let monitors: Vec<&Value> = rows.iter().filter(is_monitor).collect();
    let one = monitors.iter().max_by_key(|r| r["wait_total_ns"].as_u64()).unwrap();
    assert_eq!(
        (&one["usage"], &one["rule"]),
        (&"mutex".into(), &"lock-contention".into()),
        "{one:#}"
    );
    assert_eq!(one["holders"].as_array().unwrap().len(), 3, "{one:#}");
    assert_eq!(one["holders_did"][0]["did"], "user", "{one:#}");
}
