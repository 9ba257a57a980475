//! `holdup locks` against `perf lock contention`, `perf lock report`, and a plain computation over
//! what `perf script` and `trace-cmd report` print.

use crate::corpus::{self, Recording};
use crate::perf;
use crate::tally::Tally;
use holdup_attribution::{Attribution, Total};
use holdup_passes::{Analysis, LockBy, LockRow, LockSource, Options};
use holdup_trace::SymbolTable;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;

// ---- what perf prints ----------------------------------------------------------------------

/// `56.46 ms`: a time with the unit that suits it.
#[derive(Clone, Copy, Debug)]
struct Scaled {
    value: f64,
    unit: f64,
    /// Of the last digit.
    step: f64,
}

impl Scaled {
    fn parse(value: &str, unit: &str) -> Option<Scaled> {
        let unit = match unit {
            "ns" => return Some(Scaled { value: value.parse().ok()?, unit: 1.0, step: 0.0 }),
            "us" => 1e3,
            "ms" => 1e6,
            "s" => 1e9,
            "m" => 60e9,
            "h" => 3600e9,
            _ => return None,
        };
        Some(Scaled { value: value.parse().ok()?, unit, step: unit / 100.0 })
    }

    /// perf divides in single precision.
    fn is(self, ns: u64) -> bool {
        let printed = self.value * self.unit;
        (printed - ns as f64).abs() <= self.step / 2.0 + ns as f64 * 2e-7 + 0.5
    }
}

/// A row of `perf lock contention -F contended,wait_total,wait_max,wait_min,avg_wait`.
#[derive(Debug)]
struct Row {
    contended: u64,
    total: Scaled,
    max: Scaled,
    min: Scaled,
    avg: Scaled,
    /// `rwsem:R` or a thread id.
    first: String,
    /// Caller or comm.
    last: String,
}

fn contention(file: &Recording, options: &[&str]) -> Vec<Row> {
    let fields = ["-F", "contended,wait_total,wait_max,wait_min,avg_wait"];
    tables(&[&["lock", "contention"], options, &fields].concat(), file)
        .lines()
        .filter_map(row)
        .collect()
}

/// perf lock prints its tables as messages: on stderr.
fn tables(verb: &[&str], file: &Recording) -> String {
    let o = perf::run(verb, file);
    o.out + &o.err
}

fn row(line: &str) -> Option<Row> {
    let mut words = line.split_whitespace();
    let contended = words.next()?.parse().ok()?;
    let mut scaled = || Scaled::parse(words.next()?, words.next()?);
    let (total, max, min, avg) = (scaled()?, scaled()?, scaled()?, scaled()?);
    let first = words.next()?.to_owned();
    Some(Row { contended, total, max, min, avg, first, last: words.collect::<Vec<_>>().join(" ") })
}

// ---- the raw events ------------------------------------------------------------------------

#[derive(Clone, Debug, PartialEq)]
enum Kind {
    Begin,
    End,
    Acquire { flags: u32 },
    Contended,
    Acquired,
    Release,
}

#[derive(Clone, Debug)]
struct Raw {
    tid: i64,
    cpu: i64,
    ts: u64,
    lock: u64,
    kind: Kind,
    class: String,
}

/// The lock events as printed by perf script.
fn script(file: &Recording) -> Vec<Raw> {
    for fields in ["tid,cpu,time,event,trace", "tid,time,event,trace"] {
        let out = perf::run(&["script", "--ns", "-F", fields], file);
        let events: Vec<Raw> =
            out.out.lines().filter_map(|l| raw(l, fields.contains("cpu"))).collect();
        if !events.is_empty() {
            return events;
        }
    }
    Vec::new()
}

/// `   18 [000]    55.866975841:      lock:lock_acquire: 0xff1100007afedb58 &rq->__lock`
fn raw(line: &str, has_cpu: bool) -> Option<Raw> {
    let at = line.find(" lock:")?;
    let mut words = line[..at].split_whitespace();
    let tid = words.next()?.parse().ok()?;
    let cpu = if has_cpu { words.next()?.trim_matches(['[', ']']).parse().ok()? } else { -1 };
    let (s, ns) = words.next()?.strip_suffix(':')?.split_once('.')?;
    let ts = s.parse::<u64>().ok()? * 1_000_000_000 + ns.parse::<u64>().ok()?;
    let (event, body) = line[at + 6..].split_once(": ")?;
    event_of(event, body, tid, cpu, ts)
}

fn event_of(event: &str, body: &str, tid: i64, cpu: i64, ts: u64) -> Option<Raw> {
    let (lock, rest) = body.trim().split_once(' ')?;
    let lock = u64::from_str_radix(lock.trim_start_matches("0x"), 16).ok()?;
    let mut class = rest.trim();
    let mut flags = 0;
    let kind = match event {
        "contention_begin" => Kind::Begin,
        "contention_end" => Kind::End,
        "lock_acquire" => {
            for (word, bit) in [("try ", 1), ("read ", 2)] {
                if let Some(rest) = class.strip_prefix(word) {
                    class = rest;
                    flags |= bit;
                }
            }
            Kind::Acquire { flags }
        }
        "lock_contended" => Kind::Contended,
        "lock_acquired" => Kind::Acquired,
        "lock_release" => Kind::Release,
        _ => return None,
    };
    Some(Raw { tid, cpu, ts, lock, kind, class: class.to_owned() })
}

/// The contention events as printed by trace-cmd report.
fn report(file: &Recording) -> Option<Vec<Raw>> {
    let out = Command::new("trace-cmd")
        .args(["report", "-t", "-F", "contention_begin", "-F", "contention_end", "-i"])
        .arg(&file.path)
        .stdin(Stdio::null())
        .output()
        .ok()?;
    let text = String::from_utf8_lossy(&out.stdout);
    Some(text.lines().filter_map(reported).collect())
}

/// `   mmap-1-944   [000]   145.907831498: contention_begin:     0xff1100000550a8f0 (flags=WRITE)`
fn reported(line: &str) -> Option<Raw> {
    let (event, at) = ["contention_begin", "contention_end"]
        .into_iter()
        .find_map(|e| Some((e, line.find(&format!(": {e}:"))?)))?;
    let body = &line[at + event.len() + 3..];
    let head = line[..at].trim_end();
    let (head, time) = head.rsplit_once([' ', ']'])?;
    let ts = match time.split_once('.') {
        Some((s, ns)) => s.parse::<u64>().ok()? * 1_000_000_000 + ns.parse::<u64>().ok()?,
        // The x86-tsc clock counts ticks.
        None => time.parse().ok()?,
    };
    let (task, cpu) = head.rsplit_once('[')?;
    let cpu = cpu.trim().trim_end_matches(']').parse().ok()?;
    let tid = task.trim().rsplit_once('-')?.1.parse().ok()?;
    event_of(event, body, tid, cpu, ts)
}

/// Number, total, least and most of waits; the number includes those without an end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Sums {
    begun: u64,
    ended: u64,
    total: u64,
    min: u64,
    max: u64,
}

impl Sums {
    fn end(&mut self, ns: u64) {
        self.min = if self.ended == 0 { ns } else { self.min.min(ns) };
        self.ended += 1;
        self.total += ns;
        self.max = self.max.max(ns);
    }

    fn of(r: &LockRow) -> Sums {
        let (begun, open) = (r.contended.unwrap(), r.open.unwrap());
        Sums {
            begun,
            ended: begun - open,
            total: r.wait_total_ns.unwrap(),
            min: r.wait_min_ns.unwrap_or(0),
            max: r.wait_max_ns.unwrap_or(0),
        }
    }
}

/// The plain computation. perf takes all idle tasks for one thread; `apart` tells them apart.
fn plain<K: Ord>(events: &[Raw], apart: bool, key: impl Fn(&Raw) -> K) -> BTreeMap<K, Sums> {
    let mut open: BTreeMap<(i64, i64, u64), u64> = BTreeMap::new();
    let mut sums: BTreeMap<K, Sums> = BTreeMap::new();
    for e in events {
        let who = (e.tid, if apart && e.tid == 0 { e.cpu } else { 0 }, e.lock);
        match e.kind {
            Kind::Begin => {
                if let std::collections::btree_map::Entry::Vacant(v) = open.entry(who) {
                    v.insert(e.ts);
                    sums.entry(key(e)).or_default().begun += 1;
                }
            }
            Kind::End => {
                if let Some(since) = open.remove(&who) {
                    sums.entry(key(e)).or_default().end(e.ts - since);
                }
            }
            _ => {}
        }
    }
    sums
}

fn ours<K: Ord>(
    a: &Analysis,
    by: LockBy,
    source: LockSource,
    key: impl Fn(&LockRow) -> K,
) -> BTreeMap<K, Sums> {
    let mut out: BTreeMap<K, Sums> = BTreeMap::new();
    for r in a.locks_from(by, source) {
        let s = Sums::of(&r);
        let sum = out.entry(key(&r)).or_default();
        if s.ended > 0 {
            sum.min = if sum.ended == 0 { s.min } else { sum.min.min(s.min) };
        }
        sum.begun += s.begun;
        sum.ended += s.ended;
        sum.total += s.total;
        sum.max = sum.max.max(s.max);
    }
    out
}

/// perf writes -1 for who it does not know.
fn tid_of(r: &LockRow) -> i64 {
    r.tid.unwrap().map_or(-1, i64::from)
}

fn differences<K: Ord + std::fmt::Debug>(
    ours: &BTreeMap<K, Sums>,
    theirs: &BTreeMap<K, Sums>,
) -> Vec<String> {
    let keys: BTreeSet<&K> = ours.keys().chain(theirs.keys()).collect();
    keys.into_iter()
        .filter(|k| ours.get(k) != theirs.get(k))
        .map(|k| format!("{k:x?}: holdup {:?}, plain {:?}", ours.get(k), theirs.get(k)))
        .collect()
}

/// Rows of perf of one caller: contended, total, what rounding may hide of it, max, min.
type Merged = (u64, f64, f64, f64, f64);

/// Whether perf's row shows these sums.
fn shows(row: &Row, s: &Sums) -> bool {
    row.contended == s.begun
        && row.total.is(s.total)
        && row.max.is(s.max)
        && row.min.is(s.min)
        && row.avg.is(s.total.checked_div(s.ended).unwrap_or(0))
}

// ---- symbols -------------------------------------------------------------------------------

/// The symbols of the kernel a recording was made on, if they are at hand, and perf told of them.
struct Symbols {
    table: Arc<SymbolTable>,
    /// For `perf --buildid-dir`; `None` where perf finds them by itself.
    cache: Option<PathBuf>,
}

fn symbols(file: &Recording) -> Option<Symbols> {
    let guest = [
        ("vm/debian61", "debian61"),
        ("vm/lockstat612", "lockstat612"),
        ("vm/mpup612", "smp612"),
        ("vm/funnel", "debian61"),
    ]
    .into_iter()
    .find(|(folder, _)| file.name.starts_with(folder));
    if let Some((_, kernel)) = guest {
        let packed = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join(format!("../shared/corpus/vm/kallsyms/kallsyms.{kernel}.zst"));
        let text = zstd::decode_all(std::fs::File::open(packed).ok()?).ok()?;
        let ids = perf::run(&["buildid-list"], file).out;
        let id = ids.lines().find_map(|l| l.split_once(" [kernel.kallsyms]"))?.0.trim().to_owned();
        if id.len() < 8 {
            return None;
        }
        let cache = Path::new(env!("CARGO_TARGET_TMPDIR")).join("buildids").join(&id);
        let folder = cache.join("[kernel.kallsyms]").join(&id);
        std::fs::create_dir_all(&folder).ok()?;
        std::fs::write(folder.join("kallsyms"), &text).ok()?;
        let link = cache.join(".build-id").join(&id[..2]);
        std::fs::create_dir_all(&link).ok()?;
        let link = link.join(&id[2..]);
        if link.symlink_metadata().is_err() {
            std::os::unix::fs::symlink(folder, link).ok()?;
        }
        return Some(Symbols {
            table: Arc::new(SymbolTable::from_kallsyms(&text)),
            cache: Some(cache),
        });
    }
    // Made on this machine, and the same kernel runs: perf finds the symbols itself.
    let running =
        Command::new("perf").args(["buildid-list", "-k"]).stdin(Stdio::null()).output().ok()?;
    let running = String::from_utf8_lossy(&running.stdout).trim().to_owned();
    let ids = perf::run(&["buildid-list"], file).out;
    if running.len() < 8 || !ids.lines().any(|l| l.split_whitespace().next() == Some(&running)) {
        return None;
    }
    let table = SymbolTable::from_kallsyms(&std::fs::read("/proc/kallsyms").ok()?);
    (!table.is_empty()).then(|| Symbols { table: Arc::new(table), cache: None })
}

fn analyze(file: &Recording, symbols: Option<Arc<SymbolTable>>) -> Analysis {
    let reader = holdup_open::open(&file.path).unwrap_or_else(|e| panic!("{}: {e}", file.name));
    holdup_attribution::analyze(&*reader, &Options { symbols, ..Options::default() })
        .unwrap_or_else(|e| panic!("{}: {e}", file.name))
}

/// perf cannot read the lock events of these.
fn has_contention(a: &Analysis) -> bool {
    a.locks_from(LockBy::Type, LockSource::Contention).iter().any(|r| r.contended.unwrap_or(0) > 0)
}

// ---- the claims ----------------------------------------------------------------------------

#[test]
fn locks_by_task_equal_perf_lock_contention_t() {
    const CLAIM: &str = "locks --by task = perf lock contention -t";
    if !perf::present(CLAIM) {
        return;
    }
    let mut tally = Tally::new(CLAIM);
    for file in corpus::perf_recordings() {
        let Ok(reader) = holdup_open::open(&file.path) else { continue };
        let Ok(a) = holdup_attribution::analyze(&*reader, &Options::default()) else { continue };
        if !has_contention(&a) {
            continue;
        }
        let theirs = contention(file, &["-t"]);
        if theirs.is_empty() {
            tally.count("files perf prints nothing for", 1);
            continue;
        }
        tally.count("files", 1);
        let events = script(file);
        let by_rule = plain(&events, false, |e| e.tid);
        let right = plain(&events, true, |e| e.tid);
        let mine = ours(&a, LockBy::Task, LockSource::Contention, tid_of);
        for d in differences(&mine, &right) {
            tally.fail(format!("{}: {d}", file.name));
        }
        let names: BTreeMap<i64, String> = a
            .locks_from(LockBy::Task, LockSource::Contention)
            .into_iter()
            .map(|r| (tid_of(&r), r.comm.unwrap()))
            .collect();
        tally.check(theirs.len() == by_rule.values().filter(|s| s.total > 0).count(), || {
            format!("{}: perf prints {} rows", file.name, theirs.len())
        });
        for row in &theirs {
            let tid: i64 = row.first.parse().unwrap();
            tally.count("rows", 1);
            tally.count("figures", 5);
            if by_rule.get(&tid) != right.get(&tid) {
                tally.exception("perf takes the idle tasks of all CPUs for one thread");
            }
            tally.check(by_rule.get(&tid).is_some_and(|s| shows(row, s)), || {
                format!("{}: {row:?}, holdup {:?}", file.name, mine.get(&tid))
            });
            // perf lock reads names from PERF_RECORD_COMM only, holdup from scheduler events too.
            let name = names.get(&tid).map_or("", String::as_str);
            if row.last == format!(":{tid}") || row.last != name && row.last.starts_with(name) {
                tally
                    .exception("perf has no name, or an older one, where scheduler events tell it");
                continue;
            }
            tally.check(name == row.last, || format!("{}: {row:?}, name {name:?}", file.name));
        }
    }
    tally.finish();
}

#[test]
fn locks_by_caller_equal_perf_lock_contention() {
    const CLAIM: &str = "locks --by caller = perf lock contention";
    if !perf::present(CLAIM) {
        return;
    }
    let mut tally = Tally::new(CLAIM);
    for file in corpus::perf_recordings() {
        let symbols = symbols(file);
        let Ok(reader) = holdup_open::open(&file.path) else { continue };
        let options =
            Options { symbols: symbols.as_ref().map(|s| s.table.clone()), ..Options::default() };
        let Ok(a) = holdup_attribution::analyze(&*reader, &options) else { continue };
        if !has_contention(&a) {
            continue;
        }
        // perf's own choice leaves out three frames; holdup looks for the first frame that counts.
        let cache =
            symbols.as_ref().and_then(|s| s.cache.as_ref()).map(|c| c.display().to_string());
        let perf = |options: &[&str]| match &cache {
            Some(cache) => {
                let fields = ["-F", "contended,wait_total,wait_max,wait_min,avg_wait"];
                let verb =
                    [&["--buildid-dir", cache, "lock", "contention"], options, &fields].concat();
                tables(&verb, file).lines().filter_map(row).collect::<Vec<Row>>()
            }
            None => contention(file, options),
        };
        let known = a.capabilities.stacks && symbols.is_some();
        let theirs = if known { perf(&["--stack-skip", "0"]) } else { perf(&[]) };
        if theirs.is_empty() {
            tally.count("files perf prints nothing for", 1);
            continue;
        }
        tally.count("files", 1);
        let rows = a.locks_from(LockBy::Caller, LockSource::Contention);
        if !a.capabilities.stacks {
            // One row for all, of the type of the first wait.
            tally.count("rows", 1);
            let all = ours(&a, LockBy::Caller, LockSource::Contention, |_| ());
            let one = theirs.len() == 1 && theirs[0].last == "Unknown";
            if one && !shows(&theirs[0], &all[&()]) {
                // The idle tasks again; the other claims show that these sums are right.
                let events = script(file);
                let merged = plain(&events, false, |_| ());
                tally.exception("perf takes the idle tasks of all CPUs for one thread");
                tally.check(shows(&theirs[0], &merged[&()]), || {
                    format!("{}: {theirs:?}, holdup {all:?}", file.name)
                });
                continue;
            }
            tally.check(one, || format!("{}: {theirs:?}, holdup {all:?}", file.name));
            tally.check(rows.iter().all(|r| r.caller == Some(None)), || {
                format!("{}: callers from nowhere", file.name)
            });
            continue;
        }
        // perf keeps a row per call chain: add up those of one caller.
        let key = |kind: &str, caller: &str| {
            (kind.to_owned(), if known { caller.to_owned() } else { String::new() })
        };
        let mine = ours(&a, LockBy::Caller, LockSource::Contention, |r| {
            key(
                r.lock_type.as_ref().unwrap().as_deref().unwrap(),
                r.caller.as_ref().unwrap().as_deref().unwrap_or("Unknown"),
            )
        });
        let mut merged: BTreeMap<(String, String), Merged> = BTreeMap::new();
        for r in &theirs {
            let m = merged.entry(key(&r.first, &r.last)).or_insert((0, 0.0, 0.0, 0.0, f64::MAX));
            m.0 += r.contended;
            m.1 += r.total.value * r.total.unit;
            m.2 += r.total.step / 2.0 + 1.0;
            m.3 = m.3.max(r.max.value * r.max.unit);
            m.4 = m.4.min(r.min.value * r.min.unit);
        }
        tally.count(
            if known { "files with callers by name" } else { "files with callers without names" },
            1,
        );
        for (key, m) in &merged {
            tally.count("rows", 1);
            let near = |a: f64, b: u64, slack: f64| (a - b as f64).abs() <= slack + b as f64 * 5e-3;
            let same = mine.get(key).is_some_and(|s| {
                s.begun == m.0
                    && near(m.1, s.total, m.2)
                    && near(m.3, s.max, 10.0)
                    && near(m.4, s.min, 10.0)
            });
            tally.check(same, || {
                format!("{}: {key:?}: perf {m:?}, holdup {:?}", file.name, mine.get(key))
            });
        }
        let extra = mine.iter().filter(|(k, s)| s.total > 0 && !merged.contains_key(*k)).count();
        tally.check(extra == 0, || {
            format!(
                "{}: {extra} callers perf does not have: {:?}",
                file.name,
                mine.keys().filter(|k| !merged.contains_key(*k)).collect::<Vec<_>>()
            )
        });
    }
    tally.finish();
}

#[test]
fn locks_by_lock_equal_a_plain_computation() {
    const CLAIM: &str = "locks --by lock = plain computation";
    let mut tally = Tally::new(CLAIM);
    let perf = perf::present(CLAIM);
    let tracecmd = Command::new("trace-cmd").arg("--version").output().is_ok();
    for file in corpus::all_files() {
        let Ok(reader) = holdup_open::open(&file.path) else { continue };
        let (from_perf, from_tracecmd) = (
            reader.info().format.starts_with("perf.data"),
            reader.info().format.starts_with("trace.dat"),
        );
        if !(from_perf && perf || from_tracecmd && tracecmd) {
            continue;
        }
        let Ok(a) = holdup_attribution::analyze(&*reader, &Options::default()) else { continue };
        if !has_contention(&a) {
            continue;
        }
        let events = if from_perf { script(&file) } else { report(&file).unwrap_or_default() };
        if events.is_empty() {
            tally.count("files the other tool prints nothing for", 1);
            eprintln!("{}: nothing printed", file.name);
            continue;
        }
        tally.count(if from_perf { "perf.data" } else { "trace.dat" }, 1);
        let theirs = plain(&events, true, |e| e.lock);
        let mine = ours(&a, LockBy::Lock, LockSource::Contention, |r| r.address.unwrap().unwrap());
        tally.count("locks", mine.len() as u64);
        tally.count("waits", mine.values().map(|s| s.begun).sum());
        for d in differences(&mine, &theirs) {
            tally.fail(format!("{}: {d}", file.name));
        }
    }
    tally.finish();
}

#[test]
fn waits_are_spinning_ready_or_asleep() {
    let mut tally = Tally::new("wait = spin + runnable + blocked");
    for file in corpus::all_files() {
        let Ok(reader) = holdup_open::open(&file.path) else { continue };
        let Ok(a) = holdup_attribution::analyze(&*reader, &Options::default()) else { continue };
        if !a.sees_locks() {
            continue;
        }
        tally.count("traces", 1);
        let mut totals = BTreeSet::new();
        for by in [LockBy::Lock, LockBy::Class, LockBy::Caller, LockBy::Type, LockBy::Task] {
            let rows = a.locks_from(by, LockSource::Contention);
            totals.insert((
                rows.iter().map(|r| r.contended.unwrap()).sum::<u64>(),
                rows.iter().map(|r| r.wait_total_ns.unwrap()).sum::<u64>(),
            ));
            for r in rows {
                tally.count("rows", 1);
                if let (Some(spin), Some(runnable), Some(block)) =
                    (r.spin_ns, r.runnable_ns, r.block_ns)
                {
                    tally.check(spin + runnable + block == r.wait_total_ns.unwrap(), || {
                        format!("{}: {r:?}", file.name)
                    });
                }
                tally.check(
                    r.wait_p99_ns >= r.wait_p50_ns && r.wait_max_ns >= r.wait_p99_ns,
                    || format!("{}: {r:?}", file.name),
                );
            }
        }
        tally.check(totals.len() == 1, || format!("{}: groupings differ: {totals:?}", file.name));
        let busy = Attribution::from(&a).ledger.total(Total::Kernel);
        tally.check(a.lock_spin_ns() <= busy || !a.capabilities.syscalls, || {
            format!("{}: spinning exceeds kernel time", file.name)
        });
    }
    tally.finish();
}

// ---- lockdep -------------------------------------------------------------------------------

/// perf's state of a lock and thread, and its row of a lock (`perf lock report`).
#[derive(Clone, Copy, PartialEq, Debug, Default)]
enum State {
    #[default]
    Unknown,
    Acquiring,
    Acquired,
    ReadAcquired(u32),
    Contended,
}

#[derive(Clone, Debug, Default)]
struct Report {
    name: String,
    acquired: u64,
    contended: u64,
    total: u64,
    min: u64,
    max: u64,
    /// perf lost the thread somewhere, or never sees what happens to such locks.
    unlike: bool,
}

/// perf 6.1's rules, word for word: reading or trying counts as acquired at once and can neither
/// be contended nor acquired afterwards; what does not fit drops the thread's state.
fn perf_report(events: &[Raw]) -> BTreeMap<u64, Report> {
    let mut states: BTreeMap<(i64, u64), (State, u64)> = BTreeMap::new();
    let mut rows: BTreeMap<u64, Report> = BTreeMap::new();
    for e in events {
        let row =
            rows.entry(e.lock).or_insert_with(|| Report { min: u64::MAX, ..Report::default() });
        if row.name.is_empty() {
            row.name = if matches!(e.kind, Kind::Begin | Kind::End) {
                "Unknown".to_owned()
            } else {
                e.class.clone()
            };
        }
        let slot = states.entry((e.tid, e.lock)).or_default();
        let wait = |row: &mut Report, since: u64| {
            let ns = e.ts - since;
            row.total += ns;
            row.min = row.min.min(ns);
            row.max = row.max.max(ns);
        };
        let mut broken = false;
        match (&e.kind, slot.0) {
            (Kind::Acquire { flags: 0 }, State::Unknown) => *slot = (State::Acquiring, e.ts),
            (Kind::Acquire { .. }, State::Unknown) => {
                row.unlike = true;
                *slot = (State::ReadAcquired(1), e.ts);
                row.acquired += 1;
            }
            (Kind::Acquire { flags }, State::ReadAcquired(n)) if flags & 2 != 0 => {
                slot.0 = State::ReadAcquired(n + 1);
                row.acquired += 1;
            }
            (Kind::Acquire { .. }, _) => broken = true,
            (Kind::Contended, State::Acquiring) => {
                *slot = (State::Contended, e.ts);
                row.contended += 1;
            }
            (Kind::Acquired, State::Acquiring) => {
                *slot = (State::Acquired, e.ts);
                row.acquired += 1;
            }
            (Kind::Acquired, State::Contended) => {
                wait(row, slot.1);
                *slot = (State::Acquired, e.ts);
                row.acquired += 1;
            }
            (Kind::Contended | Kind::Acquired, State::Unknown) => row.unlike = true,
            (Kind::Contended | Kind::Acquired, _) => broken = true,
            (Kind::Release, State::Unknown) => {}
            (Kind::Release, State::Acquired) => {
                states.remove(&(e.tid, e.lock));
            }
            (Kind::Release, State::ReadAcquired(n)) => {
                if n > 1 {
                    slot.0 = State::ReadAcquired(n - 1);
                } else {
                    states.remove(&(e.tid, e.lock));
                }
            }
            (Kind::Release, _) => broken = true,
            (Kind::Begin, State::Unknown | State::Acquired) => {
                *slot = (State::Contended, e.ts);
                row.contended += 1;
                row.unlike = true;
            }
            (Kind::Begin, State::Contended) => {}
            (Kind::End, State::Contended) => {
                wait(row, slot.1);
                *slot = (State::Acquired, e.ts);
                row.acquired += 1;
            }
            (Kind::End, State::Unknown) => {}
            (Kind::Begin | Kind::End, _) => broken = true,
        }
        if broken {
            row.unlike = true;
            states.remove(&(e.tid, e.lock));
        }
    }
    rows
}

#[test]
fn lockdep_traces_equal_perf_lock_report() {
    const CLAIM: &str = "locks --events lockdep = perf lock report";
    if !perf::present(CLAIM) {
        return;
    }
    let mut tally = Tally::new(CLAIM);
    for file in corpus::perf_recordings() {
        let Ok(reader) = holdup_open::open(&file.path) else { continue };
        if !reader.info().capabilities.lockdep {
            continue;
        }
        let a = analyze(file, None);
        let events = script(file);
        let by_rule = perf_report(&events);
        // What perf prints carries no address: its rows must be those of its rule, in any order.
        let printed = tables(&["lock", "report"], file);
        let mut printed: Vec<(String, u64, u64, [Scaled; 4])> =
            printed.lines().filter_map(report_row).collect();
        tally.count("files", 1);
        for r in by_rule.values().filter(|r| r.acquired > 0) {
            tally.count("rows", 1);
            let name = if r.name.chars().count() < 20 {
                r.name.clone()
            } else {
                format!("{}...", r.name.chars().take(16).collect::<String>())
            };
            let avg = r.total.checked_div(r.contended).unwrap_or(0);
            let min = if r.min == u64::MAX { 0 } else { r.min };
            let found = printed.iter().position(|(n, acquired, contended, t)| {
                *n == name
                    && (*acquired, *contended) == (r.acquired, r.contended)
                    && t[0].is(avg)
                    && t[1].is(r.total)
                    && t[2].is(r.max)
                    && t[3].is(min)
            });
            match found {
                Some(at) => drop(printed.remove(at)),
                None => tally.fail(format!("{}: perf does not print {r:?}", file.name)),
            }
        }
        tally.check(printed.is_empty(), || format!("{}: rows left over: {printed:?}", file.name));
        // Where perf's rule sees everything, holdup has the same figures.
        let mine: BTreeMap<u64, LockRow> = a
            .locks_from(LockBy::Lock, LockSource::Lockdep)
            .into_iter()
            .filter_map(|r| Some((r.address??, r)))
            .collect();
        for (lock, r) in &by_rule {
            if r.name == "Unknown" && !mine.contains_key(lock) {
                tally.count("locks of contention events", 1);
                continue;
            }
            if r.unlike {
                tally.exception("readers, trylocks and locks without lock_acquired: perf drops what follows lock_acquire");
                continue;
            }
            let Some(m) = mine.get(lock) else {
                tally.check(r.acquired + r.contended == 0, || {
                    format!("{}: holdup has no {lock:x} {r:?}", file.name)
                });
                continue;
            };
            tally.count("locks compared", 1);
            let min = if r.min == u64::MAX { None } else { Some(r.min) };
            let same = (
                m.acquired,
                m.contended,
                m.wait_total_ns,
                m.wait_min_ns,
                m.wait_max_ns.unwrap_or(0),
            ) == (Some(r.acquired), Some(r.contended), Some(r.total), min, r.max);
            tally.check(same, || format!("{}: {lock:x} {r:?}, holdup {m:?}", file.name));
        }
    }
    tally.finish();
}

/// `  &base->lock       1409          1     78.63 ms     78.63 ms     78.63 ms     78.63 ms`
fn report_row(line: &str) -> Option<(String, u64, u64, [Scaled; 4])> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let at = words.len().checked_sub(10)?;
    let n = |i: usize| words[at + i].parse().ok();
    let t = |i: usize| Scaled::parse(words[at + i], words[at + i + 1]);
    let name = words[..at].join(" ");
    (!name.is_empty()).then_some((name, n(0)?, n(1)?, [t(2)?, t(4)?, t(6)?, t(8)?]))
}

// ---- /proc/lock_stat -----------------------------------------------------------------------

/// What writing two events takes in the emulated guests.
const EVENT_COST_NS: u64 = 3000;

/// lockdep tells classes of one name apart by subclass (`/1`) and key (`#2`); the events do not.
fn bare(class: &str) -> &str {
    let class = class.strip_suffix("-R").or_else(|| class.strip_suffix("-W")).unwrap_or(class);
    let class = class
        .rsplit_once('/')
        .filter(|(_, n)| n.bytes().all(|b| b.is_ascii_digit()))
        .map_or(class, |(c, _)| c);
    class
        .rsplit_once('#')
        .filter(|(_, n)| n.bytes().all(|b| b.is_ascii_digit()))
        .map_or(class, |(c, _)| c)
}

/// The dumps around a trace cover more time than it: the recorder's start and end, the workload's.
/// So lock_stat counts at least what the trace shows, and where it counts the same waits it must
/// measure the same time, but for the way from the one's clock reading to the other's.
#[test]
fn lock_stat_pairs_agree_with_the_trace_between_them() {
    let mut tally = Tally::new("lock_stat before/after = trace between");
    for file in corpus::all_files() {
        let Ok(reader) = holdup_open::open(&file.path) else { continue };
        if !file.name.starts_with("vm/lockstat612")
            || !reader.info().events.iter().any(|e| e.short_name() == "lock_contended")
        {
            continue;
        }
        let stem = [".trace.dat", ".perf.data", ".ftrace.txt"]
            .into_iter()
            .find_map(|end| file.name.strip_suffix(end))
            .unwrap();
        let dump = |when: &str| {
            let path = Path::new(env!("CARGO_MANIFEST_DIR"))
                .join("../shared/corpus")
                .join(format!("{stem}.lock_stat.{when}.txt"));
            let text = std::fs::read(&path).or_else(|_| {
                zstd::decode_all(std::fs::File::open(path.with_extension("txt.zst"))?)
            });
            holdup_lockstat::LockStat::parse(
                &text.unwrap_or_else(|e| panic!("{}: {e}", path.display())),
            )
            .unwrap_or_else(|e| panic!("{}: {e}", path.display()))
        };
        let between = dump("after").since(&dump("before")).expect("not reset in between");
        let a = analyze(&file, None);
        let mut stat: BTreeMap<String, (u64, u64, u64)> = BTreeMap::new();
        for c in &between.classes {
            let s = stat.entry(bare(&c.name).to_owned()).or_default();
            *s = (s.0 + c.wait.count, s.1 + c.wait.total_ns, s.2 + c.hold.count);
        }
        tally.count("pairs", 1);
        for r in a.locks_from(LockBy::Class, LockSource::Lockdep) {
            let name = r.name.clone().unwrap().unwrap();
            // Cut off in the dump.
            let Some(&(waits, wait_ns, holds)) = stat.get(bare(&name)) else { continue };
            tally.count("classes", 1);
            let ended = r.contended.unwrap() - r.open.unwrap();
            // The event of a wait's begin comes before lock_stat reads its clock, the one of its
            // end after.
            let slack = EVENT_COST_NS + reader.info().clock.resolution_ns;
            tally.check(ended <= waits, || {
                format!("{}: {name}: {ended} waits, lock_stat {waits}", file.name)
            });
            tally.check(r.acquired.unwrap() <= holds + 64, || {
                format!("{}: {name}: acquired {:?}, lock_stat {holds}", file.name, r.acquired)
            });
            if ended > 0 && ended == waits {
                tally.count("classes with the same waits", 1);
                tally.count("of these waits", waits);
                let differ = r.wait_total_ns.unwrap().abs_diff(wait_ns);
                tally.check(differ <= slack * waits + wait_ns / 100, || {
                    format!("{}: {name}: {r:?}, lock_stat {waits} {wait_ns}", file.name)
                });
            }
        }
    }
    tally.finish();
}
