//! Tests of `holdup-model` from outside.

mod properties;
mod published;
