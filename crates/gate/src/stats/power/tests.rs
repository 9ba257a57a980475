use super::*;

const SPREADS: [f64; 2] = [0.05, 0.10];

fn ask(alpha: f64, least: f64) -> Ask {
    Ask { alpha, least }
}

/// Within three standard errors of the simulation, at least one repetition in 200.
fn near(found: f64, known: f64, what: &str) {
    let error = (known * (1.0 - known) / REPETITIONS as f64).sqrt().max(0.002);
    assert!((found - known).abs() <= 3.0 * error, "{what}: {found}, known {known}");
}

/// Simulated before with 100,000 repetitions: normal values whose second side is *multiplied* by
/// 1.25, so that its spread grows too, and a level of 1 % *one-sided*. With 5 runs a side that
/// takes a U of 24 of 25. At 1 % two-sided it takes 25, and 98.2 % and 47.0 % are caught.
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
    // And without a drift it is the level: 2 of 252.
    near(chance(0.01, 0.05, 0.0), 2.0 / 252.0, "no change");
}
