//! Every leaf of the capacity ledger is filled by something.

use holdup_attribution::{Leaf, analyze};
use holdup_diagnose::diagnose;
use holdup_diagnose::metrics::{Figures, judge};
use holdup_passes::Options;
use holdup_testkit::ChosenCalls;
use holdup_trace::Reader;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

fn fixtures(folder: &str, name: impl Fn(&Path) -> bool) -> Vec<PathBuf> {
    let folder = crate::support::fixture(folder);
    let entries = std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().path());
    entries.filter(|path| name(path)).collect()
}

/// It takes counters or a baseline to divide these, and no fixture has either: the tests of
/// `crates/diagnose` do it with traces built by hand.
const NOT_IN_FIXTURES: &[Leaf] = &[
    Leaf::UserStalled,
    Leaf::UserWork,
    Leaf::ApplicationStalled,
    Leaf::ApplicationWork,
    Leaf::MpOverhead,
];

/// A leaf that nothing fills has no line, and a leaf that waits are judged to belong to but that
/// the ledger does not take would silently become `idle/no-work`.
#[test]
fn every_leaf_is_known_in_some_fixture() {
    let mut known = BTreeSet::new();
    for folder in fixtures("", |p| p.join("perf.data").exists()) {
        let reader = holdup_open::open(&folder.join("perf.data")).unwrap();
        let analysis = analyze(&*reader, &Options::default()).unwrap();
        let ledger = diagnose(reader.info(), &analysis, None).ledger;
        known.extend(ledger.leaves().map(|l| l.0));
        // As every fixture of a choice of calls has it, one is enough.
        if !known.contains(&Leaf::ApplicationUndivided)
            && let Some(chosen) = ChosenCalls::of(&*reader, ["futex"])
        {
            let analysis = analyze(&chosen, &Options::default()).unwrap();
            known.extend(diagnose(chosen.info(), &analysis, None).ledger.leaves().map(|l| l.0));
        }
    }
    for file in fixtures("published", |p| p.extension().is_some_and(|e| e == "toml")) {
        let figures = Figures::parse(&std::fs::read_to_string(&file).unwrap(), None);
        let ledger = figures.map(|f| judge("figures", &f, Default::default()).ledger);
        // Files of several cases want one to be chosen.
        known.extend(ledger.iter().flat_map(|l| l.leaves()).map(|l| l.0));
    }
    let unknown: Vec<&Leaf> = Leaf::ALL.iter().filter(|leaf| !known.contains(leaf)).collect();
    assert_eq!(unknown, NOT_IN_FIXTURES.iter().collect::<Vec<_>>(), "nothing ever fills these");
}
