//! `syscalls --by thread` is `perf trace -s`: per thread and call, every figure to the last digit.
//!
//! Exceptions, each proven row by row by [`crate::raw`]:
//! * a return whose entry was not recorded: perf measures it from the thread's last entry, of a
//!   call that has long returned; holdup counts it with length 0 (`returned_only`);
//! * `rt_sigreturn` returns with number -1, and perf drops what has no number; holdup counts it
//!   under the number it was entered with.

use crate::corpus::{Recording, perf_recordings};
use crate::perf::{self, TraceRow};
use crate::raw::{Calls, Raw};
use crate::tally::Tally;
use holdup_passes::{Group, SyscallRow};
use std::collections::BTreeMap;

#[test]
fn syscalls_by_thread_are_what_perf_trace_s_prints() {
    if !perf::present("syscalls by thread") {
        return;
    }
    let mut tally = Tally::new("syscalls by thread = perf trace -s");
    for file in perf_recordings() {
        compare(file, &mut tally);
    }
    tally.finish();
}

fn compare(file: &Recording, tally: &mut Tally) {
    let threads = perf::trace_summary(&perf::run(&["trace", "-s", "-f"], file).err);
    if threads.is_empty() {
        tally.count("files without calls perf can show", 1);
        return;
    }
    tally.count("files", 1);
    let raw = Raw::read(file);
    let analysis = file.analyze();
    let mut mine: BTreeMap<(i64, String), SyscallRow> = BTreeMap::new();
    for r in analysis.syscalls(Group::Thread) {
        let key = (r.tid.expect("grouped by thread") as i64, r.name.clone());
        if r.count > 0
            && let Some(other) = mine.insert(key, r)
        {
            tally.fail(format!("{}: two threads with id {:?} call {}", file.name, other.tid, other.name));
        }
    }
    for t in &threads {
        tally.count("threads", 1);
        for p in &t.rows {
            tally.count("rows", 1);
            let at = format!("{}: {} ({}) {}", file.name, t.comm, t.tid, p.name);
            let Some(h) = mine.remove(&(t.tid, p.name.clone())) else {
                tally.fail(format!("{at}: perf alone has it: {p:?}"));
                continue;
            };
            tally.check(h.comm.as_ref() == Some(&t.comm), || format!("{at}: holdup calls the thread {:?}", h.comm));
            if agrees(p, &figures(&h)) {
                continue;
            }
            let row = raw.calls.get(&(t.tid, h.nr)).copied().unwrap_or_default();
            if row.stale > 0 && agrees(p, &row.perf) && figures(&h) == row.right {
                tally.exception("rows with a return that perf measures from an earlier call's entry");
            } else {
                tally.fail(format!("{at}: {p:?}, {h:?}, {row:?}"));
            }
        }
    }
    for ((tid, name), h) in mine {
        let row = raw.calls.get(&(tid, h.nr)).copied().unwrap_or_default();
        if row.unnumbered == h.count && row.perf.count == 0 && figures(&h) == row.right {
            tally.exception("rows of calls that return with number -1, which perf drops");
        } else {
            tally.fail(format!("{}: {tid} {name}: holdup alone has it: {h:?}, {row:?}", file.name));
        }
    }
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
