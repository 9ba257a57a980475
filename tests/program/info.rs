//! `info` of a large file: from its tables and samples, in no time, and nothing passed off as
//! counted.

use crate::support::{recording, stdout};
use serde_json::Value;
use std::io::Write;
use std::path::{Path, PathBuf};

fn json(args: &[&str], trace: &Path) -> Value {
    let trace = trace.to_str().unwrap();
    serde_json::from_str(&stdout(&[&["info", "-j"], args, &[trace]].concat())).unwrap()
}

/// A perf.data made longer than what is read whole: FINISHED_ROUND records, which yield no event,
/// in front of the records of a fixture.
fn long_perf_data(folder: &Path) -> PathBuf {
    let small = std::fs::read(recording("healthy_cpu_threads_c4")).unwrap();
    let u64_at = |at: usize| u64::from_le_bytes(small[at..at + 8].try_into().unwrap());
    let (data, size) = (u64_at(40) as usize, u64_at(48) as usize);
    let round = [68, 0, 0, 0, 0, 0, 8, 0];
    let padding = round.repeat(20 << 17);
    let mut long = small[..data].to_vec();
    long[48..56].copy_from_slice(&(size as u64 + padding.len() as u64).to_le_bytes());
    // perf names the threads first: the padding goes behind that.
    let middle = data + size / 2;
    let mut cut = data;
    while cut < middle {
        cut += u16::from_le_bytes([small[cut + 6], small[cut + 7]]) as usize;
    }
    long.extend_from_slice(&small[data..cut]);
    long.extend_from_slice(&padding);
    long.extend_from_slice(&small[cut..data + size]);
    // The table of feature sections, whose offsets are from the start of the file.
    let features = (0..4).map(|i| u64_at(72 + 8 * i).count_ones() as usize).sum::<usize>();
    let mut table = small[data + size..].to_vec();
    for i in 0..features {
        let at = 16 * i;
        let offset = u64::from_le_bytes(table[at..at + 8].try_into().unwrap());
        table[at..at + 8].copy_from_slice(&(offset + padding.len() as u64).to_le_bytes());
    }
    long.extend_from_slice(&table);
    let path = folder.join("long.perf.data");
    std::fs::write(&path, long).unwrap();
    path
}

/// Kernel text of 20 MB and its number of events.
fn long_text(folder: &Path) -> (PathBuf, u64) {
    let path = folder.join("long.txt");
    let mut file = std::io::BufWriter::new(std::fs::File::create(&path).unwrap());
    let events = 150_000;
    writeln!(file, "# tracer: nop\n#").unwrap();
    for i in 0..events {
        let (s, us) = (100 + i / 1000, i % 1000 * 1000);
        writeln!(
            file,
            "  worker-{:<5} [{:03}] d..2. {s:5}.{us:06}: sched_switch: prev_comm=worker \
             prev_pid={} prev_prio=120 prev_state=S ==> next_comm=swapper/0 \
             next_pid=0 next_prio=120",
            100 + i % 7,
            i % 4,
            100 + i % 7
        )
        .unwrap();
    }
    (path, events)
}

/// Capabilities by name.
fn capability<'a>(info: &'a Value, name: &str) -> &'a Value {
    let all = info["info"]["capabilities"].as_array().unwrap();
    all.iter().find(|c| c["name"] == name).unwrap()
}

#[test]
fn a_large_perf_data_is_told_from_tables_and_samples() {
    let folder = tempfile::tempdir().unwrap();
    let path = long_perf_data(folder.path());
    let (quick, full) = (json(&[], &path), json(&["--full"], &path));
    assert_eq!(
        (&quick["info"]["complete"], &full["info"]["complete"]),
        (&false.into(), &true.into())
    );
    for counted in ["events", "lost_events", "cpus"] {
        assert!(quick["trace"][counted].is_null(), "{counted}");
        assert!(full["trace"][counted].is_u64(), "{counted}");
    }
    for known in ["hostname", "os_release", "cmdline", "first_ns", "last_ns", "events", "recorder"]
    {
        assert!(!quick["info"][known].is_null(), "{known}");
        assert_eq!(quick["info"][known], full["info"][known], "{known}");
    }
    assert_eq!(quick["trace"]["wall_ns"], full["trace"]["wall_ns"]);
    let (quick, full) = (&quick, &full);
    assert_eq!(capability(quick, "switches")["present"], true);
    assert_eq!(capability(quick, "lockdep")["present"], false, "nobody asked for it");
    for c in quick["info"]["capabilities"].as_array().unwrap() {
        let whole = &capability(full, c["name"].as_str().unwrap())["present"];
        assert!(c["present"].is_null() || c["present"] == *whole, "{c}");
        assert!(c["listed"].is_boolean() && whole.is_boolean(), "{c}");
    }
    let text = stdout(&["info", path.to_str().unwrap()]);
    assert!(text.contains("events and losses n/a (--full counts)"), "{text}");
    assert!(!text.contains(" 0 events"), "{text}");
}

#[test]
fn a_large_text_has_an_estimate_that_is_called_one() {
    let folder = tempfile::tempdir().unwrap();
    let (path, events) = long_text(folder.path());
    let (quick, full) = (json(&[], &path), json(&["--full"], &path));
    assert_eq!(quick["info"]["complete"], false);
    assert_eq!(full["trace"]["events"], events);
    let estimate = quick["info"]["estimated_events"].as_u64().unwrap();
    assert!(estimate.abs_diff(events) < events / 10, "{estimate}");
    assert!(full["info"]["estimated_events"].is_null());
    // Lines of a text may be in any order, and any may name another event.
    for unknown in ["first_ns", "last_ns", "tasks"] {
        assert!(quick["info"][unknown].is_null(), "{unknown}");
    }
    assert_eq!(quick["info"]["all_kinds"], false);
    assert_eq!(capability(&quick, "switches")["present"], true);
    assert!(capability(&quick, "syscalls")["present"].is_null());
    assert_eq!(capability(&full, "syscalls")["present"], false);
    let text = stdout(&["info", path.to_str().unwrap()]);
    assert!(text.contains("estimated from samples (--full counts)"), "{text}");
    assert!(text.contains("time n/a") && text.contains("n/a: not found in the samples"), "{text}");
}

#[test]
fn small_files_and_parts_are_read_whole() {
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(json(&[], &recording("healthy_cpu_threads_c4"))["info"]["complete"], true);
    let path = long_perf_data(folder.path());
    for part in [&["--time", "10%,90%"][..], &["-C", "0"], &["--phase", "1"]] {
        let info = json(part, &path);
        assert_eq!(info["info"]["complete"], true, "{part:?}");
        assert!(info["trace"]["events"].is_u64(), "{part:?}");
    }
}
