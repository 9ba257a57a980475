//! The statistics of a gate that judges few and noisy runs: pure functions of `&[f64]`.
//!
//! Values are figures of runs, one a run: finite, of any unit, and below 1e150, so that no sum of
//! squares overflows. Then no function returns NaN or an infinity. What cannot be computed from
//! the values given is `None`, never a made-up number. Nothing depends on the order of runs, except
//! where pairs or a series are meant. The same input gives the same bytes on every call: what needs
//! chance draws it from [`generator`], which starts at a constant.
//!
//! All tests are one-sided and ask whether the second sample is the *larger*. Where a larger value
//! is the better one, swap the samples.

pub mod autocorrelation;
pub mod bootstrap;
pub mod discovery;
pub mod distributions;
pub mod generator;
pub mod pairs;
pub mod power;
pub mod ranks;
pub mod spread;
