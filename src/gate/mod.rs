//! The verbs that compare recordings.

pub(crate) mod args;
pub(crate) mod baseline;
pub(crate) mod diff;
pub(crate) mod history;
pub(crate) mod judge;
mod load;
mod rounds;
pub(crate) mod scale;
mod sinks;
