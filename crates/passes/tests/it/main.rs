//! Tests of `holdup-passes` from outside.

mod descriptors;
mod fights;
mod figures;
mod groups;
mod holders;
mod invariants;
mod locks;
mod monitors;
mod pair;
mod places;
mod polled_locks;
mod processes;
mod reasons;
mod some_tasks;
mod states;
mod steps;
mod tasks;
mod turns;
mod untraced_calls;
mod variables;
mod waits;
mod whole_calls;
