//! One lock and the processors that want it: the closed model of Bier and Vernon ("Measurement and
//! Prediction of Contention in Multiprocessor Operating Systems", 1988, section 2).
//!
//! N processors execute for a while (mean Z), queue for one lock, hold it (mean x), and begin
//! again. That is a closed network with one ordinary station, which mean value analysis solves
//! exactly (`network`).

use crate::network::{Network, Station};

/// A note for predictions.
pub const OPTIMISM: &str = "according to its authors, the model is 2 to 5 % optimistic, and up to \
                            10 % at very high demand";

/// A lock and the processors' demand for it. Any unit of time, the same for both.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Lock {
    /// Mean time it is held, x.
    pub hold: f64,
    /// Mean time between a processor's release and its next request, Z.
    pub think: f64,
}

/// The model's answer for one number of processors.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Prediction {
    /// Processors, N.
    pub cpus: u32,
    /// Acquisitions per unit of time, X.
    pub throughput: f64,
    /// Mean time from request to acquisition, W = R - x.
    pub wait: f64,
    /// Part of the time the lock is held, 0 to 1.
    pub utilization: f64,
    /// Processors that do not wait: N - X W.
    pub effective_cpus: f64,
}

impl Lock {
    /// A lock that each processor would hold for this fraction of its time, 0 to 1, if it were
    /// alone; its mean hold time is the unit of time.
    pub fn of_demand(demand: f64) -> Lock {
        let demand = demand.clamp(0.0, 1.0);
        if demand == 0.0 {
            Lock { hold: 0.0, think: 1.0 }
        } else {
            Lock { hold: 1.0, think: 1.0 / demand - 1.0 }
        }
    }

    /// The fraction of its time that a processor alone would hold the lock: D = x / (x + Z).
    pub fn demand(self) -> f64 {
        if self.hold + self.think > 0.0 { self.hold / (self.hold + self.think) } else { 0.0 }
    }

    /// The number of processors that keeps the lock busy all the time: 1 / D. More do not help.
    pub fn saturation(self) -> Option<f64> {
        (self.demand() > 0.0).then(|| 1.0 / self.demand())
    }

    /// The network that consists of this lock alone.
    pub fn network(self) -> Network {
        Network { think: self.think, stations: vec![Station::lock(self.hold)] }
    }

    /// Solve the network for `cpus` processors that spin for the lock.
    pub fn predict(self, cpus: u32) -> Prediction {
        let network = self.network();
        let solution = network.solve(cpus);
        Prediction {
            cpus,
            throughput: solution.throughput,
            wait: solution.response[0] - self.hold,
            utilization: (solution.throughput * self.hold).min(1.0),
            effective_cpus: solution.effective(&network),
        }
    }
}

/// What was measured about a lock on a running system.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Measured {
    /// Processors, N.
    pub cpus: u32,
    /// Acquisitions per unit of time over all processors, L.
    pub throughput: f64,
    /// Mean time it is held, x.
    pub hold: f64,
    /// Mean time from request to acquisition, W.
    pub wait: f64,
}

impl Measured {
    /// The lock: Z = N/L - W - x. `None` if the figures contradict each other (Z below 0) or
    /// nothing was acquired.
    pub fn lock(self) -> Option<Lock> {
        let think = f64::from(self.cpus) / self.throughput - self.wait - self.hold;
        (self.throughput > 0.0 && think >= 0.0 && self.hold >= 0.0)
            .then_some(Lock { hold: self.hold, think })
    }

    /// Processors lost to waiting: L W.
    pub fn lost_cpus(self) -> f64 {
        self.throughput * self.wait
    }

    /// Effective computing power: N - L W.
    pub fn effective_cpus(self) -> f64 {
        f64::from(self.cpus) - self.lost_cpus()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bier and Vernon's Table 1: CPUs, requests/s, mean duration and wait in microseconds,
    /// measured demand in %, effective processing power measured and predicted.
    pub(crate) const TABLE_1: [(u32, f64, f64, f64, f64, f64, f64); 12] = [
        (2, 3896.0, 121.0, 58.0, 26.64, 1.78, 1.87),
        (4, 5940.0, 125.0, 163.0, 24.40, 3.03, 3.21),
        (2, 42.0, 99.0, 24.0, 0.21, 2.0, 2.0),
        (4, 72.0, 87.0, 14.0, 0.16, 4.0, 4.0),
        (2, 254.0, 86.0, 8.0, 1.10, 2.0, 2.0),
        (4, 1244.0, 119.0, 58.0, 3.76, 3.93, 3.98),
        (2, 694.0, 157.0, 70.0, 5.59, 1.95, 1.99),
        (4, 1700.0, 149.0, 108.0, 6.65, 3.81, 3.94),
        (2, 3574.0, 190.0, 129.0, 44.12, 1.54, 1.67),
        (4, 4462.0, 202.0, 374.0, 38.69, 2.33, 2.44),
        (2, 151.0, 41.0, 11.0, 0.31, 2.0, 2.0),
        (4, 127.0, 38.0, 9.0, 0.12, 4.0, 4.0),
    ];

    /// As close to the published figure as its last digit allows.
    fn close(ours: f64, theirs: f64) -> bool {
        (ours - theirs).abs() <= 0.0101
    }

    #[test]
    fn table_1_is_reproduced() {
        for (cpus, rate, hold, wait, demand, measured, predicted) in TABLE_1 {
            let m = Measured { cpus, throughput: rate, hold: hold * 1e-6, wait: wait * 1e-6 };
            let lock = m.lock().unwrap();
            assert!(
                (lock.demand() * 100.0 - demand).abs() <= 0.1,
                "{cpus} {rate}: demand {} is not {demand}",
                lock.demand() * 100.0
            );
            assert!(
                close(m.effective_cpus(), measured),
                "{cpus} {rate}: measured {} is not {measured}",
                m.effective_cpus()
            );
            for lock in [lock, Lock::of_demand(demand / 100.0)] {
                let ours = lock.predict(cpus).effective_cpus;
                assert!(
                    close(ours, predicted),
                    "{cpus} {rate}: predicted {ours} is not {predicted}"
                );
            }
        }
    }

    #[test]
    fn sixteen_processors_as_in_figure_2_3() {
        for (demand, power) in [(0.04, 15.3), (0.05, 14.7), (0.06, 13.9)] {
            let ours = Lock::of_demand(demand).predict(16).effective_cpus;
            assert!((ours - power).abs() < 0.05, "{demand}: {ours} is not {power}");
        }
    }

    /// One per cent of demand is not saturated with 64 processors, as in figure 2.2; saturation is
    /// where the straight lines of few and of many processors meet.
    #[test]
    fn saturation_as_in_figure_2_2() {
        let one = Lock::of_demand(0.01);
        assert!((one.saturation().unwrap() - 100.0).abs() < 1e-9);
        let here = one.predict(64);
        assert!(here.effective_cpus > 0.97 * 64.0 && here.utilization < 0.65, "{here:?}");
        for demand in [0.02, 0.05, 0.15] {
            let lock = Lock::of_demand(demand);
            let most = lock.predict(10_000).effective_cpus;
            assert!((most - lock.saturation().unwrap()).abs() < 1e-6, "{demand}: {most}");
        }
        // "A 5 % demand ... the degradation is about 10 % with 16 processors".
        let loss = 1.0 - Lock::of_demand(0.05).predict(16).effective_cpus / 16.0;
        assert!((0.07..0.11).contains(&loss), "{loss}");
    }

    #[test]
    fn beyond_saturation_nothing_is_gained() {
        let lock = Lock::of_demand(0.05);
        assert!((lock.saturation().unwrap() - 20.0).abs() < 1e-9);
        let (a, b) = (lock.predict(64), lock.predict(128));
        assert!(
            b.effective_cpus - a.effective_cpus < 1e-6
                && (b.effective_cpus - 20.0).abs() < 1e-6
                && b.utilization > 0.999_999
        );
    }

    /// Figures of docs/models.md.
    #[test]
    fn threads_to_spare_hide_a_lock() {
        let lock = Lock::of_demand(0.25);
        let spins = 1.0 - lock.predict(2).effective_cpus / 2.0;
        let sleeps = lock.network().on(2, 8).lost_cpus() / 2.0;
        assert!((spins - 0.059).abs() < 5e-4 && (sleeps - 0.0001).abs() < 5e-5, "{spins} {sleeps}");
    }

    #[test]
    fn edges_have_answers() {
        assert_eq!(Lock::of_demand(0.0).predict(8).effective_cpus, 8.0);
        assert_eq!(Lock::of_demand(0.0).saturation(), None);
        assert!((Lock::of_demand(1.0).predict(8).effective_cpus - 1.0).abs() < 1e-9);
        assert_eq!(Lock { hold: 0.0, think: 0.0 }.demand(), 0.0);
        assert_eq!(Lock::of_demand(0.3).predict(0).effective_cpus, 0.0);
        assert_eq!(Measured { cpus: 2, throughput: 0.0, hold: 1.0, wait: 1.0 }.lock(), None);
        assert_eq!(Measured { cpus: 2, throughput: 10.0, hold: 1.0, wait: 1.0 }.lock(), None);
    }
}
