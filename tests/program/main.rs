//! The program as its users meet it: what it prints, refuses and writes, and what is documented.

#[path = "../support/mod.rs"]
mod support;

mod cases;
mod cgroups;
mod choice;
mod circles;
mod cli;
mod cli_events;
mod cli_locks;
mod counters;
mod cut;
mod diagnose;
mod doctor;
mod documents;
mod fleet;
mod gate;
mod guide;
mod habits;
mod hist;
mod html;
mod html_in_chromium;
mod info;
mod lab;
mod latency;
mod limits;
mod man;
mod nameless;
mod own_rule;
mod predict;
mod profile;
mod profile_chains;
mod profile_forms;
mod progress;
mod recording;
mod scale;
mod schema;
mod script;
mod tables;
mod whatif;
mod words;
