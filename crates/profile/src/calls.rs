//! System calls by the code that makes them.

use crate::callers::longest;
use crate::moments::{InCode, Watch};
use crate::own::{Own, Place};
use holdup_passes::{Analysis, Fact, Judge, Return, each_fact_beside};
use holdup_symbols::{Options, Symbols};
use holdup_trace::{Batch, Event, Nanos, Pid, Reader, Result, Tid};
use rustc_hash::FxHashMap;
use serde::Serialize;
use std::cell::RefCell;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

/// Calls of one kind that one function makes.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CallRow {
    /// The innermost function that is the program's own, not of a library or runtime; `null` where
    /// the chain has none, or its file is not at hand.
    pub caller: Option<String>,
    /// The file it is in.
    pub dso: Option<String>,
    /// What it called: the function of a library or runtime, `null` if it went into the kernel
    /// itself.
    pub through: Option<String>,
    /// Name of the thread that spent most time in these calls.
    pub comm: String,
    /// Process of the threads; `null` if there are several, or not known.
    pub pid: Option<u32>,
    /// The call, as `syscalls` names it.
    pub name: String,
    /// Its number.
    pub nr: u32,
    /// Calls seen to start that returned in the trace.
    pub count: u64,
    /// Of these, calls that returned a negative errno.
    pub errors: u64,
    /// Different threads that called.
    pub threads: u64,
    /// Elapsed time from entry to return, summed.
    pub total_ns: u64,
    /// Of `total_ns`: running on a CPU, interrupts excluded.
    pub cpu_ns: u64,
    /// Of `total_ns`: asleep.
    pub blocked_ns: u64,
    /// Mean, rounded down.
    pub avg_ns: u64,
    /// Longest call.
    pub max_ns: u64,
}

/// The chain, thread and number of a call.
type Key = (Option<InCode>, Tid, u32);

/// What calls add up to.
#[derive(Clone, Copy, Default)]
struct Sum {
    count: u64,
    errors: u64,
    total: Nanos,
    running: Nanos,
    blocked: Nanos,
    max: Nanos,
}

impl Sum {
    fn add(&mut self, other: &Sum) {
        self.count += other.count;
        self.errors += other.errors;
        self.total += other.total;
        self.running += other.running;
        self.blocked += other.blocked;
        self.max = self.max.max(other.max);
    }
}

/// Read the trace of `whole` once more, and add its system calls up by the code that made them: the
/// most time first. Calls seen only to return are left out. Remarks on files of code come with the
/// rows.
///
/// # Errors
/// Whatever makes the rest of the trace unreadable.
pub fn calls(
    reader: &dyn Reader,
    whole: &Analysis,
    judge: &Judge,
    places: Options,
) -> Result<(Vec<CallRow>, Vec<String>)> {
    /// What a call returns that failed: a negative errno.
    const ERRORS: std::ops::RangeInclusive<i64> = -4095..=-1;
    let info = reader.info();
    let watch = RefCell::new(Watch::new(info, None));
    let mut sums: FxHashMap<Key, Sum> = FxHashMap::default();
    let mut take = |fact: &Fact| {
        if let Fact::Call(Return { start, end, slot, nr, ret, split: Some(split), .. }) = *fact {
            let thread = whole.thread(slot);
            let entered = watch.borrow_mut().entered.last(thread.tid, start);
            if whole.wanted(thread) {
                let chain = entered.filter(|m| m.at == start).map(|m| m.code);
                sums.entry((chain, thread.tid, nr)).or_default().add(&Sum {
                    count: 1,
                    errors: u64::from(ERRORS.contains(&ret)),
                    total: end - start,
                    running: split.running,
                    blocked: split.blocked,
                    max: end - start,
                });
            }
        }
        ControlFlow::Continue(())
    };
    let mut see = |events: &[Event], batch: &Batch| watch.borrow_mut().see_all(events, batch);
    each_fact_beside(reader, whole, judge, &mut see, &mut take)?;
    let comms: FxHashMap<Tid, String> =
        whole.all_threads().map(|(_, t)| (t.tid, whole.comm(t))).collect();
    let code = watch.into_inner().context.finish();
    let mut symbols = Symbols::new(info, code.kernel_text(&info.names), places);
    let own = Own::new();
    let mut known: FxHashMap<InCode, Place> = FxHashMap::default();
    let mut groups: BTreeMap<(Place, u32), Group> = BTreeMap::new();
    for ((chain, tid, nr), sum) in sums {
        let place = chain.map_or_else(Place::default, |(pid, id)| {
            let find = || own.place(code.chain(pid, id), &mut symbols);
            known.entry((pid, id)).or_insert_with(find).clone()
        });
        groups.entry((place, nr)).or_default().add(tid, chain.map(|c| c.0), &sum);
    }
    let row = |((place, nr), group): ((Place, u32), Group)| {
        let name = whole.call_name(nr);
        group.row(place, nr, name, &comms)
    };
    let mut rows: Vec<CallRow> = groups.into_iter().map(row).collect();
    rows.sort_by_key(|r| Reverse(r.total_ns));
    Ok((rows, symbols.remarks()))
}

/// The calls of one place and number.
#[derive(Default)]
struct Group {
    sum: Sum,
    threads: BTreeMap<Tid, Nanos>,
    pids: BTreeSet<Pid>,
}

impl Group {
    fn add(&mut self, tid: Tid, pid: Option<Pid>, sum: &Sum) {
        self.sum.add(sum);
        *self.threads.entry(tid).or_default() += sum.total;
        self.pids.insert(pid.unwrap_or(Pid::UNKNOWN));
    }

    fn row(self, place: Place, nr: u32, name: String, comms: &FxHashMap<Tid, String>) -> CallRow {
        let comm = longest(&self.threads).and_then(|tid| comms.get(tid)).cloned();
        let Sum { count, errors, total, running, blocked, max } = self.sum;
        CallRow {
            caller: place.caller,
            dso: place.dso,
            through: place.through,
            comm: comm.unwrap_or_default(),
            pid: match (self.pids.first(), self.pids.len()) {
                (Some(&pid), 1) if pid != Pid::UNKNOWN => Some(pid.0),
                _ => None,
            },
            name,
            nr,
            count,
            errors,
            threads: self.threads.len() as u64,
            total_ns: total,
            cpu_ns: running,
            blocked_ns: blocked,
            avg_ns: total.checked_div(count).unwrap_or(0),
            max_ns: max,
        }
    }
}
