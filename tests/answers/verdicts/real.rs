//! Recordings of real programs, each labelled by the program's own instruments or by an experiment.
//!
//! A few are kept in `fixtures/real`. The others are looked for in `../shared/corpus/real`.

use super::{Outcome, PAGE, RIGHT_PCT, labels, matrix, right, verdict_on, wrong, wrong_table};
use holdup_diagnose::Class;
use holdup_testkit::{in_parallel, needs};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;
use std::sync::OnceLock;

/// The section's heading; the page in front of it comes from other recordings.
pub(crate) const HEADING: &str = "\n## Real programs\n";

/// The other recordings: title, folder, and at least how many there are.
const OTHERS: [(&str, &str, usize); 2] = [
    ("Programs that people run", "real/apps", 50),
    ("Loops of the benchmark will-it-scale", "real/wis", 20),
];

/// A recording of a real program and the verdict on it.
struct Judged {
    /// Names of recordings of the same program with the bottleneck that this one is without.
    fixes: Vec<String>,
    outcome: Outcome,
}

fn judge(of: labels::Labelled) -> Outcome {
    let verdict = verdict_on(&of.path);
    Outcome { of, verdict, changed: BTreeMap::new() }
}

/// Those of the repository.
fn kept() -> Vec<Judged> {
    let twins: BTreeMap<String, Vec<String>> = labels::kept_rows()
        .into_iter()
        .map(|[file, _, _, _, _, _, twins, _]| {
            let fixes = twins.split('|').filter_map(|t| t.strip_prefix("of:")).map(str::to_owned);
            (labels::stem(Path::new(&file)), fixes.collect())
        })
        .collect();
    in_parallel(labels::kept(), |of| Judged { fixes: twins[&of.name].clone(), outcome: judge(of) })
}

/// Those of each folder of [`OTHERS`].
fn others() -> &'static [Vec<Outcome>] {
    static ALL: OnceLock<Vec<Vec<Outcome>>> = OnceLock::new();
    ALL.get_or_init(|| {
        OTHERS.map(|(_, folder, _)| in_parallel(labels::labelled_in(folder), judge)).into()
    })
}

/// The fixed twins that got an answer which is right for the recording they fix, and wrong for
/// them.
fn called_as_their_twin(of: &[Judged]) -> Vec<String> {
    let by_name: BTreeMap<&str, &Outcome> =
        of.iter().map(|j| (j.outcome.of.name.as_str(), &j.outcome)).collect();
    let mut out = Vec::new();
    for fixed in of.iter().filter(|j| !j.outcome.is_right()) {
        let class = fixed.outcome.verdict.class;
        for twin in fixed.fixes.iter().filter_map(|name| by_name.get(name.as_str())) {
            if class != Class::NotEnoughEvidence && twin.of.right.iter().any(|r| r == class.id()) {
                out.push(format!(
                    "{}: classified as {}, like {}, which it fixes",
                    fixed.outcome.of.name,
                    class.id(),
                    twin.of.name
                ));
            }
        }
    }
    out
}

fn section() -> String {
    let mut out = include_str!("real.md").to_owned();
    for ((title, ..), all) in OTHERS.iter().zip(others()) {
        let all: Vec<&Outcome> = all.iter().collect();
        let best = all.iter().filter(|o| o.of.right[0] == o.verdict.class.id()).count();
        write!(
            out,
            "\n### {title}: {} of {} accepted, {best} best\n\n{}",
            right(&all),
            all.len(),
            matrix(&all)
        )
        .unwrap();
        if right(&all) < all.len() {
            out.push('\n');
            out.push_str(&wrong_table(&all, "wrong verdict on", |_| ""));
        }
    }
    out
}

#[test]
fn real_programs_that_are_kept_get_a_right_verdict() {
    let all = kept();
    assert!(all.len() >= 6, "{} recordings", all.len());
    let outcomes: Vec<&Outcome> = all.iter().map(|j| &j.outcome).collect();
    assert_eq!(wrong(&outcomes), Vec::<String>::new());
    assert_eq!(called_as_their_twin(&all), Vec::<String>::new());
}

/// The rows of `fixtures/real` and the files beside them are the same, and every twin has a row.
#[test]
fn the_labels_of_real_programs_fit_together() {
    let there: BTreeSet<String> = std::fs::read_dir(labels::root().join("fixtures/real"))
        .unwrap()
        .map(|e| e.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.ends_with(".zst"))
        .collect();
    let rows = labels::kept_rows();
    assert_eq!(rows.iter().map(|row| row[0].clone()).collect::<BTreeSet<_>>(), there);
    let names: BTreeSet<String> = there.iter().map(|f| labels::stem(Path::new(f))).collect();
    for [file, _, half, _, _, classes, twins, _] in &rows {
        assert!(matches!(&half[..], "tune" | "check"), "{file}: {half:?} is no half");
        for twin in twins.split('|').filter(|t| !t.is_empty()) {
            let name = twin.strip_prefix("of:").unwrap_or(twin);
            assert!(names.contains(name), "no recording {name}, a twin of {file}");
        }
        for class in classes.split('|').map(labels::class) {
            assert!(Class::ALL.iter().any(|c| c.id() == class), "{class} of {file}");
        }
    }
}

#[needs(corpus)]
#[test]
fn programs_get_right_verdicts() {
    for ((_, folder, least), all) in OTHERS.iter().zip(others()) {
        let all: Vec<&Outcome> = all.iter().collect();
        assert!(all.len() >= *least, "{folder}: {} recordings", all.len());
        assert!(right(&all) * 100 >= all.len() * RIGHT_PCT, "wrong: {:#?}", wrong(&all));
        let alarms = all.iter().filter(|o| o.of.is_healthy() && !o.is_right());
        let alarms: Vec<&str> = alarms.map(|o| o.of.name.as_str()).collect();
        assert_eq!(alarms, Vec::<&str>::new(), "healthy, and called something else");
    }
}

#[needs(corpus)]
#[test]
fn the_section_on_real_programs_is_up_to_date() {
    let section = section();
    let _turn = PAGE.lock();
    let path = labels::root().join("docs/verdicts.md");
    let text = std::fs::read_to_string(&path).unwrap();
    let (page, old) = text.split_at(text.find(HEADING).unwrap_or(text.len()));
    // What follows comes from another test.
    let (old, limits) = old.split_at(old.find(labels::LIMITS).unwrap_or(old.len()));
    if std::env::var_os("HOLDUP_BLESS").is_some() {
        std::fs::write(&path, format!("{page}{section}{limits}")).unwrap();
    } else {
        assert_eq!(old, section, "HOLDUP_BLESS=1 cargo test --test answers verdicts");
    }
}
