//! No figure beyond physics: every row of every ranking, of all recordings that there are, whole
//! and with events removed.

#[path = "../../../tests/answers/verdicts/thinned.rs"]
#[allow(dead_code)]
mod thinned;

use holdup_attribution::{Attribution, Resource, analyze};
use holdup_passes::{Detail, Options};
use holdup_replay::{Bound, Change, Depth, Program, Seeds, estimate, predict, words};
use holdup_testkit::{corpus, in_parallel, needs, recordings};
use holdup_trace::{Nanos, Reader};
use std::path::{Path, PathBuf};
use thinned::{Missing, Thinned};

/// Relative difference of two figures of one trace that is only rounding.
const ROUNDING: f64 = 1e-6;

/// The number of rows, and the number of replays that broke a bound themselves.
#[derive(Clone, Copy, Default)]
struct Rows {
    all: usize,
    broke: usize,
}

fn of_file(path: &Path) -> Result<Rows, String> {
    let mut rows = Rows::default();
    let Ok(reader) = holdup_open::open(path) else { return Ok(rows) };
    let fifth = Thinned::of(&*reader, Missing::Percent(20));
    let unwoken = Thinned::of(&*reader, Missing::WakeUps);
    let traces = [(&*reader, "whole"), (&fifth as &dyn Reader, "thinned"), (&unwoken, "unwoken")];
    for (trace, what) in traces {
        let of = of_trace(trace).map_err(|e| format!("{} {what}: {e}", path.display()))?;
        rows = Rows { all: rows.all + of.all, broke: rows.broke + of.broke };
    }
    Ok(rows)
}

fn of_trace(reader: &dyn Reader) -> Result<Rows, String> {
    let mut rows = Rows::default();
    let options = Options { detail: Detail::Steps, ..Options::default() };
    let analysis = analyze(reader, &options).map_err(|e| e.to_string())?;
    let judged = Attribution::from(&analysis);
    let Ok(program) = Program::new(&judged) else { return Ok(rows) };
    let found = estimate(&program, &judged, Depth::Each);
    let before = found.unchanged.wall_ns as f64;
    // A hundredth of each thread's work may be cleaning up.
    let works = || program.threads.iter().filter(|t| t.works).map(|t| t.run_ns);
    let (work, longest): (Nanos, Nanos) = (works().sum(), works().max().unwrap_or(0));
    for row in &found.rows {
        let shown = format!("{}, {}", row.resource.word(), words::shown(&program, &row.change));
        let made = &row.prediction;
        if made.wall_low_ns > made.wall_ns || made.wall_ns > made.wall_high_ns {
            return Err(format!("{shown}: {made:?}"));
        }
        if row.low > row.worth + ROUNDING || row.worth > row.high + ROUNDING || row.worth.is_nan() {
            return Err(format!("{shown}: {} in {} to {}", row.worth, row.low, row.high));
        }
        let (cpus, most, parts) = match row.change[..] {
            [Change::Cpus(n), ..] => (n, f64::INFINITY, 1),
            [Change::Split(_, n)] => (program.cpus, f64::from(n), n),
            [Change::Speed(_, times)] => (program.cpus, times, u32::MAX),
            _ => (program.cpus, f64::INFINITY, u32::MAX),
        };
        if row.worth > most + ROUNDING || row.worth < 1.0 - ROUNDING {
            return Err(format!("{shown} gains {}, of {most} at most", row.worth));
        }
        // A change that takes no work away leaves it to this many CPUs.
        let stays = match row.resource {
            Resource::Cpus | Resource::Quota | Resource::Device | Resource::Placement => true,
            Resource::Server | Resource::Parallelism => true,
            // Locks are spun for, and what calls cost because of others goes with them.
            _ => false,
        };
        let least = (work as f64 / f64::from(cpus)).max(longest as f64 / f64::from(parts)) * 0.98;
        if stays && (made.wall_low_ns as f64) < least.min(before) {
            return Err(format!("{shown} takes {} ns, work {least}", made.wall_low_ns));
        }
        rows.all += 1;
        rows.broke += usize::from(made.bounded.is_some_and(|bound| bound != Bound::Relief));
    }
    let nothing = predict(&program, &[Change::Cpus(program.cpus)], Seeds::ONE).ok();
    if nothing.is_some_and(|p| p.wall_ns != found.unchanged.wall_ns) {
        return Err("the same number of CPUs changes something".to_owned());
    }
    Ok(rows)
}

fn all_within(folders: &[PathBuf]) {
    let files: Vec<PathBuf> = folders.iter().flat_map(|folder| recordings(folder)).collect();
    let results = in_parallel(files, |path| of_file(&path));
    let errors: Vec<&String> = results.iter().filter_map(|r| r.as_ref().err()).collect();
    assert!(errors.is_empty(), "{errors:#?}");
    let of = || results.iter().flatten();
    let (all, broke) = (of().map(|r| r.all).sum::<usize>(), of().map(|r| r.broke).sum::<usize>());
    // The bounds limit all rows; that they rarely have to shows that the replay is right by itself.
    assert!(all > 100 && broke * 20 < all, "{broke} of {all} broke a bound");
}

#[test]
fn figures_of_fixtures_are_within_the_laws() {
    all_within(&[Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures")]);
}

#[needs(corpus)]
#[test]
fn figures_of_recordings_are_within_the_laws() {
    all_within(&[corpus().join("vm"), corpus().join("real")]);
}
