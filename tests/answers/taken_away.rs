//! CPU time that is taken away: by a quota, by a hypervisor.

use holdup_attribution::{Leaf, analyze};
use holdup_diagnose::{Class, Diagnosis, diagnose};
use holdup_passes::{Options, Quota};

fn judged(fixture: &str) -> (Diagnosis, Quota) {
    let reader = holdup_open::open(&crate::support::fixture(fixture)).unwrap();
    let analysis = analyze(&*reader, &Options::default()).unwrap();
    (diagnose(reader.info(), &analysis, None), analysis.quota())
}

fn pct(d: &Diagnosis, leaf: Leaf) -> Option<f64> {
    Some(d.ledger.get(leaf)? as f64 * 100.0 / d.ledger.capacity_ns as f64)
}

/// `cpu.stat` of the group: 100 ms in each 100 ms, for two threads on two CPUs.
#[test]
fn a_quota_has_its_period_and_its_size() {
    let (d, quota) = judged("native_quota/perf.data");
    let period = quota.period_ns.unwrap() as f64 / 1e6;
    let cpus = quota.cpus().unwrap();
    assert!((99.0..101.0).contains(&period), "{period}");
    assert!((0.9..1.1).contains(&cpus), "{cpus}");
    assert_eq!(quota.periods, 12);
    assert_eq!(d.verdict.class, Class::CpuQuota);
    let finding = d.findings.iter().find(|f| f.class == Class::CpuQuota).unwrap();
    let culprit = &finding.culprits[0];
    assert_eq!((culprit.name.as_str(), culprit.waiters_in_all), ("cpu2", Some(2)));
}

/// One program without a quota, one bound to a CPU: nobody is throttled.
#[test]
fn threads_that_queue_for_a_cpu_are_not_throttled() {
    for fixture in ["native_one_cpu/perf.data", "native_cpu2/perf.data"] {
        let (d, quota) = judged(fixture);
        assert!(pct(&d, Leaf::Throttled).unwrap() < 0.1, "{fixture}");
        assert_eq!((quota.period_ns, quota.cpus()), (None, None), "{fixture}");
    }
}

/// The four threads got 3.3 s of CPU time by their guest's clocks, on a host that had two CPUs for
/// 0.8 s, and other work.
#[test]
fn what_a_hypervisor_takes_away_is_a_leaf_and_a_reservation() {
    let (d, _) = judged("stolen_cpu_c4/perf.data");
    let stolen = pct(&d, Leaf::Stolen).unwrap();
    assert!((30.0..70.0).contains(&stolen), "{stolen}");
    assert_eq!(d.verdict.class, Class::Healthy);
    assert!(is_reserved(&d), "{:?}", d.verdict.reservations);
}

fn is_reserved(d: &Diagnosis) -> bool {
    d.verdict.reservations.iter().any(|r| r.contains("the hypervisor took"))
}

/// Ticks are seen, and none is missing; without their events nobody can tell.
#[test]
fn a_quiet_machine_loses_nothing_and_one_without_ticks_cannot_tell() {
    let (d, _) = judged("native_ticks/perf.data");
    assert!(pct(&d, Leaf::Stolen).unwrap() < 1.0);
    let reservations = &d.verdict.reservations;
    let is_of_code = |r: &String| r.starts_with("CPUs run application code");
    assert!(reservations.len() == 1 && is_of_code(&reservations[0]), "{reservations:?}");
    let (d, _) = judged("native_cpu2/perf.data");
    assert_eq!(pct(&d, Leaf::Stolen), None);
}
