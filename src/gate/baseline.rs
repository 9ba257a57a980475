//! `holdup baseline`: make, extend, inspect a baseline file.

use super::args::BaselineArgs;
use super::load;
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
    let new = load::all(&args.traces)?;
    progress::end();
    baseline.add(new.runs, new.redacted);
    baseline.work = args.compare.work.clone().or(baseline.work).or(new.work);
    if let Some(run) = baseline.runs.iter().find(|r| work.units(r).is_none())
        && args.compare.work.is_some()
    {
        return Err(usage(format!("--work: {} shows no unit of the work {work}", run.name)));
    }
    if args.redact {
        baseline.redact();
    }
    baseline.alike(&load::allowed(&args.compare)).map_err(exit::InputError)?;
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
