//! Tests of `holdup-passes` from outside.

mod dark_calls;
mod descriptors;
mod fights;
mod figures;
mod groups;
mod holders;
mod laws;
mod locks;
mod monitors;
mod pair;
mod places;
mod processes;
mod reasons;
mod some_tasks;
mod states;
mod steps;
mod tasks;
mod variables;
mod waits;
