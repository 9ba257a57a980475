//! The seeds of the fuzz target are the samples of the tests.

use crate::support::writer::{SPECS, sample};
use std::path::Path;

#[test]
fn the_seeds_of_the_fuzz_target_are_the_samples() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/ctf");
    let names = ["little-compact", "big-large", "little-large-context", "big-compact-context"];
    for (spec, name) in SPECS.into_iter().zip(names) {
        let files = sample(spec);
        let mut seed = (files[0].1.len() as u32).to_le_bytes().to_vec();
        seed.extend(&files[0].1);
        // All packets in one stream; each packet states its CPU.
        seed.extend(files[1].1.iter().chain(&files[2].1));
        let path = folder.join(name);
        if std::env::var_os("HOLDUP_BLESS").is_some() {
            std::fs::create_dir_all(&folder).unwrap();
            std::fs::write(&path, &seed).unwrap();
        }
        assert!(std::fs::read(&path).unwrap() == seed, "HOLDUP_BLESS=1 writes {name}");
    }
}
