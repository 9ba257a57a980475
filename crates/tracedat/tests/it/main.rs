//! Tests of `holdup-tracedat` from outside.

mod damage;
mod glance;
mod raw_dir;
mod stacks;
mod support;
mod synthetic;
mod trace_cmd_oracle;
