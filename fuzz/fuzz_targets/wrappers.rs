//! Any bytes as a file of unknown kind, and any bytes in a wrapper that is then damaged:
//! recognised, unpacked, opened and decoded without panic, hang or runaway memory.
//!
//! The first byte decides: 0 to 3 wrap the rest in gzip, zstd, xz or twice (zstd in gzip), and the
//! next three say where to damage it and how; anything else is part of the file.
#![no_main]

use holdup_trace::{Batch, Reader};
use libfuzzer_sys::fuzz_target;
use std::cell::RefCell;
use std::io::{Seek, Write};

thread_local! {
    static FILE: RefCell<tempfile::NamedTempFile> =
        RefCell::new(tempfile::NamedTempFile::new().expect("a temporary file"));
}

fuzz_target!(|bytes: &[u8]| {
    let wrapped;
    let bytes = match bytes {
        [how @ 0..=3, at_high, at_low, damage, inner @ ..] => {
            let mut out = match how {
                0 => gz(inner),
                1 => zstd::encode_all(inner, 1).expect("memory does not fail"),
                2 => xz(inner),
                _ => gz(&zstd::encode_all(inner, 1).expect("memory does not fail")),
            };
            let at = usize::from(u16::from_be_bytes([*at_high, *at_low])) % out.len();
            out[at] ^= damage;
            wrapped = out;
            wrapped.as_slice()
        }
        bytes => bytes,
    };
    FILE.with_borrow_mut(|file| {
        file.as_file().set_len(0).expect("a temporary file");
        file.rewind().expect("a temporary file");
        file.write_all(bytes).expect("a temporary file");
        let Ok(reader) = holdup_open::open(file.path()) else { return };
        decode(&*reader);
    });
});

fn decode(reader: &dyn Reader) {
    let mut batch = Batch::new();
    for run in 0..reader.runs().len() {
        let mut decoder = reader.decoder(run);
        loop {
            batch.clear();
            // An error ends the read; it is no failure of the reader.
            if !decoder.fill(&mut batch).unwrap_or(false) {
                break;
            }
        }
    }
}

fn gz(data: &[u8]) -> Vec<u8> {
    let mut z = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    z.write_all(data).expect("memory does not fail");
    z.finish().expect("memory does not fail")
}

fn xz(data: &[u8]) -> Vec<u8> {
    let mut z = liblzma::write::XzEncoder::new(Vec::new(), 0);
    z.write_all(data).expect("memory does not fail");
    z.finish().expect("memory does not fail")
}
