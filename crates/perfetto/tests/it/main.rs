//! Tests of `holdup-perfetto` from outside.

mod damage;
mod decoder;
mod forms;
mod message;
mod packets;
mod samples;
