//! Writing perf.data: what `perf record` writes, without perf.
//!
//! ```no_run
//! use holdup_record::file::{Description, Running, Symbols, Target, TracingData, Writer};
//! use std::path::Path;
//!
//! let (proc, tracefs) = (Path::new("/proc"), holdup_host::tracefs::Tracefs::find()?);
//! let description = Description {
//!     events: vec![/* one for each event that was opened */],
//!     command: std::env::args().collect(),
//!     clock: None,
//!     tracing: TracingData::read(tracefs.root(), ["sched:sched_switch"])?,
//!     runtimes: Default::default(),
//!     symbols: Symbols::read(&proc.join("kallsyms")),
//!     running: Running::read(proc, Target::Machine, false),
//!     compression: None,
//! };
//! let mut out = Writer::create(Path::new("perf.data"), &description)?;
//! out.data(b"whole records of one ring,", b"and how they go on at its start")?;
//! out.round()?; // all rings were looked at
//! let written = out.finish()?;
//! println!("{} events, {} lost", written.tally.samples, written.tally.lost);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # A file that can be read at any time
//!
//! perf knows the size of its data and the place of its feature sections only when it ends. If perf
//! is killed, the file lacks the names of its events. Here everything that is known at the start
//! comes before the data, and every round leaves a complete file:
//!
//! ```text
//!  header attrs ids │ sections │ records … FINISHED_ROUND │ records … FINISHED_ROUND
//!    │                                                         │ = table of sections
//!    └ size of the data: up to here ───────────────────────────┘
//! ```
//!
//! Readers look for the table of feature sections after the data. Here a FINISHED_ROUND record is
//! this table: its body has the entries, and the record's own header is the entry of feature 0,
//! which perf reserves and skips. The next round makes it an ordinary record within the data. So if
//! the recorder is killed, perf reads the file up to the last round, and holdup up to its last
//! whole record.
//!
//! A pipe has no such problem: everything in it is a record.

mod build_ids;
mod bytes;
mod compress;
pub(crate) mod host;
mod joined;
mod pipe;
mod running;
mod sampled;
mod sections;
mod symbols;
mod tally;
mod tracing_data;
mod writer;

pub use running::{Running, Target};
pub use symbols::Symbols;
pub use tally::Tally;
pub use tracing_data::TracingData;
pub use writer::{Name, Writer, Written};

use holdup_trace::Runtimes;
use std::io;
use std::path::PathBuf;

/// Everything about a recording that is known before the first event.
#[derive(Clone, Debug)]
pub struct Description {
    /// The events as they were opened. perf assigns records without an id to the first one.
    pub events: Vec<Event>,
    /// The command line of the recorder, word by word, its own name first.
    pub command: Vec<String>,
    /// The clock of the events' times, if it was chosen (`use_clockid`).
    pub clock: Option<Clock>,
    /// The formats of the tracepoints among the events.
    pub tracing: TracingData,
    /// What is known about the runtimes with recorded events.
    pub runtimes: Runtimes,
    /// The kernel's symbols.
    pub symbols: Symbols,
    /// What runs already.
    pub running: Running,
    /// Level of zstd for compressing the data.
    pub compression: Option<i32>,
}

/// One opened event, on any number of CPUs.
#[derive(Clone, Debug)]
pub struct Event {
    name: String,
    attr: Vec<u8>,
    ids: Vec<u64>,
}

impl Event {
    /// An event: perf's name for it (`sched:sched_switch`, `cycles`), the `struct perf_event_attr`
    /// given to the kernel, and the kernel's ids of it, one for each CPU or thread
    /// (`PERF_EVENT_IOC_ID`).
    ///
    /// perf rejects a file with attrs that are longer than it knows. So the last fields of newer
    /// kernels are not stored if they are 0.
    pub fn new(name: impl Into<String>, attr: &[u8], ids: Vec<u64>) -> Event {
        let mut attr = attr.to_vec();
        if attr.get(PERF_6_1..).is_some_and(|tail| tail.iter().all(|&b| b == 0)) {
            attr.truncate(PERF_6_1);
            attr[4..8].copy_from_slice(&(PERF_6_1 as u32).to_ne_bytes());
        }
        Event { name: name.into(), attr, ids }
    }

    /// The attr's `sample_type`; `None` if it is too short to have one.
    fn sample_type(&self) -> Option<u64> {
        self.attr.get(24..)?.first_chunk().map(|word| u64::from_ne_bytes(*word))
    }
}

/// Size of the attr in perf 6.1: `PERF_ATTR_SIZE_VER7`.
const PERF_6_1: usize = 128;

/// A clock, and how it relates to wall-clock time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clock {
    /// The kernel's number of it (`CLOCK_MONOTONIC` is 1).
    pub id: u32,
    /// Its resolution in nanoseconds.
    pub resolution: u64,
    /// Nanoseconds since 1970; [`Clock::time`] is the clock's time at the same moment.
    pub wall: u64,
    /// See [`Clock::wall`].
    pub time: u64,
}

/// Why a recording cannot be described or written.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Something that must be in the file cannot be read.
    #[error("{}: cannot be read: {why}", path.display())]
    Unreadable {
        /// What cannot be read.
        path: PathBuf,
        /// The error.
        why: io::Error,
    },
    /// The file cannot be created.
    #[error("{}: cannot be written: {why}", path.display())]
    Uncreated {
        /// The file.
        path: PathBuf,
        /// The error.
        why: io::Error,
    },
    /// The output is not a regular file, and could not be fixed later.
    #[error("{}: is not a regular file; to send a recording there: -o - > FILE", path.display())]
    NoFile {
        /// What it is.
        path: PathBuf,
    },
    /// Writing failed in the middle of the recording.
    #[error("{}: {why}; the file contains what was written before the error", path.display())]
    Stopped {
        /// The file, which consists of whole rounds.
        path: PathBuf,
        /// The error.
        why: io::Error,
    },
    /// The reader of the pipe closed it, or it cannot be written to for another reason.
    #[error("the output cannot be written: {0}")]
    Pipe(io::Error),
    /// The events cannot be put into one file.
    #[error("an event has {found} bytes of attributes, but the first event has {expected}")]
    Attributes {
        /// Bytes of the first event's attr.
        expected: usize,
        /// Bytes of the attr that differs.
        found: usize,
    },
}

/// What a recording is written to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// A file, whose sections are found by a table.
    File,
    /// A stream, in which everything is a record.
    Pipe,
}
