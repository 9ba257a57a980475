//! Replays what the threads of a trace did on a simulated machine, unchanged or changed.
//!
//! ```text
//!  analysis ──► build ──► program ──► change ──► simulate ──► predict, estimate
//!  each step    which     runs,       a view     CPUs and     time of the work,
//!  of each      waits     sleeps,     of it      a scheduler  with a band
//!  thread       depend    waits,
//!               on whom   locks
//! ```
//!
//! A diagnosis is worth as much as its fix gains. Coz (Curtsinger, Berger, "Coz: Finding Code that
//! Counts with Causal Profiling", SOSP 2015) measures that by slowing a live program down. A trace
//! has what it takes: how long each thread ran, what it waited for, and who held the lock.
//!
//! The replay keeps each thread's steps in their order, the CPU time of each step, and which thread
//! wakes which. It does not know what a thread would have done had it been earlier.

mod answers;
mod asleep;
mod bits;
mod bound;
mod build;
mod change;
mod deal;
mod doubts;
mod estimate;
mod exclusive;
mod joins;
mod next;
mod predict;
mod prediction;
mod program;
mod relief;
mod resources;
mod simulate;
mod spans;
pub mod words;

pub use asleep::Asleep;
pub use build::CannotReplay;
pub use change::{Change, ChangeError, FACTORS, LockChange, MAX_CPUS, PARTS, Part};
pub use doubts::{doubts, off_pct};
pub use estimate::{Depth, Estimate, Estimates, estimate};
pub use next::{Next, next};
pub use predict::{Seeds, free_off_pct, predict, predict_all};
pub use prediction::{Bound, Prediction};
pub use program::{ObjectId, Order, Program, ReplayObject, ThreadProgram};
pub use resources::Member;

#[cfg(test)]
mod tests;
