//! Tests of `holdup-diagnose` from outside.

mod code;
mod demand;
mod hardware_bandwidth;
mod lacking_evidence;
mod more_cpus;
mod observed_holders;
mod published;
mod sensitivity;
