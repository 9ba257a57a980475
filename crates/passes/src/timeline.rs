//! How the composition of a trace changes over time: the same accounts, in up to [`Grid::BINS`]
//! parts.
//!
//! The span of the trace is known before the pass, so the bins are equal and fixed. Time is charged
//! as usual; only a charge that crosses the border of a bin is cut at the border, and what was
//! charged since the previous border goes into the bin. So a bin costs each CPU one comparison per
//! charge and one subtraction per border, and the bins add up to the whole to the nanosecond:
//!
//! ```text
//!                border        border
//!  ──────┬─────────┊──┬──────────┊────►
//!   user │ idle    ┊  │ kernel   ┊      CPU: idle is charged twice, up to the border and beyond
//!        └─────────┊──┘          ┊
//!   a wait that begins in one    ┊      its share of idle time: the blame integral at the border
//!   bin and ends in another      ┊      divides it exactly
//! ```
//!
//! CPU time is kept by program (the name without the number at its end), not by thread, because
//! there are few programs.

use crate::cause::Cause;
use crate::grid::Grid;
use crate::grid::IdleBin;
use crate::grid::Spent;
use crate::state::Mode;
use crate::threads::{Thread, role};
use holdup_trace::{NameId, Names, Nanos};
use rustc_hash::FxHashMap;

/// CPU time of threads by program and bin.
#[derive(Clone, Debug)]
struct Programs {
    /// The program of each name, plus one.
    of_name: Vec<u16>,
    by_role: FxHashMap<Box<[u8]>, u16>,
    names: Vec<String>,
    /// One row of bins per program.
    ns: Vec<Nanos>,
}

/// All threads of the kernel.
const KERNEL: u16 = 0;
/// Programs beyond [`PROGRAMS`].
const OTHERS: u16 = 1;
/// Any more programs in one trace are helpers that live for a moment.
const PROGRAMS: usize = 256;

impl Programs {
    fn new(bins: usize) -> Programs {
        Programs {
            of_name: Vec::new(),
            by_role: FxHashMap::default(),
            names: vec![String::new(); 2],
            ns: vec![0; 2 * bins],
        }
    }

    fn of(&mut self, comm: NameId, names: &Names, bins: usize) -> u16 {
        match self.of_name.get(comm.0 as usize) {
            Some(&program) if program > 0 => program - 1,
            _ => self.find(comm, names, bins),
        }
    }

    #[cold]
    fn find(&mut self, comm: NameId, names: &Names, bins: usize) -> u16 {
        let bytes = names.bytes(comm);
        let role = role(&bytes);
        let program = match self.by_role.get(role) {
            Some(&program) => program,
            None if self.names.len() >= PROGRAMS => OTHERS,
            None => {
                let program = self.names.len() as u16;
                self.by_role.insert(role.into(), program);
                self.names.push(String::from_utf8_lossy(role).into_owned());
                self.ns.resize(self.names.len() * bins, 0);
                program
            }
        };
        let i = comm.0 as usize;
        if i >= self.of_name.len() {
            self.of_name.resize(i + 1, 0);
        }
        self.of_name[i] = program + 1;
        program
    }
}

/// The timeline while it is filled.
#[derive(Clone, Debug)]
pub(crate) struct Timeline {
    pub(crate) grid: Grid,
    bins: Vec<Spent>,
    switches: Vec<u64>,
    programs: Programs,
}

impl Timeline {
    pub(crate) fn new(grid: Grid) -> Timeline {
        Timeline {
            grid,
            bins: vec![Spent::default(); grid.len()],
            switches: vec![0; grid.len()],
            programs: Programs::new(grid.len()),
        }
    }

    /// Adds what a CPU spent its time on since `mark`, within `bin`, and how often it switched.
    pub(crate) fn spent(&mut self, bin: u16, now: &Spent, mark: &Spent, switches: u64) {
        self.bins[bin as usize].add(&now.since(mark));
        self.switches[bin as usize] += switches;
    }

    /// A thread ran for `ns` within `bin`.
    #[inline]
    pub(crate) fn ran(&mut self, bin: u16, t: &Thread, ns: Nanos, names: &Names) {
        if ns > 0 {
            let bins = self.bins.len();
            let program = match t.is_kthread() {
                true => KERNEL,
                false => self.programs.of(t.comm, names, bins),
            };
            self.programs.ns[program as usize * bins + bin as usize] += ns;
        }
    }

    /// `span` of a past bin turns out to have been `mode`.
    pub(crate) fn decided(&mut self, bin: u16, mode: Mode, span: Nanos) {
        self.bins[bin as usize].decided(mode, span);
    }

    /// How many bins there are up to `end`; one at least.
    fn bins_until(&self, end: Nanos) -> usize {
        let begins = |&i: &usize| i == 0 || self.grid.begin(i as u16) < end;
        (0..self.bins.len()).take_while(begins).count()
    }

    /// The bins up to `end`, with what threads waited for while CPUs were idle.
    pub(crate) fn rows(&self, end: Nanos, idle: &[IdleBin]) -> Vec<Bin> {
        (self.bins.iter().zip(idle).take(self.bins_until(end)).enumerate())
            .map(|(i, (s, idle))| Bin {
                start: self.grid.begin(i as u16),
                end: self.grid.border(i as u16).min(end),
                user_ns: s.user + s.undecided,
                kernel_ns: s.kernel,
                kthread_ns: s.kthread,
                irq_ns: s.irq,
                softirq_ns: s.softirq,
                idle_ns: s.idle,
                unaccounted_ns: s.unaccounted,
                waiting: idle.causes.map(|share| (share >> crate::cause::FRACTION) as Nanos),
                scheduler_ns: idle.scheduler_left_ns(),
                active_ns: idle.queue_ns as Nanos,
                switches: self.switches[i],
            })
            .collect()
    }

    /// Every program that ran, kernel threads first, with its CPU time in each bin up to `end`.
    pub(crate) fn programs(&self, end: Nanos) -> Vec<Program> {
        let (all, bins) = (self.bins.len(), self.bins_until(end));
        let mut rows: Vec<Program> = (self.programs.names.iter())
            .zip(self.programs.ns.chunks(all))
            .enumerate()
            .map(|(i, (name, ns))| Program {
                who: match i as u16 {
                    KERNEL => Who::Kernel,
                    OTHERS => Who::Others,
                    _ => Who::Named(name.clone()),
                },
                ns: ns[..bins].to_vec(),
            })
            .filter(|p| p.total_ns() > 0)
            .collect();
        // Programs are known in the order of their first run, but names are easier to follow.
        rows.sort_by(|a, b| a.who.cmp(&b.who));
        rows
    }
}

/// What all CPUs did in a part of the trace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Bin {
    /// First time.
    pub start: Nanos,
    /// Last time.
    pub end: Nanos,
    /// Application code.
    pub user_ns: Nanos,
    /// System calls of applications.
    pub kernel_ns: Nanos,
    /// Kernel threads.
    pub kthread_ns: Nanos,
    /// Interrupt handlers.
    pub irq_ns: Nanos,
    /// Softirqs.
    pub softirq_ns: Nanos,
    /// The idle task.
    pub idle_ns: Nanos,
    /// Lost events, gaps.
    pub unaccounted_ns: Nanos,
    /// Part of the idle time: while threads waited, by cause, in the order of [`Cause::ALL`].
    pub waiting: [Nanos; Cause::ALL.len()],
    /// Part of the idle time: while a runnable thread waited for another CPU.
    pub scheduler_ns: Nanos,
    /// Integral of the number of threads running or ready.
    pub active_ns: Nanos,
    /// Switches of all CPUs.
    pub switches: u64,
}

/// Whose CPU time it is.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Who {
    /// Threads of the kernel.
    Kernel,
    /// Programs of this name, without the number at its end.
    Named(String),
    /// Programs beyond the number that is kept.
    Others,
}

/// CPU time of one program, bin by bin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    /// The program.
    pub who: Who,
    /// CPU time per bin, in the order of the bins.
    pub ns: Vec<Nanos>,
}

impl Program {
    /// CPU time in all bins.
    pub fn total_ns(&self) -> Nanos {
        self.ns.iter().sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grid::NEVER;

    #[test]
    fn bins_are_equal_and_cover_the_span() {
        let grid = Grid::new(1_000, 1_000 + 1_280_000_000);
        assert_eq!((grid.len(), grid.begin(1)), (128, 10_001_000));
        assert_eq!((grid.bin(1_000), grid.bin(10_000_999), grid.bin(10_001_000)), (0, 0, 1));
        assert_eq!((grid.bin(u64::MAX), grid.border(127)), (127, NEVER));
        let short = Grid::new(5, 6);
        assert_eq!((short.len(), short.border(0)), (1, NEVER));
    }
}
