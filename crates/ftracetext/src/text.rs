//! The text of a trace, and what decoding needs to know about it.

use crate::events::Events;
use crate::line::Syntax;
use crate::source::Source;
use holdup_trace::Names;
use std::sync::Arc;

/// A text whose lines can each be decoded independently.
pub(crate) struct Text {
    pub(crate) source: Source,
    pub(crate) names: Arc<Names>,
    pub(crate) syntax: Syntax,
    /// Its task states use the letters of kernels before 4.14.
    pub(crate) old_states: bool,
    pub(crate) events: Events,
    /// Events come with call chains.
    pub(crate) has_chains: bool,
}

impl Text {
    #[inline]
    pub(crate) fn bytes(&self) -> &[u8] {
        self.source.bytes()
    }
}
