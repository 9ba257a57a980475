//! When a recording ends.

use crate::child::Child;
use crate::closing::is_zombie;
use crate::file::Written;
use crate::signals::Signal;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// What runs with a recording, and what ends it.
#[derive(Debug, Default)]
pub struct Course<'a> {
    /// The command that is started when the events count. The recording ends with it.
    pub child: Option<&'a mut Child>,
    /// The maximal duration.
    pub duration: Option<Duration>,
    /// The recording ends when its file has this many bytes.
    pub size: Option<u64>,
    /// The recording ends when none of these processes is left, unless the list is empty.
    pub processes: Vec<u32>,
    /// Called every second with the duration and what was written so far.
    pub tell: Option<fn(Duration, &Written)>,
}

/// Why a recording ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// The command or the recorded processes ended.
    Work,
    /// The time was over.
    Time,
    /// The file is large enough.
    Size,
    /// This signal came.
    Signal(i32),
}

impl Course<'_> {
    /// When the duration is over for a recording that begins now.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        Instant::now().checked_add(self.duration?)
    }

    /// Whether this signal ends the recording.
    pub(crate) fn after(&mut self, signal: Signal) -> Option<Ended> {
        match signal {
            Signal::End(signal) => Some(Ended::Signal(signal)),
            Signal::Child => self.child.as_mut()?.ended().map(|_| Ended::Work),
            Signal::Write => None,
        }
    }

    /// Whether a file of `bytes` bytes is large enough.
    pub(crate) fn is_full(&self, bytes: u64) -> Option<Ended> {
        self.size.is_some_and(|size| bytes >= size).then_some(Ended::Size)
    }

    /// Whether it is over by now; called a few times a second.
    pub(crate) fn by_now(&mut self, deadline: Option<Instant>) -> Option<Ended> {
        if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
            return Some(Ended::Time);
        }
        let gone = !self.processes.is_empty() && !self.processes.iter().any(|&pid| runs(pid));
        gone.then_some(Ended::Work)
    }
}

/// Whether a process has not ended. After its end it stays in `/proc` until its parent reaps it,
/// like the first thread of a process whose other threads go on.
fn runs(pid: u32) -> bool {
    let process = PathBuf::from(format!("/proc/{pid}"));
    let goes_on = |tid: u32| !is_zombie(&process.join("task").join(tid.to_string()));
    !is_zombie(&process) || threads_of(pid).is_some_and(|tids| tids.into_iter().any(goes_on))
}

/// The threads of a process; `None` if it does not exist.
pub(crate) fn threads_of(pid: u32) -> Option<Vec<u32>> {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).ok()?;
    Some(tasks.flatten().filter_map(|task| task.file_name().to_str()?.parse().ok()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_full_from_its_size_on() {
        let course = |size| Course { size, ..Course::default() };
        assert_eq!(course(Some(10)).is_full(10), Some(Ended::Size));
        assert_eq!((course(Some(10)).is_full(9), course(None).is_full(u64::MAX)), (None, None));
    }

    #[test]
    fn a_process_that_nobody_waits_for_has_ended_all_the_same() {
        let mut child = std::process::Command::new("sleep").arg("600").spawn().unwrap();
        let mut course = Course { processes: vec![child.id()], ..Course::default() };
        assert_eq!(course.by_now(None), None);
        child.kill().unwrap();
        let start = Instant::now();
        while course.by_now(None) != Some(Ended::Work) {
            assert!(start.elapsed() < Duration::from_secs(60), "it is dead");
        }
        assert!(PathBuf::from(format!("/proc/{}", child.id())).exists());
        child.wait().unwrap();
        assert_eq!(course.by_now(None), Some(Ended::Work));
        assert!(runs(std::process::id()));
    }
}
