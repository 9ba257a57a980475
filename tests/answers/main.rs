//! The answers on recordings, by way of the library: against perf and trace-cmd, against labels,
//! against what was measured, and against each other.

#[path = "../support/mod.rs"]
mod support;

mod background;
mod blocked;
mod by_key;
mod chosen;
mod code;
mod culprits;
mod equivalence;
mod evidence;
mod held;
mod known_locks;
mod lacking;
mod ledger;
mod oracle;
mod phases;
mod physics;
mod predicted;
mod replay;
mod rules;
mod same_answer;
mod samples;
mod siblings;
mod sleeps;
mod spare_cpus;

mod taken_away;
mod tasks;
mod untraced_calls;
mod verdicts;
mod waits_corpus;
