//! holdup's tables against perf's, figure by figure, over every recording at hand.
//!
//! Each test names a claim of `docs/accuracy.md`. perf prints rounded numbers: a figure of holdup
//! agrees if it rounds to what perf printed, to the last digit. Where perf is known to be wrong the
//! test does not look away: [`raw`] works out from the events what perf's rule makes of them, and
//! perf must have printed exactly that, and holdup the right figure. Such rows are counted.
//!
//! Those slips are of perf 6.1: with another version, as without perf, the tests of the tables are
//! ignored and say why. Those that only read events from `perf script` run with any.

pub(crate) mod changes;
mod closing;
pub(crate) mod corpus;
mod idle;
mod interrupts;
mod locks;
mod migrations;
mod perf;
mod printed;
mod raw;
mod switches;
mod syscalls;
mod tally;
