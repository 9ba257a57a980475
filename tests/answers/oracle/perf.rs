//! Runs perf and reads its tables.

use crate::oracle::corpus::Recording;
use crate::oracle::printed::Printed;
use std::process::{Command, Stdio};

/// What perf printed.
pub(crate) struct Output {
    pub(crate) out: String,
    pub(crate) err: String,
}

/// `perf VERB.. -f -i FILE`.
pub(crate) fn run(verb: &[&str], file: &Recording) -> Output {
    let o = Command::new("perf")
        .args(verb)
        .arg("-i")
        .arg(&file.path)
        // Its own settings, not those of who runs the test.
        .env("PERF_CONFIG", "/dev/null")
        .env("LC_ALL", "C")
        .stdin(Stdio::null())
        .output()
        .expect("perf runs");
    Output {
        out: String::from_utf8_lossy(&o.stdout).into_owned(),
        err: String::from_utf8_lossy(&o.stderr).into_owned(),
    }
}

/// A row of `perf trace -s`.
#[derive(Debug)]
pub(crate) struct TraceRow {
    pub(crate) name: String,
    pub(crate) calls: u64,
    pub(crate) errors: u64,
    pub(crate) total: Printed,
    pub(crate) min: Printed,
    pub(crate) avg: Printed,
    pub(crate) max: Printed,
}

/// A thread of `perf trace -s`.
#[derive(Debug)]
pub(crate) struct TraceThread {
    pub(crate) comm: String,
    pub(crate) tid: i64,
    pub(crate) rows: Vec<TraceRow>,
}

/// Read what `perf trace -s` prints (on stderr).
pub(crate) fn trace_summary(text: &str) -> Vec<TraceThread> {
    let mut threads: Vec<TraceThread> = Vec::new();
    for line in text.lines() {
        if let Some((comm, tid)) = trace_thread(line) {
            threads.push(TraceThread { comm, tid, rows: Vec::new() });
        } else if let (Some(row), Some(thread)) = (trace_row(line), threads.last_mut()) {
            thread.rows.push(row);
        }
    }
    threads
}

/// ` COMM (TID), N events, P%`
fn trace_thread(line: &str) -> Option<(String, i64)> {
    let (head, percent) = line.rsplit_once(" events, ")?;
    percent.strip_suffix('%')?;
    let (name, _) = head.rsplit_once("), ")?;
    let (comm, tid) = name.rsplit_once(" (")?;
    Some((comm.strip_prefix(' ')?.to_owned(), tid.parse().ok()?))
}

/// `   NAME  CALLS ERRORS TOTAL MIN AVG MAX STDDEV%`
fn trace_row(line: &str) -> Option<TraceRow> {
    let words: Vec<&str> = line.split_ascii_whitespace().collect();
    let [name, calls, errors, total, min, avg, max, deviation] = words[..] else { return None };
    deviation.strip_suffix('%')?;
    Some(TraceRow {
        name: name.to_owned(),
        calls: calls.parse().ok()?,
        errors: errors.parse().ok()?,
        total: Printed::parse(total)?,
        min: Printed::parse(min)?,
        avg: Printed::parse(avg)?,
        max: Printed::parse(max)?,
    })
}

/// A row of `perf sched latency -p`.
#[derive(Debug)]
pub(crate) struct LatencyRow {
    pub(crate) comm: String,
    pub(crate) tid: i64,
    pub(crate) runtime: Printed,
    pub(crate) switches: u64,
    pub(crate) avg: Printed,
    pub(crate) max: Printed,
    pub(crate) max_start: Printed,
    pub(crate) max_end: Printed,
}

/// `  COMM:TID | R ms | N | avg: A ms | max: M ms | max start: S s | max end: E s`
pub(crate) fn sched_latency(text: &str) -> Vec<LatencyRow> {
    text.lines().filter_map(latency_row).collect()
}

fn latency_row(line: &str) -> Option<LatencyRow> {
    let mut columns = line.rsplit('|').map(str::trim);
    let mut column = |before: &str, after: &str| {
        let text = columns.next()?;
        text.strip_prefix(before)?.strip_suffix(after).map(|t| t.trim().to_owned())
    };
    let max_end = Printed::parse(&column("max end:", "s")?)?;
    let max_start = Printed::parse(&column("max start:", "s")?)?;
    let max = Printed::parse(&column("max:", "ms")?)?;
    let avg = Printed::parse(&column("avg:", "ms")?)?;
    let switches = column("", "")?.parse().ok()?;
    let runtime = Printed::parse(&column("", "ms")?)?;
    let task = columns.next()?;
    let (comm, tid) = task.rsplit_once(':')?;
    Some(LatencyRow {
        comm: comm.to_owned(),
        tid: tid.parse().ok()?,
        runtime,
        switches,
        avg,
        max,
        max_start,
        max_end,
    })
}

/// A thread of `perf sched timehist -s`.
#[derive(Debug)]
pub(crate) struct HistRow {
    pub(crate) comm: String,
    pub(crate) tid: i64,
    pub(crate) sched_in: u64,
    pub(crate) run_time: Printed,
    /// 0 unless perf was told `-M`.
    pub(crate) migrations: u64,
}

/// The threads and the idle times of `perf sched timehist -s`.
pub(crate) struct Timehist {
    pub(crate) rows: Vec<HistRow>,
    /// CPU and how long it idled, ms; `None` for "entire time window".
    pub(crate) idle: Vec<(u16, Option<Printed>)>,
}

/// Read what `perf sched timehist -s` prints.
pub(crate) fn sched_timehist(text: &str) -> Timehist {
    Timehist {
        rows: text.lines().filter_map(hist_row).collect(),
        idle: text.lines().filter_map(idle_row).collect(),
    }
}

/// `COMM[TID/PID] PARENT SCHED-IN RUN-TIME MIN AVG MAX STDDEV MIGRATIONS`; a thread that perf has
/// no name for is `:TID` alone.
fn hist_row(line: &str) -> Option<HistRow> {
    let (comm, tid, figures) = match line.rsplit_once(']') {
        Some((task, figures)) => {
            let (comm, ids) = task.rsplit_once('[')?;
            (comm, ids.split('/').next()?.parse().ok()?, figures)
        }
        None => {
            let (comm, figures) = line.trim_start().split_once(' ')?;
            (comm, comm.strip_prefix(':')?.parse().ok()?, figures)
        }
    };
    let words: Vec<&str> = figures.split_ascii_whitespace().collect();
    let [_, sched_in, run_time, _, _, _, _, migrations] = words[..] else { return None };
    Some(HistRow {
        comm: comm.trim_start().to_owned(),
        tid,
        sched_in: sched_in.parse().ok()?,
        run_time: Printed::parse(run_time)?,
        migrations: migrations.parse().ok()?,
    })
}

/// `    CPU  0 idle for   1666.057  msec  ( 84.69%)`
fn idle_row(line: &str) -> Option<(u16, Option<Printed>)> {
    let rest = line.trim_start().strip_prefix("CPU")?;
    let (cpu, time) = rest.split_once(" idle ")?;
    let cpu = cpu.trim().parse().ok()?;
    if time.starts_with("entire") {
        return Some((cpu, None));
    }
    let ms = time.strip_prefix("for")?.split_once("msec")?.0;
    Some((cpu, Some(Printed::parse(ms)?)))
}

/// A row of `perf kwork report`.
#[derive(Debug)]
pub(crate) struct KworkRow {
    /// As printed: `virtio1-req.0:27`, `(s)TIMER:1`, `(w)vmstat_update`; cut at 30 characters.
    pub(crate) name: String,
    pub(crate) cpu: u16,
    pub(crate) total: Printed,
    pub(crate) count: u64,
    pub(crate) max: Printed,
    pub(crate) max_start: Printed,
    pub(crate) max_end: Printed,
}

/// Read what `perf kwork report` prints.
pub(crate) fn kwork_report(text: &str) -> Vec<KworkRow> {
    text.lines().filter_map(kwork_row).collect()
}

fn kwork_row(line: &str) -> Option<KworkRow> {
    let mut columns = line.trim_end().strip_suffix('|')?.rsplit('|').map(str::trim);
    let mut column = |after: &str| columns.next()?.strip_suffix(after).map(|t| t.trim().to_owned());
    let max_end = Printed::parse(&column("s")?)?;
    let max_start = Printed::parse(&column("s")?)?;
    let max = Printed::parse(&column("ms")?)?;
    let count = column("")?.parse().ok()?;
    let total = Printed::parse(&column("ms")?)?;
    let cpu = column("")?.parse().ok()?;
    Some(KworkRow { name: column("")?, cpu, total, count, max, max_start, max_end })
}
