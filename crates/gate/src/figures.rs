//! What one recording measured, as a flat list of figures.
//!
//! Rows are named by what they are, not by numbers: a process by its role (its name without
//! digits), an object by its kind and the role of its program, a lock by its class or caller.
//! Addresses, thread ids and call offsets change with every run.

use crate::metric::{Figure, Kind, Table};
use holdup_attribution::{Attribution, Ledger, WaitsBy, WaitsRow, is_recorder};
use holdup_passes::{Analysis, Group, LockBy, LockRow, role};
use std::collections::BTreeMap;

/// Figures by name. `None` is a figure that the recording cannot give. A missing row did not
/// happen, if its table was recorded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Figures {
    values: BTreeMap<Figure, Option<u64>>,
}

impl Figures {
    /// Set a figure.
    pub fn set(&mut self, figure: Figure, value: Option<u64>) {
        self.values.insert(figure, value);
    }

    /// A figure: `None` if it has no row, `Some(None)` if the recording cannot give it.
    pub fn get(&self, figure: &Figure) -> Option<Option<u64>> {
        self.values.get(figure).copied()
    }

    /// The figure of a row by the name of its measure; `None` without such a row, or if the
    /// recording cannot give it.
    pub fn number(&self, table: Table, key: &str, measure: &str) -> Option<u64> {
        let figure = Figure { table, key: key.to_owned(), measure: table.measure(measure)? };
        self.get(&figure).flatten()
    }

    /// All, in the order of their names.
    pub fn iter(&self) -> impl Iterator<Item = (&Figure, Option<u64>)> {
        self.values.iter().map(|(figure, value)| (figure, *value))
    }

    /// Whether all figures other than 0 are equal: a baseline keeps no others.
    pub(crate) fn are_those_of(&self, other: &Figures) -> bool {
        let happened = |f: &Figures| -> BTreeMap<Figure, Option<u64>> {
            let kept = f.values.iter().filter(|(_, value)| **value != Some(0));
            kept.map(|(figure, value)| (figure.clone(), *value)).collect()
        };
        happened(self) == happened(other)
    }

    /// Add a row. Rows with the same key are merged: sums add up, and for spans the longest counts.
    fn add(&mut self, table: Table, key: &str, values: &[Option<u64>]) {
        for (&measure, &value) in table.measures().iter().zip(values) {
            let figure = Figure { table, key: key.to_owned(), measure };
            let old = self.values.entry(figure).or_insert(value.map(|_| 0));
            *old = match (*old, value, measure.kind) {
                (Some(a), Some(b), Kind::Span) => Some(a.max(b)),
                (Some(a), Some(b), _) => Some(a.saturating_add(b)),
                (a, b, _) => a.or(b),
            };
        }
    }
}

/// The figures of an analysis whose rows are limited to the work, and of the whole machine's
/// ledger.
pub(crate) fn of(analysis: &Analysis, ledger: &Ledger, judged: &Attribution<'_>) -> Figures {
    let mut f = Figures::default();
    for node in ledger.nodes() {
        f.add(Table::Ledger, &node.path.replace('/', "."), &[Some(node.ns)]);
    }
    syscalls(analysis, &mut f);
    waits(&judged.waits(WaitsBy::Object), &mut f);
    locks(analysis, &mut f);
    procs(analysis, &mut f);
    for (name, n) in analysis.other_events() {
        f.add(Table::Events, name, &[Some(n)]);
    }
    f
}

fn syscalls(analysis: &Analysis, f: &mut Figures) {
    for r in analysis.syscalls(Group::System) {
        let values = [
            Some(r.total_ns),
            r.cpu_ns,
            r.runnable_ns,
            r.blocked_ns,
            Some(r.count),
            Some(r.errors),
            Some(r.max_ns),
            r.p99_ns,
        ];
        f.add(Table::Syscalls, &r.name, &values);
    }
}

/// The role of a program: `worker-12` and `worker-3` are `worker`.
pub fn role_of(comm: &str) -> String {
    let role = String::from_utf8_lossy(role(comm.as_bytes())).into_owned();
    let role = role.trim_end_matches(['-', '_', '/', ':', '.', '#']);
    if role.is_empty() { comm.to_owned() } else { role.to_owned() }
}

/// The key of a row of waits.
pub(crate) fn wait_key(row: &WaitsRow) -> String {
    format!("{} {}", row.usage.unwrap_or(row.kind), role_of(&row.comm))
}

/// Waiting for other threads: not for input, time, children or devices.
fn contends(row: &WaitsRow) -> bool {
    !row.rule.starts_with("idle-") && !row.rule.starts_with("io-")
}

fn waits(rows: &[WaitsRow], f: &mut Figures) {
    f.add(Table::Contention, "", &[Some(0), Some(0), Some(0)]);
    for r in rows {
        let values = [Some(r.wait_total_ns), Some(r.waits), r.wait_max_ns];
        f.add(Table::Waits, &wait_key(r), &values);
        if contends(r) {
            f.add(Table::Contention, "", &values);
        }
    }
}

/// The key of a lock: addresses mean nothing in another run, nor do offsets in another build.
fn lock_key(row: &LockRow) -> String {
    let known = |t: &Option<Option<String>>| {
        t.clone().flatten().filter(|name| !name.starts_with("0x")).unwrap_or_default()
    };
    let place = known(&row.name);
    let place = if place.is_empty() { known(&row.caller) } else { place };
    let place = place.split("+0x").next().unwrap_or_default().to_owned();
    let kind = known(&row.lock_type);
    match (kind.is_empty(), place.is_empty()) {
        (false, false) => format!("{kind} {place}"),
        (true, true) => "unknown".to_owned(),
        _ => kind + &place,
    }
}

fn locks(analysis: &Analysis, f: &mut Figures) {
    f.add(Table::Lock, "", &[Some(0), Some(0), Some(0)]);
    for r in analysis.locks(LockBy::Caller) {
        let values = [r.wait_total_ns, r.contended, r.wait_max_ns];
        f.add(Table::Lock, "", &values);
        f.add(Table::Locks, &lock_key(&r), &values);
    }
}

fn procs(analysis: &Analysis, f: &mut Figures) {
    f.add(Table::Switches, "", &[Some(0), Some(0), Some(0), Some(0)]);
    for r in analysis.procs(Group::Process).iter().filter(|r| !r.kthread && !is_recorder(&r.comm)) {
        let (voluntary, involuntary) = (Some(r.voluntary), Some(r.involuntary));
        let blocked = Some(r.blocked_ns);
        let values =
            [Some(r.combined_ns), r.runnable_ns, blocked, voluntary, involuntary, r.migrations];
        f.add(Table::Procs, &role_of(&r.comm), &values);
        let all = [Some(r.voluntary + r.involuntary), voluntary, involuntary, r.migrations];
        f.add(Table::Switches, "", &all);
    }
    f.add(Table::Runq, "", &delays(analysis));
    for r in analysis.irqs(false) {
        let values = [Some(r.total_ns), Some(r.count), Some(r.max_ns)];
        f.add(Table::Irqs, &format!("{} {}", r.kind, r.name), &values);
    }
}

/// Delays of the whole machine: a thread of the work may wait because of any other.
fn delays(analysis: &Analysis) -> [Option<u64>; 6] {
    let delayed = || {
        let threads = analysis.all_threads().map(|(_, t)| t);
        threads.filter(|t| !t.is_kthread()).map(|t| &t.latency).filter(|l| l.count > 0)
    };
    let longest = delayed().map(|l| l.max_ns).max().unwrap_or(0);
    let percentile = |p| Some(analysis.delay_percentile(p).unwrap_or(0).min(longest));
    [
        Some(delayed().map(|l| l.total_ns).sum()),
        Some(delayed().map(|l| l.count).sum()),
        percentile(50),
        percentile(90),
        percentile(99),
        Some(longest),
    ]
}
