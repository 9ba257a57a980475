//! Culprits: the things that are bottlenecks, each with its threads.
//!
//! ```text
//!  objects   what threads wait for: mutexes, semaphores, pipes, disks …  (names as in `waits`)
//!  locks     locks of the kernel, by what its own events say             (names as in `locks`)
//!  threads   servers, late-comers, threads that run alone or queue
//!  spins     code in which threads spin
//!  quota     programs that a CPU quota keeps off the CPUs
//!  drivers   softirqs, interrupts, work functions and kernel threads
//! ```
//!
//! Each rule makes one call here. A system call is a culprit only if nothing more precise is known.

mod drivers;
mod locks;
mod objects;
mod quota;
mod spins;
mod threads;

pub(crate) use drivers::{driver, worker};
pub(crate) use locks::kernel_locks;
pub(crate) use objects::{contention, devices, freed};
pub(crate) use quota::{throttled, throttled_group};
pub(crate) use spins::spinning;
pub(crate) use threads::{alone, barriers, busiest, programs, queued, runs, server};

use crate::facts::Facts;
use crate::report::{Culprit, Person};
use holdup_attribution::Sleeper;
use holdup_attribution::limits::NAMED;
use holdup_passes::{Slot, percent, role};
use holdup_trace::Nanos;

/// Culprits of a finding, at most.
const CULPRITS: usize = 3;
/// Holders or waiters listed for a culprit, at most; their total number is given too.
const PEOPLE: usize = 8;

/// A system call that costs this much CPU time.
fn syscall(facts: &Facts<'_>, name: &str, ns: Nanos) -> Culprit {
    let call = facts.judged.calls.iter().find(|c| c.name == name);
    let id = call.map_or_else(String::new, |c| c.nr.to_string());
    let code = facts.code.zip(call).and_then(|(code, call)| code.call(call.nr));
    Culprit { kind: "syscall", id, name: name.to_owned(), ns, code, ..Culprit::default() }
}

/// `culprit` with the threads that wait for it, longest first.
fn waited_for(facts: &Facts<'_>, sleepers: &[Sleeper], culprit: Culprit) -> Culprit {
    let all: Nanos = sleepers.iter().map(|s| s.wait_ns).sum();
    let person = |s: &Sleeper| {
        let t = facts.thread(s.slot);
        Person {
            tid: t.tid.0,
            pid: facts.analysis.pid(t),
            comm: facts.analysis.comm(t),
            ns: s.wait_ns,
            pct: (all > 0).then(|| percent(s.wait_ns, all)),
            inferred: false,
        }
    };
    Culprit {
        waiters: sleepers.iter().take(PEOPLE).map(person).collect(),
        waiters_in_all: (!sleepers.is_empty()).then_some(sleepers.len() as u64),
        waited_ns: (all > 0).then_some(all),
        ..culprit
    }
}

/// The name of a program by those of its threads: the name that all have, or else what it is
/// without the number at its end, and a star.
fn program_name(facts: &Facts<'_>, threads: impl Iterator<Item = Slot>) -> String {
    let mut names = threads.map(|slot| facts.analysis.comm(facts.thread(slot)));
    let first = names.next().unwrap_or_default();
    match names.all(|name| name == first) {
        true => first,
        false => String::from_utf8_lossy(role(first.as_bytes())).into_owned() + "*",
    }
}

/// The most costly of `culprits`, which are sorted: the first, and those that cost enough to be
/// named.
fn most_costly(facts: &Facts<'_>, mut culprits: Vec<Culprit>) -> Vec<Culprit> {
    let mut place = 0;
    culprits.retain(|c| {
        place += 1;
        place == 1 || place <= CULPRITS && facts.at_least(facts.pct(c.ns), &NAMED).holds()
    });
    culprits
}
