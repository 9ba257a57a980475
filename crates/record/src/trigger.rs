//! When a flight recorder writes what it has.

use std::fmt;
use std::fs;
use std::str::FromStr;
use std::time::Instant;

/// A condition on which the last seconds are wanted. A signal (`SIGUSR2`) is one always.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Trigger {
    /// Nothing but the signal.
    Signal,
    /// The command ends with another status than 0.
    Fails,
    /// The load average of a minute is above this.
    Load(f64),
    /// So many threads are ready and wait for a CPU, on average over a second.
    RunQueue(f64),
    /// So many threads wait for locks of the kernel, on average over a second.
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
    /// The signal came.
    Signal,
    /// The recorder was told to end, by this signal.
    Ended(i32),
    /// The command failed: its status, as shells tell it.
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

/// How many threads wait for a CPU.
#[derive(Debug)]
pub(crate) enum RunQueue {
    /// By the time that they waited, all together, which only grows.
    Delay {
        /// When it was looked at.
        at: Instant,
        /// What it was.
        ns: u64,
    },
    /// By how many are ready to run at some moments (`CONFIG_SCHED_INFO` is missing).
    Moments {
        /// Of each moment, the threads that have no CPU, and would have none without us.
        sum: u64,
        /// Moments.
        count: u64,
        /// CPUs there are.
        cpus: u64,
    },
}

impl RunQueue {
    /// Begin, on a machine with so many CPUs, recorded or not.
    pub(crate) fn begin(cpus: usize) -> RunQueue {
        match delay() {
            Some(ns) => RunQueue::Delay { at: Instant::now(), ns },
            None => RunQueue::Moments { sum: 0, count: 0, cpus: cpus as u64 },
        }
    }

    /// Look at a moment.
    pub(crate) fn look(&mut self) {
        if let (RunQueue::Moments { sum, count, cpus }, Some(ready)) = (self, ready()) {
            *sum += without_cpu(ready, *cpus);
            *count += 1;
        }
    }

    /// Threads that waited on average since the last time; `None` if the kernel does not say.
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

/// Of so many threads that run or want to, those that find no CPU. One of them is the thread that
/// asks: without it, who waits for its CPU would run.
fn without_cpu(ready: u64, cpus: u64) -> u64 {
    ready.saturating_sub(1).saturating_sub(cpus)
}

fn delay() -> Option<u64> {
    run_delay(&fs::read_to_string("/proc/schedstat").ok()?)
}

/// Threads that run or want to.
fn ready() -> Option<u64> {
    ready_of(&fs::read_to_string("/proc/loadavg").ok()?)
}

/// Of `0.91 0.33 0.11 3/123 4711` it is the 3.
fn ready_of(loadavg: &str) -> Option<u64> {
    loadavg.split(' ').nth(3)?.split_once('/')?.0.parse().ok()
}

/// Nanoseconds that threads waited for a CPU, of all CPUs. Of each `cpuN` line it is the eighth
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
        // Two threads on two CPUs, and the one that looks: nobody waits. A third thread does.
        assert_eq!((without_cpu(3, 2), without_cpu(4, 2), without_cpu(0, 2)), (0, 1, 0));
        assert_eq!(run_delay("version 17\n"), None);
        assert_eq!(run_delay("cpu0 1 2 3\n"), None);
    }
}
