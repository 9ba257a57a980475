//! Cut and damaged files must give everything that can be read, with the missing parts counted;
//! never a panic, never a hang.

use holdup_testkit::{Generic, Packing, PerfettoForm, TraceBuilder, perfetto};
use holdup_trace::{Batch, ErrorKind, EventId, Quality, QualityCode, Reader};
use proptest::prelude::*;
use std::path::Path;
use std::sync::LazyLock;

/// One file of every form.
static FILES: LazyLock<[Vec<u8>; 4]> = LazyLock::new(|| {
    let mut t = TraceBuilder::new(3).task(7, 7, None, "seven");
    for round in 0..400u64 {
        let (at, cpu) = (1_000_000 + round * 1_000, (round % 3) as u16);
        t = t
            .switch(at, cpu, 0, 7, "R")
            .waking(at + 10, cpu, 7, 9)
            .sys_enter_with(at + 20, cpu, 7, 0, &[1, 2, 3])
            .contention_begin(at + 30, cpu, 7, 77, 2)
            .sys_exit(at + 40, cpu, 7, 0, -1)
            .switch(at + 50, cpu, 7, 0, "S");
    }
    let trace = t.build();
    let write = |compact, generic, packing| {
        let form = PerfettoForm { compact, generic, packing, per_bundle: 20, later_by: 0 };
        perfetto(&trace, &form)
    };
    [
        write(false, Generic::Named, Packing::None),
        write(true, Generic::Described, Packing::None),
        write(false, Generic::Described, Packing::Deflate),
        write(true, Generic::Named, Packing::Zstd),
    ]
});

/// Read everything. Returns the number of events and the counters, or the error of opening.
fn read(bytes: &[u8]) -> Result<(usize, Quality), ErrorKind> {
    let trace = holdup_perfetto::open_stream(Path::new("x"), bytes).map_err(|e| e.kind)?;
    drain(&trace)
}

fn drain(trace: &dyn Reader) -> Result<(usize, Quality), ErrorKind> {
    let mut quality = trace.quality().clone();
    let mut events = 0;
    let mut batch = Batch::new();
    for run in 0..trace.runs().len() {
        let mut decoder = trace.decoder(run);
        let mut last = trace.runs()[run].first_ts;
        loop {
            batch.clear();
            let more = decoder.fill(&mut batch).map_err(|e| e.kind)?;
            for e in &batch.events {
                assert!(e.ts >= last, "{} before {last}", e.ts);
                last = e.ts;
                events += (e.id != EventId::SIDEBAND) as usize;
                assert!(e.id == EventId::SIDEBAND || (e.id.0 as usize) < trace.info().events.len());
            }
            quality.absorb(&batch.quality);
            if !more {
                break;
            }
        }
    }
    Ok((events, quality))
}

#[test]
fn the_files_are_whole() {
    for file in FILES.iter() {
        let (events, quality) = read(file).unwrap();
        assert_eq!((events, quality.is_empty()), (2400, true), "{quality:?}");
    }
}

#[test]
fn a_file_cut_anywhere_is_read_as_far_as_it_goes() {
    for file in FILES.iter() {
        let mut before = 0;
        for len in (0..file.len()).step_by(211).chain([file.len() - 1]) {
            match read(&file[..len]) {
                Ok((events, quality)) => {
                    assert!(events >= before, "{events} after {before}");
                    before = events;
                    // A cut between two packets leaves a whole file.
                    let cut = quality.count(QualityCode::Truncated);
                    assert!(
                        cut <= 1 && quality.count(QualityCode::SkippedBytes) == 0,
                        "{quality:?}"
                    );
                    assert!(cut == 1 || quality.is_empty(), "{quality:?}");
                }
                Err(ErrorKind::Malformed { expected, .. }) => {
                    assert!(len < 2000 && !expected.is_empty(), "{len}");
                }
                Err(e) => panic!("{e}"),
            }
        }
        assert!(before > 2000, "{before}");
    }
}

/// A wrong length loses one bundle, nothing else.
#[test]
fn a_length_that_leads_astray_costs_its_packet() {
    let file = &FILES[0];
    let mut starts = vec![];
    let mut at = 0;
    while at < file.len() {
        starts.push(at);
        let (len, bytes) = match file[at + 1] {
            low if low < 0x80 => (usize::from(low), 2),
            low => (usize::from(low & 0x7f) | usize::from(file[at + 2]) << 7, 3),
        };
        at += bytes + len;
    }
    for &start in &starts[10..20] {
        let mut damaged = file.clone();
        damaged[start + 1] ^= 0x15;
        damaged[start] ^= 0x40;
        let (events, quality) = read(&damaged).unwrap();
        assert!((2380..2400).contains(&events), "{events} {quality:?}");
        assert!(quality.count(QualityCode::SkippedBytes) > 0, "{quality:?}");
    }
}

/// A file cut short between opening and decoding.
#[test]
fn a_file_that_shrinks_is_read_as_far_as_it_goes() {
    let path = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(path.path(), &FILES[0]).unwrap();
    let trace = holdup_perfetto::open(path.path()).unwrap();
    let (whole, _) = drain(&trace).unwrap();
    path.as_file().set_len(9000).unwrap();
    let (cut, quality) = drain(&trace).unwrap();
    assert!(cut < whole);
    assert_eq!(quality.count(QualityCode::Truncated), 1, "{quality:?}");
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 200, failure_persistence: None, ..ProptestConfig::default()
    })]

    #[test]
    fn byte_flips_never_panic(
        which in 0..4usize,
        flips in prop::collection::vec((0.0..1.0f64, any::<u8>()), 1..40),
    ) {
        let mut file = FILES[which].clone();
        for (at, value) in flips {
            let at = (file.len() as f64 * at) as usize;
            file[at] = value;
        }
        let _ = read(&file);
    }

    #[test]
    fn noise_never_panics(bytes in prop::collection::vec(any::<u8>(), 0..2000)) {
        let _ = read(&bytes);
        let _ = read(&[&FILES[1][..700], &bytes, &FILES[1][700..]].concat());
    }
}
