//! The rules as documentation: every rule is registered, described, sourced, and shown at work;
//! `docs/rules.md` is what they say. `HOLDUP_BLESS=1 cargo test --test answers rules` rewrites it.

use holdup_diagnose::metrics::{Figures, judge};
use holdup_diagnose::rules::{ALL, thresholds};
use holdup_diagnose::{Class, Thresholds, diagnose};
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// The verdict on a file under `fixtures/`.
fn verdict(fixture: &str) -> Class {
    let path = root().join("fixtures").join(fixture);
    if fixture.ends_with(".toml") {
        let text =
            std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        return judge(fixture, &Figures::parse(&text, None).unwrap(), Thresholds::default())
            .verdict
            .class;
    }
    let reader = holdup_open::open(&path).unwrap_or_else(|e| panic!("{e}"));
    let analysis =
        holdup_attribution::analyze(&*reader, &holdup_passes::Options::default()).unwrap();
    diagnose(reader.info(), &analysis, None).verdict.class
}

#[test]
fn every_file_is_a_registered_rule() {
    let mut files: Vec<String> = std::fs::read_dir(root().join("crates/diagnose/src/rules"))
        .unwrap()
        .map(|e| e.unwrap().file_name().to_string_lossy().replace(".rs", "").replace('_', "-"))
        .filter(|name| name != "mod")
        .collect();
    files.sort();
    let mut ids: Vec<&str> = ALL.iter().map(|r| r.id).collect();
    ids.sort_unstable();
    assert_eq!(files, ids, "a rule's file is named as its id, and rules::ALL lists it");
}

#[test]
fn every_rule_is_documented() {
    for rule in ALL {
        let (id, manual) = (rule.id, rule.manual());
        assert!(
            rule.title().ends_with('.') && rule.title().len() < 120,
            "{id}: the first paragraph is one short sentence: {}",
            rule.title()
        );
        for heading in ["# What it does", "# What to do"] {
            assert!(manual.contains(heading), "{id}: the description lacks '{heading}'");
        }
        assert!(manual.contains("Source:"), "{id}: the description names no source");
        assert!(manual.lines().count() >= 8, "{id}: a manual page has more to say");
        assert!(!rule.needs.is_empty(), "{id}: what does it need?");
        let known: Vec<&str> =
            holdup_trace::Capabilities::default().list().iter().map(|c| c.0).collect();
        assert!(
            rule.needs.iter().flat_map(|n| n.split(" or ")).all(|n| known.contains(&n)),
            "{id}: needs {:?}, known are {known:?}",
            rule.needs
        );
    }
}

#[test]
fn every_threshold_has_a_meaning_and_a_source() {
    let all = thresholds();
    for t in &all {
        assert!(
            t.meaning.len() > 15 && t.source.len() > 15 && !t.unit.is_empty(),
            "{}: meaning, unit or source is missing",
            t.key
        );
        assert_eq!(all.iter().filter(|o| o.key == t.key).count(), 1, "{}: twice", t.key);
    }
    for rule in ALL {
        for t in rule.thresholds {
            let section = t.key.split('.').next().unwrap();
            let other = ALL.iter().find(|other| other.id == section && other.id != rule.id);
            assert!(other.is_none(), "{}: {} belongs to another rule", rule.id, t.key);
        }
    }
}

#[test]
fn every_rule_is_shown_at_work() {
    for rule in ALL {
        assert_eq!(
            verdict(rule.fixtures.positive),
            rule.class,
            "{}: positive fixture {}",
            rule.id,
            rule.fixtures.positive
        );
        assert_ne!(
            verdict(rule.fixtures.negative),
            rule.class,
            "{}: negative fixture {}",
            rule.id,
            rule.fixtures.negative
        );
    }
}

#[test]
fn docs_rules_md_is_what_the_rules_say() {
    up_to_date(&root().join("docs/rules.md"));
}

fn up_to_date(path: &Path) {
    let mut text = Vec::new();
    holdup_render::markdown::write_rules(&mut text).unwrap();
    if std::env::var_os("HOLDUP_BLESS").is_some() {
        std::fs::write(path, &text).unwrap();
    }
    let there = std::fs::read(path).unwrap_or_default();
    assert!(
        there == text,
        "{} is not what the rules say; HOLDUP_BLESS=1 cargo test --test answers rules rewrites it",
        path.display()
    );
}
