//! Whether a gate can fail: the baseline's own runs compared with themselves, unchanged and slowed.

use crate::judge::{Compared, Sides};
use crate::metric::Metric;
use crate::policy::{Policy, PolicyError, Worse};
use crate::run::Run;
use crate::stats::power::{self, Ask, Noise, Runs};
use crate::verdict::{Outcome, Verdict, decide};
use crate::work::Work;

/// Changes of the power curve.
pub const CHANGES: &[f64] = &[0.0, 0.03, 0.05, 0.10, 0.15, 0.25, 0.50, 1.00];

/// What a gate can detect with this baseline.
#[derive(Clone, Debug, PartialEq)]
pub struct SelfTest {
    /// The metric that decides.
    pub metric: Metric,
    /// Runs per side.
    pub runs: usize,
    /// The change injected, as a ratio.
    pub injected: f64,
    /// The verdict on the baseline against itself.
    pub unchanged: Verdict,
    /// The verdict with the change injected.
    pub slowed: Verdict,
    /// The probability that each of [`CHANGES`] is called a regression with this many runs per
    /// side; empty if the runs do not show the spread.
    pub curve: Vec<(f64, f64)>,
    /// The smallest change that is detected with the requested power.
    pub sees: Option<f64>,
}

impl SelfTest {
    /// The gate fails with the change, and does not fail without it.
    pub fn passed(&self) -> bool {
        self.unchanged.outcome == Outcome::Pass && self.slowed.outcome == Outcome::Regressed
    }
}

/// Try the gate on its own baseline. The curve assumes `runs` per side.
///
/// # Errors
/// [`PolicyError`] for metrics that no run has, or that cannot be made worse.
pub fn self_test(
    baseline: &[Run],
    policy: &Policy,
    work: &Work,
    runs: usize,
) -> Result<SelfTest, PolicyError> {
    let limit = &policy.primary;
    let Metric::Number { figure, .. } = &limit.metric else {
        return Err(PolicyError("verdict.class cannot be made worse by a known amount".to_owned()));
    };
    // Large enough to matter, and large enough that it must be detected.
    let injected = limit.must_see.max(limit.relative);
    let factor = match limit.worse {
        Worse::Higher => 1.0 + injected,
        Worse::Lower => (1.0 - injected).max(0.0),
    };
    let mut changed = baseline.to_vec();
    for run in &mut changed {
        if let Some(Some(value)) = run.figures.get(figure) {
            run.figures.set(figure.clone(), Some((value as f64 * factor).round() as u64));
        }
    }
    let today = 0;
    let without = Policy { waivers: Vec::new(), ..policy.clone() };
    let against =
        |b: &[Run]| decide(Sides { a: baseline, b, paired: false }, &without, work, &[], today);
    let (unchanged, slowed) = (against(baseline)?, against(&changed)?);
    let values = match &unchanged.primary.compared {
        Compared::Number(n) => n.a.clone(),
        _ => Vec::new(),
    };
    let judgement = &policy.judgement;
    let ask = Ask { alpha: judgement.alpha, least: limit.relative };
    let (noise, each) = (Noise::Runs(&values), Runs::each(runs));
    let chances = power::curve(noise, CHANGES, each, &ask).unwrap_or_default();
    Ok(SelfTest {
        metric: limit.metric.clone(),
        runs,
        injected,
        unchanged,
        slowed,
        curve: CHANGES.iter().copied().zip(chances).collect(),
        sees: power::smallest_change(noise, each, &ask, judgement.power),
    })
}
