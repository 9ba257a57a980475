//! What the models must satisfy for any figures: limits, order, conservation.

use holdup_model::{Class, Ladder, Lock, Mix, Network, Rung, Station, Usl};
use proptest::prelude::*;

fn close(a: f64, b: f64, relative: f64) -> bool {
    (a - b).abs() <= relative * a.abs().max(b.abs()).max(1e-12)
}

prop_compose! {
    fn network()(
        think in 0.0..50.0f64,
        stations in prop::collection::vec((0.01..5.0f64, 1..5u32), 1..5),
    ) -> Network {
        let stations =
            stations.into_iter().map(|(demand, servers)| Station { demand, servers }).collect();
        Network { think, stations }
    }
}

proptest! {
    /// Little's law for the whole: thinking and queueing customers are all customers.
    #[test]
    fn nobody_is_lost(network in network(), customers in 1..40u32) {
        let s = network.solve(customers);
        let there = s.queue.iter().sum::<f64>() + s.throughput * network.think;
        prop_assert!(close(there, f64::from(customers), 1e-6), "{there} {customers}");
    }

    /// No station is more than always busy, none answers faster than without queueing, and one
    /// customer more never reduces the throughput.
    #[test]
    fn throughput_rises_to_its_bound(network in network(), customers in 1..40u32) {
        let (s, more) = (network.solve(customers), network.solve(customers + 1));
        prop_assert!(s.throughput <= network.most().unwrap() * (1.0 + 1e-9));
        prop_assert!(more.throughput >= s.throughput * (1.0 - 1e-6));
        let alone = network.solve(1);
        let round = network.think + network.stations.iter().map(|s| s.demand).sum::<f64>();
        prop_assert!(close(alone.throughput, 1.0 / round, 1e-9));
        for (response, station) in s.response.iter().zip(&network.stations) {
            prop_assert!(*response >= station.demand * (1.0 - 1e-6));
        }
    }

    /// One ordinary lock is Bier and Vernon's model.
    #[test]
    fn one_station_is_one_lock(hold in 0.01..5.0f64, think in 0.0..50.0f64, cpus in 1..64u32) {
        let network = Network { think, stations: vec![Station::lock(hold)] };
        let (ours, lock) = (network.solve(cpus), Lock { hold, think }.predict(cpus));
        prop_assert!(close(ours.throughput, lock.throughput, 1e-9));
        prop_assert!(close(ours.effective(&network), lock.effective_cpus, 1e-9));
        prop_assert!(lock.effective_cpus <= f64::from(cpus) && lock.effective_cpus >= 0.99);
    }

    /// With as many servers as customers, no customer waits.
    #[test]
    fn servers_for_all_leave_no_wait(demand in 0.01..5.0f64, customers in 1..20u32) {
        let station = Station { demand, servers: customers };
        let network = Network { think: 1.0, stations: vec![station] };
        let s = network.solve(customers);
        prop_assert!(close(s.response[0], demand, 1e-6));
        prop_assert!(close(s.effective(&network), f64::from(customers), 1e-6));
    }

    /// Classes with the same demands are one class.
    #[test]
    fn like_classes_are_one(
        think in 0.0..20.0f64,
        demands in prop::collection::vec(0.01..3.0f64, 1..4),
        (a, b) in (0..8u32, 1..8u32),
    ) {
        let class = |customers| Class { customers, think, demands: demands.clone() };
        let both = Mix { classes: vec![class(a), class(b)] }.solve().unwrap();
        let stations = demands.iter().map(|&d| Station::lock(d)).collect();
        let network = Network { think, stations };
        let one = network.solve(a + b);
        let effective = both.iter().map(|c| c.effective).sum::<f64>();
        prop_assert!(close(both.iter().map(|c| c.throughput).sum(), one.throughput, 1e-9));
        prop_assert!(close(effective, one.effective(&network), 1e-9));
    }

    /// Effective power rises with the processors, up to what the lock lets through, and executing,
    /// waiting and holding processors are all processors.
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

    /// With no more threads than CPUs it is the closed network itself, whatever the locks.
    #[test]
    fn a_cpu_for_each_thread_is_the_closed_network(
        network in network(), threads in 1..32u32, spare in 0..32u32,
    ) {
        let (load, closed) = (network.on(threads + spare, threads), network.solve(threads));
        prop_assert!(close(load.throughput, closed.throughput, 1e-6), "{load:?} {closed:?}");
        let effective = closed.effective(&network);
        prop_assert!(close(load.effective_cpus(), effective, 1e-6), "{load:?} {effective}");
    }

    /// Threads are executing, ready, waiting or holding; the executing ones obey Little's law; no
    /// more CPUs work than there are; no more rounds are made than CPUs and locks allow.
    #[test]
    fn every_thread_is_somewhere(network in network(), cpus in 1..32u32, threads in 1..64u32) {
        let load = network.on(cpus, threads);
        let all = load.executing + load.ready + load.waiting + load.holding;
        prop_assert!(close(all, f64::from(threads), 1e-6), "{load:?}");
        prop_assert!(close(load.executing, load.throughput * network.think, 1e-6), "{load:?}");
        let held = load.throughput * network.stations.iter().map(|s| s.demand).sum::<f64>();
        prop_assert!(close(load.holding, held, 1e-6), "{load:?} {held}");
        prop_assert!(load.executing + load.holding <= f64::from(cpus) * (1.0 + 1e-9), "{load:?}");
        prop_assert!(load.throughput <= network.most().unwrap() * (1.0 + 1e-6), "{load:?}");
        let power = f64::from(cpus) / network.alone();
        prop_assert!(load.throughput <= power * (1.0 + 1e-6), "{load:?} {power}");
    }

    /// One CPU or one thread more never does less, and a longer hold never does more.
    #[test]
    fn more_of_either_does_no_harm(
        hold in 0.01..5.0f64, think in 0.0..50.0f64, cpus in 1..16u32, threads in 1..48u32,
    ) {
        let of = |hold, cpus, threads| {
            Lock { hold, think }.network().on(cpus, threads).throughput
        };
        let here = of(hold, cpus, threads) * (1.0 - 1e-9);
        prop_assert!(of(hold, cpus + 1, threads) >= here);
        prop_assert!(of(hold, cpus, threads + 1) >= here);
        prop_assert!(of(hold * 0.9, cpus, threads) >= here);
    }

    /// One CPU loses nothing to a lock whose waiters sleep, and sleeping never costs more than
    /// spinning.
    #[test]
    fn who_sleeps_leaves_its_cpu_to_others(
        demand in 0.0..1.0f64, cpus in 1..16u32, more in 0..32u32,
    ) {
        let lock = Lock::of_demand(demand);
        prop_assert!(lock.network().on(1, cpus + more).lost_cpus() < 1e-9);
        let (sleeps, spins) = (lock.network().on(cpus, cpus + more), lock.predict(cpus));
        prop_assert!(sleeps.effective_cpus() >= spins.effective_cpus * (1.0 - 1e-9));
    }

    /// The loss of a demand gives the demand back.
    #[test]
    fn a_loss_tells_the_demand(demand in 0.02..0.98f64, cpus in 2..16u32, more in 0..8u32) {
        let threads = cpus + more;
        let lost = Lock::of_demand(demand).network().on(cpus, threads).lost_cpus();
        prop_assume!(lost > 1e-6 && (threads == cpus || lost > 0.01 * f64::from(cpus)));
        let found = Network::demand_that_loses(lost, cpus, threads).unwrap();
        prop_assert!(close(found, demand, 1e-4), "{found} {demand}");
    }

    /// The fit finds the law that made a ladder.
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

    /// Whatever the times are, no coefficient is below 0 and the interval contains the value.
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

/// A thread that seldom takes the lock is delayed less than one that often takes it.
#[test]
fn unlike_threads_wait_unlike() {
    let mix = Mix {
        classes: vec![
            Class { customers: 4, think: 1.0, demands: vec![1.0] },
            Class { customers: 1, think: 50.0, demands: vec![1.0] },
        ],
    };
    let answer = mix.solve().unwrap();
    let (often, seldom) = (answer[0], answer[1]);
    assert!(often.effective < 2.0, "four threads at a lock of demand 0.5: {often:?}");
    assert!(
        (0.9..0.97).contains(&seldom.effective),
        "one that waits 4 at a time in 54: {seldom:?}"
    );
}

/// A mix whose exact answer would take gigabytes is approximated: equal classes are one network,
/// and the approximation is within 2 % of it. A mix of unequal classes keeps the bounds.
#[test]
fn a_mix_too_large_is_solved_nearly() {
    for demand in [0.0001, 0.0004, 0.002, 0.1] {
        let class = Class { customers: 1000, think: 1.0 - demand, demands: vec![demand] };
        let near = Mix { classes: vec![class.clone(), class.clone(), class] }.solve().unwrap();
        let network = Network { think: 1.0 - demand, stations: vec![Station::lock(demand)] };
        let exact = network.solve(3000).effective(&network);
        let sum: f64 = near.iter().map(|c| c.effective).sum();
        assert!(close(sum, exact, 0.02), "demand {demand}: {sum} is not {exact}");
    }
    let class = |demand: f64| Class { customers: 3000, think: 1.0, demands: vec![demand, 0.1] };
    let unlike = Mix { classes: vec![class(0.5), class(0.0)] }.solve().unwrap();
    let passed: f64 = unlike.iter().map(|c| c.throughput).sum();
    assert!((9.9..10.0001).contains(&passed), "the second station passes ten: {unlike:?}");
    assert!(unlike[0].throughput < unlike[1].throughput, "{unlike:?}");
}

#[test]
fn no_mix_no_answer() {
    let class = |demands: &[f64]| Class { customers: 1, think: 1.0, demands: demands.to_vec() };
    assert_eq!(Mix { classes: vec![] }.solve(), None);
    assert_eq!(Mix { classes: vec![class(&[1.0]), class(&[1.0, 1.0])] }.solve(), None);
}
