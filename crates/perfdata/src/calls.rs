//! The quick way from samples to system calls, which are most events of most traces. Tells also
//! which samples may be switches.
//!
//! perf records tracepoints in one layout, and all 64-bit kernels describe `raw_syscalls` in the
//! same way. So each offset in these samples is a constant, and the id of a sample tells whether it
//! is one of them: neither its layout nor its plan has to be looked at.

use crate::layout::Layout;
use crate::record;
use holdup_trace::{Batch, Cpu, Event, EventId, NameId, Pid, Tid, What};
use holdup_tracepoint::{Endian, Plan, sys_enter_64, sys_exit_64};

/// What a sample is, by its id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Call {
    /// Perhaps a switch.
    Not,
    /// In perf's usual layout.
    Enter(EventId),
    /// In perf's usual layout.
    Exit(EventId),
    /// Any other sample that is no switch.
    Other,
}

/// Which ids stand for system calls in perf's usual layout.
#[derive(Debug, Default)]
pub(crate) struct Calls {
    /// The smallest id.
    base: u64,
    /// By the distance from `base`.
    by_id: Vec<Call>,
}

/// Offsets in the usual layout: IDENTIFIER, IP, TID, TIME, CPU, PERIOD, RAW.
mod at {
    pub(super) const ID: usize = 8;
    pub(super) const TID: usize = 24;
    pub(super) const TIME: usize = 32;
    pub(super) const CPU: usize = 40;
    /// The length of the tracepoint's data, which follow.
    pub(super) const LEN: usize = 56;
    pub(super) const RAW: usize = 60;
}

/// Ids are counted from boot, so they are small and close together. A table of others would be too
/// large.
const MOST: u64 = 1 << 16;

impl Calls {
    /// What the samples with each id are.
    pub(crate) fn new(all: &[(u64, Call)]) -> Calls {
        let calls = || all.iter().filter(|&&(id, call)| id != 0 && call != Call::Not);
        let base = calls().map(|&(id, _)| id).min().unwrap_or(0);
        let span = calls().map(|&(id, _)| id - base).max().filter(|&span| span < MOST);
        let mut by_id = vec![Call::Not; span.map_or(0, |span| span as usize + 1)];
        // If two events have the same id, the last one has it.
        for &(id, call) in all {
            if let Some(of) = by_id.get_mut(id.wrapping_sub(base) as usize) {
                *of = call;
            }
        }
        Calls { base, by_id }
    }

    /// Whether the ids of samples tell anything.
    pub(crate) fn are_known(&self) -> bool {
        !self.by_id.is_empty()
    }

    /// What a sample with this id is, if its id tells.
    #[inline(always)]
    fn of_id(&self, id: u64) -> Option<Call> {
        self.by_id.get(id.wrapping_sub(self.base) as usize).copied()
    }

    /// Whether this sample may be a switch.
    #[inline(always)]
    pub(crate) fn may_switch<E: Endian>(&self, rec: &[u8]) -> bool {
        let Some(head) = rec.first_chunk::<{ at::ID + 8 }>() else { return true };
        self.of_id(E::u64(head, at::ID)).is_none_or(|call| call == Call::Not)
    }

    /// Decodes the records at the start of `bytes`, as long as they are system calls and the batch
    /// is not full. Returns the bytes used, and the time of the last event.
    #[inline(always)]
    pub(crate) fn decode<E: Endian>(
        &self,
        bytes: &[u8],
        batch: &mut Batch,
    ) -> (usize, Option<u64>) {
        let (mut used, mut last) = (0, None);
        while !batch.is_full()
            && let Some(rest) = bytes.get(used..)
            && let Some(head) = rest.first_chunk::<{ at::RAW }>()
            && E::u32(head, 0) == record::SAMPLE
            && let Some(rec) = rest.get(..E::u16(head, 6) as usize)
            && let Some(raw) = rec.get(at::RAW..)
            && let Some(raw) = raw.get(..E::u32(head, at::LEN) as usize)
            && let Some(call) = self.of_id(E::u64(head, at::ID))
        {
            let ts = E::u64(head, at::TIME);
            let event = |id, what| Event {
                ts,
                tid: Tid(E::u32(head, at::TID + 4)),
                pid: Pid(E::u32(head, at::TID)),
                comm: NameId::NONE,
                cpu: Cpu(u16::try_from(E::u32(head, at::CPU)).unwrap_or(u16::MAX)),
                id,
                what,
            };
            // Each kind is pushed on its own, so that it goes from registers to the batch. A common
            // push would assemble the `What` in memory field by field and load it again in larger
            // pieces: a store-forwarding stall for every event.
            match call {
                _ if ts == u64::MAX => break,
                Call::Enter(id) => match sys_enter_64::<E>(raw, batch) {
                    Some((nr, args)) => batch.events.push(event(id, What::SysEnter { nr, args })),
                    None => break,
                },
                Call::Exit(id) => match sys_exit_64::<E>(raw) {
                    Some((nr, ret)) => batch.events.push(event(id, What::SysExit { nr, ret })),
                    None => break,
                },
                Call::Not | Call::Other => break,
            }
            last = Some(ts);
            used += rec.len();
        }
        (used, last)
    }
}

impl Call {
    /// The samples of an event with this layout, and with this plan if it is a tracepoint.
    pub(crate) fn of(event: EventId, l: &Layout, plan: Option<&Plan>) -> Call {
        let is_usual = (l.tid, l.time, l.cpu, l.raw, l.cgroup)
            == (at::TID as u16, at::TIME as u16, at::CPU as u16, at::LEN as u16, 0);
        match plan {
            _ if l.id != at::ID as u16 => Call::Not,
            Some(Plan::Switch { .. }) => Call::Not,
            Some(Plan::SysEnter64) if is_usual => Call::Enter(event),
            Some(Plan::SysExit64) if is_usual => Call::Exit(event),
            _ => Call::Other,
        }
    }
}
