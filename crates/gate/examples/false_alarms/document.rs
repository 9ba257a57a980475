//! The place of the table in `docs/ci.md`.

use super::results::{Other, Results, table};
use std::path::{Path, PathBuf};

const BEGIN: &str = "<!-- begin: cargo run --release -p holdup-gate --example false_alarms -->\n";
const END: &str = "<!-- end -->\n";

/// The file at this path, or why it cannot be read.
pub(crate) fn read(path: &Path) -> Result<String, String> {
    std::fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))
}

/// Write a file, or say why not.
pub(crate) fn write(path: &Path, text: &str) -> Result<(), String> {
    std::fs::write(path, text).map_err(|e| format!("{}: {e}", path.display()))
}

/// `docs/ci.md`, relative to the folder of the experiment.
pub(crate) fn path(folder: &Path) -> PathBuf {
    folder.join("../../docs/ci.md")
}

/// The document as it is, and with the answers in `folder`.
pub(crate) fn both(folder: &Path) -> Result<(String, String), String> {
    let document = read(&path(folder))?;
    let results = Results::parse(&read(&folder.join("results.csv"))?)?;
    let other = Other::parse(&read(&folder.join("otava.csv"))?)?;
    let (before, rest) = document.split_once(BEGIN).ok_or(format!("no line {BEGIN}"))?;
    let (_, after) = rest.split_once(END).ok_or(format!("no line {END}"))?;
    let blessed = format!("{before}{BEGIN}{}{END}{after}", table(&results, &other));
    Ok((document, blessed))
}

/// Put the table into the document.
pub(crate) fn bless(folder: &Path) -> Result<(), String> {
    let (_, text) = both(folder)?;
    write(&path(folder), &text)
}
