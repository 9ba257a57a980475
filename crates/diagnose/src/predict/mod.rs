//! The cost of a lock on other numbers of CPUs: `holdup predict`.
//!
//! ```text
//!  trace    ──► the locks that threads wait for ─┐
//!  figures  ──► locks with measured times        ├─► subjects ──► a row for each number of CPUs
//!  a demand ──► one lock                         ┘
//! ```
//!
//! A [`Subject`] is a lock with what is known of it, in the quantities of Bier and Vernon: L, x, W,
//! N. Its demand is D = x / (x + Z) with Z = N/L - W - x, which is L x / (N - L W): the fraction of
//! the time that the lock is held, divided by the CPUs that did not wait. So the demand is known if
//! the time held is, even without a count of holds. All else is the closed model
//! ([`holdup_model::Network`]). docs/models.md says when not to believe it.

mod curve;
mod figures;
mod kinds;
mod trace;

pub use curve::Curve;
pub use figures::{of_demand, of_figures};
pub use kinds::Kind;
pub use trace::of_trace;

use holdup_model::{Network, OPTIMISM, Station};
use kinds::Predicted;
use serde::Serialize;

/// The most CPUs of a prediction: the largest that Linux supports (`NR_CPUS`).
pub const MOST_CPUS: u32 = 8192;
/// The most threads of a prediction: more cost time and change nothing.
pub const MOST_THREADS: u32 = 16384;

/// How the demand for a lock is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Basis {
    /// The user gave the demand.
    Given,
    /// Every hold of the lock was measured.
    Measured,
    /// Holds were inferred from wake-ups, or only those holds are known that made threads wait.
    Inferred,
    /// No hold is known. The demand is chosen such that the model loses as many CPUs as the trace
    /// did.
    LostCpus,
}

impl Basis {
    /// Its stable id.
    pub fn id(self) -> &'static str {
        match self {
            Basis::Given => "given",
            Basis::Measured => "measured",
            Basis::Inferred => "inferred",
            Basis::LostCpus => "lost-cpus",
        }
    }
}

/// One lock, or all locks together, on one number of CPUs. `null` means neither measured nor
/// supplied.
#[derive(Clone, Debug, Default, PartialEq, Serialize, schemars::JsonSchema)]
pub struct PredictRow {
    /// The lock or other object; `all` for all of them together.
    pub object: String,
    /// Process of the threads that use the lock; `null` if there are several processes.
    pub pid: Option<u32>,
    /// Name of the process that uses the lock, or of the thread that waited longest for it.
    pub comm: Option<String>,
    /// Number of CPUs (N).
    pub cpus: u32,
    /// Number of threads that use the lock.
    pub threads: u32,
    /// Demand (D): the part of the time, 0 to 1, for which one CPU would hold the lock if it were
    /// the only CPU.
    pub demand: Option<f64>,
    /// How the demand is known.
    pub basis: Option<Basis>,
    /// Mean time for which the lock is held at a time (x).
    pub hold_ns: Option<u64>,
    /// CPU time that an acquisition of the lock loses on average (W), while threads wait and a CPU
    /// cannot work.
    pub wait_ns: Option<u64>,
    /// Acquisitions of the lock per second (L).
    pub throughput_per_s: Option<f64>,
    /// CPUs that did not wait for the lock (N - L W), if that was measured.
    pub measured_effective_cpus: Option<f64>,
    /// CPUs that do not wait for the lock, by the model.
    pub effective_cpus: Option<f64>,
    /// CPUs that wait for the lock: by the model, or as measured if the demand is unknown.
    pub lost_cpus: Option<f64>,
    /// Part of the time for which the lock is held: as measured, or else by the model. For all
    /// locks together: the value of the busiest lock, by the model.
    pub utilization: Option<f64>,
    /// CPUs that wait for the lock, as a percentage of the CPUs that the threads could keep busy.
    pub degradation_pct: Option<f64>,
    /// Number of CPUs that keep the lock held all the time (1 / D). More CPUs add nothing.
    pub saturation_cpus: Option<f64>,
}

/// A measurement on some number of CPUs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Seen {
    /// CPUs, N.
    pub cpus: u32,
    /// CPUs lost to waiting, L W.
    pub lost: f64,
    /// Fraction of the time that it was held, L x, if holds are known.
    pub held: Option<f64>,
    /// Acquisitions per second, L, if known.
    pub rate: Option<f64>,
}

/// A lock and what is known about it.
#[derive(Clone, Debug, PartialEq)]
pub struct Subject {
    /// Its name.
    pub object: String,
    /// Process of its threads.
    pub pid: Option<u32>,
    /// Name of that process.
    pub comm: Option<String>,
    /// Threads that use it; `None` for as many as CPUs.
    pub threads: Option<u32>,
    /// Waiters keep their CPUs.
    pub spins: bool,
    /// The measurement.
    pub seen: Option<Seen>,
    /// The demand of each station, as a fraction of a round without waiting; empty if unknown.
    pub stations: Vec<Station>,
    /// Kinds of its threads, each with a demand for each station; empty if they are alike.
    pub kinds: Vec<Kind>,
    /// How the demand is known.
    pub basis: Option<Basis>,
}

impl Seen {
    /// CPUs that did not wait, of those that `threads` threads could keep busy.
    fn effective(&self, threads: u32) -> f64 {
        (f64::from(self.cpus.min(threads)) - self.lost).max(0.0)
    }

    /// The demand by the time held: D = L x / (N - L W). `None` if the figures contradict each
    /// other, that is, if Z would be below 0.
    pub(crate) fn demand(&self, threads: u32) -> Option<f64> {
        let demand = self.held? / self.effective(threads);
        (demand.is_finite() && demand <= 1.0).then_some(demand)
    }
}

impl Subject {
    /// Threads that use it on `cpus` CPUs. More CPUs are taken to bring more threads: as many for
    /// each CPU as were seen, but at most one.
    fn threads_on(&self, cpus: u32) -> u32 {
        let grown = match (self.threads, self.seen) {
            (None, _) => cpus,
            (Some(threads), None) => threads,
            (Some(threads), Some(seen)) => {
                let each = u64::from(seen.cpus.min(threads)) * u64::from(cpus);
                let each = each / u64::from(seen.cpus.max(1));
                threads.max(u32::try_from(each).unwrap_or(u32::MAX))
            }
        };
        grown.min(MOST_THREADS)
    }

    fn network(&self) -> Option<Network> {
        let demand: f64 = self.stations.iter().map(|s| s.demand).sum();
        let think = (1.0 - demand).max(0.0);
        (!self.stations.is_empty()).then(|| Network { think, stations: self.stations.clone() })
    }

    /// The model's result for `cpus` CPUs, if there is a demand.
    fn predicted(&self, cpus: u32) -> Option<Predicted> {
        let threads = self.threads_on(cpus);
        // The customers are CPUs if waiters spin, else threads.
        let customers = if self.spins { threads.min(cpus) } else { threads };
        if !self.kinds.is_empty() && customers <= cpus {
            return kinds::predicted(&self.kinds, cpus, customers);
        }
        let load = self.network()?.on(cpus, customers);
        let slowest = self.stations.iter().map(|s| s.demand / f64::from(s.servers.max(1)));
        Some(Predicted { load, busiest: load.throughput * slowest.fold(0.0, f64::max) })
    }

    /// Acquisitions per second of work.
    fn rate_of_work(&self) -> Option<f64> {
        let seen = self.seen?;
        let effective = seen.effective(self.threads_on(seen.cpus));
        (effective > 0.0).then_some(seen.rate? / effective)
    }

    fn demand(&self) -> Option<f64> {
        (!self.stations.is_empty()).then(|| self.stations.iter().map(|s| s.demand).sum())
    }

    /// The row for `cpus` CPUs.
    pub fn row(&self, cpus: u32) -> PredictRow {
        let threads = self.threads_on(cpus);
        let here = self.seen.filter(|s| s.cpus == cpus);
        let predicted = self.predicted(cpus);
        let load = predicted.map(|p| p.load);
        let lost = load.map(|l| l.lost_cpus()).or(here.map(|s| s.lost));
        let rate = match here {
            Some(seen) => seen.rate,
            None => load.zip(self.rate_of_work()).map(|(l, rate)| l.throughput * rate),
        };
        let lost_here = here.map_or(lost, |s| Some(s.lost));
        let held = here.and_then(|s| s.held).filter(|_| self.stations.len() < 2);
        let nanos = |seconds: f64| (seconds * 1e9).round() as u64;
        let whole = |sum: Option<f64>, n: Option<f64>| Some(sum? / n.filter(|&n| n > 0.0)?);
        let hold = self.seen.and_then(|s| whole(s.held, s.rate));
        let usable = f64::from(cpus.min(threads).max(1));
        PredictRow {
            object: self.object.clone(),
            pid: self.pid,
            comm: self.comm.clone(),
            cpus,
            threads,
            demand: self.demand().map(round6),
            basis: self.basis.filter(|_| !self.stations.is_empty()),
            hold_ns: hold.map(nanos),
            wait_ns: whole(lost_here, rate).map(nanos),
            throughput_per_s: rate.map(round3),
            measured_effective_cpus: here.map(|s| round6(s.effective(threads))),
            effective_cpus: load.map(|l| round6(l.effective_cpus())),
            lost_cpus: lost.map(round6),
            utilization: held.or(predicted.map(|p| p.busiest)).map(round6),
            degradation_pct: lost.map(|lost| round3(lost / usable * 100.0)),
            saturation_cpus: self.network().and_then(|n| n.saturation()).map(round6),
        }
    }
}

/// The answer of `holdup predict`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Forecast {
    /// All together first, then the costliest objects first; for each, few CPUs first.
    pub rows: Vec<PredictRow>,
    /// The curve of the first object that has a demand.
    pub curve: Option<Curve>,
    /// Notes.
    pub notes: Vec<String>,
}

/// Rows and curve of `subjects` on these numbers of CPUs, and on the measured number.
pub(crate) fn forecast(subjects: &[Subject], cpus: &[u32], notes: Vec<String>) -> Forecast {
    let mut rows = Vec::new();
    for subject in subjects {
        let mut cpus: Vec<u32> = cpus.iter().copied().chain(subject.seen.map(|s| s.cpus)).collect();
        cpus.sort_unstable();
        cpus.dedup();
        rows.extend(cpus.into_iter().map(|n| subject.row(n)));
    }
    let drawn = subjects.iter().find(|s| !s.stations.is_empty());
    let curve = drawn.and_then(|s| Curve::of(s, cpus.iter().copied().max()?));
    Forecast { rows, curve, notes }
}

/// All of `subjects` as one, if there are several.
pub(crate) fn all_of(subjects: &[Subject], threads: Option<u32>) -> Option<Subject> {
    let first = subjects.first()?.seen?;
    if subjects.len() < 2 {
        return None;
    }
    let seen = || subjects.iter().filter_map(|s| s.seen);
    let sum = |of: fn(&Seen) -> Option<f64>| seen().map(|s| of(&s)).sum::<Option<f64>>();
    let lost = seen().map(|s| s.lost).sum();
    let spun: f64 = subjects.iter().filter(|s| s.spins).filter_map(|s| Some(s.seen?.lost)).sum();
    let mut all = Subject {
        object: "all".to_owned(),
        pid: None,
        comm: None,
        threads,
        spins: spun * 2.0 > lost,
        seen: Some(Seen { cpus: first.cpus, lost, held: sum(|s| s.held), rate: sum(|s| s.rate) }),
        stations: Vec::new(),
        kinds: Vec::new(),
        basis: None,
    };
    let effective = all.seen?.effective(all.threads_on(first.cpus));
    // The hold time of each, converted from the CPUs that did not wait for this lock to those that
    // did not wait at all.
    let station = |s: &Subject| {
        let alone = s.seen?.effective(s.threads_on(first.cpus));
        let demand = s.demand()? * alone / effective;
        demand.is_finite().then(|| Station::lock(demand))
    };
    all.stations = subjects.iter().filter_map(station).collect();
    let demand: f64 = all.stations.iter().map(|s| s.demand).sum();
    if demand > 1.0 {
        all.stations.iter_mut().for_each(|s| s.demand /= demand);
    }
    // Only as reliable as the least reliable of them.
    all.basis = subjects.iter().filter_map(|s| s.basis).max_by_key(|&basis| basis as u8);
    Some(all)
}

/// CPUs lost to waiting for it.
fn lost(subject: &Subject) -> f64 {
    subject.seen.map_or(0.0, |s| s.lost)
}

/// `cpus`; by default the number seen, and two, four and eight times as many.
fn with_default(cpus: &[u32], seen: u32) -> Vec<u32> {
    if !cpus.is_empty() {
        return cpus.to_vec();
    }
    [1, 2, 4, 8].map(|times: u32| seen.saturating_mul(times).min(MOST_CPUS)).to_vec()
}

fn optimism() -> String {
    format!("{OPTIMISM} (Bier and Vernon 1988)")
}

fn round3(x: f64) -> f64 {
    (x * 1e3).round() / 1e3
}

fn round6(x: f64) -> f64 {
    (x * 1e6).round() / 1e6
}
