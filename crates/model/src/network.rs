//! Several stations, one kind of customer: exact mean value analysis of a closed network
//! (M. Reiser, S. Lavenberg, "Mean-Value Analysis of Closed Multichain Queuing Networks", JACM 27,
//! 1980).
//!
//! A queueing station k whose speed does not depend on its queue:
//!
//! ```text
//! R_k(n) = D_k (1 + Q_k(n-1));   X(n) = n / (Z + sum R_k(n));   Q_k(n) = X(n) R_k(n)
//! ```
//!
//! A station that works faster with a longer queue (a server with several threads) needs the
//! probabilities p_k(j | n) of j customers being there, with a_k(j) the speed with j customers,
//! relative to one:
//!
//! ```text
//! R_k(n) = sum over j = 1 … n of  j D_k / a_k(j) · p_k(j-1 | n-1)
//! p_k(j | n) = D_k / a_k(j) · X(n) · p_k(j-1 | n-1)
//! p_k(0 | n) = 1 - sum over j > 0 of p_k(j | n)
//! ```

/// A place where customers may have to queue.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Station {
    /// Time that each customer needs there between two times of thinking, without waiting: number
    /// of visits times the mean time of a visit.
    pub demand: f64,
    /// How many customers it serves at once; 1 for an ordinary lock.
    pub servers: u32,
}

impl Station {
    /// An ordinary lock.
    pub fn lock(demand: f64) -> Station {
        Station { demand, servers: 1 }
    }

    /// Its speed with `customers` there, relative to one.
    fn speed(&self, customers: usize) -> f64 {
        f64::from(self.servers.max(1)).min(customers as f64)
    }

    /// p(j | n) for all j up to n, from p(j | n-1).
    fn chances(&self, n: usize, throughput: f64, before: &[f64]) -> Vec<f64> {
        let mut now = vec![0.0; n + 1];
        for j in 1..=n {
            now[j] = self.demand / self.speed(j) * throughput * before[j - 1];
        }
        let some: f64 = now[1..].iter().sum();
        // With many customers this difference of nearly equal numbers loses its digits (Reiser
        // 1981); then the sum is 1 except for a rounding error.
        now[0] = (1.0 - some).max(0.0);
        let all = now[0] + some;
        now.iter_mut().for_each(|p| *p /= all);
        now
    }
}

/// A closed network: customers think, then go through all stations, then think again.
#[derive(Clone, Debug, PartialEq)]
pub struct Network {
    /// Mean time of thinking, Z: of executing outside the stations.
    pub think: f64,
    /// The stations where customers may queue.
    pub stations: Vec<Station>,
}

/// What the network does with some number of customers.
#[derive(Clone, Debug, PartialEq)]
pub struct Solution {
    /// Customers, n.
    pub customers: u32,
    /// Rounds per unit of time, X.
    pub throughput: f64,
    /// For each station: mean time spent there in a round, with waiting, R_k.
    pub response: Vec<f64>,
    /// For each station: mean number there, waiting or served, Q_k.
    pub queue: Vec<f64>,
}

impl Solution {
    /// Customers that do not wait: n - X · sum (R_k - D_k), the effective power of Bier and Vernon.
    pub fn effective(&self, network: &Network) -> f64 {
        let waits = self.response.iter().zip(&network.stations).map(|(r, s)| r - s.demand);
        f64::from(self.customers) - self.throughput * waits.sum::<f64>()
    }
}

impl Network {
    /// Solve for `customers`. The time grows with customers times stations, and with customers
    /// squared if a station has several servers.
    pub fn solve(&self, customers: u32) -> Solution {
        let mut last = None;
        self.solve_each(customers, |solution| last = Some(solution.clone()));
        last.unwrap_or_else(|| self.empty())
    }

    /// Solve for 1, 2 … `customers`: each solution needs the previous one.
    pub(crate) fn solve_each(&self, customers: u32, mut found: impl FnMut(&Solution)) {
        let mut solution = self.empty();
        // p_k(j | n-1), for the stations that need it.
        let mut chances = vec![vec![1.0]; self.stations.len()];
        for n in 1..=customers {
            solution.customers = n;
            for (k, station) in self.stations.iter().enumerate() {
                solution.response[k] = if station.servers <= 1 {
                    station.demand * (1.0 + solution.queue[k])
                } else {
                    let there = |j: usize| j as f64 / station.speed(j) * chances[k][j - 1];
                    station.demand * (1..=n as usize).map(there).sum::<f64>()
                };
            }
            let round = self.think + solution.response.iter().sum::<f64>();
            solution.throughput = f64::from(n) / round.max(f64::MIN_POSITIVE);
            for (k, station) in self.stations.iter().enumerate() {
                solution.queue[k] = solution.throughput * solution.response[k];
                if station.servers > 1 {
                    chances[k] = station.chances(n as usize, solution.throughput, &chances[k]);
                }
            }
            found(&solution);
        }
    }

    fn empty(&self) -> Solution {
        Solution {
            customers: 0,
            throughput: 0.0,
            response: self.stations.iter().map(|s| s.demand).collect(),
            queue: vec![0.0; self.stations.len()],
        }
    }

    /// Time of a round of a single customer: Z + sum D_k.
    pub fn alone(&self) -> f64 {
        self.think + self.stations.iter().map(|s| s.demand).sum::<f64>()
    }

    /// The upper bound of rounds per unit of time for any number of customers: the slowest station
    /// is always busy. `None` without a station that takes time.
    pub fn most(&self) -> Option<f64> {
        let slowest = |s: &Station| s.demand / f64::from(s.servers.max(1));
        let most = self.stations.iter().map(slowest).fold(0.0, f64::max);
        (most > 0.0).then(|| 1.0 / most)
    }

    /// The number of customers at which the slowest station limits the throughput: (Z + sum D_k) ·
    /// most; 1 / D of one lock. `None` without a station that takes time.
    pub fn saturation(&self) -> Option<f64> {
        self.most().map(|most| self.alone() * most)
    }
}
