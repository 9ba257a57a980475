//! How many threads of each process have work at the same time.
//!
//! Work may hop between threads: goroutines, virtual threads, tasks of an executor. No thread of
//! such a process is busy all the time, yet there may never be more than one busy thread. So the
//! time with one active thread and the time with several are counted per process. Other processes
//! do not change these times.
//!
//! A thread counts for the process that it belongs to when it becomes active (running or ready).

use crate::living::NO_PROGRAM;
use crate::threads::Thread;
use holdup_trace::{Nanos, Pid};
use rustc_hash::FxHashMap;

/// Time during which threads of a process were running or ready.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Together {
    /// Exactly one.
    pub one_ns: Nanos,
    /// Two or more at a time.
    pub several_ns: Nanos,
}

#[derive(Clone, Debug, Default)]
struct Program {
    active: u32,
    since: Nanos,
    sum: Together,
}

impl Program {
    fn advance(&mut self, now: Nanos) {
        let span = now.saturating_sub(self.since);
        self.since = now;
        match self.active {
            0 => {}
            1 => self.sum.one_ns += span,
            _ => self.sum.several_ns += span,
        }
    }
}

/// All processes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Programs {
    programs: Vec<Program>,
    by_pid: FxHashMap<Pid, u32>,
}

impl Programs {
    /// A thread becomes active or inactive.
    #[inline]
    pub(crate) fn active(&mut self, now: Nanos, t: &mut Thread, active: bool) {
        if active && t.living.program_pid != t.pid {
            self.find(t);
        }
        // It leaves the process that it was counted for.
        let at = if active { t.living.program } else { t.living.counted_for };
        t.living.counted_for = if active { at } else { NO_PROGRAM };
        let Some(p) = self.programs.get_mut(at as usize) else { return };
        p.advance(now);
        p.active = if active { p.active + 1 } else { p.active.saturating_sub(1) };
    }

    #[cold]
    fn find(&mut self, t: &mut Thread) {
        t.living.program_pid = t.pid;
        let next = self.programs.len() as u32;
        let at = *self.by_pid.entry(t.pid).or_insert(next);
        if at == next {
            self.programs.push(Program::default());
        }
        t.living.program = at;
    }

    pub(crate) fn restart(&mut self, now: Nanos) {
        for p in &mut self.programs {
            (p.since, p.sum) = (now, Together::default());
        }
    }

    pub(crate) fn finish(&mut self, end: Nanos) {
        self.programs.iter_mut().for_each(|p| p.advance(end));
    }

    /// The times of the process with this id.
    pub(crate) fn of(&self, pid: Pid) -> Option<Together> {
        Some(self.programs[*self.by_pid.get(&pid)? as usize].sum)
    }
}
