//! Sleeps that other threads end, tries that fail, and waiting without sleep, on recordings: each
//! pattern beside the harmless one that looks like it.

use holdup_attribution::{Attribution, Leaf, analyze};
use holdup_diagnose::{Class, Culprit, Diagnosis, diagnose};
use holdup_passes::{Analysis, Options};

/// A scenario of `fixtures/`, judged.
struct Judged {
    analysis: Analysis,
    diagnosis: Diagnosis,
}

impl Judged {
    fn of(scenario: &str) -> Judged {
        let reader = holdup_open::open(&crate::support::recording(scenario)).expect("a recording");
        let analysis = analyze(&*reader, &Options::default()).expect("an analysis");
        let diagnosis = diagnose(reader.info(), &analysis, None);
        Judged { analysis, diagnosis }
    }

    fn class(&self) -> Class {
        self.diagnosis.verdict.class
    }

    /// The culprits of the finding that is the verdict.
    fn culprits(&self) -> &[Culprit] {
        let is = |f: &&holdup_diagnose::Finding| f.class == self.class() && f.ruled_out.is_none();
        self.diagnosis.findings.iter().find(is).map_or(&[], |f| &f.culprits)
    }

    /// CPU time at a leaf, in per cent of capacity.
    fn pct(&self, leaf: Leaf) -> f64 {
        let ledger = Attribution::from(&self.analysis).ledger;
        ledger.ns(leaf) as f64 * 100.0 / ledger.capacity_ns as f64
    }
}

#[test]
fn a_latch_that_siblings_write_to_is_one_lock_and_a_pool_that_answers_is_none() {
    let latch = Judged::of("ser_latch_c2");
    assert_eq!(latch.class(), Class::ApplicationSerialization);
    let [culprit] = latch.culprits() else { panic!("{:?}", latch.culprits()) };
    assert_eq!((culprit.kind, culprit.waiters_in_all), ("epoll", Some(3)), "{}", culprit.name);
    assert!(
        culprit.name.contains("2 more objects through which the same threads wake"),
        "{}",
        culprit.name
    );
    assert!(latch.pct(Leaf::KernelServices) > 25.0);
    let pool = Judged::of("healthy_pool_c2");
    assert_eq!(pool.class(), Class::Healthy);
    let loops = Attribution::from(&pool.analysis).blamed().into_iter().filter(|o| {
        o.row.kind == "epoll" && o.row.comm == "server" && o.idle_ns(Leaf::KernelServices) > 0
    });
    assert_eq!(loops.count(), 0, "its pool answers what the event loop asked for");
}

#[test]
fn naps_between_tries_at_a_lock_are_waiting_and_naps_alone_are_not() {
    let retry = Judged::of("ser_retry_c2");
    assert_eq!(retry.class(), Class::ApplicationSerialization);
    let [culprit] = retry.culprits() else { panic!("{:?}", retry.culprits()) };
    assert_eq!((culprit.kind, culprit.waiters_in_all), ("posix-lock", Some(3)));
    assert_eq!(culprit.name, "posix-lock on one file, shared by 3 processes of setlk-*");
    let mut holders: Vec<&str> = culprit.holders.iter().map(|h| h.comm.as_str()).collect();
    holders.sort_unstable();
    assert_eq!(holders, ["setlk-0", "setlk-1", "setlk-2"], "who got it meanwhile");
    let tried = Attribution::from(&retry.analysis).blamed();
    assert!(tried.iter().any(|o| o.row.retries > 100), "they tried again and again");
    let naps = Judged::of("healthy_naps_c2");
    assert_eq!(naps.class(), Class::Healthy);
    assert_eq!(naps.pct(Leaf::KernelServices), 0.0, "its tries succeed");
}

#[test]
fn processes_take_turns_at_a_service_and_threads_at_an_object_of_their_library() {
    let between = Judged::of("ser_pshared_c2");
    assert_eq!(between.class(), Class::ApplicationSerialization);
    assert_eq!(between.culprits()[0].kind, "mutex");
    assert!(between.pct(Leaf::ThreadSync) < 1.0 && between.pct(Leaf::ThreadSyncCalls) < 1.0);
    let within = Judged::of("thr_private_c2");
    assert_eq!(within.class(), Class::ThreadSerialization);
    assert_eq!(within.culprits()[0].kind, "mutex");
    assert!(within.pct(Leaf::KernelServices) < 1.0 && within.pct(Leaf::ServiceCalls) < 1.0);
}

#[test]
fn a_semaphore_in_shared_memory_is_no_condition_variable() {
    let semaphore = Judged::of("ser_psem_c2");
    assert_eq!(semaphore.class(), Class::ApplicationSerialization);
    assert_eq!(semaphore.culprits()[0].kind, "semaphore");
    let rows = Judged::of("thr_rows_c2");
    assert_eq!(rows.culprits()[0].kind, "condvar", "one that has a single waiter");
}

#[test]
fn one_lock_with_an_object_for_each_waiter_is_one_culprit_and_two_locks_are_two() {
    let rows = Judged::of("thr_rows_c2");
    assert_eq!(rows.class(), Class::ThreadSerialization);
    assert_eq!(rows.culprits()[0].waiters_in_all, Some(3), "{:?}", rows.culprits());
    let pairs = Judged::of("healthy_pairs_c2");
    assert_eq!(pairs.class(), Class::Healthy);
    let blamed = Attribution::from(&pairs.analysis).blamed();
    let cycles: Vec<_> = blamed.iter().filter(|o| o.others > 0).collect();
    assert!(!cycles.is_empty() && cycles.iter().all(|o| o.sleepers.len() == 2), "{cycles:?}");
}

#[test]
fn yielding_until_a_lock_is_free_is_waiting_and_yielding_between_pieces_of_work_is_not() {
    let storm = Judged::of("thr_yield_c2");
    assert_eq!(storm.class(), Class::ThreadSerialization);
    let culprit = &storm.culprits()[0];
    assert_eq!((culprit.kind, culprit.waiters_in_all), ("syscall", Some(2)), "{}", culprit.name);
    assert!(culprit.name.starts_with("repeated sched_yield of "), "{}", culprit.name);
    assert!(storm.pct(Leaf::Spin) > 20.0, "{}", storm.pct(Leaf::Spin));
    let polite = Judged::of("healthy_polite_c2");
    assert_eq!((polite.class(), polite.pct(Leaf::Spin)), (Class::Healthy, 0.0));
}
