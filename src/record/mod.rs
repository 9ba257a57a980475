//! `holdup record`: records what `diagnose` needs, without perf.

pub(crate) mod args;
mod messages;
pub(crate) mod run;

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

/// Longest wait until the previous recorder's events are closed.
const CLOSING: Duration = Duration::from_secs(30);
/// Wait this long without a message.
const UNSAID: Duration = Duration::from_millis(500);

/// Run the verb.
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

/// Open the events to record, and report differences from the request.
fn open(what: &WhatArgs, plan: Plan) -> Result<Recorder> {
    let recorder = unless_quick(!what.quiet, || Recorder::open(plan)).map_err(error)?;
    if !what.quiet {
        messages::opened(&recorder, what.ring);
    }
    let closing = closing::under_way().and_then(|closing| closing.wait(UNSAID));
    if let Some(closing) = closing {
        if !what.quiet {
            messages::line(
                "waiting until the kernel has closed the events of the previous recording",
            );
        }
        closing.wait(CLOSING);
    }
    Ok(recorder)
}

/// Run `work`, with a message if it takes long: opening an event waits for the same kernel lock as
/// closing the events of another recording, in the worst case seconds.
fn unless_quick<T>(tell: bool, work: impl FnOnce() -> T) -> T {
    let (done, over) = mpsc::channel::<()>();
    let teller = tell.then(|| {
        thread::spawn(move || {
            if over.recv_timeout(UNSAID) == Err(mpsc::RecvTimeoutError::Timeout) {
                let why = match closing::under_way() {
                    Some(_) => "the kernel is still closing the events of the previous recording",
                    None => "opening the events takes long on this machine",
                };
                messages::line(&format!("waiting until the kernel has opened the events: {why}"));
            }
        })
    });
    let result = work();
    drop(done);
    // Join the thread, so that the recording continues in a process with one thread.
    let _ = teller.map(thread::JoinHandle::join);
    result
}

/// What is recorded.
struct Work<'a> {
    what: &'a WhatArgs,
    command: &'a [OsString],
    /// Whether to print the next command to type.
    next_step: bool,
    /// The name to show for the recording, if that is not its file.
    shown: Option<&'a Path>,
    /// File size in bytes at which the recording ends.
    size: Option<u64>,
    /// How the recording is split into files.
    rotation: Option<Rotation>,
    /// How long each recording took.
    took: RefCell<Vec<Duration>>,
}

impl Work<'_> {
    /// The command, prepared to start, if there is one.
    fn prepare(&self, signals: &Signals, output: &Path) -> Result<Option<Child>> {
        if self.command.is_empty() {
            return Ok(None);
        }
        // A recording to a pipe must not be mixed with the command's output.
        let own_stdout = output.as_os_str() == "-";
        let child = Child::prepare(self.command, signals, own_stdout, self.what.user.as_ref());
        child.map(Some).map_err(|e| self.not_started(&e))
    }

    fn course<'a>(&self, child: &'a mut Option<Child>) -> Course<'a> {
        let (duration, processes) = (self.what.duration, self.what.pid.clone());
        // Progress would mix with a command's output.
        let tell = child.is_none() && !self.what.quiet && io::stderr().is_terminal();
        let tell = tell.then_some(messages::so_far as fn(Duration, &Written));
        Course { child: child.as_mut(), duration, processes, size: self.size, tell }
    }

    fn not_started(&self, error: &io::Error) -> Failure {
        let name = self.command.first().map(|word| word.to_string_lossy()).unwrap_or_default();
        usage(format!("{name}: cannot be started: {error}"))
    }

    fn say_next_step(&self, collected: &Collected, output: &Path) {
        let there = collected.written.name != Name::Unknown;
        if self.next_step && there && collected.written.tally.samples > 0 {
            messages::next_step(output);
        }
    }

    fn say(&self, text: &str) {
        if !self.what.quiet {
            messages::line(text);
        }
    }
}

/// Record the command, or until the user ends the recording. Returns the command's exit status.
fn record(recorder: &Recorder, signals: &Signals, work: &Work<'_>, output: &Path) -> Result<u8> {
    let mut child = work.prepare(signals, output)?;
    if child.is_none() && work.what.duration.is_none() {
        work.say("recording; Ctrl-C ends it");
    }
    let collected = match recorder.record(output, signals, work.course(&mut child), work.rotation) {
        Err(Error::Start(StartError::Command(e))) => {
            if output.as_os_str() != "-" {
                // The file is empty.
                let _ = std::fs::remove_file(output);
            }
            return Err(work.not_started(&e));
        }
        collected => collected.map_err(error)?,
    };
    work.took.borrow_mut().push(collected.took);
    if !work.what.quiet {
        if let Ok(Ended::Size) = collected.ended {
            messages::line("the recording ended because its file is as large as --max-size allows");
        }
        let is = collected.written.name.of(output);
        messages::taken(collected.written.name, output);
        messages::collected(&collected, recorder.cpus(), work.shown.unwrap_or(&is));
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
    let bytes = messages::bytes(recorder.ring_size() as u64 * recorder.cpus() as u64);
    work.say(&format!("keeping the latest {bytes} of events; to write them: kill -USR2 {pid}"));
    let flight = match recorder.keep(output, signals, work.course(&mut child), trigger) {
        Err(Error::Start(StartError::Command(e))) => return Err(work.not_started(&e)),
        flight => flight.map_err(error)?,
    };
    match flight {
        Flight::Quiet(ended) => {
            work.say("nothing was written, because the condition of --until was never true");
            finish(child, Ok(ended), signals)
        }
        Flight::Written(fired, collected) => {
            work.say(&format!("written because {fired}"));
            if !work.what.quiet {
                messages::kept(&collected, recorder.cpus(), output);
                work.say_next_step(&collected, output);
            }
            finish(child, collected.ended, signals)
        }
    }
}

/// Make the command end after the recording has ended. Returns its exit status.
fn finish(
    child: Option<Child>,
    ended: Result<Ended, holdup_record::file::Error>,
    signals: &Signals,
) -> Result<u8> {
    let mut status = exit::OK;
    if let Some(mut child) = child {
        // A flight recorder may be done before the command, which was not asked to end yet.
        let mut asked = !matches!(ended, Ok(Ended::Work));
        match ended {
            Ok(Ended::Work) => {}
            Ok(Ended::Signal(signal)) => child.send(signal),
            // As in perf.
            Ok(Ended::Time | Ended::Size) | Err(_) => child.send(libc::SIGTERM),
        }
        while child.ended().is_none() {
            signals.wait();
            while let Some(signal) = signals.next() {
                if let Signal::End(signal) = signal {
                    // A second request kills the command.
                    child.send(if asked { libc::SIGKILL } else { signal });
                    asked = true;
                }
            }
        }
        status = child.ended().map_or(exit::OK, |exit| exit.code());
    }
    ended.map(|_| status).map_err(|e| usage(e.to_string()))
}

/// Converts a recorder's error to a failure by its cause.
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

/// What the kernel refused, and the remedy, in the words of `doctor`.
fn denied(attempt: &Attempt<'_>, error: &io::Error) -> Failure {
    let host = Host::look(&Root::host());
    let tried = Tried { call: Some(empty_call()), ..Tried::default() };
    Failure::Denied(refused(&host, &tried, attempt, error.raw_os_error().unwrap_or(0)))
}
