//! `holdup gate`: pass, regressed, or inconclusive.

use super::args::GateArgs;
use super::load;
use super::rounds::{self, Side};
use super::sinks::Sinks;
use crate::exit::{self, Failure, Result, usage};
use crate::progress;
use holdup_gate::judge::Sides;
use holdup_gate::policy::Policy;
use holdup_gate::self_test::self_test;
use holdup_gate::verdict::{Outcome, decide};
use holdup_gate::{Baseline, Metric, Work};
use holdup_render::compare::{Comparison, GateReport, SelfTestReport, SideHead};
use std::time::{SystemTime, UNIX_EPOCH};

/// Run the verb.
pub(crate) fn run(args: &GateArgs) -> Result<u8> {
    let (mut policy, asked) = policy(args)?;
    let sinks = Sinks::open(args)?;
    if !args.pair.len().is_multiple_of(2) {
        return Err(usage("--pair: the number of traces must be even: A1 B1 A2 B2 ..."));
    }
    // An unusable baseline is reported before minutes of reading.
    let before = args.baseline.as_deref().map(load::baseline).transpose()?.unwrap_or_default();
    progress::start(args.output.quiet);
    let mut sides = match args.pair.is_empty() {
        true => (Side::from(before), rounds::read(&args.traces, args)?),
        false => {
            let pairs = args.pair.chunks(2).map(|p| (p[0].clone(), p[1].clone()));
            let (a, b): (Vec<_>, Vec<_>) = pairs.unzip();
            (rounds::read_each(&a, args)?, rounds::read_each(&b, args)?)
        }
    };
    progress::end();
    let (before, after) = (&mut sides.0.read, &mut sides.1.read);
    let paired = before.runs.iter().zip(&after.runs).filter(|_| !args.pair.is_empty());
    if let Some((a, b)) = { paired }.find(|(a, b)| a.is_same_recording(b)) {
        return Err(usage(format!(
            "--pair: {} and {} are the same recording; a comparison of a recording with itself \
             shows nothing",
            a.name, b.name
        )));
    }
    if before.redacted || after.redacted {
        before.redact();
        after.redact();
        policy.redact();
    }
    let kept = before.work.clone().or_else(|| after.work.clone());
    let work = match (&args.compare.work, &policy.work) {
        (None, Some(work)) => work.clone(),
        _ => load::work(&args.compare, kept.as_deref())?,
    };
    let work = match work {
        // A recording of a round counts as one unit of work.
        Work::Unknown if args.scaling => Work::Units(1.0),
        work => work,
    };
    if args.scaling {
        let scaling = rounds::fold(&mut sides.0, &mut sides.1, &work, args)?;
        if !asked {
            policy = scaling;
        }
    } else if !asked {
        policy.primary.metric = Policy::default_metric(&work);
        policy.inform.retain(|l| l.metric != policy.primary.metric);
    }
    let (before, after) = (&sides.0.read, &sides.1.read);
    if args.self_test {
        return try_itself(args, before, &policy, &work, sinks);
    }
    let sides = Sides { a: &before.runs, b: &after.runs, paired: !args.pair.is_empty() };
    let allowed = load::allowed(&args.compare);
    let verdict = decide(sides, &policy, &work, &allowed, today())
        .map_err(|e| wrong(args, &e.to_string()))?;
    let code = match verdict.outcome {
        Outcome::Pass => exit::OK,
        Outcome::Regressed => exit::FAILED,
        Outcome::Inconclusive => exit::INCONCLUSIVE,
    };
    let baseline = args.baseline.as_ref().map(|p| p.to_string_lossy().into_owned());
    sinks.verdict(GateReport {
        a: SideHead::of(&before.runs, baseline.as_deref()),
        b: SideHead::of(&after.runs, None),
        baseline,
        verdict,
    })?;
    Ok(code)
}

/// The policy, and whether it names the deciding metric.
fn policy(args: &GateArgs) -> Result<(Policy, bool)> {
    if let Some(path) = &args.policy {
        let policy = Policy::parse(&crate::thresholds::read(path)?)
            .map_err(|e| wrong(args, &e.to_string()))?;
        return Ok((policy, true));
    }
    let metric = match &args.metric {
        Some(name) => Metric::parse(name).map_err(|e| wrong(args, &e.to_string()))?,
        None => Policy::default_metric(&Work::Unknown),
    };
    Ok((Policy::of(metric), args.metric.is_some()))
}

/// The error for a mistake in the policy, or in the metric given instead of a policy.
fn wrong(args: &GateArgs, why: &str) -> Failure {
    match &args.policy {
        Some(path) => usage(format!("{}: {why}", path.display())),
        None => usage(format!("--metric: {why}")),
    }
}

/// Days since 1970.
fn today() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    (since.as_secs() / 86_400) as i64
}

fn try_itself(
    args: &GateArgs,
    before: &Baseline,
    policy: &Policy,
    work: &Work,
    sinks: Sinks,
) -> Result<u8> {
    let runs = args.runs.unwrap_or(before.runs.len());
    let test =
        self_test(&before.runs, policy, work, runs).map_err(|e| wrong(args, &e.to_string()))?;
    let code = match (test.passed(), test.slowed.outcome) {
        (true, _) => exit::OK,
        // The gate detects nothing with this baseline: neither a failure nor a proof.
        (false, Outcome::Inconclusive) => exit::INCONCLUSIVE,
        (false, _) => exit::FAILED,
    };
    let baseline = args.baseline.as_ref().map(|p| p.to_string_lossy().into_owned());
    let report = SelfTestReport { baseline: baseline.unwrap_or_default(), test };
    sinks.other(&Comparison::SelfTest(Box::new(report)))?;
    Ok(code)
}
