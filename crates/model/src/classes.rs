//! Threads with different demands: mean value analysis with several classes of customers (Reiser
//! and Lavenberg 1980, as in `network`).
//!
//! ```text
//! R_ck(N) = D_ck (1 + Q_k(N - e_c));   X_c(N) = N_c / (Z_c + sum over k of R_ck(N))
//! Q_k(N) = sum over c of X_c R_ck
//! ```
//!
//! It is exact if every class holds a station equally long each time. If not, it assumes that a
//! waiting customer finds holds of the others' mean length before it.
//!
//! The exact answer needs the answers for all smaller populations. If those are too many, Q_k(N -
//! e_c) is approximated by Q_k(N) less the fraction 1/N_c of class c's customers there (P.
//! Schweitzer, "Approximate Analysis of Multiclass Closed Networks of Queues", 1979), and the
//! equations are solved by iteration.

/// Customers with the same demands.
#[derive(Clone, Debug, PartialEq)]
pub struct Class {
    /// Number of customers.
    pub customers: u32,
    /// Mean time between their rounds, Z.
    pub think: f64,
    /// Time that each needs at each station in a round, D_k; all classes list the same stations.
    pub demands: Vec<f64>,
}

/// The throughput of a class of customers.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Served {
    /// Rounds per unit of time, of all its customers.
    pub throughput: f64,
    /// The number of its customers that do not wait.
    pub effective: f64,
}

/// Classes that share stations.
#[derive(Clone, Debug, PartialEq)]
pub struct Mix {
    /// The classes.
    pub classes: Vec<Class>,
}

/// The table of all populations holds no more numbers than this: some tens of megabytes.
const MOST_STATES: usize = 4_000_000;
/// Repetitions of the approximation, and the change of a queue at which it has settled.
const MOST_ROUNDS: usize = 10_000;
const SETTLED: f64 = 1e-9;

impl Mix {
    /// The throughput of each class: exact or, if that took too much memory, by Schweitzer's
    /// approximation. `None` without classes, or if they differ in their number of stations.
    pub fn solve(&self) -> Option<Vec<Served>> {
        let stations = self.classes.first()?.demands.len();
        if self.classes.iter().any(|c| c.demands.len() != stations) {
            return None;
        }
        let states = self.classes.iter().try_fold(stations.max(1), |product, class| {
            product.checked_mul(class.customers as usize + 1).filter(|&n| n <= MOST_STATES)
        });
        Some(match states {
            Some(states) => self.exactly(stations, states / stations.max(1)),
            None => self.nearly(stations),
        })
    }

    fn exactly(&self, stations: usize, states: usize) -> Vec<Served> {
        // A population is a number whose digits are the customers of each class.
        let mut strides = Vec::with_capacity(self.classes.len());
        let mut stride = 1;
        for class in &self.classes {
            strides.push(stride);
            stride *= class.customers as usize + 1;
        }
        let mut queues = vec![0.0; states * stations];
        let mut answer = vec![Served::default(); self.classes.len()];
        for population in 1..states {
            let mut now = vec![0.0; stations];
            for (c, class) in self.classes.iter().enumerate() {
                let there = population / strides[c] % (class.customers as usize + 1);
                if there == 0 {
                    answer[c] = Served::default();
                    continue;
                }
                let before = &queues[(population - strides[c]) * stations..][..stations];
                answer[c] = class.round(there as f64, |k| before[k], |k, there| now[k] += there);
            }
            queues[population * stations..][..stations].copy_from_slice(&now);
        }
        answer
    }

    fn nearly(&self, stations: usize) -> Vec<Served> {
        let all = self.classes.len();
        // Customers of each class at each station, at first evenly spread.
        let mut there: Vec<Vec<f64>> = self.classes.iter().map(|c| c.spread(stations)).collect();
        let mut answer = vec![Served::default(); all];
        for _ in 0..MOST_ROUNDS {
            let queues: Vec<f64> =
                (0..stations).map(|k| there.iter().map(|of_class| of_class[k]).sum()).collect();
            let mut moved = 0.0f64;
            for (c, class) in self.classes.iter().enumerate() {
                let customers = f64::from(class.customers);
                let mine = there[c].clone();
                let found = |k: usize| (queues[k] - mine[k] / customers.max(1.0)).max(0.0);
                let of_class = &mut there[c];
                answer[c] = class.round(customers, found, |k, n| of_class[k] = n);
                let change = |k: usize| (of_class[k] - mine[k]).abs();
                moved = (0..stations).map(change).fold(moved, f64::max);
            }
            if moved < SETTLED {
                break;
            }
        }
        answer
    }
}

impl Class {
    /// A round of `customers` of this class, each of which finds `queue` at a station. Their
    /// numbers at each station are put into `there`.
    fn round(
        &self,
        customers: f64,
        queue: impl Fn(usize) -> f64,
        mut there: impl FnMut(usize, f64),
    ) -> Served {
        let response = |(k, demand): (usize, &f64)| demand * (1.0 + queue(k));
        let round = self.think + self.demands.iter().enumerate().map(response).sum::<f64>();
        let throughput = customers / round.max(f64::MIN_POSITIVE);
        let mut waiting = 0.0;
        for (k, demand) in self.demands.iter().enumerate() {
            let response = response((k, demand));
            there(k, throughput * response);
            waiting += throughput * (response - demand);
        }
        Served { throughput, effective: customers - waiting }
    }

    /// Its customers, evenly spread over the stations and thinking.
    fn spread(&self, stations: usize) -> Vec<f64> {
        vec![f64::from(self.customers) / (stations + 1) as f64; stations]
    }
}
