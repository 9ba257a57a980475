//! Reads arbitrary bytes as the output of perf stat and computes whatever follows from the counts.
//! `cargo +nightly fuzz run counters`

#![no_main]

use holdup_counters::{Counter, stat};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Ok(found) = stat::parse(bytes) else { return };
    assert!(!found.measurements.is_empty(), "counts, or an error");
    for m in &found.measurements {
        assert!(!m.counts.is_empty(), "a measurement without counts");
        assert!(m.stalled_pct().is_none_or(|pct| (0.0..=100.0).contains(&pct)));
        assert!(m.cycles_per_instruction().is_none_or(|cpi| cpi > 0.0));
        let _ = (m.bandwidth(), m.misses_per_1000(), m.running_pct());
        for &counter in Counter::ALL {
            let _ = (m.count(counter), m.missing(counter));
        }
    }
});
