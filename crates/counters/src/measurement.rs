//! The counts of one run, or of one interval of it, and figures computed from them.

use crate::meaning::{Counter, LINE, Meaning, Mode, parts};
use crate::tally::{Bandwidth, Tally};
use std::fmt;

/// Why an event has no count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Missing {
    /// `<not supported>`.
    NotSupported,
    /// `<not counted>`.
    NotCounted,
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Missing::NotSupported => "not supported by this machine's PMU",
            Missing::NotCounted => "never counted: the PMU had no free counter, or no thread ran",
        })
    }
}

/// The count, or why there is none.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value {
    /// The count for the whole time; perf has scaled it up if it counted part of the time.
    Counted {
        /// The count, in [`Count::unit`].
        value: f64,
        /// Per cent of the time in which the counter counted. Below 100 several counters took
        /// turns (multiplexing), and the count is an estimate.
        running_pct: f64,
    },
    /// No count.
    Missing(Missing),
}

/// One event of a measurement, summed over CPUs, sockets or threads if they were counted
/// separately.
#[derive(Clone, Debug, PartialEq)]
pub struct Count {
    /// Its name as perf printed it.
    pub event: String,
    /// What it counts; `None` for events from which holdup draws no conclusion.
    pub meaning: Option<Meaning>,
    /// The count, or why there is none.
    pub value: Value,
    /// Its unit, empty for plain numbers.
    pub unit: String,
}

/// The counts of one run or interval.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Measurement {
    /// With `perf stat -I`: end of the interval, in nanoseconds from the start of the run.
    pub until_ns: Option<u64>,
    /// Length in nanoseconds, if perf stat prints it or it can be computed.
    pub length_ns: Option<u64>,
    /// How many CPUs the program kept busy on average; `None` if perf stat does not print it, e.g.
    /// for measurements of a whole machine.
    pub cpus_busy: Option<f64>,
    /// The counts in the order in which they were printed.
    pub counts: Vec<Count>,
}

/// The counts of a measurement in one mode.
struct InMode<'a>(&'a Measurement, Mode);

impl Tally for InMode<'_> {
    fn total(&self, counter: Counter) -> Option<f64> {
        self.0.count_in(counter, self.1)
    }
}

impl Measurement {
    /// A figure from the counts of application code, else from the counts of all code. The two are
    /// never mixed.
    fn find(&self, figure: impl Fn(&InMode<'_>) -> Option<f64>) -> Option<f64> {
        [Mode::User, Mode::Both].into_iter().find_map(|mode| figure(&InMode(self, mode)))
    }

    /// The count in one mode. Counts of parts of one processor (`cpu_core/cycles/` and
    /// `cpu_atom/cycles/`) and of several memory controllers are summed. Synonyms are not counted
    /// twice: the first one is used.
    pub fn count_in(&self, counter: Counter, mode: Mode) -> Option<f64> {
        let meaning = Some(Meaning { counter, mode });
        let counted = |c: &&Count| c.meaning == meaning && c.counted().is_some();
        let first = self.counts.iter().find(counted).map(|c| parts(&c.event).0)?;
        let alike = self.counts.iter().filter(counted).filter(|c| parts(&c.event).0 == first);
        alike.filter_map(|c| Some(c.counted()? * c.scale())).reduce(|a, b| a + b)
    }

    /// The count of application code, else of all code.
    pub fn count(&self, counter: Counter) -> Option<f64> {
        self.find(|m| m.total(counter))
    }

    /// Whether [`Measurement::cycles_per_instruction`] covers application code only.
    pub fn is_of_application(&self) -> bool {
        InMode(self, Mode::User).cycles_per_instruction().is_some()
    }

    /// Cycles per instruction of application code, else of all code; `None` unless both were
    /// counted in the same mode.
    pub fn cycles_per_instruction(&self) -> Option<f64> {
        self.find(|m| m.cycles_per_instruction())
    }

    /// Per cent of cycles, or of pipeline slots, in which execution waited.
    pub fn stalled_pct(&self) -> Option<f64> {
        self.find(|m| m.stalled_pct())
    }

    /// Misses of the last-level cache per thousand instructions.
    pub fn misses_per_1000(&self) -> Option<f64> {
        self.find(|m| m.misses_per_1000())
    }

    /// Memory traffic per second: counted by the memory controllers, else estimated from misses of
    /// the last-level cache, of all code if that was counted. `None` without either, or if the
    /// length is unknown.
    pub fn bandwidth(&self) -> Option<Bandwidth> {
        let ns = self.length_ns?;
        let of = |mode| InMode(self, mode).bandwidth(ns);
        of(Mode::Both).or_else(|| of(Mode::User))
    }

    /// The lowest per cent of the time in which one of the counters used here was running: below
    /// 100 the counters were multiplexed.
    pub fn running_pct(&self) -> Option<f64> {
        let used = |c: &&Count| {
            c.meaning.is_some_and(|m| !matches!(m.counter, Counter::TaskClock | Counter::Duration))
        };
        self.counts
            .iter()
            .filter(used)
            .filter_map(|c| match c.value {
                Value::Counted { running_pct, .. } => Some(running_pct),
                Value::Missing(_) => None,
            })
            .reduce(f64::min)
    }

    /// Why there is no count of this; `None` if there is one, or it was not requested.
    pub fn missing(&self, counter: Counter) -> Option<Missing> {
        let of = self.counts.iter().filter(|c| c.meaning.is_some_and(|m| m.counter == counter));
        of.map(|c| match c.value {
            Value::Missing(why) => Some(why),
            Value::Counted { .. } => None,
        })
        .reduce(|a, b| a.and(b))?
    }
}

impl Count {
    fn counted(&self) -> Option<f64> {
        match self.value {
            Value::Counted { value, .. } => Some(value),
            Value::Missing(_) => None,
        }
    }

    /// The factor that converts the count to bytes or plain numbers.
    fn scale(&self) -> f64 {
        match self.unit.as_str() {
            "KiB" => 1024.0,
            "MiB" => 1024.0 * 1024.0,
            "GiB" => 1024.0 * 1024.0 * 1024.0,
            // Without a unit memory controllers count lines (CAS commands).
            "" if self.meaning.is_some_and(|m| m.counter.is_of_memory()) => LINE,
            _ => 1.0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::meaning::meaning;

    fn run(counts: &[(&str, f64, &str)]) -> Measurement {
        let count = |&(event, value, unit): &(&str, f64, &str)| Count {
            event: event.to_owned(),
            meaning: meaning(event),
            value: Value::Counted { value, running_pct: 100.0 },
            unit: unit.to_owned(),
        };
        Measurement {
            length_ns: Some(2_000_000_000),
            counts: counts.iter().map(count).collect(),
            ..Measurement::default()
        }
    }

    #[test]
    fn modes_are_never_mixed() {
        let mixed = run(&[("cycles:u", 50.0, ""), ("instructions", 100.0, "")]);
        assert_eq!(mixed.cycles_per_instruction(), None);
        let both = run(&[
            ("cycles", 90.0, ""),
            ("instructions", 100.0, ""),
            ("cycles:u", 80.0, ""),
            ("instructions:u", 20.0, ""),
        ]);
        assert_eq!(both.cycles_per_instruction(), Some(4.0));
        assert!(both.is_of_application());
    }

    #[test]
    fn parts_are_summed_and_other_names_are_not() {
        let hybrid = run(&[
            ("cpu_core/cycles/", 10.0, ""),
            ("cpu_atom/cycles/", 5.0, ""),
            ("cpu-cycles", 10.0, ""),
        ]);
        assert_eq!(hybrid.count(Counter::Cycles), Some(15.0));
    }

    #[test]
    fn bandwidth_is_counted_if_it_can_be_and_else_estimated() {
        let mib = 1024.0 * 1024.0;
        let imc = run(&[
            ("uncore_imc_0/data_reads/", 10.0, "MiB"),
            ("uncore_imc_1/data_reads/", 20.0, "MiB"),
            ("uncore_imc_0/data_writes/", 10.0, "MiB"),
            ("cache-misses", 1e9, ""),
        ]);
        let found = imc.bandwidth().unwrap();
        assert_eq!((found.bytes_per_s, found.estimated), (20.0 * mib, false));
        let lines = run(&[("uncore_imc_0/cas_count_read/", 100.0, "")]);
        assert_eq!(lines.bandwidth().unwrap().bytes_per_s, 3200.0);
        let misses = run(&[("LLC-load-misses", 1000.0, "")]).bandwidth().unwrap();
        assert_eq!((misses.bytes_per_s, misses.estimated), (32_000.0, true));
        assert_eq!(run(&[("cycles", 1.0, "")]).bandwidth(), None);
    }

    #[test]
    fn stalls_are_shares_of_slots_or_of_cycles() {
        let amd = run(&[("cycles", 100.0, ""), ("stalled-cycles-backend", 40.0, "")]);
        assert_eq!(amd.stalled_pct(), Some(40.0));
        let intel = run(&[("slots", 400.0, ""), ("topdown-be-bound", 100.0, "")]);
        assert_eq!(intel.stalled_pct(), Some(25.0));
        assert_eq!(run(&[("stalled-cycles-backend", 1.0, "")]).stalled_pct(), None);
    }
}
