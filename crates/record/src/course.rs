//! When a recording ends.

use crate::child::Child;
use crate::signals::Signal;
use std::path::Path;
use std::time::{Duration, Instant};

/// What a recording runs along with.
#[derive(Debug)]
pub struct Course<'a> {
    /// The command that is let go when the events count. The recording ends with it.
    pub child: Option<&'a mut Child>,
    /// How long it may take.
    pub duration: Option<Duration>,
    /// The recording ends when none of these processes is left, if there were any.
    pub processes: Vec<u32>,
}

/// Why a recording ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// The command ended, or what was recorded did.
    Work,
    /// The time was over.
    Time,
    /// This signal came.
    Signal(i32),
}

impl Course<'_> {
    /// When the time is over of a recording that begins now.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        Instant::now().checked_add(self.duration?)
    }

    /// Whether it is over after this signal.
    pub(crate) fn after(&mut self, signal: Signal) -> Option<Ended> {
        match signal {
            Signal::End(signal) => Some(Ended::Signal(signal)),
            Signal::Child => self.child.as_mut()?.ended().map(|_| Ended::Work),
            Signal::Write => None,
        }
    }

    /// Whether it is over by now, asked a few times a second.
    pub(crate) fn by_now(&mut self, deadline: Option<Instant>) -> Option<Ended> {
        if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
            return Some(Ended::Time);
        }
        let runs = |pid: &u32| Path::new("/proc").join(pid.to_string()).exists();
        let gone = !self.processes.is_empty() && !self.processes.iter().any(runs);
        gone.then_some(Ended::Work)
    }
}
