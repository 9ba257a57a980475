//! Threads of unlike habits: exact mean value analysis with several classes of customers (Reiser
//! and Lavenberg 1980, as in `network`).
//!
//! ```text
//! R_ck(N) = D_ck (1 + Q_k(N - e_c));   X_c(N) = N_c / (Z_c + sum over k of R_ck(N))
//! Q_k(N) = sum over c of X_c R_ck
//! ```
//!
//! It is exact where every class holds a station equally long each time; where they do not, it
//! supposes that who waits finds the mean of the others' holds before it.

/// Customers of one habit.
#[derive(Clone, Debug, PartialEq)]
pub struct Class {
    /// How many.
    pub customers: u32,
    /// Mean time between their rounds, Z.
    pub think: f64,
    /// Time each needs of each station in a round, D_k; all classes name the same stations.
    pub demands: Vec<f64>,
}

/// Classes that share stations.
#[derive(Clone, Debug, PartialEq)]
pub struct Mix {
    /// The classes.
    pub classes: Vec<Class>,
}

/// The table of all populations holds no more numbers than this.
const MOST_STATES: usize = 4_000_000;

impl Mix {
    /// (rounds per unit of time, customers that do not wait) of each class. `None` where the
    /// classes disagree about the number of stations, or where there are so many customers of so
    /// many classes that the exact answer would take more than some tens of megabytes.
    pub fn solve(&self) -> Option<Vec<(f64, f64)>> {
        let stations = self.classes.first()?.demands.len();
        if self.classes.iter().any(|c| c.demands.len() != stations) {
            return None;
        }
        let states = self.classes.iter().try_fold(stations.max(1), |product, class| {
            product.checked_mul(class.customers as usize + 1).filter(|&n| n <= MOST_STATES)
        })? / stations.max(1);
        // A population is a number whose digits are the customers of each class.
        let mut strides = Vec::with_capacity(self.classes.len());
        let mut stride = 1;
        for class in &self.classes {
            strides.push(stride);
            stride *= class.customers as usize + 1;
        }
        let mut queues = vec![0.0; states * stations];
        let mut answer = vec![(0.0, 0.0); self.classes.len()];
        for population in 1..states {
            let mut now = vec![0.0; stations];
            for (c, class) in self.classes.iter().enumerate() {
                let there = population / strides[c] % (class.customers as usize + 1);
                if there == 0 {
                    answer[c] = (0.0, 0.0);
                    continue;
                }
                let before = (population - strides[c]) * stations;
                let response = |k: usize| class.demands[k] * (1.0 + queues[before + k]);
                let round = class.think + (0..stations).map(response).sum::<f64>();
                let rate = there as f64 / round.max(f64::MIN_POSITIVE);
                let mut waiting = 0.0;
                for (k, queue) in now.iter_mut().enumerate() {
                    *queue += rate * response(k);
                    waiting += rate * (response(k) - class.demands[k]);
                }
                answer[c] = (rate, there as f64 - waiting);
            }
            queues[population * stations..][..stations].copy_from_slice(&now);
        }
        Some(answer)
    }
}
