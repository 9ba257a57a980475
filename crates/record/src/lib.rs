//! Records what a Linux system does into standard perf.data files, without perf.

mod attr;
pub mod child;
pub mod choice;
pub mod closing;
pub mod collect;
pub mod counters;
pub mod course;
pub mod file;
pub mod flight;
mod lock_wait;
mod open_files;
mod poll;
pub mod probe;
pub mod recorder;
pub mod ring;
pub mod session;
pub mod signals;
pub mod sys;
pub mod trigger;
pub mod usage;
