//! What records on this machine, or needs it for itself: run one after the other with the rest.

#[path = "../support/mod.rs"]
mod support;

mod doctor;
mod gate_end_to_end;
mod html_in_chromium;
mod progress;
mod record;
mod recording;
