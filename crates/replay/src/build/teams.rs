//! Teams: threads or processes of one kind that one thread or process started.

use crate::program::{Team, ThreadProgram};
use holdup_passes::{Analysis, role};
use std::collections::BTreeMap;

/// Number the teams of two members or more.
pub(super) fn find_teams(analysis: &Analysis, threads: &mut [ThreadProgram]) {
    let mut teams: BTreeMap<_, Vec<usize>> = BTreeMap::new();
    for (i, program) in threads.iter().enumerate().filter(|(_, t)| t.works && !t.is_kthread) {
        let t = analysis.thread(program.slot);
        // A process's first thread does other work than those it starts.
        let pid = analysis.pid(t).filter(|&pid| pid != program.tid);
        let started_by = pid.or(t.parent.map(|parent| parent.0));
        let kind = (pid.is_some(), started_by, role(program.comm.as_bytes()).to_vec());
        teams.entry(kind).or_default().push(i);
    }
    for (members, team) in teams.into_values().filter(|team| team.len() > 1).zip(0..) {
        members.into_iter().for_each(|i| threads[i].team = Some(Team(team)));
    }
}
