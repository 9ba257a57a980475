//! SARIF 2.1.0: rules are metrics, results are those that got worse or could not be decided.
//!
//! The place of a result is a recording, since a lock or a system call has no line of source code.
//! What it is about stands in its logical location. A waived regression is a suppressed result;
//! what keeps recordings from being compared is a notification of the invocation.

use super::report::{GateReport, SideHead};
use super::words;
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
/// Those of `out`.
pub fn write(report: &GateReport, out: &mut dyn Write) -> io::Result<()> {
    let verdict = &report.verdict;
    let judged = || std::iter::once(&verdict.primary).chain(&verdict.inform);
    let mut results: Vec<Value> = primary(report).into_iter().collect();
    results
        .extend(verdict.inform.iter().enumerate().filter_map(|(i, j)| informing(i + 1, j, report)));
    let log = json!({
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [{
            "tool": { "driver": {
                "name": "holdup",
                "version": env!("CARGO_PKG_VERSION"),
                "informationUri": env!("CARGO_PKG_REPOSITORY"),
                "rules": judged().map(rule).collect::<Vec<_>>(),
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
    let help = words::help(metric);
    json!({
        "id": metric.to_string(),
        "shortDescription": { "text": format!("{metric} must not get worse") },
        "fullDescription": { "text": help },
        "help": { "text": format!("{help} {}.", capital(&words::limit(&judged.limit))) },
        "defaultConfiguration": { "level": "error" },
    })
}

fn capital(words: &str) -> String {
    let mut chars = words.chars();
    chars.next().map_or(String::new(), |c| c.to_uppercase().chain(chars).collect())
}

/// The metric that decides, unless it passed.
fn primary(report: &GateReport) -> Option<Value> {
    let verdict = &report.verdict;
    let level = match (verdict.outcome, &verdict.waived) {
        (Outcome::Regressed, _) => "error",
        (Outcome::Inconclusive, _) => "warning",
        (Outcome::Pass, Some(_)) => "note",
        (Outcome::Pass, None) => return None,
    };
    let mut result = result((0, &verdict.primary), level, words::headline(report), report);
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
                "message": { "text": words::reason(reason) },
                "logicalLocations": [logical(&reason.row.metric)],
            })
        });
        result["relatedLocations"] = why.collect();
    }
    Some(result)
}

/// A metric that decides nothing, if it got worse.
fn informing(index: usize, judged: &Judged, report: &GateReport) -> Option<Value> {
    if !matches!(judged.finding, Finding::Worse | Finding::BeyondHard) {
        return None;
    }
    let found = words::judged(judged, &report.verdict.judgement);
    let message = format!("{} {found} (it decides nothing)", judged.limit.metric);
    Some(result((index, judged), "note", message, report))
}

fn result(
    (index, judged): (usize, &Judged),
    level: &str,
    message: String,
    report: &GateReport,
) -> Value {
    let metric = &judged.limit.metric;
    let place = name(&report.b).map(|name| json!({ "artifactLocation": { "uri": uri(name) } }));
    let mut location = json!({ "logicalLocations": [logical(metric)] });
    if let Some(place) = place {
        location["physicalLocation"] = place;
    }
    json!({
        "ruleId": metric.to_string(),
        "ruleIndex": index,
        "level": level,
        "message": { "text": message },
        "locations": [location],
        "fingerprints": { "holdup/metric/v1": metric.to_string() },
    })
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
        Table::Contention | Table::Lock | Table::Switches | Table::Runq => "table",
    };
    let name = if figure.key.is_empty() { figure.table.name() } else { &figure.key };
    let qualified = figure.to_string();
    json!({ "name": name, "fullyQualifiedName": qualified, "kind": kind })
}

/// What keeps the recordings from being compared, and waivers that are over.
fn notifications(verdict: &Verdict) -> Vec<Value> {
    let problems = verdict.problems.iter().map(|p| {
        let text = format!("{}; do: {}", p.words, p.remedy);
        json!({ "descriptor": { "id": p.code }, "level": "warning", "message": { "text": text } })
    });
    let expired = verdict.expired.iter().map(|w| {
        let message = json!({ "text": words::expired(w) });
        json!({ "descriptor": { "id": "expired-waiver" }, "level": "warning", "message": message })
    });
    problems.chain(expired).collect()
}

/// The recording that a result is shown at.
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
        // The schema wants each once.
        if !all.contains(&uri) {
            all.push(uri);
        }
    }
    all.into_iter().map(|uri| json!({ "location": { "uri": uri } })).collect()
}

/// A file name as a URI reference (RFC 3986): whatever is not unreserved is percent-encoded. A
/// colon would otherwise make a scheme of what stands before it.
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
