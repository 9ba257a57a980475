//! Cut and damaged files must give an error that names the place, or everything that can be read
//! with the missing parts counted; never a panic, never a hang.

use crate::support::writer::{BufferSpec, FileSpec};
use holdup_trace::{Batch, ErrorKind, QualityCode, Reader};
use proptest::prelude::*;
use std::path::Path;
use std::sync::LazyLock;

fn fixture(name: &str) -> Vec<u8> {
    let path =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/tracedat-small").join(name);
    zstd::decode_all(std::fs::File::open(path).expect("the fixture is in the repository"))
        .expect("and sound")
}

/// Real files of every layout, and a big-endian one.
static FILES: LazyLock<[Vec<u8>; 4]> = LazyLock::new(|| {
    let mut s = FileSpec { big: true, long: 4, codec: "zlib", ..FileSpec::new(7) };
    let page = |t| (0..40).fold(s.page(t), |p, n| p.wakeup(10, 1, n).sys_enter(5, 1, 3)).build();
    let cpus = vec![(0, (0..8).flat_map(|n| page(n * 10_000)).collect()), (1, page(77))];
    s.buffers.push(BufferSpec { name: "", cpus });
    [
        fixture("imb_single_c2.trace.dat.zst"),
        fixture("thr_mutex_tc6_c8.trace.dat.zst"),
        fixture("thr_mutex_tc7n_c8.trace.dat.zst"),
        s.build(),
    ]
});

/// Read everything. Returns the number of events and the counters, or the error of opening.
fn read(bytes: &[u8]) -> Result<(usize, holdup_trace::Quality), ErrorKind> {
    let dat = holdup_tracedat::open_stream(Path::new("x"), bytes).map_err(|e| e.kind)?;
    let mut quality = dat.quality().clone();
    let mut events = 0;
    let mut batch = Batch::new();
    for run in 0..dat.runs().len() {
        let mut decoder = dat.decoder(run);
        loop {
            batch.clear();
            let more = decoder.fill(&mut batch).map_err(|e| e.kind)?;
            events += batch.events.len();
            // Even the smallest possible events cannot outnumber the bytes.
            assert!(events <= bytes.len() * 64, "events without bytes");
            for e in &batch.events {
                assert!(
                    e.id == holdup_trace::EventId::SIDEBAND
                        || (e.id.0 as usize) < dat.info().events.len()
                );
                assert!(e.ts >= dat.runs()[run].first_ts);
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
fn the_fixtures_are_whole() {
    let whole: Vec<_> = FILES.iter().map(|f| read(f).unwrap()).collect();
    assert_eq!(whole.iter().map(|w| w.0).collect::<Vec<_>>(), [811, 11037, 2702, 720]);
    assert!(whole.iter().all(|w| w.1.is_empty()), "{whole:?}");
}

#[test]
fn a_header_cut_anywhere_names_the_place() {
    for file in FILES.iter() {
        for len in (0..400).chain([4000, 20_000]).filter(|&l| l < file.len() / 2) {
            match read(&file[..len]) {
                Err(ErrorKind::Malformed { offset, expected, .. }) => {
                    assert!(!expected.is_empty());
                    // Version 7 states the offset of its options, which may be beyond the cut.
                    assert!(file[10] == b'7' || offset <= len as u64, "{offset} in {len} bytes");
                }
                Ok(_) => panic!("{len} bytes hold no trace"),
                Err(e) => panic!("{e}"),
            }
        }
    }
}

/// A file cut short between opening and decoding, e.g. by a recorder that starts over.
#[test]
fn a_file_that_shrinks_is_read_as_far_as_it_goes() {
    for file in &FILES[..3] {
        let path = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(path.path(), file).unwrap();
        let dat = holdup_tracedat::open(path.path()).unwrap();
        let (whole, quality) = crate::support::events(&dat, |_, _, _| ());
        assert!(quality.is_empty());
        path.as_file().set_len(5000).unwrap();
        let (cut, quality) = crate::support::events(&dat, |_, _, _| ());
        assert!(cut.len() < whole.len());
        assert!(quality.count(QualityCode::Truncated) > 0);
    }
}

/// Tables that give every CPU the whole file would make holdup read it once per CPU.
#[test]
fn overlapping_cpus_are_not_followed() {
    let mut file = FILES[1].clone();
    let table = file.windows(10).rposition(|w| w == b"flyrecord\0").unwrap() + 10;
    let (size, len) = (file.len() as u64, file.len() as u64);
    for cpu in 1..8 {
        file[table + 16 * cpu..][..8].copy_from_slice(&(len % 4096).to_le_bytes());
        file[table + 16 * cpu + 8..][..8].copy_from_slice(&size.to_le_bytes());
    }
    let (_, quality) = read(&file).unwrap();
    assert!(quality.count(QualityCode::Truncated) > 0);
}

#[test]
fn trace_data_cut_anywhere_is_read_as_far_as_it_goes() {
    // Only version 6 has its data last in the file.
    let file = &FILES[1];
    let (all, _) = read(file).unwrap();
    let mut before = all + 1;
    for cut in [1, 100, 4096, 5000, 70_000, 200_000, 400_000] {
        let (events, quality) = read(&file[..file.len() - cut]).unwrap();
        assert!(events < before, "fewer and fewer: {events} after {before}");
        assert!(quality.count(QualityCode::Truncated) > 0);
        before = events + (cut < 4096) as usize;
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 120, failure_persistence: None, ..ProptestConfig::default()
    })]

    #[test]
    fn truncation_never_panics(which in 0..4usize, at in 0.0..1.0f64) {
        let file = &FILES[which];
        let _ = read(&file[..(file.len() as f64 * at) as usize]);
    }

    #[test]
    fn byte_flips_never_panic(
        which in 0..4usize,
        flips in prop::collection::vec((0.0..1.0f64, any::<u8>()), 1..40),
        front in any::<bool>(),
    ) {
        let mut file = FILES[which].clone();
        // Half of the cases aim at the metadata and the tables, which are a small part of a file.
        let span = if front { file.len().min(20_000) } else { file.len() };
        let base = if front && which == 2 { file.len() - span } else { 0 };
        for (at, value) in flips {
            file[base + (span as f64 * at) as usize] = value;
        }
        let _ = read(&file);
    }

    #[test]
    fn noise_in_the_trace_data_never_panics(seed in any::<u64>(), from in 0.0..1.0f64) {
        // Pages of version 6 are at the end; whole blocks are overwritten with noise.
        let mut file = FILES[1].clone();
        let data = file.len() - 500_000;
        let from = data + (490_000.0 * from) as usize;
        let mut x = seed | 1;
        for b in &mut file[from..from + 9000] {
            x ^= x << 13;
            x ^= x >> 7;
            x ^= x << 17;
            *b = x as u8;
        }
        prop_assert!(read(&file).is_ok());
    }
}
