use super::*;
use crate::stats::spread::median;

fn ask(alpha: f64, least: f64) -> Ask {
    Ask { alpha, least }
}

/// Within three standard errors of the simulation, at least one repetition in 200.
fn near(found: f64, known: f64, what: &str) {
    let error = (known * (1.0 - known) / REPETITIONS as f64).sqrt().max(0.002);
    assert!((found - known).abs() <= 3.0 * error, "{what}: {found}, known {known}");
}

/// From an earlier simulation with 100,000 repetitions: normal values whose second side is
/// *multiplied* by 1.25, so that its spread grows too, and a level of 1 % *one-sided*. With 5 runs
/// per side that takes a U of 24 of 25. At 1 % two-sided 25, and 98.2 % and 47.0 % are detected.
#[test]
fn the_chances_are_those_of_a_longer_simulation() {
    let chance = |alpha, spread, change| {
        chance(Noise::Normal(spread), change, Runs::each(5), &ask(alpha, 0.0)).unwrap()
    };
    near(chance(0.01, 0.05, 0.25), 0.9964, "one-sided, 5 %");
    near(chance(0.01, 0.10, 0.25), 0.6283, "one-sided, 10 %");
    near(chance(0.005, 0.05, 0.25), 0.9822, "two-sided, 5 %");
    near(chance(0.005, 0.10, 0.25), 0.4703, "two-sided, 10 %");
    // The sides drift apart by 5 % although nothing changed: a false alarm.
    near(chance(0.01, 0.05, 0.05), 0.1224, "drift of 5 %");
    // Without a drift it is the level: 2 of 252.
    near(chance(0.01, 0.05, 0.0), 2.0 / 252.0, "no change");
}

/// A drift does not affect pairs. The longer simulation had 100,000 repetitions of 10 pairs of
/// normal values with a spread of 5 %: the test alone makes as many false alarms as its level says,
/// and half as many if growth of 5 % is required too.
#[test]
fn false_alarms_of_pairs_are_those_of_a_longer_simulation() {
    let mut g = Generator::new(11);
    let (mut by_p, mut by_both) = (0, 0);
    const COMPARISONS: usize = 20_000;
    for _ in 0..COMPARISONS {
        // The machine becomes slower by 5 % from pair to pair.
        let drift: Vec<f64> = (0..10).map(|k| 1.05f64.powi(k)).collect();
        let mut side =
            || -> Vec<f64> { drift.iter().map(|d| d * (1.0 + 0.05 * g.normal())).collect() };
        let (a, b) = (side(), side());
        if pairs::greater(&a, &b).unwrap().p <= 0.01 {
            by_p += 1;
            by_both += usize::from(median(&pairs::ratios(&a, &b)).unwrap() >= 1.05);
        }
    }
    let rate = |alarms: usize| alarms as f64 / COMPARISONS as f64;
    assert!((rate(by_p) - 0.0098).abs() < 0.002, "{}", rate(by_p));
    assert!((rate(by_both) - 0.0046).abs() < 0.0015, "{}", rate(by_both));
}

/// Ten values like those of a normal distribution with a spread of 5 %, by its quantiles.
const TEN: [f64; 10] = [91.8, 94.8, 96.6, 98.1, 99.4, 100.6, 101.9, 103.4, 105.2, 108.2];

#[test]
fn values_at_hand_are_drawn_from_as_if_from_their_distribution() {
    let spread = deviation(&TEN).unwrap() / 100.0;
    for change in [0.05, 0.1, 0.15] {
        let chance = |noise| chance(noise, change, Runs::each(8), &ask(0.01, 0.0)).unwrap();
        let (drawn, normal) = (chance(Noise::Runs(&TEN)), chance(Noise::Normal(spread)));
        assert!((drawn - normal).abs() < 0.08, "{change}: {drawn}, normal {normal}");
    }
}

/// The simulation decides as the tests do.
#[test]
fn the_simulation_decides_like_the_tests() {
    let source = Source::like(&TEN).unwrap();
    let (mut g, ask) = (Generator::new(5), ask(0.01, 0.05));
    let mut caught = [0, 0];
    for _ in 0..300 {
        let (a, mut b) = (source.sorted(7, &mut g), source.sorted(9, &mut g));
        let critical = ranks::critical(7, 9, ask.alpha).unwrap();
        let quick = twice_u(&a, &b, 1.07) >= 2 * critical;
        b.iter_mut().for_each(|v| *v *= 1.07);
        let found = ranks::greater(&a, &b).unwrap();
        assert_eq!(quick, found.p <= ask.alpha, "{a:?} {b:?}");
        caught[0] += usize::from(quick);

        let logs: Vec<f64> = a.iter().map(|v| (v / 98.0).ln()).collect();
        let critical = pairs::critical(7, ask.alpha).unwrap();
        let quick = signed_ranks(&logs, 0.04) >= critical;
        let grown: Vec<f64> = logs.iter().map(|l| (l + 0.04).exp()).collect();
        let found = pairs::greater(&[1.0; 7], &grown).unwrap();
        assert_eq!(found.statistic, signed_ranks(&logs, 0.04) as f64);
        assert_eq!(quick, found.p <= ask.alpha, "{logs:?}");
        caught[1] += usize::from(quick);
    }
    assert!(caught.iter().all(|c| (30..270).contains(c)), "{caught:?}: says little");
}

#[test]
fn equal_values_are_counted_half() {
    assert_eq!(twice_u(&[1.0, 2.0, 2.0, 5.0], &[2.0, 2.0, 6.0], 1.0), 4 + 4 + 8);
    assert_eq!(twice_u(&[1.0; 3], &[1.0; 4], 1.0), 12);
    assert_eq!(signed_ranks(&[0.0, 0.0, 0.0], 0.0), 0);
    assert_eq!(signed_ranks(&[-1.0, 2.0, 3.0], 0.0), 5);
}

#[test]
fn a_curve_never_falls_and_is_the_same_on_every_call() {
    let changes: Vec<f64> = (0..40).map(|k| f64::from(k) * 0.01).collect();
    for noise in [Noise::Runs(&TEN), Noise::Normal(0.1), Noise::Ratios(&[0.9, 1.0, 1.1, 1.2, 0.95])]
    {
        let found = curve(noise, &changes, Runs { a: 10, b: 7 }, &ask(0.01, 0.05)).unwrap();
        assert!(found.windows(2).all(|w| w[0] <= w[1]), "{noise:?}: {found:?}");
        assert!(found[0] < 0.02 && found[39] > 0.9, "{noise:?}: {found:?}");
        let again = curve(noise, &changes, Runs { a: 10, b: 7 }, &ask(0.01, 0.05)).unwrap();
        assert_eq!(found, again);
    }
    let backwards: Vec<f64> = TEN.iter().rev().copied().collect();
    let of = |values: &[f64]| curve(Noise::Runs(values), &changes, Runs::each(5), &ask(0.01, 0.0));
    assert_eq!(of(&TEN), of(&backwards));
}

#[test]
fn the_smallest_change_is_where_the_curve_reaches_the_power() {
    let (noise, runs, ask) = (Noise::Runs(&TEN), Runs::each(8), ask(0.01, 0.05));
    let smallest = smallest_change(noise, runs, &ask, 0.8).unwrap();
    assert!(chance(noise, smallest, runs, &ask).unwrap() >= 0.8);
    assert!(chance(noise, smallest - 0.001, runs, &ask).unwrap() < 0.8);
    // Three runs per side never reach 1 %: the least is 1 of 20.
    assert_eq!(smallest_change(noise, Runs::each(3), &ask, 0.8), None);
    assert_eq!(chance(noise, 5.0, Runs::each(3), &ask), Some(0.0));
}

#[test]
fn the_least_change_asked_for_is_caught_half_the_time_at_best() {
    let found = chance(Noise::Normal(0.02), 0.1, Runs::each(30), &ask(0.01, 0.1)).unwrap();
    near(found, 0.5, "a change as large as the least");
}

#[test]
fn runs_needed_are_the_first_that_reach_the_power() {
    let (noise, ask) = (Noise::Normal(0.1), ask(0.01, 0.05));
    let needed = runs_needed(noise, 0.25, &ask, 0.9).unwrap();
    assert!(chance(noise, 0.25, Runs::each(needed), &ask).unwrap() >= 0.9);
    assert!(chance(noise, 0.25, Runs::each(needed - 1), &ask).unwrap() < 0.9);
    assert!((6..=10).contains(&needed), "{needed}");
    // Pairs with the noise of two runs each: 7 pairs are the first whose least p is below 1 %.
    let ratios = [0.9, 1.1, 0.95, 1.05, 1.0, 0.87, 1.12];
    assert!(runs_needed(Noise::Ratios(&ratios), 0.5, &ask, 0.9).unwrap() == 7);
    assert_eq!(runs_needed(noise, 0.01, &ask, 0.9), None, "below the least that is asked for");
    assert_eq!(runs_needed(Noise::Normal(0.0), 0.25, &ask, 0.9), Some(5));
}

#[test]
fn what_shows_no_spread_has_no_power() {
    let chance = |noise| chance(noise, 0.25, Runs::each(5), &ask(0.01, 0.0));
    assert_eq!(chance(Noise::Runs(&[])), None);
    assert_eq!(chance(Noise::Runs(&[3.0])), None);
    assert_eq!(chance(Noise::Runs(&[0.0; 8])), None);
    assert_eq!(chance(Noise::Ratios(&[1.0, 0.0, 2.0])), None);
    assert_eq!(chance(Noise::Ratios(&[1.0, -1.0])), None);
    assert_eq!(chance(Noise::Normal(-1.0)), None);
    assert_eq!(chance(Noise::Normal(f64::NAN)), None);
    assert_eq!(chance(Noise::Runs(&[3.0; 8])), Some(1.0), "without noise every change is seen");
    // Two values are taken to be normal.
    assert!(chance(Noise::Runs(&[99.0, 101.0])).unwrap() > 0.99);
}

/// The given pairs may contain the very change that is looked for; their noise does not.
#[test]
fn what_all_ratios_have_in_common_is_no_noise() {
    let ratios = [0.97, 1.02, 1.0, 0.95, 1.05, 1.01, 0.99, 1.03];
    let grown = ratios.map(|r| r * 1.25);
    let curve = |ratios| {
        let changes = [0.0, 0.05, 0.1];
        curve(Noise::Ratios(ratios), &changes, Runs::each(8), &ask(0.01, 0.0)).unwrap()
    };
    let (same, found) = (curve(&ratios), curve(&grown));
    assert!(found[0] < 0.03, "{found:?}");
    assert!(same.iter().zip(&found).all(|(s, f)| (s - f).abs() < 0.01), "{same:?} {found:?}");
}

/// No figure of a run is below 0, however wide the spread; growth would make such a value smaller.
#[test]
fn nothing_below_0_is_drawn() {
    let (source, mut g) = (Source::Normal { mean: 1.0, deviation: 2.0 }, Generator::new(1));
    let drawn = Drawn::sides(&source, Runs::each(10), &ask(0.01, 0.0), &mut g);
    let Drawn::Sides { sides, .. } = drawn else { panic!("10 runs a side reach 1 %") };
    assert!(sides.iter().flat_map(|(a, b)| a.iter().chain(b)).all(|v| *v >= 0.0));
}
