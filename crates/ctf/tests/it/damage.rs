//! Cut and damaged traces must give an error that names the place, or everything that can be read
//! with the missing parts counted; never a panic, never a hang.

use crate::support::writer::{SPECS, metadata, sample};
use holdup_trace::{Batch, ErrorKind, EventId, Quality, QualityCode, Reader};
use proptest::prelude::*;
use std::path::Path;

type Files = Vec<(String, Vec<u8>)>;

/// Read everything. Returns the number of events and the counters, or the error of opening.
fn read(files: Files) -> Result<(usize, Quality), ErrorKind> {
    let size: usize = files.iter().map(|f| f.1.len()).sum();
    let trace = holdup_ctf::open_files(Path::new("x"), files).map_err(|e| e.kind)?;
    let mut quality = trace.quality().clone();
    let mut events = 0;
    let mut batch = Batch::new();
    for run in 0..trace.runs().len() {
        let mut decoder = trace.decoder(run);
        loop {
            batch.clear();
            let more = decoder.fill(&mut batch).map_err(|e| e.kind)?;
            for e in &batch.events {
                let known = usize::from(e.id.0) < trace.info().events.len();
                assert!(e.id == EventId::SIDEBAND || known);
                assert!(e.ts >= trace.runs()[run].first_ts);
                events += usize::from(e.id != EventId::SIDEBAND);
            }
            assert!(events <= size * 8, "events without bits");
            quality.absorb(&batch.quality);
            if !more {
                break;
            }
        }
    }
    Ok((events, quality))
}

/// All problems except losses that the trace itself reports.
fn damage(quality: Quality) -> Vec<&'static str> {
    let lost = [QualityCode::LostEvents, QualityCode::LostChunks].map(QualityCode::code);
    quality.entries().iter().map(|e| e.code).filter(|c| !lost.contains(c)).collect()
}

#[test]
fn the_samples_are_whole() {
    for spec in SPECS {
        let (events, quality) = read(sample(spec)).unwrap();
        assert_eq!(events, 21, "{spec:?}");
        assert_eq!(quality.count(QualityCode::LostEvents), 17);
        assert_eq!(quality.count(QualityCode::LostChunks), 1);
        assert_eq!(damage(quality), [""; 0], "{spec:?}");
    }
}

#[test]
fn metadata_cut_anywhere_is_an_error_or_counted() {
    for spec in SPECS {
        let whole = metadata(spec);
        let mut read_ones = 0;
        for len in (0..whole.len()).step_by(if spec.packets { 13 } else { 7 }) {
            let mut files = sample(spec);
            files[0].1.truncate(len);
            match read(files) {
                Ok((_, quality)) => {
                    // A cut between two declarations goes unnoticed, but events without declaration
                    // do not.
                    read_ones += usize::from(!damage(quality).is_empty());
                }
                Err(ErrorKind::Malformed { offset, .. }) => {
                    assert!(offset <= whole.len() as u64, "{offset} of {len}");
                }
                Err(other) => panic!("{other}"),
            }
        }
        assert!(read_ones > 10, "{spec:?}: {read_ones}");
    }
}

#[test]
fn a_stream_cut_anywhere_is_read_as_far_as_it_goes() {
    for spec in SPECS {
        let (all, _) = read(sample(spec)).unwrap();
        let mut before = 0;
        let len = sample(spec)[1].1.len();
        // Every byte around the ends of packets, and every eleventh elsewhere.
        let tried = |cut: &usize| cut.is_multiple_of(11) || (cut + 8) % 4096 < 48;
        for cut in (0..len).filter(tried) {
            let mut files = sample(spec);
            files[1].1.truncate(cut);
            let (events, quality) = read(files).unwrap();
            assert!(events >= before, "{events} of {cut} bytes, {before} of fewer");
            before = events;
            // If only whole packets are left, nothing shows that there were more.
            if cut % 4096 != 0 {
                assert!(!damage(quality).is_empty(), "{cut} of {len} in {spec:?}");
            }
        }
        assert_eq!(before, all);
    }
}

#[test]
fn sizes_that_lie_do_not_lead_astray() {
    let spec = SPECS[0];
    for value in [0u64, 1, 7, 8, 500, 4095 * 8, 4097 * 8, 1 << 40, u64::MAX - 7, u64::MAX] {
        // Content size and packet size of the first packet.
        for field in [2, 3] {
            let mut files = sample(spec);
            let at = 32 + field * 8;
            files[1].1[at..at + 8].copy_from_slice(&value.to_le_bytes());
            let (_, quality) = read(files).unwrap();
            assert!(!damage(quality).is_empty(), "{field} {value}");
        }
    }
}

#[test]
fn streams_of_another_trace_are_not_read() {
    let mut files = sample(SPECS[0]);
    files[1].1[4] ^= 1;
    let (_, quality) = read(files).unwrap();
    assert_eq!(damage(quality), ["skipped-bytes"]);
}

/// Named types can be reused, so a few lines can declare more fields than fit into memory.
#[test]
fn types_that_grow_without_end_end() {
    let mut text = String::from(
        "/* CTF 1.8 */ trace { major = 1; minor = 8; byte_order = le; }; \
            typealias integer { size = 8; } := u8; struct t0 { u8 a; u8 b; };\n",
    );
    for n in 1..40 {
        text += &format!("struct t{n} {{ struct t{0} a; struct t{0} b; }};\n", n - 1);
    }
    text += "stream { event.header := struct { u8 id; }; };\n";
    for n in 0..200 {
        text += &format!("event {{ name = \"e{n}\"; id = {n}; fields := struct t39; }};\n");
    }
    let files = vec![("metadata".into(), text.into_bytes()), ("s".into(), vec![0; 100])];
    let (events, quality) = read(files).unwrap();
    assert_eq!((events, damage(quality)), (0, vec!["skipped-bytes", "missing-format"]));

    let mut deep = String::from("/* CTF 1.8 */ typealias integer { size = 8; } := t0;\n");
    for n in 1..100_000 {
        deep += &format!("typedef t{} t{n}[2];\n", n - 1);
    }
    let message = read(vec![("metadata".into(), deep.into_bytes())]).unwrap_err().to_string();
    assert!(message.contains("nested at most"), "{message}");
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 300, failure_persistence: None, ..ProptestConfig::default()
    })]

    #[test]
    fn byte_flips_never_panic(
        which in 0..4usize,
        file in 0..3usize,
        flips in prop::collection::vec((0.0..1.0f64, any::<u8>()), 1..40),
    ) {
        let mut files = sample(SPECS[which]);
        let bytes = &mut files[file].1;
        let len = bytes.len() as f64;
        for (at, value) in flips {
            bytes[(len * at) as usize] = value;
        }
        let _ = read(files);
    }

    #[test]
    fn words_out_of_place_never_panic(
        which in 0..4usize,
        from in 0.0..1.0f64,
        to in 0.0..1.0f64,
        len in 1..200usize,
    ) {
        let mut files = sample(SPECS[which]);
        let bytes = &mut files[0].1;
        let from = (bytes.len() as f64 * from) as usize;
        let to = (bytes.len() as f64 * to) as usize;
        let part: Vec<u8> = bytes[from..(from + len).min(bytes.len())].to_vec();
        bytes.splice(to..to, part);
        let _ = read(files);
    }
}
