//! Waits by the code that waits.

use crate::by_code::{Comms, Finder, Who, longest, read, symbols};
use crate::context::CodeTable;
use crate::moments::{Actor, InCode};
use crate::names::label;
use crate::own::Place;
use crate::stacks::word;
use holdup_passes::{Analysis, Fact, Judge, Object};
use holdup_symbols::{Named, Options};
use holdup_trace::{Nanos, Reader, Result, Tid};
use rustc_hash::FxHashMap;
use serde::Serialize;
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// Waits that begin in one function.
#[derive(Clone, Debug, Default, PartialEq, Serialize, schemars::JsonSchema)]
pub struct CallerRow {
    /// The innermost function that belongs to the program itself, not to a library or runtime;
    /// `null` if the chain has none, or if its file is not available.
    pub caller: Option<String>,
    /// The file it is in.
    pub dso: Option<String>,
    /// The function of a library or runtime that it called; `null` if it made the system call
    /// directly.
    pub through: Option<String>,
    /// Name of the thread that waited longest.
    pub comm: String,
    /// Process of the threads; `null` if there are several processes, or if it is unknown.
    pub pid: Option<u32>,
    /// The object that threads waited for longest, in words.
    pub object: String,
    /// Number of different objects that threads waited for.
    pub objects: u64,
    /// Times a thread went to sleep.
    pub waits: u64,
    /// Number of different threads that waited.
    pub waiters: u64,
    /// Time asleep, summed over the threads.
    pub wait_total_ns: u64,
    /// Mean.
    pub wait_avg_ns: u64,
    /// Longest.
    pub wait_max_ns: u64,
}

/// The chain, thread and object of a wait.
type Key = (Option<InCode>, Tid, Object);

/// The sum of the waits of one thread, chain and object.
#[derive(Clone, Copy, Default)]
struct Sum {
    waits: u64,
    total: Nanos,
    max: Nanos,
}

/// Read the trace of `whole` once more, and sum its waits by the code that went to sleep: the most
/// time first. `words` gives the names of objects. Remarks on files of code come with the rows.
/// rows.
///
/// # Errors
/// Whatever makes the rest of the trace unreadable.
pub fn callers(
    reader: &dyn Reader,
    whole: &Analysis,
    judge: &Judge,
    words: &BTreeMap<Object, String>,
    places: Options,
) -> Result<(Vec<CallerRow>, Vec<String>)> {
    let Slept { sums, comms, code } = slept(reader, whole, judge)?;
    let mut finder = Finder::new(reader.info(), code, places);
    let mut groups: BTreeMap<Place, Group> = BTreeMap::new();
    for ((chain, tid, object), sum) in sums {
        groups.entry(finder.place(chain)).or_default().add(tid, chain, object, sum);
    }
    let mut rows: Vec<CallerRow> =
        groups.into_iter().map(|(place, group)| group.row(place, &comms, words)).collect();
    rows.sort_by_key(|r| Reverse(r.wait_total_ns));
    Ok((rows, finder.symbols.remarks()))
}

/// The same sleeps by whole call chains, for flame graphs of time asleep: one line for each thread
/// name and chain, with the functions from the outermost on and nanoseconds, in the form of
/// [`crate::folded`]. Remarks on files of code come with the lines.
///
/// # Errors
/// Whatever makes the rest of the trace unreadable.
pub fn folded_waits(
    reader: &dyn Reader,
    whole: &Analysis,
    judge: &Judge,
    places: Options,
) -> Result<(String, Vec<String>)> {
    let Slept { sums, comms, code } = slept(reader, whole, judge)?;
    let mut symbols = symbols(reader.info(), &code, places);
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
    Ok((lines, symbols.remarks()))
}

/// Sums of the sleeps.
struct Slept {
    sums: FxHashMap<Key, Sum>,
    comms: Comms,
    code: CodeTable,
}

fn slept(reader: &dyn Reader, whole: &Analysis, judge: &Judge) -> Result<Slept> {
    let mut sums: FxHashMap<Key, Sum> = FxHashMap::default();
    let (code, comms) = read(reader, whole, judge, &mut |fact, watch| {
        let Fact::Wait(wait) = fact else { return };
        let thread = whole.thread(wait.slot);
        if whole.wanted(thread) {
            let left = watch.left.last(Actor::of(thread), wait.start);
            let left = left.filter(|m| m.at == wait.start).map(|m| m.code);
            let object = whole.final_object(wait.object);
            let sum = sums.entry((left, thread.tid, object)).or_default();
            sum.waits += 1;
            sum.total += wait.end - wait.start;
            sum.max = sum.max.max(wait.end - wait.start);
        }
    })?;
    Ok(Slept { sums, comms, code })
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
        self.sum.waits += sum.waits;
        self.sum.total += sum.total;
        self.sum.max = self.sum.max.max(sum.max);
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
