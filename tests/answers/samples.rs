//! What samples of the running code show on recordings: spinning in user mode, how much of it, who
//! is to blame, and what its end gains; and page faults.

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

/// CPU time at a leaf, and the time that the program measured itself (`key`), in ms.
fn seen_and_measured(scenario: &str, leaf: Leaf, key: &str) -> (u64, u64) {
    let reader = holdup_open::open(&recording(scenario)).expect("a recording");
    let analysis = analyze(&*reader, &Options::default()).expect("an analysis");
    let ledger = Attribution::from(&analysis).ledger;
    let all: u64 = ledger.leaves().map(|l| l.1).sum();
    assert_eq!(all, ledger.capacity_ns, "{scenario}");
    let truth = recording(scenario).with_file_name("truth.json");
    let truth: serde_json::Value =
        serde_json::from_slice(&std::fs::read(truth).expect("a truth")).expect("JSON");
    (ledger.ns(leaf) / 1_000_000, truth[key].as_u64().expect("a time") / 1_000)
}

/// The first culprit of the verdict's finding, and the gain.
fn first(d: &Diagnosis) -> (String, f64) {
    let f = d.findings.iter().find(|f| f.class == d.verdict.class).expect("a finding");
    (f.culprits.iter().map(|c| c.name.clone()).collect::<Vec<_>>().join("; "), f.worth.times)
}

#[test]
fn threads_that_spin_for_a_lock_contend() {
    let (spun, waited) = seen_and_measured("native_spin_lock", Leaf::Spin, "wait_us");
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
    let (spun, waited) = seen_and_measured("native_spin_barrier", Leaf::BarrierSpin, "wait_us");
    assert!(spun.abs_diff(waited) * 10 <= waited, "{spun} of {waited} ms");
    let d = judged("native_spin_barrier");
    assert_eq!(d.verdict.class, Class::WorkloadImbalance);
    let (culprit, times) = first(&d);
    assert!(culprit.contains("run of spin"), "{culprit}");
    // 10 parts of work and 1 part, divided: 10 / 5.5.
    assert!((1.75..=1.9).contains(&times), "{times}");
}

#[test]
fn page_faults_are_no_application_code() {
    let leaf = Leaf::KernelUnrecorded;
    let (seen, measured) = seen_and_measured("native_page_faults", leaf, "fault_us");
    // The program's clock also ran while its threads had no CPU.
    assert!(seen <= measured && seen * 100 >= measured * 85, "{seen} of {measured} ms");
    let d = judged("native_page_faults");
    assert_eq!(d.verdict.class, Class::Healthy, "{}", d.verdict.summary);
    let said = d.verdict.reservations.iter().any(|r| r.contains("CPUs are in page faults"));
    assert!(said, "{:?}", d.verdict.reservations);
}
