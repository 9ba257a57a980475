//! Reads traces in text form.
//!
//! ```
//! use holdup_trace::{Reader, What, merge};
//! use std::path::Path;
//!
//! let text = b"\
//!   wl-42 [001] d..2. 17.000100: sched_wakeup: comm=wl pid=43 prio=120 target_cpu=000\n\
//!   wl-42 [001] d..2. 17.000300: sched_wakeup: comm=wl pid=44 prio=120 target_cpu=001\n";
//! let trace = holdup_ftracetext::open_stream(Path::new("-"), &text[..])?;
//! assert_eq!(trace.info().format, "trace_pipe text");
//! assert!(trace.info().capabilities.wakeups);
//!
//! let woken: Vec<u32> = merge::events(&trace)
//!     .map(|event| match event?.what {
//!         What::Wakeup { tid, .. } => Ok(tid.0),
//!         other => panic!("{other:?}"),
//!     })
//!     .collect::<Result<_, holdup_trace::ReadError>>()?;
//! assert_eq!(woken, [43, 44]);
//! # Ok::<(), holdup_trace::ReadError>(())
//! ```
//!
//! # Dialects
//!
//! | dialect | written by |
//! |---|---|
//! | kernel text | `cat /sys/kernel/tracing/trace`, atrace; with or without header, TGID, flags |
//! | trace_pipe | `cat /sys/kernel/tracing/trace_pipe` |
//! | trace-cmd report | `trace-cmd report`, also `-l`, `-R`, `-N`, `-t`, several inputs |
//! | perf script | `perf script`, also `--ns`, `-F …` as long as time and event are printed, `-G` |
//! | systrace | Android's HTML with a trace embedded |
//!
//! Opening reads the file once to index it: which parts are in time order, which events it has,
//! when it starts and ends. Decoding then reads each ascent by itself, so ascents decode in
//! parallel, and yields the same [`holdup_trace::What`] as the binary readers.
//!
//! ```text
//!  sniff ─► html (cut the trace out) ─► preamble (headings) ─► index (runs, names) ─► decode
//!                                                                │                     │
//!                                                                └────── line ─────────┴─ fields
//! ```

mod decode;
mod events;
mod fields;
mod glance;
mod html;
mod index;
mod kind;
mod lack;
mod line;
mod lines;
mod nearly;
mod numbers;
mod order;
mod preamble;
mod raw;
mod scan;
mod sniff;
mod source;
mod stack;
mod text;
mod trace;
mod words;

pub use nearly::nearly;
pub use numbers::{SyscallNumber, UNNUMBERED_SYSCALL};
pub use raw::{RawLine, Take, each_line};
pub use sniff::{Dialect, DialectKind, sniff};
pub use trace::{TextOptions, TextTrace, open, open_stream};
pub use words::{Sort, Words};
