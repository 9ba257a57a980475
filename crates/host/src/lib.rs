//! What a host allows somebody who wants to record it, and what to do where it does not.
//!
//! [`Host::look`] reads what files tell (`/proc`, `/sys`, tracefs), below a [`Root`], so that
//! tests can show it a host that this machine is not. What takes trying to find out is tried by
//! who can record, and handed in as [`Tried`]. [`facts()`] judges both: each [`Fact`] is as a
//! recording wants it, or has an [`Obstacle`]: what it is, what it costs, and the way out.
//! [`refused`] makes an obstacle of the error number that a recorder met, in the same words.

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
