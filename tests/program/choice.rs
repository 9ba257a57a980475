//! Chosen threads: rows of them, a verdict about them, and what is said where there are none.

use crate::support::{fixture, run, stdout};
use serde_json::Value;

fn trace() -> String {
    fixture("neighbour_c4/perf.data").to_str().unwrap().to_owned()
}

/// Standard error of a run that must end as wrong usage and print nothing.
#[track_caller]
fn refused(args: &[&str]) -> String {
    let out = run(args);
    let stderr = String::from_utf8(out.stderr).unwrap();
    assert_eq!(out.status.code(), Some(2), "{args:?}: {stderr}");
    assert!(out.stdout.is_empty(), "{args:?}");
    stderr
}

fn json(args: &[&str]) -> Value {
    serde_json::from_str(&stdout(&[args, &["-j", &trace()]].concat())).unwrap()
}

/// The same where the answer may be that there is too little evidence.
fn json_of(args: &[&str]) -> Value {
    serde_json::from_slice(&run(&[args, &["-j", &trace()]].concat()).stdout).unwrap()
}

/// The name of the program that ran longest.
fn busiest() -> String {
    let rows = json(&["procs", "--by", "command", "-s", "combined_ns"]);
    rows["rows"][0]["comm"].as_str().unwrap().to_owned()
}

#[test]
fn a_choice_that_fits_nothing_is_refused_with_what_there_is() {
    let (trace, name) = (trace(), busiest());
    for verb in ["diagnose", "procs", "syscalls", "switches", "waits", "path", "summary", "locks"] {
        for choice in [["-p", "999999"], ["--tid", "999999"], ["--comm", "nosuch*"]] {
            let said = refused(&[verb, choice[0], choice[1], &trace]);
            assert!(said.contains(&choice.join(" ")), "{verb}: {said}");
            if verb != "path" || choice[0] != "--tid" {
                assert!(said.contains(&name), "{verb}: {said}");
            }
        }
    }
    let slip = format!("{name}x");
    let said = refused(&["procs", "--comm", &slip, &trace]);
    assert!(said.contains(&format!("nearest by name: {name}")), "{said}");
}

/// Events are printed as they are read: the head is out by then.
#[test]
fn events_of_no_thread_are_refused_unless_more_was_asked() {
    let (trace, name) = (trace(), busiest());
    let end = |args: &[&str]| run(&[&["events", "-q"], args, &[&trace]].concat());
    let out = end(&["--comm", "nosuch*"]);
    let said = String::from_utf8_lossy(&out.stderr);
    assert_eq!(out.status.code(), Some(2), "{said}");
    assert!(said.contains("--comm nosuch*: no event of the trace matches"), "{said}");
    assert_eq!(end(&["--comm", &name]).status.code(), Some(0));
    assert_eq!(end(&["--comm", "nosuch", "-C", "0"]).status.code(), Some(0));
}

#[test]
fn verbs_about_the_machine_refuse_a_choice_of_threads() {
    for verb in ["ledger", "info", "phases", "irqs", "cpus", "predict"] {
        let said = refused(&[verb, "-p", "1", &trace()]);
        assert!(
            said.contains("about the whole machine") && said.contains("holdup procs"),
            "{said}"
        );
    }
}

#[test]
fn names_are_patterns() {
    let name = busiest();
    let pattern = format!("{}*", &name[..1]);
    let all = |choice: &str| json(&["procs", "--comm", choice])["rows"].as_array().unwrap().len();
    assert!(all(&name) >= 1);
    assert!(all(&pattern) >= all(&name));
    assert!(all("*") > all(&name));
}

#[test]
fn a_verdict_about_chosen_threads_leaves_the_ledger_alone() {
    let name = busiest();
    let of_all = json(&["diagnose"]);
    let of_one = json(&["diagnose", "--comm", &name]);
    assert_eq!(json(&["ledger"])["ledger"], of_one["ledger"]);
    assert!(of_all["chosen"].is_null());
    let chosen = &of_one["chosen"];
    let ns = |key: &str| chosen[key].as_u64().unwrap();
    assert_eq!(ns("running_ns") + ns("ready_ns") + ns("asleep_ns"), ns("life_ns"));
    assert!(chosen["names"][0].as_str().unwrap().starts_with(&name), "{chosen}");
    let next = of_one["next"].to_string();
    assert!(next.contains(&format!("--comm {name}")), "{next}");
}

/// `record` has no `--comm`, and a pattern is the shell's if nobody quotes it.
#[test]
fn commands_that_lead_on_can_be_typed() {
    let name = busiest();
    let pattern = format!("{}*", &name[..1]);
    let next = json(&["diagnose", "--comm", &pattern])["next"].as_array().unwrap().clone();
    assert!(next.iter().any(|c| c.as_str().unwrap().contains(&format!("--comm '{pattern}'"))));
    for command in next.iter().map(|c| c.as_str().unwrap()) {
        let verb = command.split(' ').nth(1).unwrap();
        let machine = ["record", "run", "whatif", "ledger", "phases", "info", "irqs"];
        assert!(!command.contains("--comm") || !machine.contains(&verb), "{command}");
    }
    // Whose threads did nothing: there is nothing to judge, and the machine is recorded again.
    let rows = json(&["procs", "-n", "0"]);
    let still = rows["rows"].as_array().unwrap().iter().find(|r| r["combined_ns"] == 0);
    if let Some(tid) = still.map(|r| r["tid"].to_string()) {
        let next = json_of(&["diagnose", "--tid", &tid])["next"].to_string();
        assert!(next.contains("holdup record ") && !next.contains("record --tid"), "{next}");
    }
}

#[test]
fn who_has_no_path_is_told_why() {
    let trace = trace();
    let rows = json(&["procs"]);
    let kernel = rows["rows"].as_array().unwrap().iter().find(|r| r["kthread"] == true).unwrap();
    let tid = kernel["tid"].to_string();
    let said = refused(&["path", "--tid", &tid, &trace]);
    assert!(said.contains("is a kernel thread"), "{said}");
}
