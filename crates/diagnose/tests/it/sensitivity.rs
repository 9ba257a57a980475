//! What each threshold decides: all labelled recordings are judged again with each one 30 % lower
//! and higher, and changed verdicts are counted.
//!
//! Each recording is read once. It is replayed again only if the moved limit changes what a replay
//! uses, and read again only if the limit changes its phases.

#[path = "../../../../tests/answers/verdicts/labels.rs"]
#[allow(dead_code, reason = "shared with the tests of verdicts")]
mod labels;

use holdup_attribution::limits::{ALONE, MATTERS, NAMED};
use holdup_attribution::{
    Attribution, Background, Ledger, Threshold, Thresholds, analyze, phases as cut,
};
use holdup_diagnose::phases::{Judged, Wanted, read as read_phases};
use holdup_diagnose::{Replays, Verdict, diagnose_again, registry};
use holdup_passes::{Analysis, Detail, Options};
use holdup_testkit::{in_parallel, needs};
use holdup_trace::Reader;
use labels::Labelled;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

/// Each limit is moved by this much, both ways.
const MOVED_PCT: f64 = 30.0;

/// Every labelled recording: of the laboratory, of programs, of loops, and the fixtures.
fn everything() -> Vec<Labelled> {
    let mut all = labels::labelled();
    for folder in ["real/apps", "real/wis"] {
        all.extend(labels::labelled_in(folder));
    }
    all.extend(labels::fixtures());
    all.extend(labels::kept());
    all
}

/// The verdicts on one recording.
struct Moved {
    name: String,
    plain: Verdict,
    is_right: bool,
    /// By limit: the changed classes when it is lower and when it is higher.
    changed: BTreeMap<&'static str, [Option<Change>; 2]>,
}

struct Change {
    class: &'static str,
    is_right: bool,
}

/// A recording, judged as often as needed.
struct Recording<'a> {
    reader: &'a dyn Reader,
    baseline: Option<Analysis>,
    judged: Judged,
    key: Key,
    replays: Option<Result<Replays, String>>,
}

/// What a replay depends on in addition to what was measured.
type Key = (Ledger, Vec<(u32, u64)>, Background);

fn open(path: &Path) -> Box<dyn Reader> {
    holdup_open::open(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// How `diagnose` reads a recording, with what a replay needs.
fn replayed() -> Options {
    Options { detail: Detail::Steps, ..Options::default() }
}

impl Recording<'_> {
    fn key(judged: &Judged, limits: &Thresholds) -> Key {
        let of = Attribution::new(judged.replayed(), limits);
        let lost = of.contended.iter().map(|c| (c.nr, c.lost_ns)).collect();
        let works = of.who_works().clone();
        (of.ledger, lost, works)
    }

    /// The verdict with these limits.
    fn verdict(&mut self, limits: &Thresholds, moved: &str) -> Verdict {
        let (baseline, info) = (self.baseline.as_ref(), self.reader.info());
        self.judged.set_limits(limits);
        let whole = self.judged.whole();
        let measures = moved == NAMED.key;
        if measures || cut(whole, limits) != cut(whole, &Thresholds::default()) {
            let judged =
                read_phases(self.reader, &replayed(), limits, Wanted::default()).expect("readable");
            let replays = Replays::of_judged(&judged, limits);
            return diagnose_again(info, &judged, baseline, limits.clone(), replays).verdict;
        }
        let asked = moved.starts_with("replay.") || moved == ALONE.key || moved == MATTERS.key;
        let replays = if !asked && Recording::key(&self.judged, limits) == self.key {
            self.replays.clone()
        } else {
            Replays::of_judged(&self.judged, limits)
        };
        diagnose_again(info, &self.judged, baseline, limits.clone(), replays).verdict
    }
}

fn moved(of: Labelled) -> Moved {
    let reader = open(&of.path);
    let baseline = of.baseline.as_deref();
    let baseline =
        baseline.map(|path| analyze(&*open(path), &Options::default()).expect("readable"));
    let limits = Thresholds::default();
    let judged = read_phases(&*reader, &replayed(), &limits, Wanted::default()).expect("readable");
    let replays = Replays::of_judged(&judged, &limits);
    let key = Recording::key(&judged, &limits);
    let mut recording = Recording { reader: &*reader, baseline, judged, key, replays };
    let is_right = |v: &Verdict| of.right.iter().any(|r| r == v.class.id());
    let plain = recording.verdict(&limits, "");
    let mut changed: BTreeMap<&'static str, [Option<Change>; 2]> = BTreeMap::new();
    for limit in registry() {
        for (at, times) in [1.0 - MOVED_PCT / 100.0, 1.0 + MOVED_PCT / 100.0].iter().enumerate() {
            let mut limits = Thresholds::default();
            limits.set(&limit, limit.default * times);
            let verdict = recording.verdict(&limits, limit.key);
            if verdict.class != plain.class {
                changed.entry(limit.key).or_default()[at] =
                    Some(Change { class: verdict.class.id(), is_right: is_right(&verdict) });
            }
        }
    }
    Moved { name: of.name.clone(), is_right: is_right(&plain), plain, changed }
}

/// How many verdicts change, how many of these were right, and how many become right.
fn cell(all: &[Moved], key: &str, at: usize) -> (usize, usize, usize) {
    let of = || all.iter().filter_map(move |m| Some((m, m.changed.get(key)?[at].as_ref()?)));
    let worse = of().filter(|(m, c)| m.is_right && !c.is_right).count();
    let better = of().filter(|(m, c)| !m.is_right && c.is_right).count();
    (of().count(), worse, better)
}

/// One row per limit, those that change most first.
fn section(all: &[Moved]) -> String {
    let right = all.iter().filter(|m| m.is_right).count();
    let mut out = format!(
        "{}\n{}\nWith the default thresholds, {right} of {} verdicts are right.\n\n\
         | threshold | kind | value | at -30 %: changed | wrong then | right then | at +30 %: \
         changed | wrong then | right then |\n|---|---|---|--:|--:|--:|--:|--:|--:|\n",
        labels::LIMITS,
        include_str!("sensitivity.md"),
        all.len()
    );
    let most = |t: &Threshold| (0..2).map(|at| cell(all, t.key, at).0).max().unwrap_or(0);
    let mut limits = registry();
    limits.sort_by(|a, b| most(b).cmp(&most(a)).then(a.key.cmp(b.key)));
    for t in limits {
        let (word, Threshold { key, default, unit, .. }) = (t.kind.word(), t);
        write!(out, "| `{key}` | {word} | {default} {unit} |").unwrap();
        for (changed, worse, better) in [0, 1].map(|at| cell(all, key, at)) {
            write!(out, " {changed} | {worse} | {better} |").unwrap();
        }
        out.push('\n');
    }
    out
}

/// Which recordings change with which limit, one per line.
fn list(all: &[Moved]) -> String {
    let mut out = String::new();
    for m in all.iter().filter(|m| !m.is_right) {
        writeln!(out, "wrong: {}: {}", m.name, m.plain.class.id()).unwrap();
    }
    for m in all {
        for (key, changed) in &m.changed {
            let shown = changed.each_ref().map(|c| match c {
                Some(Change { class, is_right: true }) => format!("{class} (right)"),
                Some(c) => c.class.to_owned(),
                None => "-".to_owned(),
            });
            let class = m.plain.class.id();
            writeln!(out, "{key}: {}: {class} -> {} / {}", m.name, shown[0], shown[1]).unwrap();
        }
    }
    out
}

/// This takes a quarter of an hour and runs only with `HOLDUP_BLESS`, which writes the section.
/// Without it, the table must have a row for each limit.
#[needs(corpus)]
#[test]
fn every_limit_has_its_row_in_the_table_of_what_it_decides() {
    let path = labels::root().join("docs/verdicts.md");
    let text = std::fs::read_to_string(&path).unwrap();
    let (page, old) = text.split_at(text.find(labels::LIMITS).unwrap_or(text.len()));
    if std::env::var_os("HOLDUP_BLESS").is_none() {
        for t in registry() {
            let row = format!("| `{}` | {} | {} {} |", t.key, t.kind.word(), t.default, t.unit);
            assert!(old.contains(&row), "{}: HOLDUP_BLESS=1 cargo test -p holdup-diagnose", t.key);
        }
        return;
    }
    let all = in_parallel(everything(), moved);
    println!("{}", list(&all));
    std::fs::write(&path, format!("{page}{}", section(&all))).unwrap();
}
