//! From the tables to a verdict.
//!
//! ```text
//!  Analysis ──► Attribution ──► Facts ──► every rule ──► findings, most worth first ──► verdict
//! ```
//!
//! Every rule ([`rules`]) looks at the same [`Facts`] and answers with a [`Finding`]: what its
//! problem costs and the evidence for it, or why it is ruled out. Each finding has a [`Worth`], the
//! factor by which the work would be faster without it, so that findings compare. The verdict is
//! the finding with the largest gain.

mod chosen;
mod class;
mod code;
mod compare;
mod comparison;
mod concerned;
mod counted;
mod culprits;
mod facts;
pub mod guide;
mod healthy;
mod judged;
mod measured;
pub mod metrics;
mod others;
pub mod phases;
pub mod predict;
mod record;
mod replayed_part;
mod replays;
mod report;
pub mod rules;
mod slowdown;
mod too_little;
mod verdict;
mod worth;

pub use facts::Facts;
pub use holdup_attribution::{Contended, Setting, Threshold, ThresholdError, Thresholds};
pub use judged::PhaseRow;
pub use measured::{Concurrency, Measured, concurrencies};
pub use record::record_command;
pub use replayed_part::replayed_part;
pub use replays::Replays;
pub use report::{
    Background, BackgroundProgram, Chosen, ChosenWait, Class, Culprit, Diagnosis, Evidence,
    Finding, Lead, Part, Person, Role, Step, Verdict,
};
pub use rules::thresholds as registry;
pub use worth::{Basis, HolderWorth, Worth};

use holdup_passes::Analysis;
use holdup_profile::KnowsCode;
use holdup_trace::{TraceInfo, shell_word};

/// Judge a trace by the default thresholds, together with a baseline of the same work if there is
/// one.
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

/// What a trace is judged with.
#[derive(Clone, Copy, Default)]
pub struct Extras<'a> {
    /// Another trace of the same work.
    pub baseline: Option<&'a Analysis>,
    /// `perf stat` counts of the same work.
    pub measured: &'a [Measured],
    /// The code around what its threads waited for, if call chains were recorded.
    pub code: Option<&'a dyn KnowsCode>,
}

/// Judge the part of a trace that the verdict is about, and report its phases.
pub fn diagnose_judged(
    info: &TraceInfo,
    judged: &phases::Judged,
    baseline: Option<&Analysis>,
    thresholds: Thresholds,
) -> Diagnosis {
    diagnose_with_extras(info, judged, Extras { baseline, ..Extras::default() }, thresholds)
}

/// As [`diagnose_judged`], with everything that is judged together with the trace.
pub fn diagnose_with_extras(
    info: &TraceInfo,
    judged: &phases::Judged,
    extras: Extras<'_>,
    thresholds: Thresholds,
) -> Diagnosis {
    let mut facts = Facts::with_extras(info, &judged.analysis, extras, thresholds);
    facts.left_out_ns = judged.left_out_ns;
    facts.replay(judged);
    let mut diagnosis = Diagnosis { phases: judged.several_phases().to_vec(), ..judge(&facts) };
    diagnosis.next.extend(info.runtimes.unprobed.iter().take(1).map(|program| {
        // Waits between goroutines are not visible.
        format!("holdup record --runtime-locks -- {}", shell_word(program))
    }));
    let class = diagnosis.verdict.class;
    let mut work = diagnosis.phases.iter_mut().filter(|row| row.work);
    match (work.next(), work.next()) {
        // The verdict on the work is the verdict on its only phase.
        (Some(row), None) if judged.part_of_ns.is_some() => row.judged(class, &diagnosis.ledger),
        (Some(_), Some(_)) => {
            let trace = shell_word(&info.path.to_string_lossy());
            diagnosis.next.push(format!("holdup phases {trace}"));
        }
        _ => {}
    }
    diagnosis
}

/// Judge a trace again with other limits and the same replays: see [`Replays::of_judged`].
pub fn diagnose_again(
    info: &TraceInfo,
    judged: &phases::Judged,
    baseline: Option<&Analysis>,
    thresholds: Thresholds,
    replays: Option<Result<Replays, String>>,
) -> Diagnosis {
    let mut facts = Facts::with(info, &judged.analysis, baseline, thresholds);
    facts.left_out_ns = judged.left_out_ns;
    facts.replays = replays;
    judge(&facts)
}

/// Judge the facts.
pub(crate) fn judge(facts: &Facts<'_>) -> Diagnosis {
    let mut findings: Vec<Finding> =
        rules::ALL.iter().map(|rule| rules::check(rule, facts)).collect();
    // A trace that is too small for a verdict is too small for advice.
    if let Some(why) = too_little::too_little(facts) {
        findings.iter_mut().filter(|f| f.ruled_out.is_none()).for_each(|f| {
            f.ruled_out = Some(format!("not judged: {why}"));
            f.story = report::NOT_JUDGED;
        });
    }
    // A stable sort: rules of equal worth stay in the order of the list.
    findings.sort_by(|a, b| {
        let holds = |f: &Finding| f.ruled_out.is_some();
        holds(a).cmp(&holds(b)).then(b.worth.firm().total_cmp(&a.worth.firm()))
    });
    let verdict = verdict::decide(facts, &findings);
    let leads = rules::lead(facts).into_iter().collect();
    let next = verdict::next_commands(facts, verdict.class);
    Diagnosis {
        verdict,
        ledger: facts.judged.ledger.clone(),
        chosen: chosen::chosen(facts),
        phases: Vec::new(),
        findings,
        leads,
        not_replayed: facts.replays.as_ref().and_then(|r| r.as_ref().err().cloned()),
        next,
        thresholds: facts.judged.thresholds.settings(),
        code_remarks: facts.code.map_or_else(Vec::new, KnowsCode::remarks),
        source: None,
    }
}
