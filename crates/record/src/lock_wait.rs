//! How many threads wait for locks of the kernel right now: a second, small set of rings with only
//! the beginnings and ends of waits.

use crate::session::{OpenError, Rings, Scope, Session, Setup};
use holdup_host::tracefs::Tracefs;
use holdup_trace::EventKind;
use perf_event_open_sys::bindings::{PERF_RECORD_LOST, PERF_RECORD_SAMPLE};
use std::collections::HashSet;
use std::sync::PoisonError;
use std::time::{Duration, Instant};

/// Bytes of a ring: some thousand events, which are some time apart.
const RING: usize = 1 << 20;

/// Counts waiting threads.
#[derive(Debug)]
pub(crate) struct LockWait {
    session: Session,
    tally: Tally,
    /// Time of the last query.
    asked: Instant,
}

impl LockWait {
    /// Begins to count on these CPUs; `None` if this kernel has no such events (before 5.19).
    pub(crate) fn begin(tracefs: &Tracefs, cpus: &[u32]) -> Result<Option<LockWait>, OpenError> {
        let kinds = [EventKind::ContentionBegin, EventKind::ContentionEnd];
        let tracepoints: Option<Vec<_>> =
            kinds.iter().map(|k| tracefs.tracepoint(k.system(), k.kernel_name())).collect();
        let Some(tracepoints) = tracepoints else { return Ok(None) };
        let session = Session::open(&Setup {
            tracepoints: &tracepoints,
            scope: &Scope::Machine,
            cpus,
            stacks: false,
            calls: false,
            maps: false,
            samples: None,
            probes: &[],
            rings: Rings::Emptied { size: RING },
        })?;
        let ids = |i: usize| session.described[i].ids.clone();
        let tally = Tally { begins: ids(1), ends: ids(2), ..Tally::default() };
        Ok(Some(LockWait { session, tally, asked: Instant::now() }))
    }

    /// The open events.
    pub(crate) fn session(&self) -> &Session {
        &self.session
    }

    /// Reads the new events.
    pub(crate) fn drain(&mut self) {
        let mut happened = Vec::new();
        for on in &self.session.cpus {
            let mut ring = on.ring.lock().unwrap_or_else(PoisonError::into_inner);
            let mut joined = Vec::new();
            let _ = ring.drain(|first, second| {
                joined.extend_from_slice(first);
                joined.extend_from_slice(second);
                Ok::<(), ()>(())
            });
            self.tally.read(&joined, &mut happened);
        }
        self.tally.count(happened);
    }

    /// Average number of waiting threads since the last call.
    pub(crate) fn since(&mut self) -> f64 {
        // Events drained below may be later than this time; later ones are never earlier.
        let now = Instant::now();
        let passed = now.duration_since(std::mem::replace(&mut self.asked, now));
        self.drain();
        self.tally.since(passed)
    }
}

/// The waiting threads, and the sum of their time.
#[derive(Debug, Default)]
struct Tally {
    /// The numbers of the events that begin and end a wait.
    begins: Vec<u64>,
    ends: Vec<u64>,
    waiting: HashSet<u32>,
    /// End of the time in `waited`: the last event, or the last query. 0 before the first event,
    /// because only events show the time of their clock.
    last: u64,
    /// Start of the time in `waited`: the first event, or the last query.
    from: u64,
    /// Whether there was a query since the first event.
    asked: bool,
    /// Threads times nanoseconds since the last query.
    waited: u128,
}

/// A wait begins or ends, or events were lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Happened {
    time: u64,
    what: What,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum What {
    Begin(u32),
    End(u32),
    Lost,
}

impl Tally {
    /// Finds the events in whole records.
    fn read(&self, mut records: &[u8], happened: &mut Vec<Happened>) {
        let mut last = self.last;
        while let Some((head, rest)) = records.split_first_chunk::<8>() {
            let kind = u32::from_ne_bytes([head[0], head[1], head[2], head[3]]);
            let size = usize::from(u16::from_ne_bytes([head[6], head[7]]));
            let Some(body) = size.checked_sub(8).and_then(|n| rest.get(..n)) else { break };
            let word = |at| body.get(at..at + 8)?.first_chunk().map(|w| u64::from_ne_bytes(*w));
            match (kind, word(0), word(8), word(16)) {
                // The event's number, the process and the thread, the time.
                (PERF_RECORD_SAMPLE, Some(id), Some(threads), Some(time)) => {
                    last = time;
                    let half = threads.to_ne_bytes();
                    let tid = u32::from_ne_bytes([half[4], half[5], half[6], half[7]]);
                    // Waits in interrupts on idle CPUs belong to no thread.
                    if tid != 0 && self.begins.contains(&id) {
                        happened.push(Happened { time, what: What::Begin(tid) });
                    } else if tid != 0 && self.ends.contains(&id) {
                        happened.push(Happened { time, what: What::End(tid) });
                    }
                }
                // The waiting threads are not known any more.
                (PERF_RECORD_LOST, ..) => {
                    happened.push(Happened { time: last, what: What::Lost });
                }
                _ => {}
            }
            records = &rest[size - 8..];
        }
    }

    /// Adds what happened on several CPUs.
    fn count(&mut self, mut happened: Vec<Happened>) {
        happened.sort_unstable();
        for Happened { time, what } in happened {
            if self.last == 0 {
                (self.last, self.from) = (time, time);
            }
            let took = time.saturating_sub(self.last);
            self.waited += self.waiting.len() as u128 * u128::from(took);
            self.last = self.last.max(time);
            match what {
                What::Begin(tid) => _ = self.waiting.insert(tid),
                What::End(tid) => _ = self.waiting.remove(&tid),
                What::Lost => self.waiting.clear(),
            }
        }
    }

    /// Average number of waiting threads since the last query, `passed` ago.
    fn since(&mut self, passed: Duration) -> f64 {
        if self.last == 0 {
            return 0.0;
        }
        // No event shows the clock's current time. This value is not too late, because `from` was
        // not when it was set: first from an event, then from here.
        let passed = u64::try_from(passed.as_nanos()).unwrap_or(u64::MAX);
        let now = match self.asked {
            true => self.last.max(self.from.saturating_add(passed)),
            false => self.last,
        };
        // Without new events, all of them still wait.
        self.waited += self.waiting.len() as u128 * u128::from(now - self.last);
        let took = now - self.from;
        (self.last, self.from, self.asked) = (now, now, true);
        let waited = std::mem::take(&mut self.waited);
        if took == 0 { self.waiting.len() as f64 } else { waited as f64 / took as f64 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn sample(id: u64, tid: u32, time: u64) -> Vec<u8> {
        let mut record = PERF_RECORD_SAMPLE.to_ne_bytes().to_vec();
        record.extend([0, 0]);
        record.extend(32u16.to_ne_bytes());
        record.extend(id.to_ne_bytes());
        record.extend(1u32.to_ne_bytes());
        record.extend(tid.to_ne_bytes());
        record.extend(time.to_ne_bytes());
        record
    }

    fn tally(records: &[Vec<u8>]) -> Tally {
        let mut tally = Tally { begins: vec![1], ends: vec![2], ..Tally::default() };
        let mut happened = Vec::new();
        tally.read(&records.concat(), &mut happened);
        tally.count(happened);
        tally
    }

    #[test]
    fn the_average_is_that_of_threads_over_time() {
        // Thread 7 waits from 0 to 100, thread 8 from 50 to 100; CPUs come one after the other.
        let mut tally = tally(&[
            sample(1, 7, 1000),
            sample(2, 7, 1100),
            sample(1, 8, 1050),
            sample(2, 8, 1100),
            sample(1, 0, 1060),
            sample(9, 9, 1070),
        ]);
        assert_eq!(tally.since(Duration::from_nanos(100)), 1.5);
        assert_eq!(tally.since(Duration::from_nanos(100)), 0.0);
    }

    #[test]
    fn who_never_gets_the_lock_waits_on() {
        let mut tally = tally(&[sample(1, 7, 1000), sample(1, 8, 1000)]);
        assert_eq!(tally.since(Duration::ZERO), 2.0);
        assert_eq!(tally.since(SECOND), 2.0);
    }

    #[test]
    fn a_moment_before_long_silence_is_not_the_average_of_a_second() {
        let mut tally = tally(&[sample(1, 7, 1000), sample(2, 7, 1100), sample(1, 8, 1100)]);
        assert_eq!(tally.since(Duration::from_nanos(100)), 1.0);
        // Thread 8 gets its lock at once, and nothing happens for the rest of the second.
        let mut happened = Vec::new();
        tally.read(&sample(2, 8, 1200), &mut happened);
        tally.count(happened);
        assert_eq!(tally.since(SECOND), 1e-7);
        assert_eq!(tally.since(SECOND), 0.0);
    }

    #[test]
    fn without_events_nobody_waits() {
        assert_eq!(tally(&[]).since(SECOND), 0.0);
    }

    #[test]
    fn damaged_records_end_the_reading() {
        let mut cut = sample(1, 7, 1000);
        cut.truncate(20);
        assert!(tally(&[sample(1, 8, 1000), cut]).waiting.contains(&8));
        assert!(tally(&[vec![0; 64]]).waiting.is_empty());
    }
}
