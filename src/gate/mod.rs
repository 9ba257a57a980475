//! The verbs that compare recordings.

pub(crate) mod args;
pub(crate) mod baseline;
mod load;
