//! Shares and rates, rounded alike everywhere.

/// Per cent, rounded to three decimals so that output is the same on every machine.
pub fn percent(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { round3(part as f64 * 100.0 / whole as f64) }
}

/// Events per second, rounded to three decimals.
pub fn per_second(count: u64, ns: u64) -> f64 {
    if ns == 0 { 0.0 } else { round3(count as f64 * 1e9 / ns as f64) }
}

pub(crate) fn round3(x: f64) -> f64 {
    (x * 1000.0).round() / 1000.0
}
