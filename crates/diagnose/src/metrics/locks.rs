//! One lock is contended: by lockstat's rows (AIX case 2), by measured rate, hold and wait times
//! (Bier and Vernon), by lock and waiting ratios (Kaieda et al.).

use super::{Command, Owner, View};
use crate::report::{Class, Culprit, Evidence, Finding};
use holdup_attribution::limits::MATTERS;
use holdup_model::Measured;

pub(super) fn check(view: &View<'_>) -> Finding {
    let class = Class::KernelLockConflict;
    let all = [measured(view, class, Owner::Kernel), ratios(view), lockstat(view)];
    let mut found: Vec<Finding> = all.into_iter().flatten().collect();
    // Findings that hold first, priced before unpriced.
    found.sort_by_key(|f| {
        (f.ruled_out.is_some(), f.share.is_nan(), std::cmp::Reverse(f.lost_cpu_ns))
    });
    found.into_iter().next().unwrap_or_else(|| {
        view.silent(class, "no figures of kernel locks (locks, semaphores, commands, runs)")
    })
}

/// Locks with rate, hold and wait times: L W processors are lost.
pub(super) fn measured(view: &View<'_>, class: Class, owner: Owner) -> Option<Finding> {
    let cpus = view.figures.processors()?;
    let mut all: Vec<(&super::Semaphore, Measured)> = view
        .figures
        .semaphores
        .iter()
        .filter(|s| s.owner == owner)
        .map(|s| {
            (
                s,
                Measured {
                    cpus,
                    throughput: s.requests_per_s,
                    hold: s.hold_us * 1e-6,
                    wait: s.wait_us * 1e-6,
                },
            )
        })
        .collect();
    all.sort_by(|a, b| b.1.lost_cpus().total_cmp(&a.1.lost_cpus()));
    let lost: f64 = all.iter().map(|m| m.1.lost_cpus()).sum();
    let (top, m) = *all.first()?;
    let summary = format!(
        "processors wait for {}: {:.2} of {cpus} processors are lost to waiting, so {:.2} do work",
        top.name,
        m.lost_cpus(),
        m.effective_cpus()
    );
    let mut f = view.finding(class, lost * 100.0 / view.cpus, summary);
    f.evidence = vec![
        Evidence::of(
            format!("acquisitions of {}", top.name),
            top.requests_per_s,
            "1/s",
            "semaphores",
        ),
        Evidence::of("mean hold time", top.hold_us, "us", "semaphores"),
        Evidence::of("mean wait", top.wait_us, "us", "semaphores"),
        Evidence::of("effective processors, measured", m.effective_cpus(), "CPUs", "N - L W"),
    ];
    if let Some(lock) = m.lock() {
        f.evidence.push(Evidence::of(
            "demand of one processor",
            lock.demand() * 100.0,
            "% of its time",
            "x / (x + Z)",
        ));
        f.evidence.push(Evidence::of(
            "effective processors, predicted",
            lock.predict(cpus).effective_cpus,
            "CPUs",
            "closed queueing model",
        ));
        f.evidence.push(Evidence::of(
            format!("effective processors of {}, predicted", cpus.saturating_mul(2)),
            lock.predict(cpus.saturating_mul(2)).effective_cpus,
            "CPUs",
            "closed queueing model",
        ));
        if let Some(n) = lock.saturation() {
            f.evidence.push(Evidence::of(
                "processors that keep the lock busy all the time",
                n,
                "CPUs",
                "1 / demand",
            ));
        }
        f.advice.push(format!(
            "beyond {:.0} processors, more processors add nothing; {}",
            lock.saturation().unwrap_or(0.0).ceil(),
            holdup_model::OPTIMISM
        ));
    }
    f.advice
        .insert(0, "hold the lock for a shorter time, or split the data that it guards".to_owned());
    f.culprits = all
        .iter()
        .take(3)
        .map(|(s, m)| Culprit {
            kind: "lock",
            name: s.name.clone(),
            ns: view.ns(m.lost_cpus() * 100.0 / view.cpus),
            ..Culprit::default()
        })
        .collect();
    Some(f)
}

/// Waiting ratios of commands, and of the whole work by number of CPUs.
fn ratios(view: &View<'_>) -> Option<Finding> {
    let runs = &view.figures.runs;
    let waits = |c: &Command| c.waiting_ratio_pct.unwrap_or(0.0);
    let priced = |c: &Command| c.time_pct.unwrap_or(0.0) * waits(c) / 100.0;
    let mut commands: Vec<&Command> = view
        .figures
        .commands
        .iter()
        .filter(|c| c.waiting_ratio_pct.or(c.lock_ratio_pct).is_some())
        .collect();
    commands.sort_by(|a, b| waits(b).total_cmp(&waits(a)));
    let worst = runs.iter().filter(|r| r.waiting_ratio_pct.is_some()).max_by_key(|r| r.cpus);
    if worst.is_none() && commands.is_empty() {
        return None;
    }
    let share = worst
        .and_then(|r| r.waiting_ratio_pct)
        .unwrap_or_else(|| commands.iter().map(|c| priced(c)).sum());
    let one = runs.iter().filter(|r| r.cpus == 1).map(|r| r.seconds).reduce(f64::min);
    let speedup = |r: &super::Run| one.map(|s| s / r.seconds);
    let lock_ratio = runs.iter().find_map(|r| r.lock_ratio_pct);
    let mut summary = Vec::new();
    if let Some(r) = worst {
        let how = speedup(r).map_or(String::new(), |s| {
            format!(", which make the work {s:.2} times as fast as one CPU")
        });
        summary.push(format!(
            "{share:.1} % of execution time goes into waiting for the kernel's \
            lock on {} CPUs{how}",
            r.cpus
        ));
    }
    if let Some(c) = commands.first() {
        let locked = c
            .lock_ratio_pct
            .map_or(String::new(), |l| format!(", and holds locks for {l} % of its time"));
        let price = if c.time_pct.is_some() {
            format!("; all commands together lose {share:.1} % of their time")
        } else {
            String::new()
        };
        summary.push(format!(
            "{} waits most: for {} % of its time{locked}{price}",
            c.name,
            waits(c)
        ));
    }
    let mut f = view.finding(Class::KernelLockConflict, share, summary.join("; "));
    if let Some(l) = lock_ratio {
        f.evidence.push(Evidence::of("lock ratio on one CPU", l, "% of execution time", "runs"));
    }
    for r in runs.iter().filter(|r| r.cpus > 1) {
        let at = |what: &str| format!("{what} on {} CPUs", r.cpus);
        super::given(
            &mut f.evidence,
            &at("waiting ratio"),
            r.waiting_ratio_pct,
            "% of execution time",
            "runs",
        );
        super::given(&mut f.evidence, &at("speedup"), speedup(r), "times", "runs");
    }
    for c in commands.iter().take(3) {
        super::given(
            &mut f.evidence,
            &format!("{}: lock ratio", c.name),
            c.lock_ratio_pct,
            "% of its time",
            "commands",
        );
        super::given(
            &mut f.evidence,
            &format!("{}: waiting ratio", c.name),
            c.waiting_ratio_pct,
            "% of its time",
            "commands",
        );
        super::given(
            &mut f.evidence,
            &format!("part of all execution time that {} has", c.name),
            c.time_pct,
            "%",
            "commands",
        );
    }
    f.evidence.push(
        Evidence::of("lost to waiting", share, "% of capacity", "waiting ratio")
            .against(view.thresholds, &MATTERS),
    );
    f.culprits = commands
        .iter()
        .take(3)
        .map(|c| Culprit {
            kind: "command",
            name: c.name.clone(),
            ns: view.ns(priced(c)),
            ..Culprit::default()
        })
        .collect();
    f.advice = vec![
        "make fewer system calls, or use calls that hold the lock for a shorter time".to_owned(),
    ];
    Some(f)
}

/// Rows of lockstat: how often each lock is found taken, not what that costs.
fn lockstat(view: &View<'_>) -> Option<Finding> {
    let misses = |l: &super::LockStat| l.pct_block.unwrap_or(0.0) + l.pct_sleep.unwrap_or(0.0);
    let taken = |l: &super::LockStat| l.ref_per_s.unwrap_or(0.0) * misses(l) / 100.0;
    let mut rows: Vec<_> = view.figures.locks.iter().collect();
    rows.sort_by(|a, b| taken(b).total_cmp(&taken(a)));
    let top = *rows.first()?;
    let inode = ["IRDWR", "i_rwsem", "i_mutex", "inode"].iter().any(|n| top.name.contains(n));
    let what = if inode { " (the lock of an open file's inode)" } else { "" };
    let summary = format!(
        "{}{what} is already held at {:.0} % of the references to it, {:.0} times a second",
        top.name,
        misses(top),
        taken(top)
    );
    let mut f = view.finding(Class::KernelLockConflict, f64::NAN, summary);
    for l in rows.iter().take(3) {
        super::given(
            &mut f.evidence,
            &format!("{}: references", l.name),
            l.ref_per_s,
            "1/s",
            "lockstat",
        );
        f.evidence.push(Evidence::of(
            format!("{}: found held", l.name),
            misses(l),
            "% of references",
            "lockstat",
        ));
        super::given(
            &mut f.evidence,
            &format!("part of all lock references that {} has", l.name),
            l.pct_ref,
            "%",
            "lockstat",
        );
    }
    // The culprit is the lock that is found taken most often.
    f.ruled_out = (misses(top) * 2.0 < 100.0).then(|| {
        format!("{} is already held at only {:.0} % of the references to it", top.name, misses(top))
    });
    f.culprits = vec![Culprit {
        kind: "lock",
        id: top.ocn.map_or_else(String::new, |o| o.to_string()),
        name: top.name.clone(),
        ..Culprit::default()
    }];
    f.advice = if inode {
        vec![
            "use raw logical volumes (block devices) instead of a file".to_owned(),
            "or split the data into several files: each has its own lock".to_owned(),
        ]
    } else {
        vec!["spread the load over several of the objects that the lock guards".to_owned()]
    };
    Some(f)
}
