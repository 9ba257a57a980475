//! Reads perf.data, the file of `perf record`.
//!
//! ```
//! use holdup_perfdata::open;
//! use holdup_trace::{Reader, What, merge};
//! use std::path::Path;
//!
//! let file = open(Path::new("../../fixtures/imb_server_c4/perf.data"))?;
//! assert_eq!(file.info().cpus_online, Some(4));
//!
//! let mut switches = 0;
//! for event in merge::events(&file) {
//!     if let What::Switch { .. } = event?.what {
//!         switches += 1;
//!     }
//! }
//! println!("{switches} context switches");
//! # assert!(switches > 1000);
//! # Ok::<(), holdup_trace::ReadError>(())
//! ```
//! [`holdup_trace::merge::drive`] decodes the same events on several threads.
//! [`holdup_trace::Reader::quality`] says in which respects a file cannot be trusted.
//!
//! The cargo feature `zstd`, on by default, reads what `perf record -z` wrote.
//!
//! # How it works
//!
//! ```text
//!  open      header, attrs, features ──► Schema: from a record to its event, its time, its plan
//!  index     all record headers, in parallel ──► runs in time order, span, census
//!  decode    one run ──► events
//! ```
//!
//! A perf.data is a concatenation of ring-buffer flushes: each CPU's records are in time order, the
//! file as a whole is not. The index cuts it into runs, which do not step back in time; a merge of
//! the runs is a stable sort of the file by time and needs no bookkeeping of perf's rounds. Flushes
//! too short to be worth a run of their own are joined and sorted in memory.
//!
//! Supported are file mode and pipe mode, zstd-compressed data, directories of
//! `perf record --threads`, both byte orders and every size of `perf_event_attr`. A recording that
//! was killed is read too; if perf made it, the formats are missing: perf writes those last.
//!
//! perf turns a sample of a group (`-e '{a,b}:S'`) into one for each member whose counter moved,
//! from the difference to the sample before. Here it is one sample of the leader, preceded by the
//! members' values ([`holdup_trace::What::Readings`]): a run is decoded without the run before it,
//! so the differences are not known yet.
//!
//! Not done: hardware traces (AUX) are skipped and counted.
//! The sources for the format are the kernel's
//! `tools/perf/Documentation/perf.data-file-format.txt` and `include/uapi/linux/perf_event.h`.

mod attr;
mod by_time;
mod calls;
#[cfg(feature = "zstd")]
mod compressed;
mod cursor;
mod decode;
mod describe;
mod features;
pub mod format;
mod glance;
mod header;
mod index;
mod lately;
mod layout;
mod mapped;
mod marks;
mod open;
mod probe;
mod raw;
mod reader;
mod record;
mod rounds;
mod run;
mod schema;
mod shown;
mod source;
mod tracing_data;
mod walk;
mod window;

pub use glance::glance;
pub use header::sniff;
pub use layout::{sample_time, trailer_size};
pub use mapped::mapped_code;
pub use open::{open, open_stream};
pub use raw::{RawAttr, RawFile, RawRecord, open_raw};
pub use reader::PerfData;
