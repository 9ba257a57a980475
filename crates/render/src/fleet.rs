//! Findings over many traces: `holdup fleet`.

use crate::report::SCHEMA;
use crate::table::Table;
use crate::text::units::count;
use crate::text::{self, TextOptions};
use crate::{Format, csv, html, markdown, schema};
use serde::Serialize;
use std::io::{self, Write};

/// How many traces were judged, and what happened to the files.
#[derive(Clone, Debug, Default, PartialEq, Serialize, schemars::JsonSchema)]
pub struct FleetHead {
    /// Number of files found. A folder that is a single trace counts as one file.
    pub files: u64,
    /// Number of traces in the tables; traces with the same content count as one.
    pub judged: u64,
    /// Number of files with the same content as another file.
    pub same: u64,
    /// Number of files that are not traces.
    pub no_traces: u64,
    /// Number of files that could not be read; `failed` names them.
    pub failed: u64,
    /// Number of recorded hosts. All traces without a host name count as one host.
    pub hosts: u64,
    /// When the first trace was recorded, UTC: the time in the trace, or else the time at which the
    /// file was last written.
    pub first_seen: Option<String>,
    /// When the last trace was recorded, UTC: the time in the trace, or else the time at which the
    /// file was last written.
    pub last_seen: Option<String>,
    /// Number of files that contain the tables.
    pub table_files: u64,
    /// Size of the files that contain the tables, in bytes.
    pub table_bytes: u64,
}

/// A verdict, and the traces that have it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, schemars::JsonSchema)]
#[schemars(rename = "FleetVerdict")]
pub struct VerdictRow {
    /// Class of the verdict.
    pub verdict: String,
    /// Number of traces with this verdict.
    pub traces: u64,
    /// Traces with this verdict, in per cent of all traces.
    pub pct: f64,
    /// Number of hosts with this verdict.
    pub hosts: u64,
    /// CPU time lost to the bottleneck; null if there is none, or if the time is unknown.
    pub lost_cpu_ns: Option<u64>,
    /// When the first of these traces was recorded, UTC.
    pub first_seen: String,
    /// When the last of these traces was recorded, UTC.
    pub last_seen: String,
    /// The trace in which the bottleneck costs most CPU time.
    pub worst: String,
}

/// An object, lock or system call that costs CPU time, with a name that is the same in all traces.
#[derive(Clone, Debug, Default, PartialEq, Serialize, schemars::JsonSchema)]
#[schemars(rename = "FleetCost")]
pub struct CostRow {
    /// Name of the row: for an object, its kind and the waiting program; for a lock, its type and
    /// class; for a system call, its name.
    pub name: String,
    /// CPU time that it costs: for an object, the idle time that it causes; for a lock, the time
    /// spent spinning; for a system call, the time spent in it. Null if no trace contains it.
    pub cpu_ns: Option<u64>,
    /// Time for which threads were asleep because of it; null if no trace contains it.
    pub wait_ns: Option<u64>,
    /// Number of waits or calls.
    pub times: u64,
    /// Number of traces in which it is among the first twenty rows.
    pub traces: u64,
    /// Number of hosts of these traces.
    pub hosts: u64,
    /// When the first of these traces was recorded, UTC.
    pub first_seen: String,
    /// When the last of these traces was recorded, UTC.
    pub last_seen: String,
    /// The trace in which it costs most CPU time.
    pub worst: String,
}

/// A service, container or pod: a control group with a name that is the same in all traces.
#[derive(Clone, Debug, Default, PartialEq, Serialize, schemars::JsonSchema)]
#[schemars(rename = "FleetService")]
pub struct ServiceRow {
    /// Name of the service, container or pod; ids of containers, pods and sessions are replaced by
    /// `*`.
    pub name: String,
    /// Time for which its threads were ready but had no CPU: the sum of `ready_ns` and
    /// `throttled_ns`; null if no trace has wake-ups.
    pub denied_ns: Option<u64>,
    /// Part of `denied_ns` during which other threads had the CPU.
    pub ready_ns: Option<u64>,
    /// Part of `denied_ns` during which a quota throttled the threads.
    pub throttled_ns: Option<u64>,
    /// CPU time that its threads used.
    pub used_ns: u64,
    /// Number of control groups with this name: copies on one machine count separately.
    pub groups: u64,
    /// Number of traces in which it is among the first fifty groups.
    pub traces: u64,
    /// Number of hosts of these traces.
    pub hosts: u64,
    /// When the first of these traces was recorded, UTC.
    pub first_seen: String,
    /// When the last of these traces was recorded, UTC.
    pub last_seen: String,
    /// The trace with the largest `denied_ns`.
    pub worst: String,
}

/// A file that could not be read.
#[derive(Clone, Debug, Default, PartialEq, Serialize, schemars::JsonSchema)]
#[schemars(rename = "FleetFailed")]
pub struct FailedRow {
    /// Path of the file.
    pub path: String,
    /// Why the file could not be read.
    pub error: String,
}

/// The findings in a fleet.
#[derive(Clone, Debug, Default)]
pub struct FleetReport {
    /// The number of traces.
    pub head: FleetHead,
    /// The verdicts and how often they occur.
    pub verdicts: Vec<VerdictRow>,
    /// Objects whose waits cost time.
    pub objects: Vec<CostRow>,
    /// Locks of the kernel.
    pub locks: Vec<CostRow>,
    /// System calls.
    pub syscalls: Vec<CostRow>,
    /// Services and containers.
    pub services: Vec<ServiceRow>,
    /// What could not be read.
    pub failed: Vec<FailedRow>,
}

/// The answer of `fleet` in JSON. It is about many traces, not about one.
#[derive(Serialize, schemars::JsonSchema)]
pub(crate) struct Fleet<V, C, S, F> {
    /// Version of this format.
    schema: &'static str,
    /// The verb.
    command: &'static str,
    /// How many traces were judged, and what happened to the files.
    fleet: FleetHead,
    /// How often each verdict occurred, the most frequent first.
    verdicts: V,
    /// What threads waited for while CPUs were idle, the most expensive first.
    objects: C,
    /// Kernel locks that threads waited for, the most expensive first.
    locks: C,
    /// System calls, the most CPU time first.
    syscalls: C,
    /// Services and containers of traces with control groups, the most denied CPU time first.
    services: S,
    /// Files that could not be read.
    failed: F,
}

impl FleetReport {
    /// Write it in `format`, with at most `entries` rows per ranking. Unreadable files are always
    /// listed completely.
    pub fn write(
        &self,
        entries: Option<usize>,
        format: &Format,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        let mut tables = [
            schema::fleet_verdicts(&self.verdicts),
            schema::fleet_objects(&self.objects),
            schema::fleet_locks(&self.locks),
            schema::fleet_syscalls(&self.syscalls),
            schema::fleet_services(&self.services),
            schema::fleet_failed(&self.failed),
        ];
        let [ranked @ .., _] = &mut tables;
        ranked.iter_mut().for_each(|table| table.entries = entries);
        match format {
            Format::Text(options) => self.text(&tables, options, out),
            Format::Json => {
                serde_json::to_writer_pretty(&mut *out, &self.json(&tables))?;
                writeln!(out)
            }
            // The page draws its tables from the JSON.
            Format::Html => html::write(&self.json(&tables), html::Extras::default(), out),
            Format::Csv { separator } => csv::write_tables(&tables, separator, out),
            Format::Markdown => {
                writeln!(out, "# holdup fleet\n\n{}\n", markdown::plain(&self.words()))?;
                tables.iter().try_for_each(|table| {
                    writeln!(out, "## {}\n", table.name)?;
                    markdown::write_table(table, out)?;
                    writeln!(out)
                })
            }
        }
    }

    fn json<'a>(&self, tables: &'a [Table; 6]) -> impl Serialize + use<'a> {
        let [verdicts, objects, locks, syscalls, services, failed] =
            tables.each_ref().map(Table::json_rows);
        let fleet = self.head.clone();
        let (schema, command) = (SCHEMA, "fleet");
        Fleet { schema, command, fleet, verdicts, objects, locks, syscalls, services, failed }
    }

    /// `38 traces of 3 hosts, 2026-11-20 to 2026-11-23; of 41 files 2 are no traces, ...`
    fn words(&self) -> String {
        let head = &self.head;
        let mut words = count(head.judged, "trace", "traces");
        words += &format!(" of {}", count(head.hosts, "host", "hosts"));
        if let (Some(first), Some(last)) = (&head.first_seen, &head.last_seen) {
            let (first, last) = (day(first), day(last));
            words += &match first == last {
                true => format!(", {first}"),
                false => format!(", {first} to {last}"),
            };
        }
        let others = [
            (
                head.same,
                "has the same content as another trace",
                "have the same content as other traces",
            ),
            (head.no_traces, "is not a trace", "are not traces"),
            (head.failed, "could not be read", "could not be read"),
        ];
        let others: Vec<String> = (others.into_iter().filter(|(n, ..)| *n > 0))
            .map(|(n, one, more)| format!("{n} {}", if n == 1 { one } else { more }))
            .collect();
        if !others.is_empty() {
            words += &format!("; of {}", count(head.files, "file", "files"));
            words += &format!(" {}", others.join(", "));
        }
        words
    }

    fn text(
        &self,
        tables: &[Table; 6],
        options: &TextOptions,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        if !options.quiet {
            text::prose(&self.words(), "", "  ", options, out)?;
        }
        let [ranked @ .., _] = tables;
        text::write_tables(ranked, !options.quiet, options, out)?;
        if self.failed.is_empty() {
            return Ok(());
        }
        let paint = options.paint();
        let title = format!("Could not be read ({})", self.failed.len());
        writeln!(out, "\n{}", paint.error(title))?;
        self.failed.iter().try_for_each(|failed| {
            let first = format!("  {}: ", text::escape(&failed.path));
            text::prose(&failed.error, &first, "      ", options, out)
        })
    }
}

/// The day of a time.
fn day(time: &str) -> &str {
    time.split('T').next().unwrap_or(time)
}
