//! Call chains: records of their own (`trace-cmd record -T`), behind the events they belong to.
//!
//! When the kernel has written an event it writes its `kernel_stack` and, where it was asked to,
//! its `user_stack`. An interrupt may come between, with events and stacks of its own; so a chain
//! belongs to the latest event of its thread on its CPU that has none yet.

use crate::format::EventTable;
use holdup_trace::{Batch, Event, EventId, Frame, StackRef, SymbolTable, Tid, What, is_recorder};
use holdup_tracepoint::{Abi, Endian, Format};

/// Events looked at to find the one that a chain belongs to.
const NEAR: usize = 16;

/// Where the addresses of a chain are in its record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StackPlan {
    /// First address. The format says there are eight of them, and a record has any number.
    from: usize,
    /// Where the record says how many there are; else -1 ends them.
    count: Option<usize>,
    /// Bytes of an address.
    long: usize,
    /// It is the program's chain, not the kernel's.
    pub(crate) user: bool,
}

impl StackPlan {
    /// For the records of one format; `None` if they are not chains.
    pub(crate) fn compile(format: &Format, abi: Abi) -> Option<StackPlan> {
        let user = match (format.system.as_str(), format.name.as_str()) {
            ("ftrace", "kernel_stack") => false,
            ("ftrace", "user_stack") => true,
            _ => return None,
        };
        let from = format.field("caller")?.offset as usize;
        let size = format.field("size").filter(|field| field.size == 4);
        let count = size.map(|field| field.offset as usize);
        Some(StackPlan { from, count, long: abi.long_size.into(), user })
    }

    /// The frames of a record, innermost first.
    fn frames<'a, E: Endian>(&self, payload: &'a [u8]) -> impl Iterator<Item = Frame> + use<'a, E> {
        let StackPlan { from, count, long, user } = *self;
        let count = match count.filter(|at| at + 4 <= payload.len()) {
            Some(at) => E::u32(payload, at) as usize,
            None => usize::MAX,
        };
        let addresses = payload.get(from..).unwrap_or(&[]).chunks_exact(long.max(1)).take(count);
        let addresses = addresses.map(move |a| match long {
            8 => E::u64(a, 0),
            4 => E::u32(a, 0) as i32 as u64,
            _ => 0,
        });
        // Chains of programs end in zeros. Addresses of 32 bits were extended: -1 ends them, too.
        let addresses = addresses.take_while(|&a| a != 0 && a != u64::MAX);
        let narrow = move |a: u64| if long == 4 { a & u64::from(u32::MAX) } else { a };
        addresses.map(move |a| Frame { address: narrow(a), kernel: !user })
    }

    /// Give the chain in `payload`, written by the thread `tid`, to its event in `batch`.
    pub(crate) fn attach<E: Endian>(
        &self,
        payload: &[u8],
        tid: Tid,
        table: &EventTable,
        batch: &mut Batch,
    ) {
        let writes = |frame: &Frame| frame.kernel && table.recorders.contain(frame.address);
        let mut frames = self.frames::<E>(payload).skip_while(writes).peekable();
        if frames.peek().is_none() {
            return;
        }
        let Some(at) = self.owner(tid, table, batch) else { return };
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

    /// Which event of the batch lacks this chain.
    fn owner(&self, tid: Tid, table: &EventTable, batch: &Batch) -> Option<usize> {
        let events = batch.events.iter().enumerate().rev().take(NEAR);
        events
            .filter(|(_, e)| e.id != EventId::SIDEBAND && table.stack(e.id).is_none())
            .take_while(|(_, e)| e.tid == tid)
            .map(|(at, _)| at)
            .find(|&at| {
                let chain = chain_of(&batch.events, at);
                match self.user {
                    false => chain.is_empty(),
                    true => chain.in_kernel() == batch.stack(chain).len(),
                }
            })
    }
}

/// The chain that the event at `at` has.
fn chain_of(events: &[Event], at: usize) -> StackRef {
    match (events[at].what, at.checked_sub(1).map(|before| events[before].what)) {
        (What::ContentionBegin { stack, .. }, _) => stack,
        (_, Some(What::Stack { of })) => of,
        _ => StackRef::NONE,
    }
}

/// Where the kernel's functions are that write events.
#[derive(Debug, Default)]
pub(crate) struct Recorders(Vec<(u64, u64)>);

impl Recorders {
    pub(crate) fn new(symbols: &SymbolTable) -> Recorders {
        Recorders(symbols.ranges(is_recorder))
    }

    fn contain(&self, address: u64) -> bool {
        let after = self.0.partition_point(|range| range.0 <= address);
        after.checked_sub(1).is_some_and(|at| address < self.0[at].1)
    }
}
