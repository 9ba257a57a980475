//! Recordings of real programs, each labelled by the program's own instruments or by an experiment.
//!
//! A few are kept in `fixtures/real`, the others are looked for where `HOLDUP_REAL` says, or in
//! `../shared/corpus/real`. Both folders hold a `LABELS.tsv` with the columns
//! `file, program, half, where, recorder, true_class, twin, how_known`.

use super::{Outcome, PAGE, false_alarms, labels, matrix, right, verdict_on, wrong, wrong_table};
use holdup_diagnose::Class;
use holdup_testkit::{in_parallel, needs};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;
use std::sync::OnceLock;

/// Of 100 verdicts on the programs that rules were made on, so many are right.
const RIGHT_TO_TUNE_PCT: usize = 90;
/// The same of the programs that check them.
const RIGHT_TO_CHECK_PCT: usize = 85;
/// The section's heading; the page in front of it comes from other recordings.
pub(crate) const HEADING: &str = "\n## Real programs\n";

/// A recording of a real program and the verdict on it.
struct Judged {
    program: String,
    /// Of a program that rules were made on.
    is_to_tune: bool,
    /// Names of recordings of the same program with the bottleneck that this one is without.
    fixes: Vec<String>,
    outcome: Outcome,
}

impl Judged {
    fn is_best(&self) -> bool {
        self.outcome.of.right[0] == self.outcome.verdict.class.id()
    }
}

/// The labelled recordings in a folder, each judged; rows whose recording is not there are left
/// out.
fn judged(dir: &Path) -> Vec<Judged> {
    let Ok(labels) = std::fs::read_to_string(dir.join("LABELS.tsv")) else { return Vec::new() };
    let mut rows = Vec::new();
    for line in labels.lines().skip(1) {
        let fields: Vec<&str> = line.split('\t').collect();
        let &[file, program, half, _, _, class, twins, _] = &fields[..] else {
            panic!("{}: eight columns, not {}: {line}", dir.display(), fields.len())
        };
        assert!(matches!(half, "tune" | "check"), "{file}: {half:?} is no half");
        let path = dir.join(file);
        if !path.is_file() {
            continue;
        }
        let of = labels::Labelled {
            name: labels::stem(&path),
            path,
            right: class.split('|').map(labels::class).collect(),
            baseline: None,
        };
        let fixes = twins.split('|').filter_map(|t| t.strip_prefix("of:")).map(str::to_owned);
        rows.push((program.to_owned(), half == "tune", fixes.collect(), of));
    }
    in_parallel(rows, |(program, is_to_tune, fixes, of)| {
        let verdict = verdict_on(&of.path);
        let outcome = Outcome { of, verdict, changed: BTreeMap::new() };
        Judged { program, is_to_tune, fixes, outcome }
    })
}

/// Those of the repository.
fn kept() -> &'static [Judged] {
    static KEPT: OnceLock<Vec<Judged>> = OnceLock::new();
    KEPT.get_or_init(|| judged(&Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/real")))
}

/// All of them, those that are kept as well.
fn all() -> &'static [Judged] {
    static ALL: OnceLock<Vec<Judged>> = OnceLock::new();
    ALL.get_or_init(|| judged(holdup_testkit::real()))
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

/// How many recordings, of how many programs; how many verdicts are best and accepted; which are
/// wrong.
fn half(title: &str, of: &[&Judged]) -> String {
    let outcomes: Vec<&Outcome> = of.iter().map(|j| &j.outcome).collect();
    let programs: BTreeSet<&str> = of.iter().map(|j| j.program.as_str()).collect();
    let mut out = format!(
        "\n### {title}: {} of {} accepted, {} best ({} programs)\n\n{}",
        right(&outcomes),
        of.len(),
        of.iter().filter(|j| j.is_best()).count(),
        programs.len(),
        matrix(&outcomes)
    );
    if outcomes.iter().any(|o| !o.is_right()) {
        out.push('\n');
        out.push_str(&wrong_table(&outcomes, "wrong verdict on", |_| ""));
    }
    out
}

fn section(of: &[Judged]) -> String {
    let mut out = include_str!("real.md").to_owned();
    let (tune, check): (Vec<&Judged>, Vec<&Judged>) = of.iter().partition(|j| j.is_to_tune);
    for (title, judged) in
        [("Programs that rules were made on", tune), ("Programs that check them", check)]
    {
        if !judged.is_empty() {
            out.push_str(&half(title, &judged));
        }
    }
    let fixed = of.iter().filter(|j| !j.fixes.is_empty()).count();
    let named = called_as_their_twin(of);
    writeln!(
        out,
        "\nOf {fixed} fixed variants, {} {} the class of the recording that they fix.",
        named.len(),
        if named.len() == 1 { "gets" } else { "get" }
    )
    .unwrap();
    out
}

#[test]
fn real_programs_that_are_kept_get_a_right_verdict() {
    let all = kept();
    assert!(all.len() >= 6, "{} recordings", all.len());
    let outcomes: Vec<&Outcome> = all.iter().map(|j| &j.outcome).collect();
    assert_eq!(wrong(&outcomes), Vec::<String>::new());
    assert_eq!(called_as_their_twin(all), Vec::<String>::new());
}

/// The rows of `fixtures/real` and the files beside them are the same, and every twin has a row.
#[test]
fn the_labels_of_real_programs_fit_together() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/real");
    let there: BTreeSet<String> = std::fs::read_dir(&dir)
        .unwrap()
        .map(|e| e.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.ends_with(".zst"))
        .collect();
    let labels = std::fs::read_to_string(dir.join("LABELS.tsv")).unwrap();
    let listed: BTreeSet<String> =
        labels.lines().skip(1).map(|l| l.split('\t').next().unwrap().to_owned()).collect();
    assert_eq!(listed, there);
    let names: BTreeSet<String> = listed.iter().map(|f| labels::stem(Path::new(f))).collect();
    for line in labels.lines().skip(1) {
        let twins = line.split('\t').nth(6).unwrap();
        for twin in twins.split('|').filter(|t| !t.is_empty()) {
            let name = twin.strip_prefix("of:").unwrap_or(twin);
            assert!(names.contains(name), "no recording {name} in {line}");
        }
        for class in line.split('\t').nth(5).unwrap().split('|').map(labels::class) {
            assert!(Class::ALL.iter().any(|c| c.id() == class), "{class} in {line}");
        }
    }
}

#[needs(real)]
#[test]
fn verdicts_on_real_programs_are_right() {
    let all = all();
    println!("{}", section(all));
    for (is_to_tune, pct) in [(true, RIGHT_TO_TUNE_PCT), (false, RIGHT_TO_CHECK_PCT)] {
        let half: Vec<&Outcome> =
            all.iter().filter(|j| j.is_to_tune == is_to_tune).map(|j| &j.outcome).collect();
        assert!(
            right(&half) * 100 >= half.len() * pct,
            "{} of {} right; wrong: {:#?}",
            right(&half),
            half.len(),
            wrong(&half)
        );
    }
}

#[needs(real)]
#[test]
fn no_healthy_program_is_called_a_lock() {
    assert_eq!(false_alarms(all().iter().map(|j| &j.outcome)), Vec::<String>::new());
}

#[needs(real)]
#[test]
fn no_fixed_twin_is_called_what_it_fixes() {
    assert_eq!(called_as_their_twin(all()), Vec::<String>::new());
}

#[needs(real)]
#[test]
fn the_section_on_real_programs_is_up_to_date() {
    let section = section(all());
    let _turn = PAGE.lock();
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/verdicts.md");
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
