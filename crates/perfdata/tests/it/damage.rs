//! Damaged files: whatever is cut off or flipped, reading ends, in order, without a panic.

use crate::common::{Builder, Container, drain, files_below, open_bytes};
use holdup_trace::Reader;
use proptest::prelude::*;
use std::sync::OnceLock;

/// Small files of every container, built and (where there is a corpus) real.
fn files() -> &'static Vec<Vec<u8>> {
    static FILES: OnceLock<Vec<Vec<u8>>> = OnceLock::new();
    FILES.get_or_init(|| {
        let mut files = Vec::new();
        for big in [false, true] {
            let mut b = Builder::new(big);
            b.comm(0, 7, b"seven\0\0\0");
            b.fork(0, 1, 8);
            for i in 0..60 {
                b.switch(1000 + i * 10, 0, 7, 0);
                if i % 7 == 0 {
                    b.switch(1000 + i * 9, 1, 8, 0);
                    b.contention(1000 + i * 9 + 1, 1, 8, &[-128i64 as u64, 0xffff_ffff_8100_0010]);
                    b.round();
                }
            }
            files.extend(
                [Container::File, Container::Pipe, Container::Compressed, Container::Compressed2]
                    .map(|c| b.build(c)),
            );
        }
        for folder in ["public/google+perf_data_converter", "public/mstange+linux-perf-data"] {
            let folder = holdup_testkit::corpus().join(folder);
            let names = |n: &str| n.starts_with("perf.data") || n.ends_with(".data");
            files.extend(
                files_below(&folder, &names)
                    .iter()
                    .filter_map(|f| std::fs::read(f).ok())
                    .filter(|b| b.len() < 64 << 10),
            );
        }
        files
    })
}

/// Open and read to the end; the events must not outnumber what the bytes can hold.
fn read(bytes: &[u8]) {
    let Ok(file) = open_bytes(bytes) else { return };
    let (events, _) = drain(&file);
    let compressed = file.info().format.contains("compressed");
    assert!(
        compressed || events.len() <= bytes.len() / 8,
        "{} events from {} bytes",
        events.len(),
        bytes.len()
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn cut_anywhere(which in any::<prop::sample::Index>(), at in any::<prop::sample::Index>()) {
        let file = which.get(files());
        read(&file[..at.index(file.len())]);
    }

    #[test]
    fn flipped_anywhere(
        which in any::<prop::sample::Index>(),
        flips in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..20),
    ) {
        let mut file = which.get(files()).clone();
        for (at, mask) in flips {
            let at = at.index(file.len());
            file[at] ^= mask;
        }
        read(&file);
    }

    /// The header and the first records are where a flip hurts most.
    #[test]
    fn flipped_in_front(
        which in any::<prop::sample::Index>(),
        flips in prop::collection::vec((0usize..400, any::<u8>()), 1..6),
    ) {
        let mut file = which.get(files()).clone();
        for (at, mask) in flips {
            if let Some(b) = file.get_mut(at) {
                *b ^= mask;
            }
        }
        read(&file);
    }

    #[test]
    fn noise_behind_a_header(
        which in any::<prop::sample::Index>(),
        at in 16usize..400,
        noise in prop::collection::vec(any::<u8>(), 0..4000),
    ) {
        let mut file = which.get(files()).clone();
        file.truncate(at);
        file.extend(noise);
        read(&file);
    }
}

#[test]
fn the_fuzz_corpus_reads() {
    let folder =
        std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/perfdata");
    let seeds = files_below(&folder, &|_| true);
    assert!(!seeds.is_empty(), "no fuzz corpus at {}", folder.display());
    for seed in seeds {
        read(&std::fs::read(seed).unwrap());
    }
}

/// A file that shrinks while it is read is cut short, not fatal.
#[test]
fn a_file_that_shrinks() {
    let mut b = Builder::new(false);
    for i in 0..20_000 {
        b.switch(1000 + i, 0, 7, 0);
    }
    let temp = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(temp.path(), b.build(Container::File)).unwrap();
    let file = holdup_perfdata::open(temp.path()).unwrap();
    let whole = drain(&file).0.len();
    temp.as_file().set_len(500_000).unwrap();
    let (events, quality) = drain(&file);
    assert!(events.len() < whole && !events.is_empty());
    assert!(quality.count(holdup_trace::QualityCode::Truncated) > 0);
}

/// The committed seeds of the fuzz target are what the builder makes; `HOLDUP_BLESS=1` rewrites
/// them.
#[test]
fn the_fuzz_corpus_is_what_the_builder_makes() {
    let folder =
        std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/perfdata");
    for (name, bytes) in fuzz_seeds() {
        if std::env::var_os("HOLDUP_BLESS").is_some() {
            std::fs::create_dir_all(&folder).unwrap();
            std::fs::write(folder.join(&name), &bytes).unwrap();
        }
        let committed = std::fs::read(folder.join(&name)).unwrap_or_default();
        // What zstd makes of the same input may change with its version: compare what is read.
        assert_eq!(
            drain_bytes(&committed),
            drain_bytes(&bytes),
            "{name}: HOLDUP_BLESS=1 rewrites it"
        );
    }
}

fn drain_bytes(bytes: &[u8]) -> usize {
    holdup_perfdata::open_stream(std::path::Path::new("seed"), bytes)
        .map_or(0, |file| drain(&file).0.len())
}

fn fuzz_seeds() -> Vec<(String, Vec<u8>)> {
    let mut seeds = Vec::new();
    for big in [false, true] {
        for container in
            [Container::File, Container::Pipe, Container::Compressed, Container::Compressed2]
        {
            let mut b = Builder::new(big);
            b.comm(0, 7, b"seven\0\0\0");
            b.switch(1000, 0, 7, 0);
            b.contention(990, 1, 8, &[-128i64 as u64, 0xffff_ffff_8100_0010]);
            b.round();
            let name =
                format!("{container:?}-{}", if big { "big" } else { "little" }).to_lowercase();
            seeds.push((name, b.build(container)));
        }
    }
    // A zero-sized record between sound ones.
    let mut b = Builder::new(false);
    b.switch(1, 0, 7, 0);
    b.records.extend([0; 24]);
    b.switch(2, 0, 7, 0);
    seeds.push(("zero-size".to_owned(), b.build(Container::File)));
    seeds
}
