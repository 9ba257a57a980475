//! The fallback for text in no order at all: the place of every line, sorted by time.
//!
//! Ascents are merged; when there are thousands of them and each has but a few lines, as in a
//! dump sorted by anything but time, that costs more than sorting. Sixteen bytes per event then.

use crate::index::Index;
use crate::line::{Syntax, parse};
use crate::lines::lines;
use holdup_trace::Nanos;

/// From this many ascents on …
const MANY: usize = 4096;
/// … with fewer events each than this, sorting is better than merging.
const SHORT: u64 = 64;

/// A step back in time for so many events is too much for what perf has sorted.
const DIFFERENCES: u64 = 16;

/// Events per run of a sorted order.
pub(crate) const RUN: usize = 1 << 16;

/// Time and place of an event line.
pub(crate) type Place = (Nanos, usize);

/// Whether the ascents are too many to be merged.
pub(crate) fn is_needed(index: &Index) -> bool {
    let n = index.ascents.len();
    n > MANY && index.ascents.iter().map(|s| s.events).sum::<u64>() / (n as u64) < SHORT
}

/// Whether what stands where the time should are the differences between the events: it begins
/// with 0 and falls again and again, which no text of perf script does otherwise, for perf sorts.
pub(crate) fn is_of_differences(index: &Index) -> bool {
    index.falls > 1
        && index.falls * DIFFERENCES > index.events
        && index.ascents.first().is_some_and(|first| first.first == 0)
}

/// The places of all events, by time and then by place. Also tells how many were out of order.
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
