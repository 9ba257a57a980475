//! What a host allows a user who wants to record it, and what to do about missing rights.
//!
//! [`Host::look`] reads files (`/proc`, `/sys`, tracefs) below a [`Root`], so that tests can show
//! it other hosts. What only trying shows is tried by the crate that can record, and passed in as
//! [`Tried`]. [`facts()`] judges both: each [`Fact`] is fine for a recording, or has an
//! [`Obstacle`]: what it is, what it costs, and the way out. [`refused`] makes an obstacle of the
//! error number that a recorder met, in the same words.

mod fact;
mod facts;
mod host;
mod kernel;
mod obstacle;
mod process;
mod refusal;
mod root;
mod sys;
pub mod tracefs;
mod ways;

pub use fact::{Fact, State, Word};
pub use facts::{BUFFER, can_record, facts, largest_buffer, no_tracefs, refused, stopped};
pub use host::{Attempt, Calls, Events, Host, Idle, Tried};
pub use kernel::{Kernel, Lockdown, Perf};
pub use obstacle::{Costs, Obstacle, WayOut};
pub use process::{Capability, Limit, Namespace, Process, Surroundings};
pub use root::Root;
pub use sys::{empty_call, page_size};

/// The name of an error number, as `man 3 errno` spells it.
fn errno(number: i32) -> String {
    match u32::try_from(number).ok().and_then(holdup_syscalls::errno_name) {
        Some(name) => name.to_owned(),
        None => format!("errno {number}"),
    }
}
