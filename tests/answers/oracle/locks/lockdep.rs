//! `locks --events lockdep` against `perf lock report`.

use super::events::{Kind, Raw, script};
use super::printed::{Scaled, tables};
use crate::oracle::corpus;
use crate::oracle::tally::Tally;
use holdup_passes::{LockBy, LockRow, LockSource};
use holdup_testkit::needs;
use std::collections::BTreeMap;

/// perf's state of a lock and thread, and its row of a lock (`perf lock report`).
#[derive(Clone, Copy, PartialEq, Debug, Default)]
enum State {
    #[default]
    Unknown,
    Acquiring,
    Acquired,
    ReadAcquired(u32),
    Contended,
}

#[derive(Clone, Debug, Default)]
struct Report {
    name: String,
    acquired: u64,
    contended: u64,
    total: u64,
    min: u64,
    max: u64,
    /// perf lost the thread somewhere, or never sees what happens to such locks.
    unlike: bool,
}

/// perf 6.1's rules, word for word: reading or trying counts as acquired at once and can neither
/// be contended nor acquired afterwards; what does not fit drops the thread's state.
fn perf_report(events: &[Raw]) -> BTreeMap<u64, Report> {
    let mut states: BTreeMap<(i64, u64), (State, u64)> = BTreeMap::new();
    let mut rows: BTreeMap<u64, Report> = BTreeMap::new();
    for e in events {
        let row =
            rows.entry(e.lock).or_insert_with(|| Report { min: u64::MAX, ..Report::default() });
        if row.name.is_empty() {
            row.name = if matches!(e.kind, Kind::Begin | Kind::End) {
                "Unknown".to_owned()
            } else {
                e.class.clone()
            };
        }
        let slot = states.entry((e.tid, e.lock)).or_default();
        let wait = |row: &mut Report, since: u64| {
            let ns = e.ts - since;
            row.total += ns;
            row.min = row.min.min(ns);
            row.max = row.max.max(ns);
        };
        let mut broken = false;
        match (&e.kind, slot.0) {
            (Kind::Acquire { flags: 0 }, State::Unknown) => *slot = (State::Acquiring, e.ts),
            (Kind::Acquire { .. }, State::Unknown) => {
                row.unlike = true;
                *slot = (State::ReadAcquired(1), e.ts);
                row.acquired += 1;
            }
            (Kind::Acquire { flags }, State::ReadAcquired(n)) if flags & 2 != 0 => {
                slot.0 = State::ReadAcquired(n + 1);
                row.acquired += 1;
            }
            (Kind::Acquire { .. }, _) => broken = true,
            (Kind::Contended, State::Acquiring) => {
                *slot = (State::Contended, e.ts);
                row.contended += 1;
            }
            (Kind::Acquired, State::Acquiring) => {
                *slot = (State::Acquired, e.ts);
                row.acquired += 1;
            }
            (Kind::Acquired, State::Contended) => {
                wait(row, slot.1);
                *slot = (State::Acquired, e.ts);
                row.acquired += 1;
            }
            (Kind::Contended | Kind::Acquired, State::Unknown) => row.unlike = true,
            (Kind::Contended | Kind::Acquired, _) => broken = true,
            (Kind::Release, State::Unknown) => {}
            (Kind::Release, State::Acquired) => {
                states.remove(&(e.tid, e.lock));
            }
            (Kind::Release, State::ReadAcquired(n)) => {
                if n > 1 {
                    slot.0 = State::ReadAcquired(n - 1);
                } else {
                    states.remove(&(e.tid, e.lock));
                }
            }
            (Kind::Release, _) => broken = true,
            (Kind::Begin, State::Unknown | State::Acquired) => {
                *slot = (State::Contended, e.ts);
                row.contended += 1;
                row.unlike = true;
            }
            (Kind::Begin, State::Contended) => {}
            (Kind::End, State::Contended) => {
                wait(row, slot.1);
                *slot = (State::Acquired, e.ts);
                row.acquired += 1;
            }
            (Kind::End, State::Unknown) => {}
            (Kind::Begin | Kind::End, _) => broken = true,
        }
        if broken {
            row.unlike = true;
            states.remove(&(e.tid, e.lock));
        }
    }
    rows
}

#[needs(perf_6_1, corpus)]
#[test]
fn lockdep_traces_equal_perf_lock_report() {
    const CLAIM: &str = "locks --events lockdep = perf lock report";
    let mut tally = Tally::new(CLAIM);
    for file in corpus::perf_recordings() {
        let Ok(reader) = holdup_open::open(&file.path) else { continue };
        if !reader.info().capabilities.lockdep {
            continue;
        }
        let a = file.analyze();
        let events = script(file);
        let by_rule = perf_report(&events);
        // What perf prints carries no address: its rows must be those of its rule, in any order.
        let printed = tables(&["lock", "report"], file);
        let mut printed: Vec<(String, u64, u64, [Scaled; 4])> =
            printed.lines().filter_map(report_row).collect();
        tally.count("files", 1);
        for r in by_rule.values().filter(|r| r.acquired > 0) {
            tally.count("rows", 1);
            let name = if r.name.chars().count() < 20 {
                r.name.clone()
            } else {
                format!("{}...", r.name.chars().take(16).collect::<String>())
            };
            let avg = r.total.checked_div(r.contended).unwrap_or(0);
            let min = if r.min == u64::MAX { 0 } else { r.min };
            let found = printed.iter().position(|(n, acquired, contended, t)| {
                *n == name
                    && (*acquired, *contended) == (r.acquired, r.contended)
                    && t[0].is(avg)
                    && t[1].is(r.total)
                    && t[2].is(r.max)
                    && t[3].is(min)
            });
            match found {
                Some(at) => drop(printed.remove(at)),
                None => tally.fail(format!("{}: perf does not print {r:?}", file.name)),
            }
        }
        tally.check(printed.is_empty(), || format!("{}: rows left over: {printed:?}", file.name));
        // Where perf's rule sees everything, holdup has the same figures.
        let mine: BTreeMap<u64, LockRow> = a
            .locks_from(LockBy::Lock, LockSource::Lockdep)
            .into_iter()
            .filter_map(|r| Some((r.address??, r)))
            .collect();
        for (lock, r) in &by_rule {
            if r.name == "Unknown" && !mine.contains_key(lock) {
                tally.count("locks of contention events", 1);
                continue;
            }
            if r.unlike {
                tally.exception(
                    "readers, trylocks and locks without lock_acquired: perf drops what follows \
                     lock_acquire",
                );
                continue;
            }
            let Some(m) = mine.get(lock) else {
                tally.check(r.acquired + r.contended == 0, || {
                    format!("{}: holdup has no {lock:x} {r:?}", file.name)
                });
                continue;
            };
            tally.count("locks compared", 1);
            let min = if r.min == u64::MAX { None } else { Some(r.min) };
            let same = (
                m.acquired,
                m.contended,
                m.wait_total_ns,
                m.wait_min_ns,
                m.wait_max_ns.unwrap_or(0),
            ) == (Some(r.acquired), Some(r.contended), Some(r.total), min, r.max);
            tally.check(same, || format!("{}: {lock:x} {r:?}, holdup {m:?}", file.name));
        }
    }
    tally.finish();
}

/// `  &base->lock       1409          1     78.63 ms     78.63 ms     78.63 ms     78.63 ms`
fn report_row(line: &str) -> Option<(String, u64, u64, [Scaled; 4])> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let at = words.len().checked_sub(10)?;
    let n = |i: usize| words[at + i].parse().ok();
    let t = |i: usize| Scaled::parse(words[at + i], words[at + i + 1]);
    let name = words[..at].join(" ");
    (!name.is_empty()).then_some((name, n(0)?, n(1)?, [t(2)?, t(4)?, t(6)?, t(8)?]))
}
