//! Threads contend for an object: synchronisation calls use much of the processing time (AIX cases
//! 1 and 3), and the idle time meanwhile is attributed to them.

use super::calls::{Sync, object, sync};
use super::{Owner, SystemCall, View, given, imbalance, locks};
use crate::report::{Class, Culprit, Evidence, Finding};
use holdup_attribution::limits::{MATTERS, NAMED};

struct Look<'a> {
    calls: Vec<(&'a SystemCall, f64)>,
    /// Processing time in these calls, % of capacity.
    pct: f64,
}

fn look<'a>(view: &View<'a>, kind: Sync) -> Look<'a> {
    let mut calls: Vec<(&SystemCall, f64)> = view
        .figures
        .syscalls
        .iter()
        .filter(|c| sync(&c.name) == kind)
        .filter_map(|c| Some((c, c.pct?)))
        .collect();
    calls.sort_by(|a, b| b.1.total_cmp(&a.1));
    Look { pct: calls.iter().map(|c| c.1).sum(), calls }
}

pub(super) fn application(view: &View<'_>) -> Finding {
    check(view, Class::ApplicationSerialization, Sync::Service, Owner::Application)
}

pub(super) fn threads(view: &View<'_>) -> Finding {
    check(view, Class::ThreadSerialization, Sync::Threads, Owner::Threads)
}

fn check(view: &View<'_>, class: Class, kind: Sync, owner: Owner) -> Finding {
    if let Some(f) = locks::measured(view, class, owner) {
        return f;
    }
    let own = look(view, kind);
    let other = look(view, if kind == Sync::Service { Sync::Threads } else { Sync::Service });
    let sar = view.figures.sar.clone().unwrap_or_default();
    let rates = if kind == Sync::Service {
        sar.sema_per_s.unwrap_or(0.0) + sar.msg_per_s.unwrap_or(0.0)
    } else {
        0.0
    };
    let part = sar.scall_per_s.filter(|&s| s > 0.0).map(|s| (rates * 100.0 / s).min(100.0));
    if view.figures.syscalls.is_empty() && (rates == 0.0 || view.sys.is_none()) {
        return view.silent(class, "the file has no processing time by system call (syscalls)");
    }
    // Without a table of calls, kernel time is an upper bound for the counted calls.
    let cpu = if view.figures.syscalls.is_empty() {
        view.sys.unwrap_or(0.0) * part.unwrap_or(100.0) / 100.0
    } else {
        own.pct
    };
    let server = imbalance::server(view);
    let idle = match view.idle {
        Some(idle)
            if server.is_none() && own.pct >= view.limit(&MATTERS) && own.pct >= other.pct =>
        {
            idle
        }
        _ => 0.0,
    };
    let names: Vec<&str> = own
        .calls
        .iter()
        .take(2)
        .filter(|c| c.1 >= view.limit(&NAMED))
        .map(|c| c.0.name.as_str())
        .collect();
    let what = own.calls.first().map_or("object", |c| object(&c.0.name));
    let summary = match names.is_empty() {
        false => format!(
            "threads contend for one {what}: {} {} {:.1} % of all processing time{}",
            names.join(" and "),
            if names.len() == 1 { "uses" } else { "use" },
            own.pct,
            if idle > 0.0 { format!(", while CPUs are {idle:.0} % idle") } else { String::new() }
        ),
        true if rates > 0.0 => format!(
            "the {rates:.0} semaphore and message operations per second take at most {cpu:.1} % of \
             capacity"
        ),
        true => "no synchronisation call uses a relevant amount of processing time".to_owned(),
    };
    let mut f = view.finding(class, (cpu + idle).min(100.0), summary);
    let label = if kind == Sync::Service {
        "processing time in semaphore, queue and file lock calls"
    } else {
        "processing time in calls of the threads library"
    };
    f.evidence = vec![
        Evidence::of(label, cpu, "% of capacity", "syscalls").against(view.thresholds, &MATTERS),
    ];
    for (call, pct) in own.calls.iter().take(3) {
        f.evidence.push(Evidence::of(
            format!("{}: processing time", call.name),
            *pct,
            "%",
            "syscalls",
        ));
        given(
            &mut f.evidence,
            &format!("{}: calls", call.name),
            call.count.map(|n| n as f64),
            "calls",
            "syscalls",
        );
        given(&mut f.evidence, &format!("{}: mean path", call.name), call.avg_ms, "ms", "syscalls");
    }
    given(&mut f.evidence, "idle meanwhile", view.idle, "% of capacity", "sar");
    given(&mut f.evidence, "kernel time", view.sys, "% of capacity", "sar");
    given(&mut f.evidence, "context switches", sar.cswch_per_s, "1/s", "sar");
    given(&mut f.evidence, "system calls", sar.scall_per_s, "1/s", "sar");
    if rates > 0.0 {
        f.evidence.push(Evidence::of("semaphore and message operations", rates, "1/s", "sar"));
        given(&mut f.evidence, "part of all system calls that these calls are", part, "%", "sar");
    }
    if let (Some((p, of_one)), true) = (server, f.ruled_out.is_some() && rates + own.pct > 0.0) {
        f.ruled_out = Some(format!(
            "these calls take at most {cpu:.1} % of capacity; in them other processes wait for {}, \
             which uses {of_one:.0} % of one CPU",
            p.name
        ));
    }
    f.culprits = own
        .calls
        .iter()
        .take(3)
        .filter(|c| c.1 >= view.limit(&NAMED))
        .map(|(call, pct)| Culprit {
            kind: "syscall",
            name: call.name.clone(),
            ns: view.ns(*pct),
            ..Culprit::default()
        })
        .collect();
    f.advice = vec![
        format!("use several objects instead of one {what}, each for a part of the data"),
        "shorten the critical section; use fewer threads for work that is not parallel".to_owned(),
    ];
    f
}
