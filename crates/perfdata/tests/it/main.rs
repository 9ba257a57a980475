//! Tests of `holdup-perfdata` from outside.

mod built;
mod code;
mod common;
mod damage;
mod groups;
mod oddities;
mod perf_script_oracle;
mod switches;
