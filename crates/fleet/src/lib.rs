//! Many traces at once.
//!
//! ```text
//!  find ──► run, a worker for each job ──► journal, a line for each trace ──┐
//!  paths      identity: is it known?         (what is in it is never        │
//!             one: open, judge, sum up        done again)                   │
//!                                            parts of other machines ───────┤
//!                                                                           ▼
//!                             manifest, ranking ◄── compact ──► tables/TABLE/date=…/host=…/
//! ```
//!
//! A trace is identified by its content, not its name. Its result is one line of JSON ([`Record`]).
//! The journal of a run consists of such lines, and so does a part that another machine made. The
//! tables are made of these lines alone, in an order that does not depend on which machine made a
//! line, or when. So a run that was killed and restarted, and one that was spread over machines,
//! end with the same tables.

mod compact;
mod dataset;
mod date;
mod error;
mod find;
mod identity;
mod journal;
mod manifest;
mod named;
mod one;
mod ranking;
mod record;
mod run;
mod services;
mod settings;
mod store;
mod tables;

pub use compact::write;
pub use dataset::{Dataset, Partition};
pub use error::FleetError;
pub use find::{Item, Kind, find};
pub use identity::{Stamp, content};
pub use journal::Journal;
pub use manifest::MANIFEST;
pub use one::{Known, analyse, look};
pub use record::{Head, Record, Verdict};
pub use run::{Progress, run};
pub use settings::Settings;
pub use store::{Entry, Place, Store, parts};
pub use tables::definitions;

/// The folder of the tables, within a fleet's folder.
pub const TABLES: &str = "tables";
/// The file of the results for each trace, in a fleet's folder.
pub const JOURNAL: &str = "journal.ndjson";
