//! What a finding prints is what decides, on every recording at hand:
//!
//! * its cost is the sum of leaves of the ledger, or of parts of them, that it names;
//! * the limit printed beside a figure is the applied one: a limit moved to the other side of the
//!   figure changes the ruling.

use crate::oracle::corpus;

use corpus::Recording;
use holdup_attribution::{Threshold, Thresholds, analyze};
use holdup_diagnose::metrics::{self, Figures};
use holdup_diagnose::{Diagnosis, Finding, diagnose_with, registry};
use holdup_passes::{Analysis, Options};
use holdup_testkit::{in_parallel, needs};
use holdup_trace::Reader;
use std::collections::{BTreeMap, BTreeSet};

fn over_all<T: Send>(look: impl Fn(&Recording, &dyn Reader, &Analysis) -> T + Sync) -> Vec<T> {
    let seen = in_parallel(corpus::all_files(), |file| {
        let reader = holdup_open::open(&file.path).ok()?;
        let analysis = analyze(&*reader, &Options::default()).ok()?;
        Some(look(&file, &*reader, &analysis))
    });
    seen.into_iter().flatten().collect()
}

fn broken_sums(name: &str, d: &Diagnosis) -> Vec<String> {
    let nodes: BTreeMap<_, _> = d.ledger.nodes().into_iter().map(|n| (n.path, n.ns)).collect();
    let mut broken = Vec::new();
    for f in &d.findings {
        let sum: u64 = f.leaves.iter().map(|p| p.ns).sum();
        if f.priced() != Some(sum) {
            broken.push(format!("{name}, {}: {sum} in leaves, {:?} lost", f.rule, f.priced()));
        }
        for p in &f.leaves {
            if nodes.get(p.path).is_none_or(|&ns| p.ns > ns || p.ns == 0) {
                broken.push(format!("{name}, {}: {} of {:?}", f.rule, p.ns, nodes.get(p.path)));
            }
        }
    }
    broken
}

#[test]
fn the_cost_of_every_finding_is_a_sum_of_leaves() {
    let broken: Vec<String> = over_all(|file, reader, analysis| {
        broken_sums(
            &file.name,
            &diagnose_with(reader.info(), analysis, None, Thresholds::default()),
        )
    })
    .into_iter()
    .flatten()
    .collect();
    assert!(broken.is_empty(), "{broken:#?}");
}

/// All of a finding that a limit may change.
fn ruling(d: &Diagnosis, rule: &str) -> (Option<String>, u64, &'static str, &'static str) {
    let f = d.findings.iter().find(|f| f.rule == rule).expect("every rule has a finding");
    // The reason may quote the limit: that alone is no change.
    let why = f.ruled_out.as_ref().map(|w| w.chars().filter(|c| !c.is_ascii_digit()).collect());
    (why, f.lost_cpu_ns, f.story, d.verdict.class.id())
}

/// Rows of a finding with a limit: figure, limit, key.
fn checked(f: &Finding) -> impl Iterator<Item = (f64, f64, &'static str)> + '_ {
    f.evidence.iter().filter_map(|e| Some((e.value?, e.threshold?, e.threshold_key?)))
}

/// Pairs of a rule and the key of a limit.
type Seen = BTreeSet<(&'static str, &'static str)>;

/// Move each printed limit to the other side of its figure: which limits are printed, and which of
/// them change the ruling.
fn drive(all: &BTreeMap<&str, Threshold>, judge: impl Fn(Thresholds) -> Diagnosis) -> (Seen, Seen) {
    let plain = judge(Thresholds::default());
    let (mut printed, mut decided) = (Seen::new(), Seen::new());
    for f in &plain.findings {
        for (value, limit, key) in checked(f) {
            printed.insert((f.rule, key));
            if decided.contains(&(f.rule, key)) {
                continue;
            }
            // Figures are rounded to three decimals.
            let other_side = if value >= limit { value + 0.01 } else { (value - 0.01).max(0.0) };
            let mut thresholds = Thresholds::default();
            thresholds.set(&all[key], other_side);
            if ruling(&judge(thresholds), f.rule) != ruling(&plain, f.rule) {
                decided.insert((f.rule, key));
            }
        }
    }
    (printed, decided)
}

// The fixtures alone do not bring every limit to where it decides.
#[needs(corpus)]
#[test]
fn every_printed_limit_is_the_applied_one() {
    let all: BTreeMap<&str, Threshold> = registry().into_iter().map(|t| (t.key, t)).collect();
    let outcomes = over_all(|_, reader, analysis| {
        drive(&all, |t| diagnose_with(reader.info(), analysis, None, t))
    });
    let (mut printed, mut decided) = (Seen::new(), Seen::new());
    for (p, d) in outcomes {
        printed.extend(p);
        decided.extend(d);
    }
    assert!(printed.len() >= 10, "{printed:?}");
    let idle: Vec<_> = printed.difference(&decided).collect();
    assert!(idle.is_empty(), "printed beside a figure, but decide nothing: {idle:?}");
}

#[test]
fn so_it_is_for_published_figures() {
    let all: BTreeMap<&str, Threshold> = registry().into_iter().map(|t| (t.key, t)).collect();
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures");
    let (mut printed, mut decided) = (BTreeSet::new(), BTreeSet::new());
    for folder in ["published", "figures"] {
        for file in std::fs::read_dir(root.join(folder)).unwrap() {
            let path = file.unwrap().path();
            if path.extension().is_none_or(|e| e != "toml") {
                continue;
            }
            let text = std::fs::read_to_string(&path).unwrap();
            let Ok(figures) = Figures::parse(&text, None) else { continue };
            let (p, d) = drive(&all, |t| metrics::judge("figures", &figures, t));
            printed.extend(p);
            decided.extend(d);
        }
    }
    assert!(printed.len() >= 5, "{printed:?}");
    let idle: Vec<_> = printed.difference(&decided).collect();
    assert!(idle.is_empty(), "printed beside a figure, but decide nothing: {idle:?}");
}
