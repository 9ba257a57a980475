//! Reads perf.data, the file of `perf record`.
//!
//! ```text
//!  open      header, attrs, features ──► Schema: from a record to its event, its time, its plan
//!  index     all record headers, in parallel ──► runs in time order, span, census
//!  decode    one run ──► events
//! ```
//!
//! A perf.data is a concatenation of ring-buffer flushes: each CPU's records are in time order,
//! the file as a whole is not. The index cuts it into runs, stretches that do not step back in
//! time; a merge of the runs is a stable sort of the file by time and needs no bookkeeping of
//! perf's rounds. Flushes too short to be worth a run of their own are put together and sorted
//! in memory.
//!
//! Read are file mode and pipe mode, zstd-compressed data, both byte orders and every size of
//! `perf_event_attr`. The sources for the format are the kernel's
//! `tools/perf/Documentation/perf.data-file-format.txt` and `include/uapi/linux/perf_event.h`.

mod attr;
mod compressed;
mod cursor;
mod decode;
mod describe;
mod features;
mod header;
mod index;
mod layout;
mod open;
mod reader;
mod record;
mod run;
mod schema;
mod source;
mod tracing_data;
mod walk;
mod window;

pub use header::sniff;
pub use open::{open, open_stream};
pub use reader::PerfData;
