//! A possible fix of a ranking.

use holdup_diagnose::Finding;
use holdup_render::WhatifRow;
use holdup_replay::Estimate;

/// A possible fix.
pub(super) struct Fix {
    pub(super) known: Known,
    pub(super) row: WhatifRow,
}

/// Where the gain of a fix is from.
pub(super) enum Known {
    /// From a replay, or from chains of wake-ups.
    Estimated(Estimate),
    /// From the ledger alone, for this finding of the verdict.
    Ledger(Finding),
}

impl Known {
    pub(super) fn estimate(&self) -> Option<&Estimate> {
        match self {
            Known::Estimated(estimate) => Some(estimate),
            Known::Ledger(_) => None,
        }
    }
}
