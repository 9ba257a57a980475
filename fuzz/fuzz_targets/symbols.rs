//! Reads arbitrary bytes as a program with debug information, and as lists of functions.
//! `cargo +nightly fuzz run symbols`

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| holdup_symbols::try_all(bytes));
