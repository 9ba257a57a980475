//! A trace in Chrome's JSON, which the Perfetto UI shows: holdup's results as tracks of slices.
//!
//! | process | tracks | slices |
//! |---|---|---|
//! | `CPUs` | each CPU, and its interrupts | which thread ran; interrupts, softirqs, work items |
//! | each process | each thread | on a CPU, ready for one, asleep: by what for, and the object |
//! | | its system calls | each call |
//! | | its waits for kernel locks | each wait |
//! | `holdup: critical path of …` | one | the pieces of the path |
//! | `holdup: phases` | one | the phases with their verdicts |
//!
//! All slices are complete events (`"ph":"X"`), sorted by their beginning; times are microseconds
//! since the trace's start with three decimals, so nanoseconds are exact.

use crate::Request;
use crate::error::ExportError;
use crate::explain::{Explain, Who, cause};
use crate::part::PartFile;
use crate::rows::Word;
use crate::spill::{Slice, Spill};
use holdup_attribution::{Attribution, JUDGE, PieceState};
use holdup_passes::{Fact, RunEnd, each_fact};
use holdup_trace::Nanos;
use rustc_hash::{FxHashMap, FxHashSet};
use std::io::{self, Write};
use std::ops::ControlFlow;
use std::path::Path;

/// The sorts of slices, as their category; the indices are [`Slice::sort`].
const SORTS: [&str; 8] = ["run", "ready", "wait", "syscall", "lock", "irq", "path", "phase"];
const RUN: u32 = 0;
const READY: u32 = 1;
const WAIT: u32 = 2;
const CALL: u32 = 3;
const LOCK: u32 = 4;
const IRQ: u32 = 5;
const PATH: u32 = 6;
const PHASE: u32 = 7;

/// Stands for no word.
const NONE: u32 = u32::MAX;

/// Above all thread and process ids of a kernel (`PID_MAX_LIMIT`): the ids of our own tracks.
const OURS: u32 = 1 << 23;

/// A row of the picture.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Track {
    Cpu(u32),
    Interrupts(u32),
    /// The states of a thread: process and thread.
    States(u32, u32),
    Calls(u32, u32),
    Locks(u32, u32),
    Path,
    Phases,
}

/// Where a track is shown.
struct Place {
    pid: u32,
    tid: u32,
    name: String,
    process: String,
}

struct Tracks {
    known: FxHashMap<Track, u32>,
    places: Vec<Place>,
}

impl Tracks {
    fn of(&mut self, track: Track, name: impl FnOnce() -> (String, String)) -> u32 {
        let next = self.places.len() as u32;
        let places = &mut self.places;
        *self.known.entry(track).or_insert_with(|| {
            let own = OURS + next;
            let (pid, tid) = match track {
                Track::Cpu(_) | Track::Interrupts(_) => (OURS, own),
                Track::Path => (OURS + 1, own),
                Track::Phases => (OURS + 2, own),
                // A number that no kernel gives would be taken for one of our own tracks.
                Track::States(pid, tid) if tid < OURS => (pid.min(OURS - 1), tid),
                Track::States(pid, _) | Track::Calls(pid, _) | Track::Locks(pid, _) => {
                    (pid.min(OURS - 1), own)
                }
            };
            let (process, name) = name();
            places.push(Place { pid, tid, name, process });
            next
        })
    }
}

struct Chrome<'a> {
    explain: Explain<'a>,
    tracks: Tracks,
    slices: Spill,
    words: Words,
    /// The trace's start.
    start: Nanos,
}

/// Words that repeat often.
struct Words {
    ready: Word,
    ended: [Word; 5],
}

impl<'a> Chrome<'a> {
    fn thread(&mut self, who: Who, of: fn(u32, u32) -> Track, what: &str) -> u32 {
        let process = who.pid.unwrap_or(who.tid);
        let pool = &self.explain.pool;
        self.tracks.of(of(process, who.tid), || {
            let comm = pool.text(who.comm);
            (format!("{comm} {process}"), format!("{comm} {}{what}", who.tid))
        })
    }

    fn cpu(&mut self, track: Track, cpu: u32, what: &str) -> u32 {
        self.tracks.of(track, || ("CPUs".to_owned(), format!("CPU {cpu}{what}")))
    }

    fn slice(
        &mut self,
        (start, end): (Nanos, Nanos),
        track: u32,
        name: Word,
        sort: u32,
        args: [u32; 3],
    ) -> Result<(), ExportError> {
        let since = |time: Nanos| time.saturating_sub(self.start);
        let (start, end) = (since(start), since(end));
        self.slices.push(Slice { start, end, track, name: name.0, sort, args })
    }

    fn take(&mut self, fact: &Fact) -> Result<(), ExportError> {
        match fact {
            Fact::Run(r) => {
                let who = self.explain.who(r.slot);
                if !who.wanted {
                    return Ok(());
                }
                let cpu = u32::from(r.cpu.0);
                let track = self.cpu(Track::Cpu(cpu), cpu, "");
                let ended = match r.how {
                    RunEnd::Slept => 0,
                    RunEnd::Preempted => 1,
                    RunEnd::Exited => 2,
                    RunEnd::Unseen => 3,
                    RunEnd::Trace => 4,
                };
                let args = [who.tid, cpu, self.words.ended[ended].0];
                self.slice((r.start, r.end), track, who.comm, RUN, args)?;
                let own = self.thread(who, Track::States, "");
                let name = self.explain.pool.word(&format!("on CPU {cpu}"));
                self.slice((r.start, r.end), own, name, RUN, args)?;
                match r.delay {
                    Some(delay) if delay > 0 => {
                        let from = r.start.saturating_sub(delay);
                        self.slice((from, r.start), own, self.words.ready, READY, [NONE; 3])
                    }
                    _ => Ok(()),
                }
            }
            Fact::Wait(w) => {
                let who = self.explain.who(w.slot);
                if !who.wanted {
                    return Ok(());
                }
                let what = self.explain.what(w.object);
                let pool = &mut self.explain.pool;
                let kind = pool.text(what.usage.unwrap_or(what.kind));
                let name = format!("{}: {kind} {}", cause(w.cause), pool.text(what.name));
                let name = pool.word(&name);
                let call = w.nr.map_or(NONE, |nr| self.explain.call(nr).0);
                let waker = w.waker.map(|w| self.explain.who(w));
                let args = [call, waker.map_or(NONE, |w| w.tid), waker.map_or(NONE, |w| w.comm.0)];
                let track = self.thread(who, Track::States, "");
                self.slice((w.start, w.end), track, name, WAIT, args)
            }
            Fact::Call(c) if c.split.is_some() => {
                let who = self.explain.who(c.slot);
                if !who.wanted {
                    return Ok(());
                }
                let name = self.explain.call(c.nr);
                let track = self.thread(who, Track::Calls, ": system calls");
                // A result is a 64-bit number, stored as two halves.
                let ret = c.ret.cast_unsigned();
                let args = [ret as u32, (ret >> 32) as u32, u32::from(c.cpu.0)];
                self.slice((c.start, c.end), track, name, CALL, args)
            }
            Fact::LockWait(w) => {
                let Some(Some(who)) = self.explain.waiter(w.waiter) else { return Ok(()) };
                let kind = w.kind.map_or("lock", |kind| kind.name());
                let name = match self.explain.lock(w) {
                    Some(name) => format!("{kind} {}", self.explain.pool.text(name)),
                    None => format!("{kind} {:#x}", w.lock),
                };
                let name = self.explain.pool.word(&name);
                let track = self.thread(who, Track::Locks, ": kernel locks");
                let args = [w.lock as u32, (w.lock >> 32) as u32, NONE];
                self.slice((w.start, w.end), track, name, LOCK, args)
            }
            Fact::Irq(i) => {
                let (kind, _, name) = self.explain.handler(i.handler);
                let cpu = u32::from(i.cpu.0);
                let track = self.cpu(Track::Interrupts(cpu), cpu, ": interrupts");
                self.slice((i.start, i.end), track, name, IRQ, [kind.0, NONE, NONE])
            }
            Fact::Call(_) | Fact::Switch(_) | Fact::Wakeup(_) => Ok(()),
        }
    }

    /// The critical path of the thread that works and waits most.
    fn path(&mut self, judged: &Attribution<'_>) -> Result<(), ExportError> {
        let Some(slot) = judged.path_of() else { return Ok(()) };
        let whose = self.explain.who(slot);
        let process = format!(
            "holdup: critical path of {} {}",
            self.explain.pool.text(whose.comm),
            whose.tid
        );
        let track = self.tracks.of(Track::Path, || (process, "critical path".to_owned()));
        let mut done = Ok(());
        judged.pieces(slot, &mut |piece| {
            if done.is_err() {
                return;
            }
            let who = self.explain.who(piece.slot);
            let what = piece.through.map(|object| self.explain.what(object));
            let pool = &mut self.explain.pool;
            let (state, runs) = match piece.state {
                PieceState::Run => ("runs", 1),
                PieceState::Wait => ("waits", 0),
                PieceState::Unknown => ("is not known to run or wait", NONE),
            };
            let mut name = format!("{} {} {state}", pool.text(who.comm), who.tid);
            if let Some(what) = what {
                let kind = pool.text(what.usage.unwrap_or(what.kind));
                name = format!("{name}: {kind} {}", pool.text(what.name));
            }
            let name = pool.word(&name);
            let args = [who.tid, runs, NONE];
            done = self.slice((piece.from, piece.to), track, name, PATH, args);
        });
        done
    }

    fn phases(&mut self, request: &Request<'_>) -> Result<(), ExportError> {
        let name = || ("holdup: phases".to_owned(), "phases".to_owned());
        let track = self.tracks.of(Track::Phases, name);
        for phase in request.phases {
            let class = phase.class.map_or("not judged alone", |class| class.id());
            let name = format!("{} {}: {class}", phase.part, phase.phase);
            let (name, leaf) =
                (self.explain.pool.word(&name), self.explain.pool.word(phase.leading_leaf));
            let args = [leaf.0, phase.phase, NONE];
            self.slice((phase.start_ns, phase.end_ns), track, name, PHASE, args)?;
        }
        Ok(())
    }
}

/// Write the trace of `request` to `path`; returns how many slices it has.
///
/// # Errors
/// The trace cannot be read, or the file cannot be written; an unfinished file ends in `.part`.
pub fn chrome(request: &Request<'_>, path: &Path) -> Result<u64, ExportError> {
    let file = PartFile::create(path.to_owned())?;
    let mut spill = file.part().to_owned().into_os_string();
    spill.push(".sort");
    let mut explain = Explain::new(request.judged);
    let pool = &mut explain.pool;
    let words = Words {
        ready: pool.word("ready, waits for a CPU"),
        ended: ["slept", "preempted", "exited", "unseen", "trace-end"].map(|how| pool.word(how)),
    };
    let mut chrome = Chrome {
        explain,
        tracks: Tracks { known: FxHashMap::default(), places: Vec::new() },
        slices: Spill::new(spill.into()),
        words,
        start: request.judged.analysis.start,
    };
    chrome.phases(request)?;
    chrome.path(request.judged)?;
    let mut done = Ok(());
    each_fact(request.reader, request.judged.analysis, &JUDGE, &mut |fact| {
        done = chrome.take(fact);
        if done.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    })?;
    done?;
    let Chrome { explain, tracks, slices, .. } = chrome;
    let mut out = Json { file, explain: &explain, tracks: &tracks.places, slices: 0 };
    let written = out.head(request).and_then(|()| {
        slices.drain(&mut |slice| out.slice(&slice))?;
        out.file.write_all(b"\n]}\n")
    });
    match written {
        Ok(()) => out.file.finish().map(|()| out.slices),
        Err(error) => Err(ExportError::Write { path: path.to_owned(), error }),
    }
}

struct Json<'a> {
    file: PartFile,
    explain: &'a Explain<'a>,
    tracks: &'a [Place],
    slices: u64,
}

/// A JSON string.
fn quoted(text: &str) -> io::Result<String> {
    serde_json::to_string(text).map_err(io::Error::from)
}

/// Microseconds.
fn micros(ns: u64) -> String {
    format!("{}.{:03}", ns / 1000, ns % 1000)
}

impl Json<'_> {
    /// Everything before the slices: the trace's properties, and the names of all tracks.
    fn head(&mut self, request: &Request<'_>) -> io::Result<()> {
        let verdict = &request.diagnosis.verdict;
        let analysis = request.judged.analysis;
        let about = serde_json::json!({
            "holdup": env!("CARGO_PKG_VERSION"),
            "trace": request.file_name(),
            "format": request.info.format,
            "start_ns": analysis.start,
            "end_ns": analysis.end,
            "verdict": verdict.class.id(),
            "summary": verdict.summary,
        });
        write!(
            self.file,
            "{{\"displayTimeUnit\":\"ns\",\"otherData\":{about},\n\"traceEvents\":[\n\
             {{\"ph\":\"M\",\"name\":\"holdup\",\"pid\":{OURS},\"tid\":{OURS},\"args\":{{}}}}"
        )?;
        let mut named = FxHashSet::default();
        for place in self.tracks {
            let Place { pid, tid, name, process } = place;
            if named.insert(*pid) {
                self.name("process_name", *pid, *tid, process)?;
            }
            self.name("thread_name", *pid, *tid, name)?;
        }
        Ok(())
    }

    fn name(&mut self, what: &str, pid: u32, tid: u32, name: &str) -> io::Result<()> {
        let name = quoted(name)?;
        write!(
            self.file,
            ",\n{{\"ph\":\"M\",\"name\":\"{what}\",\"pid\":{pid},\"tid\":{tid},\
             \"args\":{{\"name\":{name}}}}}"
        )
    }

    fn word(&self, word: u32) -> io::Result<String> {
        if word == NONE {
            Ok("null".to_owned())
        } else {
            quoted(self.explain.pool.text(Word(word)))
        }
    }

    fn slice(&mut self, s: &Slice) -> io::Result<()> {
        let Place { pid, tid, .. } = self.tracks[s.track as usize];
        let [a, b, c] = s.args;
        let long = u64::from(b) << 32 | u64::from(a);
        let id = |n: u32| if n == NONE { "null".to_owned() } else { n.to_string() };
        let args = match s.sort {
            RUN => format!("\"tid\":{a},\"cpu\":{b},\"ended\":{}", self.word(c)?),
            WAIT => format!(
                "\"call\":{},\"waker_tid\":{},\"waker\":{}",
                self.word(a)?,
                id(b),
                self.word(c)?
            ),
            CALL => format!("\"ret\":{},\"cpu\":{c}", long.cast_signed()),
            LOCK => format!("\"address\":\"{long:#x}\""),
            IRQ => format!("\"kind\":{}", self.word(a)?),
            PATH => {
                let runs = if b == NONE { "null" } else { ["false", "true"][b as usize & 1] };
                format!("\"tid\":{a},\"runs\":{runs}")
            }
            PHASE => format!("\"leading_leaf\":{},\"phase\":{b}", self.word(a)?),
            _ => String::new(),
        };
        self.slices += 1;
        write!(
            self.file,
            ",\n{{\"ph\":\"X\",\"cat\":\"{}\",\"name\":{},\"ts\":{},\"dur\":{},\
             \"pid\":{pid},\"tid\":{tid},\"args\":{{{args}}}}}",
            SORTS[s.sort as usize],
            self.word(s.name)?,
            micros(s.start),
            micros(s.end.saturating_sub(s.start))
        )
    }
}
