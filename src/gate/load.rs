//! Recordings and baseline files as runs.

use super::args::{AllowName, CompareArgs};
use crate::exit::{Result, bad_input, usage};
use holdup_diagnose::replayed_part;
use holdup_gate::judge::Sides;
use holdup_gate::setting::{Aspect, first_difference};
use holdup_gate::{Baseline, Run, Work};
use holdup_trace::ErrorKind;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

/// Read recordings in order. A baseline file stands for its runs; a folder that is not a trace
/// stands for its files, by name.
pub(crate) fn all(paths: &[PathBuf]) -> Result<Baseline> {
    let mut all = Baseline::default();
    for path in paths {
        let part = one(path)?;
        all.work = all.work.or(part.work);
        all.add(part.runs, part.redacted);
    }
    Ok(all)
}

/// Read a recording, a baseline file, or a folder of recordings.
fn one(path: &Path) -> Result<Baseline> {
    if let Some(text) = baseline_text(path)? {
        return parse(path, &text);
    }
    let reader = match holdup_open::open(path) {
        Err(error) if path.is_dir() => {
            let files = files(path)?;
            return match files.is_empty() {
                // Report that it is empty rather than why it is no trace.
                true => Err(bad_input(path, "is an empty folder: it contains no recording")),
                false => all(&files).map_err(|_| error.into()),
            };
        }
        opened => opened?,
    };
    let run = Run::measure(&*reader, replayed_part(path))?;
    if let Some(damage) = run.damage.first() {
        let why = format!("is damaged: {damage}; a comparison needs undamaged recordings");
        return Err(bad_input(path, why));
    }
    Ok(Baseline { runs: vec![run], ..Baseline::default() })
}

/// The files in a folder, by name.
fn files(folder: &Path) -> Result<Vec<PathBuf>> {
    let read = |e: std::io::Error| ErrorKind::from(e).in_file(folder);
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(read)? {
        let path = entry.map_err(read)?.path();
        let hidden = path.file_name().is_some_and(|n| n.to_string_lossy().starts_with('.'));
        if path.is_file() && !hidden {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

/// The baseline files of a path: itself, or the files in the folder.
pub(crate) fn baselines_in(path: &Path) -> Result<Vec<PathBuf>> {
    if !path.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let mut files = files(path)?;
    files.retain(|f| f.extension().is_some_and(|e| e == "json"));
    match files.is_empty() {
        true => Err(bad_input(path, "contains no baseline (no file NAME.json)")),
        false => Ok(files),
    }
}

/// In words: the settings in which the sides of a comparison differ but should not.
pub(crate) fn differences(sides: Sides<'_>, allowed: &[Aspect]) -> Option<String> {
    first_difference(sides.runs(), allowed).map(|d| d.words)
}

/// Read a baseline file.
pub(crate) fn baseline(path: &Path) -> Result<Baseline> {
    std::fs::metadata(path).map_err(|e| ErrorKind::from(e).in_file(path))?;
    match baseline_text(path)? {
        Some(text) => parse(path, &text),
        None => Err(bad_input(
            path,
            "is not a baseline file, which begins with {\"schema\": ...}; holdup baseline makes \
             one",
        )),
    }
}

fn parse(path: &Path, text: &str) -> Result<Baseline> {
    Baseline::parse(text).map_err(|e| bad_input(path, e.to_string()))
}

/// The text of a file if it is JSON, which no trace is; otherwise `None`. The schema may be
/// anywhere in it, because other tools may have sorted its keys.
fn baseline_text(path: &Path) -> Result<Option<String>> {
    if path.as_os_str() == "-" || !path.is_file() {
        return Ok(None);
    }
    let read = |e: std::io::Error| ErrorKind::from(e).in_file(path);
    let mut head = Vec::new();
    let file = File::open(path).map_err(read)?;
    file.take(64).read_to_end(&mut head).map_err(read)?;
    head.retain(|b| !b.is_ascii_whitespace());
    if !head.starts_with(b"{\"") {
        return Ok(None);
    }
    let bytes = std::fs::read(path).map_err(read)?;
    String::from_utf8(bytes).map(Some).map_err(|_| bad_input(path, "is not text"))
}

/// The definition of a unit of work: as requested, or as in `kept`.
pub(crate) fn work(args: &CompareArgs, kept: Option<&str>) -> Result<Work> {
    match args.work.as_deref().or(kept) {
        Some(text) => Work::parse(text).map_err(|e| usage(format!("--work: {e}"))),
        None => Ok(Work::Unknown),
    }
}

/// The settings that may differ.
pub(crate) fn allowed(args: &CompareArgs) -> Vec<Aspect> {
    if args.allow.contains(&AllowName::All) {
        return Aspect::ALL.to_vec();
    }
    let aspect = |name: &AllowName| match name {
        AllowName::Host => Some(Aspect::Host),
        AllowName::Kernel => Some(Aspect::Kernel),
        AllowName::Arch => Some(Aspect::Arch),
        AllowName::Cpus => Some(Aspect::Cpus),
        AllowName::Events => Some(Aspect::Events),
        AllowName::All => None,
    };
    args.allow.iter().filter_map(aspect).collect()
}
