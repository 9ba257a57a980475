//! Parts of a trace, each analysed separately, in one reading.
//!
//! What threads and CPUs do when a window begins is known from the events before. So a window gets
//! a copy of an engine that has seen everything up to its start, and the copy resets its sums.
//! Windows may overlap: then each has its own engine, and all get the same events.
//!
//! ```text
//!  carrier ───┐ (copy)                 ┌─► carrier ─── …
//!             ├─► window 1 ────────────┤
//!             │        ┌─► window 2 ───│────────►
//!             │        │               └─► window 3 ─────►
//! ```
//!
//! The carrier's sums are unused, so it exists only while no window's engine has the same state.

use crate::engine::Engine;
use crate::facts::Facts;
use crate::{Analysis, Detail, Judge, Observer, Options, cpu_list};
use holdup_trace::{Batch, Cpu, Event, Nanos, Quality, Reader, Result, merge};
use merge::WholeCalls;
use std::ops::ControlFlow;

/// A part of the time of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// First time.
    pub from: Nanos,
    /// Last time.
    pub to: Nanos,
    /// Events at the last time belong to it, not to what follows.
    pub closed: bool,
    /// How much to keep about waits in it.
    pub detail: Detail,
}

impl Window {
    /// Everything between two times, with this detail about waits.
    pub fn all((from, to): (Nanos, Nanos), detail: Detail) -> Window {
        Window { from, to, closed: true, detail }
    }

    /// The first time whose events do not belong to it.
    fn behind(&self) -> Nanos {
        self.to.saturating_add(self.closed as Nanos)
    }
}

/// A window that has begun.
struct Running {
    number: usize,
    window: Window,
    engine: Engine,
}

/// All windows of one reading.
struct Windows<'a> {
    reader: &'a dyn Reader,
    options: &'a Options,
    /// CPUs of the machine that are known already.
    cpus: &'a [Cpu],
    /// Windows that have not begun, the first of them last.
    coming: Vec<(usize, Window)>,
    running: Vec<Running>,
    carrier: Option<Engine>,
    /// End of the last window.
    last: Nanos,
    /// Gets all events, and the facts of window [`OBSERVED`].
    observer: Option<&'a mut dyn Observer>,
    done: &'a mut dyn FnMut(usize, Analysis),
}

/// The window whose facts are observed.
const OBSERVED: usize = 0;

impl<'a> Windows<'a> {
    fn new(
        reader: &'a dyn Reader,
        (options, judge): (&'a Options, &Judge),
        cpus: &'a [Cpu],
        windows: &[Window],
        observer: Option<&'a mut dyn Observer>,
        done: &'a mut dyn FnMut(usize, Analysis),
    ) -> Windows<'a> {
        let info = reader.info();
        let symbols = options.symbols.as_deref().unwrap_or(&info.symbols);
        let first = info.span.map_or(0, |span| span.0);
        let last = windows.iter().map(|w| w.to).max().unwrap_or(first);
        let mut coming: Vec<(usize, Window)> = windows.iter().copied().enumerate().collect();
        coming.sort_by_key(|&(number, w)| std::cmp::Reverse((w.from, number)));
        // If single waits are kept, more is kept of threads that have ended.
        let single = windows.iter().any(|w| w.detail >= Detail::Intervals);
        let detail = if single { Detail::Intervals } else { Detail::Sums };
        let plain = Options { detail, ..options.clone() };
        let carrier = Some(Engine::new(info, symbols, (first, last), &plain, *judge));
        let running = Vec::new();
        let mut all =
            Windows { reader, options, cpus, coming, running, carrier, last, observer, done };
        // A window from the start of the trace gets all events, including those without a time.
        all.cross(first);
        all
    }

    /// The next time at which a window ends or begins.
    fn border(&self) -> Option<Nanos> {
        let ends = self.running.iter().map(|r| r.window.behind());
        ends.chain(self.coming.last().map(|(_, w)| w.from)).min()
    }

    /// All events before `border` have been processed.
    fn cross(&mut self, border: Nanos) {
        while let Some(at) = self.running.iter().position(|r| r.window.behind() <= border) {
            let Running { number, window, mut engine } = self.running.remove(at);
            if self.running.is_empty() && !self.coming.is_empty() {
                let mut carrier = state_of(&mut engine);
                carrier.goes_on(self.last);
                self.carrier = Some(carrier);
            }
            self.finish(number, window, engine);
        }
        while let Some((number, window)) = self.coming.pop_if(|(_, w)| w.from <= border) {
            let Some(engine) = self.carrier.take().or_else(|| {
                let running = self.running.first_mut()?;
                Some(state_of(&mut running.engine))
            }) else {
                return;
            };
            self.begin(number, window, engine);
        }
    }

    fn begin(&mut self, number: usize, window: Window, mut engine: Engine) {
        engine.look_at(window.from, window.to, window.detail);
        if let Some(observer) = self.observer.as_mut().filter(|_| number == OBSERVED) {
            observer.begins(window.from, window.to);
            engine.facts = Some(Facts::default());
        }
        self.running.push(Running { number, window, engine });
    }

    fn finish(&mut self, number: usize, window: Window, mut engine: Engine) {
        let mut cpus = cpu_list(&engine, self.reader.info(), &self.options.selection);
        cpus.extend(self.cpus);
        cpus.sort();
        cpus.dedup();
        engine.finish(window.to, &cpus);
        if let Some(observer) = &mut self.observer {
            engine.show_facts(&mut **observer);
        }
        let options = Options { detail: window.detail, ..self.options.clone() };
        let span = (window.from, window.to);
        (self.done)(number, Analysis::new(engine, self.reader, &options, span, cpus));
    }

    /// Somebody asks for single events or for some of them.
    fn is_asked(&self) -> bool {
        self.observer.is_some() || self.options.selection.cpus.is_some()
    }

    /// The engines that get the events that come now.
    fn engines(&mut self) -> impl Iterator<Item = &mut Engine> {
        self.running.iter_mut().map(|r| &mut r.engine).chain(self.carrier.as_mut())
    }
}

/// An engine that has the same state. What is kept one by one, waits and facts, stays behind.
fn state_of(engine: &mut Engine) -> Engine {
    let (steps, facts) = (engine.waits.steps.take(), engine.facts.take());
    let copy = engine.clone();
    (engine.waits.steps, engine.facts) = (steps, facts);
    copy
}

impl merge::Sink for Windows<'_> {
    fn whole_calls(&self) -> Option<WholeCalls> {
        if self.is_asked() {
            return None;
        }
        let engine = self.carrier.as_ref().or(self.running.first().map(|r| &r.engine))?;
        let running = self.running.iter().map(|r| r.window);
        let windows = running.chain(self.coming.iter().map(|&(_, window)| window));
        let borders = windows.flat_map(|w| [w.from, w.behind()]).collect();
        Some(WholeCalls { numbers: engine.whole_calls(), borders })
    }

    fn events(&mut self, mut events: &[Event], batch: &Batch) -> ControlFlow<()> {
        while let Some(first) = events.first() {
            let border = self.border();
            if let Some(border) = border.filter(|&border| border <= first.ts) {
                self.cross(border);
                continue;
            }
            if self.running.is_empty() && self.coming.is_empty() {
                return ControlFlow::Break(());
            }
            let before = border.map_or(events.len(), |b| events.partition_point(|e| e.ts < b));
            let (now, later) = events.split_at(before);
            let only = self.options.selection.cpus.as_deref();
            if let Some(observer) = &mut self.observer {
                observer.events(now, batch);
            }
            for Running { engine, .. } in &mut self.running {
                match (&engine.facts, &mut self.observer) {
                    (Some(_), Some(observer)) => {
                        engine.take::<true>(now, batch, only);
                        engine.show_facts(&mut **observer);
                    }
                    _ => engine.take::<false>(now, batch, only),
                }
            }
            if let Some(carrier) = &mut self.carrier {
                carrier.take::<false>(now, batch, only);
            }
            events = later;
        }
        ControlFlow::Continue(())
    }

    fn slices(&mut self, mut slices: merge::Slices<'_>) -> ControlFlow<()> {
        // The common case has no checks per slice.
        let whole = self.border().is_some_and(|b| slices.end().is_none_or(|last| last < b));
        if whole && !self.is_asked() {
            self.engines().for_each(|engine| engine.handle::<false>(slices.clone()));
            return ControlFlow::Continue(());
        }
        slices.try_for_each(|(events, batch)| self.events(events, batch))
    }
}

/// Reads the trace once and analyses each of `windows`: `done` gets the number of each window and
/// its analysis, in the order in which they end. `observer` gets all events, and the facts of the
/// first of `windows`. CPUs of a window are `cpus` and those that show up before its end. What
/// threads and CPUs do at its start is known from the events before.
///
/// Each analysis has the problems within its window; those that the readers found are returned.
///
/// # Errors
/// Those of [`crate::analyze`].
pub fn analyze_windows(
    reader: &dyn Reader,
    options: &Options,
    judge: &Judge,
    cpus: &[Cpu],
    windows: &[Window],
    observer: Option<&mut dyn Observer>,
    done: &mut dyn FnMut(usize, Analysis),
) -> Result<Quality> {
    if windows.is_empty() {
        return Ok(reader.quality().clone());
    }
    // The borrow need not last as long as what is observed.
    let observer = observer.map(|observer| observer as &mut dyn Observer);
    let mut all = Windows::new(reader, (options, judge), cpus, windows, observer, done);
    let quality = merge::drive(reader, options.workers, &mut all)?;
    while let Some(border) = all.border() {
        all.cross(border);
    }
    Ok(quality)
}
