//! Threads that do too much.

use super::{Finder, Member, Scarce};
use crate::bound::in_hand;
use crate::build::is_part;
use crate::change::{Change, PARTS, Part};
use crate::program::{Op, Team, ThreadProgram};
use holdup_attribution::Resource;
use holdup_passes::limits::{ALONE, MATTERS, NAMED, Thresholds};
use holdup_trace::Nanos;
use std::collections::BTreeMap;

impl Finder<'_> {
    /// Threads that do too much.
    pub(super) fn threads(&self) -> Vec<Scarce> {
        let (p, judged) = (self.program, self.judged);
        let limits = &judged.thresholds;
        let alone = p.cpus > 1 && !judged.alone.is_contended;
        let mut found = Vec::from_iter(self.few());
        let parts = p.cpus.clamp(*PARTS.start(), *PARTS.end());
        let mut irqs = Vec::new();
        let all: Nanos = self.works().map(|(_, t)| t.run_ns).sum();
        for (i, t) in p.threads.iter().enumerate() {
            let serves_ns = t.run_ns + t.occupied_ns;
            if !is_part(serves_ns, p.traced_wall_ns, limits.get(&MATTERS)) || t.run_ns == 0 {
                continue;
            }
            let one = |resource, change, is_bound| Scarce {
                resource,
                members: vec![Member::Thread(i)],
                change: vec![change],
                weight: serves_ns,
                is_thread: !t.is_kthread,
                is_bound,
                chained: Vec::new(),
            };
            if t.is_softirq {
                irqs.push(Member::Thread(i));
            } else if !self.is_busy(t, limits) || judged.alone.polls.contains(&t.slot) {
                continue;
            } else if t.is_kthread {
                found.push(one(Resource::Driver, Change::Split(i, parts), false));
            } else if t.takes_part() && !t.at_barriers {
                // More threads make a stage that others wait for faster too.
                let resource = match t.keeps_waiting || self.serves(i) {
                    true => Resource::Server,
                    false => Resource::Parallelism,
                };
                let served_ns = t.ends_ns.saturating_sub(judged.contenders.ended_ns(t.slot));
                if is_part(served_ns, p.traced_wall_ns, limits.get(&MATTERS)) {
                    found.push(one(resource, Change::Split(i, self.parts(&[i])), false));
                } else if alone && is_part(t.run_ns, all, limits.get(&ALONE)) {
                    let faster = Change::Speed(i, f64::from(p.cpus));
                    found.push(one(Resource::Parallelism, faster, true));
                }
            }
        }
        // One process after the other may do the same.
        let nearly_all = |of: &Scarce| is_part(of.weight, all, limits.get(&ALONE));
        if !found.iter().any(|of| of.is_thread && nearly_all(of)) {
            found.extend(self.one_at_a_time());
        }
        found.extend(self.workers());
        if alone {
            found.extend(self.teams());
        }
        let capacity = p.wall_ns.saturating_mul(Nanos::from(p.cpus));
        if p.irq_ns > 0 && is_part(p.irq_ns, capacity, limits.get(&NAMED)) || !irqs.is_empty() {
            found.push(Scarce {
                resource: Resource::Driver,
                members: irqs,
                change: vec![Change::SpreadIrqs],
                weight: p.irq_ns,
                is_thread: false,
                is_bound: false,
                chained: Vec::new(),
            });
        }
        found
    }

    /// One thread at a time has work, each of them in turn: all of it would be divided. Threads
    /// that sleep for a time gain nothing from that.
    fn one_at_a_time(&self) -> Option<Scarce> {
        let (p, alone) = (self.program, &self.judged.alone);
        if !alone.is_serial {
            return None;
        }
        let part = (1.0 / f64::from(p.cpus)).max(*crate::FACTORS.start());
        let factors = p.threads.iter().map(|t| if t.takes_part() { part } else { 1.0 }).collect();
        Some(Scarce {
            resource: Resource::Parallelism,
            members: Vec::new(),
            change: vec![Change::Scale { part: Part::AllWork, factors }],
            weight: self.works().map(|(_, t)| t.run_ns).sum(),
            is_thread: true,
            is_bound: true,
            chained: Vec::new(),
        })
    }

    /// In how many parts each of these threads is to be divided, so that no request waits for one
    /// of them. A sleep needs no CPU, so there may be more of them than CPUs.
    fn parts(&self, threads: &[usize]) -> u32 {
        let of: Vec<&ThreadProgram> = threads.iter().map(|&i| &self.program.threads[i]).collect();
        let cpus = self.program.cpus as usize / threads.len();
        let parts = match in_hand(&of) {
            times if times.is_finite() && of.iter().all(|t| t.keeps_waiting) => times.ceil() as u32,
            _ => *PARTS.start(),
        };
        parts.max(cpus as u32).clamp(*PARTS.start(), *PARTS.end())
    }

    /// Threads of one role that sleep with requests in hand while others wait: there would be more
    /// of them.
    fn workers(&self) -> Vec<Scarce> {
        let mut by_role: BTreeMap<Vec<u8>, Vec<usize>> = BTreeMap::new();
        // Who answers nobody sleeps for other reasons, as a main thread does beside its workers.
        for (i, t) in self.works().filter(|(_, t)| t.keeps_waiting && t.clients > 0) {
            if self.is_busy(t, &self.judged.thresholds) {
                by_role
                    .entry(self.analysis.role(self.analysis.thread(t.slot)))
                    .or_default()
                    .push(i);
            }
        }
        let of = |all: Vec<usize>| {
            let parts = self.parts(&all);
            Scarce {
                resource: Resource::Server,
                members: all.iter().map(|&i| Member::Thread(i)).collect(),
                change: all.iter().map(|&i| Change::Split(i, parts)).collect(),
                weight: all.iter().map(|&i| self.program.threads[i].occupied_ns).sum(),
                is_thread: true,
                is_bound: false,
                chained: Vec::new(),
            }
        };
        by_role.into_values().filter(|all| all.len() > 1).map(of).collect()
    }

    /// Threads or processes of one kind that one thread or process started, and of which one does
    /// more than its part: the work would be divided evenly among them.
    fn teams(&self) -> Vec<Scarce> {
        let mut teams: BTreeMap<Team, Vec<usize>> = BTreeMap::new();
        for (i, t) in self.works() {
            t.team.into_iter().for_each(|team| teams.entry(team).or_default().push(i));
        }
        let of = |(_, team): (_, Vec<usize>)| {
            let run = |&i: &usize| self.program.threads[i].run_ns;
            let longest = *team.iter().max_by_key(|i| run(i))?;
            let mean = team.iter().map(run).sum::<Nanos>() / team.len() as Nanos;
            let t = &self.program.threads[longest];
            // What happens at barriers is known for each round: that is another change.
            if t.at_barriers || !self.is_busy(t, &self.judged.thresholds) {
                return None;
            }
            let mut factors = vec![1.0; self.program.threads.len()];
            // The others' further work fills CPUs, and no time of the work is below its sum over
            // all CPUs; but where in their programs it would be is not known.
            for &i in team.iter().filter(|i| run(i) > mean) {
                factors[i] = (mean as f64 / run(&i) as f64).max(*crate::FACTORS.start());
            }
            let part = Part::Team { comm: t.comm.clone(), threads: team.len() };
            Some(Scarce {
                resource: Resource::Parallelism,
                members: vec![Member::Thread(longest)],
                change: vec![Change::Scale { part, factors }],
                weight: run(&longest) - mean,
                is_thread: true,
                is_bound: false,
                chained: Vec::new(),
            })
        };
        teams.into_iter().filter(|(_, team)| team.len() > 1).filter_map(of).collect()
    }

    /// Several threads that have all the work, but are fewer than the CPUs: more threads would make
    /// all of them faster.
    fn few(&self) -> Option<Scarce> {
        let (p, few) = (self.program, &self.judged.alone.few);
        let is_of = |of: &&(usize, &ThreadProgram)| few.contains(&of.1.slot);
        let threads: Vec<usize> = self.works().filter(|of| is_of(&of)).map(|of| of.0).collect();
        let faster = f64::from(p.cpus) / threads.len().max(1) as f64;
        (threads.len() > 1 && threads.len() == few.len()).then(|| Scarce {
            resource: Resource::Parallelism,
            members: threads.iter().map(|&i| Member::Thread(i)).collect(),
            change: threads.iter().map(|&i| Change::Speed(i, faster)).collect(),
            weight: threads.iter().map(|&i| p.threads[i].run_ns).sum(),
            is_thread: true,
            is_bound: true,
            chained: Vec::new(),
        })
    }

    /// Whether a thread has work, or a request in hand, nearly all the time, from its start on if
    /// it was started while others worked. A thread that idles part of the time is not what the
    /// others wait for, whatever the traced order of requests makes of it.
    fn is_busy(&self, of: &ThreadProgram, limits: &Thresholds) -> bool {
        let t = self.analysis.thread(of.slot);
        let wall_ns = self.program.traced_wall_ns;
        let life_ns = self.analysis.life_ns(t).min(wall_ns);
        // Who sleeps with most requests sleeps with all, whether or not others are known to wait.
        // A server idles until its clients have started.
        let (napped_ns, served_ns) = match of.keeps_waiting {
            true => (of.napped_ns, of.served_ns.min(life_ns)),
            false => (0, life_ns),
        };
        let busy_ns = t.active_ns() + of.occupied_ns + napped_ns;
        is_part(busy_ns, served_ns, limits.get(&ALONE)) && life_ns * 2 > wall_ns
    }

    /// Whether most of the waits that a thread ends had begun before its work for them began. A
    /// stage of a pipeline, in contrast, works ahead of the threads that need its results.
    fn serves(&self, thread: usize) -> bool {
        let p = self.program;
        let parts = [Change::Split(thread, *PARTS.start())];
        let Ok(view) = crate::change::View::new(p, &parts) else { return false };
        let t = &p.threads[thread];
        let ops = &p.ops[t.from as usize..t.to as usize];
        let wakes = || ops.iter().filter(|op| matches!(op, Op::Wake { .. })).count();
        view.asked.len() * 2 >= wakes()
    }
}
