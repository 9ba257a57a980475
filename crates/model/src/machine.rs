//! Locks on a machine: a number of threads, and the CPUs that execute them.
//!
//! Bier and Vernon's customers are processors: a waiter for the lock keeps its processor from all
//! other work. That is true of threads that spin, and if there is no other thread to run. With more
//! threads than CPUs, a thread that sleeps for a lock leaves its CPU to another, and CPUs idle only
//! while fewer threads are ready than there are CPUs.
//!
//! So let n threads share P CPUs, and let k of them be at the locks. The locks alone, with k
//! customers and no thinking, pass mu(k) threads per unit of time, and meanwhile b(k) = mu(k) · sum
//! D of them are held (mean value analysis, [`Network::solve`]). Their holders have a CPU each; the
//! other n - k threads share the remaining CPUs. That is a birth and death process:
//!
//! ```text
//! k -> k + 1  at the rate  min(n - k, P - b(k)) / Z
//! k -> k - 1  at the rate  mu(k)
//! ```
//!
//! Effective power is the mean number of busy CPUs, min(n - k, P - b(k)) + b(k).
//!
//! With n <= P the first rate is (n - k) / Z, and this is the closed network itself, solved by the
//! theorem of Chandy, Herzog and Woo ("Parametric Analysis of Queuing Networks", IBM J. R&D 19,
//! 1975): exactly N - X W. With one lock it is exact for more threads too, if times are
//! exponential. With several locks it assumes that the locks settle between two arrivals.

use crate::network::Network;

/// What a network does on a machine: means over time. `executing + ready + waiting + holding` is
/// the number of threads.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Load {
    /// Processors, P.
    pub cpus: u32,
    /// Threads, n.
    pub threads: u32,
    /// Rounds per unit of time.
    pub throughput: f64,
    /// Threads that execute outside the locks.
    pub executing: f64,
    /// Threads that are ready but have no CPU.
    pub ready: f64,
    /// Threads that wait for a lock.
    pub waiting: f64,
    /// Threads that hold a lock.
    pub holding: f64,
}

impl Load {
    /// CPUs that do work: effective power.
    pub fn effective_cpus(&self) -> f64 {
        (self.executing + self.holding).min(f64::from(self.usable()))
    }

    /// CPUs that the threads could have kept busy, less those that were busy.
    pub fn lost_cpus(&self) -> f64 {
        f64::from(self.usable()) - self.effective_cpus()
    }

    /// CPUs that the threads can use at all.
    pub fn usable(&self) -> u32 {
        self.cpus.min(self.threads)
    }
}

/// A fraction of the CPUs: with more threads than CPUs, a smaller loss does not tell the demand.
/// The model loses this little with any demand up to nearly saturation, and one burst of waiting,
/// such as threads that start together, loses more than all the rest.
const TOLD_APART: f64 = 0.01;

/// Weights are kept below this, so that none overflows.
const LARGE: f64 = 1e100;

impl Network {
    /// The behaviour of `threads` threads on `cpus` CPUs that sleep while they wait. Spinning
    /// threads are no more than the CPUs.
    pub fn on(&self, cpus: u32, threads: u32) -> Load {
        let power = f64::from(cpus);
        let demand: f64 = self.stations.iter().map(|s| s.demand).sum();
        // A tiny thinking time keeps the rates finite.
        let think = self.think.max(self.alone() * 1e-12).max(f64::MIN_POSITIVE);
        let mut states = vec![State { weight: 1.0, passed: 0.0, held: 0.0 }];
        if demand > 0.0 {
            let locks = Network { think: 0.0, stations: self.stations.clone() };
            locks.solve_each(threads, |solution| {
                let held = solution.throughput * demand;
                let share = if held > power { power / held } else { 1.0 };
                let (passed, held) = (solution.throughput * share, held * share);
                states.push(State { weight: 0.0, passed, held });
            });
        }
        let executing =
            |k: usize, held: f64| (f64::from(threads) - k as f64).min((power - held).max(0.0));
        for k in 1..states.len() {
            let before = states[k - 1];
            let arriving = executing(k - 1, before.held) / think;
            states[k].weight = before.weight * arriving / states[k].passed;
            if states[k].weight > LARGE {
                states[..=k].iter_mut().for_each(|s| s.weight /= LARGE);
            }
        }
        let all: f64 = states.iter().map(|s| s.weight).sum();
        let mean = |value: &dyn Fn(usize, &State) -> f64| {
            states.iter().enumerate().map(|(k, s)| s.weight / all * value(k, s)).sum::<f64>()
        };
        let at_locks = mean(&|k, _| k as f64);
        let (works, holding) = (mean(&|k, s| executing(k, s.held)), mean(&|_, s| s.held));
        Load {
            cpus,
            threads,
            throughput: works / think,
            executing: works,
            ready: (f64::from(threads) - at_locks - works).max(0.0),
            waiting: (at_locks - holding).max(0.0),
            holding,
        }
    }

    /// The demand of one lock that loses this many CPUs with `threads` threads on `cpus` CPUs, by
    /// bisection: a larger demand loses more. `None` if nothing is lost, which any small demand
    /// explains, and if there are more threads than CPUs and the loss is below `TOLD_APART`; 1 if
    /// even that does not explain the loss.
    pub fn demand_that_loses(lost: f64, cpus: u32, threads: u32) -> Option<f64> {
        let of = |demand: f64| {
            let stations = vec![crate::Station::lock(demand)];
            Network { think: 1.0 - demand, stations }.on(cpus, threads).lost_cpus()
        };
        let usable = f64::from(cpus.min(threads));
        let least = if threads > cpus { TOLD_APART * usable } else { 0.0 };
        if lost.is_nan() || lost <= least || usable < 2.0 {
            return None;
        }
        let (mut low, mut high) = (0.0, 1.0);
        for _ in 0..50 {
            let middle = (low + high) / 2.0;
            if of(middle) < lost { low = middle } else { high = middle }
        }
        Some((low + high) / 2.0)
    }
}

/// One state of the process.
#[derive(Clone, Copy)]
struct State {
    /// Proportional to its probability.
    weight: f64,
    /// Threads that leave the locks per unit of time.
    passed: f64,
    /// Locks held.
    held: f64,
}
