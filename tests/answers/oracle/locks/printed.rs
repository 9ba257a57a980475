//! What `perf lock` prints.

use crate::oracle::corpus::Recording;
use crate::oracle::perf;

/// `56.46 ms`: a time with the unit that suits it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scaled {
    pub(crate) value: f64,
    pub(crate) unit: f64,
    /// Of the last digit.
    pub(crate) step: f64,
}

impl Scaled {
    pub(crate) fn parse(value: &str, unit: &str) -> Option<Scaled> {
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
    pub(crate) fn is(self, ns: u64) -> bool {
        let printed = self.value * self.unit;
        (printed - ns as f64).abs() <= self.step / 2.0 + ns as f64 * 2e-7 + 0.5
    }
}

/// A row of `perf lock contention -F contended,wait_total,wait_max,wait_min,avg_wait`.
#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) contended: u64,
    pub(crate) total: Scaled,
    pub(crate) max: Scaled,
    pub(crate) min: Scaled,
    pub(crate) avg: Scaled,
    /// `rwsem:R` or a thread id.
    pub(crate) first: String,
    /// Caller or comm.
    pub(crate) last: String,
}

pub(crate) fn contention(file: &Recording, options: &[&str]) -> Vec<Row> {
    let fields = ["-F", "contended,wait_total,wait_max,wait_min,avg_wait"];
    tables(&[&["lock", "contention"], options, &fields].concat(), file)
        .lines()
        .filter_map(row)
        .collect()
}

/// perf lock prints its tables as messages: on stderr.
pub(crate) fn tables(verb: &[&str], file: &Recording) -> String {
    let o = perf::run(verb, file);
    o.out + &o.err
}

pub(crate) fn row(line: &str) -> Option<Row> {
    let mut words = line.split_whitespace();
    let contended = words.next()?.parse().ok()?;
    let mut scaled = || Scaled::parse(words.next()?, words.next()?);
    let (total, max, min, avg) = (scaled()?, scaled()?, scaled()?, scaled()?);
    let first = words.next()?.to_owned();
    Some(Row { contended, total, max, min, avg, first, last: words.collect::<Vec<_>>().join(" ") })
}
