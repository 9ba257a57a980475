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

/// Who ended a wait, and how.
#[derive(Clone, Copy, Debug)]
pub(crate) struct End {
    /// By this thread.
    pub(crate) waker: Option<Slot>,
    /// The thread itself, not an interrupt on top of it, as far as interrupts are recorded.
    pub(crate) direct: bool,
    /// It was on its way to sleep and never slept.
    pub(crate) early: bool,
}
