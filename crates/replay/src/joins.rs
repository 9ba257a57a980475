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
use crate::program::{Joins, ObjectId, Op, Program, Team, ThreadProgram};
use crate::relief::{Wait, Waits};
use holdup_trace::Nanos;
use rustc_hash::FxHashSet;
use std::collections::BTreeMap;

impl Joins {
    pub(crate) fn of(program: &Program, waits: &Waits) -> Joins {
        let mut found = Joins::default();
        for (team, seen) in Seen::of(program, waits) {
            // The thread that waits most often for a team is its master.
            let waited_ns = |of: &[&Wait]| of.iter().map(|w| w.goes_on - w.from).sum::<Nanos>();
            let masters = seen.outside.values().map(|of| (of.len(), waited_ns(of), of));
            let Some((_, ns, ends)) = masters.max_by_key(|&(times, ns, _)| (times, ns)) else {
                continue;
            };
            let joins = seen.joins(program, ends, ns);
            if joins.is_empty() {
                continue;
            }
            for w in ends.iter().chain(seen.own.iter().filter(|w| spans_one(w, &joins))) {
                *found.by_object.entry(w.object).or_default() += w.to - w.from;
            }
            let first = found.rounds;
            found.rounds += joins.len() as u32 + 1;
            found.waited_ns += ns;
            found.by_team.insert(team, (first, joins));
        }
        found
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

/// Whether a join is in this wait.
fn spans_one(w: &Wait, joins: &[Nanos]) -> bool {
    let next = joins.partition_point(|&at| at <= w.from);
    joins.get(next).is_some_and(|&at| at <= w.to)
}

/// What is seen of one team, in order of time.
#[derive(Default)]
struct Seen<'a> {
    members: Vec<u32>,
    /// Waits of its members that a thread ended.
    own: Vec<&'a Wait>,
    /// When threads outside the team ended them.
    handed: Vec<Nanos>,
    /// Waits of threads outside the team that it ended, by thread.
    outside: BTreeMap<u32, Vec<&'a Wait>>,
}

impl<'a> Seen<'a> {
    fn of(program: &Program, waits: &'a Waits) -> BTreeMap<Team, Seen<'a>> {
        let mut by: BTreeMap<Team, Seen<'_>> = BTreeMap::new();
        for (t, i) in program.threads.iter().zip(0..) {
            if let Some(team) = t.team {
                by.entry(team).or_default().members.push(i);
            }
        }
        for w in waits.all() {
            let Some(waker) = w.waker else { continue };
            let t = &program.threads[w.thread as usize];
            let by_team = program.threads[waker as usize].team;
            if let Some(seen) = t.team.and_then(|team| by.get_mut(&team)) {
                seen.own.push(w);
                seen.handed.extend((by_team != t.team).then_some(w.to));
            }
            if by_team != t.team
                && !t.is_kthread
                && let Some(seen) = by_team.and_then(|team| by.get_mut(&team))
            {
                seen.outside.entry(w.thread).or_default().push(w);
            }
        }
        by
    }

    /// The joins, if they are where rounds end: there are enough of them, the master waits for the
    /// team most of the time, two workers or more are awake in a part of the time that matters, and
    /// in most rounds the team is handed no more work after one worker was done. These waits of the
    /// master end when a worker is done; they take `waited_ns`.
    fn joins(&self, program: &Program, ends: &[&Wait], waited_ns: Nanos) -> Vec<Nanos> {
        if ends.len() < program.enough {
            return Vec::new();
        }
        let changes = self.changes(program);
        let joins = one_awake(&changes, ends);
        let span = joins.first().zip(joins.last()).map_or(0, |(first, last)| last - first);
        let is_in_rounds = joins.len() >= program.enough
            && waited_ns * 2 >= span
            && are_concurrent(program, &changes)
            && self.rounds_fed(ends, &joins) * 2 < joins.len();
        if is_in_rounds { joins } else { Vec::new() }
    }

    /// When members fall asleep, and when they are awake again: the time, the member, awake or not.
    fn changes(&self, program: &Program) -> Vec<(Nanos, u32, bool)> {
        let mut changes = Vec::new();
        for &i in &self.members {
            let t = &program.threads[i as usize];
            let (first, last) = (t.from as usize, t.to as usize - 1);
            let ran = if let Op::Run(ns) = program.ops[last] { ns } else { 0 };
            changes.push((program.times[first], i, true));
            changes.push((program.times[last].saturating_add(ran), i, false));
        }
        for w in &self.own {
            changes.extend([(w.from, w.thread, false), (w.to, w.thread, true)]);
        }
        changes.sort_unstable();
        changes
    }

    /// In how many rounds the team is handed more work after a worker was done.
    fn rounds_fed(&self, ends: &[&Wait], joins: &[Nanos]) -> usize {
        let mut handed = self.handed.iter().peekable();
        let mut ends = ends.iter().map(|end| end.to).peekable();
        let is_fed = |&&join: &&Nanos| {
            let first = ends.next_if(|&at| at <= join);
            while ends.next_if(|&at| at <= join).is_some() {}
            let mut fed = false;
            while let Some(&at) = handed.next_if(|&&at| at < join) {
                fed |= first.is_some_and(|first| at > first);
            }
            fed
        };
        joins.iter().filter(is_fed).count()
    }
}

/// Whether two workers or more are awake in a part of the team's time that matters. If not, they
/// run one at a time, as at a lock.
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

/// The ends of the master's waits at which no worker is awake but the one that is done.
fn one_awake(changes: &[(Nanos, u32, bool)], ends: &[&Wait]) -> Vec<Nanos> {
    let mut changes = changes.iter().peekable();
    let mut awake: FxHashSet<u32> = FxHashSet::default();
    let mut found = Vec::new();
    for end in ends {
        while let Some(&(_, thread, wakes)) = changes.next_if(|change| change.0 <= end.to) {
            if wakes {
                awake.insert(thread);
            } else {
                awake.remove(&thread);
            }
        }
        let is_done = |waker: u32| awake.len() == 1 && awake.contains(&waker);
        if awake.is_empty() || end.waker.is_some_and(is_done) {
            found.push(end.to);
        }
    }
    found
}
