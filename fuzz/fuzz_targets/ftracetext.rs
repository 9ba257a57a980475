//! Opens arbitrary bytes as a text trace and decodes whatever runs it finds.
//! `cargo +nightly fuzz run ftracetext`
//!
//! The first byte sets the size of the runs, so that lines get cut at every place.

#![no_main]

use holdup_ftracetext::TextOptions;
use holdup_trace::{Batch, EventId, Reader};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Some((&size, text)) = bytes.split_first() else { return };
    let options = TextOptions { run_bytes: 1 + 16 * usize::from(size), ..TextOptions::default() };
    let Ok(trace) = options.open_stream(std::path::Path::new("-"), text) else { return };
    let mut batch = Batch::new();
    let mut count = 0;
    for (i, run) in trace.runs().iter().enumerate() {
        let mut decoder = trace.decoder(i);
        let mut last = run.first_ts;
        loop {
            batch.clear();
            let more = decoder.fill(&mut batch).expect("memory does not fail");
            for e in &batch.events {
                assert!(e.ts >= last, "out of order");
                last = e.ts;
                count += u64::from(e.id != EventId::SIDEBAND);
            }
            if !more {
                break;
            }
        }
    }
    assert_eq!(count, trace.event_count(), "decoding finds what the index found");
});
