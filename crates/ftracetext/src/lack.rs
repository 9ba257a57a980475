//! Columns that a line lacks.
//!
//! `perf script -F` prints the columns it is told to. A switch without its CPU can be read but not
//! used, because the CPU whose thread changed is unknown. Such events are counted by what they
//! lack, so that the report can name the option that prints it, and they do not count as proof of a
//! capability ([`holdup_trace::Capabilities`]).

use crate::line::Line;
use holdup_trace::{Cpu, Quality, QualityCode, Tid};

/// A set of columns.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Lack(u8);

impl Lack {
    pub(crate) const NOTHING: Lack = Lack(0);
    /// The CPU.
    pub(crate) const CPU: Lack = Lack(1);
    /// The thread.
    pub(crate) const THREAD: Lack = Lack(2);
    /// The event's own fields.
    pub(crate) const FIELDS: Lack = Lack(4);
    /// How many sets there are.
    pub(crate) const SETS: usize = 8;

    pub(crate) const fn with(self, other: Lack) -> Lack {
        Lack(self.0 | other.0)
    }

    /// What `line` lacks.
    #[inline(always)]
    pub(crate) fn of(line: &Line<'_>) -> Lack {
        Lack(
            u8::from(line.cpu == Cpu::UNKNOWN)
                | u8::from(line.tid == Tid::UNKNOWN) << 1
                | u8::from(line.body.is_empty()) << 2,
        )
    }

    /// Whether both sets have a column in common.
    #[inline(always)]
    pub(crate) fn meets(self, other: Lack) -> bool {
        self.0 & other.0 != 0
    }
}

/// How many events lacked each set of columns.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Tally([u64; Lack::SETS]);

impl Tally {
    #[inline(always)]
    pub(crate) fn count(&mut self, lack: Lack) {
        self.0[lack.0 as usize] += 1;
    }

    pub(crate) fn absorb(&mut self, other: &Tally) {
        for (all, n) in self.0.iter_mut().zip(other.0) {
            *all += n;
        }
    }

    fn sets(&self) -> impl Iterator<Item = (Lack, u64)> {
        self.0.iter().enumerate().map(|(set, &n)| (Lack(set as u8), n))
    }

    /// Whether some event has all columns that it `needs`.
    pub(crate) fn any_without(&self, needs: Lack) -> bool {
        self.sets().any(|(lack, n)| n > 0 && !lack.meets(needs))
    }

    /// Count the events that lack something they need, under each thing they lack.
    ///
    /// A thread without id is nothing unusual: perf prints -1 for one that has just ended. Only if
    /// no event of a name has one is the column missing.
    pub(crate) fn report(&self, needs: Lack, quality: &mut Quality) {
        const CODES: [(Lack, QualityCode); 3] = [
            (Lack::CPU, QualityCode::NoCpu),
            (Lack::THREAD, QualityCode::NoThread),
            (Lack::FIELDS, QualityCode::NoFields),
        ];
        for (what, code) in CODES.into_iter().filter(|c| c.0.meets(needs)) {
            if what == Lack::THREAD && self.any_without(what) {
                continue;
            }
            let n = self.sets().filter(|(lack, _)| lack.meets(what)).map(|(_, n)| n).sum();
            quality.add(code, n);
        }
    }
}
