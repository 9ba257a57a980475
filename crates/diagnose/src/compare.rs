//! The facts of a trace, compared with itself, with a baseline and with external counts.

use crate::Extras;
use crate::comparison::{Overhead, Slowdown};
use crate::facts::Facts;
use crate::rules::overhead;
use crate::slowdown::slowdowns;
use holdup_attribution::{Leaf, Thresholds};
use holdup_passes::Analysis;
use holdup_trace::TraceInfo;

impl<'a> Facts<'a> {
    /// Collect them.
    pub fn with(
        info: &'a TraceInfo,
        analysis: &'a Analysis,
        baseline: Option<&'a Analysis>,
        thresholds: Thresholds,
    ) -> Facts<'a> {
        Facts::with_extras(info, analysis, Extras { baseline, ..Extras::default() }, thresholds)
    }

    /// Collect them, with everything that is judged together with the trace.
    pub fn with_extras(
        info: &'a TraceInfo,
        analysis: &'a Analysis,
        extras: Extras<'a>,
        thresholds: Thresholds,
    ) -> Facts<'a> {
        let mut facts = Facts::drawn(info, analysis, extras, thresholds);
        facts.compare();
        facts
    }

    /// Compare the trace with itself and with the baseline: this divides leaves that the trace
    /// alone cannot divide.
    fn compare(&mut self) {
        self.slowdowns = slowdowns(self);
        if let Some(lost) = self.slowdowns.first().and_then(Slowdown::proven_ns) {
            let ledger = &mut self.judged.ledger;
            ledger.divide(Leaf::UserUndivided, Leaf::UserStalled, Leaf::UserWork, lost);
            let (stalled, work) = (Leaf::ApplicationStalled, Leaf::ApplicationWork);
            ledger.divide(Leaf::ApplicationUndivided, stalled, work, lost);
        }
        self.overhead = overhead(self);
        if let Some(lost) = self.overhead.as_ref().map(Overhead::lost_ns) {
            let ledger = &mut self.judged.ledger;
            ledger.divide(Leaf::KernelOther, Leaf::MpOverhead, Leaf::KernelOther, lost);
        }
    }
}
