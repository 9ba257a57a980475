//! Teams: threads or processes of one kind that one thread or process started, itself or through
//! helpers that started only one of them, as a compiler's driver does.

use crate::program::{Team, ThreadProgram};
use holdup_passes::{Analysis, role};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;

/// So many helpers may be between a process and the one that started its team.
const HELPERS: usize = 4;

/// Who started it, as a thread of a process or as a process; and of which kind it is.
type Likeness = (bool, Option<u32>, Vec<u8>);

/// Number the teams of two members or more.
pub(super) fn find_teams(analysis: &Analysis, threads: &mut [ThreadProgram]) {
    let mut teams: BTreeMap<Likeness, Vec<usize>> = BTreeMap::new();
    for (i, program) in threads.iter().enumerate().filter(|(_, t)| t.works && !t.is_kthread) {
        let t = analysis.thread(program.slot);
        // A process's first thread does other work than those it starts.
        let pid = analysis.pid(t).filter(|&pid| pid != program.tid);
        let started_by = pid.or(t.parent.map(|parent| parent.0));
        let kind = (pid.is_some(), started_by, role(program.comm.as_bytes()).to_vec());
        teams.entry(kind).or_default().push(i);
    }
    let parents: FxHashMap<u32, u32> =
        analysis.all_threads().filter_map(|(_, t)| Some((t.tid.0, t.parent?.0))).collect();
    for _ in 0..HELPERS {
        let is_alone = |(kind, of): &(&Likeness, &Vec<usize>)| !kind.0 && of.len() == 1;
        let alone: Vec<Likeness> = teams.iter().filter(is_alone).map(|of| of.0.clone()).collect();
        for kind in alone {
            let Some(above) = kind.1.and_then(|by| parents.get(&by)) else { continue };
            let members = teams.remove(&kind).unwrap_or_default();
            teams.entry((false, Some(*above), kind.2)).or_default().extend(members);
        }
    }
    for (members, team) in teams.into_values().filter(|team| team.len() > 1).zip(0..) {
        members.into_iter().for_each(|i| threads[i].team = Some(Team(team)));
    }
}
