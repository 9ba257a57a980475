//! When a flight recorder writes its recording.

use std::fmt;
use std::fs;
use std::str::FromStr;
use std::time::Instant;

/// A condition for writing the last seconds. A signal (`SIGUSR2`) always is one too.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Trigger {
    /// Only the signal.
    Signal,
    /// The command ends with another status than 0.
    Fails,
    /// The load average of the last minute is above this.
    Load(f64),
    /// More than this many threads are ready and wait for a CPU, averaged over a second.
    RunQueue(f64),
    /// More than this many threads wait for locks of the kernel, averaged over a second.
    LockWait(f64),
}

/// The spellings, for messages.
pub const SPELLINGS: &str = "sigusr2, fails, load>X, runqueue>X or lock-wait>X";

impl FromStr for Trigger {
    type Err = String;

    fn from_str(text: &str) -> Result<Trigger, String> {
        let wrong = || format!("is not a condition; the conditions are {SPELLINGS}");
        let text: String = text.chars().filter(|c| !c.is_whitespace()).collect();
        if let Some((name, limit)) = text.split_once('>') {
            let limit = limit.parse().ok().filter(|x: &f64| x.is_finite() && *x >= 0.0);
            let limit = limit.ok_or_else(wrong)?;
            return match name {
                "load" => Ok(Trigger::Load(limit)),
                "runqueue" => Ok(Trigger::RunQueue(limit)),
                "lock-wait" => Ok(Trigger::LockWait(limit)),
                _ => Err(wrong()),
            };
        }
        match text.as_str() {
            "sigusr2" => Ok(Trigger::Signal),
            "fails" => Ok(Trigger::Fails),
            _ => Err(wrong()),
        }
    }
}

/// Why the last seconds were written.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Fired {
    /// The signal.
    Signal,
    /// The recorder was told to end, by this signal.
    Ended(i32),
    /// The command failed, with this exit status in shells.
    Failed(u8),
    /// The trigger's value was above its limit.
    Above(Trigger, f64),
}

impl fmt::Display for Fired {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Fired::Signal => write!(f, "SIGUSR2 came"),
            Fired::Ended(signal) => write!(f, "signal {signal} ended the recorder"),
            Fired::Failed(status) => write!(f, "the command failed with status {status}"),
            Fired::Above(Trigger::Load(limit), value) => {
                write!(f, "the load average was {value:.2}, above {limit}")
            }
            Fired::Above(Trigger::RunQueue(limit), value) => {
                write!(f, "{value:.2} threads waited for a CPU, more than {limit}")
            }
            Fired::Above(Trigger::LockWait(limit), value) => {
                write!(f, "{value:.2} threads waited for kernel locks, more than {limit}")
            }
            Fired::Above(Trigger::Signal | Trigger::Fails, value) => write!(f, "{value}"),
        }
    }
}

/// The load average of the last minute; `None` if the kernel does not say.
pub(crate) fn load() -> Option<f64> {
    fs::read_to_string("/proc/loadavg").ok()?.split(' ').next()?.parse().ok()
}

/// Measures how many threads wait for a CPU.
#[derive(Debug)]
pub(crate) enum RunQueue {
    /// By the total time that threads have waited, which only grows.
    Delay {
        /// When the total was read.
        at: Instant,
        /// The total.
        ns: u64,
    },
    /// By samples of the number of ready threads (`CONFIG_SCHED_INFO` is missing).
    Moments {
        /// Sum over the samples: threads without a CPU, not counting the recorder's own effect.
        sum: u64,
        /// Number of samples.
        count: u64,
        /// Number of CPUs.
        cpus: u64,
    },
}

impl RunQueue {
    /// Begins, on a machine with this many CPUs, recorded or not.
    pub(crate) fn begin(cpus: usize) -> RunQueue {
        match delay() {
            Some(ns) => RunQueue::Delay { at: Instant::now(), ns },
            None => RunQueue::Moments { sum: 0, count: 0, cpus: cpus as u64 },
        }
    }

    /// Takes a sample.
    pub(crate) fn look(&mut self) {
        if let (RunQueue::Moments { sum, count, cpus }, Some(ready)) = (self, ready()) {
            *sum += without_cpu(ready, *cpus);
            *count += 1;
        }
    }

    /// Average number of waiting threads since the last call; `None` if the kernel does not say.
    pub(crate) fn since(&mut self) -> Option<f64> {
        let (waited, of) = match self {
            RunQueue::Delay { at, ns } => {
                let before = (std::mem::replace(at, Instant::now()), *ns);
                *ns = delay()?;
                // The time of a wait is added when it ends.
                (ns.saturating_sub(before.1), at.duration_since(before.0).as_nanos() as u64)
            }
            RunQueue::Moments { sum, count, .. } => (std::mem::take(sum), std::mem::take(count)),
        };
        (of > 0).then_some(waited as f64 / of as f64)
    }
}

/// The number of threads without a CPU among `ready` threads that run or want to. One of these is
/// the calling thread: without it, a thread that waits for its CPU would run.
fn without_cpu(ready: u64, cpus: u64) -> u64 {
    ready.saturating_sub(1).saturating_sub(cpus)
}

fn delay() -> Option<u64> {
    run_delay(&fs::read_to_string("/proc/schedstat").ok()?)
}

/// Number of threads that run or want to.
fn ready() -> Option<u64> {
    ready_of(&fs::read_to_string("/proc/loadavg").ok()?)
}

/// The 3 in `0.91 0.33 0.11 3/123 4711`.
fn ready_of(loadavg: &str) -> Option<u64> {
    loadavg.split(' ').nth(3)?.split_once('/')?.0.parse().ok()
}

/// Nanoseconds that threads waited for a CPU, over all CPUs. In each `cpuN` line it is the eighth
/// number (Documentation/scheduler/sched-stats.rst), the same in all versions since 2.6.
fn run_delay(schedstat: &str) -> Option<u64> {
    let cpus = schedstat.lines().filter(|line| line.starts_with("cpu"));
    let mut delays = cpus.map(|line| line.split_whitespace().nth(8)?.parse::<u64>().ok());
    let first = delays.next()??;
    delays.try_fold(first, |sum, delay| Some(sum.wrapping_add(delay?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_are_read_and_others_refused() {
        assert_eq!("load > 8".parse(), Ok(Trigger::Load(8.0)));
        assert_eq!("lock-wait>0.5".parse(), Ok(Trigger::LockWait(0.5)));
        assert_eq!("fails".parse(), Ok(Trigger::Fails));
        for wrong in ["", "load", "load>", "load>x", "load>NaN", "load>-1", "work>1", "sigusr1"] {
            assert!(wrong.parse::<Trigger>().unwrap_err().contains("runqueue>X"), "{wrong}");
        }
    }

    #[test]
    fn waits_for_a_cpu_are_summed_over_cpus() {
        let text = "version 17\ntimestamp 4295\n\
                    cpu0 0 0 0 0 0 0 900 70 5\ndomain0 MC 3 0 0\ncpu1 0 0 0 0 0 0 800 30 5\n";
        assert_eq!(run_delay(text), Some(100));
        assert_eq!(ready_of("0.91 0.33 0.11 3/123 4711\n"), Some(3));
        assert_eq!(ready_of("0.91 0.33"), None);
        // Two threads on two CPUs, and the caller: none waits. With a third thread one does.
        assert_eq!((without_cpu(3, 2), without_cpu(4, 2), without_cpu(0, 2)), (0, 1, 0));
        assert_eq!(run_delay("version 17\n"), None);
        assert_eq!(run_delay("cpu0 1 2 3\n"), None);
    }
}
