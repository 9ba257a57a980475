//! Figures computed from counts of any source.

use crate::meaning::{Counter, LINE};

/// Memory traffic per second.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bandwidth {
    /// Bytes per second.
    pub bytes_per_s: f64,
    /// Computed from misses of the last cache, 64 bytes each, not counted by memory controllers.
    pub estimated: bool,
}

/// Counts of one period of time and one mode.
pub trait Tally {
    /// The count, or number of bytes; `None` if it was not counted.
    fn total(&self, counter: Counter) -> Option<f64>;

    /// Cycles per instruction.
    fn cycles_per_instruction(&self) -> Option<f64> {
        let instructions = self.total(Counter::Instructions).filter(|&n| n > 0.0)?;
        Some(self.total(Counter::Cycles).filter(|&n| n > 0.0)? / instructions)
    }

    /// Per cent of cycles, or of pipeline slots, in which execution waited.
    fn stalled_pct(&self) -> Option<f64> {
        let share = |part, whole| {
            let whole = self.total(whole).filter(|&n| n > 0.0)?;
            Some((self.total(part)? * 100.0 / whole).min(100.0))
        };
        share(Counter::StalledSlots, Counter::Slots)
            .or_else(|| share(Counter::Stalled, Counter::Cycles))
    }

    /// Misses of the last-level cache: all misses, else only those of loads.
    fn misses(&self) -> Option<f64> {
        self.total(Counter::CacheMisses).or_else(|| self.total(Counter::LlcMisses))
    }

    /// Misses of the last-level cache per thousand instructions.
    fn misses_per_1000(&self) -> Option<f64> {
        let instructions = self.total(Counter::Instructions).filter(|&n| n > 0.0)?;
        Some(self.misses()? * 1000.0 / instructions)
    }

    /// Memory traffic per second over `ns` nanoseconds: counted by the memory controllers, else
    /// estimated from misses of the last-level cache.
    fn bandwidth(&self, ns: u64) -> Option<Bandwidth> {
        let seconds = Some(ns).filter(|&ns| ns > 0)? as f64 / 1e9;
        let sides = [Counter::MemoryRead, Counter::MemoryWritten];
        let counted = sides.iter().filter_map(|&side| self.total(side)).reduce(|a, b| a + b);
        let (bytes, estimated) = match counted {
            Some(bytes) => (bytes, false),
            None => (self.misses()? * LINE, true),
        };
        Some(Bandwidth { bytes_per_s: bytes / seconds, estimated })
    }
}
