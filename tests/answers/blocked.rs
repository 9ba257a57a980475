//! Uninterruptible sleeps: what `sched_blocked_reason` says goes before what state D suggests.

use crate::support::fixture;
use holdup_attribution::{Attribution, Leaf, WaitsBy, WaitsRow, analyze};
use holdup_passes::{Analysis, Options};
use holdup_testkit::{corpus, needs};
use holdup_trace::Nanos;
use std::path::Path;

fn read(path: &Path) -> Analysis {
    let reader = holdup_open::open(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    analyze(&*reader, &Options::default()).unwrap()
}

/// The same recording, as a kernel writes it that does not say what sleeps were for.
fn without_reasons(path: &Path) -> Analysis {
    let text = std::fs::read_to_string(path).unwrap();
    let silent: Vec<&str> = text.lines().filter(|l| !l.contains("sched_blocked_reason")).collect();
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), silent.join("\n")).unwrap();
    read(file.path())
}

fn io(a: &Analysis) -> (Nanos, Nanos) {
    let iowait = a.cpu_rows().iter().map(|r| r.iowait_ns.unwrap_or(0)).sum();
    (Attribution::from(a).ledger.ns(Leaf::Io), iowait)
}

/// Waits in D state, by thread of an application.
fn rows(a: &Analysis) -> Vec<WaitsRow> {
    let in_d = |r: &WaitsRow| r.kind != "other" && r.wait_total_ns > 0;
    Attribution::from(a).waits(WaitsBy::Object).into_iter().filter(in_d).collect()
}

#[test]
fn reads_that_the_kernel_calls_io_are_io_without_block_events() {
    let a = read(&fixture("blocked/disk.txt"));
    let (idle, iowait) = io(&a);
    let capacity = a.capacity_ns();
    assert!(idle * 100 >= capacity * 25 && iowait * 100 >= capacity * 40, "{idle} {iowait}");
    let rows = rows(&a);
    let asleep: Nanos = rows.iter().map(|r| r.wait_total_ns).sum();
    assert!((1_700_000_000..2_000_000_000).contains(&asleep), "{asleep}");
    for r in &rows {
        assert_eq!((r.kind, r.rule), ("disk", "io-device"), "{r:?}");
        assert!(r.object.starts_with("in submit_bio_wait+0x7b of pid "), "{r:?}");
    }
}

#[test]
fn a_lock_that_the_kernel_does_not_call_io_is_no_disk() {
    let path = fixture("blocked/mmap.txt");
    let a = read(&path);
    assert_eq!(io(&a), (0, 0));
    let rows = rows(&a);
    for caller in ["vm_mmap_pgoff+0xb3", "__vm_munmap+0x92", "lock_mm_and_find_vma+0x9b"] {
        let named = |r: &&WaitsRow| r.object.starts_with(&format!("in {caller} of pid "));
        let of: Vec<&WaitsRow> = rows.iter().filter(named).collect();
        assert!(!of.is_empty(), "{caller}: {rows:?}");
        assert!(of.iter().all(|r| r.kind == "uninterruptible" && r.rule == "kernel-lock"));
    }
    let silent = without_reasons(&path);
    assert_eq!(io(&silent), (0, 0), "the letter D alone");
}

#[test]
fn no_page_fault_and_no_call_is_named_where_neither_was_recorded() {
    for file in ["blocked/disk.txt", "blocked/mmap.txt"] {
        let path = fixture(file);
        for verb in ["waits", "diagnose", "guide", "summary"] {
            let text = crate::support::stdout(&[verb, path.to_str().unwrap()]);
            for claim in ["page-fault", "page fault", "asleep for pages", "wait for the disk in"] {
                assert!(!text.contains(claim), "{verb} {file}: {claim}\n{text}");
            }
        }
        let silent = without_reasons(&path);
        assert!(rows(&silent).iter().all(|r| r.kind == "uninterruptible"));
        assert!(rows(&silent).iter().all(|r| r.object.starts_with("not recorded of pid ")));
    }
}

/// A phone: most sleeps in state D are a driver's that waits for a time or for a co-processor.
#[needs(corpus)]
#[test]
fn a_phones_drivers_do_not_wait_for_disks() {
    let a = read(&corpus().join("public/gtechoogle+performance_tool/trace.html"));
    let iowait: Nanos = a.cpu_rows().iter().map(|r| r.iowait_ns.unwrap_or(0)).sum();
    let wall: Nanos = a.cpu_rows().iter().map(|r| r.wall_ns).sum();
    assert!(iowait * 100 < wall, "{iowait} of {wall}");
    let waits = Attribution::from(&a).waits(WaitsBy::Object);
    let sampling = waits.iter().find(|r| r.object.starts_with("in do_sampling+0x44 of pid 298"));
    assert_eq!(sampling.map(|r| (r.kind, r.rule)), Some(("uninterruptible", "idle-kernel")));
}
