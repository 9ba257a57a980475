//! Subjects of a trace: the locks of programs and of the kernel that threads wait for.
//!
//! Only waiting that keeps a CPU from work counts as L W: of a thread that sleeps, the idle CPU
//! time that the ledger attributes to the object; of one that spins, its CPU time. A thread that
//! sleeps while its CPU does other work loses nothing.

use super::kinds::{Kind, Use, Used, kinds};
use super::{Basis, Forecast, Seen, Subject, all_of, forecast, lost, optimism, with_default};
use holdup_attribution::{Attribution, Blamed, Leaf, WaitRule};
use holdup_model::{Network, Station};
use holdup_passes::{LockBy, LockRow, ObjectKind, Slot};
use holdup_trace::Nanos;
use std::collections::{BTreeMap, BTreeSet};

/// The fraction of the trace that a customer of all locks together must work or wait.
const LEAST_THERE: f64 = 0.25;

/// A kernel lock by its own events.
struct KernelLock {
    name: String,
    spin_ns: u64,
    waiters: BTreeMap<Slot, Use>,
    /// (Acquisitions, time held) if the trace has acquisitions.
    holds: Option<(u64, u64)>,
}

/// Predict for every lock that threads wait for. `threads` is the number that uses each lock, if
/// the user knows better than the trace.
pub fn of_trace(judged: &Attribution<'_>, cpus: &[u32], threads: Option<u32>) -> Forecast {
    let a = judged.analysis;
    let (wall, seen_cpus) = (a.wall_ns().max(1) as f64, a.cpus.max(1));
    let part = |ns: u64| ns as f64 / wall;
    let mut kernel = kernel_locks(judged);
    let mut locks: Vec<Used> = Vec::new();
    let mut others_ns = 0;
    for b in judged.blamed() {
        if !is_lock(b.rule) {
            others_ns += if b.rule.is_harmful() { b.row.idle_blamed_ns } else { 0 };
            continue;
        }
        let lock = kernel_address(&b).and_then(|at| {
            let map = a.lockdep_map(at).unwrap_or(at);
            kernel.remove(&map)
        });
        let mut users = lock.as_ref().map(|l| l.waiters.clone()).unwrap_or_default();
        b.sleepers.iter().for_each(|s| users.entry(s.slot).or_default().waited_ns += s.wait_ns);
        b.held
            .iter()
            .for_each(|(&slot, sum)| users.entry(slot).or_default().held_ns += sum.hold_ns);
        if let Some(in_all) = b.in_all {
            with_unseen(&mut users, in_all.ns);
        }
        let spin_ns = lock.as_ref().map_or(0, |l| l.spin_ns);
        let (held, rate, basis) = match lock.as_ref().and_then(|l| l.holds) {
            Some((n, ns)) => (Some(part(ns)), Some(n as f64 / wall * 1e9), Basis::Measured),
            None => holds(&b, wall),
        };
        let seen = Seen { cpus: seen_cpus, lost: part(b.row.idle_blamed_ns + spin_ns), held, rate };
        let named = lock.map(|l| l.name);
        let subject = Subject {
            pid: b.row.pid,
            comm: Some(b.row.comm.clone()).filter(|c| !c.is_empty()),
            ..subject(
                named.unwrap_or_else(|| name(&b)),
                seen,
                threads.unwrap_or_else(|| number_of(&users)),
                spin_ns > b.row.idle_blamed_ns,
                basis,
            )
        };
        locks.push(Used { subject, users });
    }
    // Locks that no thread slept for.
    for lock in kernel.into_values() {
        let held = lock.holds.map(|(_, ns)| part(ns));
        let rate = lock.holds.map(|(n, _)| n as f64 / wall * 1e9);
        let seen = Seen { cpus: seen_cpus, lost: part(lock.spin_ns), held, rate };
        // Interrupts and idle tasks take a lock on any CPU.
        let on_any = lock.waiters.is_empty();
        let own = if on_any { seen_cpus } else { number_of(&lock.waiters) };
        let subject = subject(lock.name, seen, threads.unwrap_or(own), true, Basis::Measured);
        locks.push(Used { subject, users: lock.waiters });
    }
    locks.sort_by(|a, b| {
        let (a, b) = (&a.subject, &b.subject);
        lost(b).total_cmp(&lost(a)).then_with(|| a.object.cmp(&b.object))
    });
    let mut subjects: Vec<Subject> = locks.iter().map(|l| l.subject.clone()).collect();
    let together = subjects.iter().filter_map(|s| s.threads).max().unwrap_or(1);
    let users = customers(judged, &locks);
    let mut all = all_of(&subjects, Some(threads.unwrap_or(together.max(users.len() as u32))));
    let mut notes = notes(judged, &subjects, others_ns);
    if let Some(all) = &mut all {
        all.kinds = kinds(judged, all, &locks, &users);
        notes.extend(unlike(&all.kinds));
    }
    subjects.splice(0..0, all);
    forecast(&subjects, &with_default(cpus, seen_cpus), notes)
}

/// The threads that use any of the locks. A customer of the model works or waits for a lock all the
/// time. A thread that does so for a small part of the trace only, such as a program that starts
/// others, is not one, even if it had to wait once.
fn customers(judged: &Attribution<'_>, locks: &[Used]) -> BTreeSet<Slot> {
    let mut there: BTreeMap<Slot, Nanos> = BTreeMap::new();
    for (&slot, used) in locks.iter().flat_map(|l| &l.users) {
        *there.entry(slot).or_insert(judged.analysis.thread(slot).running_ns) += used.waited_ns;
    }
    let least = judged.analysis.wall_ns() as f64 * LEAST_THERE;
    there.into_iter().filter(|&(_, ns)| ns as f64 >= least).map(|(slot, _)| slot).collect()
}

/// Says which threads differ from the others.
fn unlike(kinds: &[Kind]) -> Option<String> {
    let name = |k: &Kind| {
        let demand: f64 = k.demands.iter().sum();
        format!("{} {} at {:.1} %", k.threads, k.comm, demand * 100.0)
    };
    let names: Vec<String> = kinds.iter().map(name).collect();
    (!kinds.is_empty()).then(|| {
        format!(
            "all: the threads use the locks differently, so the prediction takes a demand for each \
             kind of thread: {}",
            names.join(", ")
        )
    })
}

fn subject(object: String, seen: Seen, threads: u32, spins: bool, held: Basis) -> Subject {
    let inverted = || {
        let customers = if spins { threads.min(seen.cpus) } else { threads };
        Network::demand_that_loses(seen.lost, seen.cpus, customers.min(super::MOST_THREADS))
    };
    let known = seen.demand(threads).filter(|&demand| demand > 0.0).map(|demand| (demand, held));
    let found = known.or_else(|| Some((inverted()?, Basis::LostCpus)));
    Subject {
        object,
        pid: None,
        comm: None,
        threads: Some(threads),
        spins,
        seen: Some(seen),
        stations: found.map(|f| Station::lock(f.0)).into_iter().collect(),
        kinds: Vec::new(),
        basis: found.map(|f| f.1),
    }
}

/// The number of users; a single waiter implies another thread that it waits for.
fn number_of(users: &BTreeMap<Slot, Use>) -> u32 {
    (users.len() as u32).max(2)
}

/// One thread at a time holds it: a mutex, semaphore, file lock, kernel lock, or a busy thread.
fn is_lock(rule: WaitRule) -> bool {
    matches!(rule, WaitRule::LockContention | WaitRule::KernelLock | WaitRule::OneServer)
}

/// Unseen holds are distributed in proportion to those that are seen.
fn with_unseen(users: &mut BTreeMap<Slot, Use>, all_ns: Nanos) {
    let seen: Nanos = users.values().map(|u| u.held_ns).sum();
    let times = all_ns as f64 / seen.max(1) as f64;
    users.values_mut().for_each(|u| u.held_ns = (u.held_ns as f64 * times) as Nanos);
}

/// Fraction of the time held and acquisitions per second, if holds are known. A futex enters the
/// kernel only when contended: its other holds are estimated from the threads that came and found
/// it held. For a kernel lock or a busy thread only wake-ups tell.
fn holds(b: &Blamed, wall: f64) -> (Option<f64>, Option<f64>, Basis) {
    let (mut times, mut held, mut inferred) = (0, 0, 0);
    for sum in b.held.values() {
        times += sum.holds;
        held += sum.hold_ns;
        inferred += sum.inferred_ns;
    }
    if b.rule != WaitRule::LockContention || held == 0 {
        return (None, None, Basis::Inferred);
    }
    if let Some(all) = b.in_all {
        let rate = all.holds as f64 / wall * 1e9;
        return (Some(all.ns as f64 / wall), Some(rate), Basis::Inferred);
    }
    let all_seen = b.kind != ObjectKind::Futex && inferred * 2 <= held;
    let basis = if all_seen { Basis::Measured } else { Basis::Inferred };
    (Some(held as f64 / wall), Some(times as f64 / wall * 1e9), basis)
}

fn name(b: &Blamed) -> String {
    let what = b.row.usage.unwrap_or(b.row.kind);
    let more = if b.others > 0 { format!(" and {} more", b.others) } else { String::new() };
    format!("{what} {}{more}", b.row.object)
}

/// The address of the contended kernel lock, if the events have it.
fn kernel_address(b: &Blamed) -> Option<u64> {
    let hex = b.row.object.strip_prefix("0x").filter(|_| b.kind == ObjectKind::KernelLock)?;
    u64::from_str_radix(hex, 16).ok()
}

/// The kernel locks that threads waited for, by address.
fn kernel_locks(judged: &Attribution<'_>) -> BTreeMap<u64, KernelLock> {
    let rows = judged.analysis.locks(LockBy::Lock);
    let mut waiters = judged.analysis.lock_waiters();
    let waited = |r: &LockRow| r.contended.is_some_and(|n| n > 0);
    rows.into_iter()
        .filter(waited)
        .filter_map(|r| {
            let address = r.address.flatten()?;
            let kind = r.lock_type.flatten().unwrap_or_else(|| "lock".to_owned());
            let name = match r.name.flatten() {
                Some(name) => format!("{kind} {name} {address:#x}"),
                None => format!("{kind} {address:#x}"),
            };
            let holds = r.acquired.zip(r.hold_total_ns).filter(|h| h.1 > 0);
            let waiters = waiters.remove(&address).unwrap_or_default();
            let waiters = waiters.into_iter().map(|slot| (slot, Use::default())).collect();
            Some((address, KernelLock { name, spin_ns: r.spin_ns.unwrap_or(0), waiters, holds }))
        })
        .collect()
}

fn notes(judged: &Attribution<'_>, subjects: &[Subject], others_ns: u64) -> Vec<String> {
    let mut notes = vec![optimism()];
    let uses = |basis| subjects.iter().any(|s| s.basis == Some(basis) && !s.stations.is_empty());
    if uses(Basis::Inferred) {
        notes.push(
            "inferred: how long a mutex was held is estimated from how often threads that \
             requested it found it held; the error is mostly below 20 %. Of other locks only holds \
             that made threads wait are known, so the demand for these locks may be larger"
                .to_owned(),
        );
    }
    if uses(Basis::LostCpus) {
        notes.push(
            "lost-cpus: no hold was recorded. The demand is chosen such that the model loses as \
             many CPUs as the trace did, so the row of the traced number of CPUs is no test of the \
             model"
                .to_owned(),
        );
    }
    if subjects.iter().any(|s| s.stations.is_empty()) {
        notes.push(
            "n/a: the demand is unknown, because the trace shows neither holds nor lost CPUs. On \
             one CPU, or with more ready threads than CPUs, a lock may cost nothing although it \
             would cost CPUs on a larger machine"
                .to_owned(),
        );
    }
    let wall = judged.analysis.wall_ns().max(1) as f64;
    let cpus = |ns: u64| Some(format!("{:.2}", ns as f64 / wall)).filter(|cpus| cpus != "0.00");
    if let Some(others) = cpus(others_ns) {
        notes.push(format!(
            "waits for something other than locks (devices, barriers, work of other threads) cost \
             {others} more CPUs; the model does not include these waits"
        ));
    }
    let spare = judged.ledger.ns(Leaf::NoWork) + judged.ledger.ns(Leaf::Serial);
    if let Some(spare) = cpus(spare) {
        notes.push(format!(
            "{spare} CPUs were idle because no thread had work for them: the prediction assumes \
             that every additional CPU gets as much work as each traced CPU"
        ));
    }
    notes
}
