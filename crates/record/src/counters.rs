//! Counters of the processor, read in groups: at every switch, or by a timer.
//!
//! * **At every switch.** On each CPU the tracepoint `sched_switch` becomes the leader of a group,
//!   whose other members are the counters: each of its samples then has the values of all of them.
//! * **At an interval.** On each CPU a kernel clock leads the group, and is sampled at that
//!   interval. Counters that do not fit on the PMU together are in several such groups, which are
//!   multiplexed.
//!
//! A group is on the PMU as a whole or not at all, including the leader. If the counters of a group
//! led by the switch did not fit, because the PMU has few, or others use them (such as the kernel's
//! NMI watchdog), switches would be missing from the recording. So a group is first tried on all
//! CPUs at once, and counters that do not fit at switches are left out. If others take counters
//! during the recording, the times in each sample show it.

use crate::attr::Manner;
use crate::counter::Counter;
use crate::session::{OpenError, Scope, Session};
use crate::sys::{Event, Whom, abi};
use std::io;
use std::time::Duration;

/// Length of a trial: several multiplexing intervals of the kernel, which are 1 to 4 ms.
const TRIAL: Duration = Duration::from_millis(20);

/// When counters are read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum When {
    /// At every switch of a CPU.
    #[default]
    Switches,
    /// At this interval, on every CPU.
    Every(Duration),
}

/// Why a counter is not read.
#[derive(Debug)]
pub enum Lack {
    /// The processor has no such counter, or no driver for it is loaded.
    NotSupported,
    /// There is no room for it next to the others.
    NoRoom,
    /// It counts for a socket, which has no switches and no control groups.
    OfSocket,
    /// The kernel refuses it.
    Refused(io::Error),
}

impl std::fmt::Display for Lack {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Lack::NotSupported => f.write_str("not supported by this machine's PMU"),
            Lack::NoRoom => {
                f.write_str("the PMU cannot count this together with the other counters")
            }
            Lack::OfSocket => f.write_str(
                "this counter is for a whole socket: it can be read only at an interval \
                 (--counters-interval), and only for the whole machine",
            ),
            Lack::Refused(why) => write!(f, "{why}"),
        }
    }
}

/// The result.
#[derive(Debug, Default)]
pub struct Counted {
    /// When they are read.
    pub when: When,
    /// Names of the counters that are read, by group.
    pub groups: Vec<Vec<String>>,
    /// The counters that are not read, and why.
    pub lacking: Vec<(String, Lack)>,
}

/// Reads `wanted` on the CPUs that `session` records. Must be called before its start.
///
/// # Errors
///
/// If the kernel refuses a group that it accepted in the trial.
pub fn join(
    session: &mut Session,
    scope: &Scope,
    wanted: Vec<Counter>,
    when: When,
) -> Result<Counted, OpenError> {
    let mut counted = Counted { when, ..Counted::default() };
    let cpus: Vec<u32> = session.cpus.iter().map(|on| on.cpu).collect();
    let whole_machine = matches!((when, scope), (When::Every(_), Scope::Machine));
    let mut there = Vec::new();
    for counter in wanted {
        let tried = match counter.is_of_a_socket() && !whole_machine {
            true => Err(Lack::OfSocket),
            false => alone(session.manner(), &counter, &cpus),
        };
        match tried {
            Ok(()) => there.push(counter),
            Err(lack) => counted.lacking.push((counter.name, lack)),
        }
    }
    let groups = match when {
        When::Switches => {
            while !there.is_empty() && !fits(session.manner(), &there, &cpus) {
                counted.lacking.extend(there.pop().map(|c| (c.name, Lack::NoRoom)));
            }
            if there.is_empty() { Vec::new() } else { vec![there] }
        }
        When::Every(_) => groups(session.manner(), there, &cpus),
    };
    for group in groups {
        let led = group.iter().map(|c| c.led(session.manner())).collect();
        match when {
            When::Switches => session.lead_by_switches(scope, led)?,
            When::Every(interval) => session.lead_by_timer(scope, interval, led)?,
        }
        counted.groups.push(group.into_iter().map(|c| c.name).collect());
    }
    Ok(counted)
}

/// Divides the counters into groups that each fit on the PMU.
fn groups(manner: &Manner, counters: Vec<Counter>, cpus: &[u32]) -> Vec<Vec<Counter>> {
    let mut groups: Vec<Vec<Counter>> = Vec::new();
    for counter in counters {
        let joins = |group: &Vec<Counter>| group.iter().all(|c| c.may_join(&counter));
        match groups.iter_mut().rev().find(|group| joins(group)) {
            Some(group) => {
                group.push(counter);
                if !fits(manner, group, cpus) {
                    let last = group.pop();
                    groups.extend(last.map(|counter| vec![counter]));
                }
            }
            None => groups.push(vec![counter]),
        }
    }
    groups
}

/// Whether there is such a counter.
fn alone(manner: &Manner, counter: &Counter, cpus: &[u32]) -> Result<(), Lack> {
    let attr = counter.attr(manner);
    let mut on = cpus.iter().filter(|&&cpu| counter.is_on(cpu)).peekable();
    if on.peek().is_none() {
        return Err(Lack::NotSupported);
    }
    match on.find_map(|&cpu| Event::open(&attr, Whom::Cpu(cpu), None).err()) {
        None => Ok(()),
        Some(e) => Err(match e.raw_os_error() {
            Some(libc::ENOENT | libc::EOPNOTSUPP | libc::ENODEV | libc::EINVAL | libc::ENXIO) => {
                Lack::NotSupported
            }
            _ => Lack::Refused(e),
        }),
    }
}

/// Whether a group of these counters runs all the time on every CPU.
fn fits(manner: &Manner, counters: &[Counter], cpus: &[u32]) -> bool {
    let mut leader = manner.counter(abi::PERF_TYPE_SOFTWARE, abi::PERF_COUNT_SW_DUMMY.into());
    leader.set_disabled(1);
    leader.read_format |= u64::from(abi::PERF_FORMAT_TOTAL_TIME_ENABLED)
        | u64::from(abi::PERF_FORMAT_TOTAL_TIME_RUNNING);
    let mut groups = Vec::new();
    for &cpu in cpus {
        let Ok(leader) = Event::open(&leader, Whom::Cpu(cpu), None) else { return false };
        let here = counters.iter().filter(|c| c.is_on(cpu));
        let open = |c: &Counter| Event::open(&c.attr(manner), Whom::Cpu(cpu), Some(&leader));
        let Ok(members) = here.map(open).collect::<io::Result<Vec<Event>>>() else {
            return false;
        };
        groups.push((leader, members));
    }
    if groups.iter().any(|(leader, _)| leader.enable().is_err()) {
        return false;
    }
    std::thread::sleep(TRIAL);
    groups.iter().all(|(leader, _)| {
        let _ = leader.disable();
        // Value, time enabled, time running, id.
        let mut words = [0; 4];
        leader.read(&mut words).is_ok() && words[1] > 0 && words[1] == words[2]
    })
}
