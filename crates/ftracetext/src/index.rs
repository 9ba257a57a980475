//! The index: one fast pass over the file when it is opened.
//!
//! The file is cut into chunks of equal size, scanned in parallel. A line belongs to the chunk that
//! has its first byte. Inside a chunk each event's time is read, and wherever it decreases a new
//! *ascent* begins. Every chunk begins one too, so that even a sorted file has many and decodes in
//! parallel. Ascents in file order cover the file: lines between two events (stack frames, blank
//! lines) belong to the ascent of the first of the two.
//!
//! The pass also collects the names of events, the time span, and the unreadable lines.

use crate::fields::sched::idle_letters;
use crate::lack::{Lack, Tally};
use crate::line::{Form, Line, Other, Syntax, other, parse};
use crate::lines::lines;
use crate::scan::{hex, lossy};
use crate::stack::{Spelt, spelt};
use holdup_trace::{Nanos, progress, union};
use rustc_hash::{FxHashMap, FxHasher};
use std::hash::{Hash, Hasher};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// More names than this indicate misread lines.
const NAMES: usize = crate::events::MAX_NAMES + 1;
/// Unreadable lines kept as examples.
const EXAMPLES: usize = 3;

/// Part of the file whose events are in time order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ascent {
    pub(crate) start: usize,
    pub(crate) first: Nanos,
    pub(crate) events: u64,
}

/// The name of an event.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Name {
    pub(crate) form: Form,
    pub(crate) name: Box<[u8]>,
    /// The columns that its events lacked.
    pub(crate) lacks: Tally,
}

/// The result of indexing.
#[derive(Default, Debug)]
pub(crate) struct Index {
    pub(crate) ascents: Vec<Ascent>,
    /// How often the time decreased.
    pub(crate) falls: u64,
    /// Names by first appearance.
    pub(crate) names: Vec<Name>,
    /// Events, without sideband records.
    pub(crate) events: u64,
    pub(crate) span: Option<(Nanos, Nanos)>,
    pub(crate) bad: u64,
    /// Losses reported by the decoder of a hardware trace.
    pub(crate) aux_errors: u64,
    /// Offsets and text of the first unreadable lines.
    pub(crate) examples: Vec<(usize, String)>,
    /// Bit n: some time stamp has n digits after the point.
    pub(crate) digits: u16,
    /// trace-cmd printed an idle kernel thread as `W`, or as `I`; see [`idle_letters`].
    pub(crate) idle_letters: (bool, bool),
    /// Whether there are stack frames.
    pub(crate) frames: bool,
    /// Kernel functions seen in stack frames: start and name.
    pub(crate) symbols: FxHashMap<u64, Box<str>>,
}

/// Index `text` in chunks of `chunk` bytes.
pub(crate) fn index(text: &[u8], syntax: Syntax, chunk: usize) -> Index {
    let chunk = chunk.max(1);
    progress::indexing(text.len() as u64);
    let chunks = text.len().div_ceil(chunk);
    let threads = std::thread::available_parallelism().map_or(1, |n| n.get()).min(chunks);
    let next = AtomicUsize::new(0);
    let done: Mutex<Vec<(usize, Index)>> = Mutex::new(Vec::new());
    let work = || {
        loop {
            let i = next.fetch_add(1, Ordering::Relaxed);
            if i >= chunks {
                return;
            }
            let mut scan = Scan::new(syntax);
            let end = (i + 1).saturating_mul(chunk).min(text.len());
            let too_long = lines(text, i * chunk..end, |at, line| scan.line(at, line));
            scan.index.bad += too_long;
            progress::advance((end - i * chunk) as u64);
            done.lock().unwrap_or_else(|e| e.into_inner()).push((i, scan.index));
        }
    };
    if threads <= 1 {
        work();
    } else {
        std::thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(work);
            }
        });
    }
    let mut parts = done.into_inner().unwrap_or_else(|e| e.into_inner());
    parts.sort_by_key(|p| p.0);
    let mut all = Index::default();
    let mut known = FxHashMap::default();
    for (_, part) in parts {
        all.absorb(part, &mut known);
    }
    all
}

impl Index {
    fn absorb(&mut self, other: Index, known: &mut FxHashMap<(Form, Box<[u8]>), usize>) {
        self.ascents.extend(other.ascents);
        for name in other.names {
            match known.get(&(name.form, name.name.clone())) {
                Some(&at) => self.names[at].lacks.absorb(&name.lacks),
                None if self.names.len() < NAMES => {
                    known.insert((name.form, name.name.clone()), self.names.len());
                    self.names.push(name);
                }
                // The last entry collects all names beyond the limit.
                None => self.names[NAMES - 1].lacks.absorb(&name.lacks),
            }
        }
        self.events += other.events;
        self.span = union(self.span, other.span);
        self.falls += other.falls;
        self.bad += other.bad;
        self.aux_errors += other.aux_errors;
        let room = EXAMPLES.saturating_sub(self.examples.len());
        self.examples.extend(other.examples.into_iter().take(room));
        self.digits |= other.digits;
        self.idle_letters.0 |= other.idle_letters.0;
        self.idle_letters.1 |= other.idle_letters.1;
        self.frames |= other.frames;
        self.symbols.extend(other.symbols);
    }
}

const SLOTS: usize = 256;

/// Properties of a name that matter to the index.
#[derive(Clone, Copy)]
struct Note {
    /// A sideband record, no event.
    record: bool,
    /// A switch as trace-cmd renders it, see [`idle_letters`].
    switch: bool,
}

/// The state of scanning one chunk.
struct Scan {
    syntax: Syntax,
    index: Index,
    last: Nanos,
    /// Offset of a loss or banner just before the current line: it belongs to the event that
    /// follows.
    lead: Option<usize>,
    /// Indices of recently seen names.
    recent: [u32; SLOTS],
    /// Indices of all other names, by the name's hash.
    by_hash: FxHashMap<u64, u32>,
    /// Properties of each name.
    notes: Vec<Note>,
    /// Recently seen addresses of functions.
    seen_symbols: Vec<u64>,
}

impl Scan {
    fn new(syntax: Syntax) -> Scan {
        Scan {
            syntax,
            index: Index::default(),
            last: 0,
            lead: None,
            recent: [u32::MAX; SLOTS],
            by_hash: FxHashMap::default(),
            notes: Vec::new(),
            seen_symbols: vec![0; SLOTS],
        }
    }

    #[inline]
    fn line(&mut self, at: usize, line: &[u8]) {
        if line.first() == Some(&b'\t') && self.syntax == Syntax::Perf {
            return self.frame(line);
        }
        match parse(self.syntax, line) {
            Some(l) => self.event(at, &l),
            None => self.not_event(at, line),
        }
    }

    #[inline]
    fn event(&mut self, at: usize, l: &Line<'_>) {
        let ts = l.stamp.ts;
        let start = self.lead.take().unwrap_or(at);
        match self.index.ascents.last_mut() {
            Some(s) if ts >= self.last => s.events += 1,
            fell => {
                self.index.falls += u64::from(fell.is_some());
                self.index.ascents.push(Ascent { start, first: ts, events: 1 });
            }
        }
        self.last = ts;
        let place = self.name(l.name, l.form);
        self.index.names[place].lacks.count(Lack::of(l));
        let note = self.notes[place];
        if note.record {
            return;
        }
        if note.switch && self.index.idle_letters == (false, false) {
            self.index.idle_letters = idle_letters(l.body);
        }
        self.index.digits |= 1 << l.stamp.digits;
        self.index.events += 1;
        self.index.span = Some(match self.index.span {
            Some((a, b)) => (a.min(ts), b.max(ts)),
            None => (ts, ts),
        });
    }

    /// Enter a name; returns its index among this chunk's names.
    #[inline]
    fn name(&mut self, name: &[u8], form: Form) -> usize {
        let name = if form == Form::Function { b"" } else { name };
        let slot = crate::events::slot(name, form);
        if let Some(known) = self.index.names.get(self.recent[slot] as usize)
            && known.form == form
            && *known.name == *name
        {
            return self.recent[slot] as usize;
        }
        let mut hasher = FxHasher::default();
        (name, form).hash(&mut hasher);
        let names = &mut self.index.names;
        let place = match self.by_hash.get(&hasher.finish()) {
            Some(&place)
                if names[place as usize].form == form && *names[place as usize].name == *name =>
            {
                place
            }
            // The last entry collects all names beyond the limit.
            _ if names.len() >= NAMES => NAMES as u32 - 1,
            // If two names share a hash, one of them is listed twice, which does no harm.
            _ => {
                names.push(Name { form, name: name.into(), lacks: Tally::default() });
                self.notes
                    .push(Note { record: form == Form::Record, switch: name == b"sched_switch" });
                let place = names.len() as u32 - 1;
                self.by_hash.insert(hasher.finish(), place);
                place
            }
        };
        self.recent[slot] = place;
        place as usize
    }

    fn not_event(&mut self, at: usize, line: &[u8]) {
        match other(self.syntax, line) {
            Other::Silent | Other::Attached => {}
            Other::Frame => self.frame(line),
            Other::Lost(..) | Other::Started(_) => {
                self.lead.get_or_insert(at);
            }
            Other::AuxError => self.index.aux_errors += 1,
            Other::Bad => {
                self.index.bad += 1;
                if self.index.examples.len() < EXAMPLES {
                    self.index.examples.push((at, lossy(line, 120)));
                }
            }
        }
    }

    /// Learn the name of a kernel function from `ffffffff81… name+0x2d ([kernel.kallsyms])`:
    /// nothing else in the text reveals where kernel functions are.
    #[inline]
    fn frame(&mut self, line: &[u8]) {
        self.index.frames = true;
        // Fast path: nearly all were seen before, and perf prints the address first.
        if self.syntax == Syntax::Perf {
            let text = crate::scan::trim_start(line);
            match text.starts_with(b"ffff").then(|| hex(text)).flatten() {
                Some((address, _)) if !self.is_seen(address) => {}
                _ => return,
            }
        }
        let Some(frame) = spelt(self.syntax, line).filter(|frame| !frame.inlined) else { return };
        let Spelt { address, function, offset, .. } = frame;
        if address >> 48 != 0xffff || function.is_empty() || self.is_seen(address) {
            return;
        }
        self.seen_symbols[symbol_slot(address)] = address;
        let start = address.wrapping_sub(offset.unwrap_or(0));
        let name = || String::from_utf8_lossy(function).into();
        self.index.symbols.entry(start).or_insert_with(name);
    }

    fn is_seen(&self, address: u64) -> bool {
        self.seen_symbols[symbol_slot(address)] == address
    }
}

fn symbol_slot(address: u64) -> usize {
    (address as usize >> 2 ^ address as usize >> 12) % SLOTS
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lines::MAX_LINE;

    fn text(stamps: &[u64]) -> Vec<u8> {
        stamps
            .iter()
            .flat_map(|t| {
                format!("              sh-196     [003] d..2. {t:>4}.000000: ev{}: x\n", t % 3)
                    .into_bytes()
            })
            .collect()
    }

    #[test]
    fn ascents_begin_where_time_decreases_and_at_chunks() {
        let bytes = text(&[1, 2, 2, 5, 3, 4, 1]);
        let line = bytes.len() / 7;
        let one = index(&bytes, Syntax::Kernel, 1 << 20);
        let starts: Vec<_> = one
            .ascents
            .iter()
            .map(|s| (s.start / line, s.first / 1_000_000_000, s.events))
            .collect();
        assert_eq!(starts, [(0, 1, 4), (4, 3, 2), (6, 1, 1)]);
        assert_eq!((one.events, one.span, one.bad), (7, Some((1_000_000_000, 5_000_000_000)), 0));
        assert_eq!(one.names.len(), 3);
        // Whatever the chunk size, every event is in exactly one ascent.
        for chunk in [1, 7, line, line + 1, 2 * line, 3 * line - 1] {
            let many = index(&bytes, Syntax::Kernel, chunk);
            assert_eq!(many.ascents.iter().map(|s| s.events).sum::<u64>(), 7, "{chunk}");
            assert!(many.ascents.windows(2).all(|w| w[0].start < w[1].start));
        }
    }

    #[test]
    fn unreadable_lines_are_counted_and_shown() {
        let i = index(b"what\nis\n# this\nnow\nhere\n", Syntax::Kernel, 6);
        assert_eq!((i.bad, i.events), (4, 0));
        assert_eq!(
            i.examples.iter().map(|e| e.1.as_str()).collect::<Vec<_>>(),
            ["what", "is", "now"]
        );
    }

    #[test]
    fn an_endless_line_does_not_fill_the_memory() {
        let mut bytes = vec![b'x'; 3 * MAX_LINE];
        bytes.extend(b"\n");
        bytes.extend(text(&[1, 2]));
        let i = index(&bytes, Syntax::Kernel, 64 << 10);
        assert_eq!((i.bad, i.events), (1, 2));
    }
}
