//! Rounds of work that one thread hands out to a team and waits for: fork and join.
//!
//! ```text
//!  master    hands out, sleeps ─────────────────────────► hands out, sleeps ──
//!  worker 1  ▓▓▓▓▓▓ sleeps                                ▓▓▓▓▓ sleeps
//!  worker 2  ▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓ wakes master  ▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓
//!            └──────────── one round ────────────────────┘join
//! ```
//!
//! A *join* is a moment at which a worker wakes the thread that waits for the team, while all other
//! workers wait for a thread to wake them, or have ended. Whoever keeps a team busy hands out more
//! as soon as one worker is done: then the moments at which one worker alone is awake are chance.

use crate::build::is_part;
use crate::program::{ObjectId, Op, Program, ThreadProgram};
use crate::relief::{Wait, Waits};
use holdup_passes::{Analysis, role};
use holdup_trace::Nanos;
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;

/// A team: threads or processes of one kind that one thread or process started.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct Team(u32);

/// Number the teams of two members or more.
pub(crate) fn find_teams(analysis: &Analysis, threads: &mut [ThreadProgram]) {
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

/// The joins of all teams.
#[derive(Clone, Debug, Default)]
pub(crate) struct Joins {
    /// For each team, the number of its first round, and its joins in order.
    by_team: FxHashMap<Team, (u32, Vec<Nanos>)>,
    /// Rounds of all teams.
    pub(crate) rounds: u32,
    /// How long the masters waited for their teams.
    pub(crate) waited_ns: Nanos,
    /// By object: waiting of masters for their teams, and of workers for the next round.
    by_object: FxHashMap<ObjectId, Nanos>,
}

impl Joins {
    pub(crate) fn of(program: &Program, waits: &Waits) -> Joins {
        let of_team = |w: &Wait| ended_by_team(program, w);
        let mut waited: BTreeMap<(Team, u32), (usize, Nanos)> = BTreeMap::new();
        for w in waits.all() {
            if let Some(team) = of_team(w) {
                let (times, ns) = waited.entry((team, w.thread)).or_default();
                (*times, *ns) = (*times + 1, *ns + (w.goes_on - w.from));
            }
        }
        // The thread that waits most often for a team is its master.
        let mut masters: BTreeMap<Team, (usize, Nanos, u32)> = BTreeMap::new();
        for ((team, thread), (times, ns)) in waited {
            let most = masters.entry(team).or_default();
            *most = (*most).max((times, ns, thread));
        }
        let mut found = Joins::default();
        for (team, (_, ns, master)) in masters {
            let ends = waits.all().iter().filter(|w| w.thread == master);
            let ends = ends.filter(|w| of_team(w) == Some(team));
            let ends: Vec<(Nanos, u32)> = ends.filter_map(|w| Some((w.to, w.waker?))).collect();
            let joins = joins(program, waits, team, &ends);
            if is_in_rounds(program, waits, team, (&ends, ns), &joins) {
                let first = found.rounds;
                found.rounds += joins.len() as u32 + 1;
                found.waited_ns += ns;
                found.count(program, waits, team, master, &joins);
                found.by_team.insert(team, (first, joins));
            }
        }
        found
    }

    fn count(
        &mut self,
        program: &Program,
        waits: &Waits,
        team: Team,
        master: u32,
        joins: &[Nanos],
    ) {
        let is_for_round = |w: &&Wait| match program.threads[w.thread as usize].team {
            Some(of) if of == team => {
                let next = joins.partition_point(|&at| at <= w.from);
                joins.get(next).is_some_and(|&at| at <= w.to)
            }
            _ => w.thread == master && ended_by_team(program, w) == Some(team),
        };
        for w in waits.all().iter().filter(is_for_round) {
            *self.by_object.entry(w.object).or_default() += w.to - w.from;
        }
    }

    /// Whether most waiting for an object was for a round to end, or to begin.
    pub(crate) fn are_at(&self, program: &Program, object: ObjectId) -> bool {
        let ns = self.by_object.get(&object).copied().unwrap_or(0);
        ns * 2 > program.objects[object.0 as usize].wait_ns
    }

    /// The number of the first round of a thread's team, and the joins in which its rounds end.
    pub(crate) fn rounds_of(&self, t: &ThreadProgram) -> Option<(u32, &[Nanos])> {
        let (first, joins) = self.by_team.get(&t.team?)?;
        Some((*first, joins))
    }
}

/// The team whose work ended a wait of a thread outside it.
fn ended_by_team(program: &Program, w: &Wait) -> Option<Team> {
    let t = &program.threads[w.thread as usize];
    let team = program.threads[w.waker? as usize].team?;
    (t.team != Some(team) && !t.is_kthread).then_some(team)
}

/// Whether the joins are where rounds end: there are enough of them, the master waits for the team
/// most of the time, and in most rounds the team is handed no more work after one worker was done.
fn is_in_rounds(
    program: &Program,
    waits: &Waits,
    team: Team,
    (ends, waited_ns): (&[(Nanos, u32)], Nanos),
    joins: &[Nanos],
) -> bool {
    let [first, .., last] = joins else { return false };
    if joins.len() < program.enough || waited_ns * 2 < last - first {
        return false;
    }
    let is_of = |thread: u32| program.threads[thread as usize].team == Some(team);
    let outside = |by: u32| !is_of(by);
    let handed = waits.all().iter().filter(|w| is_of(w.thread) && w.waker.is_some_and(outside));
    let mut handed = handed.map(|w| w.to).peekable();
    let mut ends = ends.iter().map(|end| end.0).peekable();
    let is_fed = |&&join: &&Nanos| {
        let first = ends.next_if(|&at| at <= join);
        while ends.next_if(|&at| at <= join).is_some() {}
        let mut fed = false;
        while let Some(at) = handed.next_if(|&at| at < join) {
            fed |= first.is_some_and(|first| at > first);
        }
        fed
    };
    joins.iter().filter(is_fed).count() * 2 < joins.len()
}

/// Whether two workers or more are awake in a part of the team's time that matters. If not, they
/// take turns, as at a lock.
fn are_concurrent(program: &Program, changes: &[(Nanos, u32, bool)]) -> bool {
    let (mut awake, mut since) = (0_usize, 0);
    let (mut any_ns, mut several_ns) = (0, 0);
    for &(at, _, wakes) in changes {
        any_ns += if awake > 0 { at - since } else { 0 };
        several_ns += if awake > 1 { at - since } else { 0 };
        since = at;
        awake = if wakes { awake + 1 } else { awake.saturating_sub(1) };
    }
    is_part(several_ns, any_ns, program.free_pct)
}

/// The moments, of those at which this worker of the team wakes its master, when no other is awake.
fn joins(program: &Program, waits: &Waits, team: Team, ends: &[(Nanos, u32)]) -> Vec<Nanos> {
    let mut changes: Vec<(Nanos, u32, bool)> = Vec::new();
    for (t, i) in program.threads.iter().zip(0..).filter(|(t, _)| t.team == Some(team)) {
        let (first, last) = (t.from as usize, t.to as usize - 1);
        let ran = if let Op::Run(ns) = program.ops[last] { ns } else { 0 };
        changes.push((program.times[first], i, true));
        changes.push((program.times[last] + ran, i, false));
    }
    let is_of = |w: &&Wait| program.threads[w.thread as usize].team == Some(team);
    for w in waits.all().iter().filter(is_of).filter(|w| w.waker.is_some()) {
        changes.extend([(w.from, w.thread, false), (w.to, w.thread, true)]);
    }
    changes.sort_unstable();
    if !are_concurrent(program, &changes) {
        return Vec::new();
    }
    let mut changes = changes.into_iter().peekable();
    let mut awake: Vec<u32> = Vec::new();
    let mut found = Vec::new();
    for &(at, waker) in ends {
        while let Some((_, thread, wakes)) = changes.next_if(|change| change.0 <= at) {
            awake.retain(|&other| other != thread);
            awake.extend(wakes.then_some(thread));
        }
        if awake.iter().all(|&thread| thread == waker) {
            found.push(at);
        }
    }
    found
}
