//! Records what a Linux system does into standard perf.data files, without perf.

pub mod file;
pub mod sys;
pub mod tracefs;
