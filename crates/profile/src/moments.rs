//! Where threads were at the moments that facts tell of later: facts of a batch come after its
//! events.

use crate::chains::ChainId;
use crate::context::Context;
use holdup_trace::{Batch, Event, EventId, Nanos, Pid, StackRef, Tid, TraceInfo, What};
use rustc_hash::FxHashMap;
use std::collections::VecDeque;

/// Code that ran: a call chain in the memory of a process.
pub(crate) type InCode = (Pid, ChainId);

/// A moment of one thread.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Moment {
    pub(crate) at: Nanos,
    /// The thread whose chain it is.
    pub(crate) by: Tid,
    /// It was in application code, not in the kernel.
    pub(crate) in_user: bool,
    pub(crate) code: InCode,
}

/// The latest moments of each thread, oldest first. Of one thread no more are kept than a batch
/// has events: older ones have been asked for, or never are.
#[derive(Default)]
pub(crate) struct Moments(FxHashMap<Tid, VecDeque<Moment>>);

impl Moments {
    fn push(&mut self, of: Tid, moment: Moment) {
        let moments = self.0.entry(of).or_default();
        if moments.len() > Batch::TARGET {
            moments.pop_front();
        }
        moments.push_back(moment);
    }

    /// The last one up to a time. Of one thread, times must not go back.
    pub(crate) fn last(&mut self, of: Tid, at: Nanos) -> Option<Moment> {
        let moments = self.0.get_mut(&of)?;
        while moments.get(1).is_some_and(|next| next.at <= at) {
            moments.pop_front();
        }
        moments.front().copied().filter(|first| first.at <= at)
    }

    /// Those between two times.
    pub(crate) fn between(
        &self,
        of: Tid,
        from: Nanos,
        to: Nanos,
    ) -> impl Iterator<Item = Moment> + '_ {
        let moments = self.0.get(&of);
        let first = moments.map_or(0, |m| m.partition_point(|m| m.at < from));
        moments
            .into_iter()
            .flat_map(move |m| m.range(first..))
            .take_while(move |m| m.at <= to)
            .copied()
    }
}

/// The moments that a trace shows with chains.
pub(crate) struct Watch {
    pub(crate) context: Context,
    held: Option<StackRef>,
    /// The event whose samples tell what ran.
    sampled: Option<EventId>,
    /// Threads that gave up their CPUs.
    pub(crate) left: Moments,
    /// Threads that were woken: the chains are those of who woke them.
    pub(crate) woken: Moments,
    /// Threads that entered system calls.
    pub(crate) entered: Moments,
    /// Threads that began to wait for a lock of the kernel.
    pub(crate) contended: Moments,
    /// Threads that ran when a sample was taken.
    pub(crate) ran: Moments,
}

impl Watch {
    /// At the begin of a trace; `sampled` is the event whose samples tell what ran.
    pub(crate) fn new(info: &TraceInfo, sampled: Option<EventId>) -> Watch {
        Watch {
            context: Context::new(info),
            held: None,
            sampled,
            left: Moments::default(),
            woken: Moments::default(),
            entered: Moments::default(),
            contended: Moments::default(),
            ran: Moments::default(),
        }
    }

    /// Events, in order.
    pub(crate) fn see_all(&mut self, events: &[Event], batch: &Batch) {
        for e in events {
            self.see(e, batch);
        }
    }

    /// An event; what it tells of a sample, whose thread ran.
    pub(crate) fn see(&mut self, e: &Event, batch: &Batch) -> Option<Moment> {
        let held = self.held.take();
        self.context.event(e, batch);
        let stack = match e.what {
            What::Stack { of } => {
                self.held = Some(of);
                return None;
            }
            What::Sample { stack, .. } if self.sampled == Some(e.id) => stack,
            What::ContentionBegin { stack, .. } => stack,
            What::Switch { .. }
            | What::Waking { .. }
            | What::Wakeup { .. }
            | What::WakeupNew { .. }
            | What::SysEnter { .. } => held?,
            _ => return None,
        };
        // A chain is of the thread that was on the CPU: of a switch, of the one that leaves.
        let by = if let What::Switch { prev, .. } = e.what { prev } else { e.tid };
        if by == Tid::IDLE || batch.stack(stack).is_empty() {
            return None;
        }
        let in_user = stack.in_kernel() == 0;
        let moment = Moment { at: e.ts, by, in_user, code: self.context.chain(e, batch, stack) };
        match e.what {
            What::Switch { .. } => self.left.push(by, moment),
            What::Waking { tid, .. } | What::Wakeup { tid, .. } | What::WakeupNew { tid, .. } => {
                self.woken.push(tid, moment);
            }
            What::SysEnter { .. } => self.entered.push(by, moment),
            What::ContentionBegin { .. } => self.contended.push(by, moment),
            _ => {
                self.ran.push(by, moment);
                return Some(moment);
            }
        }
        None
    }
}
