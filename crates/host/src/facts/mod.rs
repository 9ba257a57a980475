//! Everything a recording depends on, judged one by one.
//!
//! Facts are in the order in which a recorder meets them: first the right to record, then what can
//! be recorded, then how much of it, then what the file will lack.

mod limits;
mod machine;
mod rights;
mod tracing;

pub(crate) use limits::no_more_files;
pub use limits::{BUFFER, largest_buffer};
pub use tracing::no_tracefs;

use crate::host::{Attempt, Host, Tried};
use crate::{Fact, Obstacle, State, refusal};

/// The fact that proves the others.
const RECORDING: &str = "recording";

/// The state of everything, in a fixed order.
pub fn facts(host: &Host, tried: &Tried) -> Vec<Fact> {
    let mut facts = before_trying(host, tried);
    let works = recording(host, tried, stopped(&facts));
    for fact in facts.iter_mut().filter(|fact| fact.name == RECORDING) {
        fact.state = works.clone();
    }
    facts
}

/// All facts except the result of a trial recording.
fn before_trying(host: &Host, tried: &Tried) -> Vec<Fact> {
    type Judge = fn(&Host, &Tried) -> State;
    let all: [(&'static str, Judge); 16] = [
        ("perf-events", rights::call),
        ("permission", rights::permission),
        ("lockdown", rights::lockdown),
        ("tracefs", tracing::tracefs),
        ("tracepoints", tracing::tracepoints),
        ("system-calls", tracing::system_calls),
        ("open-files", limits::open_files),
        (RECORDING, |_, _| State::unknown("this was not tested, because of an obstacle above")),
        ("buffers", limits::buffers),
        ("cpus", machine::cpus),
        ("idle-events", machine::idle_events),
        ("counters", machine::counters),
        ("threads", machine::threads),
        ("symbols", machine::symbols),
        ("cgroups", machine::cgroups),
        ("clock", machine::clock),
    ];
    all.into_iter().map(|(name, judge)| Fact { name, state: judge(host, tried) }).collect()
}

/// Whether a trial recording works, whatever the settings say. `stop` is the setting that forbids
/// it.
fn recording(host: &Host, tried: &Tried, stop: Option<&Obstacle>) -> State {
    match (&tried.record, stop) {
        (None, _) => State::unknown("this was not tested, because of an obstacle above"),
        (Some(Ok(())), _) => State::ok(
            "this was tested: the context switches of every CPU were recorded for a moment",
        ),
        // The same reason is reported only once.
        (Some(Err(_)), Some(_)) => {
            State::unknown("recording is refused because of an obstacle above")
        }
        (Some(Err((attempt, error))), None) => {
            State::Missing(refusal::why(host, tried, attempt, *error, None))
        }
    }
}

/// Why the kernel refused, and the way out. `error` is the call's `errno`; what the recorder would
/// have recorded, and what else it tried, is in `tried`, as far as known.
pub fn refused(host: &Host, tried: &Tried, attempt: &Attempt<'_>, error: i32) -> Obstacle {
    // Whether this attempt works is already known.
    let facts = before_trying(host, tried);
    refusal::why(host, tried, attempt, error, stopped(&facts))
}

/// Whether a recording works; `None` if nothing forbids it, and it was not tried.
pub fn can_record(facts: &[Fact]) -> Option<bool> {
    let tried = facts.iter().find(|fact| fact.name == RECORDING);
    match (stopped(facts), tried.map(|fact| &fact.state)) {
        (Some(_), _) => Some(false),
        (None, Some(State::Ok { .. })) => Some(true),
        (None, _) => None,
    }
}

/// The first obstacle to a recording that a recorder would meet; `None` if there is none.
pub fn stopped(facts: &[Fact]) -> Option<&Obstacle> {
    facts.iter().find_map(|fact| fact.state.stop())
}
