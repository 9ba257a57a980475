//! `holdup export`: the files are what docs/tables.md says, others can read them, and single facts
//! add up to the tables of the verbs.

mod chrome;
mod document;
mod others;
mod sums;
mod wrong;

use std::path::Path;
use tempfile::TempDir;

/// Traces that have system calls, switches, interrupts, locks and phases between them, one of them
/// with lost events.
const TRACES: [&str; 7] = [
    "thr_mutex_perfz_c8",
    "lost_sysloop_n2",
    "host_falseshare_n2",
    "imb_server_c4",
    "io_disk_perf_c4",
    "native_ticks",
    "ser_append_case2_c2",
];

/// The tables of a scenario in a folder of their own.
fn export(scenario: &str, format: &str, more: &[&str]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let trace = crate::support::recording(scenario);
    let mut args = vec!["export", trace.to_str().unwrap(), "--to", name(folder.path())];
    args.extend(["--format", format, "-q"]);
    args.extend(more);
    crate::support::stdout(&args);
    folder
}

fn name(path: &Path) -> &str {
    path.to_str().unwrap()
}
