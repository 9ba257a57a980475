//! Any bytes as a Perfetto trace: opened and decoded without panic, hang or runaway memory.
#![no_main]

use holdup_trace::{Batch, EventId, Reader};
use libfuzzer_sys::fuzz_target;
use std::path::Path;

fuzz_target!(|bytes: &[u8]| {
    holdup_perfetto::sniff(bytes);
    let Ok(trace) = holdup_perfetto::open_stream(Path::new("fuzz"), bytes) else { return };
    let mut batch = Batch::new();
    for run in 0..trace.runs().len() {
        let mut decoder = trace.decoder(run);
        let mut last = trace.runs()[run].first_ts;
        loop {
            batch.clear();
            let more = decoder.fill(&mut batch).expect("memory does not fail");
            for e in &batch.events {
                assert!(e.ts >= last, "{} before {last}", e.ts);
                last = e.ts;
                assert!(e.id == EventId::SIDEBAND || (e.id.0 as usize) < trace.info().events.len());
            }
            if !more {
                break;
            }
        }
    }
});
