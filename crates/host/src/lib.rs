//! What a host allows somebody who wants to record it, and what to do where it does not.
//!
//! Everything here is read from files (`/proc`, `/sys`, tracefs) below a [`Root`], so that tests
//! can show it a host that this machine is not. What takes a system call to find out is tried by
//! who records, and handed in.

mod root;
pub mod tracefs;

pub use root::Root;
