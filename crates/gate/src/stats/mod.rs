//! The statistics of a gate that judges few and noisy runs: pure functions of `&[f64]`.
//!
//! Values are figures of runs, one per run: finite, of any unit, and below 1e150, so that no sum of
//! squares overflows. Then no function returns NaN or an infinity. What cannot be computed from the
//! values is `None`, never a made-up number. Nothing depends on the order of runs, except for pairs
//! and series. The same input always gives the same bytes: random numbers come from [`generator`],
//! which starts at a constant.
//!
//! All tests are one-sided and ask whether the second sample is the *larger*. If larger is better,
//! swap the samples.

pub mod autocorrelation;
pub mod bootstrap;
pub mod discovery;
pub mod distributions;
pub mod generator;
pub mod pairs;
pub mod power;
pub mod ranks;
pub mod spread;
