//! No bare numeric limit judges: what decides is a registered threshold with a default, a unit and
//! a source, settable in a file and listed by `holdup rules`.
//!
//! The test reads the sources of the judgement (attribution and diagnose, without their tests) and
//! looks for two things:
//!
//! * a comparison (`<`, `<=`, `>`, `>=`, as rustfmt spaces them) on a line with a number in it;
//! * a constant of a numeric type.
//!
//! Let through are 0, 1, 2 and 100: "any", "more than one", "more than half" and per cent say what
//! they mean where they stand. So are what [`NO_LIMITS`] lists, each for its reason. What the test
//! cannot see is a number that is named first (`let limit = 40;`) or a comparison over two lines.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Constants and lines that decide no verdict.
const NO_LIMITS: &[(&str, &str)] = &[
    // How often verdicts were right, measured over the labelled corpus: a result, not a limit.
    ("verdict.rs", "const HEALTHY_RIGHT"),
    ("verdict.rs", "const HEALTHY_NEAR"),
    ("verdict.rs", "const RIVAL"),
    ("verdict.rs", "const RIGHT_MP_UP"),
    ("verdict.rs", "const CHOSEN"),
    // A kernel's version.
    ("record.rs", "v < (5, 19)"),
    // How much is printed.
    ("chosen.rs", "const WAITS"),
    ("chosen.rs", "const PROGRAMS"),
    ("chosen.rs", "const OTHERS"),
    ("table.rs", "const HOLDERS"),
    ("mod.rs", "const CULPRITS"),
    ("mod.rs", "const PEOPLE"),
    ("code.rs", "const NEARLY_ALL"),
    ("code.rs", "const NAMED"),
    ("code.rs", "const FUNCTIONS"),
    ("kernel_lock_conflict.rs", "if ns >= 10_000_000"),
    // Bounds of the work, documented with the tables: chains followed so deep, edges drawn.
    ("path.rs", "const DEPTH"),
    ("graph.rs", "const KNOT_PCT"),
    ("graph.rs", "const NEW"),
    // The largest machine of a prediction: bounds of the work.
    ("mod.rs", "const MOST_CPUS"),
    ("mod.rs", "const MOST_THREADS"),
    // Who is a customer of a model's network: they decide a prediction, not a verdict.
    ("trace.rs", "const LEAST_THERE"),
    ("kinds.rs", "const MOST_KINDS"),
    ("kinds.rs", "const NOTABLE"),
    // So many holds must be seen before a model says anything: it decides a prediction too.
    ("held.rs", "const ENOUGH"),
    // Bytes and number of files; no limits of a verdict.
    ("worth.rs", "const SMALL"),
    ("worth.rs", "const WINDOW"),
    ("worth.rs", "const ENTRIES"),
    // How many phases one reads at a glance, and what alternates in a row.
    ("phases.rs", "const MOST"),
    ("phases.rs", "const CYCLE"),
    // Programs told apart.
    ("phases.rs", "const FOLLOWED"),
];

fn sources(dir: &Path, out: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(dir).unwrap_or_else(|e| panic!("{}: {e}", dir.display())) {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, out);
        } else if path.extension().is_some_and(|e| e == "rs") {
            out.push(path);
        }
    }
}

/// The line without comments and without what stands in quotes.
fn code(line: &str) -> String {
    let line = line.split("//").next().unwrap_or("");
    line.split('"').step_by(2).collect::<Vec<_>>().join("\"\"")
}

/// Numbers of the line that need a name. How many of a list are shown (`take`) needs none.
fn numbers(code: &str) -> Vec<String> {
    let code: String =
        code.split(".take(").map(|s| s.trim_start_matches(char::is_numeric)).collect();
    let word = |c: char| c.is_alphanumeric() || c == '_' || c == '.';
    code.split(|c: char| !word(c))
        .flat_map(|w| w.split(".."))
        .filter(|w| w.starts_with(|c: char| c.is_ascii_digit()))
        .map(|w| w.trim_end_matches('.').replace('_', ""))
        .filter(|w| w.parse::<f64>().is_ok_and(|n| ![0.0, 1.0, 2.0, 100.0].contains(&n)))
        .collect()
}

/// Why the line is a bare limit, if it is one.
fn bare_limit(line: &str) -> Option<String> {
    let code = code(line);
    let numbers = numbers(&code);
    let compares = [" < ", " <= ", " > ", " >= "].iter().any(|op| format!("{code} ").contains(op));
    let numeric = ["u8", "u16", "u32", "u64", "u128", "usize", "i64", "f64", "Nanos"]
        .iter()
        .any(|t| code.contains("const ") && code.contains(&format!(": {t} =")));
    match (compares, numeric) {
        (true, _) if !numbers.is_empty() => Some(format!("compares with {}", numbers.join(", "))),
        (_, true) => Some("a constant of a numeric type".to_owned()),
        _ => None,
    }
}

#[test]
fn every_limit_that_judges_is_registered() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("crates");
    let mut files = Vec::new();
    for name in ["attribution", "diagnose"] {
        sources(&crates.join(name).join("src"), &mut files);
    }
    assert!(files.len() > 20, "{} files: where are the sources?", files.len());
    let (mut found, mut used) = (Vec::new(), vec![false; NO_LIMITS.len()]);
    for path in files {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let text = std::fs::read_to_string(&path).unwrap();
        // Figures that are read, not judged.
        if name == "figures.rs" {
            continue;
        }
        for (i, line) in text.lines().take_while(|l| *l != "#[cfg(test)]").enumerate() {
            let Some(why) = bare_limit(line) else { continue };
            let known = NO_LIMITS.iter().position(|(f, start)| *f == name && line.contains(start));
            match known {
                Some(at) => used[at] = true,
                None => found.push(format!("{}:{}: {why}: {}", name, i + 1, line.trim())),
            }
        }
    }
    assert!(found.is_empty(), "register them (thresholds! {{}}):\n{}", found.join("\n"));
    for (used, (file, start)) in used.iter().zip(NO_LIMITS) {
        assert!(used, "{file} has no '{start}' any more: take it off the list");
    }
}

#[test]
fn the_search_finds_what_it_is_for() {
    for line in [
        "    if busy >= 50.0 {",
        "        .filter(|w| w.1 * 4 >= wall * 3)",
        "const FEW: u64 = 30;",
        "            && idle_pct < 7.5",
    ] {
        assert!(bare_limit(line).is_some(), "{line}");
    }
    for line in [
        "    for c in list.iter().take(3).filter(|c| c.pct >= limit) {",
        "    if part * 2 > whole || list.len() > 1 {",
        "    // below 50 > 40",
        "    format!(\"{x} > 50\")",
        "    let x: Vec<u64> = f(3);",
        "    if value >= facts.limit(&BUSY) {",
        "const THRESHOLDS: &[Threshold] = &[];",
    ] {
        assert_eq!(bare_limit(line), None, "{line}");
    }
}

/// The key that a line of `thresholds!` defines.
fn key(line: &str) -> Option<&str> {
    let (_, after) = line.trim().split_once(" = \"")?;
    let (key, default) = after.split_once("\", ")?;
    let number = default.split(',').next()?.parse::<f64>().is_ok();
    (number && key.contains('.') && !line.trim().starts_with("//")).then_some(key)
}

/// A list of thresholds that `rules/mod.rs` does not name cannot be set, and the compiler is
/// silent: it gives no warnings about what a macro of another crate made.
#[test]
fn every_threshold_of_the_sources_is_in_the_registry() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("crates");
    let mut files = Vec::new();
    for name in ["attribution", "diagnose"] {
        sources(&crates.join(name).join("src"), &mut files);
    }
    let texts: Vec<String> = files.iter().map(|f| std::fs::read_to_string(f).unwrap()).collect();
    let lines = texts.iter().flat_map(|t| t.lines().take_while(|l| *l != "#[cfg(test)]"));
    let defined: BTreeSet<&str> = lines.filter_map(key).collect();
    let registry: BTreeSet<&str> = holdup_diagnose::registry().iter().map(|t| t.key).collect();
    let missing: Vec<_> = defined.difference(&registry).collect();
    assert!(missing.is_empty(), "in no list of crates/diagnose/src/rules/mod.rs: {missing:?}");
    let unseen: Vec<_> = registry.difference(&defined).collect();
    assert!(unseen.is_empty(), "the search of this test misses {unseen:?}");
}
