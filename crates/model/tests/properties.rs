//! What must hold of the models whatever the figures: limits, order, conservation.

use holdup_model::{Ladder, Lock, Rung, Usl};
use proptest::prelude::*;

fn close(a: f64, b: f64, relative: f64) -> bool {
    (a - b).abs() <= relative * a.abs().max(b.abs()).max(1e-12)
}

proptest! {
    /// Effective power rises with the processors, to no more than the lock lets through, and nobody
    /// is lost: those who execute, wait and hold are all.
    #[test]
    fn a_lock_has_its_bound(hold in 0.01..5.0f64, think in 0.0..50.0f64, cpus in 1..64u32) {
        let lock = Lock { hold, think };
        let (here, more) = (lock.predict(cpus), lock.predict(cpus + 1));
        prop_assert!(more.throughput >= here.throughput * (1.0 - 1e-9));
        prop_assert!(more.effective_cpus >= here.effective_cpus * (1.0 - 1e-9));
        prop_assert!(here.throughput <= (1.0 + 1e-9) / hold);
        prop_assert!(here.effective_cpus <= lock.saturation().unwrap() * (1.0 + 1e-9));
        let all = here.throughput * (think + here.wait + hold);
        prop_assert!(close(all, f64::from(cpus), 1e-9), "{all} {cpus}");
    }


    /// The law that made a ladder is the one the fit finds.
    #[test]
    fn a_ladder_of_the_law_gives_the_law_back(
        sigma in 0.0..0.5f64, kappa in 0.0..0.05f64, one in 0.1..1e6f64,
    ) {
        let law = Usl { one_cpu: one, sigma, kappa, sigma_interval: None, kappa_interval: None };
        let rungs = [1, 2, 4, 8, 16]
            .map(|cpus| Rung { cpus, time: 1.0 / law.throughput(f64::from(cpus)) });
        let found = Usl::fit(&Ladder::new(rungs.to_vec()).unwrap()).unwrap();
        prop_assert!(close(found.one_cpu, one, 1e-6), "{found:?}");
        prop_assert!((found.sigma - sigma).abs() < 1e-6, "{found:?}");
        prop_assert!((found.kappa - kappa).abs() < 1e-6, "{found:?}");
    }

    /// Whatever the times are, no coefficient is below 0 and the interval holds the value.
    #[test]
    fn a_fit_is_a_law(times in prop::collection::vec(1e-3..1e3f64, 3..7)) {
        let rungs: Vec<Rung> =
            times.iter().enumerate().map(|(i, &time)| Rung { cpus: 1 << i, time }).collect();
        if let Some(law) = Usl::fit(&Ladder::new(rungs).unwrap()) {
            prop_assert!(law.one_cpu > 0.0 && law.sigma >= 0.0 && law.kappa >= 0.0, "{law:?}");
            let both = [(law.sigma, law.sigma_interval), (law.kappa, law.kappa_interval)];
            for (value, interval) in both {
                prop_assert!(interval.is_none_or(|i| i.low <= value && value <= i.high), "{law:?}");
            }
            prop_assert!(law.peak().is_none_or(|p| p >= 1.0));
        }
    }
}
