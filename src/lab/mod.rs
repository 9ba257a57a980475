//! `holdup lab`: bottlenecks created on purpose, and whether the verdicts on them are right.

pub(crate) mod args;
mod list;
mod prove;
mod random;
mod say;
mod trial;

use crate::cli::{Cli, Command};
use crate::exit::{self, Failure, Result, unwritable, usage};
use crate::output::Output;
use args::{LabArgs, LabVerb, OfWorkload, RecordArgs, RunArgs, WorkerArgs};
use clap::Parser;
use holdup_lab as lab;
use holdup_lab::{Order, Pace, Settings, Workload, halves};
use std::ffi::OsString;
use std::io::Write;
use std::path::{Path, PathBuf};

/// Run the verb.
pub(crate) fn run(args: &LabArgs) -> Result<u8> {
    match &args.verb {
        LabVerb::List(args) => list::run(args),
        LabVerb::Run(args) => run_one(args),
        LabVerb::Record(args) => record(args),
        LabVerb::Prove(args) => prove::run(args),
        LabVerb::Worker(args) => worker(args),
    }
}

/// The workload of this name.
fn named(name: &str) -> Result<&'static Workload> {
    Workload::named(name).ok_or_else(|| {
        let all: Vec<_> = lab::WORKLOADS.iter().map(|w| w.name).collect();
        usage(format!("there is no workload {name}; the workloads are {}", all.join(", ")))
    })
}

fn settings(workload: &'static Workload, fixed: bool, set: &[String]) -> Result<Settings> {
    let changes = set.iter().map(|text| halves(text)).collect::<Result<Vec<_>, _>>();
    let changes = changes.map_err(|e| usage(format!("--set: {e}")))?;
    workload.settings(fixed, changes).map_err(|e| usage(format!("--set: {e}")))
}

/// The workload and the settings that the command line names.
fn chosen(of: &OfWorkload) -> Result<(&'static Workload, Settings)> {
    let workload = named(&of.name)?;
    if of.fixed && !workload.has_twin() {
        return Err(usage(format!("{} has no variant without the bottleneck", workload.name)));
    }
    Ok((workload, settings(workload, of.fixed, &of.set)?))
}

/// This program.
fn this_program() -> Result<OsString> {
    let path = std::env::current_exe();
    path.map(Into::into)
        .map_err(|e| usage(format!("the path of this program cannot be found: {e}")))
}

fn failed(error: lab::Error) -> Failure {
    Failure::Input(error.to_string())
}

fn run_one(args: &RunArgs) -> Result<u8> {
    let (workload, settings) = chosen(&args.of)?;
    let output = Output::open(args.output.as_deref(), &[])?;
    let program = vec![this_program()?, "lab".into(), "worker".into()];
    let order = Order { workload, fixed: args.of.fixed, settings, program };
    let counted = lab::run(&order).map_err(failed)?;
    output.write_with(|out| {
        serde_json::to_writer_pretty(&mut *out, &counted)?;
        writeln!(out)
    })?;
    Ok(exit::OK)
}

fn worker(args: &WorkerArgs) -> Result<u8> {
    let workload = named(&args.name)?;
    let settings = settings(workload, false, &args.set)?;
    let pace = Pace(args.pace);
    lab::work(workload, args.index, settings, &args.folder, pace).map_err(failed)?;
    Ok(exit::OK)
}

/// The file for the counts, next to the recording.
fn truth_of(recording: &Path) -> PathBuf {
    recording.with_extension("truth.json")
}

/// The command line that records a workload: the arguments after the program's name.
fn record_words(of: &OfWorkload, recording: &Path) -> Result<Vec<OsString>> {
    let mut words: Vec<OsString> = vec!["record".into(), "-o".into(), recording.into()];
    words.extend(["--".into(), this_program()?, "lab".into(), "run".into()]);
    words.push((&of.name).into());
    words.extend(of.fixed.then(|| "--fixed".into()));
    for set in &of.set {
        words.extend(["--set".into(), set.into()]);
    }
    words.extend(["-o".into(), truth_of(recording).into()]);
    Ok(words)
}

fn record(args: &RecordArgs) -> Result<u8> {
    // A mistake must be reported before anything is recorded.
    chosen(&args.of)?;
    let recording = args.output.clone().unwrap_or_else(|| format!("{}.data", args.of.name).into());
    let truth = truth_of(&recording);
    std::fs::File::create(&truth).map_err(|e| unwritable(&truth, &e))?;
    let mut words = record_words(&args.of, &recording)?;
    words.splice(1..1, args.compress.then(|| "-z".into()));
    words.splice(1..1, args.quiet.then(|| "-q".into()));
    words.insert(0, "holdup".into());
    let Command::Record(typed) = Cli::parse_from(words).command else {
        return Err(usage("the command line of the recording cannot be built"));
    };
    let status = crate::record::run(&typed)?;
    if status == exit::OK && !args.quiet {
        let path = truth.to_string_lossy();
        let shown = holdup_render::escape(&path);
        let _ = writeln!(std::io::stderr(), "holdup: the workload's own counts: {shown}");
    }
    Ok(status)
}
