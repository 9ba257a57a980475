//! One reading of the trace: samples by thread, CPU and call chain.

use crate::chains::ChainId;
use crate::context::{CodeTable, Context};
use holdup_passes::Selection;
use holdup_symbols::Code;
use holdup_trace::{
    Batch, Cpu, Event, EventDesc, EventId, Mapping, NameId, Names, Pid, Quality, Reader, Result,
    StackRef, Tid, TraceInfo, What, merge,
};
use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use std::ops::ControlFlow;
use std::sync::Arc;

/// Events whose samples say where CPU time went, the plainest first.
const OF_CPU_TIME: [&str; 4] = ["cpu-clock", "task-clock", "cycles", "cpu-cycles"];

/// Who and where a sample was.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Sampled {
    /// The process.
    pub pid: Pid,
    /// The thread.
    pub tid: Tid,
    /// The thread's name then.
    pub comm: NameId,
    /// Where it ran.
    pub cpu: Cpu,
    /// The call chain, the sampled address first.
    pub chain: ChainId,
}

/// Samples of one event.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub(crate) struct Sum {
    /// How many.
    pub samples: u64,
    /// What was counted, in the event's own unit.
    pub period: u64,
}

/// What was sampled in a trace.
pub struct Profile {
    pub(crate) names: Arc<Names>,
    code: CodeTable,
    /// Of the event that the profile is of.
    pub(crate) sums: Vec<(Sampled, Sum)>,
    /// The event that the profile is of; `None` if no sample says where CPU time went.
    pub event: Option<EventDesc>,
    /// Names of all events with samples, and how many; the most first.
    pub sampled: Vec<(String, u64)>,
    /// What went wrong.
    pub quality: Quality,
}

/// Read `reader` and sum up the samples of its part `selection`: those of `event`, or where that is
/// `None` of the plainest event that shows where CPU time went.
///
/// # Errors
/// Whatever makes the rest of the trace unreadable.
pub fn collect(
    reader: &dyn Reader,
    selection: &Selection,
    event: Option<EventId>,
) -> Result<Profile> {
    let info = reader.info();
    let mut collector = Collector {
        selection,
        event,
        context: Context::new(info),
        held: None,
        sums: FxHashMap::default(),
    };
    let quality = merge::drive(reader, 0, &mut |events: &[Event], batch: &Batch| {
        for e in events {
            if selection.to.is_some_and(|to| e.ts > to) {
                return ControlFlow::Break(());
            }
            collector.event(e, batch);
        }
        ControlFlow::Continue(())
    })?;
    let mut counts: FxHashMap<EventId, u64> = FxHashMap::default();
    for ((id, _), sum) in &collector.sums {
        *counts.entry(*id).or_default() += sum.samples;
    }
    let desc = |id: EventId| info.events.get(id.0 as usize);
    let chosen = event.or_else(|| {
        let rank = |id: EventId| desc(id).and_then(|d| plainness(&d.name));
        counts.keys().filter_map(|&id| Some((rank(id)?, id))).min().map(|(_, id)| id)
    });
    let mut sampled: Vec<(String, u64)> =
        counts.iter().filter_map(|(&id, &n)| Some((desc(id)?.name.clone(), n))).collect();
    sampled.sort_by(|a, b| (Reverse(a.1), &a.0).cmp(&(Reverse(b.1), &b.0)));
    let of_chosen = collector.sums.into_iter().filter(|((id, _), _)| Some(*id) == chosen);
    Ok(Profile {
        names: info.names.clone(),
        code: collector.context.finish(),
        sums: of_chosen.map(|((_, who), sum)| (who, sum)).collect(),
        event: chosen.and_then(desc).cloned(),
        sampled,
        quality,
    })
}

/// Where an event stands in [`OF_CPU_TIME`]: `cycles:u`, `cpu_core/cycles/`, `cpu-clock/freq=99/`.
fn plainness(name: &str) -> Option<usize> {
    let mut words = name.split(['/', ',', ':']).take(2);
    words.find_map(|word| OF_CPU_TIME.iter().position(|n| *n == word))
}

/// The plainest event of a trace whose samples say where CPU time went.
pub(crate) fn plainest(info: &TraceInfo) -> Option<EventId> {
    let ranked = info.events.iter().zip(0..).filter_map(|(e, id)| Some((plainness(&e.name)?, id)));
    ranked.min().map(|(_, id)| EventId(id))
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

    /// A thread's name as perf prints it.
    pub(crate) fn comm(&self, who: &Sampled) -> String {
        match self.names.get(who.comm) {
            _ if who.tid == Tid::IDLE => "swapper".to_owned(),
            name if name.is_empty() => format!(":{}", who.tid),
            name => name,
        }
    }

    /// The code of a sample, innermost first.
    pub(crate) fn code(&self, who: &Sampled) -> impl DoubleEndedIterator<Item = Code> {
        self.code.chain(who.pid, who.chain)
    }
}

struct Collector<'a> {
    selection: &'a Selection,
    event: Option<EventId>,
    context: Context,
    /// The chain of the event that comes next.
    held: Option<StackRef>,
    sums: FxHashMap<(EventId, Sampled), Sum>,
}

impl Collector<'_> {
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
            || select.cpus.as_ref().is_some_and(|cpus| !cpus.contains(&e.cpu))
        {
            return;
        }
        let (pid, chain) = self.context.chain(e, batch, stack);
        let who = Sampled { pid, tid: e.tid, comm: self.context.comm(e), cpu: e.cpu, chain };
        let sum = self.sums.entry((e.id, who)).or_default();
        sum.samples += 1;
        sum.period = sum.period.saturating_add(period);
    }
}
