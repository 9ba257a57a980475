//! Which code used the CPUs.
//!
//! ```text
//!  events ──► context ──┬─ memory    what is mapped where, by process
//!                       └─ chains    call chains, each kept once
//!                             │
//!            collect: samples by thread, CPU and chain     callers: sleeps by chain
//!                             │                                   │
//!             symbols ──► rows, stacks                  symbols ──► own code, rows
//! ```
//!
//! While the trace is read, an address becomes a place in a mapping: memory grows with what is
//! mapped and with distinct chains, not with samples. Names are looked for afterwards, of what is
//! shown only.

mod callers;
mod chains;
mod collect;
mod context;
mod memory;
mod own;
mod rows;
mod stacks;

pub use callers::{CallerRow, callers};
pub use collect::{Profile, collect};
pub use rows::{By, ProfileRow, rows, stays};
pub use stacks::folded;
