//! One pass over the ordered events answers every question.
//!
//! ```text
//!  events ──► engine ──┬─ cpus      what each CPU did          rows: cpus, sar
//!                      ├─ threads   what each thread did       rows: procs, switches
//!                      ├─ syscalls  what it did inside calls   rows: syscalls
//!                      ├─ latency   run-queue delays           rows: switches
//!                      ├─ irqs      interrupts, work items     rows: irqs
//!                      ├─ locks     waits for kernel locks     rows: locks
//!                      ├─ waits     what threads waited for     rows: waits, path, graph
//!                      ├─ blame     why CPUs were idle         idle time by wait
//!                      ├─ timeline  the same in 128 parts      rows: phases
//!                      └─ lanes     chosen ones, by pixel      pictures
//! ```
//!
//! The state machines hold state and sums only, so memory grows with threads, CPUs and locks, never
//! with events. [`analyze`] runs them; [`Analysis`] makes the tables. They measure and do not
//! judge: the [`Judge`] that the caller passes decides what a sleep was for.
//!
//! ```
//! use holdup_attribution::JUDGE;
//! use holdup_passes::{Group, Options, analyze};
//! # use holdup_testkit::TraceBuilder;
//!
//! // Any reader will do; this trace is made by hand.
//! let trace = TraceBuilder::new(1)
//!     .switch(0, 0, 0, 42, "R")       // thread 42 takes CPU 0 from the idle task
//!     .sys_enter(1_000, 0, 42, 0)     // calls read(2)
//!     .sys_exit(5_000, 0, 42, 0, 17)  // which takes 4 us
//!     .switch(9_000, 0, 42, 0, "S")
//!     .build();
//! let analysis = analyze(&trace, &Options::default(), &JUDGE)?;
//! let calls = analysis.syscalls(Group::System);
//! assert_eq!((calls[0].name.as_str(), calls[0].count), ("read", 1));
//! assert_eq!(analysis.wall_ns(), 9_000);
//! # Ok::<(), holdup_trace::ReadError>(())
//! ```

mod analysis;
mod blame;
mod cause;
mod connections;
mod costs;
mod counters;
mod cpus;
mod engine;
mod facts;
mod grid;
mod hist;
mod irqs;
mod judge;
mod lanes;
mod latency;
pub mod limits;
mod living;
mod locks;
mod observer;
mod options;
mod overlap;
mod packed;
mod past;
mod programs;
mod rounding;
mod rows;
mod slot;
mod source;
mod spaces;
mod spins;
mod spread;
mod state;
mod steps;
mod stolen;
mod syscalls;
mod tables;
mod threads;
mod throttle;
mod timeline;
mod unsettled;
mod user_intervals;
mod variables;
mod varint;
mod waits;
mod windows;
mod yields;

pub use analysis::{Analysis, WaitRow};
pub use blame::WaitSum;
pub use cause::Cause;
pub use connections::{Connection, Hop};
pub use costs::{Costing, Costs, Ends, Exclusion};
pub use counters::{Counts, Running};
pub use facts::{
    Fact, Handled, LockWait, LockWaiter, Return, Run, RunEnd, Slept, Split, Switch, WakeEvent,
    Wakeup,
};
pub use hist::{HistRow, Histogram};
pub use irqs::Handler;
pub use judge::{
    Activity, BlockedFor, Ended, HandOver, Judge, Outside, Sleep, WaitEnd, Waker, is_for_device,
};
pub use lanes::{CLOSE_UP, Doing, Follow, Lane, Piece, Span};
pub use latency::Latency;
pub use locks::{LockBy, LockKind, LockRow, LockSource, LockThreads, known_lock};
pub use observer::Observer;
pub use options::{Detail, Filter, Options, Selection};
pub use past::{HolderDid, HolderPart};
pub use programs::Together;
pub use rounding::{per_second, percent};
pub use rows::*;
pub use slot::Slot;
pub use source::Source;
pub use spaces::SpaceCosts;
pub use spins::{FindsSpins, SampledRun, plainness};
pub use steps::{Contended, Did, Held, Step, ThreadSteps, Turn};
pub use stolen::Stolen;
pub use tables::{
    HolderFunction, HolderObject, HolderTime, add_holder_times, errno_word, tell_functions,
};
pub use threads::{Thread, Threads, role};
pub use throttle::{Quota, Throttle};
pub use timeline::{Bin, Program, Who};
pub use user_intervals::{IntervalsOfCall, Lengths, QUARTERS};
pub use variables::{NamesVariables, Variable};
pub use waits::{
    ByThread, EdgeKey, FutexUse, HoldSum, Interval, Object, ObjectKind, ObjectStats, PairSum,
};

use engine::Engine;
pub use engine::Invariant;
use facts::Facts;
use holdup_trace::{Batch, Cpu, Event, Nanos, Quality, Reader, Result, TraceInfo, merge};
use merge::WholeCalls;
use std::cell::RefCell;
use std::ops::ControlFlow;
pub use windows::{Window, analyze_windows};
pub use yields::{Again, Yields};

/// Reads the whole trace once and fills all tables.
///
/// # Errors
/// Whatever makes the rest of the file unreadable; damage that can be skipped is counted in
/// [`Analysis::quality`].
pub fn analyze(reader: &dyn Reader, options: &Options, judge: &Judge) -> Result<Analysis> {
    read::<false>(reader, options, judge, &mut |_| {}, None, &mut |_| {})
}

/// [`analyze`] that also passes the events to the caller: `see` gets all events up to the end of
/// the part, in order, whatever is selected, and perhaps some after it.
///
/// # Errors
/// Those of [`analyze`].
pub fn analyze_with(
    reader: &dyn Reader,
    options: &Options,
    judge: &Judge,
    see: &mut See<'_>,
) -> Result<Analysis> {
    read::<false>(reader, options, judge, &mut |_| {}, Some(see), &mut |_| {})
}

/// [`analyze`] with an observer, that gets all events and the facts of the part that is analysed.
///
/// # Errors
/// Those of [`analyze`].
pub fn analyze_observed(
    reader: &dyn Reader,
    options: &Options,
    judge: &Judge,
    observer: &mut dyn Observer,
) -> Result<Analysis> {
    let (start, end) = options.selection.span(reader.info());
    observer.begins(start, end);
    let observer = RefCell::new(observer);
    let begin = &mut |engine: &mut Engine| engine.facts = Some(Facts::default());
    let see = &mut |events: &[Event], batch: &Batch| observer.borrow_mut().events(events, batch);
    let show = &mut |engine: &mut Engine| engine.show_facts(&mut **observer.borrow_mut());
    read::<true>(reader, options, judge, begin, Some(see), show)
}

/// Gets the events that are analysed, in batches.
pub type See<'a> = dyn FnMut(&[Event], &Batch) + 'a;

/// Reads the trace of `whole` again and draws the lanes of the CPUs and threads in `follow`.
///
/// # Errors
/// Those of [`analyze`].
pub fn follow(
    reader: &dyn Reader,
    whole: &Analysis,
    judge: &Judge,
    follow: &Follow,
) -> Result<Analysis> {
    // What the first reading kept about waits is not needed twice.
    let options = Options { detail: Detail::Sums, ..whole.options.clone() };
    read::<false>(reader, &options, judge, &mut |e| e.follow(follow), None, &mut |_| {})
}

/// Calls `begin` for the engine before the first event, and `done` after each batch and at the end.
fn read<const FACTS: bool>(
    reader: &dyn Reader,
    options: &Options,
    judge: &Judge,
    begin: &mut dyn FnMut(&mut Engine),
    see: Option<&mut See<'_>>,
    done: &mut dyn FnMut(&mut Engine),
) -> Result<Analysis> {
    let part = Part::of(reader.info(), &options.selection);
    let mut engine = part.engine(reader, options, judge);
    begin(&mut engine);
    let quality = part.read::<FACTS>(reader, options, &mut engine, see, &mut |engine| {
        done(engine);
        ControlFlow::Continue(())
    })?;
    let cpu_list = cpu_list(&engine, reader.info(), &options.selection);
    engine.finish(part.end, &cpu_list);
    done(&mut engine);
    let (start, end) = (part.start, part.end);
    let mut analysis = Analysis::new(engine, reader, options, (start, end), cpu_list);
    analysis.absorb(&quality, reader.quality());
    Ok(analysis)
}

/// Reads a trace again and hands out its facts one by one, in the order in which they ended.
/// `whole`, the analysis of the first reading, explains them: they cover its part of the trace and
/// all threads, and add up to its tables. `take` may stop the reading.
///
/// # Errors
/// Those of [`analyze`].
pub fn each_fact(
    reader: &dyn Reader,
    whole: &Analysis,
    judge: &Judge,
    take: &mut dyn FnMut(&Fact) -> ControlFlow<()>,
) -> Result<()> {
    facts(reader, whole, judge, None, take)
}

/// [`each_fact`] that also passes the events to the caller: `see` gets every event of the trace up
/// to the end of the part, before `take` gets the facts that the event completes. At most one batch
/// of events is seen before their facts are taken.
///
/// # Errors
/// Those of [`analyze`].
pub fn each_fact_with(
    reader: &dyn Reader,
    whole: &Analysis,
    judge: &Judge,
    see: &mut See<'_>,
    take: &mut dyn FnMut(&Fact) -> ControlFlow<()>,
) -> Result<()> {
    facts(reader, whole, judge, Some(see), take)
}

fn facts(
    reader: &dyn Reader,
    whole: &Analysis,
    judge: &Judge,
    see: Option<&mut See<'_>>,
    take: &mut dyn FnMut(&Fact) -> ControlFlow<()>,
) -> Result<()> {
    // What the first reading kept about sleeps is not needed twice.
    let options = &Options { detail: Detail::Sums, ..whole.options.clone() };
    let part = Part::of(reader.info(), &options.selection);
    let mut engine = part.engine(reader, options, judge);
    engine.facts = Some(Facts::default());
    let mut ended = ControlFlow::Continue(());
    part.read::<true>(reader, options, &mut engine, see, &mut |engine| {
        ended = engine.take_facts(take);
        ended
    })?;
    if ended.is_continue() {
        engine.finish(part.end, &whole.cpu_list);
        let _ = engine.take_facts(take);
    }
    Ok(())
}

/// The part of a trace that is analysed.
struct Part<'a> {
    select: &'a Selection,
    first: Nanos,
    start: Nanos,
    end: Nanos,
    windowed: bool,
}

impl<'a> Part<'a> {
    fn of(info: &TraceInfo, select: &'a Selection) -> Part<'a> {
        let (first, last) = info.span.unwrap_or((0, 0));
        let (start, end) = select.span(info);
        Part { select, first, start, end, windowed: start > first || end < last }
    }

    fn engine(&self, reader: &dyn Reader, options: &Options, judge: &Judge) -> Engine {
        let info = reader.info();
        let symbols = options.symbols.as_deref().unwrap_or(&info.symbols);
        Engine::new(info, symbols, (self.first, self.end), options, *judge)
    }

    /// Passes the events of the part to `engine`; `see`, if any, is called before and `done` after
    /// each batch.
    fn read<const FACTS: bool>(
        &self,
        reader: &dyn Reader,
        options: &Options,
        engine: &mut Engine,
        see: Option<&mut See<'_>>,
        done: &mut dyn FnMut(&mut Engine) -> ControlFlow<()>,
    ) -> Result<Quality> {
        let restarted = self.start <= self.first;
        let mut feed = Feed::<FACTS> { part: self, engine, see, done, restarted };
        let quality = merge::drive(reader, options.workers, &mut feed)?;
        if !feed.restarted {
            feed.engine.restart(self.start);
        }
        Ok(quality)
    }
}

/// Passes the events of a part to an engine: see [`Part::read`].
struct Feed<'a, 's, const FACTS: bool> {
    part: &'a Part<'a>,
    engine: &'a mut Engine,
    see: Option<&'a mut See<'s>>,
    done: &'a mut dyn FnMut(&mut Engine) -> ControlFlow<()>,
    /// The part has begun.
    restarted: bool,
}

impl<const FACTS: bool> Feed<'_, '_, FACTS> {
    /// Somebody asks for single events or for some of them.
    fn is_asked(&self) -> bool {
        FACTS || self.see.is_some() || self.part.select.cpus.is_some()
    }
}

impl<const FACTS: bool> merge::Sink for Feed<'_, '_, FACTS> {
    fn whole_calls(&self) -> Option<WholeCalls> {
        (!self.is_asked()).then(|| WholeCalls {
            numbers: self.engine.whole_calls(),
            borders: vec![self.part.start, self.part.end.saturating_add(1)],
        })
    }

    fn events(&mut self, events: &[Event], batch: &Batch) -> ControlFlow<()> {
        if let Some(see) = &mut self.see {
            see(events, batch);
        }
        let (start, end, only) = (self.part.start, self.part.end, self.part.select.cpus.as_deref());
        let inside = match self.part.windowed {
            true => events.partition_point(|e| e.ts <= end),
            false => events.len(),
        };
        let (mut now, beyond) = events.split_at(inside);
        if !self.restarted && now.last().is_some_and(|e| e.ts >= start) {
            let (before, from) = now.split_at(now.partition_point(|e| e.ts < start));
            self.engine.take::<FACTS>(before, batch, only);
            self.engine.restart(start);
            self.restarted = true;
            now = from;
        }
        self.engine.take::<FACTS>(now, batch, only);
        if !beyond.is_empty() {
            let _ = (self.done)(self.engine);
            return ControlFlow::Break(());
        }
        if !self.restarted {
            self.engine.forget_facts();
        }
        (self.done)(self.engine)
    }

    fn slices(&mut self, mut slices: merge::Slices<'_>) -> ControlFlow<()> {
        // The common case has no checks per slice.
        let all = !self.part.windowed || slices.end().is_none_or(|last| last <= self.part.end);
        if all && self.restarted && !self.is_asked() {
            self.engine.handle::<FACTS>(slices);
            return (self.done)(self.engine);
        }
        slices.try_for_each(|(events, batch)| self.events(events, batch))
    }
}

/// Read the trace once and analyse each of `windows`, in their order; `observer` gets the facts of
/// the first of them. See [`analyze_windows`].
///
/// # Errors
/// Those of [`analyze`].
pub fn analyze_parts(
    reader: &dyn Reader,
    options: &Options,
    judge: &Judge,
    cpus: &[Cpu],
    windows: &[Window],
    observer: Option<&mut dyn Observer>,
) -> Result<(Vec<Analysis>, Quality)> {
    let mut found: Vec<Option<Analysis>> = windows.iter().map(|_| None).collect();
    let done = &mut |number: usize, analysis| found[number] = Some(analysis);
    let quality = analyze_windows(reader, options, judge, cpus, windows, observer, done)?;
    Ok((found.into_iter().flatten().collect(), quality))
}

/// CPUs of the analysis: those with events, those that threads were woken on or moved to, and as
/// many as the file says were online; if the user recorded some CPUs only, only these.
fn cpu_list(engine: &Engine, info: &TraceInfo, select: &Selection) -> Vec<Cpu> {
    // A CPU count beyond what a kernel can have is damage; then only the events count.
    let online = info.cpus_online.filter(|&n| n <= cpus::MAX_CPUS as u32).unwrap_or(0);
    let exists = |c: &cpus::CpuState| c.seen || c.met || c.is_target;
    let mut list: Vec<Cpu> =
        engine.cpus.iter().filter(|(_, c)| exists(c)).map(|(cpu, _)| cpu).collect();
    // Which CPUs were online is a number, not a list: the missing ones are taken from 0 up.
    for cpu in (0..online as u16).map(Cpu) {
        if list.len() >= online as usize {
            break;
        }
        if !list.contains(&cpu) {
            list.push(cpu);
        }
    }
    list.sort();
    if let Some(recorded) = &info.cpus_recorded {
        let seen: Vec<Cpu> =
            engine.cpus.iter().filter(|(_, c)| c.seen).map(|(cpu, _)| cpu).collect();
        list.retain(|c| recorded.contains(c) || seen.contains(c));
    }
    if let Some(only) = &select.cpus {
        list.retain(|c| only.contains(c));
    }
    list
}
