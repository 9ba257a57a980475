//! `holdup record`: a recording of what diagnose needs, without perf.

pub(crate) mod args;
pub(crate) mod run;
mod told;

use crate::exit::{self, Failure, Result, usage};
use args::{RecordArgs, WhatArgs};
use holdup_host::{Attempt, Host, Root, Tried, empty_call, no_tracefs, refused};
use holdup_record::child::Child;
use holdup_record::closing;
use holdup_record::collect::{Collected, StartError};
use holdup_record::course::{Course, Ended};
use holdup_record::file::{Name, Written};
use holdup_record::flight::Flight;
use holdup_record::recorder::{Error, Plan, Recorder};
use holdup_record::rotation::Rotation;
use holdup_record::session::OpenError;
use holdup_record::signals::{Signal, Signals};
use holdup_record::trigger::Trigger;
use std::cell::RefCell;
use std::ffi::OsString;
use std::io::{self, IsTerminal};
use std::path::Path;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

/// So long a recorder waits until the events of the one before it are closed.
const CLOSING: Duration = Duration::from_secs(30);
/// And so long without saying so.
const UNSAID: Duration = Duration::from_millis(500);

/// Run it.
pub(crate) fn run(args: &RecordArgs) -> Result<u8> {
    let output = args.output();
    if args.switch_output.is_some() && output.as_os_str() == "-" {
        return Err(usage("--switch-output: a pipe cannot be divided into files"));
    }
    let signals = hold_signals()?;
    let recorder = open(&args.what, args.plan()?)?;
    let next_step = output.as_os_str() != "-";
    let (what, command) = (&args.what, &args.command[..]);
    let size = args.max_size.map(|bytes| bytes as u64);
    let work = Work {
        what,
        command,
        next_step,
        shown: None,
        size,
        rotation: args.rotation(),
        took: RefCell::default(),
    };
    let trigger = args.keep.map(|_| args.until.unwrap_or(Trigger::Signal));
    let status = match trigger {
        None => record(&recorder, &signals, &work, &output),
        Some(trigger) => keep(&recorder, &signals, &work, &output, trigger),
    };
    recorder.close();
    status
}

fn hold_signals() -> Result<Signals> {
    Signals::hold().map_err(|e| usage(format!("signals cannot be waited for: {e}")))
}

/// Open what is to be recorded, and say what is different from what was asked for.
fn open(what: &WhatArgs, plan: Plan) -> Result<Recorder> {
    let recorder = unless_quick(!what.quiet, || Recorder::open(plan)).map_err(error)?;
    if !what.quiet {
        told::opened(&recorder, what.ring);
    }
    let closing = closing::under_way().and_then(|closing| closing.wait(UNSAID));
    if let Some(closing) = closing {
        if !what.quiet {
            told::line("waiting until the kernel has closed the events of the previous recording");
        }
        closing.wait(CLOSING);
    }
    Ok(recorder)
}

/// Do it, and say what for if it takes long: opening an event waits for the same lock of the kernel
/// as closing those of another recording, seconds at worst.
fn unless_quick<T>(tell: bool, work: impl FnOnce() -> T) -> T {
    let (done, over) = mpsc::channel::<()>();
    let teller = tell.then(|| {
        thread::spawn(move || {
            if over.recv_timeout(UNSAID) == Err(mpsc::RecvTimeoutError::Timeout) {
                let why = match closing::under_way() {
                    Some(_) => "it is still closing the events of the previous recording",
                    None => "that takes long on this machine",
                };
                told::line(&format!("waiting until the kernel has opened the events: {why}"));
            }
        })
    });
    let result = work();
    drop(done);
    // The recording ends in a process of one thread.
    let _ = teller.map(thread::JoinHandle::join);
    result
}

/// What a recording is of.
struct Work<'a> {
    what: &'a WhatArgs,
    command: &'a [OsString],
    /// Whether to say what to type then.
    next_step: bool,
    /// What the recording is called where that is not its file.
    shown: Option<&'a Path>,
    /// The recording ends when its file is so large.
    size: Option<u64>,
    /// How it is cut into files.
    rotation: Option<Rotation>,
    /// How long each recording took.
    took: RefCell<Vec<Duration>>,
}

impl Work<'_> {
    /// The command, ready to go, if there is one.
    fn prepare(&self, signals: &Signals, output: &Path) -> Result<Option<Child>> {
        if self.command.is_empty() {
            return Ok(None);
        }
        // What goes to a pipe must not be mixed with what the command prints.
        let own_stdout = output.as_os_str() == "-";
        let child = Child::prepare(self.command, signals, own_stdout, self.what.user.as_ref());
        child.map(Some).map_err(|e| self.not_started(&e))
    }

    fn course<'a>(&self, child: &'a mut Option<Child>) -> Course<'a> {
        let (duration, processes) = (self.what.duration, self.what.pid.clone());
        // What a command prints would be in the way.
        let tell = child.is_none() && !self.what.quiet && io::stderr().is_terminal();
        let tell = tell.then_some(told::so_far as fn(Duration, &Written));
        Course { child: child.as_mut(), duration, processes, size: self.size, tell }
    }

    fn not_started(&self, error: &io::Error) -> Failure {
        let name = self.command.first().map(|word| word.to_string_lossy()).unwrap_or_default();
        usage(format!("{name}: cannot be started: {error}"))
    }

    fn say_next_step(&self, collected: &Collected, output: &Path) {
        let there = collected.written.name != Name::Unknown;
        if self.next_step && there && collected.written.tally.samples > 0 {
            told::next_step(output);
        }
    }

    fn say(&self, text: &str) {
        if !self.what.quiet {
            told::line(text);
        }
    }
}

/// Record the command, or until somebody ends it. Returns the command's exit status.
fn record(recorder: &Recorder, signals: &Signals, work: &Work<'_>, output: &Path) -> Result<u8> {
    let mut child = work.prepare(signals, output)?;
    if child.is_none() && work.what.duration.is_none() {
        work.say("recording; Ctrl-C ends it");
    }
    let collected = match recorder.record(output, signals, work.course(&mut child), work.rotation) {
        Err(Error::Start(StartError::Command(e))) => {
            if output.as_os_str() != "-" {
                // There is nothing in it.
                let _ = std::fs::remove_file(output);
            }
            return Err(work.not_started(&e));
        }
        collected => collected.map_err(error)?,
    };
    work.took.borrow_mut().push(collected.took);
    if !work.what.quiet {
        if let Ok(Ended::Size) = collected.ended {
            told::line("the recording ended because its file is as large as --max-size allows");
        }
        let is = collected.written.name.of(output);
        told::taken(collected.written.name, output);
        told::collected(&collected, recorder.cpus(), work.shown.unwrap_or(&is));
        if work.rotation.is_some() {
            let last = Rotation::path(output, collected.files);
            work.say(&format!("the last of {} files is {}", collected.files, last.display()));
            work.say_next_step(&collected, &last);
        } else {
            work.say_next_step(&collected, &is);
        }
    }
    finish(child, collected.ended, signals)
}

/// Keep the last events until `trigger` fires, and write them then.
fn keep(
    recorder: &Recorder,
    signals: &Signals,
    work: &Work<'_>,
    output: &Path,
    trigger: Trigger,
) -> Result<u8> {
    let mut child = work.prepare(signals, output)?;
    let pid = std::process::id();
    let bytes = told::bytes(recorder.ring_size() as u64 * recorder.cpus() as u64);
    work.say(&format!("keeping the latest {bytes} of events; to write them: kill -USR2 {pid}"));
    let flight = match recorder.keep(output, signals, work.course(&mut child), trigger) {
        Err(Error::Start(StartError::Command(e))) => return Err(work.not_started(&e)),
        flight => flight.map_err(error)?,
    };
    match flight {
        Flight::Quiet(ended) => {
            work.say("nothing was written, because the condition of --until never held");
            finish(child, Ok(ended), signals)
        }
        Flight::Written(fired, collected) => {
            work.say(&format!("written because {fired}"));
            if !work.what.quiet {
                told::kept(&collected, recorder.cpus(), output);
                work.say_next_step(&collected, output);
            }
            finish(child, collected.ended, signals)
        }
    }
}

/// See that the command ends as the recording has. Returns its exit status.
fn finish(
    child: Option<Child>,
    ended: Result<Ended, holdup_record::file::Error>,
    signals: &Signals,
) -> Result<u8> {
    let mut status = exit::OK;
    if let Some(mut child) = child {
        // A flight recorder may be done before the command is, and nobody has asked it to end.
        let mut asked = !matches!(ended, Ok(Ended::Work));
        match ended {
            Ok(Ended::Work) => {}
            Ok(Ended::Signal(signal)) => child.send(signal),
            // As perf does.
            Ok(Ended::Time | Ended::Size) | Err(_) => child.send(libc::SIGTERM),
        }
        while child.ended().is_none() {
            signals.wait();
            while let Some(signal) = signals.next() {
                if let Signal::End(signal) = signal {
                    // Who asks again means it.
                    child.send(if asked { libc::SIGKILL } else { signal });
                    asked = true;
                }
            }
        }
        status = child.ended().map_or(exit::OK, |exit| exit.code());
    }
    ended.map(|_| status).map_err(|e| usage(e.to_string()))
}

/// What does not work, by whose fault it is.
fn error(error: Error) -> Failure {
    let host = || Host::look(&Root::host());
    match &error {
        Error::NoTracefs(why) => Failure::Denied(no_tracefs(&host(), why)),
        Error::Open(OpenError::Event { name, error }) => denied(&Attempt::Open(name), error),
        Error::Open(OpenError::Ring { size, error }) => {
            denied(&Attempt::Buffer(*size as u64), error)
        }
        _ => usage(error.to_string()),
    }
}

/// What the kernel refused to do, and the way out, in the words of doctor.
fn denied(attempt: &Attempt<'_>, error: &io::Error) -> Failure {
    let host = Host::look(&Root::host());
    let tried = Tried { call: Some(empty_call()), ..Tried::default() };
    Failure::Denied(refused(&host, &tried, attempt, error.raw_os_error().unwrap_or(0)))
}
