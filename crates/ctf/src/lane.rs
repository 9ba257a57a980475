//! All events of one CPU in time order.
//!
//! An LTTng event does not carry its thread. The thread follows from the CPU's last `sched_switch`,
//! which may be in another channel than the event. So the channels of a CPU are merged before their
//! events are interpreted.

use crate::exec::{Regs, run};
use crate::files::Content;
use crate::kind::reg;
use crate::packet::{Packet, enter};
use crate::plan::Slot;
use crate::schema::{EventClass, StreamClass, TraceClass};
use crate::time::widen;
use holdup_trace::{Cpu, Nanos, Quality, QualityCode, Tid, progress};
use std::ops::Range;

/// The number in a compact header that means that the real number follows; the plan reads that.
const EXTENDED: u32 = 31;

/// The packets of one stream, in time order.
pub(crate) struct Channel {
    pub(crate) packets: Vec<Packet>,
}

/// The streams of one CPU, of all traces that were opened together.
pub(crate) struct Lane {
    pub(crate) cpu: Cpu,
    pub(crate) channels: Vec<Channel>,
}

/// Everything that packets refer to by index.
pub(crate) struct Store {
    pub(crate) traces: Vec<TraceClass>,
    pub(crate) files: Vec<Content>,
    /// Whether there are too many bytes to keep in memory between the two passes over them.
    pub(crate) large: bool,
}

/// The next item of a lane.
pub(crate) enum Next<'a> {
    /// Events were lost.
    Gap(Gap),
    Event(Here<'a>),
}

/// Events that are missing.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Gap {
    /// When the next packet was begun.
    pub(crate) ts: Nanos,
    /// How many events were lost; 0 if unknown.
    pub(crate) lost: u64,
    /// Whether switches may be among them.
    pub(crate) switches: bool,
}

/// An event, read but not yet interpreted.
pub(crate) struct Here<'a> {
    pub(crate) ts: Nanos,
    pub(crate) stream: &'a StreamClass,
    pub(crate) class: &'a EventClass,
    pub(crate) regs: &'a Regs,
    /// The packet.
    pub(crate) data: &'a [u8],
    /// The bit where its context begins.
    body: u64,
    /// Whether only its header has been read.
    skipped: bool,
}

impl<'a> Here<'a> {
    /// The event with its context and fields, which are read into `regs` if they were skipped.
    pub(crate) fn read(self, regs: &'a mut Regs) -> Here<'a> {
        let Some(steps) = self.class.steps.as_ref().ok().filter(|_| self.skipped) else {
            return self;
        };
        let (mut at, end) = (self.body, self.data.len() as u64 * 8);
        for steps in [&self.stream.context, steps] {
            // The skipped bytes exist, because their size was checked.
            let _ = run(steps, self.data, &mut at, end, regs);
        }
        Here { regs, ..self }
    }
}

enum Head<'a> {
    None,
    Gap(Gap),
    Event(Nanos, &'a EventClass),
}

/// Reads one stream.
pub(crate) struct Cursor<'a> {
    store: &'a Store,
    packets: &'a [Packet],
    /// The packet after this one.
    next: usize,
    stream: Option<&'a StreamClass>,
    data: &'a [u8],
    at: u64,
    end: u64,
    /// Where the context of the last event begins, and whether it was skipped.
    body: u64,
    skipped: bool,
    /// The clock, in steps.
    clock: u64,
    regs: Box<Regs>,
    head: Head<'a>,
}

/// Reads a lane. With `SKIM` it reads only as much of an event as is needed to find the next one:
/// [`Here::read`] reads the rest.
pub(crate) struct LaneCursor<'a, const SKIM: bool> {
    cursors: Vec<Cursor<'a>>,
    /// Index of the channel whose event was returned last.
    taken: Option<usize>,
}

impl<'a, const SKIM: bool> LaneCursor<'a, SKIM> {
    pub(crate) fn new(store: &'a Store, lane: &'a Lane, quality: &mut Quality) -> Self {
        let mut cursors: Vec<Cursor<'a>> =
            lane.channels.iter().map(|c| Cursor::new(store, &c.packets)).collect();
        for cursor in &mut cursors {
            cursor.advance::<SKIM>(quality);
        }
        LaneCursor { cursors, taken: None }
    }

    /// The next event or gap. At equal times the channel declared first wins.
    #[inline]
    pub(crate) fn next(&mut self, quality: &mut Quality) -> Option<Next<'_>> {
        if let Some(taken) = self.taken.take() {
            self.cursors[taken].advance::<SKIM>(quality);
        }
        let first = match &self.cursors[..] {
            [only] => only.time().map(|_| 0)?,
            many => {
                let times = many.iter().enumerate().filter_map(|(i, c)| Some((c.time()?, i)));
                times.min()?.1
            }
        };
        self.taken = Some(first);
        let cursor = &self.cursors[first];
        match (&cursor.head, cursor.stream) {
            (Head::Gap(gap), _) => Some(Next::Gap(*gap)),
            (Head::Event(ts, class), Some(stream)) => Some(Next::Event(Here {
                ts: *ts,
                stream,
                class,
                regs: &cursor.regs,
                data: cursor.data,
                body: cursor.body,
                skipped: SKIM && cursor.skipped,
            })),
            (Head::None, _) | (_, None) => None,
        }
    }
}

/// Skipped events.
pub(crate) struct Passed {
    pub(crate) events: u64,
    /// Times of the first and the last event, which are the earliest and the latest.
    pub(crate) first: Nanos,
    pub(crate) last: Nanos,
}

impl LaneCursor<'_, true> {
    /// Skip the events after the one returned last, as long as the caller only needs to know that
    /// they exist, and each is found by number and size alone. Everything more complex is left to
    /// [`LaneCursor::next`]: several channels, other headers, sizes that are in the data, the end
    /// of the packet. `passes` sees each kind and may stop before an event.
    pub(crate) fn pass(&mut self, passes: impl FnMut(&EventClass) -> bool) -> Option<Passed> {
        match (&mut self.cursors[..], self.taken) {
            ([only], Some(_)) => only.pass(passes),
            _ => None,
        }
    }
}

impl<'a> Cursor<'a> {
    #[inline(always)]
    fn pass(&mut self, mut passes: impl FnMut(&EventClass) -> bool) -> Option<Passed> {
        let stream = self.stream.filter(|stream| stream.compact)?;
        let (mut at, mut clock, mut events) = (self.at.next_multiple_of(8), self.clock, 0);
        let mut first = clock;
        while let Some(&word) = self.data.get((at / 8) as usize..).and_then(|b| b.first_chunk()) {
            let word = u32::from_le_bytes(word);
            let number = word & EXTENDED;
            let Some(class) = stream.event(u64::from(number)).filter(|_| number != EXTENDED) else {
                break;
            };
            let Some(size) = class.size.and_then(|size| size.checked_add(32)) else { break };
            let now = widen(clock, u64::from(word >> 5), 27);
            if self.end.saturating_sub(at) < size || now < clock || !passes(class) {
                break;
            }
            if events == 0 {
                first = now;
            }
            (clock, events) = (now, events + 1);
            at += size;
            // The next event begins at a byte.
            self.at = at;
            at = at.next_multiple_of(8);
        }
        self.clock = clock;
        let nanos = |clock| stream.time.nanos(clock);
        (events > 0).then(|| Passed { events, first: nanos(first), last: nanos(clock) })
    }

    /// The next packet, preceded by its losses; calls `each` for its events with the bits they
    /// occupy, the clock's value, and the registers.
    pub(crate) fn packet(
        &mut self,
        quality: &mut Quality,
        mut each: impl FnMut(Range<u64>, u64, &EventClass, &Regs),
    ) -> Option<Entered<'a>> {
        let last = self.next.checked_sub(1).and_then(|n| self.packets.get(n));
        let gap = self.enter_next::<false>(quality)?;
        let packet = self.packets.get(self.next - 1)?;
        let stream = self.stream?;
        let entered = Entered {
            packet,
            gap,
            skipped: last
                .and_then(|l| l.seq)
                .zip(packet.seq)
                .map_or(0, |(a, b)| b.saturating_sub(a).saturating_sub(1)),
            stream,
            data: self.data,
            first: self.at,
            begin: self.clock,
        };
        while self.at < self.end {
            let from = self.at;
            self.regs.spots.clear();
            let Ok(class) = self.event::<false>(stream) else { break };
            each(from..self.at, self.clock, class, &self.regs);
        }
        self.at = self.end;
        Some(entered)
    }

    pub(crate) fn new(store: &'a Store, packets: &'a [Packet]) -> Cursor<'a> {
        Cursor {
            store,
            packets,
            next: 0,
            stream: None,
            data: &[],
            at: 0,
            end: 0,
            body: 0,
            skipped: false,
            clock: 0,
            regs: Box::new(Regs::new()),
            head: Head::None,
        }
    }

    #[inline(always)]
    fn time(&self) -> Option<Nanos> {
        match &self.head {
            Head::None => None,
            Head::Gap(gap) => Some(gap.ts),
            Head::Event(ts, _) => Some(*ts),
        }
    }

    /// Read up to the next event or gap.
    #[inline]
    fn advance<const SKIM: bool>(&mut self, quality: &mut Quality) {
        loop {
            while self.at >= self.end {
                match self.enter_next::<SKIM>(quality) {
                    None => {
                        self.head = Head::None;
                        return;
                    }
                    Some(Some(gap)) => {
                        self.head = Head::Gap(gap);
                        return;
                    }
                    Some(None) => {}
                }
            }
            let Some(stream) = self.stream else { return };
            match self.event::<SKIM>(stream) {
                Ok(class) => {
                    self.head = Head::Event(stream.time.nanos(self.clock), class);
                    return;
                }
                // The next event can only be found by reading this one, so the rest of the packet
                // is lost.
                Err(code) => {
                    quality.add(code, 1);
                    let left = self.end.saturating_sub(self.at) / 8;
                    quality.add(QualityCode::SkippedBytes, left);
                    self.at = self.end;
                }
            }
        }
    }

    #[inline(always)]
    fn event<const SKIM: bool>(
        &mut self,
        stream: &'a StreamClass,
    ) -> Result<&'a EventClass, QualityCode> {
        let bad = |_| QualityCode::BadRecords;
        let (mut at, end) = (self.at, self.end);
        let regs = &mut *self.regs;
        regs.time.1 = 0;
        regs.int[usize::from(reg::ID)] = 0;
        let from = at.next_multiple_of(8);
        let word = match self.data.get((from / 8) as usize..).and_then(|b| b.first_chunk()) {
            Some(&word) if stream.compact && from + 32 <= end => u32::from_le_bytes(word),
            _ => EXTENDED,
        };
        if word & EXTENDED != EXTENDED {
            regs.int[usize::from(reg::ID)] = u64::from(word & EXTENDED);
            regs.time = (u64::from(word >> 5), 27);
            at = from + 32;
        } else {
            run(&stream.header, self.data, &mut at, end, regs).map_err(bad)?;
        }
        if regs.time.1 > 0 {
            self.clock = widen(self.clock, regs.time.0, regs.time.1);
        }
        let class =
            stream.event(regs.int[usize::from(reg::ID)]).ok_or(QualityCode::MissingFormat)?;
        let here = SKIM && at.is_multiple_of(8);
        let size = class.size.filter(|&size| here && end.saturating_sub(at) >= size);
        if SKIM {
            (self.body, self.skipped) = (at, size.is_some());
        }
        if let Some(size) = size {
            at += size;
        } else {
            if !stream.context.is_empty() {
                run(&stream.context, self.data, &mut at, end, regs).map_err(bad)?;
            }
            let steps = class.steps.as_ref().map_err(|_| QualityCode::MissingFormat)?;
            run(steps, self.data, &mut at, end, regs).map_err(bad)?;
            // Overwrite values left over from an earlier event.
            for (slot, value) in &class.absent {
                match *slot {
                    Slot::Register(register) => regs.int[usize::from(register)] = *value,
                    Slot::Text(slot) => regs.text[usize::from(slot & 7)] = (0, 0),
                }
            }
        }
        // An event of zero bits would repeat endlessly.
        if at == self.at {
            return Err(QualityCode::BadRecords);
        }
        self.at = at;
        Ok(class)
    }

    /// Begin the next packet: `None` if there is none, else the loss before it.
    #[inline(never)]
    fn enter_next<const SKIM: bool>(&mut self, quality: &mut Quality) -> Option<Option<Gap>> {
        let last = self.next.checked_sub(1).and_then(|n| self.packets.get(n));
        if let Some(last) = last {
            // The skimmed bytes are about to be read.
            let file = &self.store.files[last.file as usize];
            if !SKIM || self.store.large {
                file.done_with(last.start, last.len);
            }
            progress::advance(last.len);
        }
        let packet = self.packets.get(self.next)?;
        self.next += 1;
        let (trace, stream) = packet.class;
        let stream = &self.store.traces[trace as usize].streams[stream as usize];
        self.stream = Some(stream);
        let bytes = self.store.files[packet.file as usize].bytes();
        let start = packet.start as usize;
        self.data = bytes.get(start..start + packet.len as usize).unwrap_or(&[]);
        self.end = packet.content.min(self.data.len() as u64 * 8);
        if self.store.files[packet.file as usize].shrank() {
            quality.add(QualityCode::Truncated, 1);
            self.end = 0;
        }
        if enter(stream, self.data, &mut self.at, self.end, &mut self.regs).is_err() {
            self.at = self.end;
        }
        self.clock = packet.begin.unwrap_or(self.clock);
        let loss = loss(last, packet);
        quality.add(QualityCode::LostEvents, loss.events);
        quality.add(QualityCode::LostChunks, u64::from(loss.packets));
        let gap = (loss.events > 0 || loss.packets).then(|| Gap {
            ts: stream.time.nanos(self.clock),
            lost: loss.events,
            switches: stream.switches,
        });
        Some(gap)
    }
}

/// A packet whose header was read, and the state at its first event.
pub(crate) struct Entered<'a> {
    pub(crate) packet: &'a Packet,
    pub(crate) gap: Option<Gap>,
    /// Packets missing before it, by their sequence numbers.
    pub(crate) skipped: u64,
    pub(crate) stream: &'a StreamClass,
    pub(crate) data: &'a [u8],
    /// The bit where its events begin.
    pub(crate) first: u64,
    /// The clock when the packet was begun, in steps.
    pub(crate) begin: u64,
}

/// What is missing before a packet.
struct Loss {
    /// Events thrown away while all buffers were full.
    events: u64,
    /// Whole packets are missing, with an unknown number of events.
    packets: bool,
}

/// What is missing before `packet`. The recorder counts both from the stream's beginning; so for
/// the first packet in the file, losses during the trace are known only if it is the stream's own
/// first.
fn loss(last: Option<&Packet>, packet: &Packet) -> Loss {
    let before = match last {
        Some(last) => last.discarded,
        None => (packet.seq == Some(0)).then_some(0),
    };
    // A count that falls was restarted.
    let events = match (before, packet.discarded) {
        (Some(before), Some(now)) => now.saturating_sub(before),
        _ => 0,
    };
    let packets = match (last.and_then(|l| l.seq), packet.seq) {
        (Some(last), Some(now)) => now > last.saturating_add(1),
        _ => false,
    };
    Loss { events, packets }
}

/// A CPU, and what opening the trace found out about it.
pub(crate) struct LaneInfo {
    pub(crate) lane: Lane,
    /// The threads that ran at the beginning and after each loss.
    pub(crate) hints: Vec<Tid>,
}
