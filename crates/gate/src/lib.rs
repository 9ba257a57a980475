//! Comparing recordings for CI jobs.
//!
//! ```text
//!  trace ──► Run ──► Baseline        figures of recordings, kept in a file
//!             │         │
//!             └──► values of a metric ──► statistics ──► policy ──► pass, regressed, inconclusive
//! ```
//!
//! * [`metric`]: the names of figures and metrics;
//! * [`run`]: what one recording measured;
//! * [`baseline`]: the file that stores runs;
//! * [`policy`]: when a gate fails;
//! * [`judge`]: one metric of two sides; [`verdict`]: all of them, and the outcome;
//! * [`diff`]: every figure of two sides; [`why`]: those that explain a regression;
//! * [`scale`]: the same work on more and more CPUs; [`rounds`]: makes it comparable by a gate;
//! * [`stats`]: tests, intervals and power: pure functions of numbers.

pub mod baseline;
pub mod change_points;
pub mod diff;
mod figures;
pub mod history;
pub mod judge;
pub mod metric;
mod objects;
pub mod policy;
mod redact;
pub mod rounds;
pub mod run;
pub mod sample;
pub mod scale;
pub mod self_test;
pub mod setting;
pub mod stats;
pub mod verdict;
pub mod why;
pub mod work;

pub use baseline::{Baseline, BaselineError};
pub use figures::{Figures, role_of};
pub use metric::{Figure, Metric};
pub use objects::Object;
pub use run::Run;
pub use work::Work;
