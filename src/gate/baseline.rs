//! `holdup baseline`: make, extend, inspect a baseline file.

use super::args::BaselineArgs;
use super::load::{self, Loaded};
use crate::exit::{self, usage};
use crate::progress;
use anyhow::Result;
use holdup_gate::Baseline;
use std::path::Path;

/// Run the verb.
pub(crate) fn run(args: &BaselineArgs) -> Result<u8> {
    if let Some(path) = &args.show {
        return show(args, path);
    }
    let mut baseline = match &args.add {
        Some(path) => load::baseline(path)?,
        None => Baseline::default(),
    };
    let work = load::work(&args.compare, baseline.work.as_deref())?;
    progress::start(args.quiet);
    for path in &args.traces {
        let Loaded { runs, work, redacted } = load::load(path)?;
        baseline.runs.extend(runs);
        baseline.redacted |= redacted;
        baseline.work = baseline.work.take().or(work);
    }
    progress::end();
    if args.compare.work.is_some() {
        baseline.work = args.compare.work.clone();
    }
    for run in &baseline.runs {
        if args.compare.work.is_some() && work.units(run).is_none() {
            return Err(usage(format!("--work: {} shows no unit of the work {work}", run.name)));
        }
    }
    if args.redact || baseline.redacted {
        baseline.redact();
    }
    load::alike(&baseline.runs, &load::allowed(&args.compare))?;
    let path = args.output.as_ref().or(args.add.as_ref());
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

fn show(_args: &BaselineArgs, path: &Path) -> Result<u8> {
    let baseline = load::baseline(path)?;
    println!("{} runs", baseline.runs.len());
    Ok(exit::OK)
}
