//! `holdup gate --scaling` from outside.

use crate::gate::runs::{Folder, baseline, text};
use serde_json::{Value, json};

const USAGE: i32 = 2;

/// Runs of a workload as if they had been made on so many CPUs, each in so many per cent of its
/// time.
fn on(cpus: u32, pct: u64, name: &str) -> Value {
    let mut all = baseline("mutex-100");
    for run in all["runs"].as_array_mut().unwrap() {
        let of = run["name"].as_str().unwrap().to_owned();
        run["name"] = json!(format!("{name}-{cpus}-{of}"));
        run["wall_ns"] = json!(run["wall_ns"].as_u64().unwrap() * pct / 100);
        run["others"]["ns"] = json!(0);
    }
    all["settings"][0]["cpus"] = json!(cpus);
    all
}

/// A side on one CPU and on four, which takes these times.
fn side(folder: &Folder, name: &str, one: u64, four: u64) {
    folder.file(&format!("{name}-1.json"), text(on(1, one, name)));
    folder.file(&format!("{name}-4.json"), text(on(4, four, name)));
    let made = folder.holdup(&format!(
        "baseline --allow cpus --work syscall:write -o {name}.json {name}-1.json {name}-4.json"
    ));
    assert_eq!(made.code, Some(0), "{}", made.stderr);
}

/// The same work; four CPUs that help less; one CPU that does more.
fn folder() -> Folder {
    let folder = Folder::new();
    side(&folder, "before", 100, 30);
    side(&folder, "same", 101, 31);
    side(&folder, "slower", 130, 39);
    side(&folder, "worse", 100, 39);
    side(&folder, "alone", 75, 30);
    folder
}

#[test]
fn rounds_pass_regress_and_tell_what_got_faster_alone() {
    let folder = folder();
    let gate = |after: &str| {
        folder.holdup(&format!("gate --format json --scaling --baseline before.json {after}.json"))
    };
    for (after, code) in [("before", 0), ("same", 0), ("slower", 0), ("worse", 1), ("alone", 0)] {
        let ended = gate(after);
        assert_eq!(ended.code, Some(code), "{after}: {}{}", ended.stdout, ended.stderr);
        let found: Value = serde_json::from_str(&ended.stdout).unwrap();
        assert_eq!(found["primary"]["metric"], "scaling.4.efficiency", "{after}");
        assert_eq!(
            (&found["primary"]["unit"], &found["primary"]["worse"]),
            (&json!("%"), &json!("lower"))
        );
        assert_eq!(found["runs"]["a"], 24, "a round is a run");
    }
    let words = gate("alone").stdout;
    assert!(words.contains("it only got faster on fewer CPUs"), "{words}");
    // The wall clock of the same recordings.
    let clock = "gate --scaling --metric scaling.4.time --baseline before.json slower.json";
    assert_eq!(folder.holdup(clock).code, Some(1));
}

#[test]
fn a_number_before_a_trace_is_that_of_its_threads() {
    let folder = Folder::new();
    let mut pairs = String::new();
    for (name, times) in [("a", [100, 30]), ("b", [101, 39])] {
        for (threads, pct) in [1, 4].into_iter().zip(times) {
            let all = on(8, pct, name);
            for i in 0..10 {
                let one = crate::gate::runs::only(all.clone(), i..i + 1);
                folder.file(&format!("{name}{threads}-{i}.json"), text(one));
            }
        }
    }
    for i in 0..10 {
        for threads in [1, 4] {
            pairs += &format!(" {threads}=a{threads}-{i}.json {threads}=b{threads}-{i}.json");
        }
    }
    let ended = folder.holdup(&format!("gate --work syscall:write --scaling --pair{pairs}"));
    assert_eq!(ended.code, Some(1), "{}{}", ended.stdout, ended.stderr);
    insta::assert_snapshot!(ended.stdout.lines().take(6).collect::<Vec<_>>().join("\n"));
}

#[test]
fn what_are_no_rounds_is_said() {
    let folder = folder();
    let wrong = |args: &str| folder.holdup(&format!("gate {args}")).fails(USAGE);
    insta::assert_snapshot!(wrong("--scaling --baseline before.json before-4.json"));
    insta::assert_snapshot!(wrong("--scaling --baseline before-4.json worse-4.json"));
    insta::assert_snapshot!(wrong("--scaling --pair 1=before-1.json 4=worse-4.json"));
    insta::assert_snapshot!(wrong(
        "--metric scaling.4.efficiency --baseline before-4.json worse-4.json"
    ));
}
