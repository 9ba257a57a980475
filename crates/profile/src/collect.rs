//! One pass over the trace: samples by thread, CPU and call chain.

use crate::chains::ChainId;
use crate::context::{CodeTable, Context};
use crate::times::{Row, Samples, Timed, Times};
use holdup_passes::{Selection, plainness};
use holdup_trace::{
    Batch, Cpu, ErrorKind, Event, EventDesc, EventId, Groups, Mapping, NameId, Names, Pid, Quality,
    Reader, Result, StackRef, Tid, TraceInfo, What, merge,
};
use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use std::io;
use std::ops::ControlFlow;
use std::sync::Arc;

/// The thread, CPU and chain of a sample.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Sampled {
    /// The process.
    pub pid: Pid,
    /// The thread.
    pub tid: Tid,
    /// The thread's name at that time.
    pub comm: NameId,
    /// The control group that the thread was in at that time.
    pub group: NameId,
    /// The CPU on which it ran.
    pub cpu: Cpu,
    /// The call chain, the sampled address first.
    pub chain: ChainId,
}

/// Samples of one event.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub(crate) struct Sum {
    /// The number of samples.
    pub samples: u64,
    /// What was counted, in the event's own unit.
    pub period: u64,
}

impl Sum {
    pub(crate) fn add(&mut self, other: Sum) {
        self.samples += other.samples;
        self.period = self.period.saturating_add(other.period);
    }
}

/// What was sampled in a trace.
pub struct Profile {
    pub(crate) names: Arc<Names>,
    /// The control groups that the recorder read.
    pub(crate) groups: Groups,
    pub(crate) code: CodeTable,
    /// Samples of the profile's event.
    pub(crate) sums: Vec<(Sampled, Sum)>,
    /// The profile's event; `None` if no sample shows where CPU time went.
    pub event: Option<EventDesc>,
    /// Names of all events with samples, and how many; the most first.
    pub sampled: Vec<(String, u64)>,
}

/// What was sampled, with the time of every sample.
pub struct Timeline {
    /// The samples added up.
    pub profile: Profile,
    pub(crate) rows: Vec<(Row, Samples)>,
    pub(crate) times: Times,
}

/// The preferred event of a trace whose samples show where CPU time went.
pub(crate) fn plainest(info: &TraceInfo) -> Option<EventId> {
    let ranked = info.events.iter().zip(0..).filter_map(|(e, id)| Some((plainness(&e.name)?, id)));
    ranked.min().map(|(_, id)| EventId(id))
}

/// Collects the samples of one event: the one that is named, or the preferred one that shows where
/// CPU time went.
pub struct Collector<'a> {
    info: &'a TraceInfo,
    selection: &'a Selection,
    event: Option<EventId>,
    context: Context,
    /// The chain of the next event.
    held: Option<StackRef>,
    sums: FxHashMap<(EventId, Sampled), Sum>,
    times: Option<Times>,
    failed: Option<io::Error>,
}

impl<'a> Collector<'a> {
    /// A collector for the part `selection` of a trace.
    pub fn new(
        info: &'a TraceInfo,
        selection: &'a Selection,
        event: Option<EventId>,
    ) -> Collector<'a> {
        Collector {
            info,
            selection,
            event,
            context: Context::new(info),
            held: None,
            sums: FxHashMap::default(),
            times: None,
            failed: None,
        }
    }

    /// Keep only the sampled code, not how it was reached: for tables without callers, which need
    /// not distinguish chains.
    #[must_use]
    pub fn without_callers(mut self) -> Collector<'a> {
        self.context.keep_innermost();
        self
    }

    /// Feed the next events of the trace, in order.
    pub fn events(&mut self, events: &[Event], batch: &Batch) {
        for e in events {
            self.event(e, batch);
        }
    }

    /// The profile, after all events have been seen.
    pub fn finish(self) -> Profile {
        self.finish_with_times().0
    }

    /// Read a trace for the profile only. Problems come with the profile.
    ///
    /// # Errors
    /// Whatever makes the rest of the trace unreadable.
    pub fn read(mut self, reader: &dyn Reader) -> Result<(Profile, Quality)> {
        let quality = self.drive(reader)?;
        Ok((self.finish(), quality))
    }

    /// [`Collector::read`] that also keeps the time of every sample, in a temporary file: memory
    /// grows with threads and distinct chains only.
    ///
    /// # Errors
    /// Errors of [`Collector::read`], and of the temporary file.
    pub fn read_times(mut self, reader: &dyn Reader) -> Result<(Timeline, Quality)> {
        let io = |error: io::Error| ErrorKind::from(error).in_file(&std::env::temp_dir());
        self.times = Some(Times::new().map_err(io)?);
        let quality = self.drive(reader)?;
        if let Some(error) = self.failed.take() {
            return Err(io(error));
        }
        let (profile, chosen, times) = self.finish_with_times();
        let mut times = times.unwrap_or_default();
        let rows = times.rows(chosen);
        Ok((Timeline { profile, rows, times }, quality))
    }

    fn drive(&mut self, reader: &dyn Reader) -> Result<Quality> {
        let to = self.selection.to.unwrap_or(u64::MAX);
        merge::drive(reader, 0, &mut |events: &[Event], batch: &Batch| {
            self.events(events, batch);
            match events.last() {
                Some(last) if last.ts > to => ControlFlow::Break(()),
                _ if self.failed.is_some() => ControlFlow::Break(()),
                _ => ControlFlow::Continue(()),
            }
        })
    }

    fn finish_with_times(self) -> (Profile, Option<EventId>, Option<Times>) {
        let mut counts: FxHashMap<EventId, u64> = FxHashMap::default();
        for ((id, _), sum) in &self.sums {
            *counts.entry(*id).or_default() += sum.samples;
        }
        let desc = |id: EventId| self.info.events.get(id.0 as usize);
        let chosen = self.event.or_else(|| {
            let rank = |id: EventId| desc(id).and_then(|d| plainness(&d.name));
            counts.keys().filter_map(|&id| Some((rank(id)?, id))).min().map(|(_, id)| id)
        });
        let mut sampled: Vec<(String, u64)> =
            counts.iter().filter_map(|(&id, &n)| Some((desc(id)?.name.clone(), n))).collect();
        sampled.sort_by(|a, b| (Reverse(a.1), &a.0).cmp(&(Reverse(b.1), &b.0)));
        let of_chosen = self.sums.into_iter().filter(|((id, _), _)| Some(*id) == chosen);
        let profile = Profile {
            names: self.info.names.clone(),
            groups: self.info.groups.clone(),
            code: self.context.finish(),
            sums: of_chosen.map(|((_, who), sum)| (who, sum)).collect(),
            event: chosen.and_then(desc).cloned(),
            sampled,
        };
        (profile, chosen, self.times)
    }

    fn event(&mut self, e: &Event, batch: &Batch) {
        let held = self.held.take();
        self.context.event(e, batch);
        match e.what {
            What::Stack { of } => self.held = Some(of),
            What::Sample { period, stack } if self.event.is_none_or(|id| id == e.id) => {
                self.sample(e, batch, stack, period);
            }
            What::ContentionBegin { stack, .. } if self.event == Some(e.id) => {
                self.sample(e, batch, stack, 1);
            }
            _ if self.event == Some(e.id) => {
                self.sample(e, batch, held.unwrap_or(StackRef::NONE), 1);
            }
            _ => {}
        }
    }

    fn sample(&mut self, e: &Event, batch: &Batch, stack: StackRef, period: u64) {
        let select = self.selection;
        if select.from.is_some_and(|from| e.ts < from)
            || select.to.is_some_and(|to| e.ts > to)
            || select.cpus.as_ref().is_some_and(|cpus| !cpus.contains(&e.cpu))
        {
            return;
        }
        let (pid, chain) = self.context.chain(e, batch, stack);
        let comm = self.context.comm(e);
        let group = self.context.group(e);
        let who = Sampled { pid, tid: e.tid, comm, group, cpu: e.cpu, chain };
        self.sums.entry((e.id, who)).or_default().add(Sum { samples: 1, period });
        if let Some(times) = &mut self.times {
            let row = Row { event: e.id, pid, tid: e.tid, comm, group };
            let sample = Timed { time: e.ts, period, chain, cpu: e.cpu };
            if let Err(error) = times.push(row, sample) {
                self.failed = Some(error);
            }
        }
    }
}

impl Profile {
    /// The mapping of the kernel's own code.
    pub fn kernel_text(&self) -> Option<Mapping> {
        self.code.kernel_text(&self.names)
    }

    /// Whether periods are nanoseconds of CPU time.
    pub fn is_of_time(&self) -> bool {
        self.event.as_ref().is_some_and(|e| plainness(&e.name).is_some_and(|at| at < 2))
    }

    /// Whether periods are cycles of a CPU.
    pub(crate) fn is_of_cycles(&self) -> bool {
        self.event.as_ref().is_some_and(|e| plainness(&e.name).is_some_and(|at| at >= 2))
    }

    /// A thread's name as perf prints it.
    pub(crate) fn comm(&self, tid: Tid, comm: NameId) -> String {
        match self.names.get(comm) {
            _ if tid == Tid::IDLE => "swapper".to_owned(),
            name if name.is_empty() => format!(":{tid}"),
            name => name,
        }
    }

    /// All samples.
    pub(crate) fn whole(&self) -> Sum {
        let mut whole = Sum::default();
        self.sums.iter().for_each(|(_, sum)| whole.add(*sum));
        whole
    }
}
