//! Decoding: lines in, events out.

use crate::events::Cache;
use crate::fields::{Context, what};
use crate::line::{Line, Other, Syntax, other, parse};
use crate::lines::line_end;
use crate::order::Place;
use crate::scan::{blank, hex};
use crate::stack::Chains;
use crate::text::Text;
use holdup_trace::{
    Batch, Cpu, Event, EventId, LocalNames, NameId, Nanos, Pid, QualityCode, Result, RunDecoder,
    StackRef, Tid, What, progress,
};

/// Turns lines into events.
struct Lines<'a> {
    text: &'a Text,
    names: LocalNames,
    cache: Cache,
    chains: Chains<'a>,
    /// Losses reported by lines before the event that gives their time.
    losses: Vec<(Cpu, u64)>,
    last: Nanos,
}

impl<'a> Lines<'a> {
    fn new(text: &'a Text) -> Lines<'a> {
        Lines {
            text,
            names: LocalNames::new(text.names.clone()),
            cache: Cache::default(),
            chains: Chains::new(text.bytes(), text.syntax),
            losses: Vec::new(),
            last: 0,
        }
    }

    /// Decode the line from `at` to `end`.
    #[inline]
    fn line(&mut self, at: usize, end: usize, batch: &mut Batch) {
        let line = &self.text.bytes()[at..end];
        // The frame was already read with its event.
        if line.first() == Some(&b'\t') && self.text.syntax == Syntax::Perf {
            return;
        }
        match parse(self.text.syntax, line) {
            Some(l) => self.event(&l, end, batch),
            None => self.not_event(line, batch),
        }
    }

    #[inline]
    fn event(&mut self, l: &Line<'a>, end: usize, batch: &mut Batch) {
        let ts = l.stamp.ts;
        self.last = ts;
        if !self.losses.is_empty() {
            self.date_losses(ts, batch);
        }
        let Some(entry) = self.text.events.find(l.name, l.form, &mut self.cache) else {
            batch.quality.add(QualityCode::MissingFormat, 1);
            return;
        };
        let record = entry.kind.is_record();
        let old_states = self.text.old_states;
        let what =
            what(entry, l, &mut Context { names: &mut self.names, batch, old_states, found: None });
        let mut what = match what {
            Some(what) => what,
            None if record => return,
            None => {
                // Events without any field were counted when the file was opened.
                batch.quality.add(QualityCode::MissingField, !l.body.is_empty() as u64);
                What::Other
            }
        };
        if let What::Lost { count } = what {
            count_loss(count, batch);
        }
        // The name that perf prints next to a sideband record is the thread's previous name.
        let comm = if record { NameId::NONE } else { self.names.name(hint(l), l.comm) };
        let event = |id, what| Event { ts, tid: l.tid, pid: l.pid, comm, cpu: l.cpu, id, what };
        let mut chain = StackRef::NONE;
        if self.text.has_chains && !record {
            chain = self.chains.of(l, end, &mut self.names, batch);
        }
        match &mut what {
            What::Sample { stack, .. } => {
                // Without a call chain perf prints the address next to the event.
                let has_address =
                    || hex(l.body).is_some_and(|(_, n)| l.body.get(n).is_none_or(|&b| blank(b)));
                if chain.is_empty() && self.text.syntax == Syntax::Perf && has_address() {
                    chain = self.chains.lone(l, &mut self.names, batch);
                }
                *stack = chain;
            }
            What::ContentionBegin { stack, .. } => *stack = chain,
            _ if chain.is_empty() => {}
            _ => batch.events.push(event(EventId::SIDEBAND, What::Stack { of: chain })),
        }
        batch.events.push(event(entry.id, what));
    }

    fn not_event(&mut self, line: &[u8], batch: &mut Batch) {
        match other(self.text.syntax, line) {
            Other::Lost(cpu, count) => {
                count_loss(count.unwrap_or(0), batch);
                self.losses.push((cpu, count.unwrap_or(0)));
            }
            // The file's header has the number, which was counted when the file was opened.
            Other::Started(cpu) => self.losses.push((cpu, 0)),
            Other::Frame | Other::Attached | Other::Silent | Other::AuxError | Other::Bad => {}
        }
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
        let last = self.last;
        self.date_losses(last, batch);
        batch.quality.add(QualityCode::Truncated, self.text.source.has_shrunk().into());
    }
}

fn count_loss(count: u64, batch: &mut Batch) {
    match count {
        0 => batch.quality.add(QualityCode::LostChunks, 1),
        n => batch.quality.add(QualityCode::LostEvents, n),
    }
}

/// Idle tasks share the id 0 but have different names on each CPU.
fn hint(l: &Line<'_>) -> u32 {
    if l.tid.0 == 0 { 512 } else { l.tid.0 }
}

/// Decodes an ascent: bytes `at..end` of the text, front to back.
pub(crate) struct Ascent<'a> {
    lines: Lines<'a>,
    /// Start of the next line.
    at: usize,
    end: usize,
}

impl<'a> Ascent<'a> {
    pub(crate) fn new(text: &'a Text, start: usize, end: usize) -> Ascent<'a> {
        Ascent { lines: Lines::new(text), at: start, end }
    }
}

impl RunDecoder for Ascent<'_> {
    fn fill(&mut self, batch: &mut Batch) -> Result<bool> {
        let text = &self.lines.text.bytes()[..self.end];
        let from = self.at;
        while self.at < text.len() {
            let Some(end) = line_end(text, self.at) else {
                self.at += memchr::memchr(b'\n', &text[self.at..]).map_or(text.len(), |n| n + 1);
                continue;
            };
            self.lines.line(self.at, end, batch);
            self.at = end + 1;
            if batch.is_full() {
                progress::advance((self.at - from) as u64);
                return Ok(true);
            }
        }
        progress::advance((self.at - from) as u64);
        self.lines.finish(batch);
        Ok(false)
    }
}

/// Decodes lines picked by their offsets.
pub(crate) struct Picked<'a> {
    lines: Lines<'a>,
    places: &'a [Place],
    next: usize,
}

impl<'a> Picked<'a> {
    pub(crate) fn new(text: &'a Text, places: &'a [Place]) -> Picked<'a> {
        Picked { lines: Lines::new(text), places, next: 0 }
    }
}

impl RunDecoder for Picked<'_> {
    fn fill(&mut self, batch: &mut Batch) -> Result<bool> {
        let text = self.lines.text.bytes();
        let mut done = 0;
        while let Some(&(_, at)) = self.places.get(self.next) {
            if batch.is_full() {
                progress::advance(done);
                return Ok(true);
            }
            self.next += 1;
            let Some(end) = line_end(text, at) else { continue };
            self.lines.line(at, end, batch);
            done += (end + 1 - at) as u64;
        }
        progress::advance(done);
        self.lines.finish(batch);
        Ok(false)
    }
}
