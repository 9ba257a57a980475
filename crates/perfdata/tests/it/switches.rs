//! Reading only the switches.

use crate::common::{Builder, Container, files_below};
use holdup_perfdata::{PerfData, open};
use holdup_trace::{Event, Reader, Switches, What, merge};
use std::io::Write;
use std::path::Path;

/// Time, CPU and meaning of the events that a look at the switches must see as they are.
fn who_runs(reader: &dyn Reader) -> Vec<String> {
    let tells = |e: &Event| matches!(e.what, What::Switch { .. } | What::ContextSwitch { .. });
    let events = merge::events(reader).map(|e| e.expect("readable"));
    events.filter(tells).map(|e| format!("{} {} {:?}", e.ts, e.cpu.0, e.what)).collect()
}

#[track_caller]
fn agree(file: &PerfData, name: &str) -> usize {
    let (all, looked) = (who_runs(file), who_runs(&Switches::of(file)));
    assert!(all == looked, "{name}: {} and {}", all.len(), looked.len());
    all.len()
}

#[test]
fn a_look_at_the_switches_sees_all_of_them() {
    let files = files_below(Path::new("../../fixtures"), &|name| name.ends_with("perf.data"));
    assert!(files.len() > 20, "{}", files.len());
    let mut switches = 0;
    for path in files {
        if let Ok(file) = open(&path) {
            switches += agree(&file, &path.display().to_string());
        }
    }
    assert!(switches > 30_000, "{switches}");
}

/// More than one segment of the index, in order and out of order, in both byte orders.
#[test]
fn the_places_of_switches_are_found_in_large_files() {
    for big in [false, true] {
        let mut b = Builder::new(big);
        for n in 0..100_000_u64 {
            // Each round begins before the end of the one before.
            let ts = 1000 + n * 10 - if n % 1000 < 500 { 40 } else { 0 };
            match n % 7 {
                0 => b.switch(ts, (n % 3) as u32, 7, 8),
                1 if n % 1000 == 1 => b.comm(ts, 7, b"renamed\0"),
                2 if n % 1000 == 2 => b.round(),
                _ => b.contention(ts, 0, 7, &[1, 2]),
            }
        }
        let mut on_disk = tempfile::NamedTempFile::new().unwrap();
        on_disk.write_all(&b.build(Container::File)).unwrap();
        let file = open(on_disk.path()).unwrap();
        assert!(file.runs().len() > 3);
        assert_eq!(agree(&file, "built"), 14_286);
    }
}
