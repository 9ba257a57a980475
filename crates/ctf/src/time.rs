//! From a clock's steps to nanoseconds.

use crate::parse::ClockDecl;
use holdup_trace::Nanos;

/// How one clock becomes nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct TimeMap {
    /// Steps per second.
    freq: u64,
    /// Nanoseconds at the clock's 0.
    start: i128,
}

const SECOND: u64 = 1_000_000_000;

impl TimeMap {
    /// For a trace without a clock: a step counts as a nanosecond.
    pub(crate) const STEPS: TimeMap = TimeMap { freq: SECOND, start: 0 };

    /// Map to nanoseconds since the clock's own 0, or since 1970.
    pub(crate) fn of(clock: &ClockDecl, since_1970: bool) -> TimeMap {
        let freq = clock.freq.max(1);
        let start = if since_1970 { offset(clock) } else { 0 };
        TimeMap { freq, start }
    }

    /// The time of a value of the clock; clamped to the range.
    #[inline(always)]
    pub(crate) fn nanos(&self, value: u64) -> Nanos {
        if self.freq == SECOND && self.start == 0 { value } else { self.convert(value) }
    }

    fn convert(&self, value: u64) -> Nanos {
        let ns = i128::from(value) * i128::from(SECOND) / i128::from(self.freq) + self.start;
        u64::try_from(ns.max(0)).unwrap_or(u64::MAX)
    }
}

/// Nanoseconds from 1970 to the clock's 0.
pub(crate) fn offset(clock: &ClockDecl) -> i128 {
    let steps = i128::from(clock.offset) * i128::from(SECOND) / i128::from(clock.freq.max(1));
    i128::from(clock.offset_s) * i128::from(SECOND) + steps
}

/// Complete a clock value of which only the lowest `bits` were recorded: the first one not before
/// `last`.
#[inline(always)]
pub(crate) fn widen(last: u64, low: u64, bits: u8) -> u64 {
    if bits >= 64 {
        return low;
    }
    let step = 1u64 << bits;
    let value = last & !(step - 1) | low;
    if value < last { value.wrapping_add(step) } else { value }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn narrow_times_go_on_where_the_last_one_was() {
        let last = (5 << 27) + 100;
        assert_eq!(widen(last, 100, 27), last);
        assert_eq!(widen(last, 101, 27), last + 1);
        assert_eq!(widen(last, 99, 27), (6 << 27) + 99, "once around");
        assert_eq!(widen(last, 7, 64), 7);
    }

    #[test]
    fn clocks_of_any_rate_and_start() {
        let clock = ClockDecl {
            name: "c".into(),
            uuid: None,
            freq: 3_000_000_000,
            offset_s: 10,
            offset: 3,
        };
        assert_eq!(TimeMap::of(&clock, false).nanos(3_000_000_001), 1_000_000_000);
        assert_eq!(TimeMap::of(&clock, true).nanos(6), 10_000_000_003);
        let early = ClockDecl { offset_s: -1, ..clock };
        assert_eq!(TimeMap::of(&early, true).nanos(0), 0, "before 1970 is nothing");
    }
}
