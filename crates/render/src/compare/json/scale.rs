//! A ladder as JSON.

use super::{finite, work};
use crate::compare::report::ScaleReport;
use holdup_gate::scale::{Call, Leaf, Row};
use serde::Serialize;

/// The same work on more and more CPUs.
#[derive(Serialize, schemars::JsonSchema)]
pub(crate) struct Scale<'a> {
    /// What a unit of work is, as given by `--work`; null if each recording is the whole work.
    work: Option<String>,
    /// One row for each number of CPUs, the smallest number first.
    rows: Vec<ScaleRow>,
    /// The scaling laws, fitted to the rows.
    fit: Fit,
    /// Parts of the ledger in which CPU time did not speed up the work, the largest first; empty
    /// without recordings.
    leaves: Vec<LeafRow<'a>>,
    /// CPU time of system calls, the largest cost first; empty without recordings.
    calls: Vec<CallRow<'a>>,
}

/// The work, done on one number of CPUs.
#[derive(Serialize, schemars::JsonSchema)]
struct ScaleRow {
    /// Number of CPUs.
    cpus: u32,
    /// Time for the whole work, or for a unit of work; the median of several runs.
    time_ns: f64,
    /// How many times as fast as in the first row the work is.
    speedup: f64,
    /// Part of the CPUs that speed up the work, relative to the first row; 0 to 1.
    efficiency: f64,
    /// Number of CPUs that do not speed up the work; below 0 if the speedup is more than linear.
    lost_cpus: f64,
    /// Karp and Flatt's serial fraction; null for the first row, or if the first row is not for one
    /// CPU.
    serial_fraction: Option<f64>,
    /// Speedup by the universal scalability law; null with fewer than three rows.
    usl_speedup: Option<f64>,
    /// Context switches for the whole work, or for a unit of work; null without recordings.
    switches: Option<f64>,
    /// Serial set-up: how long only one CPU worked before more CPUs did; null if no row has a
    /// set-up. In the row of one CPU it is the set-up of the next row.
    setup_ns: Option<f64>,
    /// How many times as fast as in the first row the work is if the set-up is left out of both
    /// rows; null if no row has a set-up.
    speedup_without_setup: Option<f64>,
}

/// The scaling laws, fitted to the rows. A coefficient is null if there are too few rows for it.
#[derive(Serialize, schemars::JsonSchema)]
struct Fit {
    /// Serial fraction of Amdahl's law over all rows.
    serial_fraction: Option<f64>,
    /// Contention coefficient of the universal scalability law.
    sigma: Option<f64>,
    /// Coherency coefficient of the universal scalability law.
    kappa: Option<f64>,
    /// Number of CPUs with the highest throughput by the universal scalability law; null if the law
    /// has no peak.
    peak_cpus: Option<f64>,
    /// Intervals of the coefficients with 95 % confidence; null if there are not more rows than
    /// unknowns, or if a coefficient was set to 0.
    intervals: Intervals,
}

/// Lowest and highest value of each coefficient.
#[derive(Serialize, schemars::JsonSchema)]
struct Intervals {
    /// Lowest and highest value of `sigma`.
    sigma: Option<[f64; 2]>,
    /// Lowest and highest value of `kappa`.
    kappa: Option<[f64; 2]>,
}

/// A leaf of the ledger, compared with the first row.
#[derive(Serialize, schemars::JsonSchema)]
struct LeafRow<'a> {
    /// Number of CPUs.
    cpus: u32,
    /// Path of the leaf.
    path: &'a str,
    /// CPUs that the leaf takes beyond what the CPU-seconds of the first row would need. With one
    /// recording per row, the values for one number of CPUs add up to `lost_cpus` of its row. With
    /// several recordings they add up only roughly, because these values are means and times are
    /// medians.
    lost_cpus: f64,
}

/// CPU time of a system call, compared with the first row.
#[derive(Serialize, schemars::JsonSchema)]
struct CallRow<'a> {
    /// Number of CPUs.
    cpus: u32,
    /// Name of the system call; null for the total of all calls, each weighted by its count in the
    /// first row.
    name: Option<&'a str>,
    /// CPU time of one call in the first row; of all calls if `name` is null.
    first_cpu_ns: f64,
    /// CPU time of one call in this row; of all calls if `name` is null.
    cpu_ns: f64,
    /// `cpu_ns` divided by `first_cpu_ns`.
    ratio: Option<f64>,
    /// Lowest value of `ratio` with 95 % confidence; null with fewer than three runs per side.
    ratio_low: Option<f64>,
    /// Highest value of `ratio` with 95 % confidence; null with fewer than three runs per side.
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
