//! Decoding: lines in, events out.

use crate::events::Cache;
use crate::fields::{Context, what};
use crate::index::line_end;
use crate::line::{Line, Other, Syntax, other, parse};
use crate::order::Place;
use crate::scan::{blank, hex};
use crate::trace::TextTrace;
use holdup_trace::{
    Batch, Cpu, Event, EventId, Frame, LocalNames, NameId, Nanos, Pid, QualityCode, Result,
    RunDecoder, Tid, What, progress,
};

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
        if self.held.is_none()
            && line.first() == Some(&b'\t')
            && self.trace.syntax() == Syntax::Perf
        {
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
        let record = entry.kind.is_record();
        let old_states = self.trace.old_states();
        let what = what(entry, l, &mut Context { names: &mut self.names, batch, old_states });
        let what = match what {
            Some(what) => what,
            None if record => return,
            None => {
                // Those without any field were counted when the file was opened.
                batch.quality.add(QualityCode::MissingField, !l.body.is_empty() as u64);
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
            Other::Silent | Other::AuxError | Other::Bad => {}
        }
    }

    /// Hand on the event that waited for its stack.
    #[inline]
    fn flush(&mut self, batch: &mut Batch) {
        let Some(mut event) = self.held.take() else { return };
        if !self.frames.is_empty() {
            let chain = batch.push_stack(self.frames.drain(..).map(Frame::by_half));
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
        batch.quality.add(QualityCode::Truncated, self.trace.has_shrunk().into());
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

/// Decodes an ascent: bytes `at..end` of the text, front to back.
pub(crate) struct Ascent<'a> {
    lines: Lines<'a>,
    /// Start of the next line.
    at: usize,
    end: usize,
}

impl<'a> Ascent<'a> {
    pub(crate) fn new(trace: &'a TextTrace, start: usize, end: usize) -> Ascent<'a> {
        Ascent { lines: Lines::new(trace), at: start, end }
    }
}

impl RunDecoder for Ascent<'_> {
    fn fill(&mut self, batch: &mut Batch) -> Result<bool> {
        let text = &self.lines.trace.text()[..self.end];
        let from = self.at;
        while self.at < text.len() {
            let Some(end) = line_end(text, self.at) else {
                self.at += memchr::memchr(b'\n', &text[self.at..]).map_or(text.len(), |n| n + 1);
                continue;
            };
            self.lines.line(&text[self.at..end], batch);
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

/// Decodes lines picked by place.
pub(crate) struct Picked<'a> {
    lines: Lines<'a>,
    places: &'a [Place],
    next: usize,
}

impl<'a> Picked<'a> {
    pub(crate) fn new(trace: &'a TextTrace, places: &'a [Place]) -> Picked<'a> {
        Picked { lines: Lines::new(trace), places, next: 0 }
    }
}

impl RunDecoder for Picked<'_> {
    fn fill(&mut self, batch: &mut Batch) -> Result<bool> {
        let text = self.lines.trace.text();
        let mut done = 0;
        while let Some(&(_, at)) = self.places.get(self.next) {
            if batch.is_full() {
                progress::advance(done);
                return Ok(true);
            }
            self.next += 1;
            let Some(mut end) = line_end(text, at) else { continue };
            self.lines.line(&text[at..end], batch);
            // Its stack frames follow it in the text.
            while self.lines.held.is_some() {
                let at = end + 1;
                match text.get(at..).and_then(|_| line_end(text, at)) {
                    Some(next)
                        if at < text.len()
                            && matches!(
                                other(self.lines.trace.syntax(), &text[at..next]),
                                Other::Frame(_)
                            ) =>
                    {
                        self.lines.line(&text[at..next], batch);
                        end = next;
                    }
                    _ => self.lines.flush(batch),
                }
            }
            done += (end + 1 - at) as u64;
        }
        progress::advance(done);
        self.lines.finish(batch);
        Ok(false)
    }
}
