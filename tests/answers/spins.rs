//! Spinning in user mode on recordings: how much, who is to blame, and what its end gains.

use crate::support::recording;
use holdup_attribution::{Attribution, Leaf, analyze};
use holdup_diagnose::phases::{self, Wanted};
use holdup_diagnose::{Class, Diagnosis, Thresholds, diagnose_judged};
use holdup_passes::Options;

/// The verdict with a replay.
fn judged(scenario: &str) -> Diagnosis {
    let reader = holdup_open::open(&recording(scenario)).expect("a recording");
    let wanted = Wanted { replay: Some(1.0), ..Wanted::default() };
    let limits = Thresholds::default();
    let judged = phases::read(&*reader, &Options::default(), &limits, wanted).expect("an analysis");
    diagnose_judged(reader.info(), &judged, None, limits)
}

/// CPU time at a leaf, and the waiting that the program measured itself, in ms.
fn spun_and_waited(scenario: &str, leaf: Leaf) -> (u64, u64) {
    let reader = holdup_open::open(&recording(scenario)).expect("a recording");
    let analysis = analyze(&*reader, &Options::default()).expect("an analysis");
    let ledger = Attribution::from(&analysis).ledger;
    let all: u64 = ledger.leaves().map(|l| l.1).sum();
    assert_eq!(all, ledger.capacity_ns, "{scenario}");
    let truth = recording(scenario).with_file_name("truth.json");
    let truth: serde_json::Value =
        serde_json::from_slice(&std::fs::read(truth).expect("a truth")).expect("JSON");
    (ledger.ns(leaf) / 1_000_000, truth["wait_us"].as_u64().expect("a time") / 1_000)
}

/// The first culprit of the verdict's finding, and the gain.
fn first(d: &Diagnosis) -> (String, f64) {
    let f = d.findings.iter().find(|f| f.class == d.verdict.class).expect("a finding");
    (f.culprits.iter().map(|c| c.name.clone()).collect::<Vec<_>>().join("; "), f.worth.times)
}

#[test]
fn threads_that_spin_for_a_lock_contend() {
    let (spun, waited) = spun_and_waited("native_spin_lock", Leaf::Spin);
    // The threads also waited without a CPU.
    assert!(spun <= waited && spun * 100 >= waited * 80, "{spun} of {waited} ms");
    let d = judged("native_spin_lock");
    assert_eq!(d.verdict.class, Class::ThreadSerialization);
    let (culprit, times) = first(&d);
    assert!(culprit.starts_with("pthread_spin_lock of spin ("), "{culprit}");
    assert!((1.7..=2.0).contains(&times), "two CPUs cannot do more: {times}");
}

#[test]
fn threads_that_spin_until_one_thread_arrives_wait_for_a_straggler() {
    let (spun, waited) = spun_and_waited("native_spin_barrier", Leaf::BarrierSpin);
    assert!(spun.abs_diff(waited) * 10 <= waited, "{spun} of {waited} ms");
    let d = judged("native_spin_barrier");
    assert_eq!(d.verdict.class, Class::WorkloadImbalance);
    let (culprit, times) = first(&d);
    assert!(culprit.contains("run of spin"), "{culprit}");
    // 10 parts of work and 1 part, divided: 10 / 5.5.
    assert!((1.75..=1.9).contains(&times), "{times}");
}
