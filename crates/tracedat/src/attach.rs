//! Which event a call chain belongs to.
//!
//! After an event the kernel writes its `kernel_stack` and, if requested, its `user_stack`. An
//! interrupt may come in between, with events and stacks of its own. So a chain belongs to the
//! latest event of its thread on its CPU that has no such chain yet.

use crate::format::EventTable;
use crate::stacks::StackPlan;
use holdup_trace::{Batch, Event, EventId, Frame, StackRef, Tid, What};
use holdup_tracepoint::Endian;

/// How many events are searched for the one to which a chain belongs.
const NEAR: usize = 16;

impl EventTable {
    /// Give the chain in `payload`, written by the thread `tid`, to its event in `batch`.
    pub(crate) fn attach<E: Endian>(
        &self,
        chain: &StackPlan,
        payload: &[u8],
        tid: Tid,
        batch: &mut Batch,
    ) {
        let writes = |frame: &Frame| frame.kernel && self.recorders.contain(frame.address);
        let mut frames = chain.frames::<E>(payload).skip_while(writes).peekable();
        if frames.peek().is_none() {
            return;
        }
        let Some(at) = self.owner(chain.user, tid, batch) else { return };
        let before = chain_of(&batch.events, at);
        let of = match before.is_empty() {
            true => batch.push_stack(frames),
            false => batch.extend_stack(before, frames),
        };
        let stack = What::Stack { of };
        match &mut batch.events[at].what {
            What::ContentionBegin { stack, .. } => *stack = of,
            _ if before.is_empty() => {
                let event = Event { id: EventId::SIDEBAND, what: stack, ..batch.events[at] };
                batch.events.insert(at, event);
            }
            _ => batch.events[at - 1].what = stack,
        }
    }

    /// Index of the event in the batch that lacks this chain.
    fn owner(&self, user: bool, tid: Tid, batch: &Batch) -> Option<usize> {
        let events = batch.events.iter().enumerate().rev().take(NEAR);
        events
            .filter(|(_, e)| e.id != EventId::SIDEBAND && self.stack(e.id).is_none())
            .take_while(|(_, e)| e.tid == tid)
            .map(|(at, _)| at)
            .find(|&at| {
                let chain = chain_of(&batch.events, at);
                match user {
                    false => chain.is_empty(),
                    true => chain.in_kernel() == batch.stack(chain).len(),
                }
            })
    }
}

/// The chain of the event at index `at`.
fn chain_of(events: &[Event], at: usize) -> StackRef {
    match (events[at].what, at.checked_sub(1).map(|before| events[before].what)) {
        (What::ContentionBegin { stack, .. }, _) => stack,
        (_, Some(What::Stack { of })) => of,
        _ => StackRef::NONE,
    }
}
