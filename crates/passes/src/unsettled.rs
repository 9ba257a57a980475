//! A sleep that is over, and what the kernel said or will say it was for.

use crate::judge::Ended;
use crate::waits::{Caller, End, Wait};
use holdup_trace::Nanos;

/// What a `sched_blocked_reason` says.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reason {
    pub(crate) io_wait: bool,
    pub(crate) caller: Caller,
    /// The caller is a function that takes locks.
    pub(crate) lock: bool,
}

/// A sleep that is over and whose reason may still come.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Unsettled {
    pub(crate) wait: Wait,
    /// When it ended, and the blame integral then.
    pub(crate) now: Nanos,
    pub(crate) g: u128,
    pub(crate) end: End,
    pub(crate) ended: Ended,
    /// It took part in sharing idle time.
    pub(crate) counted: bool,
}
