//! Facts and tables of a trace as files for other tools.
//!
//! ```text
//!  Analysis ─┬─► made, the tables ──┬──────────► lami ──► DIR/results.json, for Trace Compass
//!  (1st      │   of the verbs       ├► sinks ──► DIR/TABLE.parquet, .arrow, .csv, .ndjson
//!  reading)  └─► explain ──► rows ──┘
//!                   ▲  └───► spill ──► chrome ──► FILE.json, for the Perfetto UI
//!  2nd reading ─────┘ facts
//! ```
//!
//! `column` describes tables, `facts` declares those of single facts, `made` takes the verbs'
//! tables from the renderer. `digest` has the summary rows of a trace, for files about many traces.
//! Rows are written in parts: memory grows with threads and objects, not with events. A file gets
//! its name only when it is complete (`part`).

mod arrow;
mod chrome;
mod column;
mod digest;
mod error;
mod explain;
mod facts;
mod judgement;
mod lami;
mod made;
mod part;
mod rows;
mod sinks;
mod spill;
mod tables;

pub use chrome::chrome;
pub use column::{Column, TableDef, Type};
pub use digest::{DIGEST, Digest, TableFile, digest, fits};
pub use error::ExportError;
pub use lami::{lami, lami_metadata};
pub use made::{MADE, Made, PATH, Source};
pub use sinks::{ROW_GROUP, TableFormat};
pub use tables::{Choice, TABLES_VERSION, definitions, tables};

/// The table with a row for the trace itself.
pub const TRACE: &str = "trace";

use holdup_attribution::Attribution;
use holdup_diagnose::{Diagnosis, PhaseRow};
use holdup_trace::{QualityEntry, Reader, TraceInfo};

/// What is exported.
pub struct Request<'a> {
    /// Reads the trace once more.
    pub reader: &'a dyn Reader,
    /// The trace's description.
    pub info: &'a TraceInfo,
    /// The analysis of the requested part, judged.
    pub judged: &'a Attribution<'a>,
    /// The verdict.
    pub diagnosis: &'a Diagnosis,
    /// The phases, at least one.
    pub phases: &'a [PhaseRow],
    /// Defects of the trace.
    pub quality: &'a [QualityEntry],
    /// Size of the file; `None` for a stream.
    pub bytes: Option<u64>,
    /// For a table: the events that it needs, if the trace lacks them.
    pub missing: &'a dyn Fn(&str) -> Option<&'static str>,
}

impl Request<'_> {
    /// Name of the file, without its folder.
    fn file_name(&self) -> String {
        let name = self.info.path.file_name().unwrap_or(self.info.path.as_os_str());
        name.to_string_lossy().into_owned()
    }
}
