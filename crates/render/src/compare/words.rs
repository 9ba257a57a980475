//! The sentences of a comparison, one per doubt, test and problem.
//!
//! Nothing is escaped here: names come from traces, and each form escapes what it writes.

use super::report::{GateReport, SelfTestReport};
use crate::text::units::count;
use holdup_diagnose::Class;
use holdup_gate::diff::Row;
use holdup_gate::judge::{Compared, Doubt, Finding, Judged, Number, Test};
use holdup_gate::metric::{Kind, Metric, Per};
use holdup_gate::policy::{Judgement, Limit, Waiver, Worse};
use holdup_gate::sample;
use holdup_gate::verdict::{Outcome, Verdict};
use holdup_gate::why::Reason;

/// Text for a value that a trace cannot give.
pub(super) const NOT_KNOWN: &str = "n/a";

/// A percentage without its sign: with the significant digits.
pub(super) fn pct(value: f64) -> String {
    match value.abs() {
        x if x >= 99.95 => format!("{x:.0} %"),
        x => {
            let words = format!("{x:.1}");
            format!("{} %", words.strip_suffix(".0").unwrap_or(&words))
        }
    }
}

/// A percentage with its sign.
pub(super) fn signed_pct(value: f64) -> String {
    let digits = if value.abs() >= 99.95 { 0 } else { 1 };
    let words = format!("{value:+.digits$} %");
    // A value that rounds to 0 has a fixed sign.
    if words == "-0.0 %" { "+0.0 %".to_owned() } else { words }
}

/// A number of a metric, or `n/a`.
pub(super) fn number(metric: &Metric, value: Option<f64>) -> String {
    value.map_or(NOT_KNOWN.to_owned(), |v| sample::words(metric, v))
}

/// A change in the metric's unit, with its sign.
pub(super) fn change(metric: &Metric, value: f64) -> String {
    let sign = if value < 0.0 { "-" } else { "+" };
    format!("{sign}{}", sample::words(metric, value.abs()))
}

/// The class, or that the runs do not agree on one.
pub(super) fn class(class: Option<Class>) -> &'static str {
    class.map_or("no common class", Class::id)
}

/// A p-value or q-value: two significant digits.
pub(super) fn probability(p: f64) -> String {
    match p {
        p if p >= 0.1 => format!("{p:.2}"),
        p if p >= 0.01 => format!("{p:.3}"),
        p if p >= 0.0001 => format!("{p:.4}"),
        p if p > 0.0 => format!("{p:.0e}"),
        _ => "0".to_owned(),
    }
}

/// The outcome in one word, shown first.
pub(super) fn outcome(verdict: &Verdict) -> &'static str {
    match (verdict.outcome, &verdict.waived) {
        (Outcome::Pass, Some(_)) => "PASS (WAIVED)",
        (Outcome::Pass, None) => "PASS",
        (Outcome::Regressed, _) => "REGRESSED",
        (Outcome::Inconclusive, _) => "INCONCLUSIVE",
    }
}

/// A finding as a table cell.
pub(super) fn finding(finding: &Finding) -> &'static str {
    match finding {
        Finding::Same => "same",
        Finding::Worse => "worse",
        Finding::BeyondHard => "beyond hard limit",
        Finding::Better => "better",
        Finding::Unsure(_) => "unsure",
    }
}

/// Why a metric is undecided, as a stable word.
pub(super) fn doubt_code(doubt: &Doubt) -> &'static str {
    match doubt {
        Doubt::LooksWorse => "looks-worse",
        Doubt::CouldHide => "could-hide",
        Doubt::TooFewRuns => "too-few-runs",
        Doubt::NoValue { .. } => "no-value",
        Doubt::Classes => "classes",
    }
}

/// How the sides were compared, as a stable word.
pub(super) fn test_code(test: Test) -> &'static str {
    match test {
        Test::Pairs => "wilcoxon-signed-rank",
        Test::Samples => "mann-whitney",
        Test::OneRun => "prediction-interval",
        Test::None => "none",
    }
}

/// How the sides were compared, as readable text.
pub(super) fn test(test: Test) -> &'static str {
    match test {
        Test::Pairs => "Wilcoxon's signed-rank test of pairs",
        Test::Samples => "Mann and Whitney's rank test",
        Test::OneRun => {
            "one run compared with the spread of the other runs (Student's prediction \
                         interval)"
        }
        Test::None => "too few runs for a test",
    }
}

/// `10 runs before, 10 after`, `10 interleaved pairs`.
pub(super) fn runs(verdict: &Verdict) -> String {
    match (verdict.paired, verdict.runs) {
        (true, (n, _)) => count(n as u64, "interleaved pair", "interleaved pairs"),
        (false, (a, b)) => format!("{} before, {b} after", count(a as u64, "run", "runs")),
    }
}

fn sides(paired: bool, n: usize) -> String {
    match (paired, n) {
        (true, 1) => "1 pair".to_owned(),
        (true, n) => format!("{n} pairs"),
        (false, 1) => "1 run per side".to_owned(),
        (false, n) => format!("{n} runs per side"),
    }
}

/// `grew by 19.9 % (3.58 ms/unit to 4.29 ms/unit)`.
fn moved(metric: &Metric, n: &Number) -> String {
    let span = format!(
        "(from {} to {})",
        number(metric, Some(n.median_a)),
        number(metric, Some(n.median_b))
    );
    match n.change {
        Some(c) if c > 0.0 => format!("grew by {} {span}", pct(c * 100.0)),
        Some(c) if c < 0.0 => format!("fell by {} {span}", pct(c * 100.0)),
        Some(_) => format!("did not change {span}"),
        None => format!("appeared {span}"),
    }
}

fn changed(metric: &Metric, n: &Number) -> String {
    match n.change {
        Some(c) => format!(
            "changed by {} (from {} to {})",
            signed_pct(c * 100.0),
            number(metric, Some(n.median_a)),
            number(metric, Some(n.median_b))
        ),
        None => moved(metric, n),
    }
}

/// `looks 6 % worse (3.58 ms/unit to 3.79 ms/unit)`.
fn looks(limit: &Limit, n: &Number) -> String {
    let worse = n.change.map(|c| if limit.worse == Worse::Higher { c } else { -c });
    let (a, b) = (number(&limit.metric, Some(n.median_a)), number(&limit.metric, Some(n.median_b)));
    match worse {
        Some(c) if c.is_finite() => format!("looks {} worse (from {a} to {b})", pct(c * 100.0)),
        _ => format!("looks worse (from {a} to {b})"),
    }
}

fn limit(limit: &Limit) -> String {
    let relative = pct(limit.relative * 100.0);
    match limit.absolute > 0.0 {
        true => {
            let least = sample::words(&limit.metric, limit.absolute);
            format!("the limits are {relative} and {least}")
        }
        false => format!("the limit is {relative}"),
    }
}

fn beyond(judged: &Judged, n: &Number) -> String {
    let (limit, metric) = (&judged.limit, &judged.limit.metric);
    let most = limit.hard.max.filter(|most| match limit.worse {
        Worse::Higher => n.median_b > *most,
        Worse::Lower => n.median_b < *most,
    });
    let never =
        if limit.worse == Worse::Higher { "never be more than" } else { "never be less than" };
    match (most, limit.hard.relative) {
        (Some(most), _) => {
            let (now, most) = (number(metric, Some(n.median_b)), number(metric, Some(most)));
            format!("is {now}; it must {never} {most}")
        }
        (None, Some(most)) => {
            format!("{}; the hard limit of a change is {}", moved(metric, n), pct(most * 100.0))
        }
        (None, None) => moved(metric, n),
    }
}

fn same(judged: &Judged, n: &Number) -> String {
    let steady = n.a.iter().chain(&n.b).all(|v| *v == n.median_a);
    let words = changed(&judged.limit.metric, n);
    match (n.test, n.sees) {
        _ if steady => format!("{words}; every run has the same value"),
        (Test::None, _) => {
            format!("{words}, which is within the hard limit; so few runs show nothing more")
        }
        (_, Some(sees)) => {
            format!("{words}; a change of {} would have been detected", pct(sees * 100.0))
        }
        (_, None) => words,
    }
}

/// The judgement of a metric: the rest of a sentence that begins with its name.
pub(super) fn judged(judged: &Judged, judgement: &Judgement) -> String {
    let metric = &judged.limit.metric;
    match (&judged.compared, &judged.finding) {
        (_, Finding::Unsure(reason)) => doubt(judged, reason, judgement),
        (Compared::Class { a, b }, found) => match found {
            Finding::Same => format!("is {} as before", class(*b)),
            _ => format!("is {} now, and was {} before", class(*b), class(*a)),
        },
        (Compared::Number(n), Finding::Worse) => {
            format!("{}; {}", moved(metric, n), limit(&judged.limit))
        }
        (Compared::Number(n), Finding::BeyondHard) => beyond(judged, n),
        (Compared::Number(n), Finding::Better) => format!("{}, which is better", moved(metric, n)),
        (Compared::Number(n), Finding::Same) => same(judged, n),
        (Compared::Nothing, _) => "has no value".to_owned(),
    }
}

fn doubt(judged: &Judged, doubt: &Doubt, judgement: &Judgement) -> String {
    let limit = &judged.limit;
    let number = match &judged.compared {
        Compared::Number(n) => Some(&**n),
        _ => None,
    };
    let paired = number.is_some_and(|n| n.test == Test::Pairs);
    let decide = match judged.runs_to_decide(judgement) {
        // There were enough runs: the problem is not their number.
        Some(n) if number.is_some_and(|m| m.a.len().min(m.b.len()) >= n) => {
            "record more runs on a quieter machine".to_owned()
        }
        Some(n) => format!("{} would be enough to decide", sides(paired, n)),
        None => format!(
            "even 100 {} would not be enough to detect a change of {}; make the machine quieter",
            if paired { "pairs" } else { "runs per side" },
            pct(limit.must_see * 100.0)
        ),
    };
    match (doubt, number) {
        (Doubt::LooksWorse, Some(n)) => {
            format!("{}, but the runs scatter as much; {decide}", looks(limit, n))
        }
        (Doubt::CouldHide, Some(n)) => {
            let sees = match n.sees {
                Some(sees) => {
                    format!(", where only a change of {} or more is detected", pct(sees * 100.0))
                }
                None => String::new(),
            };
            format!(
                "{}, but a change of {} could hide in the scatter{sees}; {decide}",
                changed(&limit.metric, n),
                pct(limit.must_see * 100.0)
            )
        }
        (Doubt::TooFewRuns, Some(n)) => format!(
            "{}, but so few runs ({} and {}) cannot reach p <= {}; {decide}",
            changed(&limit.metric, n),
            n.a.len(),
            n.b.len(),
            judgement.alpha
        ),
        (Doubt::NoValue { run, why }, _) => format!("has no value in {run}: {why}"),
        (Doubt::Classes, _) => match judged.compared {
            Compared::Class { a, b } => {
                format!(
                    "cannot be judged: most runs are {} before and {} after",
                    class(a),
                    class(b)
                )
            }
            _ => "cannot be judged: on one side, no class is the verdict on most runs".to_owned(),
        },
        (Doubt::LooksWorse, None) => "looks worse, but the runs scatter as much".to_owned(),
        (Doubt::CouldHide, None) => "has so much scatter that it could hide a change".to_owned(),
        (Doubt::TooFewRuns, None) => "has too few runs".to_owned(),
    }
}

/// The outcome in one sentence, without the word for it.
pub(super) fn headline(report: &GateReport) -> String {
    let verdict = &report.verdict;
    let metric = &verdict.primary.limit.metric;
    let found = judged(&verdict.primary, &verdict.judgement);
    if verdict.outcome == Outcome::Inconclusive
        && let Some(problem) = verdict.problems.first()
    {
        let more = match verdict.problems.len() - 1 {
            0 => String::new(),
            n => format!(" (and {n} more)"),
        };
        return format!("these recordings cannot be compared: {}{more}", problem.words);
    }
    match (&verdict.waived, verdict.no_slower) {
        (Some(waiver), _) => {
            format!(
                "{metric} {found}; a waiver accepts this until {}: {}",
                waiver.until, waiver.reason
            )
        }
        (None, Some(time)) => format!(
            "{metric} {found}; but the work does not take longer on the largest number of CPUs \
             ({}): it only got faster on fewer CPUs",
            signed_pct(time * 100.0)
        ),
        (None, None) => format!("{metric} {found}"),
    }
}

/// p, interval, test and runs of a number: the basis of the headline.
pub(super) fn proof(judged: &Judged, verdict: &Verdict) -> Vec<String> {
    let mut words = vec![runs(verdict)];
    let Compared::Number(n) = &judged.compared else { return words };
    if let Some(p) = n.p {
        words.push(format!("p {} (limit {})", probability(p), verdict.judgement.alpha));
    }
    if let Some(interval) = interval(n) {
        words.push(format!("95 % interval {interval}"));
    }
    words.push(test(n.test).to_owned());
    words
}

/// `+16.1 % to +23.4 %`: where the change lies in 95 of 100 cases.
pub(super) fn interval(n: &Number) -> Option<String> {
    let interval = n.interval?;
    let low = signed_pct((interval.low - 1.0) * 100.0);
    Some(match interval.high {
        Some(high) => format!("{low} to {}", signed_pct((high - 1.0) * 100.0)),
        None => format!("{low} or more"),
    })
}

/// A change that explains a regression, in a sentence.
pub(super) fn reason(reason: &Reason) -> String {
    let row = &reason.row;
    let mut words = format!("{} ", row.metric);
    match (row.change(), row.change_pct()) {
        (Some(c), Some(percent)) => {
            words += &format!(
                "{} (from {} to {}, {})",
                change(&row.metric, c),
                number(&row.metric, row.a),
                number(&row.metric, row.b),
                signed_pct(percent)
            );
        }
        (Some(c), None) => words += &format!("{} (there was none before)", change(&row.metric, c)),
        (None, _) => {
            let (a, b) = (number(&row.metric, row.a), number(&row.metric, row.b));
            words += &format!("{a} to {b}");
        }
    }
    if let Some(threads) = &reason.threads {
        words += &format!(": {threads}");
    }
    words
}

/// `new`, `gone`, or which side did not record it.
pub(super) fn remark(row: &Row) -> &'static str {
    match (row.a, row.b) {
        (None, Some(_)) => "not recorded in A",
        (Some(_), None) => "not recorded in B",
        _ if row.is_new() => "new",
        _ if row.is_gone() => "gone",
        _ => "",
    }
}

/// `ns/unit`, `ns/s`, ... as text for a heading.
pub(super) fn per(per: Per, work: &str) -> String {
    match per {
        Per::Recording => "of whole recordings".to_owned(),
        Per::Second => "per second".to_owned(),
        Per::Capacity => "in per cent of capacity".to_owned(),
        Per::Work => format!("per unit of work ({work})"),
    }
}

/// What a metric measures, and the smallest change that counts.
pub(super) fn help(limits: &Limit) -> String {
    let what = what(&limits.metric);
    match limits.metric {
        Metric::Class => what,
        Metric::Number { .. } => {
            format!("{what} Only a change for the worse counts; {}.", limit(limits))
        }
    }
}

/// What a metric measures, for readers new to its name.
pub(super) fn what(metric: &Metric) -> String {
    let Metric::Number { figure, per } = metric else {
        return "The class of bottleneck that holdup diagnoses in most runs, before or \
                after."
            .to_owned();
    };
    let what = match figure.measure.kind {
        Kind::Time => "a total time",
        Kind::Count => "a count",
        Kind::Span => "a maximum or typical duration",
        Kind::Part => "a percentage that should be high",
    };
    let by = match per {
        Per::Recording => "of a whole recording",
        Per::Second => "per second of the recording",
        Per::Capacity => "as a part of capacity (CPUs x seconds)",
        Per::Work => "per unit of work",
    };
    let key = match figure.key.as_str() {
        "" => String::new(),
        key => format!(", row '{key}'"),
    };
    let table = figure.table.name();
    format!("Column '{}' of the table '{table}'{key}: {what}, {by}.", figure.measure.name)
}

/// Runs that were left out; `None` if none was.
pub(super) fn set_aside(verdict: &Verdict) -> Option<String> {
    let n = verdict.set_aside.len();
    let runs = if n == 1 { "1 run is" } else { &format!("{n} runs are") };
    let names = verdict.set_aside.iter().take(4).cloned().collect::<Vec<_>>().join(", ");
    let more = if n > 4 { format!(" and {} more", n - 4) } else { String::new() };
    let pair = if verdict.paired { ", together with their partners" } else { "" };
    let pct = verdict.judgement.others_pct;
    (n > 0).then(|| {
        format!(
            "{runs} left out{pair}, because programs other than the work took more than {pct} % of \
             capacity ({names}{more})"
        )
    })
}

/// An expired waiver.
pub(super) fn expired(waiver: &Waiver) -> String {
    format!(
        "the waiver of {} ended on {}; its reason was: {}",
        waiver.metric, waiver.until, waiver.reason
    )
}

/// The result of the self-test, in a sentence.
pub(super) fn self_test(report: &SelfTestReport) -> String {
    let test = &report.test;
    let injected = pct(test.injected * 100.0);
    match (test.unchanged.outcome, test.slowed.outcome) {
        (Outcome::Pass, Outcome::Regressed) => format!(
            "the gate fails if {} gets worse by {injected}, and passes if it does not",
            test.metric
        ),
        (Outcome::Pass, _) => {
            format!("the gate does not fail if {} gets worse by {injected}", test.metric)
        }
        (found, _) => {
            format!("the gate says '{}' if the baseline is compared with itself", found.word())
        }
    }
}

/// The smallest change that the gate detects.
pub(super) fn sees(report: &SelfTestReport) -> String {
    let power = pct(report.test.unchanged.judgement.power * 100.0);
    match report.test.sees {
        Some(sees) => {
            let sees = pct(sees * 100.0);
            format!("The smallest change that the gate detects in {power} of comparisons: {sees}")
        }
        None => format!(
            "With this number of runs the gate detects no change in {power} of comparisons."
        ),
    }
}

/// A warning that two sides may not be comparable.
pub(super) fn differences(words: &str) -> String {
    format!("the recordings were not made in the same way: {words}")
}
