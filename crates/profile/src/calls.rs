//! System calls by the code that makes them.

use crate::by_code::{Comms, Finder, Who, comms};
use crate::moments::{Actor, InCode, Watch};
use crate::own::Place;
use holdup_passes::{Analysis, Fact, Observer, Return, Slot, Threads};
use holdup_symbols::Options;
use holdup_trace::{Batch, Event, Nanos, TraceInfo};
use rustc_hash::FxHashMap;
use serde::Serialize;
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// Calls of one system call that one function of a program made.
#[derive(Clone, Debug, Default, PartialEq, Serialize, schemars::JsonSchema)]
pub struct CallRow {
    /// The innermost function that belongs to the program itself, not to a library or runtime;
    /// `null` if the call chain has none, or if the file of the function is not available.
    pub caller: Option<String>,
    /// File that contains the function.
    pub dso: Option<String>,
    /// The function of a library or runtime that the program's function called; `null` if it made
    /// the system call directly.
    pub through: Option<String>,
    /// Name of the thread that spent most time in these calls.
    pub comm: String,
    /// Process of the threads; `null` if there are several processes, or if it is unknown.
    pub pid: Option<u32>,
    /// Name of the system call, as in `syscalls`.
    pub name: String,
    /// Number of the system call.
    pub nr: u32,
    /// Number of calls that were seen to start and that returned in the trace.
    pub count: u64,
    /// Number of these calls that returned an error (a negative errno).
    pub errors: u64,
    /// Number of different threads that made these calls.
    pub threads: u64,
    /// Elapsed time of all calls from entry to return.
    pub total_ns: u64,
    /// Part of `total_ns` in which the thread was on a CPU, without interrupts.
    pub cpu_ns: u64,
    /// Part of `total_ns` in which the thread was asleep.
    pub blocked_ns: u64,
    /// Mean length of a call, rounded down.
    pub avg_ns: u64,
    /// Length of the longest call.
    pub max_ns: u64,
}

/// The chain, thread and number of a call.
type Key<T> = (Option<InCode>, T, u32);

/// The sum of calls.
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

/// Return values of failed calls: a negative errno.
const ERRORS: std::ops::RangeInclusive<i64> = -4095..=-1;

/// Sums system calls by the code that made them, while the trace is analysed. Calls of which only
/// the return was seen are skipped.
pub struct CallsByCode {
    watch: Watch,
    sums: FxHashMap<Key<Slot>, Sum>,
}

impl Observer for CallsByCode {
    fn events(&mut self, events: &[Event], batch: &Batch) {
        self.watch.see_all(events, batch);
    }

    fn fact(&mut self, fact: &Fact, threads: &Threads) {
        let Fact::Call(call) = fact else { return };
        let (Return { start, end, slot, nr, ret, .. }, Some(split)) = (*call, call.split) else {
            return;
        };
        let entered = self.watch.entered.last(Actor::of(&threads[slot]), start);
        let chain = entered.filter(|m| m.at == start).map(|m| m.code);
        self.sums.entry((chain, slot, nr)).or_default().add(&Sum {
            count: 1,
            errors: u64::from(ERRORS.contains(&ret)),
            total: end - start,
            running: split.running,
            blocked: split.blocked,
            max: end - start,
        });
    }
}

impl CallsByCode {
    /// An observer of a trace with call chains.
    pub fn new(info: &TraceInfo) -> CallsByCode {
        CallsByCode { watch: Watch::new(info, None), sums: FxHashMap::default() }
    }

    /// The calls by code, the most time first. Remarks on files of code come with the rows.
    pub fn rows(
        self,
        info: &TraceInfo,
        whole: &Analysis,
        places: Options,
    ) -> (Vec<CallRow>, Vec<String>) {
        let comms = comms(whole);
        let mut finder = Finder::new(info, self.watch.context.finish(), places);
        let mut groups: BTreeMap<(Place, u32), Group> = BTreeMap::new();
        for ((chain, slot, nr), sum) in self.sums {
            let thread = whole.thread(slot);
            if whole.wanted(thread) {
                let group = groups.entry((finder.place(chain), nr)).or_default();
                group.sum.add(&sum);
                group.who.add(thread.tid, chain, sum.total);
            }
        }
        let row = |((place, nr), group): ((Place, u32), Group)| {
            let name = whole.call_name(nr);
            group.row(place, nr, name, &comms)
        };
        let mut rows: Vec<CallRow> = groups.into_iter().map(row).collect();
        rows.sort_by_key(|r| Reverse(r.total_ns));
        (rows, finder.symbols.remarks())
    }
}

/// The calls of one place and number.
#[derive(Default)]
struct Group {
    sum: Sum,
    who: Who,
}

impl Group {
    fn row(self, place: Place, nr: u32, name: String, comms: &Comms) -> CallRow {
        let Sum { count, errors, total, running, blocked, max } = self.sum;
        CallRow {
            caller: place.caller,
            dso: place.dso,
            through: place.through,
            comm: self.who.comm(comms),
            pid: self.who.pid(),
            name,
            nr,
            count,
            errors,
            threads: self.who.threads(),
            total_ns: total,
            cpu_ns: running,
            blocked_ns: blocked,
            avg_ns: total.checked_div(count).unwrap_or(0),
            max_ns: max,
        }
    }
}
