//! `holdup gate` and `holdup baseline` from outside: exit codes, and a message for everything that
//! can be wrong; the examples of `docs/ci.md`, run.

mod documents;
mod outcomes;
mod runs;
mod scaling;
mod wrong;
