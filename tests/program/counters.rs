//! Counters: groups read at switches are those of perf, and `diagnose --counters` reads what
//! `perf stat` writes.

use crate::support::{commands_unfolded, fixture, holdup};
use holdup_counters::Counter;
use holdup_passes::Options;
use holdup_testkit::needs;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// The group: software counters, which every machine has. Named for user mode so that the pass
/// charges them to threads; the kernel counts all of a software counter all the same.
const GROUP: &str = "{sched:sched_switch,task-clock:u,page-faults:u}:S";

/// Record the group on all CPUs while two processes talk to each other.
fn record(folder: &Path) -> PathBuf {
    let file = folder.join("perf.data");
    let mut perf = Command::new("perf");
    perf.args(["record", "-q", "-a", "-m", "1024", "-c", "1", "-e", GROUP, "-o"]).arg(&file);
    perf.args(["--", "perf", "bench", "-f", "simple", "sched", "pipe", "-l", "3000"]);
    let out = perf.output().unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    file
}

fn text(out: &Output) -> String {
    String::from_utf8_lossy(&out.stdout).into_owned()
}

/// A member that moved: nanoseconds, CPU, thread (-1 if it is gone), event, by how much.
type Moved = (u64, u64, i64, String, u64);

/// What perf makes of the group: a sample of each member that moved.
fn perf_says(file: &Path) -> Vec<Moved> {
    let mut perf = Command::new("perf");
    perf.args(["script", "--ns", "-F", "tid,cpu,time,event,period", "-i"]).arg(file);
    let out = text(&perf.output().unwrap());
    let line = |line: &str| -> Option<Moved> {
        // "16498 [000]   987.068649123:      33730         task-clock:u: "
        let mut words = line.split_whitespace();
        let tid = words.next()?.parse().ok()?;
        let cpu = words.next()?.trim_matches(['[', ']']).parse().ok()?;
        let (seconds, nanos) = words.next()?.trim_end_matches(':').split_once('.')?;
        let ts = seconds.parse::<u64>().ok()? * 1_000_000_000 + nanos.parse::<u64>().ok()?;
        let period = words.next()?.parse().ok()?;
        let event = words.next()?.trim_end_matches(':').to_owned();
        event.ends_with(":u").then_some((ts, cpu, tid, event, period))
    };
    out.lines().filter_map(line).collect()
}

/// The same from holdup's readings: differences per CPU and event.
fn holdup_says(file: &Path) -> Vec<Moved> {
    let out = holdup().args(["events", "-j", "-v"]).arg(file).output().unwrap();
    let mut before: BTreeMap<(u64, String), u64> = BTreeMap::new();
    let mut found = Vec::new();
    for line in text(&out).lines() {
        let e: Value = serde_json::from_str(line).unwrap();
        let Some(readings) = e.pointer("/fields/readings") else {
            continue;
        };
        let number = |key: &str| e[key].as_u64().unwrap_or_else(|| panic!("{key}: {line}"));
        for (event, value) in readings.as_object().unwrap() {
            let (cpu, value) = (number("cpu"), value.as_u64().unwrap());
            let last = before.entry((cpu, event.clone())).or_default();
            if value > *last {
                let moved = value - *last;
                let tid = e["tid"].as_i64().unwrap_or(-1);
                found.push((number("ts_ns"), cpu, tid, event.clone(), moved));
            }
            *last = value;
        }
    }
    found
}

#[needs(perf, tracepoints)]
#[test]
fn groups_read_at_switches_are_those_of_perf() {
    let folder = tempfile::tempdir().unwrap();
    compare(&record(folder.path()), 3000);
}

/// Perf's samples of the members are the differences of holdup's readings: more than so many.
fn compare(file: &Path, least: usize) {
    let (mut theirs, mut ours) = (perf_says(file), holdup_says(file));
    assert!(theirs.len() > least, "only {} members moved", theirs.len());
    theirs.sort();
    ours.sort();
    assert_eq!(theirs.len(), ours.len());
    let other = theirs.iter().zip(&ours).find(|(a, b)| a != b);
    assert_eq!(other, None, "perf's, and holdup's");
}

/// Each thread gets what perf prints for it, but for what was counted before the first reading of
/// a CPU, which perf gives to whoever leaves the CPU then.
#[needs(perf, tracepoints)]
#[test]
fn what_counters_counted_is_charged_to_the_thread_that_ran() {
    let folder = tempfile::tempdir().unwrap();
    let file = record(folder.path());
    let mut theirs: BTreeMap<i64, u64> = BTreeMap::new();
    let mut met = std::collections::BTreeSet::new();
    for (_, cpu, tid, event, moved) in perf_says(&file) {
        if event == "task-clock:u" && !met.insert(cpu) && tid > 0 {
            *theirs.entry(tid).or_default() += moved;
        }
    }
    let reader = holdup_open::open(&file).unwrap();
    let analysis = holdup_attribution::analyze(&*reader, &Options::default()).unwrap();
    let mut ours: BTreeMap<i64, u64> = BTreeMap::new();
    for (slot, levels) in analysis.counters() {
        let sum: u64 = levels.iter().map(|c| c.get(Counter::TaskClock)).sum();
        *ours.entry(i64::from(analysis.thread(slot).tid.0)).or_default() += sum;
    }
    let lost = analysis.quality.count(holdup_trace::QualityCode::LostEvents);
    assert_eq!(lost, 0, "the buffers are large enough");
    let sum: u64 = theirs.values().sum();
    let charged: u64 = ours.values().sum();
    assert!(charged <= sum, "{charged} of {sum}");
    // Some kernels keep back the switches away from the idle task of a CPU. What was counted over
    // such a gap is nobody's here; perf gives it to whoever comes next. On a quiet machine of two
    // CPUs, one of them such, that was 9 % of the whole.
    assert!(charged as f64 >= sum as f64 * 0.6, "{charged} of {sum} were charged");
    for (tid, ns) in &ours {
        let perf = theirs.get(tid).copied().unwrap_or(0);
        assert!(*ns <= perf, "thread {tid}: {ns}, and perf says {perf}");
    }
}

#[needs(perf, tracepoints)]
#[test]
fn the_recorder_has_counters_read_at_every_switch_too() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("perf.data");
    let mut record = holdup();
    record.args(["record", "--preset", "sched", "--counters=task-clock:u,page-faults:u", "-o"]);
    record.arg(&file).args(["--", "perf", "bench", "-f", "simple", "sched", "pipe", "-l", "3000"]);
    let out = record.output().unwrap();
    let words = String::from_utf8_lossy(&out.stderr).into_owned();
    assert!(out.status.success(), "{words}");
    assert!(
        words.contains("counters read at every switch: task-clock:u, page-faults:u"),
        "{words}"
    );
    compare(&file, 3000);
    let reader = holdup_open::open(&file).unwrap();
    let analysis = holdup_attribution::analyze(&*reader, &Options::default()).unwrap();
    let ran = analysis.counters_ran().expect("each sample carries the times");
    assert_eq!(ran.enabled_ns, ran.running_ns, "software counters never take turns");
}

/// A group that a timer leads, on every CPU: of software counters, which every machine has.
#[needs(perf, tracepoints)]
#[test]
fn the_recorder_has_counters_read_at_an_interval_and_each_thread_that_stays_gets_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("perf.data");
    let mut record = holdup();
    record.args(["record", "--counters=task-clock:u,page-faults:u", "--counters-interval", "2ms"]);
    // A thread that computes, and stays where it is.
    record.arg("-o").arg(&file).args(["--", "taskset", "-c", "0", "sh", "-c"]);
    let out = record.arg("i=0; while [ $i -lt 400000 ]; do i=$((i+1)); done").output().unwrap();
    let words = String::from_utf8_lossy(&out.stderr).into_owned();
    assert!(out.status.success(), "{words}");
    let said = "counters read every 2ms on each CPU: task-clock:u, page-faults:u";
    assert!(words.contains(said), "{words}");
    compare(&file, 100);
    let mut report = Command::new("perf");
    let report = report.args(["report", "--stdio", "-s", "comm", "-i"]).arg(&file);
    let report = report.output().unwrap();
    assert!(report.status.success() && text(&report).contains("task-clock:u"), "{report:?}");
    let reader = holdup_open::open(&file).unwrap();
    let analysis = holdup_attribution::analyze(&*reader, &Options::default()).unwrap();
    let ran = analysis.counters_ran().expect("each sample carries the times");
    assert_eq!(ran.enabled_ns, ran.running_ns, "software counters never take turns");
    let of = |counts: &[holdup_passes::Counts]| -> u64 {
        counts.iter().map(|c| c.get(Counter::TaskClock)).sum()
    };
    // The clock of a CPU is that of whoever runs there; the idle task is nobody.
    let all = of(analysis.counted_by_concurrency(holdup_counters::Mode::User));
    let most = analysis.counters().map(|(slot, levels)| (of(levels), slot)).max().unwrap();
    let thread = analysis.thread(most.1);
    let stayed = thread.user_ns + thread.kernel_ns;
    assert!(most.0 <= all && most.0 <= stayed + stayed / 20, "{} of {all}, {stayed}", most.0);
    assert!(most.0 > stayed / 4, "{} ns were charged of {stayed} that it ran", most.0);
}

/// A PMU that is not the processor's own: named as the kernel names it.
#[needs(tracepoints)]
#[test]
fn counters_that_a_pmu_names_are_read_where_there_is_one() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("perf.data");
    let mut record = holdup();
    record.args(["record", "--preset", "sched", "--counters=msr/tsc/", "-o"]).arg(&file);
    record.args(["--counters-interval", "5ms", "--", "sleep", "0.2"]);
    let out = record.output().unwrap();
    let words = String::from_utf8_lossy(&out.stderr).into_owned();
    if !Path::new("/sys/bus/event_source/devices/msr/events/tsc").exists() {
        assert_eq!(out.status.code(), Some(2), "{words}");
        assert!(words.contains("msr/tsc/: no counter of this name"), "{words}");
        return;
    }
    assert!(out.status.success(), "{words}");
    assert!(words.contains("counters read every 5ms on each CPU: msr/tsc/"), "{words}");
    assert!(holdup_says(&file).iter().filter(|m| m.3 == "msr/tsc/").count() > 20, "{words}");
}

#[needs(tracepoints)]
#[test]
fn the_recorder_says_which_counters_there_are_not_and_records_without() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("perf.data");
    let mut record = holdup();
    record.args(["record", "--preset", "sched", "--counters", "-o"]).arg(&file);
    let out = record.args(["--", "true"]).output().unwrap();
    let words = String::from_utf8_lossy(&out.stderr).into_owned();
    assert!(out.status.success(), "{words}");
    let read = words.lines().any(|l| l.contains("read at every switch: cycles:u"));
    let lacks = words.contains("cycles:u is not counted: ");
    assert!(read != lacks, "one of both is said: {words}");
    let mut record = holdup();
    record.args(["record", "--preset", "sched", "--counters-interval", "10ms", "-o"]).arg(&file);
    let out = record.args(["--", "true"]).output().unwrap();
    let words = String::from_utf8_lossy(&out.stderr).into_owned();
    assert!(out.status.success(), "{words}");
    assert!(read == words.contains("counters read every 10ms on each CPU: cycles:u"), "{words}");
    assert!(lacks == words.contains("cycles:u is not counted: "), "{words}");
    let mut record = holdup();
    let out = record.args(["record", "--counters-interval", "10us", "--", "true"]).output();
    let words = String::from_utf8_lossy(&out.unwrap().stderr).into_owned();
    assert!(words.contains("10us"), "{words}");
    let out = holdup().args(["record", "--counters=cycle", "--", "true"]).output().unwrap();
    let words = String::from_utf8_lossy(&out.stderr).into_owned();
    assert_eq!(out.status.code(), Some(2), "{words}");
    assert!(
        words.contains("cycle: there is no counter of this name; the counters are cycles,"),
        "{words}"
    );
}

fn diagnose(arguments: &[&str]) -> (Option<i32>, String) {
    let folder = tempfile::tempdir().unwrap();
    let out = holdup().arg("diagnose").args(arguments).current_dir(folder.path()).output().unwrap();
    (out.status.code(), text(&out) + &String::from_utf8_lossy(&out.stderr))
}

fn counters(name: &str) -> String {
    fixture(&format!("counters/{name}")).display().to_string()
}

#[test]
fn runs_of_perf_stat_are_judged_alone() {
    let (one, four) = (counters("bandwidth-1.json"), counters("bandwidth-4.csv"));
    let (code, words) = diagnose(&["--counters", &one, "--counters", &four, "--explain"]);
    assert_eq!(code, Some(0), "{words}");
    assert!(words.contains("hardware-bandwidth"), "{words}");
    assert!(words.contains("memory traffic, as the memory controllers counted it"), "{words}");
    let command = format!("holdup diagnose --counters {one}");
    assert!(commands_unfolded(&words).contains(&command), "{words}");
    let (code, words) =
        diagnose(&["--counters", &one, "--counters", &four, "--fail-on", "hardware-bandwidth"]);
    assert_eq!(code, Some(1), "{words}");
    let alike = counters("make-user.csv");
    let both = format!("4={alike}");
    let arguments = ["--counters", &alike, "--counters", &both, "--fail-on", "hardware-bandwidth"];
    let (code, words) = diagnose(&arguments);
    assert_eq!(code, Some(0), "the same cycles an instruction: {words}");
}

#[test]
fn runs_of_perf_stat_are_judged_beside_a_trace_and_beside_figures() {
    let trace = fixture("host_falseshare_n2/perf.data").display().to_string();
    let (one, four) = (counters("bandwidth-1.json"), counters("bandwidth-4.csv"));
    let two = format!("2={four}");
    let runs = ["--counters", &one, "--counters", &two];
    let (code, words) = diagnose(&[&[trace.as_str()], &runs[..]].concat());
    assert_eq!(code, Some(0), "{words}");
    assert!(words.contains("hardware-bandwidth"), "{words}");
    let figures = fixture("figures/bandwidth.toml").display().to_string();
    let (code, words) = diagnose(&[&["--metrics", figures.as_str()], &runs[..]].concat());
    assert_eq!(code, Some(0), "{words}");
}

#[test]
fn what_the_machine_lacks_is_not_available_with_the_reason() {
    let (code, words) = diagnose(&["--counters", &counters("no-pmu.csv"), "--explain"]);
    assert_eq!(code, Some(4), "{words}");
    assert!(words.contains("cycles: not supported by this machine's PMU"), "{words}");
    assert!(words.contains("n/a"), "{words}");
}

#[test]
fn files_that_are_not_read_say_why_and_what_to_do() {
    let (code, words) = diagnose(&["--counters", &counters("for-people.txt")]);
    assert_eq!(code, Some(3), "{words}");
    assert!(words.contains("for-people.txt: line 2") && words.contains("perf stat -j"), "{words}");
    let (code, words) = diagnose(&["--counters", "x=/nowhere"]);
    assert_eq!(code, Some(2), "{words}");
    assert!(words.contains("'x' is not a number of CPUs"), "{words}");
    let (code, words) = diagnose(&["--counters", "/nowhere"]);
    assert_eq!(code, Some(2), "{words}");
    assert!(words.contains("cannot be read"), "{words}");
}
