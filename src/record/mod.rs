//! `holdup record`: a recording of what diagnose needs, without perf.

pub(crate) mod args;
pub(crate) mod run;
mod told;

use crate::exit::{self, Denied, usage};
use anyhow::Result;
use args::{RecordArgs, WhatArgs};
use holdup_record::child::Child;
use holdup_record::closing;
use holdup_record::collect::{Collected, StartError};
use holdup_record::course::{Course, Ended};
use holdup_record::recorder::{Error, Plan, Recorder};
use holdup_record::session::OpenError;
use holdup_record::signals::{Signal, Signals};
use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

/// So long a recorder waits until the events of the one before it are closed.
const CLOSING: Duration = Duration::from_secs(30);

/// Run it.
pub(crate) fn run(args: &RecordArgs) -> Result<u8> {
    let output = args.output();
    let signals = hold_signals()?;
    let recorder = open(&args.what, args.what.plan(args.compression_level)?)?;
    let recorded = record(&recorder, &signals, &args.what, &args.command, &output);
    recorder.close();
    let recorded = recorded?;
    if !args.what.quiet {
        told::next_step(&output);
    }
    Ok(recorded)
}

fn hold_signals() -> Result<Signals> {
    Signals::hold().map_err(|e| usage(format!("signals cannot be waited for: {e}")))
}

/// Open what is to be recorded, and say what is different from what was asked for.
fn open(what: &WhatArgs, plan: Plan) -> Result<Recorder> {
    if let Some(closing) = closing::under_way() {
        if !what.quiet {
            told::line("waiting until the kernel has closed the events of the last recording");
        }
        closing.wait(CLOSING);
    }
    let asked = what.ring;
    let recorder = Recorder::open(plan).map_err(error)?;
    if !what.quiet {
        told::opened(&recorder, asked);
    }
    Ok(recorder)
}

/// Record `command`, or until somebody ends it. Returns the command's exit status.
fn record(
    recorder: &Recorder,
    signals: &Signals,
    what: &WhatArgs,
    command: &[OsString],
    output: &Path,
) -> Result<u8> {
    let name = command.first().map(|word| word.to_string_lossy().into_owned());
    let failed = |e| usage(format!("{}: cannot be started: {e}", name.as_deref().unwrap_or("")));
    let to_pipe = output.as_os_str() == "-";
    let mut child = match command {
        [] => None,
        words => Some(Child::prepare(words, signals, to_pipe).map_err(failed)?),
    };
    if child.is_none() && what.duration.is_none() && !what.quiet {
        told::line("recording; Ctrl-C ends it");
    }
    let course =
        Course { child: child.as_mut(), duration: what.duration, processes: what.pid.clone() };
    let collected = match recorder.record(output, signals, course) {
        Err(Error::Start(StartError::Command(e))) => {
            if !to_pipe {
                // There is nothing in it.
                let _ = std::fs::remove_file(output);
            }
            return Err(failed(e));
        }
        collected => collected.map_err(error)?,
    };
    if !what.quiet {
        told::collected(&collected, recorder.cpus(), output);
    }
    let status = child.map_or(exit::OK, |child| end(child, &collected, signals));
    match collected.ended {
        Err(e) => Err(usage(e.to_string())),
        Ok(_) => Ok(status),
    }
}

/// See that the command ends as the recording has, and get its exit status.
fn end(mut child: Child, collected: &Collected, signals: &Signals) -> u8 {
    match collected.ended {
        Ok(Ended::Work) => {}
        Ok(Ended::Signal(signal)) => child.send(signal),
        // As perf does.
        Ok(Ended::Time) | Err(_) => child.send(libc::SIGTERM),
    }
    while child.ended().is_none() {
        signals.wait();
        while let Some(signal) = signals.next() {
            if let Signal::End(_) = signal {
                // Who asks again means it.
                child.send(libc::SIGKILL);
            }
        }
    }
    child.wait().map_or(exit::OK, |exit| exit.code())
}

/// What does not work, by whose fault it is.
fn error(error: Error) -> anyhow::Error {
    match &error {
        Error::NoTracefs(_) | Error::Open(OpenError::Event { .. } | OpenError::Ring(_)) => {
            Denied(error.to_string()).into()
        }
        _ => usage(error.to_string()),
    }
}
