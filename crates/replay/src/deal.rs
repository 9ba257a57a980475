//! The same work, dealt evenly: between rounds of a barrier every thread works equally long.

use crate::program::{Op, Program};
use holdup_trace::Nanos;

/// What one thread did before one round.
#[derive(Clone, Copy, Debug)]
struct Share {
    round: u32,
    /// The step in which the thread arrives.
    at: u32,
    ran: Nanos,
}

impl Program {
    /// The program in which threads that meet at a barrier have worked equally long.
    pub(crate) fn dealt(&self) -> &Program {
        self.dealt.get_or_init(|| Box::new(self.deal()))
    }

    fn deal(&self) -> Program {
        let shares: Vec<Vec<Share>> = (0..self.threads.len()).map(|t| self.shares(t)).collect();
        // For each round: the running time of all threads, and their number.
        let mut rounds: Vec<(Nanos, Nanos)> = vec![(0, 0); self.rounds.len()];
        for share in shares.iter().flatten() {
            let round = &mut rounds[share.round as usize];
            *round = (round.0 + share.ran, round.1 + 1);
        }
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

    /// What a thread runs before each round.
    fn shares(&self, thread: usize) -> Vec<Share> {
        let t = &self.threads[thread];
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
            dealt: std::sync::OnceLock::new(),
            ..*self
        }
    }
}
