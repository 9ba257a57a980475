//! Any metadata and any stream as a CTF trace: opened and decoded without panic, hang or runaway
//! memory. The input is the length of the metadata (four bytes, little endian), the metadata, and
//! one stream; or an archive.
//! `cargo +nightly fuzz run ctf`

#![no_main]

use holdup_ctf::CtfTrace;
use holdup_trace::{Batch, Reader};
use libfuzzer_sys::fuzz_target;
use std::path::Path;

fn open(bytes: &[u8]) -> Option<CtfTrace> {
    if holdup_ctf::sniff(bytes) == Some(holdup_ctf::Part::Tar) {
        return holdup_ctf::open_stream(Path::new("fuzz"), bytes).ok();
    }
    let (len, rest) = bytes.split_first_chunk::<4>()?;
    let (metadata, stream) = rest.split_at_checked(u32::from_le_bytes(*len) as usize)?;
    let files = vec![("metadata".into(), metadata.to_vec()), ("chan_0".into(), stream.to_vec())];
    holdup_ctf::open_files(Path::new("fuzz"), files).ok()
}

fuzz_target!(|bytes: &[u8]| {
    let Some(trace) = open(bytes) else { return };
    let mut batch = Batch::new();
    for (i, run) in trace.runs().iter().enumerate() {
        let mut decoder = trace.decoder(i);
        loop {
            batch.clear();
            let more = decoder.fill(&mut batch).expect("memory does not fail");
            for e in &batch.events {
                assert!(e.ts >= run.first_ts);
            }
            if !more {
                break;
            }
        }
    }
});
