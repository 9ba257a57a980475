//! How often the verdict is right, and what makes it waver.
//!
//! * Every fixture gets a right verdict.
//! * Of the labelled recordings `../shared/corpus/vm` at least 95 in 100 do, in the half that rules
//!   were made on and in the half that checks them, and no healthy one is called a lock or a
//!   serialization.
//! * A confidence of 0.9 means: right nine times in ten.
//! * The same of recordings of real programs (`real.rs`); no fixed twin is called what it fixes.
//! * One half of a trace, or a trace in which one event in ten is missing, keeps its verdict or is
//!   less sure, and says why. (The same trace in another form: tests/answers/equivalence.rs.)
//!
//! `docs/verdicts.md` shows the figures; `HOLDUP_BLESS=1 cargo test --test answers verdicts` writes
//! it.

mod labels;
mod real;
pub(crate) mod thinned;

use holdup_attribution::{Thresholds, analyze};
use holdup_diagnose::phases::{self, Wanted};
use holdup_diagnose::{Class, Verdict, diagnose_judged};
use holdup_passes::{Analysis, Detail, Options, Selection};
use holdup_testkit::{in_parallel, needs};
use holdup_trace::Reader;
use labels::{Labelled, labelled};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;
use std::sync::{Mutex, OnceLock};
use thinned::{Missing, Thinned};

/// Of 100 labelled recordings so many get a right verdict.
const RIGHT_PCT: usize = 95;
/// In a bin of the calibration table, confidence and frequency differ at most by this, and by what
/// chance allows.
const OFF: f64 = 0.10;

/// Held while a test reads or writes `docs/verdicts.md`: two tests write a part of it each.
static PAGE: Mutex<()> = Mutex::new(());

fn open(path: &Path) -> Box<dyn Reader> {
    holdup_open::open(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

fn read(reader: &dyn Reader, options: &Options) -> Analysis {
    analyze(reader, options).expect("readable")
}

/// What becomes of the verdict under a change that should not matter.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Change {
    FirstHalf,
    SecondHalf,
    Thinned,
}

impl Change {
    const ALL: [Change; 3] = [Change::FirstHalf, Change::SecondHalf, Change::Thinned];

    fn name(self) -> &'static str {
        match self {
            Change::FirstHalf => "first half of the trace",
            Change::SecondHalf => "second half",
            Change::Thinned => "one event in ten missing",
        }
    }
}

struct Outcome {
    of: Labelled,
    verdict: Verdict,
    changed: BTreeMap<Change, Verdict>,
}

impl Outcome {
    fn is_right(&self) -> bool {
        self.of.right.iter().any(|r| r == self.verdict.class.id())
    }
}

/// As `diagnose` reads a recording: with what a replay needs.
fn replayed() -> Options {
    Options { detail: Detail::Steps, ..Options::default() }
}

/// The verdict on a recording as it is.
fn verdict_on(path: &Path) -> Verdict {
    let reader = open(path);
    let judged = phases::read(&*reader, &replayed(), &Thresholds::default(), Wanted::default())
        .expect("readable");
    diagnose_judged(reader.info(), &judged, None, Thresholds::default()).verdict
}

fn judge(of: Labelled) -> Outcome {
    let baseline = of.baseline.as_deref().map(|path| read(&*open(path), &Options::default()));
    let verdict = |reader: &dyn Reader, options: &Options| {
        let judged = phases::read(reader, options, &Thresholds::default(), Wanted::default())
            .expect("readable");
        diagnose_judged(reader.info(), &judged, baseline.as_ref(), Thresholds::default()).verdict
    };
    let reader = open(&of.path);
    let (first, last) = reader.info().span.expect("events");
    let middle = first + (last - first) / 2;
    let half = |selection: Selection| Options { detail: Detail::Steps, ..selection.into() };
    let whole = verdict(&*reader, &replayed());
    let mut changed = BTreeMap::new();
    changed.insert(
        Change::FirstHalf,
        verdict(&*reader, &half(Selection { to: Some(middle), ..Selection::default() })),
    );
    changed.insert(
        Change::SecondHalf,
        verdict(&*reader, &half(Selection { from: Some(middle), ..Selection::default() })),
    );
    changed.insert(
        Change::Thinned,
        verdict(&Thinned::of(&*reader, Missing::Percent(10)), &replayed()),
    );
    Outcome { of, verdict: whole, changed }
}

/// Every labelled recording judged, in the order of the labels.
fn outcomes() -> &'static [Outcome] {
    static OUTCOMES: OnceLock<Vec<Outcome>> = OnceLock::new();
    OUTCOMES.get_or_init(|| in_parallel(labelled(), judge))
}

/// One row per true class, one column per verdict; what is right too counts as the truth.
fn matrix(of: &[&Outcome]) -> String {
    let truth = |o: &Outcome| {
        if o.is_right() { o.verdict.class.id().to_owned() } else { o.of.right[0].clone() }
    };
    let mut cells: BTreeMap<(String, &str), usize> = BTreeMap::new();
    for o in of {
        *cells.entry((truth(o), o.verdict.class.id())).or_default() += 1;
    }
    let rows: BTreeSet<&String> = cells.keys().map(|k| &k.0).collect();
    let columns: Vec<&str> =
        Class::ALL.iter().map(|c| c.id()).filter(|id| cells.keys().any(|k| k.1 == *id)).collect();
    let mut out = format!(
        "| true class | {} |\n|---|{}\n",
        columns.join(" | "),
        "--:|".repeat(columns.len())
    );
    for row in rows {
        write!(out, "| {row} |").unwrap();
        for column in &columns {
            match cells.get(&(row.clone(), *column)) {
                Some(n) if row == column => write!(out, " **{n}** |").unwrap(),
                Some(n) => write!(out, " {n} |").unwrap(),
                None => write!(out, " |").unwrap(),
            }
        }
        out.push('\n');
    }
    out
}

fn right(of: &[&Outcome]) -> usize {
    of.iter().filter(|o| o.is_right()).count()
}

/// The recordings whose verdict is wrong, each with its class and the verdict.
fn wrong(of: &[&Outcome]) -> Vec<String> {
    let line = |o: &&Outcome| {
        format!("{}: {}, called {}", o.of.name, o.of.right.join(" or "), o.verdict.class.id())
    };
    of.iter().filter(|o| !o.is_right()).map(line).collect()
}

/// The healthy recordings that are called a lock or a serialization: there is nothing to fix.
fn false_alarms<'a>(of: impl Iterator<Item = &'a Outcome>) -> Vec<String> {
    let alarms =
        [Class::KernelLockConflict, Class::ApplicationSerialization, Class::ThreadSerialization];
    of.filter(|o| o.of.is_healthy() && alarms.contains(&o.verdict.class))
        .map(|o| format!("{}: healthy, called {}", o.of.name, o.verdict.class.id()))
        .collect()
}

/// Half-open intervals of confidence.
const BINS: [(f64, f64); 5] = [(0.0, 0.5), (0.5, 0.7), (0.7, 0.85), (0.85, 0.93), (0.93, 1.01)];

/// Per bin: its verdicts, their mean confidence, the part that is right.
fn calibration(of: &[Outcome]) -> Vec<(usize, f64, f64)> {
    let bin = |&(from, to): &(f64, f64)| {
        let all: Vec<&Outcome> = of
            .iter()
            .filter(|o| {
                o.verdict.class != Class::NotEnoughEvidence
                    && (from..to).contains(&o.verdict.confidence)
            })
            .collect();
        let n = all.len().max(1) as f64;
        (
            all.len(),
            all.iter().map(|o| o.verdict.confidence).sum::<f64>() / n,
            right(&all) as f64 / n,
        )
    };
    BINS.iter().map(bin).collect()
}

/// Verdicts under a change: kept, right as well, less sure with a reason, and those that are
/// neither.
fn wavering(of: &[Outcome], change: Change) -> (usize, usize, usize, Vec<&Outcome>) {
    let (mut kept, mut also_right, mut less_sure, mut neither) = (0, 0, 0, Vec::new());
    for o in of {
        let v = &o.changed[&change];
        if v.class == o.verdict.class {
            kept += 1;
        } else if o.of.right.iter().any(|r| r == v.class.id()) {
            also_right += 1;
        } else if v.class == Class::NotEnoughEvidence
            || v.confidence < o.verdict.confidence && !v.reservations.is_empty()
        {
            less_sure += 1;
        } else {
            neither.push(o);
        }
    }
    (kept, also_right, less_sure, neither)
}

/// A table of those that are wrong; `note` goes behind the name of each.
fn wrong_table(of: &[&Outcome], title: &str, note: impl Fn(&Outcome) -> &'static str) -> String {
    let mut out = format!("| {title} | true class | verdict | confidence |\n|---|---|---|--:|\n");
    for o in of.iter().filter(|o| !o.is_right()) {
        let (right, verdict) = (o.of.right.join(" or "), &o.verdict);
        let (class, sure) = (verdict.class.id(), verdict.confidence);
        writeln!(out, "| {}{} | {right} | {class} | {sure:.2} |", o.of.name, note(o)).unwrap();
    }
    out
}

fn page(all: &[Outcome]) -> String {
    let mut out = include_str!("intro.md").to_owned();
    let halves: [(&str, Vec<&Outcome>); 2] = [
        ("The half that rules were made on", all.iter().filter(|o| o.of.is_to_tune()).collect()),
        ("The half that checks them", all.iter().filter(|o| !o.of.is_to_tune()).collect()),
    ];
    for (title, half) in &halves {
        write!(out, "\n### {title}: {} of {} right\n\n{}", right(half), half.len(), matrix(half))
            .unwrap();
    }
    out.push_str("\n### Wrong verdicts\n\n");
    let outcomes: Vec<&Outcome> = all.iter().collect();
    let half = |o: &Outcome| if o.of.is_to_tune() { "" } else { " (check)" };
    out.push_str(&wrong_table(&outcomes, "recording", half));
    out.push_str(include_str!("confidence.md"));
    out.push_str("\n| confidence | verdicts | mean confidence | right |\n|---|--:|--:|--:|\n");
    for ((from, to), (n, mean, freq)) in BINS.iter().zip(calibration(all)).filter(|b| b.1.0 > 0) {
        writeln!(out, "| {from:.2} to {:.2} | {n} | {mean:.2} | {freq:.2} |", to.min(1.0)).unwrap();
    }
    out.push_str(include_str!("wavering.md"));
    out.push_str(
        "\n| change | same verdict | another right verdict | lower confidence, with a reason | \
        none of these |\n|---|--:|--:|--:|--:|\n",
    );
    for change in Change::ALL {
        let (kept, also, less, neither) = wavering(all, change);
        writeln!(out, "| {} | {kept} | {also} | {less} | {} |", change.name(), neither.len())
            .unwrap();
    }
    out
}

#[needs(corpus)]
#[test]
fn verdicts_are_right() {
    let all = outcomes();
    let page = page(all);
    println!("{page}");
    let everything: Vec<&Outcome> = all.iter().collect();
    let tune: Vec<&Outcome> = all.iter().filter(|o| o.of.is_to_tune()).collect();
    let check: Vec<&Outcome> = all.iter().filter(|o| !o.of.is_to_tune()).collect();
    assert!(tune.len() > 40 && check.len() > 40, "{} and {} recordings", tune.len(), check.len());
    for half in [&everything, &tune, &check] {
        assert!(
            right(half) * 100 >= half.len() * RIGHT_PCT,
            "{} of {} right; wrong: {:#?}",
            right(half),
            half.len(),
            wrong(half)
        );
    }
    assert_eq!(false_alarms(all.iter()), Vec::<String>::new());
}

#[needs(corpus)]
#[test]
fn confidence_is_how_often_the_verdict_is_right() {
    let all = outcomes();
    for (n, mean, freq) in calibration(all) {
        // Two standard deviations of a frequency seen in n cases.
        let chance = 2.0 * (mean * (1.0 - mean) / n.max(1) as f64).sqrt();
        assert!(
            n < 5 || (mean - freq).abs() <= OFF + chance,
            "{n} verdicts with mean confidence {mean:.2} are right in {freq:.2}"
        );
    }
}

#[needs(corpus)]
#[test]
fn a_part_of_a_trace_keeps_the_verdict_or_is_less_sure() {
    let all = outcomes();
    for change in Change::ALL {
        let (kept, also, less, neither) = wavering(all, change);
        let list: Vec<String> = neither
            .iter()
            .map(|o| {
                let v = &o.changed[&change];
                format!(
                    "{}: {} {:.2} -> {} {:.2}",
                    o.of.name,
                    o.verdict.class.id(),
                    o.verdict.confidence,
                    v.class.id(),
                    v.confidence
                )
            })
            .collect();
        println!(
            "{}: {kept} kept, {also} right too, {less} less sure, {} neither: {list:#?}",
            change.name(),
            neither.len()
        );
        assert!(neither.len() * 100 <= all.len() * 2, "{}: {list:#?}", change.name());
        assert!(
            (kept + also) * 100 >= all.len() * 80,
            "{}: {kept} of {} kept",
            change.name(),
            all.len()
        );
    }
}

#[needs(corpus)]
#[test]
fn the_page_is_up_to_date() {
    let all = outcomes();
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/verdicts.md");
    let page = page(all);
    let _turn = PAGE.lock();
    // The section on real programs comes from other recordings: see real.rs.
    let text = std::fs::read_to_string(&path).unwrap();
    let (old, section) = text.split_at(text.find(real::HEADING).unwrap_or(text.len()));
    if std::env::var_os("HOLDUP_BLESS").is_some() {
        std::fs::write(&path, format!("{page}{section}")).unwrap();
    } else {
        assert!(old == page, "docs/verdicts.md: HOLDUP_BLESS=1 cargo test --test answers verdicts");
    }
}

#[test]
fn every_fixture_gets_a_right_verdict() {
    let all = labels::fixtures();
    for of in &all {
        let class = verdict_on(&of.path).class.id();
        let is_right = of.right.iter().any(|r| r == class);
        assert!(is_right, "{}: {class} instead of {:?}", of.path.display(), of.right);
    }
    assert!(all.len() >= 14, "{} fixtures", all.len());
}
