//! How often the gate raises a false alarm, and how often it detects a regression: comparisons
//! drawn from repeated recordings, judged by the gate, by plain thresholds, and by another gate.
//!
//! ```text
//! cargo run --release -p holdup-gate --example false_alarms             prints the table
//!   ... --example false_alarms -- keep RUNS.json                         strips a baseline file
//!   ... --example false_alarms -- values                                 the numbers compared
//! ```
//!
//! `fixtures/gate/experiment.sh` does everything, including the recordings. With HOLDUP_BLESS=1 the
//! answers go to `fixtures/gate/results.csv` and the table into `docs/ci.md`.

mod document;
mod draw;
mod experiment;
mod results;

use experiment::{QUESTIONS, TIMES, WORKLOADS, Workload, folder};
use holdup_gate::{Baseline, Figure};
use results::{Other, Results, checksum};
use std::process::ExitCode;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let done = match args.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => compare(),
        ["keep", file] => keep(file),
        ["values"] => print_values(),
        _ => Err("usage: false_alarms [keep RUNS.json | values]".to_owned()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("false_alarms: {why}");
            ExitCode::FAILURE
        }
    }
}

/// Ask all questions, and print the table.
fn compare() -> Result<(), String> {
    let folder = folder();
    let results = Results::of(&folder, TIMES)?;
    if std::env::var_os("HOLDUP_BLESS").is_some() {
        document::write(&folder.join("results.csv"), &results.text())?;
        document::bless(&folder)?;
    }
    let other = Other::parse(&document::read(&folder.join("otava.csv"))?)?;
    if other.of != results.of {
        eprintln!("false_alarms: otava.csv is of other runs: fixtures/gate/experiment.sh");
    }
    print!("{}", results::table(&results, &other));
    Ok(())
}

/// Print a baseline file with only the figures that decide, or could have.
fn keep(file: &str) -> Result<(), String> {
    let mut baseline =
        Baseline::parse(&document::read(file.as_ref())?).map_err(|e| format!("{file}: {e}"))?;
    for run in &mut baseline.runs {
        let of_interest = |figure: &Figure| {
            let name = figure.to_string();
            name == "syscalls.write.count"
                || ["syscalls.futex", "syscalls.flock", "contention", "lock", "procs.work"]
                    .into_iter()
                    .any(|row| {
                        let column = name.strip_prefix(row).and_then(|c| c.strip_prefix('.'));
                        matches!(column, Some("total_ns" | "wait_ns" | "blocked_ns"))
                    })
        };
        let mut kept = holdup_gate::Figures::default();
        for (figure, value) in run.figures.iter().filter(|(figure, _)| of_interest(figure)) {
            kept.set(figure.clone(), value);
        }
        run.figures = kept;
        run.others.programs.clear();
        run.setting.host = None;
    }
    print!("{}", baseline.text());
    Ok(())
}

/// Print the numbers of every comparison, for other gates: workload, question, values before and
/// after.
fn print_values() -> Result<(), String> {
    let folder = folder();
    println!("# of {}\nworkload,question,a,b", checksum(&folder)?);
    for name in WORKLOADS {
        let workload = Workload::load(&folder, name)?;
        for question in QUESTIONS {
            for (a, b) in workload.comparisons(*question, TIMES) {
                let (a, b) = workload.values(&a, &b)?;
                let words =
                    |v: Vec<f64>| v.iter().map(f64::to_string).collect::<Vec<_>>().join(" ");
                println!("{name},{},{},{}", question.key(), words(a), words(b));
            }
        }
    }
    Ok(())
}
