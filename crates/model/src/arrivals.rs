//! How long a lock is held in total if only the holds are seen that another thread waited for.
//!
//! A mutex of the threads library enters the kernel only if two threads want it at the same time.
//! All other holds leave no trace. But arrivals at the held lock are counted, and an arriving
//! customer finds it held with the probability with which it is held: the arrival theorem of closed
//! networks (Sevcik, Mitrani 1981; Reiser, Lavenberg 1980), on which mean value analysis rests. So
//! the number of customers that found it held tells how long it was held.

/// What is seen of a lock only by its waiters. Any unit of time, the same for all.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Arrivals {
    /// Customers that use it, N.
    pub customers: u32,
    /// How long each of them existed, T: the mean.
    pub alive: f64,
    /// How long each of them waited while another customer held it, W: the mean.
    pub waited: f64,
    /// How often a customer arrived and found it held, C: the sum over all customers.
    pub found_held: f64,
    /// Mean time it is held, x.
    pub hold: f64,
}

impl Arrivals {
    /// How long it was held in total, H, with the holds that no customer waited for. `None` if a
    /// single customer uses it, or if the figures do not tell.
    ///
    /// A customer is outside of the lock for T - W - H/N. Meanwhile the others hold it for
    /// H (N-1)/N, less those holds for which it waits, W. The quotient of the two is the chance to
    /// find it held, and H/x customers come: C = H/x (H (N-1)/N - W) / (T - W - H/N). The right
    /// side grows with H.
    pub fn held(self) -> Option<f64> {
        let Arrivals { customers, alive, waited, found_held, hold } = self;
        let n = f64::from(customers);
        let is_known = customers > 1 && hold > 0.0 && found_held > 0.0 && waited >= 0.0;
        if !is_known || alive <= waited || !alive.is_finite() {
            return None;
        }
        let found = |held: f64| {
            let by_others = held * (n - 1.0) / n - waited;
            let outside = (alive - waited - held / n).max(0.0);
            held * by_others.max(0.0) > found_held * hold * outside
        };
        // One customer at a time holds it.
        let (mut low, mut high) = (0.0, alive);
        for _ in 0..60 {
            let middle = (low + high) / 2.0;
            if found(middle) { high = middle } else { low = middle }
        }
        Some(low)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Two customers that hold for 1 and think for 1: each finds it held every second time, and
    /// waits for 1 then.
    #[test]
    fn who_waits_every_second_time_has_it_for_a_third() {
        let (rounds, cycle) = (1000.0, 2.5);
        let seen = Arrivals {
            customers: 2,
            alive: rounds * cycle,
            waited: rounds * 0.5,
            found_held: rounds,
            hold: 1.0,
        };
        // 2 x 1000 rounds of 1; half of them find it held.
        let held = seen.held().unwrap();
        assert!((held - 2000.0).abs() < 1e-6, "{held}");
    }

    #[test]
    fn alone_or_without_a_wait_nothing_is_told() {
        let seen = Arrivals { customers: 2, alive: 100.0, waited: 0.0, found_held: 5.0, hold: 1.0 };
        assert!(seen.held().is_some());
        assert_eq!(Arrivals { customers: 1, ..seen }.held(), None);
        assert_eq!(Arrivals { found_held: 0.0, ..seen }.held(), None);
        assert_eq!(Arrivals { hold: 0.0, ..seen }.held(), None);
        assert_eq!(Arrivals { waited: 100.0, ..seen }.held(), None);
    }

    proptest! {
        /// Whatever was seen, it is held no longer than there is time, and longer if more customers
        /// found it held.
        #[test]
        fn more_who_find_it_held_means_more_holding(
            customers in 2_u32..100,
            alive in 1.0..1e12,
            waited in 0.0..1.0,
            found in 1.0..1e6,
            hold in 1e-3..1e9,
        ) {
            let seen =
                Arrivals { customers, alive, waited: waited * alive, found_held: found, hold };
            let (Some(held), Some(more)) =
                (seen.held(), Arrivals { found_held: found * 2.0, ..seen }.held())
            else {
                return Ok(());
            };
            prop_assert!((0.0..=alive).contains(&held));
            prop_assert!(more >= held);
        }

        /// The exact solution of a closed network gives the figures; from them the time held comes
        /// back.
        #[test]
        fn the_closed_network_comes_back(cpus in 2_u32..16, demand in 0.01..0.5) {
            let lock = crate::Lock::of_demand(demand);
            let solved = lock.predict(cpus);
            // An arrival sees the network with one customer less.
            let busy = lock.predict(cpus - 1).utilization;
            let seen = Arrivals {
                customers: cpus,
                alive: 1e6,
                waited: 1e6 * solved.throughput * solved.wait / f64::from(cpus),
                found_held: 1e6 * solved.throughput * busy,
                hold: lock.hold,
            };
            let (held, is) = (seen.held().unwrap(), 1e6 * solved.utilization);
            prop_assert!((held / is - 1.0).abs() < 0.12, "{held} for {is}");
        }
    }
}
