//! The types that all other crates share.
//!
//! A trace file, whatever its format, is opened by a [`Reader`]. The reader knows what the file
//! is ([`TraceInfo`]) and cuts it into [`Run`]s: parts whose events are already in time
//! order (one CPU's ring buffer, one flush of it, a sorted piece of text). [`merge::drive`]
//! decodes runs on worker threads into [`Batch`]es and hands the events to a sink in one global
//! order: by time, and by position in the file where times are equal.
//!
//! ```text
//!  Reader ─ runs ─► RunDecoder::fill ─► Batch ─► merge::drive ─► Sink::events(&[Event], &Batch)
//! ```
//!
//! Nothing in this crate knows a file format, and nothing in it prints.

mod batch;
mod calls;
mod cut;
mod descriptors;
mod error;
mod event;
mod glance;
mod groups;
mod info;
mod kernel;
mod kind;
mod lttng;
mod mapping;
pub mod merge;
mod names;
pub mod progress;
mod quality;
mod reader;
mod recorded;
mod refs;
mod runtime;
mod shell;
mod spins;
mod state;
mod state_table;
mod switches;
mod symbols;

pub use batch::{Batch, Frame, FrameName, Reading};
pub use calls::Calls;
pub use cut::Cut;
pub use descriptors::{DescriptorKind, Descriptors, Seen};
pub use error::{ErrorKind, ReadError, Result};
pub use event::{Cpu, Event, EventId, Nanos, Pid, StatKind, Tid, What, in_irq};
pub use glance::Glance;
pub use groups::{Container, GroupLimit, GroupName, Groups};
pub use info::{Clock, EventDesc, Presence, Task, TraceInfo, is_recorder, kernel_version, union};
pub use kernel::{is_kernel_thread, kernel_thread};
pub use kind::{Capabilities, EventKind, softirq_name};
pub use mapping::{BuildId, Built, Mapping};
pub use names::{LocalNames, NameId, Names, fits};
pub use quality::{Quality, QualityCode, QualityEntry, Severity};
pub use reader::{Opened, Reader, Run, RunDecoder, Sieve};
pub use recorded::{Extras, Recorded};
pub use refs::{ArgsRef, MappingRef, ReadingsRef, StackRef};
pub use runtime::{GO_FUNCTIONS, JAVA_FUNCTIONS, Parked, Runtime, Runtimes};
pub use shell::shell_word;
pub use spins::{Sampled, Spin, Spins, Spot};
pub use state::TaskState;
pub use state_table::StateTable;
pub use switches::Switches;
pub use symbols::{KallsymsLine, SymbolTable, hex};
