//! Programs as culprits: those that a CPU quota keeps off the CPUs.

use super::most_costly;
use crate::facts::Facts;
use crate::report::{Culprit, Person, Role};
use holdup_passes::{Slot, Throttle, percent};
use holdup_trace::Nanos;
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// The throttled threads of one name, whatever numbers follow it.
#[derive(Default)]
struct Program<'a> {
    /// The name that they all have; the common part where they differ.
    name: String,
    threads: Vec<(Slot, &'a Throttle)>,
    share: Nanos,
    off: Nanos,
}

/// Programs by the idle CPU time that they could have used, each with its threads.
pub(crate) fn throttled(facts: &Facts<'_>) -> Vec<Culprit> {
    let mut by: BTreeMap<String, Program<'_>> = BTreeMap::new();
    for (slot, t) in facts.analysis.all_threads() {
        let Some(throttle) = t.throttle() else { continue };
        let comm = facts.analysis.comm(t);
        let role = String::from_utf8_lossy(holdup_passes::role(comm.as_bytes())).into_owned();
        let program = by.entry(role.clone()).or_default();
        if program.threads.is_empty() {
            program.name = comm;
        } else if program.name != comm {
            program.name = role + "*";
        }
        program.threads.push((slot, throttle));
        program.share += throttle.share_ns();
        program.off += throttle.ns;
    }
    let mut programs: Vec<Program<'_>> = by.into_values().collect();
    programs.sort_by(|a, b| b.share.cmp(&a.share).then_with(|| a.name.cmp(&b.name)));
    most_costly(facts, programs.into_iter().map(|p| culprit(facts, p)).collect())
}

fn culprit(facts: &Facts<'_>, mut program: Program<'_>) -> Culprit {
    program.threads.sort_by_key(|&(slot, t)| (Reverse(t.ns), slot));
    let person = |&(slot, throttle): &(Slot, &Throttle)| {
        let t = facts.thread(slot);
        Person {
            tid: t.tid.0,
            pid: facts.analysis.pid(t),
            comm: facts.analysis.comm(t),
            ns: throttle.ns,
            pct: Some(percent(throttle.ns, program.off)),
            inferred: false,
        }
    };
    Culprit {
        kind: "program",
        id: program.name.clone(),
        name: program.name,
        ns: program.share,
        waiters: program.threads.iter().take(super::PEOPLE).map(person).collect(),
        waiters_in_all: Some(program.threads.len() as u64),
        role: Role::Throttled,
        ..Culprit::default()
    }
}
