//! A ladder as JSON.

use super::{finite, work};
use crate::compare::report::ScaleReport;
use holdup_gate::scale::{Call, Leaf, Row};
use serde::Serialize;

/// The same work on more and more CPUs.
#[derive(Serialize, schemars::JsonSchema)]
pub(crate) struct Scale<'a> {
    /// What a unit of work is, as `--work` has it; null if a recording is the work.
    work: Option<String>,
    /// A row for each number of CPUs, fewest first.
    rows: Vec<ScaleRow>,
    /// The laws fitted to the rows.
    fit: Fit,
    /// Where the CPUs went that did not help, most first; empty without recordings.
    leaves: Vec<LeafRow<'a>>,
    /// The kernel's way through system calls, what costs most first; empty without recordings.
    calls: Vec<CallRow<'a>>,
}

/// The work on one number of CPUs.
#[derive(Serialize, schemars::JsonSchema)]
struct ScaleRow {
    /// CPUs.
    cpus: u32,
    /// Time for the work, or for a unit of it; the median of several runs.
    time_ns: f64,
    /// How much faster than the first row.
    speedup: f64,
    /// Part of the CPUs that came to use, if all of the first row's did; 0 to 1.
    efficiency: f64,
    /// CPUs that did not help; below 0 where the work became less.
    lost_cpus: f64,
    /// Karp and Flatt's serial fraction; null for the first row, or if that is not of one CPU.
    serial_fraction: Option<f64>,
    /// What the universal scalability law gives; null with fewer than three rows.
    usl_speedup: Option<f64>,
    /// Context switches for the work, or for a unit of it; null without recordings.
    switches: Option<f64>,
    /// Serial set-up: how long no more than one CPU worked before more did; null where no row shows
    /// any. On one CPU it is that of the next row.
    setup_ns: Option<f64>,
    /// How much faster than the first row without that set-up; null likewise.
    speedup_without_setup: Option<f64>,
}

/// The laws fitted to the rows. A coefficient is null where there are too few rows for it.
#[derive(Serialize, schemars::JsonSchema)]
struct Fit {
    /// Serial fraction of Amdahl's law over all rows.
    serial_fraction: Option<f64>,
    /// Contention of the universal scalability law.
    sigma: Option<f64>,
    /// Its coherency.
    kappa: Option<f64>,
    /// CPUs that do most; null if the law has no peak.
    peak_cpus: Option<f64>,
    /// With 95 % confidence; null with no more rows than unknowns, or where held at 0.
    intervals: Intervals,
}

/// Lowest and highest value of each coefficient.
#[derive(Serialize, schemars::JsonSchema)]
struct Intervals {
    /// Of `sigma`.
    sigma: Option<[f64; 2]>,
    /// Of `kappa`.
    kappa: Option<[f64; 2]>,
}

/// A leaf of the ledger beside the first row.
#[derive(Serialize, schemars::JsonSchema)]
struct LeafRow<'a> {
    /// CPUs.
    cpus: u32,
    /// Its path.
    path: &'a str,
    /// CPUs it takes more than with as many CPU-seconds as in the first row. With one recording a
    /// row, those of one number of CPUs add up to `lost_cpus` of its row; with several recordings
    /// roughly so, as these are means and times are medians.
    lost_cpus: f64,
}

/// The kernel's way through a system call beside the first row.
#[derive(Serialize, schemars::JsonSchema)]
struct CallRow<'a> {
    /// CPUs.
    cpus: u32,
    /// The call; null for all together, each as often as in the first row.
    name: Option<&'a str>,
    /// CPU time of one in the first row; of all for null.
    first_cpu_ns: f64,
    /// The same here.
    cpu_ns: f64,
    /// How many times as long.
    ratio: Option<f64>,
    /// Lowest value of `ratio` with 95 % confidence; null with fewer than three runs a side.
    ratio_low: Option<f64>,
    /// Highest value.
    ratio_high: Option<f64>,
}

impl<'a> Scale<'a> {
    pub(super) fn of(report: &'a ScaleReport) -> Scale<'a> {
        let (scaling, law) = (&report.scaling, report.scaling.usl);
        let bounds = |i: holdup_model::Interval| [i.low, i.high];
        Scale {
            work: work(&report.work),
            rows: scaling.rows.iter().map(ScaleRow::of).collect(),
            fit: Fit {
                serial_fraction: scaling.amdahl,
                sigma: law.map(|l| l.sigma),
                kappa: law.map(|l| l.kappa),
                peak_cpus: law.and_then(|l| l.peak()),
                intervals: Intervals {
                    sigma: law.and_then(|l| l.sigma_interval).map(bounds),
                    kappa: law.and_then(|l| l.kappa_interval).map(bounds),
                },
            },
            leaves: report.leaves().map(LeafRow::of).collect(),
            calls: report.calls().map(CallRow::of).collect(),
        }
    }
}

impl ScaleRow {
    fn of(row: &Row) -> ScaleRow {
        ScaleRow {
            cpus: row.cpus,
            time_ns: row.seconds * 1e9,
            speedup: row.speedup,
            efficiency: row.efficiency,
            lost_cpus: row.lost_cpus,
            serial_fraction: row.serial_fraction,
            usl_speedup: row.usl_speedup,
            switches: row.switches,
            setup_ns: row.without_setup.map(|w| w.setup * 1e9),
            speedup_without_setup: row.without_setup.map(|w| w.speedup),
        }
    }
}

impl<'a> LeafRow<'a> {
    fn of(leaf: &'a Leaf) -> LeafRow<'a> {
        LeafRow { cpus: leaf.cpus, path: &leaf.path, lost_cpus: leaf.lost_cpus }
    }
}

impl<'a> CallRow<'a> {
    fn of(call: &'a Call) -> CallRow<'a> {
        CallRow {
            cpus: call.cpus,
            name: call.name.as_deref(),
            first_cpu_ns: call.first_ns,
            cpu_ns: call.here_ns,
            ratio: finite(call.ratio()),
            ratio_low: call.interval.map(|i| i.0),
            ratio_high: call.interval.and_then(|i| i.1),
        }
    }
}
