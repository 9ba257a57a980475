//! One pass over the headers of all records of a segment.
//!
//! Finds the pieces: records that follow each other without a gap and, unless marked otherwise,
//! without a step back in time. Most of a file is samples, and the offset of their time is the same
//! or depends on their id, so the loop is a load of the header, a load of the time and a few
//! compares.

use crate::record::{self, payload};
use crate::rounds::{Passed, Rounds};
use crate::schema::{SampleTime, Schema, When};
use crate::source::Source;
use crate::window::{READ, Window};
use holdup_tracepoint::Endian;
use std::io;

/// Consecutive records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Piece {
    pub(crate) start: u64,
    pub(crate) end: u64,
    /// Earliest time, 0 if no record of the piece has a time.
    pub(crate) first: u64,
    /// Latest time.
    pub(crate) last: u64,
    /// Short pieces joined: the decoder sorts them in memory.
    pub(crate) unsorted: bool,
    /// No record of the piece has had a time so far.
    pub(crate) timeless: bool,
}

/// A task named before the trace begins (a record of time 0).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TaskFact {
    pub(crate) tid: u32,
    pub(crate) pid: u32,
    pub(crate) parent: Option<u32>,
    pub(crate) comm: Option<[u8; 16]>,
}

/// Maps a control group's id in samples to its path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct GroupFact {
    pub(crate) id: u64,
    pub(crate) path: Vec<u8>,
}

/// The result of one pass over a segment.
#[derive(Debug)]
pub(crate) struct Walked {
    /// Where the first record began.
    pub(crate) start: u64,
    /// End of the last record; at or after the segment's end.
    pub(crate) end: u64,
    pub(crate) pieces: Vec<Piece>,
    pub(crate) rounds: Passed,
    /// Records by type; types beyond the table share its last slot.
    pub(crate) census: [u64; 128],
    /// Earliest and latest time of a sample.
    pub(crate) span: Option<(u64, u64)>,
    /// Records perf wrote about the recording itself.
    pub(crate) meta: Vec<u64>,
    pub(crate) tasks: Vec<TaskFact>,
    pub(crate) groups: Vec<GroupFact>,
    /// Distances from `start` of the records that may tell which thread runs, if they are noted
    /// ([`crate::marks`]).
    pub(crate) marks: Option<Vec<u32>>,
    pub(crate) skipped_bytes: u64,
    /// Bytes after the last record that are no records.
    pub(crate) trailing: u64,
    /// Whether the data end inside a record.
    pub(crate) truncated: bool,
}

/// Pieces shorter than this are joined, up to [`GROUP`] bytes: opening a run costs more than
/// sorting a few hundred records.
const SHORT: u64 = 64 << 10;
const GROUP: u64 = 256 << 10;
/// Facts kept about the time before the trace, and records about the recording. A sound file has
/// far fewer; a damaged one must not fill the memory.
const MAX_TASKS: usize = 1 << 20;
const MAX_META: usize = 1 << 16;
const MAX_GROUPS: usize = 1 << 18;

/// A record's type and size, with one load.
#[inline(always)]
fn head<E: Endian>(buf: &[u8], at: usize) -> (u32, usize) {
    let h = E::u64(buf, at);
    if E::BIG { ((h >> 32) as u32, (h & 0xffff) as usize) } else { (h as u32, (h >> 48) as usize) }
}

struct Walk<'a> {
    schema: &'a Schema,
    out: Walked,
    /// The piece being built; its `end` is not kept up to date.
    open: Option<Piece>,
}

/// Walk the records from `start` (which must be the start of a record) until one begins at or after
/// `end`. The data as a whole end at `limit`; before `start` perf's rounds had come to `before`.
pub(crate) fn walk<E: Endian>(
    source: &Source,
    schema: &Schema,
    start: u64,
    end: u64,
    limit: u64,
    window: &mut Window,
    before: Rounds,
) -> io::Result<Walked> {
    let mut w = Walk {
        schema,
        out: Walked {
            start,
            end: start,
            pieces: Vec::new(),
            rounds: Passed::after(before),
            census: [0; 128],
            span: None,
            meta: Vec::new(),
            tasks: Vec::new(),
            groups: Vec::new(),
            marks: None,
            skipped_bytes: 0,
            trailing: 0,
            truncated: false,
        },
        open: None,
    };
    let mut at = start;
    window.clear();
    if schema.calls.are_known() && source.slice(start, limit).is_some() {
        w.out.marks = Some(Vec::new());
    }
    while at < end {
        let stop = usize::try_from(end - at).unwrap_or(usize::MAX);
        if let Some(bytes) = source.slice(at, limit) {
            let used = w.window::<E>(bytes, at, stop);
            at = at.saturating_add(used);
            if used > 0 {
                continue;
            }
        }
        let next = at.saturating_add(window.bytes().len() as u64);
        let want = READ.min(usize::try_from(limit.saturating_sub(next)).unwrap_or(READ));
        let got = window.fill(source, next, want)?;
        let used = w.window::<E>(window.bytes(), at, stop);
        if used > 0 {
            window.consume(usize::try_from(used).unwrap_or(usize::MAX));
            at = at.saturating_add(used);
            continue;
        }
        if got > 0 {
            continue;
        }
        // No record could be taken: the data end within one, or its size is impossible.
        w.close(at);
        let rest = window.bytes();
        if is_no_record(rest) {
            w.out.trailing = rest.len() as u64;
            at = limit;
            break;
        }
        if rest.len() < record::HEADER || head::<E>(rest, 0).1 >= record::HEADER {
            // A size that is too large looks the same as a file that was cut off.
            w.out.truncated = true;
            at = limit;
            break;
        }
        let from = at;
        at = resync::<E>(source, schema, at + 8, limit)?.unwrap_or(limit);
        w.out.skipped_bytes += at - from;
        window.clear();
    }
    w.close(at);
    w.out.end = at;
    Ok(w.out)
}

/// Whether the last bytes of the data cannot be a truncated record. When a recording to a pipe and
/// perf's standard error go to one file, perf's messages end up after the data. No record begins
/// with text: four letters make a type that no perf knows.
pub(crate) fn is_no_record(rest: &[u8]) -> bool {
    let is_text = |b: &u8| b.is_ascii_graphic() || b.is_ascii_whitespace();
    !rest.is_empty()
        && (rest.iter().all(is_text) || rest.len() < record::HEADER && rest.iter().all(|b| *b == 0))
}

impl Walk<'_> {
    /// Take records from `buf` (which is at offset `base`) while they are complete and start before
    /// `stop`. Returns the bytes used, including payloads after the last record.
    fn window<E: Endian>(&mut self, buf: &[u8], base: u64, stop: usize) -> u64 {
        let schema = self.schema;
        // Without times at fixed offsets, no type takes the fast path.
        match schema.sample_time {
            SampleTime::At(0) => self.records::<E>(buf, base, stop, (u32::MAX, 0), |_| 0),
            SampleTime::At(at) => {
                let (at, need) = (usize::from(at), usize::from(at) + 8);
                self.records::<E>(buf, base, stop, (record::SAMPLE, need), |rec| E::u64(rec, at))
            }
            SampleTime::ByEvent { within } => {
                let fast = if within == 0 { u32::MAX } else { record::SAMPLE };
                let need = within.into();
                self.records::<E>(buf, base, stop, (fast, need), |rec| schema.time_by_id::<E>(rec))
            }
        }
    }

    /// The same; samples of the type `fast` have their time, which `time_of` reads, in their first
    /// `need` bytes.
    #[inline(always)]
    fn records<E: Endian>(
        &mut self,
        buf: &[u8],
        base: u64,
        stop: usize,
        (fast, need): (u32, usize),
        time_of: impl Fn(&[u8]) -> u64,
    ) -> u64 {
        let schema = self.schema;
        let need = need.max(record::HEADER);
        let end = stop.min(buf.len());
        let mut samples = 0;
        // Earliest and latest time of the samples taken here, and latest time of the open piece.
        let (mut lo, mut hi) = self.out.span.unwrap_or((u64::MAX, 0));
        let mut last = self.time_so_far();
        let mut at = 0;
        let used = loop {
            // Samples that continue the open piece: usually nearly all of them.
            let before = (samples, at);
            while at < end
                && let Some(rec) = buf[at..].get(..need)
            {
                let (kind, size) = head::<E>(rec, 0);
                let time = time_of(rec);
                // `last` is never 0, and u64::MAX while there is no piece to continue; 0 and
                // u64::MAX are no times.
                if kind != fast
                    || time < last
                    || time == u64::MAX
                    || size < need
                    || size > buf.len() - at
                {
                    break;
                }
                if samples == before.0 {
                    lo = lo.min(time);
                    self.out.rounds.begin(time);
                }
                samples += 1;
                last = time;
                if schema.calls.may_switch::<E>(rec) {
                    self.mark(base + at as u64);
                }
                at += size;
                record::touch_ahead(buf, at);
            }
            if at > before.1 {
                hi = hi.max(last);
                self.out.rounds.reach(last);
                if let Some(open) = &mut self.open {
                    open.last = last;
                }
            }
            if at >= stop || at + record::HEADER > buf.len() {
                break at as u64;
            }
            let (kind, size) = head::<E>(buf, at);
            if size < record::HEADER || size > buf.len() - at {
                break at as u64;
            }
            let rec = &buf[at..at + size];
            let offset = base + at as u64;
            // Records that perf itself wrote yield no event.
            let tells = match kind {
                record::SAMPLE => self.schema.calls.may_switch::<E>(rec),
                _ => kind < record::HEADER_ATTR,
            };
            if tells {
                self.mark(offset);
            }
            self.out.census[(kind as usize).min(127)] += 1;
            if kind == record::SAMPLE {
                let when = self.schema.when::<E>(kind, rec);
                self.place(offset, when);
                // A sample with the id of no known event yields no event, in perf and in the
                // decoder.
                if let When::At(t) = when
                    && t != 0
                    && self.schema.knows::<E>(rec)
                {
                    lo = lo.min(t);
                    hi = hi.max(t);
                }
            } else {
                self.other::<E>(kind, rec, offset);
                let payload = payload::<E>(kind, rec);
                if payload > 0 {
                    self.close(offset + size as u64);
                    break (at as u64 + size as u64).saturating_add(payload);
                }
            }
            last = self.time_so_far();
            at += size;
        };
        self.out.census[record::SAMPLE as usize] += samples;
        self.out.span = (lo <= hi).then_some((lo, hi));
        used
    }

    /// Note where a record is that may tell which thread runs.
    fn mark(&mut self, offset: u64) {
        if let Some(marks) = &mut self.out.marks {
            marks.push((offset - self.out.start) as u32);
        }
    }

    /// A sample continues the open piece on the fast path if its time is not before this;
    /// `u64::MAX` if none can.
    fn time_so_far(&self) -> u64 {
        match self.open {
            Some(p) if !p.timeless => p.last.max(self.out.rounds.handed_on()).max(1),
            _ => u64::MAX,
        }
    }

    /// Put an event's time into the open piece, or begin a new piece.
    fn place(&mut self, offset: u64, when: When) {
        let When::At(time) = when else {
            self.open_at(offset);
            return;
        };
        if self.open.is_some_and(|p| !p.timeless && time < p.last) {
            self.close(offset);
        }
        self.open_at(offset);
        if let Some(open) = &mut self.open {
            if open.timeless {
                (open.first, open.timeless) = (time, false);
            }
            open.last = time;
        }
        // perf hands on events with time 0 at once.
        if time != 0 {
            self.out.rounds.begin(time);
            self.out.rounds.reach(time);
        }
    }

    fn open_at(&mut self, offset: u64) {
        self.open.get_or_insert(Piece {
            start: offset,
            end: offset,
            first: 0,
            last: 0,
            unsorted: false,
            timeless: true,
        });
    }

    /// End the open piece at `end`, joining it to its predecessor if both are short.
    fn close(&mut self, end: u64) {
        let Some(mut piece) = self.open.take() else { return };
        piece.end = end;
        let short = |p: &Piece| p.unsorted || p.end - p.start < SHORT;
        match self.out.pieces.last_mut() {
            Some(prev)
                if prev.end == piece.start
                    && short(prev)
                    && short(&piece)
                    && piece.end - prev.start <= GROUP =>
            {
                prev.unsorted = true;
                prev.end = end;
                if !piece.timeless {
                    prev.first =
                        if prev.timeless { piece.first } else { prev.first.min(piece.first) };
                    prev.last = prev.last.max(piece.last);
                    prev.timeless = false;
                }
            }
            _ => self.out.pieces.push(piece),
        }
    }

    fn other<E: Endian>(&mut self, kind: u32, rec: &[u8], offset: u64) {
        match kind {
            record::FINISHED_ROUND => {
                self.out.rounds.finish();
                self.open_at(offset);
            }
            record::CGROUP if self.out.groups.len() < MAX_GROUPS => {
                let trailer = self.schema.trailer_of::<E>(rec).len as usize;
                self.out.groups.extend(group_fact::<E>(rec, trailer));
                self.open_at(offset);
            }
            ..record::HEADER_ATTR => {
                let when = self.schema.when::<E>(kind, rec);
                match when {
                    // These yield no event, but the decoder counts some of them.
                    When::Never => self.open_at(offset),
                    _ => self.place(offset, when),
                }
                if when == When::At(0) && self.out.tasks.len() < MAX_TASKS {
                    self.out.tasks.extend(task_fact::<E>(
                        kind,
                        rec,
                        self.schema.trailer_of::<E>(rec).len as usize,
                    ));
                }
            }
            record::HEADER_ATTR
            | record::HEADER_EVENT_TYPE
            | record::HEADER_TRACING_DATA
            | record::HEADER_BUILD_ID
            | record::EVENT_UPDATE
            | record::HEADER_FEATURE
            | record::ID_INDEX
            | record::THREAD_MAP
                if self.out.meta.len() < MAX_META =>
            {
                self.out.meta.push(offset);
            }
            _ => {}
        }
    }
}

/// `header:8 id:8 path`, sample ids.
fn group_fact<E: Endian>(rec: &[u8], trailer: usize) -> Option<GroupFact> {
    let path = rec.get(16..rec.len().checked_sub(trailer)?)?;
    let path = path.split(|&b| b == 0).next().unwrap_or(path);
    Some(GroupFact { id: E::u64(rec, 8), path: path.to_vec() })
}

fn task_fact<E: Endian>(kind: u32, rec: &[u8], trailer: usize) -> Option<TaskFact> {
    match kind {
        record::COMM => {
            let mut comm = [0; 16];
            let text = &rec[16..rec.len() - trailer];
            let n = text.len().min(16);
            comm[..n].copy_from_slice(&text[..n]);
            Some(TaskFact {
                pid: E::u32(rec, 8),
                tid: E::u32(rec, 12),
                parent: None,
                comm: Some(comm),
            })
        }
        record::FORK => Some(TaskFact {
            pid: E::u32(rec, 8),
            tid: E::u32(rec, 16),
            parent: Some(E::u32(rec, 20)),
            comm: None,
        }),
        _ => None,
    }
}

/// Find the first offset at or after `from` where a chain of plausible records begins.
pub(crate) fn resync<E: Endian>(
    source: &Source,
    schema: &Schema,
    from: u64,
    limit: u64,
) -> io::Result<Option<u64>> {
    // Usually the next record is near.
    let mut want = 8 << 10;
    let mut base = from;
    while base < limit {
        let buf = source.read_vec(base, want.min(limit - base))?;
        let at_end = base + buf.len() as u64 >= limit || (buf.len() as u64) < want;
        // Candidates near the end of what was read are left to the next read, which sees more of
        // them.
        let candidates = if at_end { buf.len() } else { buf.len() / 2 };
        for at in (0..candidates).step_by(8) {
            if plausible::<E>(schema, &buf[at..], at_end) {
                return Ok(Some(base + at as u64));
            }
        }
        if at_end {
            break;
        }
        base += (candidates as u64).next_multiple_of(8);
        want = 256 << 10;
    }
    Ok(None)
}

/// Whether records follow each other from the start of `buf`: sixteen of them, or all to the end.
fn plausible<E: Endian>(schema: &Schema, mut buf: &[u8], at_end: bool) -> bool {
    for n in 0..16 {
        if buf.is_empty() && at_end {
            return n > 0;
        }
        if buf.len() < record::HEADER {
            return n >= 4;
        }
        let (kind, size) = head::<E>(buf, 0);
        if size < record::HEADER || size % 8 != 0 || !record::is_known(kind) {
            return false;
        }
        let Some((rec, rest)) = buf.split_at_checked(size) else { return n >= 4 };
        if kind == record::SAMPLE && (size < 24 || !schema.knows::<E>(rec)) {
            return false;
        }
        buf = rest;
        // The chain continues after a payload that may extend beyond `buf`.
        if payload::<E>(kind, rec) > 0 {
            return n >= 4;
        }
    }
    true
}
