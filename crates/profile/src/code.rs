//! The code around waits: which code waits, which ends the waits, and which runs meanwhile.

use crate::by_code::symbols;
use crate::collect::plainest;
use crate::context::CodeTable;
use crate::moments::{Actor, InCode, Moment, Watch};
use crate::own::{Found, Own, Place};
use holdup_passes::{Analysis, Fact, LockWait, LockWaiter, Object, Observer, Slept, Threads};
use holdup_passes::{HolderFunction, HolderTime, Return, Slot, percent, tell_functions};
use holdup_symbols::{Options, Symbols};
use holdup_syscalls::{Arch, name, wait_kind};
use holdup_trace::{Batch, Event, Nanos, Tid, TraceInfo};
use rustc_hash::FxHashMap;
use serde::Serialize;
use std::cell::RefCell;
use std::cmp::Reverse;
use std::collections::{BTreeMap, VecDeque};

/// Most functions shown for each side.
const SPOTS: usize = 5;
/// Calls of each thread that are remembered.
const CALLS: usize = 256;
/// Most call chains looked up for this, the heaviest first.
const CHAINS: usize = 256;

/// A place in the program's own code.
#[derive(Clone, Debug, Default, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Spot {
    /// The innermost function that belongs to the program itself, not to a library or runtime;
    /// `null` if the call chain has none, or if the file of the function is not available.
    pub function: Option<String>,
    /// File that contains the function, without its folders.
    pub dso: Option<String>,
    /// Source file and line with the largest part; `null` without debug information.
    pub line: Option<String>,
    /// The function of a library or runtime that the program's function called; `null` if it called
    /// none.
    pub through: Option<String>,
    /// Total time of the sleeps that this code began or ended; `null` if samples are counted.
    pub ns: Option<u64>,
    /// Number of samples of CPU time in this code; `null` if sleeps are added up.
    pub samples: Option<u64>,
    /// Part of all sleeps or samples, in per cent. All sleeps include sleeps without a call chain.
    pub pct: f64,
}

impl Spot {
    /// `transfer (bank.c:31)`, or with the code's file if no source line is known; `None` for a
    /// function without a name.
    pub fn words(&self) -> Option<String> {
        self.words_with(None)
    }

    /// [`Spot::words`] with more text in the brackets: `transfer (bank.c:31, 62 %)`.
    pub fn words_with(&self, more: Option<String>) -> Option<String> {
        let function = self.function.as_deref()?;
        let at = self.line.as_ref().or(self.dso.as_ref()).cloned();
        let details: Vec<String> = at.into_iter().chain(more).collect();
        Some(match details.is_empty() {
            true => function.to_owned(),
            false => format!("{function} ({})", details.join(", ")),
        })
    }
}

/// A system call that the holders of an object made while other threads waited for the object.
#[derive(Clone, Debug, Default, PartialEq, Serialize, schemars::JsonSchema)]
pub struct CallMeanwhile {
    /// The system call.
    pub call: String,
    /// Time in the call, running or asleep, while other threads waited.
    pub ns: u64,
    /// Part of all waiting time, in per cent.
    pub pct: f64,
}

/// The code around an object that threads wait for, or the code of a thread that other threads wait
/// for. Each list begins with the largest entry, and is empty if no call chain was recorded.
#[derive(Clone, Debug, Default, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Around {
    /// The functions in which threads went to sleep for the object, by time slept.
    pub waits: Vec<Spot>,
    /// The functions in which other threads ended the waits, by time slept; for a lock, the
    /// functions that released it.
    pub wakes: Vec<Spot>,
    /// The functions that the holders of the object ran while other threads waited, by samples of
    /// CPU time. For a thread: the functions that it ran.
    pub runs: Vec<Spot>,
    /// The system calls that the holders of the object made while other threads waited, by time.
    /// Calls in which threads contend are left out. System calls that were not recorded are
    /// missing.
    pub calls: Vec<CallMeanwhile>,
    /// Of what they ran meanwhile, their own code: told with [`HolderTime::functions`].
    #[serde(skip)]
    pub own: Vec<Spot>,
}

impl Around {
    /// The first function with a name, as text: where most waits begin, else where they end; for a
    /// thread, what it runs.
    pub fn words(&self) -> Option<String> {
        let named = |spots: &[Spot]| spots.iter().find_map(Spot::words);
        if self.waits.is_empty() && self.wakes.is_empty() {
            return named(&self.runs);
        }
        let ends = || Some(format!("ended in {}", named(&self.wakes)?));
        named(&self.waits).or_else(ends)
    }

    /// Add to the holders' times which functions they ran.
    pub fn tell_holders(&self, times: &mut [HolderTime]) {
        let function = |spot: &Spot| {
            Some(HolderFunction {
                function: spot.function.clone()?,
                at: spot.line.clone().or_else(|| spot.dso.clone()),
                samples: spot.samples.unwrap_or(0),
                pct: spot.pct,
            })
        };
        tell_functions(times, &self.own.iter().filter_map(function).collect::<Vec<_>>());
    }

    /// Whether there is nothing to show.
    pub fn is_empty(&self) -> bool {
        self.waits.is_empty()
            && self.wakes.is_empty()
            && self.runs.is_empty()
            && self.calls.is_empty()
    }
}

/// Weights of call chains.
type Weights = FxHashMap<InCode, u64>;

/// The sums for one object.
#[derive(Default)]
struct Sums {
    waited: Nanos,
    waits: Weights,
    wakes: Weights,
    runs: Weights,
    /// The part of them outside of the kernel.
    own: Weights,
    /// Time in system calls, by number.
    calls: BTreeMap<u32, Nanos>,
}

impl Sums {
    fn add_all(&mut self, o: &Sums) {
        self.waited += o.waited;
        let sides = [
            (&mut self.waits, &o.waits),
            (&mut self.wakes, &o.wakes),
            (&mut self.runs, &o.runs),
            (&mut self.own, &o.own),
        ];
        for (into, from) in sides {
            for (&code, weight) in from {
                *into.entry(code).or_default() += weight;
            }
        }
        for (&nr, ns) in &o.calls {
            *self.calls.entry(nr).or_default() += ns;
        }
    }

    /// A wait from `start` to `end` that began in this code, if a chain is known.
    fn add(&mut self, start: Nanos, end: Nanos, began: Option<Moment>) {
        self.waited += end - start;
        if let Some(began) = began {
            *self.waits.entry(began.code).or_default() += end - start;
        }
    }
}

/// The code around everything that threads of a trace waited for. Functions are looked up on
/// demand.
pub struct Code<'a> {
    objects: BTreeMap<String, Sums>,
    locks: FxHashMap<u64, Sums>,
    calls: FxHashMap<u32, Sums>,
    threads: FxHashMap<Tid, Weights>,
    /// Names of system calls.
    names: BTreeMap<u32, String>,
    table: CodeTable,
    own: Own,
    symbols: RefCell<Symbols<'a>>,
}

/// Finds the code around objects, without reference to the trace. [`Code`] implements it.
pub trait KnowsCode {
    /// The code around an object, by its name; by all names if it combines several objects.
    fn object(&self, words: &[String]) -> Option<Around>;

    /// The code around a lock of the kernel, by the address in its events.
    fn lock(&self, address: u64) -> Option<Around>;

    /// The code that makes the system calls of a number, by elapsed time.
    fn call(&self, nr: u32) -> Option<Around>;

    /// The code that a thread ran.
    fn thread(&self, tid: Tid) -> Option<Around>;

    /// Notes for readers of the names: files that were refused, unverified, or not found.
    fn remarks(&self) -> Vec<String>;
}

impl KnowsCode for Code<'_> {
    fn object(&self, words: &[String]) -> Option<Around> {
        let mut sums = Sums::default();
        words.iter().filter_map(|words| self.objects.get(words)).for_each(|o| sums.add_all(o));
        self.around(&sums)
    }

    fn lock(&self, address: u64) -> Option<Around> {
        self.locks.get(&address).and_then(|sums| self.around(sums))
    }

    fn call(&self, nr: u32) -> Option<Around> {
        self.calls.get(&nr).and_then(|sums| self.around(sums))
    }

    fn thread(&self, tid: Tid) -> Option<Around> {
        let runs = self.samples(self.threads.get(&tid)?);
        Some(Around { runs, ..Around::default() })
    }

    fn remarks(&self) -> Vec<String> {
        self.symbols.borrow().remarks()
    }
}

/// Finds the code around waits while a trace is analysed.
pub struct CodeObserver {
    /// The times between which waits count.
    span: Option<(Nanos, Nanos)>,
    arch: Arch,
    watch: Watch,
    /// By the numbers that objects have while the trace is read.
    objects: FxHashMap<Object, Sums>,
    locks: FxHashMap<u64, Sums>,
    calls: FxHashMap<u32, Sums>,
    threads: FxHashMap<Actor, Weights>,
    /// Whether threads contend by calls of a number; looked up once per number.
    ended_by_thread: FxHashMap<u32, bool>,
    /// The latest calls of each thread that are no contention, oldest first.
    returned: FxHashMap<Slot, VecDeque<Return>>,
    /// When a thread last finished waiting for an object.
    had: FxHashMap<(Object, Slot), Nanos>,
}

impl Observer for CodeObserver {
    fn begins(&mut self, from: Nanos, to: Nanos) {
        self.span = Some((from, to));
    }

    fn events(&mut self, events: &[Event], batch: &Batch) {
        for e in events {
            if let Some(ran) = self.watch.see(e, batch)
                && self.within(ran.at, ran.at)
            {
                *self.threads.entry(ran.by).or_default().entry(ran.code).or_default() += 1;
            }
        }
    }

    fn fact(&mut self, fact: &Fact, threads: &Threads) {
        match fact {
            Fact::Wait(slept) => self.slept(slept, threads),
            Fact::LockWait(wait) => self.contended(wait, threads),
            Fact::Call(call) => self.returned(call, threads),
            _ => {}
        }
    }
}

impl CodeObserver {
    /// An observer; `None` if the trace has no call chains.
    pub fn new(info: &TraceInfo) -> Option<CodeObserver> {
        info.capabilities.stacks.then(|| CodeObserver {
            span: None,
            arch: Arch::from_uname(info.arch.as_deref().unwrap_or("x86_64")),
            watch: Watch::new(info, plainest(info)),
            objects: FxHashMap::default(),
            locks: FxHashMap::default(),
            calls: FxHashMap::default(),
            threads: FxHashMap::default(),
            ended_by_thread: FxHashMap::default(),
            returned: FxHashMap::default(),
            had: FxHashMap::default(),
        })
    }

    fn within(&self, start: Nanos, end: Nanos) -> bool {
        self.span.is_some_and(|(from, to)| start >= from && end <= to)
    }

    /// The moment at which a wait began, if it is `last`, the latest one up to `start`. Waits that
    /// began before the part have its first time.
    fn began(&self, last: Option<Moment>, start: Nanos) -> Option<Moment> {
        let first = self.span.is_some_and(|(from, _)| from == start);
        last.filter(|moment| moment.at == start || first)
    }

    fn slept(&mut self, slept: &Slept, threads: &Threads) {
        let Slept { start, end, slot, object, waker: by, .. } = *slept;
        let who = Actor::of(&threads[slot]);
        self.had.insert((object, slot), end);
        let left = self.watch.left.last(who, start);
        let left = self.began(left, start);
        if !self.within(start, end) {
            return;
        }
        let sums = self.objects.entry(object).or_default();
        sums.add(start, end, left);
        let Some(by) = by else { return };
        let waker = Actor::of(&threads[by]);
        // The first event of a wake-up comes from the waker; a later one may come from the CPU to
        // which the thread goes, on top of whatever runs there.
        let mut woken = self.watch.woken.between(who, start, end).filter(|m| m.by == waker);
        if let Some(woken) = woken.next() {
            *sums.wakes.entry(woken.code).or_default() += end - start;
        }
        // Before that the waker waited for the object itself.
        let since = self.had.get(&(object, by)).map_or(start, |&had| had.max(start));
        for ran in self.watch.ran.between(waker, since, end) {
            *sums.runs.entry(ran.code).or_default() += 1;
            if ran.in_user {
                *sums.own.entry(ran.code).or_default() += 1;
            }
        }
        for call in self.returned.get(&by).into_iter().flatten().rev() {
            if call.end <= since {
                break;
            }
            *sums.calls.entry(call.nr).or_default() += call.end.min(end) - call.start.max(since);
        }
    }

    fn returned(&mut self, call: &Return, threads: &Threads) {
        let arch = self.arch;
        let of_thread = || name(arch, call.nr).is_some_and(|n| wait_kind(n).is_for_contention());
        if !*self.ended_by_thread.entry(call.nr).or_insert_with(of_thread) {
            let calls = self.returned.entry(call.slot).or_default();
            // If a hold has more calls than this, only the last ones are kept.
            if calls.len() >= CALLS {
                calls.pop_front();
            }
            calls.push_back(*call);
        }
        let entered = self.watch.entered.last(Actor::of(&threads[call.slot]), call.start);
        if call.split.is_none() || !self.within(call.start, call.end) {
            return;
        }
        let entered = self.began(entered, call.start);
        self.calls.entry(call.nr).or_default().add(call.start, call.end, entered);
    }

    fn contended(&mut self, wait: &LockWait, threads: &Threads) {
        let LockWaiter::Thread(slot) = wait.waiter else { return };
        let began = self.watch.contended.last(Actor::of(&threads[slot]), wait.start);
        if !self.within(wait.start, wait.end) {
            return;
        }
        let began = self.began(began, wait.start);
        self.locks.entry(wait.lock).or_default().add(wait.start, wait.end, began);
    }

    /// The code, once the trace has been analysed. `words` gives the names of objects.
    pub fn finish<'a>(
        self,
        info: &'a TraceInfo,
        analysis: &Analysis,
        words: &BTreeMap<Object, String>,
        places: Options,
    ) -> Code<'a> {
        let CodeObserver { watch, objects, locks, calls, threads, .. } = self;
        let table = watch.context.finish();
        let symbols = symbols(info, &table, places);
        let numbers = objects.values().flat_map(|sums| sums.calls.keys().copied());
        let names = numbers.map(|nr| (nr, analysis.call_name(nr))).collect();
        let threads =
            analysis.all_threads().filter_map(|(_, t)| Some((t.tid, threads.get(&Actor::of(t))?)));
        let threads = threads.map(|(tid, weights)| (tid, weights.clone())).collect();
        let mut named: BTreeMap<String, Sums> = BTreeMap::new();
        for (object, sums) in objects {
            if let Some(words) = words.get(&analysis.final_object(object)) {
                named.entry(words.clone()).or_default().add_all(&sums);
            }
        }
        let (own, symbols) = (Own::new(), RefCell::new(symbols));
        Code { objects: named, locks, calls, threads, names, table, own, symbols }
    }
}

impl Code<'_> {
    fn around(&self, sums: &Sums) -> Option<Around> {
        let slept = |spots: Vec<(Spot, u64)>| {
            spots.into_iter().map(|(spot, ns)| Spot { ns: Some(ns), ..spot }).collect()
        };
        let around = Around {
            waits: slept(self.spots(&sums.waits, sums.waited)),
            wakes: slept(self.spots(&sums.wakes, sums.waited)),
            runs: self.samples(&sums.runs),
            own: self.samples(&sums.own),
            calls: self.meanwhile(sums),
        };
        (!around.is_empty()).then_some(around)
    }

    /// The longest calls of the threads that held it.
    fn meanwhile(&self, sums: &Sums) -> Vec<CallMeanwhile> {
        let mut calls: Vec<(u32, Nanos)> = sums.calls.iter().map(|(&nr, &ns)| (nr, ns)).collect();
        calls.retain(|call| call.1 > 0);
        calls.sort_by_key(|&(nr, ns)| (Reverse(ns), nr));
        let named = |(nr, ns): (u32, Nanos)| {
            let call = self.names.get(&nr).cloned().unwrap_or_default();
            CallMeanwhile { call, ns, pct: percent(ns, sums.waited) }
        };
        calls.into_iter().take(SPOTS).map(named).collect()
    }

    fn samples(&self, weights: &Weights) -> Vec<Spot> {
        let spots = self.spots(weights, weights.values().sum());
        spots.into_iter().map(|(spot, samples)| Spot { samples: Some(samples), ..spot }).collect()
    }

    /// The first few places of these chains, the heaviest first, with shares of `all`.
    fn spots(&self, weights: &Weights, all: u64) -> Vec<(Spot, u64)> {
        let mut chains: Vec<(&InCode, u64)> = weights.iter().map(|(c, &w)| (c, w)).collect();
        chains.sort_by_key(|&(code, weight)| (Reverse(weight), *code));
        let symbols = &mut *self.symbols.borrow_mut();
        // The weight of each place, and the source line of its heaviest chain.
        let mut places: BTreeMap<Place, (u64, Option<String>)> = BTreeMap::new();
        for &(&(pid, chain), weight) in chains.iter().take(CHAINS) {
            let Found { place, at } = self.own.find(self.table.chain(pid, chain), symbols);
            let line = || Some(symbols.line(&at?)?.to_string());
            places.entry(place).or_insert_with(|| (0, line())).0 += weight;
        }
        let mut places: Vec<_> = places.into_iter().collect();
        places.sort_by_key(|(_, (weight, _))| Reverse(*weight));
        let spot = |(place, (weight, line)): (Place, (u64, Option<String>))| {
            let Place { caller: function, dso, through } = place;
            let pct = percent(weight, all);
            (Spot { function, dso, line, through, pct, ..Spot::default() }, weight)
        };
        places.into_iter().take(SPOTS).map(spot).collect()
    }
}
