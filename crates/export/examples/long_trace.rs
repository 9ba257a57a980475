//! Exports a trace as if it were many times as long, and prints the memory that took: for the
//! figures in docs/tables.md.
//!
//! `cargo run --release -p holdup-export --example long_trace -- TRACE TIMES DIR|FILE.json`

use holdup_attribution::{Attribution, Thresholds};
use holdup_diagnose::phases::{self, PhaseRow, Wanted};
use holdup_diagnose::{Extras, diagnose_with_extras};
use holdup_export::{Choice, Request, TableFormat};
use holdup_passes::{Detail, Options};
use holdup_testkit::Repeated;
use std::error::Error;
use std::path::PathBuf;
use std::time::Instant;

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<PathBuf> = std::env::args_os().skip(1).map(PathBuf::from).collect();
    let [trace, times, to] = &args[..] else { return Err("TRACE TIMES DIR|FILE.json".into()) };
    let times = times.to_str().ok_or("TIMES")?.parse()?;
    let begun = Instant::now();
    let one = holdup_open::open(trace)?;
    let reader = Repeated::new(&*one, times).ok_or("no events")?;
    let json = to.extension().is_some_and(|e| e == "json");
    let detail = if json { Detail::Intervals } else { Detail::Edges };
    let options = Options { detail, ..Options::default() };
    let limits = Thresholds::default();
    let judged = phases::read(&reader, &options, &limits, Wanted { replay: None, whole: true })?;
    println!("read in {:.1?}, {} MB", begun.elapsed(), peak()?);
    let info = &one.info().clone();
    let diagnosis = diagnose_with_extras(info, &judged, Extras::default(), limits.clone());
    let all = judged.whole.as_ref().unwrap_or(&judged.analysis);
    let rows = PhaseRow::of(&holdup_attribution::phases(all, &limits));
    let request = Request {
        reader: &reader,
        info,
        judged: &Attribution::new(all, &limits),
        diagnosis: &diagnosis,
        phases: &rows,
        quality: &all.quality.entries(),
        bytes: None,
        missing: &|_| None,
    };
    if json {
        println!("{} slices", holdup_export::chrome(&request, to)?);
    } else {
        let choice = Choice { format: TableFormat::Parquet, names: Vec::new() };
        println!("{} tables", holdup_export::tables(&request, &choice, to)?.len());
    }
    println!("{} events in {:.1?}, {} MB at most", all.events, begun.elapsed(), peak()?);
    Ok(())
}

/// The peak memory of this process, in MB.
fn peak() -> Result<u64, Box<dyn Error>> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|l| l.strip_prefix("VmHWM:")).ok_or("no VmHWM")?;
    Ok(line.trim().trim_end_matches(" kB").parse::<u64>()? / 1000)
}
