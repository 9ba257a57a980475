//! Which code used the CPUs.
//!
//! ```text
//!  events ──► context ──┬─ memory    what is mapped where, by process
//!                       └─ chains    call chains, each kept once
//!                             │
//!      collect: samples by thread, CPU and chain             moments: sleeps, wake-ups, calls
//!               times: when each was                               │
//!                             │                                    │
//!             symbols ──► names: functions of frames         symbols ──► own code ──┬─ callers
//!                             │                                                     ├─ calls
//!      rows, children ── tree ── stacks (folded) ── pprof ── firefox                └─ code
//! ```
//!
//! While the trace is read, an address becomes an offset in a mapping: memory grows with mappings
//! and distinct chains, not with samples. Names are looked up afterwards, only for what is shown.

mod backtrace;
mod by_code;
mod callers;
mod calls;
mod chains;
mod children;
mod code;
mod collect;
mod context;
mod firefox;
mod json;
mod memory;
mod moments;
mod names;
mod own;
mod pprof;
mod rows;
mod stacks;
mod times;
mod tree;

pub use backtrace::{Backtraces, NamedFrame};
pub use callers::{CallerRow, WaitsByCode};
pub use calls::{CallRow, CallsByCode};
pub use code::{Around, Code, CodeObserver, KnowsCode, Spot};
pub use collect::{Collector, Profile, Timeline};
pub use firefox::firefox;
pub use pprof::pprof;
pub use rows::{By, ProfileRow, stays};
pub use stacks::folded;
pub use tree::{Tree, TreeRow, tree};

/// The rows of a profile, most samples first; with [`By::Children`] those with most samples in
/// total first.
pub fn rows(
    profile: &Profile,
    filter: &holdup_passes::Filter,
    by: By,
    symbols: &mut holdup_symbols::Symbols<'_>,
) -> Vec<ProfileRow> {
    match by {
        By::Children => children::children(profile, filter, symbols),
        _ => rows::hit(profile, filter, by, symbols),
    }
}
