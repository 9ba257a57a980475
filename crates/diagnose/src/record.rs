//! The command that records what a diagnosis needs.

use holdup_trace::{EventKind, TraceInfo, kernel_version};

/// Events that a recording for a diagnosis leaves out. Lockdep kernels are rare, and on others perf
/// refuses a command that names its events. Stacks and counters cost too much for a first look.
const NOT_ASKED_FOR: &[&str] = &["lockdep", "stacks", "counters", "groups"];

/// The command that repeats a recording that lost events, was too short, or did not trace enough
/// although it was long `enough`. holdup's own recorder keeps itself out of the recording; other
/// recorders are suggested where holdup may not be installed.
pub(crate) fn again(info: &TraceInfo, lost: u64, enough: bool) -> String {
    if is_elsewhere(info) {
        return record_command(info);
    }
    // The recorder's choice of calls was not enough: record all.
    let untraced = enough && lost == 0 && info.capabilities.syscalls.chosen().is_some();
    let all = if untraced { " --all-syscalls" } else { "" };
    let memory = if lost > 0 { " -m 16M" } else { "" };
    format!("holdup record{all}{memory} --duration 10s -o again.data")
}

/// Recorded by a tool for machines without holdup.
fn is_elsewhere(info: &TraceInfo) -> bool {
    info.format.starts_with("Perfetto") || info.format.starts_with("CTF")
}

/// A complete command that records all that a diagnosis can use, on the traced machine.
pub fn record_command(info: &TraceInfo) -> String {
    let x86 = info.arch.as_deref().is_none_or(|a| a.contains("86"));
    if !is_elsewhere(info) {
        let faults = if x86 { " -e 'exceptions:page_fault*'" } else { "" };
        return format!("holdup record --all-syscalls{faults} --duration 10s -o again.data");
    }
    let old = info.os_release.as_deref().and_then(kernel_version).is_some_and(|v| v < (5, 19));
    let events: Vec<&str> = info
        .capabilities
        .list()
        .into_iter()
        .filter(|(name, _, _)| !NOT_ASKED_FOR.contains(name))
        .filter(|(name, _, _)| (x86 || *name != "page_faults") && (!old || *name != "contention"))
        .map(|(_, _, events)| events)
        .collect();
    if info.format.starts_with("Perfetto") {
        // Its light form: names of events and no configuration.
        let each: Vec<String> =
            events.iter().flat_map(|e| e.split(',')).map(|e| e.replace(':', "/")).collect();
        format!("perfetto -o trace.pftrace -t 10s -b 64mb {}", each.join(" "))
    } else {
        lttng_command(&events)
    }
}

/// The command for LTTng, which has its own names for some events and an option for all system
/// calls. The state dump lists the threads; it is automatic when its events are enabled.
fn lttng_command(events: &[&str]) -> String {
    let names: Vec<&str> = events
        .iter()
        .flat_map(|group| group.split(','))
        .filter_map(|event| event.split_once(':'))
        .filter_map(|(system, name)| EventKind::of(system, name)?.lttng_name())
        .collect();
    format!(
        "lttng create && lttng enable-event --kernel --syscall --all && lttng enable-event \
            --kernel {},'lttng_statedump_*' && lttng start && sleep 10 && lttng destroy",
        names.join(",")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_recorder_is_asked_in_its_own_words() {
        let command = |format: &str| {
            let info = TraceInfo::new("x".into(), format);
            record_command(&info)
        };
        let lttng = command("CTF 1.8 (lttng-modules)");
        assert!(lttng.contains("--syscall --all"), "{lttng}");
        assert!(lttng.contains(" sched_switch,sched_wakeup,"), "{lttng}");
        assert!(lttng.contains(",irq_softirq_entry,irq_softirq_exit,"), "{lttng}");
        assert!(!lttng.contains("contention") && !lttng.contains("raw_syscalls"), "{lttng}");
        for format in ["trace.dat v7", "perf.data", "ftrace text"] {
            assert_eq!(
                command(format),
                "holdup record --all-syscalls -e 'exceptions:page_fault*' --duration 10s \
                 -o again.data"
            );
        }
    }

    #[test]
    fn what_is_recorded_again_is_what_was_missing() {
        let info = TraceInfo::new("x".into(), "perf.data");
        assert_eq!(again(&info, 0, true), "holdup record --duration 10s -o again.data");
        assert_eq!(again(&info, 7, true), "holdup record -m 16M --duration 10s -o again.data");
    }
}
