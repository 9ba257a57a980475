//! Control groups as culprits, or programs if groups are unknown: those that a CPU quota throttles.

use super::{most_costly, program_name};
use crate::facts::Facts;
use crate::report::{Culprit, Person, Role};
use holdup_passes::{Slot, Thread, Throttle, percent};
use holdup_trace::{NameId, Nanos};
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// The throttled threads of one control group; if groups are unknown, those of one name without the
/// number at its end.
#[derive(Default)]
struct Program<'a> {
    kind: &'static str,
    /// The name of the group; or the threads' name, or its common part if they differ.
    name: String,
    threads: Vec<(Slot, &'a Throttle)>,
    share: Nanos,
    off: Nanos,
}

/// The control group of a throttled thread. The root group has no quota: with cgroup v1, perf
/// events may know another hierarchy than that of the quotas.
fn limited(facts: &Facts<'_>, t: &Thread) -> NameId {
    let group = facts.analysis.group(t);
    if facts.analysis.path_of(group) == "/" { NameId::NONE } else { group }
}

/// The control group that loses most by a quota; [`NameId::NONE`] if groups are unknown.
pub(crate) fn throttled_group(facts: &Facts<'_>) -> NameId {
    let mut by: BTreeMap<NameId, Nanos> = BTreeMap::new();
    for (_, t) in facts.analysis.all_threads() {
        if let Some(throttle) = t.throttle() {
            *by.entry(limited(facts, t)).or_default() += throttle.share_ns();
        }
    }
    let path = |group: NameId| facts.analysis.path_of(group);
    let most = by.into_iter().max_by(|a, b| a.1.cmp(&b.1).then_with(|| path(b.0).cmp(path(a.0))));
    most.map_or(NameId::NONE, |(group, _)| group)
}

/// Groups or programs by the idle CPU time that they could have used, each with its threads.
pub(crate) fn throttled(facts: &Facts<'_>) -> Vec<Culprit> {
    let mut by: BTreeMap<String, Program<'_>> = BTreeMap::new();
    for (slot, t) in facts.analysis.all_threads() {
        let Some(throttle) = t.throttle() else { continue };
        let group = limited(facts, t);
        if let Some(name) = facts.analysis.group_words(group) {
            let path = facts.analysis.path_of(group).to_owned();
            let program = by.entry(path).or_default();
            (program.kind, program.name) = ("cgroup", name);
            program.add(slot, throttle);
            continue;
        }
        let comm = facts.analysis.comm(t);
        let role = String::from_utf8_lossy(holdup_passes::role(comm.as_bytes())).into_owned();
        let program = by.entry(role).or_default();
        program.kind = "program";
        program.add(slot, throttle);
    }
    let mut programs: Vec<Program<'_>> = by.into_values().collect();
    for program in programs.iter_mut().filter(|p| p.kind == "program") {
        program.name = program_name(facts, program.threads.iter().map(|of| of.0));
    }
    programs.sort_by(|a, b| b.share.cmp(&a.share).then_with(|| a.name.cmp(&b.name)));
    most_costly(facts, programs.into_iter().map(|p| culprit(facts, p)).collect())
}

impl<'a> Program<'a> {
    fn add(&mut self, slot: Slot, throttle: &'a Throttle) {
        self.threads.push((slot, throttle));
        self.share += throttle.share_ns();
        self.off += throttle.ns;
    }
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
        kind: program.kind,
        id: program.name.clone(),
        name: program.name,
        ns: program.share,
        waiters: program.threads.iter().take(super::PEOPLE).map(person).collect(),
        waiters_in_all: Some(program.threads.len() as u64),
        role: Role::Throttled,
        ..Culprit::default()
    }
}
