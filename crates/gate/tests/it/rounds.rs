//! Rounds of recordings on several numbers of CPUs, and the gate's answers.

use holdup_gate::judge::{Finding, Sides};
use holdup_gate::metric::Metric;
use holdup_gate::policy::{Limit, Worse};
use holdup_gate::rounds::{Numbered, numbers, policy, rounds};
use holdup_gate::stats::generator::Generator;
use holdup_gate::verdict::{Outcome, Verdict, decide};
use holdup_gate::{Baseline, Run, Work, sample};
use proptest::prelude::*;

const ONE: Work = Work::Units(1.0);

/// A recording of this many milliseconds on this many CPUs.
fn recording(name: &str, cpus: u32, ms: f64) -> (u32, Run) {
    let text = format!(
        r#"{{"schema": "holdup-baseline/1",
             "settings": [{{"host": "h", "kernel": "k", "arch": "a", "cpus": {cpus},
                            "events": []}}],
             "runs": [{{"name": "{name}", "wall_ns": {}, "events": 100, "lost_events": 0,
                        "others": {{"ns": 0, "work_known": true, "programs": []}},
                        "verdict": {{"class": "healthy", "confidence": 0.9}}, "setting": 0}}],
             "figures": {{}}}}"#,
        (ms * 1e6).round()
    );
    (cpus, Baseline::parse(&text).unwrap().runs.remove(0))
}

/// Rounds on 1, 2 and 4 CPUs that take these times, each scattered by half a per cent.
fn side(seed: u64, times: [f64; 3], rounds: usize) -> Numbered {
    let mut g = Generator::new(seed);
    let mut all = Vec::new();
    for round in 0..rounds {
        for (cpus, ms) in [1, 2, 4].into_iter().zip(times) {
            let ms = ms * (1.0 + 0.005 * g.normal());
            all.push(recording(&format!("{seed}-{round}-{cpus}"), cpus, ms));
        }
    }
    all
}

fn value(run: &Run, metric: &str) -> f64 {
    let Metric::Number { figure, per } = Metric::parse(metric).unwrap() else { panic!() };
    sample::value(run, &figure, per, &ONE).unwrap()
}

/// Perfect on two CPUs, three quarters on four.
const BEFORE: [f64; 3] = [400.0, 200.0, 133.0];

fn judged(after: [f64; 3]) -> Verdict {
    let (a, b) = (side(1, BEFORE, 10), side(2, after, 10));
    let policy = policy(&numbers(&a, &b).unwrap());
    let (a, b) = (rounds(a, &ONE).unwrap(), rounds(b, &ONE).unwrap());
    decide(Sides { a: &a, b: &b, paired: true }, &policy, &ONE, &[], 0).unwrap()
}

#[test]
fn a_round_has_the_efficiency_of_each_number_of_cpus() {
    let one = vec![recording("a", 1, 400.0), recording("b", 2, 250.0), recording("c", 4, 200.0)];
    let round = rounds(one, &ONE).unwrap().remove(0);
    assert_eq!((round.name.as_str(), round.setting.cpus, round.events), ("c", 4, 300));
    assert_eq!(value(&round, "scaling.2.efficiency"), 80.0);
    assert_eq!(value(&round, "scaling.4.efficiency"), 50.0);
    assert_eq!(value(&round, "scaling.1.time"), 400e6);
    assert_eq!(value(&round, "scaling.4.time"), 200e6);
}

#[test]
fn the_efficiency_on_the_most_cpus_decides_and_less_of_it_is_worse() {
    let policy = policy(&[1, 2, 4]);
    assert_eq!(policy.primary.metric.to_string(), "scaling.4.efficiency");
    assert_eq!(policy.primary.worse, Worse::Lower);
    let names: Vec<String> = policy.inform.iter().map(|l| l.metric.to_string()).collect();
    assert_eq!(
        names[..4],
        ["scaling.2.efficiency", "scaling.1.time", "scaling.2.time", "scaling.4.time"]
    );
    assert_eq!(Limit::of(policy.inform[1].metric.clone()).worse, Worse::Higher);
}

#[test]
fn worse_scaling_at_equal_speed_on_one_cpu_regresses() {
    assert_eq!(judged(BEFORE).outcome, Outcome::Pass);
    let worse = judged([400.0, 215.0, 148.0]);
    assert_eq!((worse.outcome, worse.no_slower), (Outcome::Regressed, None));
    assert_eq!(judged([400.0, 200.0, 120.0]).primary.finding, Finding::Better);
}

/// A colder or different machine: the times are worse, the ratios are not.
#[test]
fn a_slower_machine_is_no_regression() {
    assert_eq!(judged(BEFORE.map(|ms| ms * 1.3)).outcome, Outcome::Pass);
}

/// A change that halves the work of one thread must not be reported as worse scaling with four.
#[test]
fn what_got_faster_on_one_cpu_alone_passes() {
    let found = judged([300.0, 190.0, 132.0]);
    assert_eq!((found.outcome, &found.primary.finding), (Outcome::Pass, &Finding::Worse));
    assert!(found.no_slower.is_some_and(|change| change.abs() < 0.02), "{:?}", found.no_slower);
    // Unless four take longer, too.
    assert_eq!(judged([300.0, 190.0, 145.0]).outcome, Outcome::Regressed);
}

#[test]
fn what_disturbed_one_recording_disturbed_its_round() {
    let mut recordings = side(3, BEFORE, 10);
    let quiet = rounds(recordings.clone(), &ONE).unwrap();
    let first = &mut recordings[0].1;
    first.others.ns = first.capacity_ns() / 5;
    first.lost_events = 7;
    let disturbed = rounds(recordings, &ONE).unwrap();
    assert_eq!((quiet[0].others_pct(), quiet[0].lost_events), (0.0, 0));
    assert!((disturbed[0].others_pct() - 20.0).abs() < 0.01 && disturbed[0].lost_events == 7);
    assert_eq!(disturbed[1], quiet[1]);
    let sides = Sides { a: &quiet, b: &disturbed, paired: true };
    let verdict = decide(sides, &policy(&[1, 2, 4]), &ONE, &[], 0).unwrap();
    assert_eq!((verdict.set_aside.len(), verdict.runs), (2, (9, 9)));
}

#[test]
fn what_is_no_round_is_said() {
    let words = |all: Numbered| rounds(all, &ONE).unwrap_err();
    assert!(words(vec![]).contains("two or more numbers of CPUs"));
    assert!(words(vec![recording("a", 2, 1.0); 3]).contains("all recordings are on 2"));
    let uneven = vec![recording("a", 1, 9.0), recording("b", 2, 5.0), recording("c", 2, 5.0)];
    assert!(words(uneven).contains("there are 1 on 1 CPUs and 2 on 2 CPUs"));
    let none = rounds(side(1, BEFORE, 1), &Work::Syscall("write".to_owned())).unwrap_err();
    assert!(none.contains("contains no unit of syscall:write"), "{none}");
    assert!(numbers(&side(1, BEFORE, 1), &[recording("a", 8, 1.0)]).unwrap_err().contains("and 8"));
}

proptest! {
    /// What slows down a whole round makes no difference.
    #[test]
    fn the_speed_of_the_machine_falls_out(
        times in (1.0..1e3f64, 1.0..1e3f64, 1.0..1e3f64), factor in 0.5..3.0f64,
    ) {
        let round = |factor: f64| {
            let all = [(1, times.0), (2, times.1), (4, times.2)];
            let all = all.map(|(cpus, ms)| recording("r", cpus, ms * factor));
            rounds(all.to_vec(), &ONE).unwrap().remove(0)
        };
        let (was, is) = (round(1.0), round(factor));
        for metric in ["scaling.2.efficiency", "scaling.4.efficiency"] {
            let (was, is) = (value(&was, metric), value(&is, metric));
            prop_assert!((was - is).abs() <= 1e-3 * was, "{metric}: {was} {is}");
        }
    }
}
