//! The two sides of `holdup gate`: single runs, or rounds on several numbers of CPUs.

use super::args::{CompareArgs, GateArgs};
use super::load;
use crate::exit::{Result, usage};
use holdup_gate::policy::Policy;
use holdup_gate::rounds::{self, rounds};
use holdup_gate::setting::{Aspect, first_difference};
use holdup_gate::{Baseline, Run, Work};
use std::path::{Path, PathBuf};

/// A side as it was read: its runs, and the number before each (`4=TRACE`), if there was one.
#[derive(Default)]
pub(super) struct Side {
    pub(super) read: Baseline,
    numbers: Vec<Option<u32>>,
}

impl From<Baseline> for Side {
    fn from(read: Baseline) -> Side {
        Side { numbers: vec![None; read.runs.len()], read }
    }
}

/// A path of the command line, and the number before it. If a file has that name, the file is
/// meant, even if it is called `4=4`.
fn numbered<'a>(path: &'a Path, args: &GateArgs) -> (Option<u32>, &'a Path) {
    let split = || {
        let (number, rest) = path.to_str()?.split_once('=')?;
        Some((number.parse().ok().filter(|n| *n > 0)?, Path::new(rest)))
    };
    match split().filter(|_| args.scaling && !path.exists()) {
        Some((number, path)) => (Some(number), path),
        None => (None, path),
    }
}

/// All files that the gate reads.
pub(super) fn inputs(args: &GateArgs) -> impl Iterator<Item = &Path> {
    let traces = args.traces.iter().chain(&args.pair);
    traces.map(|path| numbered(path, args).1).chain(args.baseline.as_deref())
}

/// Read recordings in order.
pub(super) fn read(paths: &[PathBuf], args: &GateArgs) -> Result<Side> {
    let mut side = Side::default();
    for path in paths {
        let (number, path) = numbered(path, args);
        let part = load::all(&[path.to_owned()])?;
        side.numbers.extend(part.runs.iter().map(|_| number));
        side.read.work = side.read.work.or(part.work);
        side.read.add(part.runs, part.redacted);
    }
    Ok(side)
}

/// Read one run from each path: pairs must stay pairs.
pub(super) fn read_each(paths: &[PathBuf], args: &GateArgs) -> Result<Side> {
    let side = read(paths, args)?;
    match side.read.runs.len() == paths.len() {
        true => Ok(side),
        false => Err(usage("--pair: each argument must be a single recording")),
    }
}

/// Combine both sides' runs into rounds. Returns the default policy for them.
pub(super) fn fold(
    before: &mut Side,
    after: &mut Side,
    work: &Work,
    args: &GateArgs,
) -> Result<Policy> {
    let a = side(before, &args.compare)?;
    let b = side(after, &args.compare)?;
    if !args.pair.is_empty()
        && let Some(((n, x), (m, y))) = a.iter().zip(&b).find(|(x, y)| x.0 != y.0)
    {
        let (x, y) = (&x.name, &y.name);
        return Err(usage(format!(
            "--pair: {x} is on {n} CPUs, but {y}, with which it is compared, is on {m}"
        )));
    }
    // The self-test has no other side.
    let numbers = match args.self_test {
        true => rounds::numbers(&a, &a),
        false => rounds::numbers(&a, &b),
    };
    let numbers = numbers.map_err(|e| usage(format!("--scaling: {e}")))?;
    let folded = |side: Vec<(u32, Run)>| match side.is_empty() {
        true => Ok(Vec::new()),
        false => rounds(side, work).map_err(|e| usage(format!("--scaling: {e}"))),
    };
    before.read.runs = folded(a)?;
    after.read.runs = folded(b)?;
    Ok(rounds::policy(&numbers))
}

/// The runs of a side with their numbers: by default their numbers of CPUs. They must be from one
/// machine, or a round means nothing.
fn side(side: &mut Side, args: &CompareArgs) -> Result<rounds::Numbered> {
    let mut allowed = load::allowed(args);
    allowed.push(Aspect::Cpus);
    if let Some(other) = first_difference(&side.read.runs, &allowed) {
        return Err(usage(format!(
            "--scaling: {}: all recordings before, and all recordings after, must be from one \
             machine; --allow {} compares them nevertheless",
            other.words, other.allow
        )));
    }
    let runs = std::mem::take(&mut side.read.runs).into_iter();
    Ok(runs.zip(&side.numbers).map(|(run, n)| (n.unwrap_or(run.setting.cpus), run)).collect())
}
