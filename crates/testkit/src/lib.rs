//! Traces built by hand, for tests: development only.
//!
//! ```
//! use holdup_testkit::TraceBuilder;
//! let trace = TraceBuilder::new(2)
//!     .switch(100, 0, 0, 42, "R")     // the idle task leaves CPU 0 to thread 42
//!     .sys_enter(150, 0, 42, 0)       // which calls read(2)
//!     .switch(200, 0, 42, 0, "S")     // and sleeps in it
//!     .build();
//! assert_eq!(holdup_trace::Reader::info(&trace).span, Some((100, 200)));
//! ```

mod builder;

pub use builder::{MemTrace, TraceBuilder};
