//! `irqs` is `perf kwork report`: interrupt lines, softirqs and work items per CPU.
//!
//! perf prints a work item under the name its function has on the machine perf runs on, holdup
//! under the function's address: so perf's rows are recognised by CPU and the time of their longest
//! run, and must then be, to the last digit, what [`crate::oracle::raw`] makes of that item's
//! events; the items of a function must add up to holdup's row.

use crate::oracle::corpus::{Recording, perf_recordings};
use crate::oracle::perf::{self, KworkRow};
use crate::oracle::raw::{Raw, RunKey, Runs};
use crate::oracle::tally::Tally;
use holdup_testkit::needs;
use std::collections::{BTreeMap, BTreeSet};

#[needs(perf_6_1)]
#[test]
fn interrupts_per_cpu_are_what_perf_kwork_report_prints() {
    let mut tally = Tally::new("interrupts per CPU = perf kwork report");
    for file in perf_recordings() {
        compare(file, &mut tally);
    }
    tally.finish();
}

const KWORK: [&str; 5] = ["kwork", "-f", "-k", "irq,softirq,workqueue", "report"];

fn compare(file: &Recording, tally: &mut Tally) {
    let rows = perf::kwork_report(&perf::run(&KWORK, file).out);
    if rows.is_empty() {
        tally.count("files without interrupts perf can show", 1);
        return;
    }
    tally.count("files", 1);
    let raw = Raw::read(file);
    let analysis = file.analyze();

    // perf against the events.
    let mut left = raw.runs.clone();
    for p in &rows {
        tally.count("rows of perf", 1);
        let found = left
            .iter()
            .find(|(key, runs)| key.0 != 'v' && key.2 == p.cpu && named(p, key) && agrees(p, runs))
            .map(|(key, _)| *key);
        match found {
            Some(key) => drop(left.remove(&key)),
            None => tally.fail(format!(
                "{}: {p:?}, {:?}",
                file.name,
                raw.runs.iter().filter(|r| r.0.2 == p.cpu).collect::<Vec<_>>()
            )),
        }
    }
    // perf kwork does not know the events of vectors.
    for (key, runs) in left.into_iter().filter(|(key, _)| key.0 != 'v') {
        tally.fail(format!("{}: perf lacks {key:x?} {runs:?}", file.name));
    }

    // The events against holdup.
    let mut mine: BTreeMap<RunKey, Runs> = BTreeMap::new();
    // Of an item that had several functions nobody knows which run was of which, and perf pairs no
    // run that began on one CPU and ended on another.
    let odd = |(work, functions): &(&u64, &BTreeSet<u64>)| {
        functions.len() > 1 || raw.moved_items.contains(work)
    };
    let mixed: BTreeSet<u64> =
        raw.functions.iter().filter(odd).flat_map(|(_, functions)| functions).copied().collect();
    for (&(kind, id, cpu), runs) in &raw.runs {
        let function = || raw.functions.get(&id).and_then(|f| f.first()).copied().unwrap_or(0);
        let id = if kind == 'w' { function() } else { id };
        if kind == 'w' && mixed.contains(&id) {
            continue;
        }
        mine.entry((kind, id, cpu)).or_default().join(runs);
    }
    for h in analysis.irqs(true) {
        tally.count("rows of holdup", 1);
        let kind = if h.kind == "workqueue" { 'w' } else { h.kind.chars().next().expect("a kind") };
        if kind == 'w' && mixed.contains(&h.id) {
            tally.count("rows of work items that had several functions, or moved", 1);
            continue;
        }
        let key = (kind, h.id, h.cpu.expect("per CPU"));
        let runs = mine.remove(&key).or_else(|| mine.remove(&('v', key.1, key.2)));
        let same = runs.is_some_and(|r| {
            (h.count, h.total_ns, h.max_ns, h.avg_ns)
                == (r.count, r.total, r.max, r.total / r.count)
                && (h.max_start_ns == r.max_start || r.ties > 0)
        });
        tally.check(same, || format!("{}: {h:?}, {runs:?}", file.name));
    }
    for (key, runs) in mine {
        tally.fail(format!("{}: holdup lacks {key:x?} {runs:?}", file.name));
    }
}

/// Whether this row may be about that execution, going by the name.
fn named(p: &KworkRow, key: &RunKey) -> bool {
    match key.0 {
        's' => p.name.starts_with("(s)") && p.name.ends_with(&format!(":{}", key.1)),
        'w' => {
            p.name.starts_with("(w)")
                && p.name.strip_prefix("(w)0x").is_none_or(|hex| hex == format!("{:x}", key.1))
        }
        _ => !p.name.starts_with('(') && p.name.ends_with(&format!(":{}", key.1)),
    }
}

/// Every column. perf rounds spans and cuts times.
fn agrees(p: &KworkRow, r: &Runs) -> bool {
    p.count == r.count
        && p.total.is_ms(r.total as f64)
        && p.max.is_ms(r.max as f64)
        && p.max_start.is_seconds_cut(r.max_start)
        && p.max_end.is_seconds_cut(r.max_end)
}
