//! Accounts that close: no nanosecond is lost or counted twice, in any format, whatever the
//! recording lacks.

use crate::oracle::corpus::{self, Recording};
use crate::oracle::tally::Tally;
use holdup_attribution::{Attribution, Leaf, PathRow, Total, WaitsBy};
use holdup_passes::{
    Analysis, Bin, Cause, CpuRow, Detail, Group, HolderPart, Options, Program, Slot, WaitSum,
};
use holdup_trace::QualityCode;
use std::collections::{BTreeMap, BTreeSet};

/// Every trace there is, opened and analysed once; `check` tells what does not close.
fn over_all_traces(claim: &'static str, check: impl Fn(&Analysis, &mut Tally) -> Vec<String>) {
    let mut tally = Tally::new(claim);
    for file in &corpus::all_files() {
        match analysis(file) {
            Some(a) => {
                tally.count("traces", 1);
                for failure in check(&a, &mut tally) {
                    tally.fail(format!("{}: {failure}", file.name));
                }
            }
            None => {
                tally.count("files that are no trace", 1);
                tally.check(!file.is_labelled(), || format!("{}: cannot be read", file.name));
            }
        }
    }
    tally.finish();
}

/// `None` if holdup does not read the file; that it reads what it should is for other tests.
fn analysis(file: &Recording) -> Option<Analysis> {
    let reader = holdup_open::open(&file.path).ok()?;
    holdup_attribution::analyze(&*reader, &Options::default()).ok()
}

fn must(failures: &mut Vec<String>, closes: bool, what: impl FnOnce() -> String) {
    if !closes {
        failures.push(what());
    }
}

/// Whether only chosen system calls were recorded: time of applications is then in no row of CPUs,
/// as nobody knows which part of it is the kernel's.
fn is_untraced(a: &Analysis) -> bool {
    a.capabilities.syscalls.are_any() && !a.capabilities.syscalls.are_all()
}

/// Time of applications that no row of CPUs has.
fn in_no_row(a: &Analysis) -> u64 {
    let (outside, inside) = a.application_ns();
    if is_untraced(a) { outside + inside.unwrap_or(0) } else { 0 }
}

fn on_cpu(r: &CpuRow) -> u64 {
    r.user_ns.unwrap_or(0) + r.kernel_ns.unwrap_or(0) + r.kthread_ns
}

#[test]
fn every_cpu_row_adds_up_to_the_wall_time() {
    over_all_traces("CPU rows close", |a, tally| {
        let mut failures = Vec::new();
        let rows = a.cpu_rows();
        must(&mut failures, rows.len() == a.cpus as usize, || {
            format!("{} rows, {} CPUs", rows.len(), a.cpus)
        });
        let mut missing = 0;
        for r in rows {
            tally.count("CPUs", 1);
            let sum = on_cpu(&r)
                + r.irq_ns.unwrap_or(0)
                + r.softirq_ns.unwrap_or(0)
                + r.idle_ns
                + r.unaccounted_ns;
            missing += r.wall_ns.saturating_sub(sum);
            let closes = if is_untraced(a) { sum <= r.wall_ns } else { sum == r.wall_ns };
            must(
                &mut failures,
                closes && r.wall_ns == a.wall_ns() && r.iowait_ns.unwrap_or(0) <= r.idle_ns,
                || format!("{sum}: {r:?}"),
            );
        }
        must(&mut failures, missing == in_no_row(a), || format!("{missing} in no row"));
        failures
    });
}

#[test]
fn the_ledger_adds_up_to_the_capacity() {
    over_all_traces("the ledger closes", |a, tally| {
        let mut failures = Vec::new();
        let ledger = Attribution::from(a).ledger;
        let nodes = ledger.nodes();
        tally.count("nodes", nodes.len() as u64);
        let capacity = a.cpus as u64 * a.wall_ns();
        let leaves: u64 = ledger.leaves().map(|l| l.1).sum();
        must(&mut failures, ledger.capacity_ns == capacity && leaves == capacity, || {
            format!("{leaves} of {capacity}")
        });
        // Divided among control groups it is the same machine, also where none is known.
        let groups: u64 = a.cgroups().iter().map(|row| row.used_ns).sum();
        must(&mut failures, groups == capacity, || format!("groups: {groups} of {capacity}"));
        let mut children: BTreeMap<&str, u64> = BTreeMap::new();
        for n in &nodes {
            if let Some((parent, _)) = n.path.rsplit_once('/') {
                *children.entry(parent).or_default() += n.ns;
            }
        }
        for (parent, ns) in children {
            let own = nodes.iter().find(|n| n.path == parent).map(|n| n.ns);
            must(&mut failures, own == Some(ns), || format!("{parent}: {own:?} is not {ns}"));
        }
        failures
    });
}

#[test]
fn every_system_call_row_adds_up_to_its_elapsed_time() {
    over_all_traces("system call rows close", |a, tally| {
        let mut failures = Vec::new();
        let mut totals: Vec<(u64, u64, u64)> = Vec::new();
        for by in [Group::System, Group::Command, Group::Process, Group::Thread] {
            let rows = a.syscalls(by);
            tally.count("rows", rows.len() as u64);
            totals.push(
                rows.iter()
                    .fold((0, 0, 0), |t, r| (t.0 + r.count, t.1 + r.errors, t.2 + r.total_ns)),
            );
            for r in rows {
                if let (Some(cpu), Some(interrupted), Some(runnable), Some(blocked)) =
                    (r.cpu_ns, r.interrupted_ns, r.runnable_ns, r.blocked_ns)
                {
                    let sum = cpu + interrupted + runnable + blocked;
                    must(&mut failures, sum == r.total_ns, || format!("{sum}: {r:?}"));
                }
                let errors: u64 = r.errnos.values().sum();
                must(&mut failures, errors == r.errors && r.errors <= r.count, || {
                    format!("errors: {r:?}")
                });
                let order = r.min_ns <= r.avg_ns
                    && r.avg_ns <= r.max_ns
                    && r.p50_ns <= r.p99_ns
                    && r.p99_ns <= Some(r.max_ns);
                must(&mut failures, order, || format!("order: {r:?}"));
            }
        }
        totals.dedup();
        must(&mut failures, totals.len() == 1, || format!("groupings differ: {totals:?}"));
        failures
    });
}

#[test]
fn what_threads_ran_is_what_cpus_ran_and_no_thread_lives_longer_than_its_states() {
    over_all_traces("threads' times close", |a, tally| {
        let mut failures = Vec::new();
        let (mut combined, mut interrupted) = (0, 0);
        // Of whom something went unseen, not all the time is in a state.
        let fixed: BTreeSet<Slot> = a.invariants().into_iter().map(|(_, slot, _)| slot).collect();
        for (slot, t) in a.threads() {
            tally.count("threads", 1);
            let life = t.died.unwrap_or(a.end).saturating_sub(t.born);
            let known = t.running_ns + t.woken_ns + t.preempted_ns + t.blocked_ns;
            // A new thread is in no state between its fork and its first wake-up.
            let whole = t.born == a.start
                && t.voluntary + t.involuntary > 0
                && !fixed.contains(&slot)
                && a.quality.count(QualityCode::SwitchGap) == 0;
            tally.count("threads known all their life", whole as u64);
            must(&mut failures, !whole || known == life, || {
                format!("lived {life}, states only {known}: {t:?}")
            });
            must(&mut failures, known <= life, || format!("lived {life}, states {known}: {t:?}"));
            must(&mut failures, t.user_ns + t.kernel_ns + t.irq_ns == t.running_ns, || {
                format!("running: {t:?}")
            });
            combined += t.user_ns + t.kernel_ns;
            interrupted += t.irq_ns;
        }
        let rows = a.cpu_rows();
        let cpus: u64 = rows.iter().map(on_cpu).sum();
        let irqs: u64 =
            rows.iter().map(|r| r.irq_ns.unwrap_or(0) + r.softirq_ns.unwrap_or(0)).sum();
        let cpus = cpus + in_no_row(a);
        must(&mut failures, combined == cpus, || format!("threads ran {combined}, CPUs {cpus}"));
        must(&mut failures, interrupted <= irqs, || {
            format!("threads were interrupted {interrupted}, CPUs {irqs}")
        });
        let procs: u64 = a.procs(Group::Thread).iter().map(|r| r.combined_ns).sum();
        must(&mut failures, procs == combined, || format!("procs {procs}, threads {combined}"));
        failures
    });
}

#[test]
fn the_bins_of_the_timeline_add_up_to_the_whole() {
    over_all_traces("bins close", |a, tally| {
        let mut failures = Vec::new();
        let (bins, rows) = (a.bins(), a.cpu_rows());
        tally.count("bins", bins.len() as u64);
        let mut sum = |what: &str, bins: u64, rows: u64| {
            must(&mut failures, bins == rows, || format!("{what}: {bins} in bins, {rows} in all"));
        };
        let all = |of: fn(&Bin) -> u64| bins.iter().map(of).sum::<u64>();
        let cpus = |of: fn(&CpuRow) -> u64| rows.iter().map(of).sum::<u64>();
        // Without events of a kind its column is unknown, and its time is nobody's.
        if is_untraced(a) {
            sum("application", all(|b| b.user_ns + b.kernel_ns), in_no_row(a));
        } else {
            sum("user", all(|b| b.user_ns), cpus(|r| r.user_ns.unwrap_or(0)));
        }
        if a.capabilities.syscalls.are_all() {
            sum("kernel", all(|b| b.kernel_ns), cpus(|r| r.kernel_ns.unwrap_or(0)));
        }
        sum("kthread", all(|b| b.kthread_ns), cpus(|r| r.kthread_ns));
        sum("irq", all(|b| b.irq_ns), cpus(|r| r.irq_ns.unwrap_or(0)));
        sum("softirq", all(|b| b.softirq_ns), cpus(|r| r.softirq_ns.unwrap_or(0)));
        sum("idle", all(|b| b.idle_ns), cpus(|r| r.idle_ns));
        sum("unaccounted", all(|b| b.unaccounted_ns), cpus(|r| r.unaccounted_ns));
        // Whose time it was.
        let programs: u64 = a.programs().iter().map(Program::total_ns).sum();
        sum("programs", programs, all(|b| b.user_ns + b.kernel_ns + b.kthread_ns));
        // Shares are divided: each bin may lose less than a nanosecond of each cause.
        for cause in Cause::ALL {
            let bins = bins.iter().map(|b| b.waiting[cause as usize]);
            let (n, shared) = (bins.len() as u64, bins.sum::<u64>());
            let waits = a.wait_rows();
            let share =
                waits.iter().filter(|w| w.cause == cause).map(|w| w.sum.share).sum::<u128>();
            let share = (share >> 32) as u64;
            must(&mut failures, shared <= share && share - shared <= n, || {
                format!("{cause:?}: {shared} in bins, {share} in all")
            });
        }
        let wall: u64 = bins.iter().map(|b| b.end - b.start).sum();
        must(&mut failures, wall == a.wall_ns(), || format!("bins of {wall} ns in all"));
        failures
    });
}

/// What holders did while others waited is no longer than they had the object, and hardly any of it
/// is not known.
#[test]
fn what_holders_did_adds_up_to_their_holds() {
    let known = std::cell::Cell::new((0, 0));
    over_all_traces("holders did", |a, tally| {
        let mut failures = Vec::new();
        let held = a.held_by();
        for (object, by) in a.holders_did() {
            for (slot, did) in by {
                let ns: u64 = did.iter().map(|(_, ns)| ns).sum();
                let unknown = did.iter().filter(|(did, _)| did.part == HolderPart::Unknown);
                let unknown: u64 = unknown.map(|(_, ns)| ns).sum();
                known.set((known.get().0 + ns - unknown, known.get().1 + ns));
                let hold = held.at(object, slot).map_or(0, |h| h.hold_ns);
                tally.count("holders", 1);
                must(&mut failures, ns <= hold, || format!("{object:?} {slot:?}: {ns} of {hold}"));
            }
        }
        failures
    });
    let (known, all) = known.get();
    assert!(known * 100 >= all * 90, "{known} of {all} ns are known");
}

/// Whatever the tables of waits print of idle time is the ledger's: never more than it lays to
/// waits, and all of it where no event is missing.
#[test]
fn the_figure_of_waits_and_the_ledger_agree() {
    let mut tally = Tally::new("waits = ledger");
    for file in &corpus::all_files() {
        let Ok(reader) = holdup_open::open(&file.path) else { continue };
        let options = Options { detail: Detail::Edges, ..Options::default() };
        let Ok(a) = holdup_attribution::analyze(&*reader, &options) else { continue };
        tally.count("traces", 1);
        let judged = Attribution::from(&a);
        // What is no wait's: nobody waits for it, or the scheduler keeps it.
        let spare = [Leaf::NoWork, Leaf::Scheduler, Leaf::Throttled];
        let of_waits = |leaf: &Leaf| leaf.is_in(Total::Idle) && !spare.contains(leaf);
        let has: u64 =
            judged.ledger.leaves().filter(|(leaf, _)| of_waits(leaf)).map(|(_, ns)| ns).sum();
        let by_leaf = |wanted: Leaf| -> u64 {
            let rows = judged.waits.iter().filter(|w| w.leaf == wanted);
            let mut sum = WaitSum::default();
            rows.for_each(|w| sum.add(&w.row.sum));
            sum.share_ns()
        };
        for leaf in Leaf::ALL.iter().copied().filter(of_waits) {
            let (laid, ns) = (by_leaf(leaf), judged.ledger.ns(leaf));
            // Behind a driver threads sleep for many things.
            let ns = ns + judged.ledger.ns(Leaf::Driver);
            tally.check(laid <= ns, || format!("{}: {}: {laid} of {ns}", file.name, leaf.path()));
        }
        for by in [WaitsBy::Object, WaitsBy::Kind, WaitsBy::Thread] {
            let rows = judged.waits(by);
            let laid: u64 = rows.iter().map(|r| r.idle_blamed_ns).sum();
            tally.check(laid <= has, || format!("{}: {by:?}: {laid} of {has} ns", file.name));
        }
        // And what `waits --graph` calls root causes.
        let roots = judged.graph().roots;
        for leaf in Leaf::ALL.iter().copied().filter(|leaf| leaf.is_in(Total::Idle)) {
            let of_leaf = roots.iter().filter(|root| root.cause == leaf.name());
            let laid: u64 = of_leaf.map(|root| root.idle_blamed_ns).sum();
            let ns = judged.ledger.ns(leaf) + judged.ledger.ns(Leaf::Driver);
            tally.check(laid <= ns, || {
                format!("{}: root causes {}: {laid} of {ns}", file.name, leaf.path())
            });
        }
    }
    tally.finish();
}

/// What `switches` prints as time on a CPU is none that the ledger has as idle, and the parts of a
/// critical path are all of it: running is in it only what is neither asleep nor unknown.
#[test]
fn the_figures_of_switches_and_path_and_the_ledger_agree() {
    let mut tally = Tally::new("switches, path = ledger");
    for file in &corpus::all_files() {
        let Ok(reader) = holdup_open::open(&file.path) else { continue };
        let options = Options { detail: Detail::Intervals, ..Options::default() };
        let Ok(a) = holdup_attribution::analyze(&*reader, &options) else { continue };
        tally.count("traces", 1);
        let judged = Attribution::from(&a);
        let ledger = &judged.ledger;
        let stays: u64 = a.switches().iter().map(|r| r.runtime_ns).sum();
        let capacity: u64 = ledger.leaves().map(|(_, ns)| ns).sum();
        let not_idle = capacity - ledger.total(Total::Idle);
        tally.check(stays <= not_idle, || {
            format!("{}: stays of {stays} ns, {not_idle} not idle", file.name)
        });
        let Ok(path) = judged.path(None) else { continue };
        tally.count("paths", 1);
        let parts: u64 = path.rows.iter().map(|r| r.total_ns).sum();
        tally.check(parts == path.total_ns, || {
            format!("{}: parts of {parts} ns, a path of {}", file.name, path.total_ns)
        });
        let Some((slot, t)) = judged.path_of().map(|slot| (slot, a.thread(slot))) else { continue };
        let own = |r: &&PathRow| (r.tid, r.state, r.kind) == (t.tid.0, "run", "");
        let ran: u64 = path.rows.iter().filter(own).map(|r| r.total_ns).sum();
        let asleep: u64 = a.sleeps(slot).iter().map(|i| i.to - i.from).sum();
        let known = t.running_ns + t.woken_ns + t.preempted_ns + t.blocked_ns;
        tally.check(ran + asleep <= known, || {
            format!("{}: ran {ran}, asleep {asleep}, of {known} ns known", file.name)
        });
    }
    tally.finish();
}
