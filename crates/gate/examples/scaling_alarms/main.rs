//! How often a gate on scaling raises a false alarm, and how often it detects a regression,
//! compared with gates on the wall-clock time of the same recordings.
//!
//! ```text
//! cargo run -p holdup-gate --example scaling_alarms             prints the table
//! ```
//!
//! With HOLDUP_BLESS=1 the table goes into `docs/ci.md`.

#[path = "../false_alarms/draw.rs"]
#[allow(dead_code, reason = "this experiment has no runs in a row")]
mod draw;
mod experiment;

use experiment::{DOCUMENT, QUESTIONS, WORKLOADS, Workload, heading, row};
use std::process::ExitCode;

/// Comparisons per question; ten times as many if every alarm is false.
const TIMES: usize = 200;

fn main() -> ExitCode {
    match table() {
        Ok(table) => {
            print!("{table}");
            ExitCode::SUCCESS
        }
        Err(why) => {
            eprintln!("scaling_alarms: {why}");
            ExitCode::FAILURE
        }
    }
}

fn table() -> Result<String, String> {
    let mut table = heading();
    for name in WORKLOADS {
        let workload = Workload::load(name)?;
        for question in QUESTIONS {
            let times = if question.every_alarm_is_false() { 10 * TIMES } else { TIMES };
            table += &row(name, question, &workload.ask(*question, times)?);
        }
    }
    if std::env::var_os("HOLDUP_BLESS").is_some() {
        DOCUMENT.bless(&table)?;
    }
    Ok(table)
}
