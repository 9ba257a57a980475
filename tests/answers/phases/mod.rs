//! Phases: a trace is cut where its composition changes, and the verdict is that of the work.

mod windows;

use crate::support::{recording, run, stdout};
use holdup_attribution::{Thresholds, analyze};
use holdup_diagnose::phases::{Wanted, judged_phases, read};
use holdup_diagnose::{Class, diagnose, diagnose_judged};
use holdup_passes::{Options, Selection};
use holdup_testkit::{corpus, needs};
use holdup_trace::Reader;
use serde_json::Value;

/// Of 100 recordings so many have the verdict of their work as a whole.
const WHOLE_PCT: usize = 95;
/// Of 100 thirds of recordings so many have the verdict of the whole, or of a phase in them.
const THIRDS_PCT: usize = 90;

fn json(args: &[&str]) -> Value {
    serde_json::from_str(&stdout(args)).expect("JSON")
}

/// `part: class` of every phase of a fixture.
fn parts(scenario: &str) -> Vec<(String, String)> {
    let trace = recording(scenario);
    let rows = json(&["phases", "-j", trace.to_str().unwrap()]);
    let text = |v: &Value| v.as_str().unwrap().to_owned();
    let rows = rows["rows"].as_array().unwrap().iter();
    rows.map(|r| (text(&r["part"]), text(&r["class"]))).collect()
}

#[test]
fn a_uniform_recording_is_one_phase_and_shows_no_strip() {
    for scenario in ["native_cpu2", "over_cpu_x3_c2", "imb_amdahl_c2", "ser_append_case2_c2"] {
        let parts = parts(scenario);
        assert_eq!(parts.len(), 1, "{scenario}: {parts:?}");
        assert_eq!(parts[0].0, "work");
        let trace = recording(scenario);
        for verb in ["diagnose", "summary"] {
            assert!(!run(&[verb, trace.to_str().unwrap()]).stdout.is_empty());
            let text = String::from_utf8(run(&[verb, trace.to_str().unwrap()]).stdout).unwrap();
            assert!(!text.contains("phases:"), "{scenario} {verb}");
        }
    }
}

/// The processes start one after the other for a part of the recording.
#[test]
fn start_up_that_matters_is_named_and_left_out() {
    let found = parts("ser_retry_c2");
    let of: Vec<&str> = found.iter().map(|p| p.0.as_str()).collect();
    assert_eq!(of, ["start-up", "work"]);
    let trace = recording("ser_retry_c2");
    let trace = trace.to_str().unwrap();
    let d = json(&["diagnose", "-j", trace]);
    assert_eq!(d["phases"][1]["class"], d["verdict"]["class"]);
    assert_eq!(d["phases"][1]["start_ns"], d["trace"]["start_ns"]);
    let text = String::from_utf8(run(&["diagnose", trace]).stdout).unwrap().replace("\n    ", " ");
    assert!(text.contains("phases: 1 start-up"), "{text}");
    assert!(text.contains("only the work was judged, without phase 1 (start-up, "), "{text}");
    assert!(!text.contains("of the trace was judged"), "left out on purpose: {text}");
    // What is asked for is judged as it is.
    let all = json(&["diagnose", "-j", "--time", "0%,100%", trace]);
    assert_eq!(all["trace"]["start_ns"], d["phases"][0]["start_ns"]);
}

/// One program loads, two work side by side, a last one winds down.
#[test]
fn the_steps_of_a_job_are_start_up_work_and_tail() {
    let found = parts("native_steps");
    let of: Vec<(&str, &str)> = found.iter().map(|p| (p.0.as_str(), p.1.as_str())).collect();
    let alone = "workload-imbalance";
    assert_eq!(of, [("start-up", alone), ("work", "healthy"), ("tail", alone)]);
    let trace = recording("native_steps");
    let d = json(&["diagnose", "-j", trace.to_str().unwrap()]);
    assert_eq!(d["verdict"]["class"], "healthy");
    // In one piece it is another matter: half the time one process has all the work.
    let busy = |d: &Value| d["ledger"]["nodes"][0]["pct"].as_f64().unwrap();
    let all = json(&["diagnose", "-j", "--time", "0%,100%", trace.to_str().unwrap()]);
    assert!(busy(&d) > 95.0 && busy(&all) < 80.0, "{} and {}", busy(&d), busy(&all));
}

#[test]
fn a_phase_is_selected_by_its_number() {
    let trace = recording("thr_mutex_perfz_c8");
    let trace = trace.to_str().unwrap();
    let rows = json(&["phases", "-j", trace]);
    let rows = rows["rows"].as_array().unwrap();
    assert!(rows.len() > 1);
    for row in rows {
        let number = row["phase"].to_string();
        let part = json(&["summary", "-j", "--phase", &number, trace]);
        assert_eq!(part["trace"]["start_ns"], row["start_ns"]);
        assert_eq!(part["trace"]["end_ns"], row["end_ns"]);
        let part = json(&["diagnose", "-j", "--phase", &number, trace]);
        assert_eq!(part["verdict"]["class"], row["class"]);
    }
    let first = stdout(&["events", "--phase", "1", "-q", trace]).lines().count();
    let all = stdout(&["events", "-q", trace]).lines().count();
    assert!(0 < first && first < all, "{first} of {all}");
    let wrong = run(&["cpus", "--phase", "9", trace]);
    assert_eq!(wrong.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&wrong.stderr).contains("--phase: there is no phase 9"));
}

/// The labelled recordings.
fn recordings() -> Vec<(String, Box<dyn Reader>)> {
    let dir = corpus().join("vm");
    let labels = std::fs::read_to_string(dir.join("LABELS.tsv")).expect("labels");
    let names = labels.lines().skip(1).filter_map(|line| line.split('\t').next());
    // Some rows are of counters only, without a trace.
    let names = names.filter(|name| dir.join(name).is_file());
    names
        .map(|name| (name.to_owned(), holdup_open::open(&dir.join(name)).expect("a trace")))
        .collect()
}

/// The class of a part of a trace, as `--time` selects it.
fn class_of(reader: &dyn Reader, part: Selection) -> Class {
    let analysis = analyze(reader, &part.into()).expect("readable");
    diagnose(reader.info(), &analysis, None).verdict.class
}

#[needs(corpus)]
#[test]
fn the_whole_has_the_verdict_of_its_work() {
    let (mut same, mut other) = (0, Vec::new());
    for (name, reader) in recordings() {
        let limits = Thresholds::default();
        let (options, wanted) = (Options::default(), Wanted::default());
        let judged = read(&*reader, &options, &limits, wanted).expect("readable");
        let work = diagnose_judged(reader.info(), &judged, None, limits).verdict.class;
        let whole = class_of(&*reader, Selection::default());
        if work == whole {
            same += 1;
        } else {
            other.push(format!("{name}: {} {}", whole.id(), work.id()));
        }
    }
    println!("{same} have the verdict of their work, {} have not: {other:#?}", other.len());
    assert!(same >= 100, "{same}");
    assert!(same * 100 >= (same + other.len()) * WHOLE_PCT, "{other:#?}");
}

#[needs(corpus)]
#[test]
fn thirds_agree_with_the_whole_or_with_a_phase_in_them() {
    let (mut agree, mut by_phase, mut other) = (0, 0, Vec::new());
    for (name, reader) in recordings() {
        let Some((first, last)) = reader.info().span else { continue };
        let options = Options::default();
        let (_, phases) = judged_phases(&*reader, &options, &Thresholds::default()).unwrap();
        let whole = class_of(&*reader, Selection::default());
        for third in 0..3 {
            let at = |n: u64| first + (last - first) / 3 * n;
            let (from, to) = (at(third), at(third + 1));
            let class = class_of(
                &*reader,
                Selection { from: Some(from), to: Some(to), ..Selection::default() },
            );
            let overlaps = phases.iter().filter(|p| p.start_ns < to && p.end_ns > from);
            if class == whole {
                agree += 1;
            } else if overlaps.into_iter().any(|p| p.class == Some(class)) {
                by_phase += 1;
            } else {
                other.push(format!("{name} {third}: {} {}", whole.id(), class.id()));
            }
        }
    }
    println!("{agree} agree, {by_phase} as a phase in them, {} neither: {other:#?}", other.len());
    let all = agree + by_phase + other.len();
    assert!((agree + by_phase) * 100 >= all * THIRDS_PCT, "{other:#?}");
}
