//! Any bytes as a trace that is cut: written without panic, hang or runaway memory, and what was
//! written opens again.
//!
//! The first byte says what to cut: its lowest bit replaces names, the next two choose a window,
//! the fourth a CPU. With the highest bit the rest is a folder of CTF: the length of the metadata
//! (four bytes, little endian), the metadata, one stream. Otherwise it is a file of any format.
#![no_main]

use holdup_cut::cut;
use holdup_trace::{Cpu, Cut, Nanos};
use libfuzzer_sys::fuzz_target;
use std::fs;
use std::path::Path;

fuzz_target!(|bytes: &[u8]| {
    let Some((&asked, bytes)) = bytes.split_first() else { return };
    let folder = tempfile::tempdir().expect("a temporary folder");
    let input = folder.path().join("trace");
    if asked & 0x80 == 0 {
        fs::write(&input, bytes).expect("a temporary file");
    } else if !write_ctf(&input, bytes) {
        return;
    }
    let Ok(reader) = holdup_open::open(&input) else { return };
    let Some(span) = reader.info().span else { return };
    let what = Cut {
        time: window(asked >> 1 & 3, span),
        cpus: (asked & 8 != 0).then(|| vec![Cpu(0)]),
        anonymous: asked & 1 != 0,
        ..Cut::default()
    };
    let output = folder.path().join("cut");
    if let Ok(written) = cut(&*reader, &input, &what, &output)
        && written.inside > 0
    {
        holdup_open::open(&output).expect("a cut opens");
    }
});

fn write_ctf(folder: &Path, bytes: &[u8]) -> bool {
    let Some((len, rest)) = bytes.split_first_chunk::<4>() else { return false };
    let Some((metadata, stream)) = rest.split_at_checked(u32::from_le_bytes(*len) as usize) else {
        return false;
    };
    fs::create_dir(folder).expect("a temporary folder");
    fs::write(folder.join("metadata"), metadata).expect("a temporary file");
    fs::write(folder.join("chan_0"), stream).expect("a temporary file");
    true
}

fn window(which: u8, (first, last): (Nanos, Nanos)) -> Option<(Nanos, Nanos)> {
    // Damaged times may be as far apart as a u64 holds.
    let at = |part: u64| first + (u128::from(last - first) * u128::from(part) / 100) as u64;
    match which {
        0 => None,
        1 => Some((at(30), at(60))),
        2 => Some((at(0), at(10))),
        _ => Some((at(90), at(100))),
    }
}
