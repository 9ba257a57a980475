//! Which code used the CPUs.
//!
//! ```text
//!  events ──► collect ──┬─ memory   what is mapped where, by process
//!                       ├─ chains   call chains, each kept once
//!                       └─ sums     samples by thread, CPU and chain
//!                             │
//!             symbols ──► rows, stacks
//! ```
//!
//! While the trace is read, an address becomes a place in a mapping: memory grows with what is
//! mapped and with distinct chains, not with samples. Names are looked for afterwards, of what is
//! shown only.

mod chains;
mod collect;
mod memory;
mod rows;
mod stacks;

pub use collect::{Profile, collect};
pub use rows::{By, ProfileRow, rows, stays};
pub use stacks::folded;
