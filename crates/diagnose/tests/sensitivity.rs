//! What each limit decides: all labelled recordings are judged again with each moved by 30 % down
//! and up, and the verdicts that change are counted.
//!
//! Each recording is read once. What was replayed is replayed again only where the moved limit
//! changes what a replay looks at, and the trace is read again only where it changes its phases.

#[path = "../../../tests/verdicts/labels.rs"]
#[allow(dead_code, reason = "shared with the tests of verdicts")]
mod labels;

use holdup_attribution::limits::{ALONE, NAMED, RARE};
use holdup_attribution::{
    Attribution, Ledger, Neighbours, Threshold, Thresholds, analyze, phases as cut, who_works,
};
use holdup_diagnose::phases::{Judged, read as read_phases};
use holdup_diagnose::{Replays, Verdict, diagnose_again, registry};
use holdup_passes::{Analysis, Detail, Options};
use holdup_testkit::{in_parallel, needs};
use holdup_trace::Reader;
use labels::Labelled;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

/// So far each limit is moved, both ways.
const MOVED_PCT: f64 = 30.0;
/// A limit that changes more verdicts, in per cent, hides a principle that is missing.
const MOST_PCT: f64 = 2.0;
/// Where the table stands in `docs/verdicts.md`.
const MARKS: (&str, &str) = ("<!-- limits -->\n", "<!-- end of limits -->\n");

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

/// What a verdict on one recording becomes: by limit, down and up.
struct Moved {
    name: String,
    plain: Verdict,
    is_right: bool,
    /// By limit: the classes when it is lower and when it is higher, where they change.
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

/// What a replay looks at beside what was measured.
type Key = (Ledger, Vec<(u32, u64)>, Neighbours);

fn open(path: &Path) -> Box<dyn Reader> {
    holdup_open::open(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// As `diagnose` reads a recording: with what a replay needs.
fn replayed() -> Options {
    Options { detail: Detail::Steps, ..Options::default() }
}

impl Recording<'_> {
    fn key(judged: &Judged, limits: &Thresholds) -> Key {
        let of = Attribution::new(judged.replayed(), limits);
        let lost = of.contended.iter().map(|c| (c.nr, c.lost_ns)).collect();
        (of.ledger, lost, who_works(judged.replayed()))
    }

    /// Judge it by these limits.
    fn verdict(&mut self, limits: &Thresholds, moved: &str) -> Verdict {
        let (baseline, info) = (self.baseline.as_ref(), self.reader.info());
        self.judged.set_limits(limits);
        let whole = self.judged.whole();
        let measures = moved == RARE.key;
        if measures || cut(whole, limits) != cut(whole, &Thresholds::default()) {
            let judged = read_phases(self.reader, &replayed(), limits).expect("readable");
            let replays = Replays::of_judged(&judged, limits);
            return diagnose_again(info, &judged, baseline, limits.clone(), replays).verdict;
        }
        let asked = moved.starts_with("replay.") || moved == ALONE.key || moved == NAMED.key;
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
    let judged = read_phases(&*reader, &replayed(), &limits).expect("readable");
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

/// One row a limit, those that change most first.
fn table(all: &[Moved]) -> String {
    let mut rows: Vec<(usize, Threshold, String)> = Vec::new();
    for limit in registry() {
        let of = |at: usize| {
            all.iter().filter_map(move |m| Some((m, m.changed.get(limit.key)?[at].as_ref()?)))
        };
        let cell = |at: usize| {
            let worse = of(at).filter(|(m, c)| m.is_right && !c.is_right).count();
            let better = of(at).filter(|(m, c)| !m.is_right && c.is_right).count();
            format!("{} | {worse} | {better}", of(at).count())
        };
        let most = of(0).count().max(of(1).count());
        let text = format!(
            "| `{}` | {} | {} {} | {} | {} |\n",
            limit.key,
            limit.kind.word(),
            limit.default,
            limit.unit,
            cell(0),
            cell(1)
        );
        rows.push((most, limit, text));
    }
    rows.sort_by(|a, b| b.0.cmp(&a.0).then(a.1.key.cmp(b.1.key)));
    let mut out = String::from(
        "| limit | kind | value | changed at -30 % | wrong then | right then | changed at +30 % | \
         wrong then | right then |\n|---|---|---|--:|--:|--:|--:|--:|--:|\n",
    );
    rows.iter().for_each(|row| out.push_str(&row.2));
    out
}

#[needs(corpus)]
#[test]
fn no_limit_hangs_in_the_air_and_none_decides_much() {
    let all = in_parallel(everything(), moved);
    let right = all.iter().filter(|m| m.is_right).count();
    println!("{right} of {} right", all.len());
    for m in &all {
        if !m.is_right {
            println!("wrong: {} {} {:.2}", m.name, m.plain.class.id(), m.plain.confidence);
        }
        for (key, [down, up]) in &m.changed {
            let shown = |c: &Option<Change>| {
                c.as_ref().map_or("-".to_owned(), |c| {
                    format!("{}{}", c.class, if c.is_right { " (right)" } else { "" })
                })
            };
            println!(
                "{key}: {}: {} -> {} / {}",
                m.name,
                m.plain.class.id(),
                shown(down),
                shown(up)
            );
        }
    }
    let table = table(&all);
    println!("{table}");
}
