//! Names and meanings of hardware counters, and the output of `perf stat`.
//!
//! ```
//! use holdup_counters::{Counter, stat};
//!
//! let text = "2000,,cycles:u,1000000,100.00,,\n500,,instructions:u,1000000,100.00,,\n";
//! let found = stat::parse(text.as_bytes())?;
//! let run = &found.measurements[0];
//! assert_eq!(run.count(Counter::Cycles), Some(2000.0));
//! assert_eq!(run.cycles_per_instruction(), Some(4.0));
//! # Ok::<(), holdup_counters::stat::Error>(())
//! ```
//!
//! * [`meaning`]: from the name of an event, as Intel, AMD, Arm and perf spell it, to what it
//!   counts and in which mode. This is the only list of these names.
//! * [`stat`]: reads the output of `perf stat -x` and `perf stat -j`, with `-I`, `-A`, `-r` and
//!   the aggregations `--per-socket`, `--per-core` and so on.
//! * [`Measurement`]: the counts of one run or one interval.
//! * [`Tally`]: figures computed from counts of any source.

mod meaning;
mod measurement;
pub mod stat;
mod tally;

pub use meaning::{Counter, LINE, Meaning, Mode, meaning};
pub use measurement::{Count, Measurement, Missing, Value};
pub use tally::{Bandwidth, Tally};
