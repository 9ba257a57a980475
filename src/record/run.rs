//! `holdup run`: records, and diagnoses the recording at once.

use crate::cli::{CommonArgs, DiagnoseArgs, OutputArgs, SelectArgs, TraceArg};
use crate::diagnose::{self, KEPT, NOT_KEPT};
use crate::exit::{self, Result, usage};
use crate::profile::args::SymbolArgs;
use crate::record::args::RunArgs;
use crate::record::{Work, hold_signals, messages, open, record};
use holdup_trace::shell_word;
use std::cell::RefCell;
use std::fs;
use std::path::{Path, PathBuf};

/// The default folder for several recordings.
const FOLDER: &str = "holdup-runs";

/// Run the verb. The exit code is the command's if that failed, else the diagnosis's.
pub(crate) fn run(args: &RunArgs) -> Result<u8> {
    // The report goes to standard output, where the command may write too.
    let (files, _temporary) = files(args)?;
    let signals = hold_signals()?;
    let recorder = open(&args.what, args.what.plan(None, &args.command)?)?;
    let shown = (!kept(args)).then_some(Path::new(NOT_KEPT));
    let work = Work {
        what: &args.what,
        command: &args.command,
        next_step: false,
        shown,
        size: None,
        rotation: None,
        took: RefCell::default(),
    };
    let mut recorded = Ok(exit::OK);
    let mut last = None;
    for file in &files {
        recorded = record(&recorder, &signals, &work, file);
        last = Some(file);
        if !matches!(recorded, Ok(exit::OK)) {
            break;
        }
    }
    recorder.close();
    // From here on Ctrl-C ends the program, as in every other verb.
    drop(signals);
    let status = recorded?;
    let Some(last) = last else { return Ok(status) };
    let verdict = diagnose::run(&diagnosis(args, last))?;
    if args.runs.is_some() && status == exit::OK && !args.what.quiet {
        messages::runs(&files, &work.took.borrow());
    }
    Ok(if status == exit::OK { verdict } else { status })
}

/// The files to record into, and the temporary folder that is deleted when the program ends.
fn files(args: &RunArgs) -> Result<(Vec<PathBuf>, Option<tempfile::TempDir>)> {
    let failed = |path: &Path, e| exit::unwritable(path, &e);
    if let Some(runs) = args.runs {
        let folder = args.output.clone().unwrap_or_else(|| FOLDER.into());
        fs::create_dir_all(&folder).map_err(|e| failed(&folder, e))?;
        let width = runs.to_string().len();
        let names = (1..=runs).map(|i| folder.join(format!("run-{i:0width$}.data")));
        return Ok((names.collect(), None));
    }
    match &args.output {
        Some(path) if path.as_os_str() == "-" => Err(usage(
            "-o -: the report goes to standard output; to pipe a recording, use holdup record -o -",
        )),
        Some(path) => Ok((vec![path.clone()], None)),
        None => {
            let folder = tempfile::tempdir().map_err(|e| failed(&std::env::temp_dir(), e))?;
            Ok((vec![folder.path().join("perf.data")], Some(folder)))
        }
    }
}

/// Whether the recording is kept.
fn kept(args: &RunArgs) -> bool {
    args.output.is_some() || args.runs.is_some()
}

/// The command that was typed, with a file that keeps the recording.
fn again() -> String {
    let typed = std::env::args_os().skip(1);
    let rest = typed.skip_while(|word| word != "run").skip(1);
    let rest: Vec<String> = rest.map(|word| shell_word(&word.to_string_lossy())).collect();
    format!("holdup run -o {KEPT} {}", rest.join(" ")).trim_end().to_owned()
}

/// The arguments of the equivalent `holdup diagnose FILE`, with the options given.
fn diagnosis(args: &RunArgs, file: &Path) -> DiagnoseArgs {
    let output = OutputArgs {
        format: args.format,
        json: false,
        separator: None,
        output: None,
        color: args.color,
        verbose: false,
        quiet: false,
    };
    let trace = TraceArg { trace: Some(file.to_owned()), input: None };
    DiagnoseArgs {
        common: CommonArgs { trace, select: SelectArgs::default(), output },
        baseline: None,
        fail_on: args.fail_on.clone(),
        counters: Vec::new(),
        metrics: None,
        case: None,
        thresholds: args.thresholds.clone(),
        explain: args.explain,
        gain: false,
        symbols: SymbolArgs::default(),
        unkept: (!kept(args)).then(again),
    }
}
