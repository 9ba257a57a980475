//! The results of replays with changes.

use crate::Table;
use crate::text::units::{count, duration};
use holdup_diagnose::Basis;
use serde::Serialize;

/// The kind of the row without a change.
pub const UNCHANGED: &str = "none";

/// A smaller gain is printed as 1.00x and counts as none.
const LEAST_GAIN: f64 = 0.005;

/// One change, and the results of the replays with it.
#[derive(Clone, Debug, Default, Serialize, schemars::JsonSchema)]
pub struct WhatifRow {
    /// What is changed, in words: `16 CPUs instead of 2`, `removing the waiting for NAME`.
    pub fix: String,
    /// Kind of the resource that is no longer scarce: `cpus`, `placement`, `quota`, `device`,
    /// `lock`, `service`, `kernel-lock`, `driver`, `server`, `parallelism`, `hypervisor`; or else
    /// `syscall`, `several` changes, or `none`.
    pub kind: &'static str,
    /// How long the work takes: the median of the replays. The replays differ in how ties are
    /// broken and in time slices.
    pub wall_ns: u64,
    /// How long the work takes in the shortest of the replays.
    pub wall_low_ns: u64,
    /// How long the work takes in the longest of the replays.
    pub wall_high_ns: u64,
    /// How many times as fast the work is: `wall_ns` of the unchanged replay divided by `wall_ns`
    /// of this row.
    pub gain: Option<f64>,
    /// How the gain is known: `replayed`, `chains` (estimated from who woke whom), or `bound` (the
    /// gain is at most this).
    pub basis: Basis,
    /// Whether the gain is more than chance: all replays take less time than any unchanged replay,
    /// or all take more.
    pub beyond_chance: bool,
    /// How much more work is done per second than without the change, in per cent; negative if less
    /// work is done.
    pub throughput_pct: Option<f64>,
    /// `throughput_pct` in the longest of the replays.
    pub throughput_low_pct: Option<f64>,
    /// `throughput_pct` in the shortest of the replays.
    pub throughput_high_pct: Option<f64>,
    /// Number of times that the replay released a thread because threads waited for each other in a
    /// cycle that the trace did not have. If there are many, the row means little.
    pub forced: u64,
    /// Number of sleeps in the trace for the changed object; `null` if threads do not wait for it.
    pub waits: Option<u64>,
    /// Total time of these sleeps.
    pub wait_ns: Option<u64>,
    /// What is changed, in the syntax of the command line: `cpus 16`, `lock NAME=none`. `none` is
    /// the replay without changes; `null` if no replay can make the change.
    pub change: Option<String>,
}

impl WhatifRow {
    /// The gain as text: `1.18x`, `none`, `1.02x (or chance)`.
    pub fn gain_in_words(&self) -> String {
        let certain = self.kind == UNCHANGED || self.beyond_chance;
        gain_in_words(self.gain, certain, self.basis == Basis::Bound)
    }

    /// Whether the change makes the traced program faster beyond chance.
    pub fn gains(&self) -> bool {
        self.beyond_chance && self.gain.is_some_and(|gain| gain - 1.0 >= LEAST_GAIN)
    }
}

pub(crate) fn gain_in_words(gain: Option<f64>, certain: bool, is_bound: bool) -> String {
    match gain {
        None => "n/a".to_owned(),
        Some(gain) if (gain - 1.0).abs() < LEAST_GAIN => "none".to_owned(),
        Some(gain) if is_bound => format!("up to {gain:.2}x"),
        Some(gain) if certain => format!("{gain:.2}x"),
        Some(gain) => format!("{gain:.2}x (may be chance)"),
    }
}

/// What the rows are about, and how far to trust them.
#[derive(Clone, Debug, Default, Serialize, schemars::JsonSchema)]
pub struct WhatifHead {
    /// How long the work took in the trace: from the moment at which its first thread ran until all
    /// its threads were done.
    pub traced_wall_ns: u64,
    /// How much longer than the trace the unchanged replay takes, in per cent; negative if it is
    /// shorter.
    pub replay_off_pct: f64,
    /// Threads that do the work: the busiest threads, which have 98 % of the CPU time together.
    pub work_threads: u64,
    /// Reasons not to trust the figures, in words.
    pub doubts: Vec<String>,
    /// Conclusions from the figures, in words.
    pub conclusions: Vec<String>,
}

/// An answer to "what if": its rows, the first without a change, and notes.
#[derive(Clone, Debug)]
pub struct WhatifBody {
    /// What the rows are about.
    pub head: WhatifHead,
    /// The rows.
    pub table: Table,
}

impl WhatifBody {
    /// How long the traced program took, and how well the unchanged replay matches that.
    pub(crate) fn account(&self) -> String {
        let head = &self.head;
        let unchanged = self.table.rows.first().and_then(|row| self.table.line(row).int("wall_ns"));
        let off = match head.replay_off_pct {
            pct if pct.abs() < 0.05 => "the same as in the trace".to_owned(),
            pct if pct < 0.0 => format!("{:.1} % less than in the trace", -pct),
            pct => format!("{pct:.1} % more than in the trace"),
        };
        format!(
            "The work of the {} with 98 % of the CPU time took {}, from the moment at which the \
             first of them ran until all were done; a replay without changes takes {}, {off}.",
            count(head.work_threads, "thread", "threads"),
            duration(head.traced_wall_ns),
            unchanged.map_or("n/a".to_owned(), duration),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gains_in_words() {
        let words = |gain, certain| gain_in_words(gain, certain, false);
        assert_eq!(words(Some(1.182), true), "1.18x");
        assert_eq!(words(Some(0.852), true), "0.85x");
        assert_eq!(words(Some(1.02), false), "1.02x (may be chance)");
        assert_eq!(words(Some(1.004), true), "none");
        assert_eq!(words(Some(0.996), true), "none");
        assert_eq!(words(None, true), "n/a");
        assert_eq!(gain_in_words(Some(1.182), true, true), "up to 1.18x");
    }
}
