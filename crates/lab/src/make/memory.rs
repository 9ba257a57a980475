//! CPUs slowed down by memory: streams, and words that share a cache line.

use super::culprit;
use crate::site::{Error, Made, Site, Worker};
use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Each thread streams through arrays of its own.
pub(crate) fn bandwidth(site: &Site) -> Result<Made, Error> {
    // Three arrays of f64; a unit is a megabyte of each, however large they are.
    const UNIT: usize = (1 << 20) / 8;
    let elements = usize::try_from(site.get("size") / 24).unwrap_or(0).clamp(1024, 1 << 30);
    let worker = |i: usize| {
        // Write them before the run begins, so that the pages exist.
        let (mut a, b, c) = (vec![0.5; elements], vec![1.0; elements], vec![2.0; elements]);
        Worker::new(format!("stream-{i}"), move |clock, tally| {
            let mut at = 0;
            while !clock.over() {
                let mut left = UNIT;
                while left > 0 {
                    let end = (at + left).min(elements);
                    let sources = b[at..end].iter().zip(&c[at..end]);
                    for (to, (b, c)) in a[at..end].iter_mut().zip(sources) {
                        *to = b + 3.0 * c;
                    }
                    left -= end - at;
                    at = if end == elements { 0 } else { end };
                }
                black_box(&mut a);
                tally.units += 1;
            }
            Ok(())
        })
    };
    Ok(Made::threads((0..site.workers()).map(worker).collect(), vec![culprit(&["stream-"])]))
}

/// Adjacent words.
#[repr(align(128))]
#[derive(Default)]
struct Lines([AtomicU64; 16]);

/// Each thread counts in a word of its own.
pub(crate) fn false_sharing(site: &Site) -> Result<Made, Error> {
    const UNIT: u64 = 10_000;
    let n = site.workers();
    let apart = site.get("apart") > 0;
    let lines: Arc<Vec<Lines>> = Arc::new((0..n).map(|_| Lines::default()).collect());
    let worker = |i: usize| {
        let lines = lines.clone();
        Worker::new(format!("sharing-{i}"), move |clock, tally| {
            // Eight words of 8 bytes are a line of 64 bytes.
            let word = if apart { &lines[i].0[0] } else { &lines[i / 8].0[i % 8] };
            while !clock.over() {
                for _ in 0..UNIT {
                    word.fetch_add(1, Ordering::Relaxed);
                }
                tally.units += 1;
            }
            Ok(())
        })
    };
    Ok(Made::threads((0..n).map(worker).collect(), vec![culprit(&["sharing-"])]))
}
