//! Tests of `holdup-tracepoint` from outside.

mod blocked_reason;
mod contended_release;
mod waking;
