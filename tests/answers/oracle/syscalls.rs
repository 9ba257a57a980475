//! `syscalls --by thread` is `perf trace -s`: per thread and call, every figure to the last digit.
//!
//! Exceptions, each proven row by row by [`crate::oracle::raw`]:
//! * a return whose entry was not recorded: perf measures it from the thread's last entry, of a
//!   call that has long returned; holdup counts it with length 0 (`returned_only`);
//! * a new thread returns from the call that made it, which it never entered: perf takes that for a
//!   call of its own, of no length or measured as above; holdup counts the parent's call alone;
//! * `rt_sigreturn` returns with number -1, and perf drops what has no number; holdup counts it
//!   under the number it was entered with.

use crate::oracle::corpus::{Recording, perf_recordings};
use crate::oracle::perf::{self, TraceRow};
use crate::oracle::raw::{Calls, Raw};
use crate::oracle::tally::Tally;
use holdup_passes::{Group, SyscallRow};
use holdup_testkit::needs;
use std::collections::BTreeMap;

#[needs(perf_6_1)]
#[test]
fn syscalls_by_thread_are_what_perf_trace_s_prints() {
    let mut tally = Tally::new("syscalls by thread = perf trace -s");
    for file in perf_recordings() {
        compare(file, &mut tally);
    }
    tally.finish();
}

fn compare(file: &Recording, tally: &mut Tally) {
    let raw = Raw::read(file);
    let threads = perf::trace_summary(&perf::run(&["trace", "-s", "-f"], file).err);
    if threads.is_empty() {
        let none = raw.piped || raw.calls.is_empty();
        tally.check(none, || format!("{}: perf prints nothing", file.name));
        tally.count("files without calls, or piped", 1);
        return;
    }
    tally.count("files", 1);
    let mut mine = by_thread(file, tally);
    for t in &threads {
        tally.count("threads", 1);
        for p in &t.rows {
            tally.count("rows", 1);
            let at = format!("{}: {} ({}) {}", file.name, t.comm, t.tid, p.name);
            let Some(h) = mine.remove(&(t.tid, p.name.clone())) else {
                let born = raw.calls.iter().any(|(key, row)| {
                    key.0 == t.tid
                        && row.born > 0
                        && row.right.count == 0
                        && agrees(p, &row.perf)
                        && raw.begets.get(&key.1) == Some(&p.name.as_str())
                });
                if born {
                    tally.exception("rows of nothing but a new thread's return from its making");
                } else {
                    tally.fail(format!("{at}: perf alone has it: {p:?}"));
                }
                continue;
            };
            tally.check(h.comm.as_ref() == Some(&t.comm), || {
                format!("{at}: holdup calls the thread {:?}", h.comm)
            });
            if agrees(p, &figures(&h)) {
                continue;
            }
            match raw.calls.get(&(t.tid, h.nr)) {
                Some(row) if row.stale > 0 && agrees(p, &row.perf) && figures(&h) == row.right => {
                    tally.exception(
                        "rows with a return that perf measures from an earlier call's entry",
                    );
                }
                Some(row) if row.born > 0 && agrees(p, &row.perf) && figures(&h) == row.right => {
                    tally.exception("rows with a new thread's return from its making");
                }
                row => tally.fail(format!("{at}: {p:?}, {h:?}, {row:?}")),
            }
        }
    }
    for ((tid, name), h) in mine {
        match raw.calls.get(&(tid, h.nr)) {
            Some(row)
                if row.unnumbered == h.count && row.perf.count == 0 && figures(&h) == row.right =>
            {
                tally.exception("rows of calls that return with number -1, which perf drops");
            }
            row => tally
                .fail(format!("{}: {tid} {name}: holdup alone has it: {h:?}, {row:?}", file.name)),
        }
    }
}

/// holdup's rows of calls that returned; a thread id must not have two.
fn by_thread(file: &Recording, tally: &mut Tally) -> BTreeMap<(i64, String), SyscallRow> {
    let mut rows = BTreeMap::new();
    for r in file.analyze().syscalls(Group::Thread) {
        let key = (r.tid.expect("grouped by thread") as i64, r.name.clone());
        if r.count > 0
            && let Some(other) = rows.insert(key, r)
        {
            tally.fail(format!(
                "{}: two threads with id {:?} call {}",
                file.name, other.tid, other.name
            ));
        }
    }
    rows
}

#[test]
fn syscalls_by_thread_are_what_the_events_come_to_and_percentiles_lie_within_a_sixteenth() {
    let mut tally = Tally::new("syscalls by thread = the events");
    for file in perf_recordings() {
        let raw = Raw::read(file);
        if raw.calls.is_empty() {
            continue;
        }
        tally.count("files", 1);
        for (key, h) in by_thread(file, &mut tally) {
            tally.count("rows", 1);
            let row = raw.calls.get(&(key.0, h.nr)).cloned().unwrap_or_default();
            tally.check(figures(&h) == row.right, || {
                format!("{}: {key:?}: {h:?}, {row:?}", file.name)
            });
            let mut lengths = row.lengths;
            lengths.sort_unstable();
            for (per_cent, found) in [(50, h.p50_ns), (99, h.p99_ns)] {
                let rank = (lengths.len() * per_cent).div_ceil(100);
                let exact = rank.checked_sub(1).map(|i| lengths[i]);
                let close = match (found, exact) {
                    (Some(found), Some(exact)) => found.abs_diff(exact) * 16 <= exact,
                    (found, exact) => found == exact,
                };
                tally.count("percentiles", 1);
                tally.check(close, || {
                    format!("{}: {key:?}: {per_cent} %: {found:?}, truly {exact:?}", file.name)
                });
            }
        }
    }
    tally.finish();
}

fn figures(h: &SyscallRow) -> Calls {
    Calls { count: h.count, errors: h.errors, total: h.total_ns, min: h.min_ns, max: h.max_ns }
}

fn agrees(p: &TraceRow, c: &Calls) -> bool {
    // perf's total is calls times the mean, its mean a running one.
    p.calls == c.count
        && p.errors == c.errors
        && p.total.is_ms(c.total as f64)
        && p.min.is_ms(c.min as f64)
        && p.avg.is_ms(c.total as f64 / c.count as f64)
        && p.max.is_ms(c.max as f64)
}
