//! Tests of `holdup-record` from outside.

mod built;
mod common;
mod file;
