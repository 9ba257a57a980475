//! A bundle: the events that the recorder read at once from the ring buffer of one CPU.
//!
//! ```text
//!  FtraceEventBundle { cpu, event[], compact_sched { switch_*[], waking_*[] }, lost_events, … }
//! ```
//!
//! Its events are in time order, and so is each of the two lists of `compact_sched`: reading a
//! bundle is a merge of three streams.

use crate::schema::{bundle, compact, event};
use crate::wire::{Broken, Fields, Packed, Value};

/// One `FtraceEvent`, its content not yet parsed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Raw<'a> {
    /// Time stamp of the clock that the bundle names.
    pub(crate) ts: u64,
    /// `common_pid`: the thread that was current.
    pub(crate) pid: u32,
    /// `common_flags`; 0 if the recorder did not write them.
    pub(crate) flags: u64,
    /// Field number of the event's message.
    pub(crate) number: u32,
    pub(crate) content: &'a [u8],
}

impl<'a> Raw<'a> {
    /// Read the outer fields of an event. One without a time or without content is broken.
    #[inline(always)]
    pub(crate) fn read(message: &'a [u8]) -> Result<Raw<'a>, Broken> {
        let mut fields = Fields::of(message);
        let (mut ts, mut pid, mut flags, mut found) = (None, 0, 0, None);
        while let Some((number, value)) = fields.next()? {
            match (number, value) {
                (event::TIMESTAMP, Value::Int(n)) => ts = Some(n),
                (event::PID, Value::Int(n)) => pid = n as u32,
                (event::COMMON_FLAGS, Value::Int(n)) => flags = n,
                (number, Value::Bytes(content)) if found.is_none() => {
                    found = Some((number, content));
                }
                _ => {}
            }
        }
        let (Some(ts), Some((number, content))) = (ts, found) else { return Err(Broken) };
        Ok(Raw { ts, pid, flags, number, content })
    }
}

/// A list of `compact_sched`: times, with four more numbers each.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Lane<'a> {
    time: Packed<'a>,
    columns: [Packed<'a>; 4],
    /// `common_flags`, which older recorders do not write, and none for switches.
    flags: Packed<'a>,
    /// The sum so far: the first time is absolute, the others are relative to the one before.
    clock: u64,
}

impl Lane<'_> {
    /// Time, columns and flags of the next entry; [`Broken`] if the lists differ in length.
    #[inline(always)]
    pub(crate) fn next(&mut self) -> Result<Option<(u64, [u64; 5])>, Broken> {
        if self.time.is_empty() {
            let all = self.columns.iter().all(Packed::is_empty);
            return if all { Ok(None) } else { Err(Broken) };
        }
        self.clock = self.clock.wrapping_add(self.time.next()?);
        let mut row = [0; 5];
        for (to, column) in row.iter_mut().zip(&mut self.columns) {
            *to = column.next()?;
        }
        if !self.flags.is_empty() {
            row[4] = self.flags.next()?;
        }
        Ok(Some((self.clock, row)))
    }
}

/// The two lists of `compact_sched`.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Compact<'a> {
    /// prev_state, next_pid, next_prio, next_comm_index.
    pub(crate) switches: Lane<'a>,
    /// pid, target_cpu, prio, comm_index, common_flags.
    pub(crate) wakings: Lane<'a>,
}

impl<'a> Compact<'a> {
    /// Read the lists; calls `comm` with the names to which they refer, in order.
    pub(crate) fn read(
        message: &'a [u8],
        mut comm: impl FnMut(&'a [u8]),
    ) -> Result<Compact<'a>, Broken> {
        let mut lists = Compact::default();
        Fields::of(message).each(|number, value| {
            let Value::Bytes(bytes) = value else { return };
            let (s, w) = (&mut lists.switches, &mut lists.wakings);
            let list = match number {
                compact::INTERN_TABLE => return comm(bytes),
                compact::SWITCH_TIMESTAMP => &mut s.time,
                compact::SWITCH_PREV_STATE => &mut s.columns[0],
                compact::SWITCH_NEXT_PID => &mut s.columns[1],
                compact::SWITCH_NEXT_PRIO => &mut s.columns[2],
                compact::SWITCH_NEXT_COMM_INDEX => &mut s.columns[3],
                compact::WAKING_TIMESTAMP => &mut w.time,
                compact::WAKING_PID => &mut w.columns[0],
                compact::WAKING_TARGET_CPU => &mut w.columns[1],
                compact::WAKING_PRIO => &mut w.columns[2],
                compact::WAKING_COMM_INDEX => &mut w.columns[3],
                compact::WAKING_COMMON_FLAGS => &mut w.flags,
                _ => return,
            };
            *list = Packed(bytes);
        })?;
        Ok(lists)
    }

    /// Whether all lists can be read to their ends.
    pub(crate) fn is_sound(message: &'a [u8]) -> bool {
        let Ok(lists) = Compact::read(message, |_| {}) else { return false };
        let is_whole = |mut lane: Lane<'_>| loop {
            match lane.next() {
                Ok(Some(_)) => {}
                Ok(None) => break true,
                Err(Broken) => break false,
            }
        };
        is_whole(lists.switches) && is_whole(lists.wakings)
    }
}

/// The fields of a bundle other than its events.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Head<'a> {
    pub(crate) cpu: Option<u64>,
    pub(crate) lost_events: bool,
    /// `FtraceClock`, 0 for the boot clock.
    pub(crate) clock: u64,
    /// The same moment in the clock of the events and in the boot clock.
    pub(crate) clocks: (Option<u64>, Option<u64>),
    pub(crate) compact: Option<&'a [u8]>,
    /// Pages that the recorder could not parse.
    pub(crate) errors: u64,
    /// Whether it describes events.
    pub(crate) has_descriptors: bool,
}

impl<'a> Head<'a> {
    /// Read a bundle; calls `event` and `descriptor` with their messages.
    #[inline(always)]
    pub(crate) fn read(
        message: &'a [u8],
        mut event: impl FnMut(&'a [u8]),
        mut descriptor: impl FnMut(&'a [u8]),
    ) -> Head<'a> {
        let mut head = Head::default();
        // Truncated content is counted when its events are decoded.
        let _ = Fields::of(message).each(|number, value| match (number, value) {
            (bundle::EVENT, Value::Bytes(bytes)) => event(bytes),
            (bundle::CPU, Value::Int(n)) => head.cpu = Some(n),
            (bundle::LOST_EVENTS, Value::Int(n)) => head.lost_events = n != 0,
            (bundle::COMPACT_SCHED, Value::Bytes(bytes)) => head.compact = Some(bytes),
            (bundle::FTRACE_CLOCK, Value::Int(n)) => head.clock = n,
            (bundle::FTRACE_TIMESTAMP, Value::Int(n)) => head.clocks.0 = Some(n),
            (bundle::BOOT_TIMESTAMP, Value::Int(n)) => head.clocks.1 = Some(n),
            (bundle::ERROR, _) => head.errors += 1,
            (bundle::GENERIC_EVENT_DESCRIPTORS, Value::Bytes(bytes)) => {
                head.has_descriptors = true;
                descriptor(bytes);
            }
            _ => {}
        });
        head
    }
}
