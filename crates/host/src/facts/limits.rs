//! How much may be recorded: memory for buffers, and open files.

use crate::host::{Host, Tried};
use crate::process::{Capability, Limit, Surroundings};
use crate::{Obstacle, State, WayOut, page_size, ways};

/// Buffer size per CPU, in bytes, with which the busiest recordings lost no events.
pub const BUFFER: u64 = 4 << 20;

/// Open files of a recorder in addition to its events: the output, and what it reads.
const OTHER_FILES: u64 = 64;

/// Maximal bytes of records in the buffer of each CPU: a power of two of pages. `None` if nothing
/// limits it or the limit is unknown.
///
/// For each buffer the kernel locks one more page. Locked pages may take `perf_event_mlock_kb` for
/// each CPU, plus the process's own limit of locked memory; all buffers of a user count
/// (`perf_mmap` of `kernel/events/core.c`).
pub fn largest_buffer(host: &Host) -> Option<u64> {
    let (process, kernel) = (&host.process, &host.kernel);
    if kernel.perf.lets_everybody() || process.has(Capability::IpcLock) {
        return None;
    }
    let cpus = kernel.online.as_ref()?.len() as u64;
    let own = process.locked_memory?.soft;
    let all = kernel.buffer_bytes?.checked_mul(cpus)?.checked_add(own)?;
    let page = page_size() as u64;
    let pages = (all / cpus.max(1) / page).saturating_sub(1);
    Some(pages.checked_ilog2().map_or(0, |log| page << log))
}

/// Whether buffers may be as large as a busy machine needs.
pub(super) fn buffers(host: &Host, _: &Tried) -> State {
    let wanted = BUFFER >> 20;
    let Some(most) = largest_buffer(host) else {
        return State::ok(format!("a buffer of {wanted} MiB or more for each CPU is allowed"));
    };
    if most >= BUFFER {
        return State::ok(format!("a buffer of {} MiB for each CPU is allowed", most >> 20));
    }
    let what = format!(
        "kernel.perf_event_mlock_kb and the limit of locked memory allow a buffer of at most {} \
         KiB per CPU; a busy machine needs {wanted} MiB",
        most >> 10
    );
    let kib = (BUFFER >> 10) + (page_size() as u64 >> 10);
    let mut ways = ways::container(&host.process);
    if host.process.surroundings == Surroundings::Host {
        ways.push(ways::as_root(&host.process));
        ways.push(WayOut::commands(
            "or allow everybody larger buffers until the next boot",
            &[&format!("sudo sysctl kernel.perf_event_mlock_kb={kib}")],
        ));
    }
    if most == 0 {
        return State::Missing(Obstacle::stops(what, ways));
    }
    let costs = "events are lost when a CPU switches often between threads; the figures are then \
                 only estimates";
    State::Limited(Obstacle::costs(what, costs, ways))
}

/// Whether a recording can keep its files open: one for each event and CPU.
pub(super) fn open_files(host: &Host, tried: &Tried) -> State {
    let (Some(limit), Some(cpus)) = (host.process.open_files, &host.kernel.online) else {
        return State::unknown("the limit or the number of CPUs cannot be read");
    };
    let Some(events) = &tried.events else {
        return State::unknown("tracefs cannot be read, so the number of files needed is unknown");
    };
    let needed = events.found as u64 * cpus.len() as u64 + OTHER_FILES;
    if needed <= limit.hard {
        return State::ok(format!("{needed} of {}", limit_words(limit)));
    }
    State::Missing(too_few_files(host, limit, Some(needed)))
}

fn limit_words(limit: Limit) -> String {
    match limit.hard {
        u64::MAX => "any number".to_owned(),
        hard => hard.to_string(),
    }
}

/// Enough for most recordings, if the needed number is not known.
const MANY_FILES: u64 = 65_536;

/// More files are `needed` at once than the limit allows.
fn too_few_files(host: &Host, limit: Limit, needed: Option<u64>) -> Obstacle {
    let what = format!(
        "this process may have {} files open, and a recording needs {}one for each event and CPU",
        limit_words(limit),
        needed.map_or(String::new(), |needed| format!("{needed}: ")),
    );
    let most = needed.map_or(MANY_FILES, u64::next_power_of_two);
    let raise = match host.process.surroundings {
        Surroundings::Docker | Surroundings::Podman => {
            WayOut::words(format!("start the container with --ulimit nofile={most}"))
        }
        _ => WayOut::commands(
            "raise the limit, as root, in the shell that records",
            &[&format!("ulimit -n {most}")],
        ),
    };
    let fewer =
        WayOut::commands("or record fewer events", &["holdup record --preset sched -- COMMAND"]);
    Obstacle::stops(what, vec![raise, fewer])
}

/// A file could not be opened because too many are open.
pub(crate) fn no_more_files(host: &Host, tried: &Tried) -> Obstacle {
    match (open_files(host, tried), host.process.open_files) {
        (State::Missing(obstacle), _) => obstacle,
        // The events were not counted, or other files are open.
        (_, Some(limit)) => too_few_files(host, limit, None),
        (_, None) => Obstacle::stops(
            "this process may not open more files (EMFILE)",
            vec![WayOut::commands("raise the limit", &[&format!("ulimit -n {MANY_FILES}")])],
        ),
    }
}
