//! The result for one trace: a line of JSON.

use crate::identity::Stamp;
use holdup_export::Digest;
use serde::{Deserialize, Serialize};

/// A trace and its summary rows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// The trace and its result.
    pub head: Head,
    /// Its rows by table; none if it was not judged.
    pub rows: Digest,
}

/// A trace and its result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Head {
    /// The [`crate::Settings::key`] that it was made with.
    pub made_by: String,
    /// The trace's [`crate::content`]; null if it could not be read to its end.
    pub hash: Option<String>,
    /// Its path, as it was named.
    pub path: String,
    /// Its size.
    pub bytes: u64,
    /// Modification time, ns since 1970.
    pub mtime_ns: i64,
    /// Change time (ctime), ns since 1970.
    pub ctime_ns: i64,
    /// How long it took to judge it.
    pub seconds: f64,
    /// The result.
    pub result: Verdict,
}

/// The result for a trace.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// It was judged.
    Judged {
        /// The class of the verdict.
        class: String,
        /// When it was recorded by the wall clock, ns since 1970, if the file says so.
        recorded_ns: Option<u64>,
        /// Name of the recorded host, if the file says.
        host: Option<String>,
    },
    /// It could not be read.
    Failed {
        /// The reason.
        error: String,
    },
    /// It is not a trace.
    NoTrace {
        /// What it is instead.
        what: String,
    },
}

impl Head {
    /// The file's stamp when it was judged.
    pub fn stamp(&self) -> Stamp {
        Stamp { bytes: self.bytes, mtime_ns: self.mtime_ns, ctime_ns: self.ctime_ns }
    }
}
