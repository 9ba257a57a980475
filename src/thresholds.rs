//! Limits from a file.

use crate::exit::{Result, usage};
use holdup_diagnose::Thresholds;
use std::path::Path;

/// The thresholds in force.
pub(crate) fn thresholds(path: Option<&Path>) -> Result<Thresholds> {
    let Some(path) = path else { return Ok(Thresholds::default()) };
    Thresholds::parse(&read(path)?).map_err(|e| usage(format!("{}: {e}", path.display())))
}

/// The text of a file named on the command line in addition to the trace.
pub(crate) fn read(path: &Path) -> Result<String> {
    std::fs::read_to_string(path)
        .map_err(|e| usage(format!("{}: cannot be read: {e}", path.display())))
}
