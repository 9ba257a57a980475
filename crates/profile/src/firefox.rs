//! A profile for <https://profiler.firefox.com>, in its processed format, version 62.
//!
//! The format is described by `src/types/profile.ts` and `docs-developer/CHANGELOG-formats.md` of
//! <https://github.com/firefox-devtools/profiler>; readers convert older versions. Tables are
//! written as columns. All threads share the tables of stacks, frames and functions; a thread has
//! the times of its samples, and a marker for each stay on a CPU.

use crate::chains::ChainId;
use crate::collect::{Profile, Timeline};
use crate::json::{Json, Maybe};
use crate::names::{FunctionId, Functions, Site};
use crate::times::{Row, Samples, Timed};
use holdup_passes::Filter;
use holdup_symbols::Symbols;
use holdup_trace::{BuildId, Cpu, NameId, Nanos, Pid, TraceInfo};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use std::fmt::{self, Display};
use std::hash::Hash;
use std::io::{self, Write};
use std::sync::Arc;

/// The version of the format.
const VERSION: u32 = 62;
/// Categories, referred to by their index.
const CATEGORIES: &str = r#"[{"name":"Other","color":"grey","subcategories":["Other"]},
{"name":"User","color":"yellow","subcategories":["Other"]},
{"name":"Kernel","color":"orange","subcategories":["Other"]}]"#;
const USER: u32 = 1;
const KERNEL: u32 = 2;
/// The marker schema of a stay on a CPU.
const MARKERS: &str = r#"[{"name":"CPU","display":["marker-chart","marker-table"],
"chartLabel":"CPU {marker.data.cpu}","tooltipLabel":"CPU {marker.data.cpu}",
"tableLabel":"CPU {marker.data.cpu}","fields":[{"key":"cpu","label":"CPU","format":"integer"}]}]"#;

/// Items numbered in the order in which they were first seen.
struct Numbered<T> {
    ids: FxHashMap<T, u32>,
    all: Vec<T>,
}

impl<T> Default for Numbered<T> {
    fn default() -> Self {
        Numbered { ids: FxHashMap::default(), all: Vec::new() }
    }
}

impl<T: Clone + Eq + Hash> Numbered<T> {
    fn id(&mut self, thing: T) -> u32 {
        let next = self.all.len() as u32;
        *self.ids.entry(thing).or_insert_with_key(|thing| {
            self.all.push(thing.clone());
            next
        })
    }
}

/// A function by its name, its file of code, and the file of its source.
type Func = (Arc<str>, Option<u32>, Option<Arc<str>>);

/// A frame's part of a function.
#[derive(Clone, PartialEq, Eq, Hash)]
struct FrameOf {
    func: u32,
    line: Option<u32>,
    /// Inline depth: the number of functions into which it was inlined, each into the next.
    depth: u32,
    category: u32,
}

/// The tables that all threads share.
#[derive(Default)]
struct Shared {
    libs: Numbered<(NameId, Option<BuildId>)>,
    funcs: Numbered<Func>,
    frames: Numbered<FrameOf>,
    /// The caller's stack, and the frame.
    stacks: Numbered<(Option<u32>, u32)>,
    of_chain: FxHashMap<(Pid, ChainId), Option<u32>>,
    labels: Vec<Arc<str>>,
}

impl Shared {
    /// Add the stack of a chain to the tables.
    fn stack(
        &mut self,
        profile: &Profile,
        functions: &mut Functions<'_, '_>,
        pid: Pid,
        chain: ChainId,
    ) {
        if self.of_chain.contains_key(&(pid, chain)) {
            return;
        }
        let mut stack = None;
        for frame in profile.code.frames(chain).iter().rev() {
            let mapping = profile.code.mapping(frame);
            let lib = mapping.map(|m| self.libs.id((m.file, functions.build_of(m))));
            let sites = functions.sites(pid, frame);
            let category = if frame.kernel { KERNEL } else { USER };
            for (depth, Site { function, source }) in (0..).zip(sites.iter().rev()) {
                let file = source.as_ref().map(|source| source.file.clone());
                let label = self.label(functions, *function);
                let func = self.funcs.id((label, lib, file));
                let line = source.as_ref().map(|source| source.line);
                let frame = self.frames.id(FrameOf { func, line, depth, category });
                stack = Some(self.stacks.id((stack, frame)));
            }
        }
        self.of_chain.insert((pid, chain), stack);
    }

    fn label(&mut self, functions: &Functions<'_, '_>, id: FunctionId) -> Arc<str> {
        for new in &functions.all[self.labels.len()..] {
            self.labels.push(new.label().into());
        }
        self.labels[id.0 as usize].clone()
    }
}

/// Write the samples of the threads that `filter` wants.
///
/// # Errors
/// Errors of `out`, and of the temporary file with the times.
pub fn firefox(
    timeline: &Timeline,
    filter: &Filter,
    info: &TraceInfo,
    symbols: &mut Symbols<'_>,
    out: &mut dyn Write,
) -> io::Result<()> {
    let profile = &timeline.profile;
    let mut functions = Functions::new(profile, symbols);
    let mut shared = Shared::default();
    for (who, _, _) in profile.wanted(filter) {
        shared.stack(profile, &mut functions, who.pid, who.chain);
    }
    let start = info.span.map_or(0, |(first, _)| first);
    let writer = Writer { timeline, shared: &shared, start };
    Json::new(out).record(|json| {
        json.object("meta", |json| writer.meta(info, json))?;
        json.list("libs", |json| writer.libs(info, json))?;
        json.object("shared", |json| writer.shared(json))?;
        json.list("threads", |json| {
            let comm = |row: &Row| profile.comm(row.tid, row.comm);
            let names = processes(&timeline.rows, comm);
            for (row, samples) in &timeline.rows {
                let comm = comm(row);
                if profile.wants(filter, (row.pid, row.tid, row.group), &comm) {
                    let process = names.get(&row.pid).map_or("", String::as_str);
                    json.record(|json| writer.thread(row, samples, &comm, process, json))?;
                }
            }
            Ok(())
        })
    })?;
    out.write_all(b"\n")
}

/// Names of processes: the name of the main thread, or of any thread.
fn processes(rows: &[(Row, Samples)], comm: impl Fn(&Row) -> String) -> BTreeMap<Pid, String> {
    let mut names = BTreeMap::new();
    for (row, _) in rows {
        if row.tid.0 == row.pid.0 || !names.contains_key(&row.pid) {
            names.insert(row.pid, comm(row));
        }
    }
    names
}

/// A time in milliseconds, exact to the nanosecond.
struct Ms(Nanos);

impl Display for Ms {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:06}", self.0 / 1_000_000, self.0 % 1_000_000)
    }
}

fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

struct Writer<'a> {
    timeline: &'a Timeline,
    shared: &'a Shared,
    start: Nanos,
}

/// Samples of a thread in a row on one CPU: from the first to the last of them.
struct Stay {
    first: Nanos,
    last: Nanos,
    cpu: Cpu,
}

impl Writer<'_> {
    fn meta(&self, info: &TraceInfo, json: &mut Json<'_>) -> io::Result<()> {
        let profile = &self.timeline.profile;
        let whole = profile.whole();
        let interval = whole.period.checked_div(whole.samples).filter(|_| profile.is_of_time());
        let unit = if profile.is_of_cycles() { "variable CPU cycles" } else { "ns" };
        json.member("version", 24)?;
        json.member("preprocessedProfileVersion", VERSION)?;
        json.member("interval", Ms(interval.unwrap_or(1_000_000)))?;
        // Times of the samples count from here.
        json.member("startTime", Ms(info.recorded_ns.unwrap_or(0)))?;
        json.member("processType", 0)?;
        json.member("product", quoted(info.cmdline.as_deref().unwrap_or("holdup")))?;
        json.member("importedFrom", quoted(&info.format))?;
        json.member("oscpu", quoted(info.os_release.as_deref().unwrap_or_default()))?;
        json.member("stackwalk", 1)?;
        json.member("debug", false)?;
        json.member("symbolicated", true)?;
        json.member("symbolicationNotSupported", true)?;
        json.member("usesOnlyOneStackType", true)?;
        json.member("sourceCodeIsNotOnSearchfox", true)?;
        json.member("categories", CATEGORIES)?;
        json.member("markerSchema", MARKERS)?;
        json.object("sampleUnits", |json| {
            json.member("time", r#""ms""#)?;
            json.member("eventDelay", r#""ms""#)?;
            json.member("threadCPUDelta", quoted(unit))
        })
    }

    fn libs(&self, info: &TraceInfo, json: &mut Json<'_>) -> io::Result<()> {
        for (file, build) in &self.shared.libs.all {
            let path = self.timeline.profile.names.get(*file);
            let (name, path) = (quoted(file_name(&path)), quoted(&path));
            json.record(|json| {
                json.member("arch", quoted(info.arch.as_deref().unwrap_or_default()))?;
                json.member("name", &name)?;
                json.member("path", &path)?;
                json.member("debugName", &name)?;
                json.member("debugPath", &path)?;
                json.member("breakpadId", quoted(&breakpad(*build)))?;
                json.member("codeId", Maybe(build.map(|id| quoted(&id.to_string()))))
            })?;
        }
        Ok(())
    }

    fn shared(&self, json: &mut Json<'_>) -> io::Result<()> {
        let Shared { libs, funcs, frames, stacks, .. } = self.shared;
        let mut strings: Numbered<Arc<str>> = Numbered::default();
        strings.id("CPU".into());
        let mut sources: Numbered<Arc<str>> = Numbered::default();
        funcs.all.iter().filter_map(|f| f.2.clone()).for_each(|file| {
            sources.id(file);
        });
        let nothing = |n: usize| std::iter::repeat_n("null", n);
        json.object("stackTable", |json| {
            json.member("length", stacks.all.len())?;
            json.column("prefix", stacks.all.iter().map(|(prefix, _)| Maybe(*prefix)))?;
            json.column("frame", stacks.all.iter().map(|(_, frame)| frame))
        })?;
        json.object("frameTable", |json| {
            let (n, all) = (frames.all.len(), || frames.all.iter());
            json.member("length", n)?;
            json.column("address", std::iter::repeat_n(-1, n))?;
            json.column("inlineDepth", all().map(|f| f.depth))?;
            json.column("category", all().map(|f| f.category))?;
            json.column("subcategory", std::iter::repeat_n(0, n))?;
            json.column("func", all().map(|f| f.func))?;
            json.column("nativeSymbol", nothing(n))?;
            json.column("innerWindowID", std::iter::repeat_n(0, n))?;
            json.column("line", all().map(|f| Maybe(f.line)))?;
            json.column("column", nothing(n))
        })?;
        json.object("funcTable", |json| {
            let (n, all) = (funcs.all.len(), || funcs.all.iter());
            json.member("length", n)?;
            json.column("name", all().map(|(name, ..)| strings.id(name.clone())))?;
            json.column("isJS", std::iter::repeat_n(false, n))?;
            json.column("relevantForJS", std::iter::repeat_n(false, n))?;
            json.column("resource", all().map(|(_, lib, _)| lib.map_or(-1, i64::from)))?;
            let source = |file: &Option<Arc<str>>| Maybe(file.clone().map(|f| sources.id(f)));
            json.column("source", all().map(|(.., file)| file).map(source))?;
            json.column("lineNumber", nothing(n))?;
            json.column("columnNumber", nothing(n))
        })?;
        json.object("resourceTable", |json| {
            let n = libs.all.len();
            let name = |file: NameId| -> Arc<str> {
                file_name(&self.timeline.profile.names.get(file)).into()
            };
            json.member("length", n)?;
            json.column("lib", 0..n)?;
            json.column("name", libs.all.iter().map(|(file, _)| strings.id(name(*file))))?;
            json.column("host", nothing(n))?;
            // Type 1 is a library.
            json.column("type", std::iter::repeat_n(1, n))
        })?;
        json.object("nativeSymbols", |json| {
            json.member("length", 0)?;
            ["libIndex", "address", "name", "functionSize"]
                .into_iter()
                .try_for_each(|key| json.member(key, "[]"))
        })?;
        json.object("sources", |json| {
            let n = sources.all.len();
            json.member("length", n)?;
            json.column("id", nothing(n))?;
            json.column("filename", sources.all.iter().map(|file| strings.id(file.clone())))?;
            json.column("startLine", std::iter::repeat_n(1, n))?;
            json.column("startColumn", std::iter::repeat_n(1, n))?;
            json.column("sourceMapURL", nothing(n))
        })?;
        json.column("stringArray", strings.all.iter().map(|text| quoted(text)))
    }

    fn thread(
        &self,
        row: &Row,
        samples: &Samples,
        comm: &str,
        process: &str,
        json: &mut Json<'_>,
    ) -> io::Result<()> {
        json.member("name", quoted(comm))?;
        json.member("processName", quoted(process))?;
        json.member("processType", r#""default""#)?;
        json.member("isMainThread", row.tid.0 == row.pid.0)?;
        json.member("pid", quoted(&number(row.pid.0)))?;
        json.member("tid", quoted(&number(row.tid.0)))?;
        json.member("registerTime", 0)?;
        json.member("unregisterTime", "null")?;
        json.member("processStartupTime", 0)?;
        json.member("processShutdownTime", "null")?;
        json.member("pausedRanges", "[]")?;
        json.member("showMarkersInTimeline", false)?;
        json.object("samples", |json| {
            let profile = &self.timeline.profile;
            json.member("length", samples.len())?;
            json.member("weightType", r#""samples""#)?;
            json.member("weight", "null")?;
            let stack = |s: Timed| self.shared.of_chain.get(&(row.pid, s.chain)).copied();
            self.sampled(samples, "stack", |s| Maybe(stack(s).flatten()), json)?;
            self.sampled(samples, "time", |s| self.ms(s.time), json)?;
            if profile.is_of_time() || profile.is_of_cycles() {
                self.sampled(samples, "threadCPUDelta", |s| s.period, json)?;
            }
            Ok(())
        })?;
        json.object("markers", |json| {
            let mut stays = 0;
            self.each_stay(samples, &mut |_| {
                stays += 1;
                Ok(())
            })?;
            json.member("length", stays)?;
            json.column("name", std::iter::repeat_n(0, stays))?;
            json.column("category", std::iter::repeat_n(0, stays))?;
            // Phase 1: markers with begin and end.
            json.column("phase", std::iter::repeat_n(1, stays))?;
            self.stays(samples, "startTime", |stay| self.ms(stay.first), json)?;
            self.stays(samples, "endTime", |stay| self.ms(stay.last), json)?;
            self.stays(samples, "data", |stay| OnCpu(stay.cpu), json)
        })
    }

    fn ms(&self, time: Nanos) -> Ms {
        Ms(time.saturating_sub(self.start))
    }

    /// A column of a thread's samples.
    fn sampled<T: Display>(
        &self,
        samples: &Samples,
        key: &str,
        value: impl Fn(Timed) -> T,
        json: &mut Json<'_>,
    ) -> io::Result<()> {
        json.list(key, |json| {
            self.timeline.times.each(samples, &mut |sample| json.item(value(sample)))
        })
    }

    /// A column of a thread's stays on CPUs.
    fn stays<T: Display>(
        &self,
        samples: &Samples,
        key: &str,
        value: impl Fn(Stay) -> T,
        json: &mut Json<'_>,
    ) -> io::Result<()> {
        json.list(key, |json| self.each_stay(samples, &mut |stay| json.item(value(stay))))
    }

    fn each_stay(
        &self,
        samples: &Samples,
        take: &mut dyn FnMut(Stay) -> io::Result<()>,
    ) -> io::Result<()> {
        let mut stay: Option<Stay> = None;
        self.timeline.times.each(samples, &mut |Timed { time, cpu, .. }| {
            match &mut stay {
                Some(stay) if stay.cpu == cpu => stay.last = time,
                // Not every sample has a CPU.
                _ if cpu == Cpu::UNKNOWN => {}
                _ => {
                    let next = Stay { first: time, last: time, cpu };
                    stay.replace(next).map_or(Ok(()), &mut *take)?;
                }
            }
            Ok(())
        })?;
        stay.map_or(Ok(()), take)
    }
}

struct OnCpu(Cpu);

impl Display for OnCpu {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, r#"{{"type":"CPU","cpu":{}}}"#, self.0.0)
    }
}

/// The id of a process or thread as text.
fn number(id: u32) -> String {
    crate::rows::known(id).map_or_else(|| "unknown".to_owned(), |id| id.to_string())
}

fn file_name(path: &str) -> &str {
    path.rsplit('/').next().filter(|name| !name.is_empty()).unwrap_or(path)
}

/// A build id as Breakpad spells it: sixteen bytes, of which the first eight are numbers of four,
/// two and two bytes, and an age.
fn breakpad(build: Option<BuildId>) -> String {
    let mut id = [0; 16];
    let bytes = build.as_ref().map_or(&[][..], BuildId::bytes);
    let n = bytes.len().min(16);
    id[..n].copy_from_slice(&bytes[..n]);
    id[..4].reverse();
    id[4..6].reverse();
    id[6..8].reverse();
    id.iter().map(|byte| format!("{byte:02X}")).chain(["0".to_owned()]).collect()
}
