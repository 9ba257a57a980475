//! A wait in progress, and how one ended.

use super::object::Object;
use crate::slot::Slot;
use holdup_trace::Nanos;

/// A wait in progress.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wait {
    pub(crate) object: Object,
    pub(crate) start: Nanos,
    pub(super) mark: u128,
}

/// How a wait ended, and by which thread.
#[derive(Clone, Copy, Debug)]
pub(crate) struct End {
    /// The thread that ended it.
    pub(crate) waker: Option<Slot>,
    /// The thread itself, not an interrupt on top of it, as far as interrupts are recorded.
    pub(crate) direct: bool,
    /// The waiter was about to sleep and never slept.
    pub(crate) early: bool,
}
