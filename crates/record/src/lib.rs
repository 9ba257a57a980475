//! Records what a Linux system does into standard perf.data files, without perf.
//!
//! ```text
//!  choice ──► session ──► collect ──► file
//!  which      events open,  rings emptied   perf.data, whole
//!  events     a ring a CPU  as they fill    after every round
//!                └──────► flight ─────►  the same, when something has happened
//! ```
//!
//! [`recorder::Recorder`] connects the stages, [`course`] says when a recording ends, [`child`] is
//! the recorded command.
//!
//! # Why no crate for perf events
//!
//! The system call and its numbers come from `perf-event-open-sys`; rings and events are our own.
//! The crates above it do not fit a recorder, which has 160 events of a CPU write into one ring,
//! and copies the ring to a file unparsed:
//!
//! * `perf-event` 0.4.9 counts, but has no rings.
//! * `perf-event2` 0.7.4 has a ring for each event, hands records out one by one, and looks for
//!   tracepoints in debugfs only.
//! * `perf-event-open` 0.7.0 also has a ring for each event and hands records out one by one. It
//!   hides the attributes, which must be stored in the file. Its bindings are made at build time,
//!   for the kernel that a cargo feature names.

mod attr;
pub mod child;
pub mod choice;
pub mod closing;
pub mod collect;
pub mod counter;
pub mod counters;
pub mod course;
pub mod descriptors;
pub mod file;
pub mod flight;
mod groups;
mod lock_wait;
mod open_files;
mod pmu;
mod poll;
pub mod probe;
pub mod recorder;
pub mod ring;
pub mod rotation;
pub mod runtimes;
pub mod session;
pub mod signals;
pub mod sys;
pub mod trigger;
mod urgent;
pub mod usage;
pub mod user;
