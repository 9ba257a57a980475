//! Facts and tables of a trace as files that others read.
//!
//! ```text
//!  Analysis ─┬─► made, the tables ──┬──────────► lami ──► DIR/results.json, for Trace Compass
//!  (1st      │   of the verbs       ├► sinks ──► DIR/TABLE.parquet, .arrow, .csv, .ndjson
//!  reading)  └─► explain ──► rows ──┘
//!                   ▲  └───► spill ──► chrome ──► FILE.json, for the Perfetto UI
//!  2nd reading ─────┘ facts
//! ```
//!
//! `column` describes tables, `facts` declares those of single facts, `made` takes those of
//! the verbs from the renderer. `digest` holds the rows that sum a trace up, for files about many
//! traces. Rows are written in parts: memory grows with threads and objects,
//! not with events. A file has its name only when it is whole (`part`).

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
    /// To read the trace once more.
    pub reader: &'a dyn Reader,
    /// What the file is.
    pub info: &'a TraceInfo,
    /// What was measured in all that was asked for, and judged.
    pub judged: &'a Attribution<'a>,
    /// The verdict.
    pub diagnosis: &'a Diagnosis,
    /// The phases, at least one.
    pub phases: &'a [PhaseRow],
    /// What is wrong with the trace.
    pub quality: &'a [QualityEntry],
    /// Size of the file, if it is one.
    pub bytes: Option<u64>,
    /// The events without which a table stays empty, if the trace lacks them.
    pub missing: &'a dyn Fn(&str) -> Option<&'static str>,
}

impl Request<'_> {
    /// Name of the file, without its folder.
    fn file_name(&self) -> String {
        let name = self.info.path.file_name().unwrap_or(self.info.path.as_os_str());
        name.to_string_lossy().into_owned()
    }
}
