//! Decoding: lines in, events out.

use crate::events::Cache;
use crate::fields::{Context, what};
use crate::index::MAX_LINE;
use crate::line::{Line, Other, Syntax, other, parse};
use crate::order::Place;
use crate::scan::{blank, hex};
use crate::trace::TextTrace;
use holdup_trace::{Batch, Cpu, ErrorKind, Event, EventId, LocalNames, NameId, Nanos, Pid, QualityCode, Result, RunDecoder, Tid, What};

/// Read at once: fits the second-level cache together with the batch.
const BLOCK: usize = 256 << 10;

/// What turns lines into events.
struct Lines<'a> {
    trace: &'a TextTrace,
    names: LocalNames,
    cache: Cache,
    /// An event whose stack frames are still to come.
    held: Option<Event>,
    frames: Vec<u64>,
    /// Losses announced before the event that dates them.
    losses: Vec<(Cpu, u64)>,
    last: Nanos,
}

impl<'a> Lines<'a> {
    fn new(trace: &'a TextTrace) -> Lines<'a> {
        Lines {
            trace,
            names: LocalNames::new(trace.names()),
            cache: Cache::default(),
            held: None,
            frames: Vec::new(),
            losses: Vec::new(),
            last: 0,
        }
    }

    #[inline]
    fn line(&mut self, line: &[u8], batch: &mut Batch) {
        if self.held.is_none() && line.first() == Some(&b'\t') && self.trace.syntax() == Syntax::Perf {
            return;
        }
        match parse(self.trace.syntax(), line) {
            Some(l) => self.event(&l, batch),
            None => self.not_event(line, batch),
        }
    }

    #[inline]
    fn event(&mut self, l: &Line<'_>, batch: &mut Batch) {
        self.flush(batch);
        let ts = l.stamp.ts;
        self.last = ts;
        if !self.losses.is_empty() {
            self.date_losses(ts, batch);
        }
        let Some(entry) = self.trace.events().find(l.name, l.form, &mut self.cache) else {
            batch.quality.add(QualityCode::MissingFormat, 1);
            return;
        };
        let mut cx = Context { names: &mut self.names, batch, old_states: self.trace.old_states() };
        let what = what(entry, l, &mut cx);
        let record = entry.kind.is_record();
        let what = match what {
            Some(what) => what,
            None if record => return,
            None => {
                batch.quality.add(QualityCode::MissingField, 1);
                What::Other
            }
        };
        if let What::Lost { count } = what {
            count_loss(count, batch);
        }
        // The name perf prints beside a sideband record is the one from before it.
        let comm = if record { NameId::NONE } else { self.names.name(hint(l), l.comm) };
        let event = Event { ts, tid: l.tid, pid: l.pid, comm, cpu: l.cpu, id: entry.id, what };
        if entry.kind.wants_stack() && self.trace.syntax() == Syntax::Perf {
            self.held = Some(event);
            // Without a call chain perf prints the address beside the event.
            if matches!(what, What::Sample { .. })
                && let Some((ip, n)) = hex(l.body)
                && l.body.get(n).is_none_or(|&b| blank(b))
            {
                self.frames.push(ip);
            }
        } else {
            batch.events.push(event);
        }
    }

    fn not_event(&mut self, line: &[u8], batch: &mut Batch) {
        match other(self.trace.syntax(), line) {
            Other::Frame(Some(address)) if self.held.is_some() => self.frames.push(address),
            Other::Frame(_) => {}
            Other::Lost(cpu, count) => {
                count_loss(count.unwrap_or(0), batch);
                self.losses.push((cpu, count.unwrap_or(0)));
            }
            // How many is in the file's header, and counted when it was opened.
            Other::Started(cpu) => self.losses.push((cpu, 0)),
            Other::Silent | Other::Bad => {}
        }
    }

    /// Hand on the event that waited for its stack.
    #[inline]
    fn flush(&mut self, batch: &mut Batch) {
        let Some(mut event) = self.held.take() else { return };
        if !self.frames.is_empty() {
            let chain = batch.push_stack(self.frames.drain(..));
            match &mut event.what {
                What::Sample { stack, .. } | What::ContentionBegin { stack, .. } => *stack = chain,
                _ => {}
            }
        }
        batch.events.push(event);
    }

    fn date_losses(&mut self, ts: Nanos, batch: &mut Batch) {
        for (cpu, count) in self.losses.drain(..) {
            batch.events.push(Event {
                ts,
                tid: Tid::UNKNOWN,
                pid: Pid::UNKNOWN,
                comm: NameId::NONE,
                cpu,
                id: EventId::SIDEBAND,
                what: What::Lost { count },
            });
        }
    }

    /// The run ends.
    fn finish(&mut self, batch: &mut Batch) {
        self.flush(batch);
        let last = self.last;
        self.date_losses(last, batch);
    }
}

fn count_loss(count: u64, batch: &mut Batch) {
    match count {
        0 => batch.quality.add(QualityCode::LostChunks, 1),
        n => batch.quality.add(QualityCode::LostEvents, n),
    }
}

/// Idle tasks share the id 0 but are called differently on each CPU.
fn hint(l: &Line<'_>) -> u32 {
    if l.tid.0 == 0 { 512 } else { l.tid.0 }
}

/// Decodes a stretch: bytes `at..end` of the file, front to back.
pub(crate) struct Stretch<'a> {
    lines: Lines<'a>,
    /// Offset of the byte behind `buf`.
    at: u64,
    end: u64,
    buf: Vec<u8>,
    /// Start of the next line in `buf`.
    next: usize,
    /// Inside a line given up for its length.
    skipping: bool,
}

impl<'a> Stretch<'a> {
    pub(crate) fn new(trace: &'a TextTrace, start: u64, end: u64) -> Stretch<'a> {
        Stretch { lines: Lines::new(trace), at: start, end, buf: Vec::new(), next: 0, skipping: false }
    }

    /// Read the next block behind what is left in the buffer; false at the end.
    fn refill(&mut self) -> Result<bool> {
        let left = self.end - self.at;
        if left == 0 {
            return Ok(false);
        }
        self.buf.drain(..self.next);
        self.next = 0;
        if self.buf.len() > MAX_LINE {
            self.buf.clear();
            self.skipping = true;
        }
        let have = self.buf.len();
        let want = usize::try_from(left).unwrap_or(usize::MAX).min(BLOCK);
        self.buf.resize(have + want, 0);
        let trace = self.lines.trace;
        let got = trace.source().read_at(self.at, &mut self.buf[have..]).map_err(|e| ErrorKind::from(e).in_file(trace.path()))?;
        self.buf.truncate(have + got);
        self.at += got as u64;
        if got == 0 {
            // The file has become shorter since it was opened.
            self.end = self.at;
        }
        Ok(got > 0)
    }
}

impl RunDecoder for Stretch<'_> {
    fn fill(&mut self, batch: &mut Batch) -> Result<bool> {
        // A block's last line may go on in the next one; how far the search for its end came.
        let mut searched = self.next;
        loop {
            while let Some(n) = memchr::memchr(b'\n', &self.buf[searched..]) {
                let end = searched + n;
                if self.skipping {
                    self.skipping = false;
                } else {
                    self.lines.line(&self.buf[self.next..end], batch);
                }
                self.next = end + 1;
                searched = self.next;
                if batch.is_full() {
                    return Ok(true);
                }
            }
            let partial = self.buf.len() - self.next;
            if !self.refill()? {
                if partial > 0 && !self.skipping {
                    let line = std::mem::take(&mut self.buf);
                    self.lines.line(&line[self.next..], batch);
                    self.next = 0;
                }
                self.lines.finish(batch);
                return Ok(false);
            }
            searched = if self.skipping { 0 } else { partial };
        }
    }
}

/// Blocks an out-of-order decoder keeps. Small ones: in text in no order at all every line may
/// need another.
const BLOCKS: usize = 256;
const SMALL_BLOCK: usize = 4 << 10;

/// Decodes lines picked by place.
pub(crate) struct Picked<'a> {
    lines: Lines<'a>,
    places: &'a [Place],
    next: usize,
    /// Direct-mapped by block number: lines that are close in time are mostly close in the file.
    blocks: Vec<(u64, Vec<u8>)>,
    line: Vec<u8>,
}

impl<'a> Picked<'a> {
    pub(crate) fn new(trace: &'a TextTrace, places: &'a [Place]) -> Picked<'a> {
        Picked { lines: Lines::new(trace), places, next: 0, blocks: vec![(u64::MAX, Vec::new()); BLOCKS], line: Vec::new() }
    }

    /// Copy the line at `at` into `self.line`; false at the end of the file.
    fn read(&mut self, mut at: u64) -> Result<bool> {
        self.line.clear();
        loop {
            let number = at / SMALL_BLOCK as u64;
            let slot = &mut self.blocks[number as usize % BLOCKS];
            if slot.0 != number {
                let trace = self.lines.trace;
                slot.1.resize(SMALL_BLOCK, 0);
                let got = trace
                    .source()
                    .read_at(number * SMALL_BLOCK as u64, &mut slot.1)
                    .map_err(|e| ErrorKind::from(e).in_file(trace.path()))?;
                slot.1.truncate(got);
                slot.0 = number;
            }
            let rest = slot.1.get((at % SMALL_BLOCK as u64) as usize..).unwrap_or(&[]);
            match memchr::memchr(b'\n', rest) {
                Some(n) => {
                    self.line.extend_from_slice(&rest[..n]);
                    return Ok(true);
                }
                None if rest.is_empty() => return Ok(!self.line.is_empty()),
                None => {
                    self.line.extend_from_slice(rest);
                    at += rest.len() as u64;
                    if self.line.len() > MAX_LINE {
                        return Ok(true);
                    }
                }
            }
        }
    }
}

impl RunDecoder for Picked<'_> {
    fn fill(&mut self, batch: &mut Batch) -> Result<bool> {
        while let Some(&(_, at)) = self.places.get(self.next) {
            if batch.is_full() {
                return Ok(true);
            }
            self.next += 1;
            let mut at = at;
            if !self.read(at)? {
                continue;
            }
            self.lines.line(&self.line, batch);
            while self.lines.held.is_some() {
                at += self.line.len() as u64 + 1;
                if !self.read(at)? || !matches!(other(self.lines.trace.syntax(), &self.line), Other::Frame(_)) {
                    self.lines.flush(batch);
                    break;
                }
                self.lines.line(&self.line, batch);
            }
        }
        self.lines.finish(batch);
        Ok(false)
    }
}
