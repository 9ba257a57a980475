//! What is known of one trace: a line of JSON.

use crate::identity::Stamp;
use holdup_export::Digest;
use serde::{Deserialize, Serialize};

/// A trace and the rows it is summed up in.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// Which trace, and what came of it.
    pub head: Head,
    /// Its rows by table; none where it was not judged.
    pub rows: Digest,
}

/// Which trace, and what came of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Head {
    /// [`crate::Settings::key`] of who made it.
    pub made_by: String,
    /// [`crate::content`] of the trace; null where it could not be read to its end.
    pub hash: Option<String>,
    /// Where it lay, as it was named.
    pub path: String,
    /// Its size.
    pub bytes: u64,
    /// When it was written, ns since 1970.
    pub mtime_ns: i64,
    /// When anything of it was changed, ns since 1970.
    pub ctime_ns: i64,
    /// How long it took to judge it.
    pub seconds: f64,
    /// What came of it.
    pub result: Verdict,
}

/// What came of a trace.
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
        /// Why.
        error: String,
    },
    /// It is not a trace.
    NoTrace {
        /// What it is.
        what: String,
    },
}

impl Head {
    /// What the file system said when it was judged.
    pub fn stamp(&self) -> Stamp {
        Stamp { bytes: self.bytes, mtime_ns: self.mtime_ns, ctime_ns: self.ctime_ns }
    }
}
