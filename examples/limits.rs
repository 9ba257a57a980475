//! What becomes of the verdicts on labelled recordings if one limit is moved: the table of
//! docs/verdicts.md.
//!
//! ```sh
//! cargo run --example limits -- LIST > table.md
//! ```
//!
//! `LIST` has one recording a line: its path, a tab, the right classes divided by `|`, and if there
//! is one a tab and its baseline.

use holdup_attribution::{Thresholds, analyze};
use holdup_diagnose::{Class, diagnose_judged, phases, registry};
use holdup_passes::Options;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A limit is moved by this part of itself, down and up.
const MOVES: [f64; 2] = [0.7, 1.3];

fn main() {
    let list = std::env::args().nth(1).expect("a list of recordings");
    let list = std::fs::read_to_string(list).expect("a readable list");
    let rows: Vec<&str> = list.lines().collect();
    let limits = registry();
    // By limit and move: recordings whose class changes, of them from right to wrong and back.
    let changes: Mutex<BTreeMap<(usize, usize), Vec<String>>> = Mutex::default();
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                loop {
                    let i = next.fetch_add(1, Ordering::Relaxed);
                    let Some(row) = rows.get(i) else { return };
                    let mut fields = row.split('\t');
                    let path = fields.next().unwrap_or_default();
                    let right: Vec<&str> = fields.next().unwrap_or_default().split('|').collect();
                    let base = fields.next();
                    for (key, line) in judge(path, &right, base, &limits) {
                        changes.lock().unwrap().entry(key).or_default().push(line);
                    }
                    eprintln!("{i} {path}");
                }
            });
        }
    });
    let changes = changes.into_inner().unwrap();
    for (l, limit) in limits.iter().enumerate() {
        let of = |m| changes.get(&(l, m)).cloned().unwrap_or_default();
        let (down, up) = (of(0), of(1));
        let worse = |list: &[String]| list.iter().filter(|c| c.starts_with('-')).count();
        println!(
            "{}\t{}\t{}\t{}\t{}\t{}\t{}",
            limit.key,
            limit.default,
            down.len(),
            worse(&down),
            up.len(),
            worse(&up),
            [down, up].concat().join(", ")
        );
    }
}

type Change = ((usize, usize), String);

fn judge(
    path: &str,
    right: &[&str],
    base: Option<&str>,
    limits: &[holdup_diagnose::Threshold],
) -> Vec<Change> {
    let Ok(reader) = holdup_open::open(Path::new(path)) else { return Vec::new() };
    let base = base
        .and_then(|p| analyze(&*holdup_open::open(Path::new(p)).ok()?, &Options::default()).ok());
    let read = |t: &Thresholds| phases::read(&*reader, &Options::default(), t).ok();
    let Some(judged) = read(&Thresholds::default()) else { return Vec::new() };
    let class = |judged: &phases::Judged, t: Thresholds| {
        diagnose_judged(reader.info(), judged, base.as_ref(), t).verdict.class
    };
    let usual = class(&judged, Thresholds::default());
    let name = Path::new(path).file_name().unwrap().to_string_lossy();
    let name = name.split('.').next().unwrap_or_default();
    let mut out = Vec::new();
    for (l, limit) in limits.iter().enumerate() {
        for (m, by) in MOVES.iter().enumerate() {
            let text = format!("\"{}\" = {}", limit.key, limit.default * by);
            let (table, key) = limit.key.split_once('.').unwrap_or(("", limit.key));
            let text = if table.is_empty() {
                text
            } else {
                format!("[{table}]\n{key} = {}", limit.default * by)
            };
            let Ok(t) = Thresholds::parse(&text, limits) else { continue };
            let again = if limit.key.starts_with("phases.") { read(&t) } else { None };
            let new = class(again.as_ref().unwrap_or(&judged), t);
            if new != usual {
                let ok = |c: Class| right.contains(&c.id());
                let sign = match (ok(usual), ok(new)) {
                    (true, false) => "-",
                    (false, true) => "+",
                    _ => "=",
                };
                out.push(((l, m), format!("{sign}{name}:{}", new.id())));
            }
        }
    }
    out
}
