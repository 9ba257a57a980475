//! Threads of one process that change their address space disturb each other, processes do not.

use holdup_attribution::{Attribution, Contended, analyze};
use holdup_diagnose::{Class, Diagnosis, diagnose};
use holdup_passes::{Analysis, Options};

fn of<T>(fixture: &str, look: impl Fn(&Analysis, &Diagnosis) -> T) -> T {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("fixtures")
        .join(fixture)
        .join("perf.data");
    let reader = holdup_open::open(&path).unwrap();
    let analysis = analyze(&*reader, &Options::default()).unwrap();
    look(&analysis, &diagnose(reader.info(), &analysis, None))
}

/// The verdict, and the story of the rule on locks of the kernel.
fn verdict(fixture: &str) -> (Class, &'static str) {
    of(fixture, |_, d| {
        let f = d.findings.iter().find(|f| f.rule == "kernel-lock-conflict").unwrap();
        (d.verdict.class, f.story)
    })
}

fn call(fixture: &str, name: &str) -> Contended {
    of(fixture, |analysis, _| {
        let judged = Attribution::from(analysis);
        judged.contended.into_iter().find(|c| c.name == name).unwrap()
    })
}

#[test]
fn threads_that_change_their_memory_wait_for_each_other() {
    let threads = "native_mprotect_threads";
    assert_eq!(verdict(threads), (Class::KernelLockConflict, "shared-address-space"));
    let c = call(threads, "mprotect");
    assert!(c.costs_more_with_siblings && c.siblings_pct > Some(200), "{c:?}");
    of(threads, |_, d| {
        let f = d.findings.iter().find(|f| f.rule == "kernel-lock-conflict").unwrap();
        let answered = f.evidence.iter().find(|e| e.metric == "requests to other CPUs").unwrap();
        assert!(answered.value > Some(1000.0), "{answered:?}");
    });
}

#[test]
fn processes_that_do_the_same_do_not() {
    let processes = "native_mprotect_processes";
    assert_eq!(verdict(processes).0, Class::Healthy);
    let c = call(processes, "mprotect");
    assert!(!c.costs_more_with_siblings && c.section.is_none(), "{c:?}");
}

#[test]
fn a_lock_is_full_although_the_recorder_keeps_threads_apart() {
    assert_eq!(verdict("native_mmap_threads"), (Class::KernelLockConflict, "costly-calls"));
    let s = call("native_mmap_threads", "mmap").section.unwrap();
    assert!(s.in_use_pct < 80.0 && s.wanted_pct > 100.0 && s.callers == 2, "{s:?}");
}

#[test]
fn calls_of_two_address_spaces_end_at_any_distance() {
    assert_eq!(verdict("native_mmap_processes").0, Class::Healthy);
    assert_eq!(call("native_mmap_processes", "mmap").section, None);
}
