//! Tests of `holdup-perfdata` from outside.

mod built;
mod code;
mod common;
mod damage;
mod oddities;
mod perf_script_oracle;
