//! Tests of `holdup-ftracetext` from outside.

mod chains;
mod common;
mod damage;
mod events;
mod lacking;
mod perf_script;
mod reader;
mod trace_cmd;
