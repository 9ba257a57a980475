//! perf opens what holdup records, and finds in it what perf records at the same time.

use crate::{done, of, place, recorder};
use holdup_testkit::needs;
use std::collections::HashMap;
use std::process::Command;

/// Switches, wake-ups and locks in a moment.
const WORK: &[&str] = &["perf", "bench", "sched", "pipe", "-l", "2000"];

#[needs(tracepoints)]
#[test]
fn perf_opens_a_recording_with_each_of_its_tools() {
    let (_folder, file) = place();
    done(recorder(&file).arg("--").args(WORK));
    let events = of(&["perf", "evlist"], &file);
    assert!(events.lines().any(|e| e == "sched:sched_switch"), "{events}");
    assert!(events.lines().any(|e| e == "syscalls:sys_enter_futex"), "{events}");
    let script = of(&["perf", "script"], &file);
    assert!(script.contains("next_comm=sched-pipe"), "{:.300}", script);
    let latency = of(&["perf", "sched", "latency"], &file);
    assert!(latency.contains("sched-pipe"), "{latency}");
    let header = of(&["perf", "report", "--header-only"], &file);
    let version = format!("# perf version : holdup {}", env!("CARGO_PKG_VERSION"));
    assert!(header.contains(&version) && header.contains("# nrcpus online : "), "{header}");
    let contention = Command::new("perf").args(["lock", "contention", "-i"]).arg(&file).output();
    // Where no lock was contended perf says so, with status 0 or 1.
    let contention = contention.unwrap();
    let words = String::from_utf8_lossy(&contention.stderr);
    assert!(!words.contains("failed") && !words.contains("incompatible"), "{words}");
}

#[needs(tracepoints)]
#[test]
fn call_chains_have_names() {
    let (_folder, file) = place();
    done(recorder(&file).args(["-g", "--preset", "sched", "--"]).args(WORK));
    let script = of(&["perf", "script"], &file);
    assert!(script.contains("schedule"), "{:.600}", script);
}

#[needs(tracepoints)]
#[test]
fn with_chains_come_samples_and_what_files_were_mapped() {
    let (_folder, file) = place();
    let busy = ["sh", "-c", "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done"];
    done(recorder(&file).args(["-g", "-F", "500", "--preset", "sched", "--"]).args(busy));
    let report = of(&["perf", "report", "--stdio", "-n", "-g", "none", "--sort", "comm"], &file);
    let rows = report.lines().filter(|line| line.split_whitespace().last() == Some("sh"));
    let samples = rows.filter_map(|line| line.split_whitespace().nth(2)?.parse::<u64>().ok());
    assert!(samples.max().is_some_and(|most| most > 10), "{report}");
    // The kernel writes down the build of each file that is mapped meanwhile, from Linux 5.12 on.
    let mapped = of(&["perf", "script", "--show-mmap-events"], &file);
    let mut code = mapped.lines().filter(|l| l.contains("PERF_RECORD_MMAP2") && l.contains("r-xp"));
    assert!(code.any(|line| line.contains('<') && line.contains("/libc")), "{:.2000}", mapped);
    let profile = done(crate::holdup().args(["profile", "-j"]).arg(&file));
    let answer: serde_json::Value = serde_json::from_slice(&profile.stdout).unwrap();
    let of_sh = answer["rows"].as_array().unwrap().iter().filter(|row| row["comm"] == "sh");
    assert!(of_sh.filter_map(|row| row["samples"].as_u64()).sum::<u64>() > 10, "{answer:#}");
}

#[needs(tracepoints)]
#[test]
fn compressed_and_through_a_pipe_it_is_the_same() {
    let (folder, file) = place();
    done(recorder(&file).args(["-z", "--preset", "sched", "--"]).args(WORK));
    assert!(of(&["perf", "script"], &file).contains("next_comm=sched-pipe"));
    let piped = folder.path().join("piped.data");
    let out = done(
        crate::holdup().args(["record", "-q", "--preset", "sched", "-o", "-", "--"]).args(WORK),
    );
    std::fs::write(&piped, &out.stdout).unwrap();
    assert!(of(&["perf", "script"], &piped).contains("next_comm=sched-pipe"));
}

/// Every line of `perf script` of these events: by CPU, the time and what happened.
fn lines(file: &std::path::Path, events: &str) -> HashMap<String, Vec<(String, String)>> {
    let mut all: HashMap<String, Vec<(String, String)>> = HashMap::new();
    let fields = "cpu,time,event,trace";
    let out = done(Command::new("perf").args(["script", "--ns", "-F", fields, "-i"]).arg(file));
    for line in String::from_utf8_lossy(&out.stdout).lines() {
        let line = line.trim_start();
        let Some((cpu, line)) = line.split_once(' ') else { continue };
        let Some((time, what)) = line.trim_start().split_once(' ') else { continue };
        let what = what.trim_start();
        if events.split(',').any(|event| what.starts_with(event)) {
            all.entry(cpu.to_owned()).or_default().push((time.to_owned(), what.to_owned()));
        }
    }
    all
}

#[needs(tracepoints)]
#[test]
fn a_recording_holds_what_perf_recorded_at_the_same_time() {
    const EVENTS: &str = "sched:sched_switch:,sched:sched_waking:,sched:sched_wakeup:";
    let (folder, ours) = place();
    let theirs = folder.path().join("theirs.data");
    // holdup records perf recording the work: so perf's file lies within ours. The times differ,
    // as each event has its own, but the order on a CPU does not. perf starts and stops its events
    // one kind after the other: for a moment its file has a waking without its wakeup.
    const MOMENT: usize = 8;
    done(
        recorder(&ours)
            .args(["--preset", "sched", "-m", "16M", "--"])
            .args(["perf", "record", "-q", "-a", "-m", "16M", "-o"])
            .arg(&theirs)
            .args(["-e", "sched:sched_switch,sched:sched_waking,sched:sched_wakeup", "--"])
            .args(WORK),
    );
    let (ours, theirs) = (lines(&ours, EVENTS), lines(&theirs, EVENTS));
    assert!(!theirs.is_empty());
    for (cpu, theirs) in &theirs {
        let ours = &ours[cpu];
        // A CPU that hardly does anything has few.
        let moment = MOMENT.min(theirs.len() / 4);
        let theirs = &theirs[moment..theirs.len() - moment];
        let what: Vec<&str> = ours.iter().map(|(_, what)| what.as_str()).collect();
        let wanted: Vec<&str> = theirs.iter().map(|(_, what)| what.as_str()).collect();
        let found = what.windows(wanted.len()).any(|part| part == wanted);
        assert!(
            found,
            "{cpu}: the {} events of perf are not among our {}",
            wanted.len(),
            what.len()
        );
    }
}
