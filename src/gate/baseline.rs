//! `holdup baseline`: make, extend, inspect a baseline file.

use super::args::BaselineArgs;
use super::load;
use super::sinks::Answer;
use crate::exit::{self, Result, usage};
use crate::progress;
use holdup_gate::Baseline;
use holdup_render::compare::{BaselineReport, Comparison};
use std::path::Path;

/// Run the verb.
pub(crate) fn run(args: &BaselineArgs) -> Result<u8> {
    if let Some(path) = &args.show {
        return show(args, path);
    }
    if args.form.output.is_some() == args.add.is_some() {
        return Err(usage(
            "name the baseline file: -o FILE makes a new one, --add FILE adds to an existing one",
        ));
    }
    let mut baseline = match &args.add {
        Some(path) => load::baseline(path)?,
        None => Baseline::default(),
    };
    let work = load::work(&args.compare, baseline.work.as_deref())?;
    progress::start(args.form.quiet);
    let new = load::all(&args.traces)?;
    progress::end();
    baseline.add(new.runs, new.redacted);
    baseline.work = args.compare.work.clone().or(baseline.work).or(new.work);
    if let Some(run) = baseline.runs.iter().find(|r| work.units(r).is_none())
        && args.compare.work.is_some()
    {
        return Err(usage(format!("--work: {} contains no unit of the work {work}", run.name)));
    }
    if let Some((first, again)) = baseline.twice() {
        return Err(usage(format!(
            "{again} is the same recording as {first}, which the baseline already has: a run \
             counts once; record another run (holdup run --runs N)"
        )));
    }
    if args.redact {
        baseline.redact();
    }
    baseline.alike(&load::allowed(&args.compare)).map_err(exit::Failure::Input)?;
    let path = args.form.output.as_ref().or(args.add.as_ref());
    let text = baseline.text();
    match path.filter(|p| p.as_os_str() != "-") {
        Some(path) => write(path, &text)?,
        None => print!("{text}"),
    }
    Ok(exit::OK)
}

/// Write the file whole or not at all: a broken baseline would fail every job after this one.
fn write(path: &Path, text: &str) -> Result<()> {
    let cannot = |e: std::io::Error| usage(format!("{}: cannot be written: {e}", path.display()));
    let mut name = path.as_os_str().to_owned();
    name.push(".new");
    std::fs::write(&name, text).map_err(cannot)?;
    std::fs::rename(&name, path).map_err(cannot)
}

fn show(args: &BaselineArgs, path: &Path) -> Result<u8> {
    let answer = Answer::open(&args.form, &[path])?;
    let baseline = load::baseline(path)?;
    let work = load::work(&args.compare, baseline.work.as_deref())?;
    let report = BaselineReport::of(&path.to_string_lossy(), &baseline, &work);
    answer.write(&Comparison::Baseline(report))?;
    Ok(exit::OK)
}
