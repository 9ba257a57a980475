//! The choice of threads: whether any match, and the alternatives if not.

use crate::cli::SelectArgs;
use crate::exit::{Failure, Result, usage};
use holdup_attribution::NoPath;
use holdup_passes::{Analysis, Filter};
use holdup_trace::shell_word;
use std::collections::BTreeMap;

/// Hint at the command that shows threads.
pub(crate) const PROCS: &str = "holdup procs shows the times of chosen threads";
/// Hint at the command that judges threads.
pub(crate) const DIAGNOSE: &str =
    "holdup diagnose finds the bottleneck of chosen threads, and holdup procs shows their times";
/// Hint at the command that divides the machine's time among groups of threads.
pub(crate) const LEDGER: &str = "holdup ledger --by cgroup divides the machine's time among \
     control groups, holdup diagnose finds the bottleneck of chosen threads, and holdup procs \
     shows their times";
/// How many names a message lists when a choice matches nothing.
const NAMES: usize = 5;

/// The threads that `args` choose.
pub(crate) fn filter(args: &SelectArgs) -> Filter {
    Filter {
        pids: args.pid.clone(),
        tids: args.tid.clone(),
        comms: args.comm.clone(),
        cgroups: args.cgroup.clone(),
        ..Filter::default()
    }
}

/// For a verb about the whole machine: reject a choice of threads, and name an alternative.
pub(crate) fn refuse(args: &SelectArgs, verb: &str, way_out: &str) -> Result<()> {
    let Some(option) = options(&filter(args)).into_iter().next() else { return Ok(()) };
    Err(usage(format!("{option}: holdup {verb} is about the whole machine; {way_out}")))
}

/// Reject a choice that matches no thread of the trace.
pub(crate) fn must_match(filter: &Filter, analysis: &Analysis) -> Result<()> {
    if !filter.chooses_threads() || analysis.all_threads().any(|(_, t)| analysis.fits(filter, t)) {
        return Ok(());
    }
    if !filter.cgroups.is_empty() {
        return Err(no_group(filter, analysis));
    }
    let options = options(filter).join(" ");
    let mut by: BTreeMap<(String, Option<u32>), u64> = BTreeMap::new();
    for (_, t) in analysis.all_threads() {
        *by.entry((analysis.comm(t), analysis.pid(t))).or_default() += t.running_ns;
    }
    let mut busiest: Vec<_> = by.iter().filter(|(_, ns)| **ns > 0).map(|(who, _)| who).collect();
    busiest.sort_by_key(|who| (std::cmp::Reverse(by[*who]), *who));
    let name = |(comm, pid): &(String, Option<u32>)| match pid {
        Some(pid) => format!("{comm} ({pid})"),
        None => comm.clone(),
    };
    let busiest: Vec<String> = busiest.into_iter().take(NAMES).map(name).collect();
    let mut names: Vec<&str> = by.keys().map(|(comm, _)| comm.as_str()).collect();
    names.dedup();
    let near = |asked: &String| nearest(asked, names.iter().copied());
    let near: Vec<&str> = filter.comms.iter().filter_map(near).collect();
    let near = match &near[..] {
        [] => String::new(),
        near => format!("; nearest by name: {}", near.join(", ")),
    };
    let busiest = match &busiest[..] {
        [] => "no thread ran".to_owned(),
        busy => format!("the busiest are {}", busy.join(", ")),
    };
    Err(usage(format!("{options}: no thread of the trace matches{near}; {busiest}")))
}

/// No thread is in a chosen control group: list the groups of the trace, the busiest first.
fn no_group(filter: &Filter, analysis: &Analysis) -> Failure {
    let options = options(filter).join(" ");
    let mut by: BTreeMap<String, u64> = BTreeMap::new();
    for (_, t) in analysis.all_threads() {
        if let Some(group) = analysis.group_words(analysis.group(t)) {
            *by.entry(group).or_default() += t.running_ns;
        }
    }
    if by.is_empty() {
        return usage(format!(
            "{options}: the trace does not say in which control groups its threads are; holdup \
             record and perf record --all-cgroups record that"
        ));
    }
    let fits = |group: &Filter| analysis.all_threads().any(|(_, t)| analysis.fits(group, t));
    let alone = Filter { cgroups: filter.cgroups.clone(), ..Filter::default() };
    if fits(&alone) {
        return usage(format!("{options}: no thread of the trace matches all of these options"));
    }
    let near: Vec<&str> = filter
        .cgroups
        .iter()
        .filter_map(|asked| nearest(asked, by.keys().map(String::as_str)))
        .collect();
    let near = match &near[..] {
        [] => String::new(),
        near => format!("; nearest by name: {}", near.join(", ")),
    };
    let mut busiest: Vec<(&String, &u64)> = by.iter().collect();
    busiest.sort_by_key(|&(name, ns)| (std::cmp::Reverse(ns), name));
    let busiest: Vec<&str> = busiest.iter().take(NAMES).map(|(name, _)| name.as_str()).collect();
    usage(format!(
        "{options}: no thread of the trace is in a control group with this name{near}; the busiest \
         groups are {}",
        busiest.join(", ")
    ))
}

/// The one of `names` that is spelled most like `asked`, if any is at all.
fn nearest<'a>(asked: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let far = |name: &&str| strsim::levenshtein(asked, name);
    let limit = asked.chars().count().div_ceil(2);
    names.min_by_key(far).filter(|name| far(name) <= limit)
}

/// Whether a verb can answer about chosen threads. `record` can choose threads too, but their
/// bottleneck may be anything on the machine.
pub(crate) fn takes(verb: &str) -> bool {
    const MACHINES: [&str; 9] =
        ["irqs", "cpus", "info", "ledger", "phases", "predict", "whatif", "record", "run"];
    !MACHINES.contains(&verb)
}

/// A choice as command-line text, quoted for a shell.
pub(crate) fn words(filter: &Filter) -> String {
    let quote = |names: &[String]| match names {
        [] => Vec::new(),
        names => vec![shell_word(&names.join(","))],
    };
    let filter =
        Filter { comms: quote(&filter.comms), cgroups: quote(&filter.cgroups), ..filter.clone() };
    options(&filter).iter().map(|option| format!(" {option}")).collect()
}

/// A choice as command-line options.
pub(crate) fn options(filter: &Filter) -> Vec<String> {
    let numbers = |name: &str, list: &[u32]| {
        let list: Vec<String> = list.iter().map(u32::to_string).collect();
        (!list.is_empty()).then(|| format!("{name} {}", list.join(",")))
    };
    let names = |name: &str, list: &[String]| {
        (!list.is_empty()).then(|| format!("{name} {}", list.join(",")))
    };
    let (comms, cgroups) = (names("--comm", &filter.comms), names("--cgroup", &filter.cgroups));
    [numbers("-p", &filter.pids), numbers("--tid", &filter.tids), comms, cgroups]
        .into_iter()
        .flatten()
        .collect()
}

/// Why there is no critical path, in words.
pub(crate) fn no_path(why: &NoPath) -> String {
    match why {
        NoPath::NoThread => "no thread with this number ran or slept in the trace".to_owned(),
        NoPath::Kernel(name) => format!(
            "{name} is a kernel thread: the causes of its sleeps are not known, so it has no \
             critical path; holdup procs --tid shows its times"
        ),
        NoPath::Still(name) => format!(
            "{name} neither ran nor was woken: it slept from the first event to the last, or \
             its events are missing"
        ),
    }
}
