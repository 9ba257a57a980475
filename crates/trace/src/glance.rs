//! What a file says about itself before it is read as a whole.

use crate::{Capabilities, Quality, TraceInfo};

/// What the tables of a file and samples of its content tell, without a pass over all of it.
///
/// The tables of a recording promise more than it holds: an event that the recorder was asked for
/// may never have occurred. So seen events and merely listed events are kept apart.
pub struct Glance {
    /// Same as for an opened trace, with three differences. `capabilities` are those of events seen
    /// in the samples. `span` is there only if the file states it or both ends of every part of the
    /// file were read. `extra` has nothing that would need a count.
    pub info: TraceInfo,
    /// Damage in the tables. Losses are not included, because counting them needs the whole file.
    pub quality: Quality,
    /// What the events on the recorder's list would let the trace prove; `None` if the file has no
    /// list of what was recorded.
    pub listed: Option<Capabilities>,
    /// Whether `info.events` has every kind of event of the file, or only those of the samples.
    pub all_kinds: bool,
    /// Whether `info.tasks` has every thread that the file names at its start.
    pub all_tasks: bool,
    /// Events of the whole file if they are as dense as in the samples: an estimate.
    pub estimated_events: Option<u64>,
    /// Bytes of the file.
    pub size: u64,
    /// Bytes of the samples.
    pub looked_at: u64,
}

impl Glance {
    /// The estimated number of events of a file with `size` bytes of events, of which `looked_at`
    /// bytes held `events`, to two digits: more would look like a count.
    pub fn estimate(events: u64, looked_at: u64, size: u64) -> Option<u64> {
        if events == 0 || looked_at == 0 {
            return None;
        }
        let whole = u128::from(events) * u128::from(size) / u128::from(looked_at);
        let whole = u64::try_from(whole).ok()?;
        let step = 10u64.pow(whole.max(1).ilog10().saturating_sub(1));
        Some(whole.saturating_add(step / 2) / step * step)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn estimates_have_two_digits_and_need_a_sample() {
        assert_eq!(Glance::estimate(1_234, 10, 1_000), Some(120_000));
        assert_eq!(Glance::estimate(7, 10, 10), Some(7));
        assert_eq!(Glance::estimate(0, 10, 10), None);
        assert_eq!(Glance::estimate(1, 0, 10), None);
        assert_eq!(Glance::estimate(u64::MAX, 1, u64::MAX), None);
        assert!(Glance::estimate(u64::MAX, 1, 1).is_some());
    }
}
