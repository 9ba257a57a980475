//! Reads the output of `perf stat -x SEPARATOR` and `perf stat -j`.
//!
//! The formats are described in perf-stat(1), sections CSV FORMAT and JSON FORMAT. Not described:
//! * perf writes to standard error unless told otherwise, so the program's own messages come
//!   between its lines. Lines that are no counts are skipped, and counted.
//! * A file may hold several runs (`--append`): a line `# started on` begins the next run, and so
//!   does an event that the run already has.
//! * Names of events hold commas (`cpu/event=0x3c,umask=0x0/`), which are not quoted.
//! * perf of some versions prints `nan` in JSON.

mod csv;
mod json;

use crate::meaning::{Counter, meaning};
use crate::measurement::{Count, Measurement, Missing, Value};
use std::collections::{HashMap, HashSet};

/// The content of a file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Stat {
    /// The measurements: at least one, each with at least one count.
    pub measurements: Vec<Measurement>,
    /// Lines that are no counts: the program's own messages.
    pub left_out: u64,
}

/// Why a file cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// Human-readable output.
    #[error(
        "line {line}: this is the human-readable output of perf stat; use the machine-readable \
         format: perf stat -j -o FILE ... (or -x,)"
    )]
    NotJson {
        /// The line that shows it.
        line: usize,
    },
    /// A file of `perf stat record`.
    #[error("this is a file of perf stat record; print it with perf: perf stat report -j -i FILE")]
    Record,
    /// No line is a count.
    #[error(
        "no counts: expected lines of perf stat -x, or -j, such as 2000,,cycles:u,1000,100.00,, \
         and found {found}"
    )]
    NoCounts {
        /// The first line, or a note that there is none.
        found: String,
    },
}

/// One line: a count of one event, on all CPUs or on one.
#[derive(Clone, Debug, PartialEq)]
struct Row {
    until_ns: Option<u64>,
    part: Part,
    event: String,
    value: Value,
    unit: String,
    metric: Option<(f64, String)>,
}

/// What a line is about.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Part {
    /// The program, or the machine.
    All,
    /// One CPU, core or socket: the machine was measured, not a program.
    Place(String),
    /// One thread or control group.
    Group(String),
}

/// Read the output of `perf stat`.
///
/// # Errors
/// The file is human-readable output, was written by `perf stat record`, or holds no counts.
pub fn parse(bytes: &[u8]) -> Result<Stat, Error> {
    if bytes.starts_with(b"PERFILE2") || bytes.starts_with(b"2ELIFREP") {
        return Err(Error::Record);
    }
    let text = String::from_utf8_lossy(bytes);
    let mut runs = Runs::default();
    let mut separator = None;
    let mut first = None;
    for (number, line) in text.lines().enumerate() {
        let line = line.trim_end();
        if line.starts_with("# started on") {
            runs.next();
            continue;
        }
        if is_for_people(line) {
            return Err(Error::NotJson { line: number + 1 });
        }
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        first.get_or_insert(line);
        let found = if line.trim_start().starts_with('{') {
            json::row(line)
        } else {
            csv::row(line, &mut separator)
        };
        match found {
            Line::Row(row) => runs.add(row),
            Line::Metric => {}
            Line::Other => runs.found.left_out += 1,
        }
    }
    let found = runs.finish();
    if found.measurements.is_empty() {
        let found = match first {
            Some(line) => format!("{:?}", line.chars().take(60).collect::<String>()),
            None => "nothing".to_owned(),
        };
        return Err(Error::NoCounts { found });
    }
    Ok(found)
}

/// The kind of a line.
enum Line {
    Row(Row),
    /// A figure that perf derived, without a count.
    Metric,
    Other,
}

fn is_for_people(line: &str) -> bool {
    let line = line.trim_start_matches(['#', ' ']);
    line.starts_with("Performance counter stats for")
        || line.starts_with("time ") && line.contains("counts") && line.ends_with("events")
}

/// A count as it is printed, with a decimal point or comma; `Err` for a mark in its place.
fn value(text: &str) -> Option<Result<f64, Missing>> {
    match text {
        "<not supported>" => return Some(Err(Missing::NotSupported)),
        "<not counted>" => return Some(Err(Missing::NotCounted)),
        _ => {}
    }
    number(text).filter(|n| *n >= 0.0).map(Ok)
}

/// A plain decimal number. Depending on the locale, perf prints a decimal comma.
fn number(text: &str) -> Option<f64> {
    let plain = |c: char| c.is_ascii_digit() || matches!(c, '.' | ',' | '-');
    if text.is_empty() || text.len() > 40 || !text.chars().all(plain) {
        return None;
    }
    text.replacen(',', ".", 1).parse().ok()
}

/// Seconds, as nanoseconds.
fn nanos(seconds: f64) -> Option<u64> {
    // More than a century cannot be the time of a run.
    (0.0..3.2e9).contains(&seconds).then(|| (seconds * 1e9).round() as u64)
}

/// Collects rows into measurements.
#[derive(Default)]
struct Runs {
    found: Stat,
    current: Measurement,
    /// Part and event of each count in the current measurement.
    seen: HashSet<(Part, String)>,
    /// Index of each event in the current measurement's counts.
    places: HashMap<String, usize>,
    /// Sums of the current measurement: msec of task-clock, and CPUs utilized.
    clock: Clock,
    /// End of the previous interval, ns.
    before_ns: u64,
}

#[derive(Clone, Copy, Default)]
struct Clock {
    ms: f64,
    utilized: f64,
    /// Whether a program, or its threads, was measured.
    program: bool,
}

impl Runs {
    fn add(&mut self, row: Row) {
        let key = (row.part.clone(), row.event.clone());
        if !self.current.counts.is_empty()
            && (row.until_ns != self.current.until_ns || self.seen.contains(&key))
        {
            self.end();
        }
        self.seen.insert(key);
        self.current.until_ns = row.until_ns;
        let meaning = meaning(&row.event);
        let counter = meaning.map(|m| m.counter);
        if let (Some(Counter::TaskClock | Counter::CpuClock), Value::Counted { value, .. }) =
            (counter, row.value)
            && let Some((utilized, _)) = row.metric.filter(|m| m.1 == "CPUs utilized")
        {
            let scale = if row.unit == "ns" { 1e-6 } else { 1.0 };
            self.clock.ms += value * scale;
            self.clock.utilized += utilized;
            self.clock.program =
                counter == Some(Counter::TaskClock) && !matches!(row.part, Part::Place(_));
        }
        if let (Some(Counter::Duration), Value::Counted { value, .. }) = (counter, row.value) {
            self.current.length_ns = nanos(value / 1e9);
        }
        let counts = &mut self.current.counts;
        match self.places.get(&row.event) {
            Some(&at) => counts[at].value = together(counts[at].value, row.value),
            None => {
                self.places.insert(row.event.clone(), counts.len());
                let Row { event, value, unit, .. } = row;
                counts.push(Count { event, meaning, value, unit });
            }
        }
    }

    /// The current measurement is complete.
    fn end(&mut self) {
        let mut done = std::mem::take(&mut self.current);
        let clock = std::mem::take(&mut self.clock);
        self.seen.clear();
        self.places.clear();
        if done.counts.is_empty() {
            return;
        }
        if let Some(until) = done.until_ns {
            done.length_ns = until.checked_sub(self.before_ns).filter(|&ns| ns > 0);
            self.before_ns = until;
        } else if clock.utilized > 0.0 && done.length_ns.is_none() {
            done.length_ns = nanos(clock.ms / 1e3 / clock.utilized);
        }
        done.cpus_busy = (clock.program && clock.utilized > 0.0).then_some(clock.utilized);
        self.found.measurements.push(done);
    }

    /// Begin another run of perf stat.
    fn next(&mut self) {
        self.end();
        self.before_ns = 0;
    }

    fn finish(mut self) -> Stat {
        self.end();
        self.found
    }
}

/// Add the counts of two parts. A part without a count adds nothing: cores of the other kind never
/// count, and idle CPUs may not.
fn together(a: Value, b: Value) -> Value {
    match (a, b) {
        (
            Value::Counted { value: a, running_pct: p },
            Value::Counted { value: b, running_pct: q },
        ) => Value::Counted { value: a + b, running_pct: p.min(q) },
        (Value::Missing(_), counted) => counted,
        (counted, Value::Missing(_)) => counted,
    }
}
