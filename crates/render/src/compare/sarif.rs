//! SARIF 2.1.0: rules are metrics; results are metrics that got worse or could not be decided.
//!
//! The location of a result is a recording, because a lock or a system call has no line of source
//! code. Its logical location says what it is about. A waived regression is a suppressed result;
//! reasons against comparing the recordings are notifications of the invocation.

use super::report::{GateReport, SideHead};
use super::words;
use crate::escape;
use holdup_gate::judge::{Finding, Judged};
use holdup_gate::metric::{Metric, Table};
use holdup_gate::verdict::{Outcome, Verdict};
use serde_json::{Value, json};
use std::io::{self, Write};

const SCHEMA: &str =
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json";

/// Write the verdict as SARIF.
///
/// # Errors
/// Errors of `out`.
pub fn write(report: &GateReport, out: &mut dyn Write) -> io::Result<()> {
    let verdict = &report.verdict;
    // A policy may name a metric twice, but ids of rules must be unique.
    let mut metrics: Vec<&Judged> = Vec::new();
    for judged in std::iter::once(&verdict.primary).chain(&verdict.inform) {
        if metrics.iter().all(|m| m.limit.metric != judged.limit.metric) {
            metrics.push(judged);
        }
    }
    let results = std::iter::once(primary(report))
        .chain(verdict.inform.iter().map(|judged| informing(judged, report)));
    let results: Vec<Value> = results
        .flatten()
        .filter_map(|(metric, mut result)| {
            let index = metrics.iter().position(|m| m.limit.metric == *metric)?;
            result["ruleIndex"] = index.into();
            Some(result)
        })
        .collect();
    let log = json!({
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [{
            "tool": { "driver": {
                "name": "holdup",
                "version": env!("CARGO_PKG_VERSION"),
                "informationUri": env!("CARGO_PKG_REPOSITORY"),
                "rules": metrics.iter().map(|judged| rule(judged)).collect::<Vec<_>>(),
            } },
            "automationDetails": { "id": "holdup gate/" },
            "invocations": [{
                "executionSuccessful": true,
                "toolExecutionNotifications": notifications(verdict),
            }],
            "artifacts": artifacts(report),
            "columnKind": "unicodeCodePoints",
            "results": results,
            "properties": {
                "outcome": verdict.outcome.word(),
                "runs": words::runs(verdict),
                "work": verdict.work.to_string(),
            },
        }],
    });
    serde_json::to_writer_pretty(&mut *out, &log)?;
    out.write_all(b"\n")
}

fn rule(judged: &Judged) -> Value {
    let metric = &judged.limit.metric;
    let help = words::help(&judged.limit);
    json!({
        "id": metric.to_string(),
        "shortDescription": { "text": format!("{metric} must not get worse") },
        "fullDescription": { "text": words::what(metric) },
        "help": { "text": help },
        "defaultConfiguration": { "level": "error" },
    })
}

/// The metric that decides, unless it passed.
fn primary(report: &GateReport) -> Option<(&Metric, Value)> {
    let verdict = &report.verdict;
    let level = match (verdict.outcome, &verdict.waived) {
        (Outcome::Regressed, _) => "error",
        (Outcome::Inconclusive, _) => "warning",
        (Outcome::Pass, Some(_)) => "note",
        (Outcome::Pass, None) => return None,
    };
    let mut result = result(&verdict.primary, level, &words::headline(report), report);
    if let Some(waiver) = &verdict.waived {
        result["suppressions"] = json!([{
            "kind": "external",
            "status": "accepted",
            "justification": format!("until {}: {}", waiver.until, waiver.reason),
        }]);
    }
    if !verdict.why.is_empty() {
        let why = verdict.why.iter().enumerate().map(|(i, reason)| {
            json!({
                "id": i + 1,
                "message": message(&words::reason(reason)),
                "logicalLocations": [logical(&reason.row.metric)],
            })
        });
        result["relatedLocations"] = why.collect();
    }
    Some((&verdict.primary.limit.metric, result))
}

/// A metric that decides nothing, if it got worse.
fn informing<'a>(judged: &'a Judged, report: &GateReport) -> Option<(&'a Metric, Value)> {
    if !matches!(judged.finding, Finding::Worse | Finding::BeyondHard) {
        return None;
    }
    let metric = &judged.limit.metric;
    let found = words::judged(judged, &report.verdict.judgement);
    let words = format!("{metric} {found} (for information only)");
    Some((metric, result(judged, "note", &words, report)))
}

fn result(judged: &Judged, level: &str, words: &str, report: &GateReport) -> Value {
    let metric = &judged.limit.metric;
    let place = name(&report.b).map(|name| json!({ "artifactLocation": { "uri": uri(name) } }));
    let mut location = json!({ "logicalLocations": [logical(metric)] });
    if let Some(place) = place {
        location["physicalLocation"] = place;
    }
    json!({
        "ruleId": metric.to_string(),
        "level": level,
        "message": message(words),
        "locations": [location],
        "fingerprints": { "holdup/metric/v1": metric.to_string() },
    })
}

/// A plain text message. In it `[words](address)` is a link and `{0}` a placeholder, unless the
/// bracket is escaped or the brace doubled (SARIF 2.1.0, 3.11.5 and 3.11.6).
fn message(words: &str) -> Value {
    let mut text = escape(words).replace('{', "{{").replace('}', "}}");
    if text.contains("](") {
        text = text.replace('\\', "\\\\").replace('[', "\\[").replace(']', "\\]");
    }
    json!({ "text": text })
}

/// What a metric is about: a lock, a system call, an object.
fn logical(metric: &Metric) -> Value {
    let Metric::Number { figure, .. } = metric else {
        return json!({ "name": "verdict", "fullyQualifiedName": "verdict.class", "kind": "class" });
    };
    let kind = match figure.table {
        Table::Locks => "lock",
        Table::Syscalls => "system call",
        Table::Waits => "object",
        Table::Procs => "process",
        Table::Irqs => "interrupt",
        Table::Events => "event",
        Table::Ledger => "leaf",
        Table::Scaling => "number of CPUs",
        Table::Contention | Table::Lock | Table::Switches | Table::Runq => "table",
    };
    let name = if figure.key.is_empty() { figure.table.name() } else { &figure.key };
    let qualified = figure.to_string();
    json!({ "name": name, "fullyQualifiedName": qualified, "kind": kind })
}

/// Reasons against comparing the recordings, and expired waivers.
fn notifications(verdict: &Verdict) -> Vec<Value> {
    let problems = verdict.problems.iter().map(|p| {
        let text = format!("{}; do: {}", p.words, p.remedy);
        json!({ "descriptor": { "id": p.code }, "level": "warning", "message": message(&text) })
    });
    let expired = verdict.expired.iter().map(|w| {
        let message = message(&words::expired(w));
        json!({ "descriptor": { "id": "expired-waiver" }, "level": "warning", "message": message })
    });
    let aside = words::set_aside(verdict).map(|words| {
        json!({ "descriptor": { "id": "set-aside" }, "level": "note", "message": message(&words) })
    });
    problems.chain(aside).chain(expired).collect()
}

/// The recording at which a result is shown.
fn name(side: &SideHead) -> Option<&str> {
    side.file.as_deref().or(side.runs.first().map(String::as_str))
}

fn artifacts(report: &GateReport) -> Vec<Value> {
    let files = |side: &SideHead| match &side.file {
        Some(file) => vec![uri(file)],
        None => side.runs.iter().map(|run| uri(run)).collect(),
    };
    let mut all: Vec<String> = Vec::new();
    for uri in files(&report.b).into_iter().chain(files(&report.a)) {
        // The schema requires unique entries.
        if !all.contains(&uri) {
            all.push(uri);
        }
    }
    all.into_iter().map(|uri| json!({ "location": { "uri": uri } })).collect()
}

/// A file name as a URI reference (RFC 3986): everything that is not unreserved is percent-encoded.
/// Otherwise the text before a colon would be a scheme.
fn uri(path: &str) -> String {
    let mut out = String::new();
    for byte in path.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' => {
                out.push(byte.into());
            }
            _ => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}
