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
        let wrong = || format!("is no condition; there are {SPELLINGS}");
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

/// How long threads waited for a CPU, all together: a figure that only grows.
#[derive(Debug)]
pub(crate) struct RunQueue {
    at: Instant,
    delay_ns: u64,
}

impl RunQueue {
    /// Begin; `None` if the kernel does not say (`CONFIG_SCHED_INFO`).
    pub(crate) fn begin() -> Option<RunQueue> {
        let delay_ns = run_delay(&fs::read_to_string("/proc/schedstat").ok()?)?;
        Some(RunQueue { at: Instant::now(), delay_ns })
    }

    /// Threads that waited on average since the last time. It goes up when a wait ends.
    pub(crate) fn since(&mut self) -> Option<f64> {
        let now = RunQueue::begin()?;
        let waited = now.delay_ns.saturating_sub(self.delay_ns) as f64;
        let took = now.at.duration_since(self.at).as_nanos() as f64;
        *self = now;
        (took > 0.0).then_some(waited / took)
    }
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
        assert_eq!(run_delay("version 17\n"), None);
        assert_eq!(run_delay("cpu0 1 2 3\n"), None);
    }
}
