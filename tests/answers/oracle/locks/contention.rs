//! `locks` against `perf lock contention`, and by lock against a plain computation.

use super::events::{Raw, report, script};
use super::printed::{Row, contention, row, tables};
use super::sums::{Merged, differences, ours, plain, shows, tid_of};
use super::symbols::symbols;
use crate::oracle::corpus::{self, Recording};
use crate::oracle::tally::Tally;
use holdup_passes::{Analysis, LockBy, LockSource, Options};
use holdup_testkit::needs;
use std::collections::{BTreeMap, BTreeSet};

/// perf cannot read the lock events of these.
fn has_contention(a: &Analysis) -> bool {
    a.locks_from(LockBy::Type, LockSource::Contention).iter().any(|r| r.contended.unwrap_or(0) > 0)
}

#[needs(perf_6_1)]
#[test]
fn locks_by_task_equal_perf_lock_contention_t() {
    const CLAIM: &str = "locks --by task = perf lock contention -t";
    let mut tally = Tally::new(CLAIM);
    for file in corpus::perf_recordings() {
        let Ok(reader) = holdup_open::open(&file.path) else { continue };
        let Ok(a) = holdup_attribution::analyze(&*reader, &Options::default()) else { continue };
        if !has_contention(&a) {
            continue;
        }
        let theirs = contention(file, &["-t"]);
        if theirs.is_empty() {
            tally.count("files perf prints nothing for", 1);
            continue;
        }
        tally.count("files", 1);
        let events = script(file);
        let by_rule = plain(&events, false, |e| e.tid);
        let right = plain(&events, true, |e| e.tid);
        let mine = ours(&a, LockBy::Task, LockSource::Contention, tid_of);
        for d in differences(&mine, &right) {
            tally.fail(format!("{}: {d}", file.name));
        }
        let names: BTreeMap<i64, String> = a
            .locks_from(LockBy::Task, LockSource::Contention)
            .into_iter()
            .map(|r| (tid_of(&r), r.comm.unwrap()))
            .collect();
        tally.check(theirs.len() == by_rule.values().filter(|s| s.total > 0).count(), || {
            format!("{}: perf prints {} rows", file.name, theirs.len())
        });
        for row in &theirs {
            let tid: i64 = row.first.parse().unwrap();
            tally.count("rows", 1);
            tally.count("figures", 5);
            if by_rule.get(&tid) != right.get(&tid) {
                tally.exception("perf takes the idle tasks of all CPUs for one thread");
            }
            tally.check(by_rule.get(&tid).is_some_and(|s| shows(row, s)), || {
                format!("{}: {row:?}, holdup {:?}", file.name, mine.get(&tid))
            });
            // perf lock reads names from PERF_RECORD_COMM only, holdup from scheduler events too.
            let name = names.get(&tid).map_or("", String::as_str);
            if row.last == format!(":{tid}") || row.last != name && row.last.starts_with(name) {
                tally
                    .exception("perf has no name, or an older one, where scheduler events tell it");
                continue;
            }
            tally.check(name == row.last, || format!("{}: {row:?}, name {name:?}", file.name));
        }
    }
    tally.finish();
}

#[needs(perf_6_1)]
#[test]
fn locks_by_caller_equal_perf_lock_contention() {
    const CLAIM: &str = "locks --by caller = perf lock contention";
    let mut tally = Tally::new(CLAIM);
    for file in corpus::perf_recordings() {
        let symbols = symbols(file);
        let Ok(reader) = holdup_open::open(&file.path) else { continue };
        let options =
            Options { symbols: symbols.as_ref().map(|s| s.table.clone()), ..Options::default() };
        let Ok(a) = holdup_attribution::analyze(&*reader, &options) else { continue };
        if !has_contention(&a) {
            continue;
        }
        // perf's own choice leaves out three frames; holdup looks for the first frame that counts.
        let cache =
            symbols.as_ref().and_then(|s| s.cache.as_ref()).map(|c| c.display().to_string());
        let perf = |options: &[&str]| match &cache {
            Some(cache) => {
                let fields = ["-F", "contended,wait_total,wait_max,wait_min,avg_wait"];
                let verb =
                    [&["--buildid-dir", cache, "lock", "contention"], options, &fields].concat();
                tables(&verb, file).lines().filter_map(row).collect::<Vec<Row>>()
            }
            None => contention(file, options),
        };
        let known = a.capabilities.stacks && symbols.is_some();
        let theirs = if known { perf(&["--stack-skip", "0"]) } else { perf(&[]) };
        if theirs.is_empty() {
            tally.count("files perf prints nothing for", 1);
            continue;
        }
        tally.count("files", 1);
        let rows = a.locks_from(LockBy::Caller, LockSource::Contention);
        if !a.capabilities.stacks {
            // One row for all, of the type of the first wait.
            tally.count("rows", 1);
            let all = ours(&a, LockBy::Caller, LockSource::Contention, |_| ());
            let one = theirs.len() == 1 && theirs[0].last == "Unknown";
            if one && !shows(&theirs[0], &all[&()]) {
                // The idle tasks again; the other claims show that these sums are right.
                let events = script(file);
                let merged = plain(&events, false, |_| ());
                tally.exception("perf takes the idle tasks of all CPUs for one thread");
                tally.check(shows(&theirs[0], &merged[&()]), || {
                    format!("{}: {theirs:?}, holdup {all:?}", file.name)
                });
                continue;
            }
            tally.check(one, || format!("{}: {theirs:?}, holdup {all:?}", file.name));
            tally.check(rows.iter().all(|r| r.caller == Some(None)), || {
                format!("{}: callers from nowhere", file.name)
            });
            continue;
        }
        // perf keeps a row per call chain: add up those of one caller. Without names it does not
        // know which frames are locks' own, leaves out three, and joins what is alike beyond them
        // under the type of the first wait: then only the sums of all are comparable.
        let key = |kind: &str, caller: &str| match known {
            true => (kind.to_owned(), caller.to_owned()),
            false => Default::default(),
        };
        let mine = ours(&a, LockBy::Caller, LockSource::Contention, |r| {
            key(
                r.lock_type.as_ref().unwrap().as_deref().unwrap(),
                r.caller.as_ref().unwrap().as_deref().unwrap_or("Unknown"),
            )
        });
        let mut merged: BTreeMap<(String, String), Merged> = BTreeMap::new();
        for r in &theirs {
            let m = merged.entry(key(&r.first, &r.last)).or_insert((0, 0.0, 0.0, 0.0, f64::MAX));
            m.0 += r.contended;
            m.1 += r.total.value * r.total.unit;
            m.2 += r.total.step / 2.0 + 1.0;
            m.3 = m.3.max(r.max.value * r.max.unit);
            m.4 = m.4.min(r.min.value * r.min.unit);
        }
        tally.count(
            if known { "files with callers by name" } else { "files with callers without names" },
            1,
        );
        for (key, m) in &merged {
            tally.count("rows", 1);
            let near = |a: f64, b: u64, slack: f64| (a - b as f64).abs() <= slack + b as f64 * 5e-3;
            let same = mine.get(key).is_some_and(|s| {
                s.begun == m.0
                    && near(m.1, s.total, m.2)
                    && near(m.3, s.max, 10.0)
                    && near(m.4, s.min, 10.0)
            });
            tally.check(same, || {
                format!("{}: {key:?}: perf {m:?}, holdup {:?}", file.name, mine.get(key))
            });
        }
        let extra = mine.iter().filter(|(k, s)| s.total > 0 && !merged.contains_key(*k)).count();
        tally.check(extra == 0, || {
            format!(
                "{}: {extra} callers perf does not have: {:?}",
                file.name,
                mine.keys().filter(|k| !merged.contains_key(*k)).collect::<Vec<_>>()
            )
        });
    }
    tally.finish();
}

/// Every lock's waits are those of the events the other tool prints of such a file.
fn by_lock(claim: &'static str, format: &str, events: fn(&Recording) -> Vec<Raw>) {
    let mut tally = Tally::new(claim);
    for file in corpus::all_files() {
        let Ok(reader) = holdup_open::open(&file.path) else { continue };
        if !reader.info().format.starts_with(format) {
            continue;
        }
        let Ok(a) = holdup_attribution::analyze(&*reader, &Options::default()) else { continue };
        if !has_contention(&a) {
            continue;
        }
        let events = events(&file);
        if events.is_empty() {
            tally.count("files the other tool prints nothing for", 1);
            eprintln!("{}: nothing printed", file.name);
            continue;
        }
        tally.count("files", 1);
        let theirs = plain(&events, true, |e| e.lock);
        let mine = ours(&a, LockBy::Lock, LockSource::Contention, |r| r.address.unwrap().unwrap());
        tally.count("locks", mine.len() as u64);
        tally.count("waits", mine.values().map(|s| s.begun).sum());
        for d in differences(&mine, &theirs) {
            tally.fail(format!("{}: {d}", file.name));
        }
    }
    tally.finish();
}

#[needs(perf)]
#[test]
fn locks_by_lock_are_the_events_that_perf_script_prints() {
    by_lock("locks --by lock = events of perf script", "perf.data", script);
}

#[needs(trace_cmd)]
#[test]
fn locks_by_lock_are_the_events_that_trace_cmd_prints() {
    by_lock("locks --by lock = events of trace-cmd report", "trace.dat", report);
}

#[test]
fn waits_are_spinning_ready_or_asleep() {
    let mut tally = Tally::new("wait = spin + runnable + blocked");
    for file in corpus::all_files() {
        let Ok(reader) = holdup_open::open(&file.path) else { continue };
        let Ok(a) = holdup_attribution::analyze(&*reader, &Options::default()) else { continue };
        if !a.sees_locks() {
            continue;
        }
        tally.count("traces", 1);
        let mut totals = BTreeSet::new();
        for by in [LockBy::Lock, LockBy::Class, LockBy::Caller, LockBy::Type, LockBy::Task] {
            let rows = a.locks_from(by, LockSource::Contention);
            totals.insert((
                rows.iter().map(|r| r.contended.unwrap()).sum::<u64>(),
                rows.iter().map(|r| r.wait_total_ns.unwrap()).sum::<u64>(),
            ));
            for r in rows {
                tally.count("rows", 1);
                if let (Some(spin), Some(runnable), Some(block)) =
                    (r.spin_ns, r.runnable_ns, r.block_ns)
                {
                    tally.check(spin + runnable + block == r.wait_total_ns.unwrap(), || {
                        format!("{}: {r:?}", file.name)
                    });
                }
                tally.check(
                    r.wait_p99_ns >= r.wait_p50_ns && r.wait_max_ns >= r.wait_p99_ns,
                    || format!("{}: {r:?}", file.name),
                );
            }
        }
        tally.check(totals.len() == 1, || format!("{}: groupings differ: {totals:?}", file.name));
        // While its CPU is stolen a thread spins by perf's clock, not by the ledger.
        let ledger = holdup_attribution::Attribution::from(&a).ledger;
        let busy = ledger.total(holdup_attribution::Total::Kernel)
            + ledger.ns(holdup_attribution::Leaf::Stolen);
        tally.check(a.lock_spin_ns() <= busy || !a.capabilities.syscalls.are_any(), || {
            format!("{}: spinning exceeds kernel time", file.name)
        });
    }
    tally.finish();
}
