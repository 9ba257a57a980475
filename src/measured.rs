//! `--counters [CPUS=]FILE`: the output of perf stat, with a trace or alone.

use crate::exit::{Result, bad_input, usage};
use holdup_counters::stat;
use holdup_diagnose::Measured;
use std::path::{Path, PathBuf};

/// Read the files.
pub(crate) fn read(arguments: &[PathBuf], quiet: bool) -> Result<Vec<Measured>> {
    arguments.iter().map(|argument| one(argument, quiet)).collect()
}

fn one(argument: &Path, quiet: bool) -> Result<Measured> {
    let (cpus, path) = split(argument)?;
    let name = path.display().to_string();
    let bytes = std::fs::read(path)
        .map_err(|e| usage(format!("--counters {name}: cannot be read: {e}")))?;
    let stat = stat::parse(&bytes).map_err(|e| bad_input(path, e))?;
    if stat.left_out > 0 && !quiet {
        eprintln!(
            "holdup: {name}: lines skipped because they are not counts of perf stat: {}",
            stat.left_out
        );
    }
    Ok(Measured { path: name, cpus, stat })
}

/// `4=FILE`: the number of CPUs, and the file. A file whose own name begins this way is written
/// `./4=x`.
fn split(argument: &Path) -> Result<(Option<f64>, &Path)> {
    let Some((cpus, path)) = argument.to_str().and_then(|a| a.split_once('=')) else {
        return Ok((None, argument));
    };
    if cpus.contains('/') {
        return Ok((None, argument));
    }
    match cpus.parse::<f64>() {
        Ok(n) if (0.0..=65536.0).contains(&n) && n > 0.0 => Ok((Some(n), Path::new(path))),
        _ => Err(usage(format!(
            "--counters {}: '{cpus}' is not a number of CPUs; write 4=FILE, or ./FILE for a file \
             with = in its name",
            argument.display()
        ))),
    }
}
