//! Tests of `holdup-open` from outside.

mod glance;
mod latency;
mod wrappers;
