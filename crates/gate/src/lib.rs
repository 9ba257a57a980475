//! Compares runs of a workload with runs of a baseline, and says whether it became slower.

pub mod change_points;
pub mod stats;
