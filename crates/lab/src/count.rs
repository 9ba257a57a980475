//! What a workload counts itself: the ground truth with which verdicts are compared.

use crate::param::Settings;
use serde::{Deserialize, Serialize};
use std::fs;
use std::time::Duration;

pub(crate) fn ns(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// The counts of one worker.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tally {
    /// Its name, which is also its thread's name.
    pub role: String,
    /// Its process id.
    pub pid: u32,
    /// Its thread id; `None` if unknown.
    pub tid: Option<u32>,
    /// Pieces of the work that it finished.
    pub units: u64,
    /// Time from the start of the run to the worker's end.
    pub wall_ns: u64,
    /// Time waiting for what other workers hold, or for their answers.
    pub wait_ns: u64,
    /// Time working while it held something that others wait for.
    pub hold_ns: u64,
    /// Time working without holding anything.
    pub work_ns: u64,
    /// Time on a CPU, by the kernel (`/proc/.../schedstat`); `None` if unknown.
    pub run_ns: Option<u64>,
    /// Time ready and waiting for a CPU, by the kernel.
    pub queue_ns: Option<u64>,
    /// CPU time in user mode, for a worker that is a separate process.
    pub user_ns: Option<u64>,
    /// CPU time in the kernel, for such a worker.
    pub system_ns: Option<u64>,
}

impl Tally {
    /// Add what a helper of this worker counted, except for its time.
    pub(crate) fn add(&mut self, other: &Tally) {
        self.wait_ns += other.wait_ns;
        self.hold_ns += other.hold_ns;
        self.work_ns += other.work_ns;
        self.run_ns = sum([self.run_ns, other.run_ns]);
        self.queue_ns = sum([self.queue_ns, other.queue_ns]);
    }

    /// Ask the kernel for the times of the calling thread.
    pub(crate) fn ask_kernel(&mut self) {
        let text = fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
        let mut numbers = text.split_whitespace().map(|word| word.parse().ok());
        self.run_ns = numbers.next().flatten();
        self.queue_ns = numbers.next().flatten();
        self.tid = fs::read_link("/proc/thread-self")
            .ok()
            .and_then(|path| path.file_name()?.to_str()?.parse().ok());
    }

    /// Ask the kernel for the times of this process.
    pub(crate) fn ask_about_process(&mut self) {
        let text = fs::read_to_string("/proc/self/stat").unwrap_or_default();
        // The name in brackets may contain anything.
        let rest = text.rsplit_once(") ").map_or("", |(_, rest)| rest);
        let ticks = rustix::param::clock_ticks_per_second().max(1);
        let time = |at: usize| {
            let n: u64 = rest.split_whitespace().nth(at)?.parse().ok()?;
            Some(n.saturating_mul(1_000_000_000 / ticks))
        };
        self.user_ns = time(11);
        self.system_ns = time(12);
    }
}

/// The sum of what is known; `None` if a part is unknown.
fn sum(parts: impl IntoIterator<Item = Option<u64>>) -> Option<u64> {
    parts.into_iter().sum()
}

/// The counts of a run.
#[derive(Clone, Debug, Serialize)]
pub struct Counted {
    /// The version of this form.
    pub schema: &'static str,
    /// The workload.
    pub name: &'static str,
    /// The class of bottleneck that it makes with these settings.
    pub makes: &'static str,
    /// Whether it ran as its fixed variant.
    pub fixed: bool,
    /// Its settings: times in nanoseconds, sizes in bytes.
    pub settings: Settings,
    /// CPUs that it may use.
    pub cpus: u64,
    /// Pieces of work finished by all workers.
    pub units: u64,
    /// Time from the start to the end of the last worker.
    pub wall_ns: u64,
    /// Pieces of work a second.
    pub units_per_s: f64,
    /// Time waiting, summed over all workers.
    pub wait_ns: u64,
    /// Time working while holding something that others wait for.
    pub hold_ns: u64,
    /// Time working without holding anything.
    pub work_ns: u64,
    /// CPU time, by the kernel.
    pub run_ns: Option<u64>,
    /// Time waiting for a CPU, by the kernel.
    pub queue_ns: Option<u64>,
    /// Culprits of which a diagnosis should name one, with all its words.
    pub culprits: Vec<Vec<String>>,
    /// Each worker.
    pub workers: Vec<Tally>,
}

/// The version of the form of [`Counted`].
pub const SCHEMA: &str = "holdup-lab/1";

impl Counted {
    /// Compute the sums over the workers.
    pub(crate) fn sum_up(mut self) -> Counted {
        let all = |of: fn(&Tally) -> u64| self.workers.iter().map(of).sum::<u64>();
        (self.units, self.wait_ns) = (all(|t| t.units), all(|t| t.wait_ns));
        (self.hold_ns, self.work_ns) = (all(|t| t.hold_ns), all(|t| t.work_ns));
        self.run_ns = sum(self.workers.iter().map(|t| t.run_ns));
        self.queue_ns = sum(self.workers.iter().map(|t| t.queue_ns));
        self.wall_ns = self.workers.iter().map(|t| t.wall_ns).max().unwrap_or_default();
        self.units_per_s = self.units as f64 * 1e9 / self.wall_ns.max(1) as f64;
        self
    }
}
