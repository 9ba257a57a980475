//! A recording that streams: rings are emptied into the file as they fill.
//!
//! A thread that waits for a ring is woken when a quarter of it is full. In addition, all rings are
//! emptied every 200 ms, and the round ends. Events before the end of a round are older than those
//! after the next, so readers can sort the events with bounded memory. A round is also the most
//! that is lost if the recorder is killed.

use crate::course::{Course, Ended};
use crate::descriptors::Looks;
use crate::file::{Error, Writer, Written};
use crate::groups;
use crate::poll::Poll;
use crate::rotation::Next;
use crate::session::{OnCpu, Session};
use crate::signals::Signals;
use crate::urgent::Urgent;
use crate::usage::cpu_time;
use holdup_perfdata::format::feature;
use holdup_trace::{Cpu, Nanos};
use std::io;
use std::os::fd::AsFd;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, mpsc};
use std::thread::{self, ScopedJoinHandle};
use std::time::{Duration, Instant};

/// How long a round takes at most.
const ROUND: Duration = Duration::from_millis(200);

/// Number of CPUs per emptying thread.
const CPUS_A_THREAD: usize = 16;

/// A recording that has ended.
#[derive(Debug)]
pub struct Collected {
    /// What the file contains, or all files together.
    pub written: Written,
    /// How many files were begun.
    pub files: u32,
    /// Why it ended; an error if no more could be written.
    pub ended: Result<Ended, Error>,
    /// CPUs that went offline.
    pub gone: Vec<u32>,
    /// How long the events counted.
    pub took: Duration,
    /// CPU time of the recorder during that time and until everything was written.
    pub cost: Duration,
}

/// Why a recording did not begin.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The events cannot be started, or threads cannot be created.
    #[error("the recording cannot be started: {0}")]
    Events(io::Error),
    /// The kernel does not offer what a trigger needs.
    #[error("this kernel has no {0}, which the condition needs")]
    NoGauge(&'static str),
    /// The kept events cannot be written.
    #[error(transparent)]
    File(Error),
    /// The command cannot be run.
    #[error("cannot be started: {0}")]
    Command(io::Error),
}

/// Starts the events of `session`, then what `course` has to run, and writes events until it ends,
/// into several files if `next` creates them.
///
/// # Errors
///
/// If it could not begin. Later errors are in [`Collected::written`].
pub(crate) fn collect(
    session: &Session,
    writer: Writer,
    signals: &Signals,
    mut course: Course<'_>,
    next: Option<Next<'_>>,
) -> Result<Collected, StartError> {
    let before = cpu_time();
    let output = Mutex::new(writer);
    let (own, others) = session.cpus.split_at(session.cpus.len().min(CPUS_A_THREAD));
    let stop = AtomicBool::new(false);
    let (tell, tids_from) = mpsc::channel();
    let (ended, took, gone, (earlier, files, (looks, groups))) = thread::scope(|scope| {
        // Ends the other threads in any case.
        let _stop = Stop(&stop);
        let groups = session.groups().then(groups::Look::begin);
        let mut helpers = Vec::new();
        for part in others.chunks(CPUS_A_THREAD) {
            let (tell, stop, output) = (tell.clone(), &stop, &output);
            let work = move || {
                let _urgent = Urgent::begin();
                let _ = tell.send(own_tid());
                empty(part, output, stop)
            };
            let named = thread::Builder::new().name("holdup".to_owned());
            helpers.push(named.spawn_scoped(scope, work).map_err(StartError::Events)?);
        }
        let looks = match session.maps() {
            true => Some(Lookers::begin(scope, tell.clone()).map_err(StartError::Events)?),
            false => None,
        };
        if in_first_pid_namespace() {
            let others = helpers.len() + usize::from(looks.is_some());
            let tids = std::iter::once(own_tid()).chain(tids_from.iter().take(others));
            // No reason to give up: the recorder is then in its own recording.
            let _ = session.leave_out(&tids.collect::<Vec<u32>>());
        }
        session.start().map_err(StartError::Events)?;
        let started = Instant::now();
        if let Some(child) = &mut course.child {
            child.go().map_err(StartError::Command)?;
        }
        let (gone, earlier) = (session.gone.clone(), Written::default());
        let file = Instant::now();
        let mut watch = Watch {
            session,
            own,
            output: &output,
            helpers,
            gone,
            next,
            files: 1,
            file,
            earlier,
            looks,
            groups,
        };
        let urgent = Urgent::begin();
        let ended = watch.until_ended(signals, &mut course);
        drop(urgent);
        let took = started.elapsed();
        let _ = session.stop();
        let looks = watch.looks.map(Lookers::end);
        let seen = (looks, watch.groups);
        Ok((ended, took, watch.gone, (watch.earlier, watch.files, seen)))
    })?;
    let ended = ended.and_then(|ended| round(session, &output).map(|()| ended));
    if let Some(mut looks) = looks {
        let mut writer = lock(&output);
        // The processes that are left.
        looks.look(writer.latest());
        writer.saw(feature::DESCRIPTORS, looks.text());
    }
    lock(&output).saw(feature::CONTROL_GROUPS, groups.and_then(|look| look.end()));
    let writer = output.into_inner().unwrap_or_else(PoisonError::into_inner);
    let so_far = writer.written();
    let (written, ended) = match writer.finish() {
        Ok(written) => (written, ended),
        Err(error) => (so_far, Err(error)),
    };
    let written = earlier.and(written);
    Ok(Collected { written, files, ended, gone, took, cost: cpu_time().saturating_sub(before) })
}

/// State of the thread that controls the recording.
struct Watch<'a, 'scope, 'next> {
    session: &'a Session,
    /// The rings that this thread empties itself.
    own: &'a [OnCpu],
    output: &'a Mutex<Writer>,
    /// The threads for the other rings.
    helpers: Vec<ScopedJoinHandle<'scope, Result<(), Error>>>,
    /// Recorded CPUs that went offline. Their events do not come back with them.
    gone: Vec<u32>,
    /// Creates the next file, if there are several.
    next: Option<Next<'next>>,
    /// Number of files begun.
    files: u32,
    /// When this file began.
    file: Instant,
    /// What the earlier files contain.
    earlier: Written,
    /// Looks at descriptors, if names are wanted.
    looks: Option<Lookers>,
    /// The counts of the control groups when this file began.
    groups: Option<groups::Look>,
}

impl Watch<'_, '_, '_> {
    /// Looks at descriptors, if a look is due.
    fn look(&mut self) {
        let latest = lock(self.output).latest();
        if let Some(looks) = &mut self.looks {
            looks.ends(latest);
            looks.begins(latest);
        }
    }

    /// Empties the rings when they fill, ends rounds, and finds out why the recording ends.
    fn until_ended(&mut self, signals: &Signals, course: &mut Course<'_>) -> Result<Ended, Error> {
        let files = self.own.iter().map(|on| on.owner().as_fd());
        let mut poll = Poll::of(std::iter::once(signals.as_fd()).chain(files));
        let deadline = course.deadline();
        let began = Instant::now();
        let (mut next_round, mut shown_s) = (began + ROUND, 0);
        self.look();
        loop {
            poll.wait(Some(deadline.map_or(next_round, |deadline| deadline.min(next_round))));
            if poll.readable(0) {
                while let Some(signal) = signals.next() {
                    if let Some(ended) = course.after(signal) {
                        return Ok(ended);
                    }
                }
            }
            for (i, on) in self.own.iter().enumerate() {
                if poll.readable(i + 1) {
                    drain(on, self.output)?;
                }
            }
            if Instant::now() >= next_round {
                self.end_round()?;
                self.look();
                self.change_files()?;
                next_round = Instant::now() + ROUND;
                let elapsed = began.elapsed();
                if let Some(tell) = course.tell.filter(|_| elapsed.as_secs() > shown_s) {
                    shown_s = elapsed.as_secs();
                    tell(elapsed, &self.earlier.and(lock(self.output).written()));
                }
            }
            let full = course.is_full(lock(self.output).bytes());
            if let Some(ended) = course.by_now(deadline).or(full) {
                return Ok(ended);
            }
        }
    }

    /// Continues in the next file, if it is time. Events wait in the rings meanwhile.
    fn change_files(&mut self) -> Result<(), Error> {
        let (bytes, held) = (lock(self.output).bytes(), self.file.elapsed());
        let Some(next) = self.next.as_mut().filter(|next| next.due.is_over(bytes, held)) else {
            return Ok(());
        };
        let fresh = (next.writer)()?;
        round(self.session, self.output)?;
        let mut full = std::mem::replace(&mut *lock(self.output), fresh);
        full.saw(feature::DESCRIPTORS, self.looks.as_mut().and_then(Lookers::text));
        if let Some(groups) = &mut self.groups {
            full.saw(feature::CONTROL_GROUPS, groups.end());
            *groups = groups::Look::begin();
        }
        self.files += 1;
        self.file = Instant::now();
        self.earlier = self.earlier.and(full.finish()?);
        Ok(())
    }

    fn end_round(&mut self) -> Result<(), Error> {
        round(self.session, self.output)?;
        // They end early only if the output cannot be written.
        if let Some(i) = self.helpers.iter().position(ScopedJoinHandle::is_finished)
            && let Ok(done) = self.helpers.swap_remove(i).join()
        {
            done?;
        }
        let online = online().unwrap_or_default();
        let recorded = self.session.cpus.iter().map(|on| on.cpu);
        for cpu in recorded.filter(|cpu| !online.is_empty() && !online.contains(cpu)) {
            if !self.gone.contains(&cpu) {
                self.gone.push(cpu);
            }
        }
        Ok(())
    }
}

/// A separate thread that looks at descriptors, because rings fill while `/proc` is read.
struct Lookers {
    /// What was seen, unless the thread has it.
    here: Option<Looks>,
    give: mpsc::Sender<(Looks, Nanos)>,
    back: mpsc::Receiver<Looks>,
}

impl Lookers {
    /// Starts the thread, and returns its id.
    fn begin<'scope>(
        scope: &'scope thread::Scope<'scope, '_>,
        tell: mpsc::Sender<u32>,
    ) -> io::Result<Lookers> {
        let (give, given) = mpsc::channel::<(Looks, Nanos)>();
        let (send, back) = mpsc::channel();
        let work = move || {
            let _ = tell.send(own_tid());
            for (mut looks, before) in given {
                looks.look(before);
                if send.send(looks).is_err() {
                    break;
                }
            }
        };
        thread::Builder::new().name("holdup".to_owned()).spawn_scoped(scope, work)?;
        Ok(Lookers { here: Some(Looks::new(Path::new("/proc"))), give, back })
    }

    /// Begins a look in the other thread, if one is due.
    fn begins(&mut self, before: Nanos) {
        if let Some(looks) = self.here.take_if(|looks| looks.is_due()) {
            let _ = self.give.send((looks, before));
        }
    }

    /// Takes back what was seen, if a look is over; its end is at `after`.
    fn ends(&mut self, after: Nanos) {
        if let Ok(mut looks) = self.back.try_recv() {
            looks.ends(after);
            self.here = Some(looks);
        }
    }

    fn wait(&mut self) {
        if self.here.is_none() {
            self.here = self.back.recv().ok();
        }
    }

    /// What was seen so far.
    fn text(&mut self) -> Option<String> {
        self.wait();
        self.here.as_ref()?.text()
    }

    /// Ends the thread; returns what was seen.
    fn end(mut self) -> Looks {
        self.wait();
        self.here.unwrap_or_else(|| Looks::new(Path::new("/proc")))
    }
}

/// A thread with rings of its own: empties them when they fill. The main thread ends rounds.
fn empty(part: &[OnCpu], output: &Mutex<Writer>, stop: &AtomicBool) -> Result<(), Error> {
    let mut poll = Poll::of(part.iter().map(|on| on.owner().as_fd()));
    while !stop.load(Ordering::Relaxed) {
        poll.wait(Some(Instant::now() + ROUND));
        for (i, on) in part.iter().enumerate() {
            if poll.readable(i) {
                drain(on, output)?;
            }
        }
    }
    Ok(())
}

/// Empties all rings and ends the round.
fn round(session: &Session, output: &Mutex<Writer>) -> Result<(), Error> {
    for on in &session.cpus {
        drain(on, output)?;
    }
    lock(output).round()
}

fn drain(on: &OnCpu, output: &Mutex<Writer>) -> Result<(), Error> {
    lock(&on.ring).drain(|first, second| lock(output).data(first, second)).map(|_| ())
}

/// The CPUs that are online; `None` if the kernel does not say.
pub fn online() -> Option<Vec<u32>> {
    let list = std::fs::read_to_string("/sys/devices/system/cpu/online").ok()?;
    Some(Cpu::parse_list(&list)?.into_iter().map(|cpu| cpu.0.into()).collect())
}

/// Ends the other threads when dropped.
struct Stop<'a>(&'a AtomicBool);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Ignores poisoning: a thread that panicked leaves rings and file between two records.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether this process is in the initial PID namespace, whose thread ids the events have.
pub(crate) fn in_first_pid_namespace() -> bool {
    // PROC_PID_INIT_INO of include/linux/proc_ns.h.
    std::fs::read_link("/proc/self/ns/pid").is_ok_and(|link| link.as_os_str() == "pid:[4026531836]")
}

#[allow(unsafe_code, reason = "a system call without arguments")]
pub(crate) fn own_tid() -> u32 {
    // SAFETY: it only returns a number.
    unsafe { libc::gettid() as u32 }
}
