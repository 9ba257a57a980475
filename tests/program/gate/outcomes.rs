//! Pass is 0, regressed 1, inconclusive 4.

use crate::gate::runs::{Folder, baseline, only, text};

const FUTEX: &str = "--metric syscalls.futex.total_per_work";

/// Ten runs before, ten after: unchanged, and with a critical section 25 % longer.
fn folder() -> Folder {
    let folder = Folder::new();
    folder.runs("before.json", "mutex-100", 0..10);
    folder.runs("same.json", "mutex-100", 10..20);
    folder.runs("slower.json", "mutex-125", 0..10);
    folder
}

/// The exit code of a gate.
#[track_caller]
fn gate(folder: &Folder, args: &str) -> i32 {
    let ended = folder.holdup(&format!("gate {args}"));
    assert!(!ended.stdout.is_empty(), "{args} says nothing: {}", ended.stderr);
    ended.code.unwrap()
}

#[test]
fn a_side_against_itself_passes() {
    let folder = folder();
    assert_eq!(gate(&folder, &format!("--baseline before.json {FUTEX} before.json")), 0);
    assert_eq!(gate(&folder, &format!("--baseline slower.json {FUTEX} slower.json")), 0);
}

#[test]
fn a_longer_critical_section_regresses_and_a_shorter_one_passes() {
    let folder = folder();
    assert_eq!(gate(&folder, &format!("--baseline before.json {FUTEX} same.json")), 0);
    assert_eq!(gate(&folder, &format!("--baseline before.json {FUTEX} slower.json")), 1);
    assert_eq!(gate(&folder, &format!("--baseline slower.json {FUTEX} before.json")), 0);
}

#[test]
fn interleaved_pairs_are_judged_as_pairs() {
    let folder = Folder::new();
    let mut pairs = Vec::new();
    for i in 0..10 {
        folder.runs(&format!("a{i}.json"), "mutex-100", i..i + 1);
        folder.runs(&format!("b{i}.json"), "mutex-110", i..i + 1);
        pairs.push((format!("a{i}.json"), format!("b{i}.json")));
    }
    let words = |n: usize, turned: bool| {
        let of = |(a, b): &(String, String)| {
            if turned { format!("{b} {a}") } else { format!("{a} {b}") }
        };
        pairs[..n].iter().map(of).collect::<Vec<_>>().join(" ")
    };
    let pair = |n, turned| gate(&folder, &format!("{FUTEX} --pair {}", words(n, turned)));
    assert_eq!(pair(10, false), 1);
    assert_eq!(pair(10, true), 0, "the other way round it became faster");
    assert_eq!(pair(7, false), 4, "seven pairs can prove nothing at this level");
}

#[test]
fn few_runs_neighbours_losses_and_other_machines_are_inconclusive() {
    let folder = folder();
    folder.runs("few.json", "mutex-125", 0..2);
    assert_eq!(gate(&folder, &format!("--baseline before.json {FUTEX} few.json")), 4);
    let changed = |name: &str, change: &dyn Fn(&mut serde_json::Value)| {
        let mut runs = only(baseline("mutex-125"), 0..10);
        change(&mut runs);
        folder.file(name, text(runs));
        let args = format!("--baseline before.json {FUTEX} {name}");
        (gate(&folder, &args), folder.holdup(&format!("gate {args}")).stdout)
    };
    let each = |runs: &mut serde_json::Value, change: &dyn Fn(&mut serde_json::Value)| {
        runs["runs"].as_array_mut().unwrap().iter_mut().for_each(change);
    };
    let (code, said) = changed("neighbour.json", &|runs| {
        each(runs, &|run| {
            run["others"]["ns"] = (run["wall_ns"].as_u64().unwrap() / 2).into();
            run["others"]["programs"] = serde_json::json!([["make", 1]]);
        });
    });
    assert_eq!(code, 4, "{said}");
    assert!(said.contains("programs that are not part of the work took 25.0 %"), "{said}");
    let (code, said) =
        changed("lossy.json", &|runs| each(runs, &|run| run["lost_events"] = 9000.into()));
    assert_eq!(code, 4, "{said}");
    assert!(said.contains("lost events"), "{said}");
    let (code, said) =
        changed("kernel.json", &|runs| runs["settings"][0]["kernel"] = "7.0.0".into());
    assert_eq!(code, 4, "{said}");
    assert!(said.contains("versus 7.0.0"), "{said}");
    let allowed = format!("--baseline before.json {FUTEX} --allow kernel kernel.json");
    assert_eq!(gate(&folder, &allowed), 1);
}

#[test]
fn a_disturbed_run_is_set_aside_with_its_partner() {
    let folder = folder();
    let disturb = |name: &str, from: &str, at: &[usize], of: std::ops::Range<usize>| {
        let mut runs = only(baseline(from), of);
        for &i in at {
            let run = &mut runs["runs"][i];
            // 30 % of two CPUs, and what it measured is worth nothing.
            run["others"]["ns"] = (run["wall_ns"].as_u64().unwrap() * 6 / 10).into();
            runs["figures"]["syscalls.futex.total_ns"][i] = 1.into();
        }
        folder.file(name, text(runs));
    };
    disturb("two.json", "mutex-125", &[3, 7], 0..10);
    let args = format!("gate --baseline before.json {FUTEX} two.json");
    let ended = folder.holdup(&args);
    assert_eq!(ended.code, Some(1), "{}", ended.stdout);
    assert!(ended.stdout.contains("10 runs before, 8 after"), "{}", ended.stdout);
    assert!(ended.stdout.contains("2 runs are left out"), "{}", ended.stdout);
    let mut pairs = String::new();
    for i in 0..10 {
        folder.runs(&format!("a{i}.json"), "mutex-100", i..i + 1);
        let at: &[usize] = if i == 4 { &[0] } else { &[] };
        disturb(&format!("b{i}.json"), "mutex-125", at, i..i + 1);
        pairs += &format!(" a{i}.json b{i}.json");
    }
    let ended = folder.holdup(&format!("gate {FUTEX} --pair{pairs}"));
    assert_eq!(ended.code, Some(1), "{}", ended.stdout);
    assert!(ended.stdout.contains("9 interleaved pairs"), "{}", ended.stdout);
}

#[test]
fn a_waiver_bears_a_regression_until_its_last_day() {
    let folder = folder();
    let judged = |until: &str, metric: &str| {
        let policy = format!(
            "[primary]\nmetric = \"syscalls.futex.total_per_work\"\n[[waiver]]\n\
             metric = \"{metric}\"\nuntil = \"{until}\"\nreason = \"a second lock, on purpose\"\n"
        );
        folder.file("policy.toml", policy);
        folder.holdup("gate --baseline before.json --policy policy.toml slower.json")
    };
    let futex = "syscalls.futex.total_per_work";
    let borne = judged("2999-12-31", futex);
    assert_eq!(borne.code, Some(0), "{}", borne.stdout);
    let said = borne.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(said.contains("a second lock, on purpose"), "{said}");
    let over = judged("2020-01-01", futex);
    assert_eq!(over.code, Some(1), "{}", over.stdout);
    assert!(over.stdout.contains("2020-01-01"), "{}", over.stdout);
    assert_eq!(judged("2999-12-31", "runq.delay_p99").code, Some(1), "of another metric");
}

#[test]
fn the_self_test_tells_whether_the_gate_can_fail() {
    let folder = folder();
    folder.runs("three.json", "mutex-100", 0..3);
    assert_eq!(gate(&folder, &format!("--baseline before.json {FUTEX} --self-test")), 0);
    assert_eq!(gate(&folder, &format!("--baseline three.json {FUTEX} --self-test")), 4);
}

#[test]
fn a_baseline_is_made_extended_shown_and_redacted() {
    let folder = folder();
    folder.holdup("baseline -o all.json before.json").says(0);
    folder.holdup("baseline --add all.json same.json").says(0);
    let runs = |name: &str| {
        let text = std::fs::read_to_string(folder.path().join(name)).unwrap();
        let baseline: serde_json::Value = serde_json::from_str(&text).unwrap();
        (baseline["runs"].as_array().unwrap().len(), baseline["work"].clone())
    };
    assert_eq!(runs("all.json"), (20, "syscall:write".into()));
    let shown = folder.holdup("baseline --show all.json").says(0);
    assert!(shown.contains("20 runs"), "{shown}");
    folder.holdup("baseline --redact -o hashed.json all.json").says(0);
    let text = std::fs::read_to_string(folder.path().join("hashed.json")).unwrap();
    assert!(!text.contains("mutex-100-01.data") && text.contains("\"redacted\": true"), "{text}");
    assert_eq!(gate(&folder, &format!("--baseline hashed.json {FUTEX} slower.json")), 1);
}
