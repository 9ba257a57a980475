//! Recordings and baseline files as runs.

use super::args::{AllowName, CompareArgs};
use crate::exit::usage;
use anyhow::Result;
use holdup_gate::setting::Aspect;
use holdup_gate::{Baseline, Run, Work};
use holdup_trace::ErrorKind;
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// Runs with the work that their file counts.
#[derive(Default)]
pub(crate) struct Loaded {
    pub(crate) runs: Vec<Run>,
    pub(crate) work: Option<String>,
    pub(crate) redacted: bool,
}

/// Read a trace, or a baseline file.
pub(crate) fn load(path: &Path) -> Result<Loaded> {
    if let Some(text) = baseline_text(path)? {
        let baseline = parse(path, &text)?;
        let Baseline { runs, work, redacted } = baseline;
        return Ok(Loaded { runs, work, redacted });
    }
    let reader = holdup_open::open(path)?;
    Ok(Loaded { runs: vec![Run::measure(&*reader)?], ..Loaded::default() })
}

/// Read a baseline file.
pub(crate) fn baseline(path: &Path) -> Result<Baseline> {
    match baseline_text(path)? {
        Some(text) => parse(path, &text),
        None => {
            let what = "a baseline file of holdup, which begins with {\"schema\": ...}";
            Err(bad(path, format!("is no baseline: expected {what}")))
        }
    }
}

fn parse(path: &Path, text: &str) -> Result<Baseline> {
    Baseline::parse(text).map_err(|e| bad(path, e.to_string()))
}

/// An input that cannot be used: neither a pass nor a regression.
pub(crate) fn bad(path: &Path, why: String) -> anyhow::Error {
    crate::exit::InputError(format!("{}: {why}", path.display())).into()
}

/// The text of a file that begins as a baseline does; `None` for anything else.
fn baseline_text(path: &Path) -> Result<Option<String>> {
    if path.as_os_str() == "-" || !path.is_file() {
        return Ok(None);
    }
    let read = |e: std::io::Error| ErrorKind::from(e).in_file(path);
    let mut head = Vec::new();
    let file = File::open(path).map_err(read)?;
    file.take(64).read_to_end(&mut head).map_err(read)?;
    let head: Vec<u8> = head.into_iter().filter(|b| !b.is_ascii_whitespace()).collect();
    if !head.starts_with(b"{\"schema\"") {
        return Ok(None);
    }
    let bytes = std::fs::read(path).map_err(read)?;
    String::from_utf8(bytes).map(Some).map_err(|_| bad(path, "is no text".to_owned()))
}

/// What a unit of work is: as asked for, or as the baseline has it.
pub(crate) fn work(args: &CompareArgs, kept: Option<&str>) -> Result<Work> {
    match args.work.as_deref().or(kept) {
        Some(text) => Work::parse(text).map_err(|e| usage(format!("--work: {e}"))),
        None => Ok(Work::Unknown),
    }
}

/// What may differ.
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

/// Refuse to mix recordings that differ in what must be alike.
pub(crate) fn alike(runs: &[Run], allowed: &[Aspect]) -> Result<()> {
    let Some(first) = runs.first() else { return Ok(()) };
    for run in &runs[1..] {
        let found = first.setting.differences(&run.setting);
        let refused: Vec<_> = found.iter().filter(|d| !allowed.contains(&d.aspect)).collect();
        if let Some(one) = refused.first() {
            let words: Vec<&str> = refused.iter().map(|d| d.words.as_str()).collect();
            return Err(crate::exit::InputError(format!(
                "{} and {} do not compare: {}; --allow {} mixes them all the same",
                first.name,
                run.name,
                words.join("; "),
                one.aspect.word()
            ))
            .into());
        }
    }
    Ok(())
}
