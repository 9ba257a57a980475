//! The quick way from samples to system calls, which are most events of most traces. Tells also
//! which samples may be switches.
//!
//! Recorders use one layout for all tracepoints, perf's or the same without IP, and all 64-bit
//! kernels describe system calls in the same way. So each offset in these samples is a constant,
//! and the id of a sample tells whether it is one of them: neither its layout nor its plan has to
//! be looked at.

use crate::layout::Layout;
use crate::record;
use holdup_trace::{Batch, Cpu, Event, EventId, NameId, Pid, Tid, What};
use holdup_tracepoint::{CallNumber, Endian, Plan, sys_enter_64, sys_exit_64};

/// What a sample is, by its id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Call {
    /// Perhaps a switch.
    Not,
    /// In the usual layout of this file.
    Enter { event: EventId, nr: CallNumber, args: u8 },
    /// In the usual layout of this file.
    Exit { event: EventId, nr: CallNumber },
    /// Any other sample that is no switch.
    Other,
}

/// Which ids stand for system calls in the usual layout.
#[derive(Debug, Default)]
pub(crate) struct Calls {
    /// The smallest id.
    base: u64,
    /// By the distance from `base`.
    by_id: Vec<Call>,
    usual: Usual,
}

/// The usual layouts: IDENTIFIER, perhaps IP, TID, TIME, CPU, PERIOD, RAW.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Usual {
    #[default]
    WithIp,
    WithoutIp,
}

impl Usual {
    /// The usual layout that this is, if it is one.
    pub(crate) fn of(l: &Layout) -> Option<Usual> {
        let is = |tid: usize| {
            let usual = [at::ID, tid, at::time(tid), at::cpu(tid), at::len(tid), 0];
            [l.id, l.tid, l.time, l.cpu, l.raw, l.cgroup].map(usize::from) == usual
        };
        if is(at::TID_WITH_IP) {
            return Some(Usual::WithIp);
        }
        is(at::TID_WITHOUT_IP).then_some(Usual::WithoutIp)
    }
}

/// Offsets in the usual layouts, from that of TID.
mod at {
    pub(super) const ID: usize = 8;
    pub(super) const TID_WITH_IP: usize = 24;
    pub(super) const TID_WITHOUT_IP: usize = 16;
    pub(super) const fn time(tid: usize) -> usize {
        tid + 8
    }
    pub(super) const fn cpu(tid: usize) -> usize {
        tid + 16
    }
    /// The length of the tracepoint's data, which follow.
    pub(super) const fn len(tid: usize) -> usize {
        tid + 32
    }
    pub(super) const fn raw(tid: usize) -> usize {
        tid + 36
    }
    /// No sample of a system call is shorter.
    pub(super) const HEAD: usize = raw(TID_WITH_IP);
}

/// Ids are counted from boot, so they are small and close together. A table of others would be too
/// large.
const MOST: u64 = 1 << 16;

impl Calls {
    /// What the samples with each id are; calls are in this layout.
    pub(crate) fn new(all: &[(u64, Call)], usual: Usual) -> Calls {
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
        Calls { base, by_id, usual }
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
    /// is not full; or only the first. Returns the bytes used, and the time of the last event.
    #[inline(always)]
    pub(crate) fn decode<E: Endian, const FIRST: bool>(
        &self,
        bytes: &[u8],
        batch: &mut Batch,
    ) -> (usize, Option<u64>) {
        // Not for each record: the loop has one layout.
        match self.usual {
            Usual::WithIp => self.decode_at::<E, { at::TID_WITH_IP }, FIRST>(bytes, batch),
            Usual::WithoutIp => self.decode_at::<E, { at::TID_WITHOUT_IP }, FIRST>(bytes, batch),
        }
    }

    #[inline(always)]
    fn decode_at<E: Endian, const TID: usize, const FIRST: bool>(
        &self,
        bytes: &[u8],
        batch: &mut Batch,
    ) -> (usize, Option<u64>) {
        let (mut used, mut last) = (0, None);
        while !batch.is_full()
            && let Some(rest) = bytes.get(used..)
            && let Some((size, ts)) = self.one::<E, TID>(rest, batch)
        {
            last = Some(ts);
            used += size;
            if FIRST {
                break;
            }
        }
        (used, last)
    }

    /// Decodes the record at the start of `bytes`, if it is a system call. Returns its size and
    /// time.
    #[inline(always)]
    fn one<E: Endian, const TID: usize>(
        &self,
        bytes: &[u8],
        batch: &mut Batch,
    ) -> Option<(usize, u64)> {
        let head = bytes.first_chunk::<{ at::HEAD }>()?;
        if E::u32(head, 0) != record::SAMPLE {
            return None;
        }
        let rec = bytes.get(..E::u16(head, 6) as usize)?;
        let raw = rec.get(at::raw(TID)..)?.get(..E::u32(head, at::len(TID)) as usize)?;
        let ts = E::u64(head, at::time(TID));
        let event = |id, what| Event {
            ts,
            tid: Tid(E::u32(head, TID + 4)),
            pid: Pid(E::u32(head, TID)),
            comm: NameId::NONE,
            cpu: Cpu(u16::try_from(E::u32(head, at::cpu(TID))).unwrap_or(u16::MAX)),
            id,
            what,
        };
        // Each kind is pushed on its own, so that it goes from registers to the batch. A common
        // push would assemble the `What` in memory field by field and load it again in larger
        // pieces: a store-forwarding stall for every event.
        match self.of_id(E::u64(head, at::ID))? {
            _ if ts == u64::MAX => return None,
            Call::Enter { event: id, nr, args } => {
                let (nr, args) = sys_enter_64::<E>(raw, nr, args, batch)?;
                batch.events.push(event(id, What::SysEnter { nr, args }));
            }
            Call::Exit { event: id, nr } => {
                let (nr, ret) = sys_exit_64::<E>(raw, nr)?;
                batch.events.push(event(id, What::SysExit { nr, ret }));
            }
            Call::Not | Call::Other => return None,
        }
        Some((rec.len(), ts))
    }
}

impl Call {
    /// The samples of an event with this layout, and with this plan if it is a tracepoint. Calls
    /// are told if they are in this usual layout.
    pub(crate) fn of(event: EventId, l: &Layout, plan: Option<&Plan>, usual: Usual) -> Call {
        let is_usual = Usual::of(l) == Some(usual);
        match plan {
            _ if usize::from(l.id) != at::ID => Call::Not,
            Some(Plan::Switch { .. }) => Call::Not,
            Some(&Plan::SysEnter64 { nr, args }) if is_usual => Call::Enter { event, nr, args },
            Some(&Plan::SysExit64 { nr }) if is_usual => Call::Exit { event, nr },
            _ => Call::Other,
        }
    }
}
