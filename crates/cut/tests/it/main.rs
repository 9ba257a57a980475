//! Tests of `holdup-cut` from outside.

mod cut;
mod damaged;
mod nameless;

use std::path::{Path, PathBuf};

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures").join(name)
}
