//! `holdup locks` against `perf lock contention`, `perf lock report`, and a plain computation over
//! what `perf script` and `trace-cmd report` print.

mod contention;
mod events;
mod lock_stat;
mod lockdep;
mod printed;
mod sums;
mod symbols;
