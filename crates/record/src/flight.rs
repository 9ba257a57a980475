//! A recording that is written only when something happens: until then the rings keep the latest
//! events, and nothing is read.

use crate::collect::{Collected, StartError, in_first_pid_namespace, online, own_tid};
use crate::course::{Course, Ended};
use crate::descriptors::Looks;
use crate::file::{self, Writer};
use crate::groups;
use crate::lock_wait::LockWait;
use crate::poll::Poll;
use crate::session::Session;
use crate::signals::{Signal, Signals};
use crate::trigger::{Fired, RunQueue, Trigger, load};
use crate::usage::cpu_time;
use holdup_perfdata::format::feature;
use perf_event_open_sys::bindings::PERF_RECORD_SAMPLE;
use std::os::fd::AsFd;
use std::path::Path;
use std::sync::PoisonError;
use std::time::{Duration, Instant};

/// The time over which the values of conditions are averaged.
const SECOND: Duration = Duration::from_secs(1);

/// How often instantaneous values are sampled.
const MOMENT: Duration = Duration::from_millis(50);

/// Offset of the time in a sample: after the header, the event's number and the thread.
const TIME: usize = 24;

/// Number of bytes handed to the writer at once.
const BLOCK: usize = 1 << 20;

/// A flight recording that has ended.
#[derive(Debug)]
pub enum Flight {
    /// The condition was not met, and nothing was written.
    Quiet(Ended),
    /// It was met, or the recorder was told to end.
    Written(Fired, Collected),
}

/// What is measured to find out whether the condition is met.
enum Gauge {
    None,
    Load,
    RunQueue(RunQueue),
    LockWait(Box<LockWait>),
}

/// Starts the events of `session`, then what `course` has to run, and keeps the latest events until
/// the trigger fires or the recording ends. Only then `writer` creates the file.
///
/// # Errors
///
/// If it could not begin, the kernel lacks what the trigger needs, or the file cannot be created.
pub(crate) fn keep(
    session: &Session,
    writer: impl FnOnce() -> Result<Writer, file::Error>,
    signals: &Signals,
    mut course: Course<'_>,
    (trigger, locks): (Trigger, Option<LockWait>),
) -> Result<Flight, StartError> {
    let before = cpu_time();
    if in_first_pid_namespace() {
        // No reason to give up: the recorder is then in its own recording.
        let _ = session.leave_out(&[own_tid()]);
    }
    let mut gauge = match (trigger, locks) {
        (Trigger::Load(_), _) => Gauge::Load,
        (Trigger::RunQueue(_), _) => {
            let cpus = online().map_or(session.cpus.len(), |online| online.len());
            Gauge::RunQueue(RunQueue::begin(cpus))
        }
        (Trigger::LockWait(_), Some(locks)) => {
            locks.session().start().map_err(StartError::Events)?;
            Gauge::LockWait(Box::new(locks))
        }
        (Trigger::LockWait(_), None) => {
            return Err(StartError::NoGauge("lock:contention_begin (Linux 5.19)"));
        }
        (Trigger::Signal | Trigger::Fails, _) => Gauge::None,
    };
    let groups = session.groups().then(groups::Look::begin);
    session.start().map_err(StartError::Events)?;
    let started = Instant::now();
    if let Some(child) = &mut course.child {
        child.go().map_err(StartError::Command)?;
    }
    let fired = match watch(signals, &mut course, trigger, &mut gauge) {
        Ok(fired) => fired,
        Err(ended) => {
            let _ = session.stop();
            return Ok(Flight::Quiet(ended));
        }
    };
    // First stop the rings, so that no more records are overwritten.
    for on in &session.cpus {
        let _ = on.pause(true);
    }
    let took = started.elapsed();
    let _ = session.stop();
    let mut writer = writer().map_err(StartError::File)?;
    let ended = write(session, &mut writer);
    if session.maps() {
        let mut looks = Looks::new(Path::new("/proc"));
        looks.look(writer.latest());
        writer.saw(feature::DESCRIPTORS, looks.text());
    }
    // Counts from the recorder's start, which may be long before what the rings hold.
    writer.saw(feature::CONTROL_GROUPS, groups.and_then(|look| look.end()));
    let so_far = writer.written();
    let (written, failed) = match writer.finish() {
        Ok(written) => (written, None),
        Err(error) => (so_far, Some(error)),
    };
    let ended = match failed {
        Some(error) => Err(error),
        None => ended.map(|()| match fired {
            Fired::Ended(signal) => Ended::Signal(signal),
            _ => Ended::Work,
        }),
    };
    let cost = cpu_time().saturating_sub(before);
    Ok(Flight::Written(
        fired,
        Collected { written, files: 1, ended, gone: session.gone.clone(), took, cost },
    ))
}

/// Waits until the trigger fires, or the recording ends without it.
fn watch(
    signals: &Signals,
    course: &mut Course<'_>,
    trigger: Trigger,
    gauge: &mut Gauge,
) -> Result<Fired, Ended> {
    let locks = match &*gauge {
        Gauge::LockWait(locks) => {
            locks.session().cpus.iter().map(|on| on.owner().as_fd()).collect()
        }
        _ => Vec::new(),
    };
    let mut poll = Poll::of(std::iter::once(signals.as_fd()).chain(locks));
    let deadline = course.deadline();
    let mut next_look = Instant::now() + SECOND;
    loop {
        let wake = match gauge {
            Gauge::RunQueue(RunQueue::Moments { .. }) => next_look.min(Instant::now() + MOMENT),
            _ => next_look,
        };
        poll.wait(Some(deadline.map_or(wake, |deadline| deadline.min(wake))));
        while let Some(signal) = signals.next() {
            if signal == Signal::Write {
                return Ok(Fired::Signal);
            }
            match course.after(signal) {
                Some(Ended::Signal(signal)) => return Ok(Fired::Ended(signal)),
                Some(ended) => {
                    let status = course.child.as_mut().and_then(|child| child.ended());
                    let failed = status.map(|exit| exit.code()).filter(|&code| code != 0);
                    return match (trigger, failed) {
                        (Trigger::Fails, Some(code)) => Ok(Fired::Failed(code)),
                        _ => Err(ended),
                    };
                }
                None => {}
            }
        }
        match gauge {
            Gauge::LockWait(locks) => locks.drain(),
            Gauge::RunQueue(queue) => queue.look(),
            Gauge::None | Gauge::Load => {}
        }
        if Instant::now() >= next_look {
            next_look = Instant::now() + SECOND;
            let (value, limit) = match (&mut *gauge, trigger) {
                (Gauge::Load, Trigger::Load(limit)) => (load(), limit),
                (Gauge::RunQueue(queue), Trigger::RunQueue(limit)) => (queue.since(), limit),
                (Gauge::LockWait(locks), Trigger::LockWait(limit)) => (Some(locks.since()), limit),
                _ => (None, 0.0),
            };
            if let Some(value) = value.filter(|&value| value > limit) {
                return Ok(Fired::Above(trigger, value));
            }
        }
        if let Some(ended) = course.by_now(deadline) {
            return Err(ended);
        }
    }
}

/// Writes the content of the rings. The ring of a busy CPU reaches back less far than that of an
/// idle one: before the time from which all are complete, samples would show only part of the
/// machine.
fn write(session: &Session, writer: &mut Writer) -> Result<(), file::Error> {
    let mut from = 0;
    for on in &session.cpus {
        let mut ring = on.ring.lock().unwrap_or_else(PoisonError::into_inner);
        if ring.is_full() {
            let mut oldest = None;
            ring.oldest_first(|first, second| {
                oldest = oldest.or_else(|| sample_time(first, second));
                Ok::<(), file::Error>(())
            })?;
            from = from.max(oldest.unwrap_or(0));
        }
    }
    let mut block: Vec<u8> = Vec::with_capacity(BLOCK + (1 << 16));
    for on in &session.cpus {
        let mut ring = on.ring.lock().unwrap_or_else(PoisonError::into_inner);
        ring.oldest_first(|first, second| {
            if sample_time(first, second).is_none_or(|time| time >= from) {
                block.extend_from_slice(first);
                block.extend_from_slice(second);
            }
            if block.len() >= BLOCK {
                writer.data(&block, &[])?;
                block.clear();
            }
            Ok(())
        })?;
        writer.data(&block, &[])?;
        block.clear();
    }
    writer.round()
}

/// The time of a record in two parts, if it is a sample.
fn sample_time(first: &[u8], second: &[u8]) -> Option<u64> {
    // Both parts are multiples of eight bytes: no word is torn.
    let word = |at: usize| match at.checked_sub(first.len()) {
        None => first.get(at..at + 8)?.first_chunk().copied(),
        Some(at) => second.get(at..at + 8)?.first_chunk().copied(),
    };
    let head = word(0)?;
    let kind = u32::from_ne_bytes([head[0], head[1], head[2], head[3]]);
    (kind == PERF_RECORD_SAMPLE).then_some(u64::from_ne_bytes(word(TIME)?))
}
