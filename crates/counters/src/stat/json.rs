//! Lines of `perf stat -j`: an object each.

use super::{Line, Part, Row, nanos, number, value};
use crate::measurement::Value;
use serde_json::Value as Json;

/// Keys that say which part of the machine a line is about.
const PLACES: [&str; 7] = ["cpu", "core", "cluster", "cache", "die", "socket", "node"];
/// Keys that say which thread or control group a line is about.
const GROUPS: [&str; 2] = ["thread", "cgroup"];

pub(super) fn row(line: &str) -> Line {
    let parsed = serde_json::from_str::<Json>(line).or_else(|_| {
        // perf 6.1 prints `nan` for a ratio with denominator 0, which is not JSON.
        let fixed = line.replace(": -nan", ": null").replace(": nan", ": null");
        serde_json::from_str(&fixed.replace(": inf", ": null"))
    });
    let Ok(Json::Object(object)) = parsed else { return Line::Other };
    let text = |key: &str| object.get(key).and_then(Json::as_str).map(str::trim);
    // perf prints numbers as numbers or as text, depending on its version.
    let figure = |key: &str| match object.get(key)? {
        Json::Number(n) => n.as_f64(),
        Json::String(s) => number(s.trim()),
        _ => None,
    };
    let Some(event) = text("event").filter(|event| !event.is_empty()) else {
        return if object.contains_key("metric-value") { Line::Metric } else { Line::Other };
    };
    let count = text("counter-value")
        .and_then(value)
        .or_else(|| figure("counter-value").filter(|n| *n >= 0.0).map(Ok));
    let value = match count {
        Some(Ok(value)) => {
            Value::Counted { value, running_pct: figure("pcnt-running").unwrap_or(100.0) }
        }
        Some(Err(why)) => Value::Missing(why),
        None => return Line::Other,
    };
    let named = |keys: &[&str]| {
        let of = |key: &&str| object.get(*key).map(|v| format!("{key} {v}"));
        keys.iter().find_map(of)
    };
    let part = match (named(&PLACES), named(&GROUPS)) {
        (Some(place), _) => Part::Place(place),
        (None, Some(group)) => Part::Group(group),
        (None, None) => Part::All,
    };
    Line::Row(Row {
        until_ns: figure("interval").and_then(nanos),
        part,
        event: event.to_owned(),
        value,
        unit: text("unit").unwrap_or("").to_owned(),
        metric: figure("metric-value").zip(text("metric-unit").map(str::to_owned)),
    })
}
