//! Records what a Linux system does into standard perf.data files, without perf.

pub mod file;
pub mod sys;

pub use holdup_host::tracefs;
