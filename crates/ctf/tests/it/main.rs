//! Tests of `holdup-ctf` from outside.

mod babeltrace_oracle;
mod corpus;
mod damage;
mod elsewhere;
mod parts;
mod support;
mod threads;
