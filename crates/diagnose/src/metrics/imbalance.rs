//! One process near 100 % of one CPU while the others are idle (AIX case 4).

use super::View;
use crate::report::{Class, Culprit, Evidence, Finding, Role};
use holdup_attribution::limits::ALONE;

/// The process or thread that uses most of one CPU, and how much of it.
pub(super) fn server<'a>(view: &View<'a>) -> Option<(&'a super::Process, f64)> {
    let of_one_cpu = |p: &super::Process| p.combined_pct.map(|pct| pct * view.cpus);
    let top = view
        .figures
        .processes
        .iter()
        .filter_map(|p| Some((p, of_one_cpu(p)?)))
        .max_by(|a, b| a.1.total_cmp(&b.1))?;
    // A process of several threads may use more than one CPU: it is no single server. Published
    // figures are rounded to one per cent of all CPUs, so a small excess is no second thread.
    (top.1 >= view.limit(&ALONE) && (top.0.tid.is_some() || top.1 <= 100.0 + view.cpus))
        .then_some(top)
}

pub(super) fn check(view: &View<'_>) -> Finding {
    let class = Class::WorkloadImbalance;
    if view.figures.processes.is_empty() {
        return view.silent(
            class,
            "the file does not say which processes used the CPUs \
                                   (processes)",
        );
    }
    let Some(idle) = view.idle else {
        return view.silent(class, "the file does not say how idle the CPUs were (sar)");
    };
    let Some((p, of_one)) = server(view) else {
        let top = view.figures.processes.iter().filter_map(|p| p.combined_pct).fold(0.0, f64::max)
            * view.cpus;
        let mut f = view.finding(class, 0.0, "no single process fills a CPU".to_owned());
        f.ruled_out = Some(format!("the busiest process uses {top:.0} % of one CPU"));
        f.evidence = vec![
            Evidence::of("busiest process", top, "% of one CPU", "processes")
                .against(view.thresholds, &ALONE),
        ];
        return f;
    };
    let name = match p.pid {
        Some(pid) => format!("{} ({pid})", p.name),
        None => p.name.clone(),
    };
    let lost = view.cpus * idle / 100.0;
    let summary = format!(
        "{name} uses {of_one:.0} % of one CPU, and a thread cannot use more than one, while \
         {lost:.1} of {} CPUs are idle",
        view.cpus
    );
    let share = if view.cpus > 1.0 { idle } else { 0.0 };
    let mut f = view.finding(class, share, summary);
    f.evidence = vec![
        Evidence::of(format!("processing time of {name}"), of_one, "% of one CPU", "processes")
            .against(view.thresholds, &ALONE),
    ];
    super::given(&mut f.evidence, "CPUs idle", Some(idle), "% of capacity", "sar");
    super::given(&mut f.evidence, "CPUs busy", view.busy(), "% of capacity", "sar");
    f.evidence.push(Evidence::of("one CPU of all", 100.0 / view.cpus, "% of capacity", "cpus"));
    let others = view
        .figures
        .processes
        .iter()
        .filter(|o| !std::ptr::eq(*o, p))
        .filter_map(|o| o.combined_pct)
        .fold(0.0, f64::max);
    f.evidence.push(Evidence::of(
        "next busiest process",
        others * view.cpus,
        "% of one CPU",
        "processes",
    ));
    f.culprits = vec![Culprit {
        kind: if p.tid.is_some() { "thread" } else { "process" },
        id: p.tid.or(p.pid).map_or_else(String::new, |id| id.to_string()),
        name: p.name.clone(),
        tid: p.tid,
        pid: p.pid,
        ns: view.ns(of_one / view.cpus),
        role: Role::Runs,
        ..Culprit::default()
    }];
    f.advice = vec![
        "split the server into independent processes or threads, so that more than \
        one CPU can serve"
            .to_owned(),
    ];
    f
}
