//! Opens arbitrary bytes as perf.data and decodes whatever runs it finds.
//! `cargo +nightly fuzz run perfdata`

#![no_main]

use holdup_trace::{Batch, Reader};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Ok(file) = holdup_perfdata::open_stream(std::path::Path::new("-"), bytes) else { return };
    let mut batch = Batch::new();
    for (i, run) in file.runs().iter().enumerate() {
        let mut decoder = file.decoder(i);
        let mut last = run.first_ts;
        loop {
            batch.clear();
            let more = decoder.fill(&mut batch).expect("memory does not fail");
            for e in &batch.events {
                assert!(e.ts >= last, "out of order");
                last = e.ts;
            }
            if !more {
                break;
            }
        }
    }
});
