//! Tests of `holdup-cut` from outside.

mod cut;
mod nameless;
