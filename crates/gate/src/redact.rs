//! Names that may be private, hashed: a baseline stays comparable without naming programs.
//!
//! Hosts, programs, and the names of probes are hashed; the kernel's own names (system calls,
//! locks, softirqs, the ledger) stay readable. The hash is SHA-256, cut to 48 bits. It hides names
//! that cannot be guessed; anyone who knows a name can test for it.

use crate::figures::Figures;
use crate::metric::{Figure, Metric, Table};
use crate::run::Run;
use sha2::{Digest, Sha256};

/// Hash the names in a run, and its file's name.
pub(crate) fn run(run: &mut Run) {
    if let Some(host) = &mut run.setting.host {
        *host = hashed(host);
    }
    for event in &mut run.setting.events {
        *event = hashed_event(event);
    }
    run.setting.events.sort();
    for (program, _) in &mut run.others.programs {
        *program = hashed(program);
    }
    let mut figures = Figures::default();
    for (figure, value) in run.figures.iter() {
        let key = hashed_key(figure.table, &figure.key);
        figures.set(Figure { key, ..figure.clone() }, value);
    }
    run.figures = figures;
    run.name = hashed(&run.name);
    // These sentences are full of names.
    run.objects.clear();
}

/// The key in a metric, so that it matches redacted runs.
pub(crate) fn metric(metric: &mut Metric) {
    if let Metric::Number { figure, .. } = metric {
        figure.key = hashed_key(figure.table, &figure.key);
    }
}

/// The key of a row.
fn hashed_key(table: Table, key: &str) -> String {
    match table {
        Table::Procs => hashed(key),
        // `mutex server`: only the program's name is private.
        Table::Waits => match key.split_once(' ') {
            Some((kind, program)) => format!("{kind} {}", hashed(program)),
            None => key.to_owned(),
        },
        Table::Events => hashed_event(key),
        _ => key.to_owned(),
    }
}

fn hashed_event(name: &str) -> String {
    let probe = ["probe", "sdt", "uprobes", "kprobes", "synthetic"];
    match name.split_once(':') {
        Some((system, event)) if probe.iter().any(|p| system.starts_with(p)) => {
            format!("probe:{}", hashed(&format!("{system}:{event}")))
        }
        _ => name.to_owned(),
    }
}

fn hashed(name: &str) -> String {
    let digest = Sha256::digest(name.as_bytes());
    let hex: String = digest.iter().take(6).map(|b| format!("{b:02x}")).collect();
    format!("x{hex}")
}
