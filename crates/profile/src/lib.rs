//! Which code used the CPUs.
//!
//! ```text
//!  events ──► context ──┬─ memory    what is mapped where, by process
//!                       └─ chains    call chains, each kept once
//!                             │
//!            collect: samples by thread, CPU and chain     moments: sleeps, wake-ups, calls
//!                             │                                   │
//!             symbols ──► rows, stacks                  symbols ──► own code ──┬─ callers, rows
//!                                                                              └─ code, sides
//! ```
//!
//! While the trace is read, an address becomes a place in a mapping: memory grows with what is
//! mapped and with distinct chains, not with samples. Names are looked for afterwards, of what is
//! shown only.

mod callers;
mod calls;
mod chains;
mod code;
mod collect;
mod context;
mod memory;
mod moments;
mod own;
mod rows;
mod stacks;

pub use callers::{CallerRow, callers};
pub use calls::{CallRow, calls};
pub use code::{Around, Code, KnowsCode, Spot, code};
pub use collect::{Profile, collect};
pub use rows::{By, ProfileRow, rows, stays};
pub use stacks::folded;
