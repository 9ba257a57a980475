//! A trace as it is read for a verdict: the judged part, and the phases.

use crate::class::Class;
use holdup_attribution::phases::{Part, Phase};
use holdup_attribution::{Ledger, Thresholds};
use holdup_passes::Analysis;
use holdup_trace::Nanos;
use serde::Serialize;

/// A phase as `holdup phases` prints it.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct PhaseRow {
    /// Number of the phase, from 1: `--phase` takes it.
    pub phase: u32,
    /// Start of the phase, by the trace's clock.
    pub start_ns: u64,
    /// End of the phase, by the trace's clock.
    pub end_ns: u64,
    /// Mean number of busy CPUs in the phase.
    pub busy_cpus: f64,
    /// The leaf of the ledger with the largest part of the phase's capacity. If the phase was not
    /// judged alone, the leaf is one of the timeline's coarser leaves.
    pub leading_leaf: &'static str,
    /// The verdict on this phase alone; `null` if the phase was not judged alone.
    pub class: Option<Class>,
    /// Whether the phase is work, and not start-up or tail.
    pub work: bool,
    /// Which part of the trace the phase is: `start-up`, `work` or `tail`.
    pub part: &'static str,
}

impl PhaseRow {
    /// Rows of these phases, in order, as the timeline shows them.
    pub fn of(phases: &[Phase]) -> Vec<PhaseRow> {
        let row = |(i, p): (usize, &Phase)| PhaseRow {
            phase: i as u32 + 1,
            start_ns: p.start,
            end_ns: p.end,
            busy_cpus: p.busy_cpus,
            leading_leaf: p.leading.path(),
            class: None,
            work: p.part == Part::Work,
            part: p.part.word(),
        };
        phases.iter().enumerate().map(row).collect()
    }

    /// Its duration.
    pub fn wall_ns(&self) -> Nanos {
        self.end_ns - self.start_ns
    }

    /// Enter the phase's verdict.
    pub(crate) fn judged(&mut self, class: Class, ledger: &Ledger) {
        let leading = ledger.leaves().max_by_key(|&(leaf, ns)| (ns, std::cmp::Reverse(leaf)));
        if let Some((leaf, _)) = leading {
            self.leading_leaf = leaf.path();
        }
        self.class = Some(class);
    }
}

/// A trace, read for its verdict.
pub struct Judged {
    /// The part that the verdict is about: everything, or the work alone.
    pub analysis: Analysis,
    /// All its phases; empty if threads were chosen, because phases are the machine's.
    pub phases: Vec<PhaseRow>,
    /// Duration of the phases left out.
    pub left_out_ns: Nanos,
    /// Duration of all that was read, if `analysis` is a part of it.
    pub part_of_ns: Option<Nanos>,
    /// All that was read, if `analysis` is a part of it and all is wanted.
    pub whole: Option<Analysis>,
    /// The part to replay, if the recording is too large to replay whole.
    pub window: Option<Analysis>,
}

/// What is wanted in addition to the verdict.
#[derive(Clone, Copy, Debug, Default)]
pub struct Wanted {
    /// The fraction of the judged part to replay: 1 is all, see [`crate::replayed_part`].
    pub replay: Option<f64>,
    /// Whether an analysis of all that is read is wanted.
    pub whole: bool,
}

impl Judged {
    /// Judges everything that was read.
    pub fn of_all(analysis: Analysis, phases: Vec<PhaseRow>) -> Judged {
        let (part_of_ns, whole, window) = (None, None, None);
        Judged { analysis, phases, left_out_ns: 0, part_of_ns, whole, window }
    }

    /// The analysis of all that was read; of the judged part if all was not wanted.
    pub fn whole(&self) -> &Analysis {
        self.whole.as_ref().unwrap_or(&self.analysis)
    }

    /// What is replayed: the window, or the judged part.
    pub fn replayed(&self) -> &Analysis {
        self.window.as_ref().unwrap_or(&self.analysis)
    }

    /// Its phases if there are several: a single one is not worth showing.
    pub fn several_phases(&self) -> &[PhaseRow] {
        if self.phases.len() > 1 { &self.phases } else { &[] }
    }

    /// Compare figures with other limits from now on.
    pub fn set_limits(&mut self, limits: &Thresholds) {
        for analysis in [&mut self.whole, &mut self.window].into_iter().flatten() {
            analysis.set_limits(limits.clone());
        }
        self.analysis.set_limits(limits.clone());
    }
}
