//! Any bytes as a trace.dat: opened and decoded without panic, hang or runaway memory.
#![no_main]

use holdup_trace::{Batch, Reader};
use libfuzzer_sys::fuzz_target;
use std::path::Path;

fuzz_target!(|bytes: &[u8]| {
    let Ok(dat) = holdup_tracedat::open_stream(Path::new("fuzz"), bytes) else { return };
    let mut batch = Batch::new();
    for run in 0..dat.runs().len() {
        let mut decoder = dat.decoder(run);
        loop {
            batch.clear();
            let more = decoder.fill(&mut batch).expect("memory does not fail");
            for e in &batch.events {
                assert!(e.ts >= dat.runs()[run].first_ts);
            }
            if !more {
                break;
            }
        }
    }
});
