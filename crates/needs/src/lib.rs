//! Tests that need a tool or recordings say so, and are *ignored* where it is missing.
//!
//! ```text
//! #[needs(perf, corpus)]
//! #[test]
//! fn perf_prints_the_same() {}
//! ```
//!
//! Where perf is missing, the test runner shows `ignored, needs perf: not in PATH` and counts the
//! test. This crate's `build.rs` lists all that can be needed and how it is looked for. It is a
//! macro, not a `cfg`, so that a crate with such tests needs no build script of its own.

use proc_macro::{TokenStream, TokenTree};

include!(concat!(env!("OUT_DIR"), "/probes.rs"));

/// `#[needs(perf, trace_cmd, ..)]`, above `#[test]`: ignores the test if one of them is missing.
#[proc_macro_attribute]
pub fn needs(wanted: TokenStream, test: TokenStream) -> TokenStream {
    // Below `#[test]` it would come too late: that macro has looked for `#[ignore]` by then.
    if !is_test(&test) {
        return error("#[needs(..)] belongs above #[test]");
    }
    let mut missing: Vec<&str> = Vec::new();
    for word in wanted.to_string().split(',').map(str::trim).filter(|w| !w.is_empty()) {
        match PROBES.iter().find(|(name, _)| *name == word) {
            Some((_, found)) => missing.extend(*found),
            None => {
                let known: Vec<&str> = PROBES.iter().map(|p| p.0).collect();
                return error(&format!("nothing is called {word:?}; known are {known:?}"));
            }
        }
    }
    if missing.is_empty() {
        return test;
    }
    let mut out: TokenStream = parse(&format!("#[ignore = {:?}]", missing.join("; ")));
    out.extend(test);
    out
}

/// The folder of recordings next to the repository as a string literal, whether it exists or not.
#[proc_macro]
pub fn corpus(_: TokenStream) -> TokenStream {
    parse(&format!("{CORPUS:?}"))
}

/// Whether one of the attributes in front of the function is `#[test]`.
fn is_test(function: &TokenStream) -> bool {
    function.clone().into_iter().any(
        |token| matches!(token, TokenTree::Group(group) if group.stream().to_string() == "test"),
    )
}

fn error(message: &str) -> TokenStream {
    parse(&format!("compile_error!({message:?});"))
}

fn parse(code: &str) -> TokenStream {
    code.parse().expect("made of a quoted string")
}
