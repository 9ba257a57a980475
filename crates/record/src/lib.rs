//! Records what a Linux system does into standard perf.data files, without perf.

pub mod choice;
pub mod file;
pub mod probe;
pub mod ring;
pub mod sys;
