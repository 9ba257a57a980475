//! Tests of `holdup-tracepoint` from outside.

mod blocked_reason;
mod calls;
mod contended_release;
mod waking;
