//! Who else was there, and what waits in order are: told on recordings of both.

use holdup_attribution::{Leaf, Thresholds, analyze};
use holdup_diagnose::{Class, Diagnosis, diagnose_with, registry};
use holdup_passes::Options;
use std::path::Path;

/// The verdict on a fixture, with these limits set.
fn judge(fixture: &str, limits: &[(&str, f64)]) -> Diagnosis {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures").join(fixture);
    let reader = holdup_open::open(&path).unwrap_or_else(|e| panic!("{fixture}: {e}"));
    let analysis = analyze(&*reader, &Options::default()).expect("readable");
    let mut thresholds = Thresholds::default();
    for &(key, value) in limits {
        let registry = registry();
        let threshold = registry.iter().find(|t| t.key == key).expect("registered");
        thresholds.set(threshold, value);
    }
    diagnose_with(reader.info(), &analysis, None, thresholds)
}

/// Names of those that are not the work.
fn others(d: &Diagnosis) -> Vec<&str> {
    let background = d.verdict.background.as_ref().expect("a trace has them");
    assert!(background.work_known);
    background.programs.iter().map(|p| p.comm.as_str()).collect()
}

#[test]
fn a_neighbour_is_named_lowers_the_confidence_and_hides_nothing() {
    let with_other = judge("neighbour_c4/perf.data", &[]);
    assert_eq!(others(&with_other), ["stranger", "perf"]);
    let reserved = |d: &Diagnosis| d.verdict.reservations.iter().any(|r| r.contains("stranger"));
    assert!(reserved(&with_other), "{:?}", with_other.verdict.reservations);
    let alone = judge("neighbour_none_c4/perf.data", &[]);
    assert_eq!(others(&alone), ["perf"]);
    assert!(alone.verdict.reservations.is_empty(), "{:?}", alone.verdict.reservations);
    // The one thread that computes is what holds the work up, beside the neighbour and without.
    for d in [&with_other, &alone] {
        assert_eq!(d.verdict.class, Class::WorkloadImbalance, "{}", d.verdict.summary);
    }
    assert!(with_other.verdict.confidence < alone.verdict.confidence);
}

/// What shows although others took much of the machine is there. But if nothing shows, they may
/// have hidden it.
#[test]
fn much_of_it_refuses_only_the_verdict_that_all_is_well() {
    let much = ("all.matters_pct", 10.0);
    let shown = judge("neighbour_c4/perf.data", &[much]);
    assert_eq!(shown.verdict.class, Class::WorkloadImbalance, "{}", shown.verdict.summary);
    let hidden = judge("neighbour_c4/perf.data", &[much, ("server.alone_pct", 100.0)]);
    assert_eq!(hidden.verdict.class, Class::NotEnoughEvidence, "{}", hidden.verdict.summary);
    assert!(hidden.verdict.summary.contains("stranger"), "{}", hidden.verdict.summary);
}

#[test]
fn whom_the_work_starts_or_talks_with_is_no_neighbour() {
    for fixture in ["native_make_j1/perf.data", "native_pipe_pair/perf.data"] {
        let d = judge(fixture, &[]);
        let others = others(&d);
        assert!(others.iter().all(|name| *name == "perf"), "{fixture}: {others:?}");
    }
}

#[test]
fn who_waits_for_a_busy_thread_in_order_is_no_rival() {
    let order = judge("order_stages_c4/perf.data", &[]);
    assert_eq!(order.verdict.class, Class::Healthy, "{}", order.verdict.summary);
    let [idle, turns] = [Leaf::Order, Leaf::ThreadSync].map(|leaf| order.ledger.ns(leaf));
    assert!(idle > 2 * turns, "{idle} in order, {turns} in turns");
    let rivals = judge("thr_mutex_perfz_c8/perf.data", &[]);
    assert_eq!(rivals.verdict.class, Class::ThreadSerialization);
    assert_eq!(rivals.ledger.ns(Leaf::Order), 0);
}
