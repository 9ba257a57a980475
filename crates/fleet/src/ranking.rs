//! Ranks what costs most across all traces.

use crate::date;
use crate::manifest::{Manifest, Row};
use crate::named::{Named, Seen, plus};
use crate::services::Services;
use holdup_export::{Digest, TRACE, TableDef};
use holdup_gate::role_of;
use holdup_render::fleet::{CostRow, FailedRow, FleetHead, FleetReport, VerdictRow};
use std::collections::{BTreeMap, BTreeSet};

/// Sums over the traces, by what they are about.
#[derive(Default)]
pub(crate) struct Ranking {
    traces: u64,
    hosts: BTreeMap<String, u32>,
    span: Option<(i64, i64)>,
    verdicts: BTreeMap<String, Sum>,
    objects: BTreeMap<String, Sum>,
    locks: BTreeMap<String, Sum>,
    syscalls: BTreeMap<String, Sum>,
    services: Services,
}

#[derive(Default)]
struct Sum {
    /// CPU time; `None` while no trace had it.
    cpu_ns: Option<u64>,
    /// Time asleep; `None` while no trace had it.
    wait_ns: Option<u64>,
    times: u64,
    traces: u64,
    hosts: BTreeSet<u32>,
    first: i64,
    last: i64,
    /// The largest contribution and its trace.
    worst: (Option<u64>, String),
}

/// A trace's contribution to a sum.
#[derive(Clone, Copy, Default)]
struct Part {
    cpu_ns: Option<u64>,
    wait_ns: Option<u64>,
    times: u64,
}

impl Part {
    fn and(self, other: Part) -> Part {
        Part {
            cpu_ns: plus(self.cpu_ns, other.cpu_ns),
            wait_ns: plus(self.wait_ns, other.wait_ns),
            times: self.times.saturating_add(other.times),
        }
    }
}

impl Ranking {
    /// Add a trace: the rows of its tables.
    pub(crate) fn add(&mut self, at: &Seen<'_>, tables: &[TableDef], rows: &Digest) {
        let &Seen { ns, host, path } = at;
        self.traces += 1;
        self.span = Some(self.span.map_or((ns, ns), |(a, b)| (a.min(ns), b.max(ns))));
        let next = self.hosts.len() as u32;
        let host = *self.hosts.entry(host.to_owned()).or_insert(next);
        for table in tables {
            if table.name == "by_cgroup" {
                let rows = rows.get(table.name).map_or(&[][..], Vec::as_slice);
                self.services.add(at, host, table, rows);
                continue;
            }
            let mut parts: BTreeMap<String, Part> = BTreeMap::new();
            for row in rows.get(table.name).into_iter().flatten() {
                if let Some((name, part)) = part(&Named { table, row }) {
                    let sum = parts.entry(name).or_default();
                    *sum = sum.and(part);
                }
            }
            let sums = match table.name {
                TRACE => &mut self.verdicts,
                "by_object" => &mut self.objects,
                "by_lock_class" => &mut self.locks,
                "by_syscall" => &mut self.syscalls,
                _ => continue,
            };
            for (name, part) in parts {
                let sum = sums.entry(name).or_insert(Sum { first: ns, last: ns, ..Sum::default() });
                if sum.traces == 0 || part.cpu_ns > sum.worst.0 {
                    sum.worst = (part.cpu_ns, path.to_owned());
                }
                sum.cpu_ns = plus(sum.cpu_ns, part.cpu_ns);
                sum.wait_ns = plus(sum.wait_ns, part.wait_ns);
                sum.times = sum.times.saturating_add(part.times);
                sum.traces += 1;
                sum.hosts.insert(host);
                (sum.first, sum.last) = (sum.first.min(ns), sum.last.max(ns));
            }
        }
    }

    /// The rows to show.
    pub(crate) fn report(self, files: &[Row], manifest: &Manifest<'_>) -> FleetReport {
        let outcome = |word: &str| files.iter().filter(|f| f.outcome == word).count() as u64;
        let whole = self.traces;
        let verdict = |(verdict, sum): (String, Sum)| VerdictRow {
            verdict,
            traces: sum.traces,
            pct: sum.traces as f64 * 100.0 / whole.max(1) as f64,
            hosts: sum.hosts.len() as u64,
            lost_cpu_ns: sum.cpu_ns,
            first_seen: date::time(sum.first),
            last_seen: date::time(sum.last),
            worst: sum.worst.1,
        };
        let failed =
            |file: &Row| Some(FailedRow { path: file.path.clone(), error: file.error.clone()? });
        FleetReport {
            head: FleetHead {
                files: files.len() as u64,
                judged: self.traces,
                same: outcome("same"),
                no_traces: outcome("no-trace"),
                failed: outcome("failed"),
                hosts: self.hosts.len() as u64,
                first_seen: self.span.map(|(first, _)| date::time(first)),
                last_seen: self.span.map(|(_, last)| date::time(last)),
                table_files: manifest.tables.len() as u64,
                table_bytes: manifest.tables.iter().map(|f| f.bytes).sum(),
            },
            verdicts: self.verdicts.into_iter().map(verdict).collect(),
            objects: costs(self.objects),
            locks: costs(self.locks),
            syscalls: costs(self.syscalls),
            services: self.services.rows(),
            failed: files.iter().filter_map(failed).collect(),
        }
    }
}

fn costs(sums: BTreeMap<String, Sum>) -> Vec<CostRow> {
    let row = |(name, sum): (String, Sum)| CostRow {
        name,
        cpu_ns: sum.cpu_ns,
        wait_ns: sum.wait_ns,
        times: sum.times,
        traces: sum.traces,
        hosts: sum.hosts.len() as u64,
        first_seen: date::time(sum.first),
        last_seen: date::time(sum.last),
        worst: sum.worst.1,
    };
    sums.into_iter().map(row).collect()
}

/// A row's contribution and its name: one that is the same in other traces, unlike addresses and
/// ids.
fn part(row: &Named<'_>) -> Option<(String, Part)> {
    Some(match row.table.name {
        TRACE => {
            let part = Part { cpu_ns: row.number("lost_cpu_ns"), ..Part::default() };
            (row.words("verdict")?.to_owned(), part)
        }
        "by_object" => {
            // Harmless waits cost nothing.
            row.get("harmful")?.as_bool().filter(|&harmful| harmful)?;
            let kind = row.words("usage").or(row.words("kind"))?;
            let part = Part {
                cpu_ns: row.number("idle_blamed_ns"),
                wait_ns: row.number("wait_total_ns"),
                times: row.number("waits").unwrap_or(0),
            };
            (format!("{kind} of {}", role_of(row.words("comm").unwrap_or("?"))), part)
        }
        "by_lock_class" => {
            let words = [row.words("type"), row.words("name")];
            let name = words.into_iter().flatten().collect::<Vec<_>>().join(" ");
            let name = if name.is_empty() { "unknown".to_owned() } else { name };
            let part = Part {
                cpu_ns: row.number("spin_ns"),
                wait_ns: row.number("wait_total_ns"),
                times: row.number("contended").unwrap_or(0),
            };
            (name, part)
        }
        "by_syscall" => {
            let part = Part {
                cpu_ns: row.number("cpu_ns"),
                wait_ns: row.number("blocked_ns"),
                times: row.number("count").unwrap_or(0),
            };
            (row.words("name")?.to_owned(), part)
        }
        _ => return None,
    })
}
