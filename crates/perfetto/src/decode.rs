//! From bundles to events, one run of one CPU at a time.

use crate::bundle::{Compact, Lane, Raw};
use crate::fields::{Meaning, Plan, SLOTS, Slots, Symbols, what};
use crate::index::Bundle;
use crate::schema::{bundle, event, generic};
use crate::source::Source;
use crate::table::Table;
use crate::wire::{Broken, Fields, Packed, Value};
use holdup_trace::{
    Batch, Cpu, Event, EventId, EventKind, LocalNames, NameId, Names, Nanos, Pid, QualityCode,
    Result, RunDecoder, StateTable, Tid, What, in_irq, progress,
};
use std::sync::Arc;

/// State shared by all decoders of a file.
pub(crate) struct Shared {
    pub(crate) source: Source,
    pub(crate) table: Table,
    /// One table for each time a recorder restarted the numbers of its symbols.
    pub(crate) symbols: Vec<Symbols>,
    pub(crate) names: Arc<Names>,
    /// What the kernel's numbers for the states of threads mean. Perfetto keeps no print formats,
    /// only the kernel's release.
    pub(crate) states: StateTable,
}

/// The thread on the CPU, from the events before, because `compact_sched` omits it.
#[derive(Clone, Copy)]
struct Current {
    tid: Tid,
    comm: NameId,
    prio: i16,
}

impl Current {
    const UNKNOWN: Current = Current { tid: Tid::UNKNOWN, comm: NameId::NONE, prio: 0 };
}

/// Decodes the bundles of one run.
pub(crate) struct Decoder<'a> {
    shared: &'a Shared,
    bundles: std::slice::Iter<'a, Bundle>,
    names: LocalNames,
    cursor: Option<Cursor<'a>>,
    current: Current,
    /// Names to which the lists of the bundle refer.
    comms: Vec<NameId>,
    /// Time of the latest event; no later event may precede it.
    last: Nanos,
}

/// How far a bundle has been read: the next event of each stream.
struct Cursor<'a> {
    bundle: &'a Bundle,
    symbols: Option<&'a Symbols>,
    fields: Fields<'a>,
    event: Option<Raw<'a>>,
    switches: Lane<'a>,
    switch: Option<(u64, [u64; 5])>,
    wakings: Lane<'a>,
    waking: Option<(u64, [u64; 5])>,
}

impl<'a> Decoder<'a> {
    pub(crate) fn new(shared: &'a Shared, first: Nanos, bundles: &'a [Bundle]) -> Decoder<'a> {
        Decoder {
            shared,
            bundles: bundles.iter(),
            names: LocalNames::new(shared.names.clone()),
            cursor: None,
            current: Current::UNKNOWN,
            comms: Vec::new(),
            last: first,
        }
    }

    /// Begin with the next bundle.
    fn open(&mut self, batch: &mut Batch) -> Option<Cursor<'a>> {
        let bundle = self.bundles.next()?;
        let message = self.shared.source.get(bundle.place);
        progress::advance(message.len() as u64);
        if self.shared.source.has_shrunk() {
            batch.quality.add(QualityCode::Truncated, 1);
        }
        if bundle.lost.is_some() {
            self.lost(bundle, batch);
        }
        self.comms.clear();
        let mut compact = Compact::default();
        if let Some(lists) = bundle.compact.clone().and_then(|place| message.get(place)) {
            let (names, comms) = (&mut self.names, &mut self.comms);
            match Compact::read(lists, |comm| comms.push(names.name(0, comm))) {
                Ok(lists) => compact = lists,
                Err(Broken) => batch.quality.add(QualityCode::BadRecords, 1),
            }
        }
        let mut cursor = Cursor {
            bundle,
            symbols: self.shared.symbols.get(bundle.symbols as usize),
            fields: Fields::of(message),
            event: None,
            switches: compact.switches,
            switch: None,
            wakings: compact.wakings,
            waking: None,
        };
        cursor.next_event(batch);
        cursor.next_switch(batch);
        cursor.next_waking(batch);
        Some(cursor)
    }

    /// Decode until the batch is full (true) or the bundle is done.
    fn bundle(&mut self, cursor: &mut Cursor<'a>, batch: &mut Batch) -> bool {
        loop {
            // Streams that have ended come last; at equal times switches come first, as in
            // Perfetto's own trace processor.
            let [switch, waking] =
                [&cursor.switch, &cursor.waking].map(|e| e.map_or(u64::MAX, |e| e.0));
            match cursor.event {
                Some(raw) if raw.ts < switch && raw.ts < waking => {
                    cursor.next_event(batch);
                    self.event(cursor, &raw, batch);
                }
                event => match (cursor.switch, cursor.waking, event) {
                    (Some((ts, row)), ..) if switch <= waking => {
                        cursor.next_switch(batch);
                        self.switch(cursor.bundle, ts, row, batch);
                    }
                    (_, Some((ts, row)), _) => {
                        cursor.next_waking(batch);
                        self.waking(cursor.bundle, ts, row, batch);
                    }
                    (_, _, Some(raw)) => {
                        cursor.next_event(batch);
                        self.event(cursor, &raw, batch);
                    }
                    _ => return false,
                },
            }
            if batch.is_full() {
                return true;
            }
        }
    }

    fn meaning(&self, cursor: &Cursor<'a>) -> Meaning<'a> {
        Meaning { states: &self.shared.states, symbols: cursor.symbols }
    }

    /// The time of an event, never earlier than the event before it.
    #[inline(always)]
    fn time(&mut self, bundle: &Bundle, ts: u64, batch: &mut Batch) -> Nanos {
        let ts = bundle.time(ts);
        if ts < self.last {
            batch.quality.add(QualityCode::TimeBackwards, 1);
        }
        self.last = self.last.max(ts);
        self.last
    }

    fn push(&self, bundle: &Bundle, ts: Nanos, tid: Tid, id: EventId, what: What, b: &mut Batch) {
        let (pid, comm) = (Pid::UNKNOWN, NameId::NONE);
        b.events.push(Event { ts, tid, pid, comm, cpu: bundle.cpu, id, what });
    }

    #[cold]
    fn lost(&mut self, bundle: &Bundle, batch: &mut Batch) {
        batch.quality.add(QualityCode::LostChunks, 1);
        let ts = self.last.max(bundle.first);
        self.last = ts;
        self.current = Current::UNKNOWN;
        let what = What::Lost { count: 0 };
        let (tid, pid, comm) = (Tid::UNKNOWN, Pid::UNKNOWN, NameId::NONE);
        let cpu = bundle.lost.unwrap_or(Cpu::UNKNOWN);
        batch.events.push(Event { ts, tid, pid, comm, cpu, id: EventId::SIDEBAND, what });
    }

    /// The name with index `index` in the bundle.
    fn comm(&mut self, index: u64, batch: &mut Batch) -> NameId {
        match usize::try_from(index).ok().and_then(|i| self.comms.get(i)) {
            Some(&comm) => comm,
            None => {
                batch.quality.add(QualityCode::BadRecords, 1);
                NameId::NONE
            }
        }
    }

    /// A switch of `compact_sched`, which does not name the thread switched out: it is the one that
    /// the switch before switched in, if that is known.
    fn switch(&mut self, bundle: &Bundle, ts: u64, row: [u64; 5], batch: &mut Batch) {
        let ts = self.time(bundle, ts, batch);
        let [state, next, prio, comm, _] = row;
        let (prev, next_comm) = (self.current, self.comm(comm, batch));
        let next = Current { tid: Tid(next as u32), comm: next_comm, prio: prio as i16 };
        self.current = next;
        let what = What::Switch {
            prev: prev.tid,
            next: next.tid,
            prev_state: self.shared.states.state(state),
            prev_comm: prev.comm,
            next_comm,
            prev_prio: prev.prio,
            next_prio: next.prio,
        };
        let id = self.shared.table.id(event::SCHED_SWITCH);
        self.push(bundle, ts, prev.tid, id, what, batch);
    }

    fn waking(&mut self, bundle: &Bundle, ts: u64, row: [u64; 5], batch: &mut Batch) {
        let ts = self.time(bundle, ts, batch);
        let [tid, target, prio, comm, flags] = row;
        let comm = self.comm(comm, batch);
        let target = Cpu(u16::try_from(target).unwrap_or(u16::MAX));
        let (tid, prio) = (Tid(tid as u32), prio as i16);
        let in_irq = in_irq(flags);
        let what = What::Waking { tid, comm, prio, target, in_irq };
        let id = self.shared.table.id(event::SCHED_WAKING);
        self.push(bundle, ts, self.current.tid, id, what, batch);
    }

    #[inline(always)]
    fn event(&mut self, cursor: &Cursor<'a>, raw: &Raw<'a>, batch: &mut Batch) {
        let Some((id, plan)) = self.shared.table.lookup(raw) else {
            batch.quality.add(QualityCode::BadRecords, 1);
            return;
        };
        let tid = Tid(raw.pid);
        let mut what = match plan {
            Plan::Other | Plan::Incomplete => What::Other,
            Plan::Numbered { kind, detail, slots } => {
                self.numbered(cursor, raw, (*kind, *detail, slots), batch)
            }
            Plan::Named { kind } => self.named(cursor, raw, *kind, batch),
            Plan::Rename => self.rename(raw, batch),
        };
        if let What::Waking { in_irq: woken_in_irq, .. } = &mut what {
            *woken_in_irq = in_irq(raw.flags);
        }
        match what {
            What::Switch { next, next_comm, next_prio, .. } => {
                self.current = Current { tid: next, comm: next_comm, prio: next_prio };
            }
            What::Comm { tid: renamed, comm, .. } if renamed == self.current.tid => {
                self.current.comm = comm;
            }
            // After a loss, interrupts and other events reveal the thread on the CPU.
            _ if tid != self.current.tid => self.current = Current { tid, ..Current::UNKNOWN },
            _ => {}
        }
        let ts = self.time(cursor.bundle, raw.ts, batch);
        self.push(cursor.bundle, ts, tid, id, what, batch);
    }

    #[inline(always)]
    fn numbered(
        &mut self,
        cursor: &Cursor<'a>,
        raw: &Raw<'a>,
        (kind, detail, slots): (EventKind, NameId, &[u8; 32]),
        batch: &mut Batch,
    ) -> What {
        let mut found = Slots::default();
        let mut fields = Fields::of(raw.content);
        loop {
            match fields.next() {
                Ok(Some((number, value))) => {
                    let Some((slot, holds)) = Plan::slot(slots, number) else { continue };
                    if !holds.fits(value) {
                        batch.quality.add(QualityCode::BadRecords, 1);
                        return What::Other;
                    }
                    match value {
                        Value::Int(n) if kind == EventKind::SysEnter && slot == 1 => {
                            argument(&mut found, n);
                        }
                        Value::Bytes(list) if kind == EventKind::SysEnter => {
                            let mut list = Packed(list);
                            while let Ok(n) = list.next() {
                                argument(&mut found, n);
                            }
                        }
                        Value::Int(n) => found.int[slot] = n,
                        Value::Bytes(text) => found.text[slot] = text,
                        Value::Fixed => {}
                    }
                }
                Ok(None) => break,
                Err(Broken) => {
                    batch.quality.add(QualityCode::BadRecords, 1);
                    return What::Other;
                }
            }
        }
        what(kind, detail, &found, self.meaning(cursor), &mut self.names, batch)
    }

    /// An event whose message repeats the names of its fields.
    #[inline(never)]
    fn named(
        &mut self,
        cursor: &Cursor<'a>,
        raw: &Raw<'a>,
        kind: EventKind,
        batch: &mut Batch,
    ) -> What {
        let mut found = Slots::default();
        let mut broken = Ok(());
        let read = Fields::of(raw.content).each(|number, value| {
            let (generic::FIELD, Value::Bytes(field)) = (number, value) else { return };
            let (mut name, mut int, mut text): (&[u8], _, &[u8]) = (&[], 0, &[]);
            let read = Fields::of(field).each(|number, value| match (number, value) {
                (generic::NAME, Value::Bytes(bytes)) => name = bytes,
                (generic::STR_VALUE, Value::Bytes(bytes)) => text = bytes,
                (generic::INT_VALUE | generic::UINT_VALUE, Value::Int(n)) => int = n,
                _ => {}
            });
            broken = broken.and(read);
            if let Some(slot) = Plan::slot_of(kind, name).filter(|&s| s < SLOTS) {
                (found.int[slot], found.text[slot]) = (int, text);
            }
        });
        if read.and(broken).is_err() {
            batch.quality.add(QualityCode::BadRecords, 1);
            return What::Other;
        }
        what(kind, NameId::NONE, &found, self.meaning(cursor), &mut self.names, batch)
    }

    /// `task_rename`: pid, oldcomm, newcomm.
    #[inline(never)]
    fn rename(&mut self, raw: &Raw<'a>, batch: &mut Batch) -> What {
        let (mut tid, mut name): (u32, &[u8]) = (0, &[]);
        let read = Fields::of(raw.content).each(|number, value| match (number, value) {
            (1, Value::Int(n)) => tid = n as u32,
            (3, Value::Bytes(bytes)) => name = bytes,
            _ => {}
        });
        if read.is_err() {
            batch.quality.add(QualityCode::BadRecords, 1);
            return What::Other;
        }
        let comm = self.names.name(tid, name);
        What::Comm { tid: Tid(tid), pid: Pid::UNKNOWN, comm, exec: false }
    }
}

fn argument(slots: &mut Slots<'_>, value: u64) {
    if let Some(place) = slots.args.get_mut(slots.arg_count) {
        *place = value;
        slots.arg_count += 1;
    }
}

impl Cursor<'_> {
    /// The next readable event of the bundle.
    #[inline(always)]
    fn next_event(&mut self, batch: &mut Batch) {
        self.event = loop {
            match self.fields.next() {
                Ok(Some((bundle::EVENT, Value::Bytes(message)))) => match Raw::read(message) {
                    Ok(raw) => break Some(raw),
                    Err(Broken) => batch.quality.add(QualityCode::BadRecords, 1),
                },
                Ok(Some(_)) => {}
                Ok(None) => break None,
                Err(Broken) => {
                    // The rest of the bundle is lost with it.
                    batch.quality.add(QualityCode::BadRecords, 1);
                    self.fields = Fields::default();
                    break None;
                }
            }
        };
    }

    fn next_switch(&mut self, batch: &mut Batch) {
        self.switch = next_of(&mut self.switches, batch);
    }

    fn next_waking(&mut self, batch: &mut Batch) {
        self.waking = next_of(&mut self.wakings, batch);
    }
}

/// If the lists differ in length, the entries beyond the shortest are dropped.
#[inline(always)]
fn next_of(lane: &mut Lane<'_>, batch: &mut Batch) -> Option<(u64, [u64; 5])> {
    lane.next().unwrap_or_else(|Broken| {
        batch.quality.add(QualityCode::BadRecords, 1);
        *lane = Lane::default();
        None
    })
}

impl RunDecoder for Decoder<'_> {
    fn fill(&mut self, batch: &mut Batch) -> Result<bool> {
        loop {
            let Some(mut cursor) = self.cursor.take().or_else(|| self.open(batch)) else {
                return Ok(false);
            };
            if self.bundle(&mut cursor, batch) {
                self.cursor = Some(cursor);
                return Ok(true);
            }
        }
    }
}
