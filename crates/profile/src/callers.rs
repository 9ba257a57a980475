//! Waits by the code that waits.

use crate::by_code::{Comms, Finder, Who, comms, longest, symbols};
use crate::context::CodeTable;
use crate::moments::{Actor, InCode, Watch};
use crate::names::label;
use crate::own::Place;
use crate::stacks::word;
use holdup_passes::{Analysis, Fact, Object, Observer, Slot, Threads};
use holdup_symbols::{Named, Options};
use holdup_trace::{Batch, Event, Nanos, Tid, TraceInfo};
use rustc_hash::FxHashMap;
use serde::Serialize;
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// Waits that begin in one function of a program.
#[derive(Clone, Debug, Default, PartialEq, Serialize, schemars::JsonSchema)]
pub struct CallerRow {
    /// The innermost function that belongs to the program itself, not to a library or runtime;
    /// `null` if the call chain has none, or if the file of the function is not available.
    pub caller: Option<String>,
    /// File that contains the function.
    pub dso: Option<String>,
    /// The function of a library or runtime that the program's function called; `null` if it made
    /// the system call directly.
    pub through: Option<String>,
    /// Name of the thread that waited longest.
    pub comm: String,
    /// Process of the threads; `null` if there are several processes, or if it is unknown.
    pub pid: Option<u32>,
    /// The object that threads waited for longest, in words.
    pub object: String,
    /// Number of different objects that threads waited for.
    pub objects: u64,
    /// Number of times a thread went to sleep.
    pub waits: u64,
    /// Number of different threads that waited.
    pub waiters: u64,
    /// Time asleep, summed over the threads.
    pub wait_total_ns: u64,
    /// Mean time asleep in one wait.
    pub wait_avg_ns: u64,
    /// Longest time asleep in one wait.
    pub wait_max_ns: u64,
}

/// The chain, thread and object of a wait. While the trace is read, objects have the numbers of
/// that time.
type Key<T> = (Option<InCode>, T, Object);

/// The sum of the waits of one thread, chain and object.
#[derive(Clone, Copy, Default)]
struct Sum {
    waits: u64,
    total: Nanos,
    max: Nanos,
}

impl Sum {
    fn add(&mut self, other: &Sum) {
        self.waits += other.waits;
        self.total += other.total;
        self.max = self.max.max(other.max);
    }
}

/// Sums waits by the code that went to sleep, while the trace is analysed.
pub struct WaitsByCode {
    watch: Watch,
    sums: FxHashMap<Key<Slot>, Sum>,
}

impl Observer for WaitsByCode {
    fn events(&mut self, events: &[Event], batch: &Batch) {
        self.watch.see_all(events, batch);
    }

    fn fact(&mut self, fact: &Fact, threads: &Threads) {
        let Fact::Wait(wait) = fact else { return };
        let left = self.watch.left.last(Actor::of(&threads[wait.slot]), wait.start);
        let left = left.filter(|m| m.at == wait.start).map(|m| m.code);
        let ns = wait.end - wait.start;
        let sum = self.sums.entry((left, wait.slot, wait.object)).or_default();
        sum.add(&Sum { waits: 1, total: ns, max: ns });
    }
}

impl WaitsByCode {
    /// An observer of a trace with call chains.
    pub fn new(info: &TraceInfo) -> WaitsByCode {
        WaitsByCode { watch: Watch::new(info, None), sums: FxHashMap::default() }
    }

    /// The waits by code, the most time first. `words` gives the names of objects. Remarks on files
    /// of code come with the rows.
    pub fn rows(
        self,
        info: &TraceInfo,
        whole: &Analysis,
        words: &BTreeMap<Object, String>,
        places: Options,
    ) -> (Vec<CallerRow>, Vec<String>) {
        let Slept { sums, comms, code } = self.finish(whole);
        let mut finder = Finder::new(info, code, places);
        let mut groups: BTreeMap<Place, Group> = BTreeMap::new();
        for ((chain, tid, object), sum) in sums {
            groups.entry(finder.place(chain)).or_default().add(tid, chain, object, sum);
        }
        let mut rows: Vec<CallerRow> =
            groups.into_iter().map(|(place, group)| group.row(place, &comms, words)).collect();
        rows.sort_by_key(|r| Reverse(r.wait_total_ns));
        (rows, finder.symbols.remarks())
    }

    /// The same sleeps by whole call chains, for flame graphs of time asleep: one line for each
    /// thread name and chain, with the functions from the outermost on and nanoseconds, in the form
    /// of [`crate::folded`]. Remarks on files of code come with the lines.
    pub fn folded(
        self,
        info: &TraceInfo,
        whole: &Analysis,
        places: Options,
    ) -> (String, Vec<String>) {
        let Slept { sums, comms, code } = self.finish(whole);
        let mut symbols = symbols(info, &code, places);
        let mut lines: BTreeMap<String, Nanos> = BTreeMap::new();
        for ((chain, tid, _), sum) in sums {
            let comm = comms.get(&tid).map_or("", String::as_str);
            let mut line = word(&comm.replace(' ', "_"));
            match chain {
                Some((pid, id)) => {
                    for code in code.chain(pid, id).rev() {
                        line.push(';');
                        let Named { dso, function } = symbols.name(&code);
                        line += &word(&label(&function, &dso));
                    }
                }
                None => line.push_str(";[unknown]"),
            }
            *lines.entry(line).or_default() += sum.total;
        }
        let lines = lines.iter().map(|(line, ns)| format!("{line} {ns}\n")).collect();
        (lines, symbols.remarks())
    }

    fn finish(self, whole: &Analysis) -> Slept {
        let mut sums: FxHashMap<Key<Tid>, Sum> = FxHashMap::default();
        for ((chain, slot, object), sum) in self.sums {
            let thread = whole.thread(slot);
            if whole.wanted(thread) {
                let key = (chain, thread.tid, whole.final_object(object));
                sums.entry(key).or_default().add(&sum);
            }
        }
        Slept { sums, comms: comms(whole), code: self.watch.context.finish() }
    }
}

/// Sums of the sleeps of the wanted threads.
struct Slept {
    sums: FxHashMap<Key<Tid>, Sum>,
    comms: Comms,
    code: CodeTable,
}

/// The waits of one place.
#[derive(Default)]
struct Group {
    sum: Sum,
    who: Who,
    objects: BTreeMap<Object, Nanos>,
}

impl Group {
    fn add(&mut self, tid: Tid, chain: Option<InCode>, object: Object, sum: Sum) {
        self.sum.add(&sum);
        self.who.add(tid, chain, sum.total);
        *self.objects.entry(object).or_default() += sum.total;
    }

    fn row(self, place: Place, comms: &Comms, words: &BTreeMap<Object, String>) -> CallerRow {
        CallerRow {
            caller: place.caller,
            dso: place.dso,
            through: place.through,
            comm: self.who.comm(comms),
            pid: self.who.pid(),
            object: longest(&self.objects).and_then(|o| words.get(o)).cloned().unwrap_or_default(),
            objects: self.objects.len() as u64,
            waits: self.sum.waits,
            waiters: self.who.threads(),
            wait_total_ns: self.sum.total,
            wait_avg_ns: self.sum.total.checked_div(self.sum.waits).unwrap_or(0),
            wait_max_ns: self.sum.max,
        }
    }
}
