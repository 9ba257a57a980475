//! From the tables to a verdict.
//!
//! ```text
//!  Analysis ──► Attribution ──► Facts ──► every rule ──► findings, largest loss first ──► verdict
//! ```
//!
//! Every rule ([`rules`]) looks at the same [`Facts`] and answers with a [`Finding`]: how much CPU
//! capacity its pathology costs and why one should believe it, or why it is ruled out. Losses are
//! all in one currency, CPU-nanoseconds, so that findings compare; the verdict is the largest one
//! that matters.

mod code;
mod counted;
mod culprits;
mod facts;
mod gain;
mod given_back;
pub mod guide;
mod measured;
pub mod metrics;
pub mod phases;
pub mod predict;
mod record;
mod report;
pub mod rules;
mod slowdown;
mod too_little;
mod verdict;

pub use facts::Facts;
pub use gain::{Gain, Replayed, Then, Unknown, is_small};
pub use holdup_attribution::{Contended, Setting, Threshold, ThresholdError, Thresholds};
pub use measured::{Company, Measured, companies};
pub use phases::PhaseRow;
pub use record::record_command;
pub use report::{
    Class, Culprit, Diagnosis, Evidence, Finding, Lead, Neighbour, Neighbours, Part, Person, Role,
    Step, Verdict,
};
pub use rules::thresholds as registry;

use holdup_passes::Analysis;
use holdup_profile::KnowsCode;
use holdup_trace::TraceInfo;

/// Judge a trace by the default thresholds, beside another of the same work if there is one.
pub fn diagnose(info: &TraceInfo, analysis: &Analysis, baseline: Option<&Analysis>) -> Diagnosis {
    diagnose_with(info, analysis, baseline, Thresholds::default())
}

/// Judge a trace by other thresholds than the default ones.
pub fn diagnose_with(
    info: &TraceInfo,
    analysis: &Analysis,
    baseline: Option<&Analysis>,
    thresholds: Thresholds,
) -> Diagnosis {
    judge(&Facts::with(info, analysis, baseline, thresholds))
}

/// What a trace is judged beside.
#[derive(Clone, Copy, Default)]
pub struct Beside<'a> {
    /// Another trace of the same work.
    pub baseline: Option<&'a Analysis>,
    /// What perf stat counted of the same work.
    pub measured: &'a [Measured],
    /// The code around what its threads waited for, where call chains were recorded.
    pub code: Option<&'a dyn KnowsCode>,
}

/// Judge the part of a trace that the verdict is about, with what the phases tell.
pub fn diagnose_judged(
    info: &TraceInfo,
    judged: &phases::Judged,
    baseline: Option<&Analysis>,
    thresholds: Thresholds,
) -> Diagnosis {
    diagnose_beside(info, judged, Beside { baseline, ..Beside::default() }, thresholds)
}

/// The same, with all that there is beside the trace.
pub fn diagnose_beside(
    info: &TraceInfo,
    judged: &phases::Judged,
    beside: Beside<'_>,
    thresholds: Thresholds,
) -> Diagnosis {
    let mut facts = Facts::beside(info, &judged.analysis, beside, thresholds);
    facts.left_out_ns = judged.left_out_ns;
    let mut diagnosis = Diagnosis { phases: judged.phases.clone(), ..judge(&facts) };
    diagnosis.verdict.gain = judged.gain(&diagnosis);
    diagnosis
}

/// Judge the facts.
pub(crate) fn judge(facts: &Facts<'_>) -> Diagnosis {
    let mut findings: Vec<Finding> =
        rules::ALL.iter().map(|rule| rules::check(rule, facts)).collect();
    // Stable: rules of equal loss stay in the order of the list.
    findings.sort_by_key(|f| (f.ruled_out.is_some(), std::cmp::Reverse(f.lost_cpu_ns)));
    let verdict = verdict::decide(facts, &findings);
    let leads = rules::lead(facts).into_iter().collect();
    let next = verdict::next_commands(facts, verdict.class);
    Diagnosis {
        verdict,
        ledger: facts.judged.ledger.clone(),
        phases: Vec::new(),
        findings,
        leads,
        next,
        thresholds: facts.judged.thresholds.settings(),
        code_remarks: facts.code.map_or_else(Vec::new, KnowsCode::remarks),
        source: None,
    }
}
