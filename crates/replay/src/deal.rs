//! The same work, dealt evenly: all threads that take part in a round, until a barrier or a join
//! ([`crate::joins`]), work equally long.

use crate::build::is_part;
use crate::program::{Joins, Op, Program, ThreadProgram};
use crate::relief::Waits;
use holdup_trace::Nanos;
use std::cmp::Reverse;

/// What one thread did in one round.
#[derive(Clone, Copy, Debug)]
struct Share {
    round: u32,
    /// The round's last step.
    at: u32,
    ran: Nanos,
}

impl Program {
    /// The program in which the threads of each round have worked equally long.
    pub(crate) fn dealt(&self) -> &Program {
        self.dealt.get_or_init(|| Box::new(self.deal()))
    }

    /// The threads that do most beyond their parts of rounds that end in joins, at most so many.
    pub(crate) fn stragglers(&self, most: usize) -> Vec<usize> {
        if self.joins().rounds == 0 {
            return Vec::new();
        }
        let (shares, rounds) = self.rounds_of_all();
        let beyond = |of: &Vec<Share>| -> Nanos {
            let in_joins = of.iter().filter(|s| s.round as usize >= self.rounds.len());
            let part = |s: &Share| rounds[s.round as usize].0 / rounds[s.round as usize].1;
            in_joins.map(|s| s.ran.saturating_sub(part(s))).sum()
        };
        let mut by: Vec<(Nanos, usize)> = shares.iter().map(beyond).zip(0..).collect();
        by.sort_unstable_by_key(|&(ns, thread)| (Reverse(ns), thread));
        let largest = by.first().map_or(0, |of| of.0);
        by.retain(|of| of.0 > 0 && is_part(of.0, largest, self.free_pct));
        by.into_iter().take(most).map(|of| of.1).collect()
    }

    /// The shares of all threads; and for each round the running time of all threads that take
    /// part, and their number.
    fn rounds_of_all(&self) -> (Vec<Vec<Share>>, Vec<(Nanos, Nanos)>) {
        let shares: Vec<Vec<Share>> = (0..self.threads.len()).map(|t| self.shares(t)).collect();
        let mut rounds = vec![(0, 0); self.rounds.len() + self.joins().rounds as usize];
        for share in shares.iter().flatten() {
            let round = &mut rounds[share.round as usize];
            *round = (round.0 + share.ran, round.1 + 1);
        }
        (shares, rounds)
    }

    fn deal(&self) -> Program {
        let (shares, rounds) = self.rounds_of_all();
        let mut dealt = Program {
            ops: Vec::with_capacity(self.ops.len()),
            times: Vec::with_capacity(self.times.len()),
            ..self.without_steps()
        };
        for (of, t) in shares.iter().zip(0..) {
            dealt.deal_to(self, t, of, &rounds);
        }
        dealt
    }

    /// Rounds of fork and join.
    pub(crate) fn joins(&self) -> &Joins {
        self.joins.get_or_init(|| Joins::of(self, &Waits::of(self, |_| false)))
    }

    /// What a thread runs in each round.
    fn shares(&self, thread: usize) -> Vec<Share> {
        let t = &self.threads[thread];
        match self.joins().rounds_of(t) {
            Some((first, joins)) if !t.at_barriers => {
                self.shares_until(t, self.rounds.len() as u32 + first, joins)
            }
            _ => self.shares_at_barriers(t),
        }
    }

    /// What a thread runs in the rounds that end in these joins, and after the last.
    fn shares_until(&self, t: &ThreadProgram, first: u32, joins: &[Nanos]) -> Vec<Share> {
        let (mut ran, mut shares) = (0, Vec::new());
        let mut round = 0;
        for at in t.from..t.to {
            let is_over = |join: &&Nanos| **join <= self.times[at as usize];
            let ended = joins[round..].iter().take_while(is_over).count();
            if ended > 0 && ran > 0 {
                shares.push(Share { round: first + round as u32, at: at - 1, ran });
                ran = 0;
            }
            round += ended;
            if let Op::Run(ns) | Op::Spin(ns, _) = self.ops[at as usize] {
                ran += ns;
            }
        }
        if ran > 0 {
            shares.push(Share { round: first + round as u32, at: t.to - 1, ran });
        }
        shares
    }

    fn shares_at_barriers(&self, t: &ThreadProgram) -> Vec<Share> {
        let (mut ran, mut shares) = (0, Vec::new());
        for at in t.from..t.to {
            match self.ops[at as usize] {
                Op::Run(ns) | Op::Spin(ns, _) => ran += ns,
                Op::Arrive { round, .. } => {
                    shares.push(Share { round, at, ran: std::mem::take(&mut ran) });
                }
                _ => {}
            }
        }
        shares
    }

    /// Write one thread's steps with its work scaled.
    fn deal_to(&mut self, of: &Program, t: usize, shares: &[Share], rounds: &[(Nanos, Nanos)]) {
        let old = &of.threads[t];
        let mut shares = shares.iter();
        let mut share = shares.next();
        let from = self.ops.len() as u32;
        let (mut work_to, mut run_ns) = (from, 0);
        for at in old.from..old.to {
            if at == old.work_to {
                work_to = self.ops.len() as u32;
            }
            let mean = share.map(|s| rounds[s.round as usize]).map(|(all, count)| all / count);
            let dealt = |ns: Nanos| match (share, mean) {
                (Some(s), Some(mean)) if s.ran > 0 => {
                    (u128::from(ns) * u128::from(mean) / u128::from(s.ran)) as Nanos
                }
                _ => ns,
            };
            let time = of.times[at as usize];
            let op = match of.ops[at as usize] {
                Op::Run(ns) => Op::Run(dealt(ns)),
                Op::Spin(ns, lock) => Op::Spin(dealt(ns), lock),
                op => op,
            };
            if let (Some(s), Some(mean)) = (share, mean)
                && s.at == at
            {
                if s.ran == 0 && mean > 0 {
                    self.ops.push(Op::Run(mean));
                    self.times.push(time);
                    run_ns += mean;
                }
                share = shares.next();
            }
            if let Op::Run(ns) | Op::Spin(ns, _) = op {
                run_ns += ns;
            }
            self.ops.push(op);
            self.times.push(time);
        }
        let to = self.ops.len() as u32;
        let work_to = if old.work_to == old.to { to } else { work_to };
        let new = &mut self.threads[t];
        (new.from, new.to, new.work_to, new.run_ns) = (from, to, work_to, run_ns);
    }

    /// Everything except the steps.
    fn without_steps(&self) -> Program {
        Program {
            threads: self.threads.clone(),
            objects: self.objects.clone(),
            rounds: self.rounds.clone(),
            ops: Vec::new(),
            times: Vec::new(),
            unchanged: std::sync::OnceLock::new(),
            free_pct: self.free_pct,
            met_pct: self.met_pct,
            free: std::sync::OnceLock::new(),
            joins: std::sync::OnceLock::new(),
            dealt: std::sync::OnceLock::new(),
            ..*self
        }
    }
}
