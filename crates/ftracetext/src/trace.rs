//! An opened text trace.

use crate::decode::{Ascent, Picked};
use crate::events::{Entry, Events, Rules};
use crate::fields::{Context, what};
use crate::index::{Index, Name, index};
use crate::kind::{Kind, meaning};
use crate::lack::Lack;
use crate::line::{Line, Other, Syntax, other, parse};
use crate::nearly::nearly;
use crate::numbers::{SyscallNumber, UNNUMBERED_SYSCALL};
use crate::order::{self, Place};
use crate::scan::lossy;
use crate::sniff::{Dialect, DialectKind, sniff};
use crate::source::Source;
use crate::text::Text;
use crate::{html, preamble};
use holdup_trace::{
    Batch, Capabilities, Clock, ErrorKind, Extras, LocalNames, Names, Opened, Presence, Quality,
    QualityCode, Reader, Result, Run, RunDecoder, SymbolTable, TraceInfo,
};
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

/// Options for reading.
#[derive(Clone, Copy, Debug)]
pub struct TextOptions {
    /// Numbers of syscalls the text only names. The default knows none.
    pub syscall_nr: SyscallNumber,
    /// Bytes per run: small enough to keep several decoders busy, large enough to be worth a run.
    pub run_bytes: usize,
}

impl Default for TextOptions {
    fn default() -> TextOptions {
        TextOptions { syscall_nr: |_, _| None, run_bytes: 1 << 20 }
    }
}

impl TextOptions {
    /// Open a file; see [`open`].
    ///
    /// # Errors
    /// The file cannot be read, or holds no text trace.
    pub fn open(&self, path: &Path) -> Result<TextTrace> {
        let fail = |e: std::io::Error| ErrorKind::from(e).in_file(path);
        let mut file = File::open(path).map_err(fail)?;
        let meta = file.metadata().map_err(fail)?;
        // A pipe or a device cannot be read by position, and tracefs files report no length.
        let regular = meta.is_file() && meta.len() > 0;
        let source = if regular { Source::file(file) } else { Source::spool(&mut file) };
        self.build(path, source.map_err(fail)?)
    }

    /// Read a stream to its end; see [`open_stream`].
    ///
    /// # Errors
    /// The stream cannot be read, or holds no text trace.
    pub fn open_stream(&self, name: &Path, mut input: impl Read) -> Result<TextTrace> {
        let source = Source::spool(&mut input).map_err(|e| ErrorKind::from(e).in_file(name))?;
        self.build(name, source)
    }

    fn build(&self, path: &Path, source: Source) -> Result<TextTrace> {
        TextTrace::new(path.to_owned(), source, self).map_err(|kind| kind.in_file(path))
    }
}

/// Open a text trace. Syscalls without a number get none; [`TextOptions`] can supply numbers.
///
/// # Errors
/// The file cannot be read, or holds no text trace.
pub fn open(path: &Path) -> Result<TextTrace> {
    TextOptions::default().open(path)
}

/// Read a text trace from a stream, to its end: up to 64 MiB are kept in memory, more goes to an
/// anonymous temporary file. `name` is for messages.
///
/// # Errors
/// The stream cannot be read, or holds no text trace.
pub fn open_stream(name: &Path, input: impl Read) -> Result<TextTrace> {
    TextOptions::default().open_stream(name, input)
}

/// How the text is divided into runs.
enum Order {
    /// Run k is the bytes from `starts[k]` to `starts[k + 1]`.
    Ascents(Vec<usize>),
    /// Run k has [`order::RUN`] event lines.
    Sorted(Vec<Place>),
}

/// An opened text trace.
pub struct TextTrace {
    opened: Opened,
    dialect: Dialect,
    text: Text,
    order: Order,
    event_count: u64,
}

/// Bytes searched for headings.
const HEAD: usize = 1 << 20;

impl TextTrace {
    fn new(
        path: PathBuf,
        mut source: Source,
        options: &TextOptions,
    ) -> std::result::Result<TextTrace, ErrorKind> {
        let head = source.head(HEAD);
        let Some(dialect) = sniff(head) else { return Err(not_a_trace(head)) };
        let mut cut = false;
        if dialect.kind == DialectKind::Html {
            let page = html::cut_out(source)?;
            (source, cut) = (page.trace, page.is_cut);
        } else if head.starts_with(b"\xef\xbb\xbf") {
            source.narrow(3, usize::MAX);
        }
        let head = source.head(HEAD);
        let syntax = dialect.kind.syntax();
        let mut info = TraceInfo::new(path, dialect.kind.name());
        let mut quality = Quality::default();
        preamble::read(head, &mut info, &mut quality);

        let mut found = index(source.bytes(), syntax, options.run_bytes);
        match last_line(source.bytes(), syntax) {
            LastLine::Whole => {}
            LastLine::Cut => cut = true,
            // An incomplete last line is reported once, as a truncation.
            LastLine::Unreadable => {
                cut = true;
                found.bad = found.bad.saturating_sub(1);
                found.examples.truncate(found.bad as usize);
            }
        }
        if found.events == 0 {
            if syntax == Syntax::Perf
                && let Some(refusal) = nearly(head)
            {
                return Err(refusal);
            }
            if found.bad > 0 {
                return Err(nothing_readable(head, &found));
            }
        }
        if syntax == Syntax::Perf && order::is_of_differences(&found) {
            return Err(ErrorKind::Unsupported {
                what: "text of perf script with differences of time (--deltatime)".to_owned(),
                way_out: "print it again without that option".to_owned(),
            });
        }
        let rules = Rules { syntax, arch: info.arch.clone(), syscall_nr: options.syscall_nr };
        let mut events = Events::default();
        let mut extras = Extras { stacks: found.frames, ..Extras::default() };
        for Name { form, name, lacks } in &found.names {
            let at = events.intern(name, *form, &rules, &mut info.events);
            let entry = events.at(at);
            lacks.report(entry.needs, &mut quality);
            // Unusable events prove nothing.
            if !lacks.any_without(entry.needs) {
                continue;
            }
            // Text has no list of requested events, only the events themselves.
            if let Some(desc) = info.events.get_mut(entry.id.0 as usize) {
                desc.presence = Presence::Seen;
            }
            match entry.kind {
                Kind::Sample => extras.counters |= is_hardware(name),
                Kind::RecordSwitch => extras.switch_records = true,
                _ => {}
            }
        }
        info.capabilities = Capabilities::of(&info.events, extras);
        quality.add(QualityCode::Truncated, u64::from(cut));
        describe(&mut info, &mut quality, &dialect, &found, &events, source.base());

        let order = if order::is_needed(&found) {
            let (places, late) = order::sort(source.bytes(), syntax);
            quality.add(QualityCode::Reordered, late);
            Order::Sorted(places)
        } else {
            Order::Ascents(
                found.ascents.iter().map(|s| s.start).chain([source.bytes().len()]).collect(),
            )
        };
        let runs = match &order {
            Order::Ascents(_) => found.ascents.iter().map(|s| Run { first_ts: s.first }).collect(),
            Order::Sorted(places) => {
                places.chunks(order::RUN).map(|c| Run { first_ts: c[0].0 }).collect()
            }
        };
        let old_states = found.idle_letters == (true, false);
        let names = info.names.clone();
        let text = Text { source, names, syntax, old_states, events, has_chains: found.frames };
        Ok(TextTrace {
            opened: Opened { info, quality, runs },
            dialect,
            text,
            order,
            event_count: found.events,
        })
    }

    /// The dialect, and by what it was recognised.
    pub fn dialect(&self) -> Dialect {
        self.dialect
    }

    /// How many events there are, as other tools count them.
    pub fn event_count(&self) -> u64 {
        self.event_count
    }

    /// The name of a syscall numbered from [`UNNUMBERED_SYSCALL`] on.
    pub fn unnumbered_syscall(&self, nr: u32) -> Option<&str> {
        let at = nr.checked_sub(UNNUMBERED_SYSCALL)? as usize;
        self.text.events.unnumbered.get(at).map(String::as_str)
    }
}

impl Reader for TextTrace {
    fn opened(&self) -> &Opened {
        &self.opened
    }

    fn opened_mut(&mut self) -> &mut Opened {
        &mut self.opened
    }

    fn is_slow_to_decode(&self) -> bool {
        true
    }

    fn decoder(&self, run: usize) -> Box<dyn RunDecoder + '_> {
        match &self.order {
            Order::Ascents(starts) => {
                Box::new(Ascent::new(&self.text, starts[run], starts[run + 1]))
            }
            Order::Sorted(places) => {
                let from = run * order::RUN;
                Box::new(Picked::new(
                    &self.text,
                    &places[from..places.len().min(from + order::RUN)],
                ))
            }
        }
    }
}

/// How a text ends.
enum LastLine {
    Whole,
    /// Inside the line of an event.
    Cut,
    /// Inside a line too incomplete to recognise.
    Unreadable,
}

/// How `text` ends. A line that lacks only its line end is complete: editors and `$(…)` of the
/// shell remove that.
fn last_line(text: &[u8], syntax: Syntax) -> LastLine {
    let start = memchr::memrchr(b'\n', text).map_or(0, |n| n + 1);
    let line = &text[start..];
    match (parse(syntax, line), other(syntax, line)) {
        (Some(l), _) => {
            let kind = meaning(l.name, l.form, syntax == Syntax::Perf).kind;
            let is_whole =
                l.body.is_empty() || !kind.needs().meets(Lack::FIELDS) || has_all_fields(kind, &l);
            if is_whole { LastLine::Whole } else { LastLine::Cut }
        }
        (None, Other::Bad) => LastLine::Unreadable,
        // The columns before the event of perf script begin with a blank, as call chains do.
        (None, Other::Attached) => LastLine::Cut,
        (None, _) => LastLine::Whole,
    }
}

/// Whether the fields of `line` can be read.
fn has_all_fields(kind: Kind, line: &Line<'_>) -> bool {
    let mut batch = Batch::default();
    let mut names = LocalNames::new(Names::new());
    let mut cx = Context { names: &mut names, batch: &mut batch, old_states: false, found: None };
    let entry = Entry::without_number(line, kind);
    what(&entry, line, &mut cx).is_some()
}

/// Fill in what the index found.
fn describe(
    info: &mut TraceInfo,
    quality: &mut Quality,
    dialect: &Dialect,
    found: &Index,
    events: &Events,
    base: usize,
) {
    info.span = found.span;
    let symbols: String =
        found.symbols.iter().map(|(start, name)| format!("{start:x} t {name}\n")).collect();
    info.symbols = SymbolTable::from_kallsyms(symbols.as_bytes());

    info.extra.insert(0, ("recognised by".to_owned(), dialect.why.to_owned()));
    let finest = 15 - (found.digits | 1).leading_zeros();
    info.clock = Clock { name: std::mem::take(&mut info.clock.name), resolution_ns: 1 };
    match finest {
        0 if found.digits != 0 => {
            quality.add(QualityCode::TickClock, 1);
            info.extra.push((
                "time stamps".to_owned(),
                "time stamps are ticks of a counter whose rate the text does not say; they are \
                 shown as if they were nanoseconds"
                    .to_owned(),
            ));
        }
        1..=8 => {
            info.clock.resolution_ns = 10u64.pow(9 - finest);
            quality.add(QualityCode::MicrosecondClock, 1);
        }
        _ => {}
    }
    quality.add(QualityCode::UnreadableLines, found.bad);
    quality.add(QualityCode::AuxErrors, found.aux_errors);
    for (at, line) in &found.examples {
        let at = at + base;
        info.extra.push((format!("unreadable line at byte {at}"), line.clone()));
    }
    if !events.unnumbered.is_empty() {
        info.extra.push(("system calls without numbers".to_owned(), events.unnumbered.join(" ")));
    }
}

/// Whether a counter is a hardware counter.
fn is_hardware(name: &[u8]) -> bool {
    const SOFTWARE: &[&[u8]] = &[
        b"cpu-clock",
        b"task-clock",
        b"page-faults",
        b"faults",
        b"minor-faults",
        b"major-faults",
        b"context-switches",
        b"cs",
        b"cpu-migrations",
        b"migrations",
        b"alignment-faults",
        b"emulation-faults",
        b"dummy",
        b"bpf-output",
        b"cgroup-switches",
    ];
    let base = name.split(|&b| b == b':').next().unwrap_or(name);
    !SOFTWARE.contains(&base)
}

fn not_a_trace(head: &[u8]) -> ErrorKind {
    if head.starts_with(b"SIMPLEPERF") {
        return ErrorKind::Unsupported {
            what: "simpleperf's own binary format".to_owned(),
            way_out: "convert it to text with simpleperf report-sample or its script \
                report_sample.py, and give the text to holdup"
                .to_owned(),
        };
    }
    let expected = "a text trace: lines `comm-pid [cpu] flags time: event: …` (kernel trace, \
        trace-cmd report) or `comm pid [cpu] time: event: …` (perf script; with -F it must print \
        time and event)";
    let first = head.split(|&b| b == b'\n').find(|l| !crate::scan::trim(l).is_empty());
    let found = match first {
        None => "an empty file".to_owned(),
        Some(_) if head.iter().take(4096).any(|&b| b == 0) => "binary data".to_owned(),
        Some(line) => format!("\"{}\"", lossy(line, 80)),
    };
    ErrorKind::malformed(0, None, expected, found)
}

/// The error for a text with headings of a trace but no line that is an event.
fn nothing_readable(head: &[u8], found: &Index) -> ErrorKind {
    let has = |what: &[u8]| memchr::memmem::find(head, what).is_some();
    if has(b"# tracer: function_graph") || has(b"DURATION") && has(b"FUNCTION CALLS") {
        return ErrorKind::Unsupported {
            what: "output of the function_graph tracer, which has no scheduling events".to_owned(),
            way_out: "record events instead: echo nop > current_tracer, and enable \
                events/sched/sched_switch and the other events that `holdup doctor` names"
                .to_owned(),
        };
    }
    let (at, line) = found.examples.first().cloned().unwrap_or_default();
    ErrorKind::malformed(
        at as u64,
        "the first line that is not a heading".to_owned(),
        "an event line `comm-pid [cpu] flags time: event: …` or `comm pid [cpu] time: event: …` \
         (kernel text with the options raw, hex, bin and verbose off)",
        format!("\"{line}\" ({} such lines, no readable one)", found.bad),
    )
}
