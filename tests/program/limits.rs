//! Limits: few, of three kinds, all in the registry. That nothing else can be one is a matter of
//! types: [`Threshold`] has a private field (crates/passes/src/limits/mod.rs).

use holdup_attribution::{LimitKind, Threshold};
use holdup_diagnose::{registry, rules};
use std::collections::BTreeSet;

#[test]
fn every_limit_that_a_rule_names_is_registered() {
    let keys: BTreeSet<&str> = registry().iter().map(|t| t.key).collect();
    for rule in rules::ALL {
        for limit in rule.thresholds {
            assert!(keys.contains(limit.key), "{}: {}", rule.id, limit.key);
        }
    }
}

#[test]
fn every_limit_says_what_it_decides_and_why() {
    for Threshold { key, unit, meaning, source, default, .. } in registry() {
        assert!(key.contains('.') && !unit.is_empty() && default > 0.0, "{key}");
        assert!(meaning.len() > 20 && source.len() > 5, "{key}: {meaning}; {source}");
    }
}

#[test]
fn all_three_kinds_are_there() {
    let of = |kind: LimitKind| registry().iter().filter(|t| t.kind == kind).count();
    for kind in [LimitKind::Matters, LimitKind::Significance, LimitKind::Soundness] {
        assert!(of(kind) > 0, "{}", kind.word());
    }
}
