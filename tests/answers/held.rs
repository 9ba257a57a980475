//! How long mutexes were held in all, against what the recorded programs counted themselves. The
//! table of docs/models.md.

use crate::support::is_written;
use holdup_attribution::{Attribution, analyze};
use holdup_passes::{HoldSum, Options};
use holdup_testkit::{corpus, in_parallel, needs};
use std::fmt::Write as _;

/// A recording of one mutex: what its program counted, what the trace shows, what is inferred.
struct Mutex {
    file: String,
    work: String,
    cpus: u32,
    counted_ms: f64,
    seen_ms: f64,
    in_all_ms: f64,
}

/// Every labelled recording of threads at one mutex that a call is made for only when two want it;
/// but for the one whose clock counts cycles, which are no nanoseconds.
fn recordings() -> Vec<(String, String, u32, f64)> {
    let labels = std::fs::read_to_string(corpus().join("vm/LABELS.tsv")).unwrap();
    let mut found = Vec::new();
    for line in labels.lines().skip(1) {
        let fields: Vec<&str> = line.split('\t').collect();
        let (file, cpus, work, truth) = (fields[0], fields[4], fields[5], fields[13]);
        let other = work.contains("private=1") || work.contains("kind=") || work.contains("locks=");
        let cycles = file.contains("_tctsc_");
        if !work.starts_with("mutex ") || other || cycles || fields[12] != "0" {
            continue;
        }
        let Ok(truth) = serde_json::from_str::<serde_json::Value>(truth) else { continue };
        let Some(counted_us) = truth["hold_us"].as_f64() else { continue };
        found.push((file.into(), work.into(), cpus.parse().unwrap(), counted_us / 1e3));
    }
    found
}

fn read((file, work, cpus, counted_ms): (String, String, u32, f64)) -> Option<Mutex> {
    let reader = holdup_open::open(&corpus().join("vm").join(&file)).ok()?;
    let analysis = analyze(&*reader, &Options::default()).ok()?;
    let judged = Attribution::from(&analysis);
    let mutexes = judged.blamed().into_iter().filter(|b| b.in_all.is_some());
    let longest = mutexes.max_by_key(|b| b.row.wait_total_ns)?;
    let mut seen = HoldSum::default();
    longest.held.values().for_each(|&sum| seen.add(sum));
    let ms = |ns: u64| ns as f64 / 1e6;
    Some(Mutex {
        file,
        work,
        cpus,
        counted_ms,
        seen_ms: ms(seen.hold_ns - seen.inferred_ns),
        in_all_ms: ms(longest.in_all?.ns),
    })
}

#[needs(corpus)]
#[test]
fn holds_that_nobody_waited_for_are_told_by_those_who_found_it_held() {
    let recordings = recordings();
    let all = recordings.len();
    let found: Vec<Mutex> = in_parallel(recordings, read).into_iter().flatten().collect();
    assert!(found.len() * 10 >= all * 8, "{} of {all}", found.len());
    let off = |m: &Mutex| (m.in_all_ms / m.counted_ms - 1.0) * 100.0;
    let mut errors: Vec<f64> = found.iter().map(|m| off(m).abs()).collect();
    errors.sort_by(f64::total_cmp);
    let mut made = format!(
        "{} of {all} recordings give an estimate; half of the estimates are within {:.0} %.\n\n\
         | recording | program | CPUs | counted, ms | seen | in all | error |\n\
         |---|---|---|---|---|---|---|\n",
        found.len(),
        errors[errors.len() / 2],
    );
    for m in &found {
        let (file, work, cpus) = (&m.file, &m.work, m.cpus);
        let Mutex { counted_ms, seen_ms, in_all_ms, .. } = m;
        let file = file.split('/').next_back().unwrap().split('.').next().unwrap();
        writeln!(
            made,
            "| `{file}` | `{work}` | {cpus} | {counted_ms:.0} | {seen_ms:.0} | {in_all_ms:.0} | \
             {:+.0} % |",
            off(m)
        )
        .unwrap();
    }
    is_written("docs/models.md", MARKS, &made);
}

/// Where docs/models.md has the figures.
const MARKS: (&str, &str) = (
    "<!-- time held against what programs counted: HOLDUP_BLESS=1 cargo test --test answers \
     held -->\n",
    "<!-- end of time held -->",
);
