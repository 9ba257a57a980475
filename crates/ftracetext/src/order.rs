//! The fallback for text in no order at all: the offset of every line, sorted by time.
//!
//! Usually ascents are merged. If there are thousands of them with only a few lines each, as in a
//! dump sorted by anything but time, sorting is cheaper; it takes sixteen bytes per event.

use crate::index::Index;
use crate::line::{Syntax, parse};
use crate::lines::lines;
use holdup_trace::Nanos;

/// From this many ascents on …
const MANY: usize = 4096;
/// … with fewer events each than this, sorting is better than merging.
const SHORT: u64 = 64;

/// More than one step back in time per this many events cannot come from perf's sorted output.
const DIFFERENCES: u64 = 16;

/// Events per run of a sorted order.
pub(crate) const RUN: usize = 1 << 16;

/// Time and offset of an event line.
pub(crate) type Place = (Nanos, usize);

/// Whether the ascents are too many to be merged.
pub(crate) fn is_needed(index: &Index) -> bool {
    let n = index.ascents.len();
    n > MANY && index.ascents.iter().map(|s| s.events).sum::<u64>() / (n as u64) < SHORT
}

/// Whether the time column holds the differences between events: it begins with 0 and falls again
/// and again. perf script sorts its events, so its text never does that otherwise.
pub(crate) fn is_of_differences(index: &Index) -> bool {
    index.falls > 1
        && index.falls * DIFFERENCES > index.events
        && index.ascents.first().is_some_and(|first| first.first == 0)
}

/// The offsets of all events, sorted by time and then by offset. Also returns how many were out of
/// order.
pub(crate) fn sort(text: &[u8], syntax: Syntax) -> (Vec<Place>, u64) {
    let mut places: Vec<Place> = Vec::new();
    let mut late = 0;
    lines(text, 0..text.len(), |at, line| {
        if let Some(l) = parse(syntax, line) {
            late += u64::from(places.last().is_some_and(|p| p.0 > l.stamp.ts));
            places.push((l.stamp.ts, at));
        }
    });
    places.sort_unstable();
    (places, late)
}
