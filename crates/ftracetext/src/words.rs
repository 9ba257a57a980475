//! Classifies the bytes of a line as names and known words, for code that writes the line without
//! names. Bytes that are neither may be private: text of `print` and of events that holdup does not
//! understand.

use crate::events::Entry;
use crate::fields::{Context, what};
use crate::kind::{Kind, meaning};
use crate::line::{Form, Line, Other, Syntax, other, parse};
use crate::scan::{blank, trim};
use crate::stack::spelt;
use holdup_trace::{Batch, EventKind, LocalNames, Names};
use rustc_hash::FxHashSet;
use std::ops::Range;
use std::sync::LazyLock;

/// What a range of a line's bytes is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Sort {
    /// Numbers, words of the kernel or of the tool that printed the line.
    Known,
    /// The name of a thread, a file or a function.
    Name,
    /// The name of an event that holdup does not understand.
    Event,
    /// Text that says who made the recording, and how.
    Recorder,
    /// Anything else.
    Words,
}

/// Classifies the bytes of lines.
pub struct Words {
    syntax: Syntax,
    names: LocalNames,
    batch: Batch,
    found: Vec<(usize, usize)>,
}

/// Words of the kernel and the tools: in fields of events that holdup understands, in headings of
/// ftrace and trace-cmd, in headings of perf.
const KNOWN: &str = "prev_comm prev_pid prev_prio prev_state next_comm next_pid next_prio comm pid \
    prio success target_cpu cpu CPU orig_cpu dest_cpu parent_comm parent_pid child_comm child_pid \
    filename old_pid runtime vruntime ns delay iowait io_wait caller oldprio newprio NR id args \
    ARRAY ret irq name handler handled unhandled vec action HI TIMER NET_TX NET_RX BLOCK IRQ_POLL \
    TASKLET SCHED HRTIMER RCU vector work struct function workqueue req_cpu address ip error_code \
    lock_addr flags SPIN READ WRITE RT PERCPU MUTEX try read lockdep_addr state cpu_id CANT FIND \
    FIELD __syscall_nr nr tid exec OUT IN preempt next prev lost inlined unknown deleted \
    tracer nop entries in buffer written P TASK PID TGID TIMESTAMP FUNCTION irqs off BH disabled \
    need resched lazy hardirq softirq depth migrate disable preempt_count latency us M VP KP SP HP \
    server desktop VERBOSE TRACE capturing trace done cpus version is empty LOST EVENTS DROPPED \
    started Processed events and chunks stack user idle \
    arch nrcpus online avail total memory kB clockid frequency MHz monotonic boottime realtime \
    monotonic_raw tai local global list x86_64 aarch64 i686 armv7l riscv64 ppc64le s390x \
    loongarch64 holdup cut time phase anonymize";

/// Words in the names of events that perf counts.
const COUNTERS: &str = "cpu task clock page faults minor major alignment emulation context \
    switches migrations dummy cycles instructions cache references misses branches branch bus \
    stalled idle frontend backend ref slots L1 dcache icache LLC dTLB iTLB node loads load stores \
    store prefetches prefetch cpu_core cpu_atom freq period mem bpf output";

/// Headings of perf whose values are kept, as far as they are known words and numbers.
const FACTS: &[&[u8]] = &[
    b"arch",
    b"nrcpus online",
    b"nrcpus avail",
    b"total memory",
    b"clockid",
    b"clockid frequency",
    b"os release",
    b"perf version",
];

fn word_len(s: &[u8]) -> usize {
    s.iter().take_while(|b| is_word(**b)).count()
}

fn is_word(b: u8) -> bool {
    b.is_ascii_alphanumeric() || b == b'_' || b >= 0x80
}

fn is_known(word: &[u8]) -> bool {
    static WORDS: LazyLock<FxHashSet<&[u8]>> = LazyLock::new(|| words_of(KNOWN));
    WORDS.contains(word)
}

fn is_counter(word: &[u8]) -> bool {
    static WORDS: LazyLock<FxHashSet<&[u8]>> = LazyLock::new(|| words_of(COUNTERS));
    WORDS.contains(word)
}

fn words_of(list: &'static str) -> FxHashSet<&'static [u8]> {
    list.split_ascii_whitespace().map(str::as_bytes).collect()
}

/// A number as the kernel prints it: digits, `0x…`, or the sixteen digits of an address.
fn is_number(word: &[u8]) -> bool {
    let hex = |digits: &[u8]| !digits.is_empty() && digits.iter().all(u8::is_ascii_hexdigit);
    word.iter().all(u8::is_ascii_digit)
        || word.strip_prefix(b"0x").is_some_and(hex)
        || matches!(word.len(), 8..=16)
            && hex(word)
            && (word.len() == 16 || word.iter().any(u8::is_ascii_digit))
}

/// Classified ranges of a line, in no order.
#[derive(Default)]
struct Pieces(Vec<(Range<usize>, Sort)>);

impl Pieces {
    /// Add the words of `line[range]` that `known` accepts, and the bytes between words.
    fn known(&mut self, line: &[u8], range: Range<usize>, known: impl Fn(usize, &[u8]) -> bool) {
        let mut at = range.start;
        while at < range.end {
            let len = word_len(&line[at..range.end]);
            if len > 0 && known(at, &line[at..at + len]) {
                self.0.push((at..at + len, Sort::Known));
            }
            at += len.max(1);
        }
    }

    fn push(&mut self, range: Range<usize>, sort: Sort) {
        self.0.push((range, sort));
    }

    /// All bytes of the line, in order; where pieces overlap, the first one counts.
    fn in_order(self, line: &[u8]) -> Vec<(Range<usize>, Sort)> {
        let mut sorts: Vec<Option<Sort>> = vec![None; line.len()];
        for (range, sort) in self.0 {
            for of in sorts.get_mut(range).unwrap_or(&mut []) {
                of.get_or_insert(sort);
            }
        }
        let mut all: Vec<(Range<usize>, Sort)> = Vec::new();
        for (at, sort) in sorts.into_iter().enumerate() {
            let sort = sort.unwrap_or(Sort::Words);
            match all.last_mut() {
                Some((range, last)) if *last == sort => range.end = at + 1,
                _ => all.push((at..at + 1, sort)),
            }
        }
        all
    }
}

/// The range of `part` in `line`; `None` if it is not in `line`.
fn place(line: &[u8], part: (usize, usize)) -> Option<Range<usize>> {
    let start = part.0.checked_sub(line.as_ptr() as usize)?;
    let end = start.checked_add(part.1)?;
    (end <= line.len()).then_some(start..end)
}

fn place_of(line: &[u8], part: &[u8]) -> Option<Range<usize>> {
    place(line, (part.as_ptr() as usize, part.len()))
}

impl Words {
    pub(crate) fn new(syntax: Syntax) -> Words {
        let names = LocalNames::new(Names::new());
        Words { syntax, names, batch: Batch::new(), found: Vec::new() }
    }

    /// Classify the bytes of `line`, which has no line end, in order.
    pub fn of(&mut self, line: &[u8]) -> Vec<(Range<usize>, Sort)> {
        let mut pieces = Pieces::default();
        let frame = line.first() == Some(&b'\t');
        match parse(self.syntax, line).filter(|_| !frame) {
            Some(l) => self.event(line, &l, &mut pieces),
            None => self.other(line, &mut pieces),
        }
        pieces.in_order(line)
    }

    fn event(&mut self, line: &[u8], l: &Line<'_>, pieces: &mut Pieces) {
        let name = place_of(line, l.name);
        // `<stack trace>` has a name of its own.
        let front = name.as_ref().map_or_else(
            || line.iter().rposition(|&b| b == b'<').unwrap_or(line.len()),
            |name| name.start,
        );
        match place_of(line, l.comm).filter(|comm| !comm.is_empty()) {
            Some(comm) => {
                let behind = comm.end..front;
                pieces.push(comm, Sort::Name);
                pieces.push(behind, Sort::Known);
            }
            // `<...>`, `:1234`, or a truncated name.
            None => {
                let id = format!("-{}", l.tid);
                let at = memchr::memmem::rfind(&line[..front], id.as_bytes());
                let at = at.filter(|_| self.syntax == Syntax::Kernel).unwrap_or(0);
                if self.syntax == Syntax::Kernel {
                    pieces.push(at..front, Sort::Known);
                }
                pieces.known(line, 0..front, |_, word| is_number(word));
            }
        }
        let Some(name) = name else { return pieces.push(front..line.len(), Sort::Known) };
        let kind = meaning(l.name, l.form, self.syntax == Syntax::Perf).kind;
        let body = name.end..line.len();
        match kind {
            Kind::Other => return pieces.push(name, Sort::Event),
            Kind::Sample => {
                let known = |_: usize, word: &[u8]| is_counter(word) || is_modifier(word);
                pieces.known(line, name, known);
                if spelt(Syntax::Perf, l.body).is_some() {
                    self.frame(line, l.body, Syntax::Perf, pieces);
                }
                return;
            }
            _ => pieces.push(name, Sort::Known),
        }
        self.found.clear();
        self.batch.clear();
        let entry = Entry::without_number(l, kind);
        let mut cx = Context {
            names: &mut self.names,
            batch: &mut self.batch,
            old_states: false,
            found: Some(&mut self.found),
        };
        // Missing fields do not matter here.
        let _ = what(&entry, l, &mut cx);
        for part in &self.found {
            if let Some(range) = place(line, *part) {
                pieces.push(range, of_found(kind));
            }
        }
        fields(line, body, kind, l.form, pieces);
    }

    /// Classify a frame of a call chain, which is `text` in the line.
    fn frame(&self, line: &[u8], text: &[u8], syntax: Syntax, pieces: &mut Pieces) {
        let Some(frame) = spelt(syntax, text) else { return };
        let kernel = match frame.dso {
            b"" => syntax == Syntax::Kernel || frame.address >> 63 != 0,
            dso => dso.starts_with(b"[kernel") || dso.starts_with(b"[guest.kernel"),
        };
        let sort = if kernel { Sort::Known } else { Sort::Name };
        for part in [frame.function, frame.dso] {
            if let Some(range) = place_of(line, part).filter(|r| !r.is_empty()) {
                pieces.push(range, sort);
            }
        }
        if let Some(range) = place_of(line, text) {
            let short = |at: usize, word: &[u8]| {
                // The address, which may be short.
                at == range.start && word.iter().all(u8::is_ascii_hexdigit)
            };
            let known = |at: usize, word: &[u8]| {
                short(at, word) || is_number(word) || matches!(word, b"inlined" | b"unknown")
            };
            pieces.known(line, range.clone(), known);
        }
    }

    fn other(&self, line: &[u8], pieces: &mut Pieces) {
        let text = trim(line);
        let known = |_: usize, word: &[u8]| is_number(word) || is_known(word);
        if self.syntax == Syntax::Perf
            && let Some(fact) = text.strip_prefix(b"# ")
            && let Some(colon) = memchr::memchr(b':', fact)
        {
            let start = line.len() - fact.len() - (line.len() - trimmed_end(line));
            return heading(line, start, start + colon, trim(&fact[..colon]), pieces);
        }
        match other(self.syntax, line) {
            Other::Frame if spelt(self.syntax, line).is_some() => {
                self.frame(line, text, self.syntax, pieces);
            }
            Other::Silent | Other::Lost(..) | Other::Started(_) => {
                pieces.known(line, 0..line.len(), known);
            }
            _ => {}
        }
    }
}

fn trimmed_end(line: &[u8]) -> usize {
    crate::scan::trim_end(line).len()
}

/// Classify perf's `# label : value`: who made the recording, and how, is removed.
fn heading(line: &[u8], start: usize, colon: usize, label: &[u8], pieces: &mut Pieces) {
    let value = (colon + 1).min(line.len())..line.len();
    let known = |_: usize, word: &[u8]| is_number(word) || is_known(word);
    let is_list = label.starts_with(b"node") && label.ends_with(b"cpu list");
    match label {
        b"hostname" | b"captured on" => {
            pieces.push(0..value.start, Sort::Known);
            pieces.push(value, Sort::Recorder);
        }
        b"os release" | b"perf version" => {
            pieces.push(0..value.start, Sort::Known);
            let text = &line[value.clone()];
            let at = text.iter().position(|b| !blank(*b)).unwrap_or(text.len());
            let numbers = |b: &&u8| b.is_ascii_digit() || **b == b'.';
            let end = value.start + at + text[at..].iter().take_while(numbers).count();
            pieces.push(value.start..end, Sort::Known);
            pieces.push(end..value.end, Sort::Recorder);
        }
        b"cmdline" => {
            pieces.push(0..value.start, Sort::Known);
            // A system-wide recording.
            let words = line[value.clone()].split(|&b| blank(b));
            let own = words.take_while(|word| *word != b"--");
            for word in own.filter(|w| matches!(*w, b"-a" | b"--all-cpus")) {
                if let Some(place) = place_of(line, word) {
                    pieces.push(place.start - 1..place.end, Sort::Known);
                }
            }
            pieces.push(value, Sort::Recorder);
        }
        _ if is_list || FACTS.contains(&label) => {
            pieces.push(0..value.start, Sort::Known);
            pieces.known(line, value, known);
        }
        b"holdup cut" => pieces.known(line, 0..line.len(), known),
        _ => pieces.push(start..line.len(), Sort::Recorder),
    }
}

fn is_modifier(word: &[u8]) -> bool {
    let hex = word.strip_prefix(b"r").is_some_and(|w| w.iter().all(u8::is_ascii_hexdigit));
    hex || word.len() <= 4 && word.iter().all(|b| b"ukhGHpPSDWeIb".contains(b))
        || word.iter().all(u8::is_ascii_digit)
}

/// What the names found in an event are: names of kernel functions and lock classes are the same
/// everywhere.
fn of_found(kind: Kind) -> Sort {
    match kind {
        Kind::Event(
            EventKind::BlockedReason
            | EventKind::WorkQueue
            | EventKind::WorkStart
            | EventKind::LockAcquire
            | EventKind::LockAcquired
            | EventKind::LockContended
            | EventKind::LockRelease,
        ) => Sort::Known,
        _ => Sort::Name,
    }
}

/// Classify the other fields of an event that holdup understands.
fn fields(line: &[u8], body: Range<usize>, kind: Kind, form: Form, pieces: &mut Pieces) {
    let Kind::Event(event) = kind else {
        return pieces.known(line, body, |_, w| is_number(w) || is_known(w));
    };
    let call = matches!(event, EventKind::SysEnter | EventKind::SysExit)
        || matches!(event, EventKind::SysEnterNamed | EventKind::SysExitNamed);
    let named = event == EventKind::SysEnterNamed;
    let switch = event == EventKind::Switch;
    let known = |at: usize, word: &[u8]| {
        let next = line.get(at + word.len());
        let key = match next {
            Some(b':') => line.get(at + word.len() + 1).is_none_or(|&b| blank(b)),
            next => next == Some(&b'=') && form == Form::Colon,
        };
        is_number(word)
            || is_known(word)
            || call && word.iter().all(u8::is_ascii_hexdigit)
            || named && key
            || switch && is_state(word)
    };
    for part in unquoted(line, body) {
        pieces.known(line, part, known);
    }
}

fn is_state(word: &[u8]) -> bool {
    word.len() <= 3 && word.iter().all(|b| b"RSDTtXxZPIKWNLCF".contains(b))
}

/// The parts of the body outside of quotes. A quote ends a string only before the list's next item
/// or end.
fn unquoted(line: &[u8], body: Range<usize>) -> Vec<Range<usize>> {
    let mut parts = Vec::new();
    let (mut start, mut quoted) = (body.start, false);
    for at in body.clone().filter(|&at| line[at] == b'"') {
        let ends = line
            .get(at + 1..body.end)
            .is_none_or(|rest| matches!(trim(rest).first(), None | Some(b',' | b')')));
        match quoted {
            false => parts.push(start..at),
            true if ends => start = at + 1,
            true => continue,
        }
        quoted = !quoted;
    }
    if !quoted {
        parts.push(start..body.end);
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The line with names and words marked by brackets.
    fn marked(syntax: Syntax, line: &str) -> String {
        let pieces = Words::new(syntax).of(line.as_bytes());
        let mark = |(range, sort): (Range<usize>, Sort)| {
            let text = &line[range];
            let plain = text.bytes().all(|b| !is_word(b));
            match sort {
                Sort::Known => text.to_owned(),
                Sort::Words if plain => text.to_owned(),
                Sort::Name => format!("«{text}»"),
                Sort::Event => format!("!{text}!"),
                Sort::Recorder => String::new(),
                Sort::Words => format!("‹{text}›"),
            }
        };
        pieces.into_iter().map(mark).collect()
    }

    #[test]
    fn names_are_told_from_words_and_numbers() {
        let kernel = [
            (
                "  acme w-42 [001] d..2. 17.000100: sched_wakeup: comm=acme x pid=43 prio=120 \
                 target_cpu=000",
                "  «acme w»-42 [001] d..2. 17.000100: sched_wakeup: comm=«acme x» pid=43 prio=120 \
                 target_cpu=000",
            ),
            (
                "    wl-42 [001] 1.000100: sched_switch: a:b:0 [120] S ==> rcu:15 [120]",
                "    «wl»-42 [001] 1.000100: sched_switch: «a:b»:0 [120] S ==> «rcu»:15 [120]",
            ),
            (
                "    wl-42 [001] 1.000100: sched_migrate_task: comm=up pid=9 prio=1 orig_cpu=0 \
                 dest_cpu=1",
                "    «wl»-42 [001] 1.000100: sched_migrate_task: comm=«up» pid=9 prio=1 orig_cpu=0 \
                 dest_cpu=1",
            ),
            (
                "    wl-42 [001] .... 1.000100: print: secret=1234 x",
                "    «wl»-42 [001] .... 1.000100: !print!‹: secret=1234 x›",
            ),
            (
                "    wl-42 [001] .... 1.0: sys_openat(dfd: ff9c, filename: 7ff \"/a: b\", \
                 flags: 0)",
                "    «wl»-42 [001] .... 1.0: sys_openat(dfd: ff9c, filename: 7ff ‹\"/a: b\"›, \
                 flags: 0)",
            ),
            (
                "trace-cm-1954    1d.h..770233360204: softirq_raise: vec=1 [action=TIMER]",
                "‹trace-cm›-1954    1d.h..770233360204: softirq_raise: vec=1 [action=TIMER]",
            ),
            (" => vfs_read+0x1/0x2", " => vfs_read+0x1/0x2"),
            (" => acme_fn+0x1/0x2 [acme]", " => «acme_fn»+0x1/0x2 «[acme]»"),
            ("acme.dat: cpus=4", "‹acme.dat: ›cpus=4"),
            ("CPU:3 [LOST 12 EVENTS]", "CPU:3 [LOST 12 EVENTS]"),
        ];
        for (line, want) in kernel {
            let got = marked(Syntax::Kernel, line);
            assert_eq!(plain(&got), plain(want), "{line}");
        }
        let perf = [
            (
                "  acme   292/293 [000]    28.914036:       3 cycles:u:  7f12 f+0x1 (/lib/x.so)",
                "  «acme»   292/293 [000]    28.914036:       3 cycles:u:  7f12 «f»+0x1 \
                 («/lib/x.so»)",
            ),
            ("\tffffffff813af60a up+0x1 ([kernel.kallsyms])", ""),
            ("\t  13f5 f::g<int> (/a b/c)", "\t  13f5 «f::g<int>» («/a b/c»)"),
            ("# hostname : acme", "# hostname :"),
            ("# os release : 6.1.2-acme", "# os release : 6.1.2"),
            ("# cmdline : /bin/perf record -a -e x -- acme -a", "# cmdline : -a"),
            ("# event : name = acme", "# "),
        ];
        for (line, want) in perf {
            let want = if want.is_empty() { line } else { want };
            assert_eq!(plain(&marked(Syntax::Perf, line)), plain(want), "{line}");
        }
    }

    /// The text without the brackets around ranges that are not words.
    fn plain(text: &str) -> String {
        text.replace("‹", "").replace("›", "")
    }

    #[test]
    fn what_is_not_understood_is_words() {
        let line = "    wl-42 [001] .... 1.000100: acme: comm=acme pid=12345";
        let pieces = Words::new(Syntax::Kernel).of(line.as_bytes());
        let words = pieces.last().unwrap();
        assert_eq!((&line[words.0.clone()], words.1), (": comm=acme pid=12345", Sort::Words));
    }
}
