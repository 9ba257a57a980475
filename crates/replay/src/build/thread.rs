//! The program of one thread.

use super::objects::Class;
use super::queues::{delay, ran_to};
use super::requests::is_nap;
use super::writer::Writer;
use super::{Builder, is_part, polls, work};
use crate::program::{ObjectId, Op, ReplayObject, ThreadProgram};
use holdup_passes::limits::{MATTERS, NAMED, WELL_MET};
use holdup_passes::{Did, ObjectKind, Turn};
use holdup_trace::Nanos;
use rustc_hash::FxHashMap;

impl Builder<'_> {
    /// The program of one thread.
    pub(super) fn thread(&mut self, number: usize) -> ThreadProgram {
        let (slot, t) = self.slots[number];
        let analysis = self.analysis;
        let of = analysis.steps(slot);
        let from = self.ops.len() as u32;
        let spawned = self.spawned.contains(&slot);
        let usual = self.usual_delay([slot].into_iter()).unwrap_or(self.usual_delay);
        let holds = self.holds(slot);
        let spins = of
            .contended
            .iter()
            .filter_map(|c| Some((c.from, c.to, *self.kernel.get(&c.lock)?)))
            .collect();
        let mut ops = std::mem::take(&mut self.ops);
        let mut times = std::mem::take(&mut self.times);
        let mut writer = Writer::new(&mut ops, &mut times, &holds, spins);

        let allowed = self.allowed(t, &of);
        let start = analysis.start_ns();
        let first = of.steps.first().map_or(start, |s| s.at);
        if !spawned && first > start {
            writer.push(start, Op::Sleep(first - start, ObjectId::NONE));
        }
        let mut first_delay = usual;
        let mut run_ns = 0;
        let (mut in_round, mut drives) = (None, false);
        let (mut napped_ns, mut held_off_ns) = (0, 0);
        let mut requests = self.requests(slot, t);
        let (mut occupied_ns, mut slept_ns) = (0, 0);
        let mut ends: FxHashMap<u32, Nanos> = FxHashMap::default();
        let polled = analysis.polled_lock(slot).map(|lock| self.id(lock));
        for (i, step) in of.steps.iter().enumerate() {
            writer.marks_until(step.at);
            let next = of.steps.get(i + 1);
            let took = next.and_then(|next| delay(step, next));
            let late = narrow(took.unwrap_or(usual));
            let before = i.checked_sub(1).map(|before| &of.steps[before]);
            let ran_to = before.and_then(ran_to);
            let after_run = ran_to.is_some();
            match step.what {
                Did::Run(ns) => {
                    if ran_to.is_some_and(|to| to < step.at) {
                        writer.push(step.at, Op::LosesCpu(0));
                    }
                    run_ns += ns;
                    writer.run(step.at, ns);
                }
                Did::Sleep(ns, object) => {
                    slept_ns += ns;
                    let object = self.id(object);
                    let wait = self.bases[number] + i as u32;
                    let op = if !self.woken.contains(wait) {
                        let known = self.objects.get(object.0 as usize);
                        let to = step.at + ns;
                        let unknown_then = polled.filter(|_| is_timed(known));
                        let object = match is_nap(known) {
                            true if requests.keeps_waiting(step.at, to) => ObjectId::REQUEST,
                            _ => unknown_then.unwrap_or(object),
                        };
                        if object == ObjectId::REQUEST {
                            occupied_ns += ns;
                        } else if let Some(lock) = unknown_then {
                            // Its first naps, when the lock was not known yet, are waits too.
                            let lock = &mut self.objects[lock.0 as usize];
                            (lock.waits, lock.wait_ns) = (lock.waits + 1, lock.wait_ns + ns);
                        } else if Some(object) != polled {
                            let for_device = known.is_some_and(|o| o.is_device);
                            napped_ns += if for_device { 0 } else { ns };
                        }
                        Op::Sleep(ns.saturating_add(took.unwrap_or(0)), object)
                    } else if let Some(&round) = self.in_round.get(&(slot, i as u32)) {
                        Op::Arrive { round, object, delay: late }
                    } else {
                        requests.woken(self.objects.get(object.0 as usize));
                        Op::Wait { number: wait, object, delay: late }
                    };
                    writer.push(step.at, op);
                    if let Some(op) = next.and_then(|s| self.queues(s, allowed)) {
                        writer.push(step.at + ns, op);
                    }
                }
                Did::Delay(ns) if i == 0 => first_delay = ns,
                Did::WaitedWhileIdle { .. } | Did::TakenOver { .. } if after_run => {
                    if let Some(Op::Queues(ns, ..)) = self.queues(step, allowed) {
                        writer.push(step.at, Op::LosesCpu(ns));
                    }
                }
                Did::WaitedWhileIdle { .. } | Did::TakenOver { .. } if i == 0 => {
                    if let Some(op) = self.queues(step, allowed) {
                        writer.push(step.at, op);
                    }
                }
                Did::Delay(_)
                | Did::WaitedWhileIdle { .. }
                | Did::TakenOver { .. }
                | Did::Preempts(_)
                | Did::Ready(_) => {}
                Did::HeldOff(ns) => {
                    held_off_ns += ns;
                    writer.push(step.at, Op::Sleep(ns, ObjectId::QUOTA));
                }
                Did::Unknown(ns) => writer.push(step.at, Op::Sleep(ns, ObjectId::NONE)),
                Did::Wake { .. } => {
                    let Some(ended) = self.ended(slot, step) else { continue };
                    let object = self.id(ended.object).0 as usize;
                    drives |= self.objects.get(object).is_some_and(|o| o.is_device);
                    let asked = self.class(ended.object) == Class::Other;
                    if asked && !self.is_end(ended.object) {
                        *ends.entry(self.numbers[&ended.sleeper]).or_default() += ended.ns;
                    }
                    if let Some(&round) = self.in_round.get(&(ended.sleeper, ended.number)) {
                        if in_round.replace(round) != Some(round) {
                            let object = self.id(ended.object);
                            writer.push(step.at, Op::Arrive { round, object, delay: late });
                        }
                    } else {
                        let kind = self.kind(ended.object);
                        requests.wakes(analysis.thread(ended.sleeper), kind, step.at);
                        let thread = self.numbers[&ended.sleeper];
                        let number = self.bases[thread as usize] + ended.number;
                        writer.push(step.at, Op::Wake { thread, number });
                    }
                }
                Did::Spawn(child) => {
                    if let Some(&child) = self.numbers.get(&child) {
                        writer.push(step.at, Op::Spawn(child));
                    }
                }
            }
        }
        writer.finish();
        let objects = &self.objects;
        let is_futex =
            |id: ObjectId| objects.get(id.0 as usize).is_some_and(|o| o.kind == ObjectKind::Futex);
        let most_pct = analysis.limit(&WELL_MET);
        let joined = polls::join(&mut ops, &mut times, from as usize, is_futex, most_pct);
        // The steps have the delays after the sleeps too.
        napped_ns = napped_ns.saturating_sub(joined);
        (self.ops, self.times) = (ops, times);
        for &(from, to, id) in &holds {
            self.objects[id.0 as usize].hold_ns += to - from;
        }
        let around = self.around_call_ns;
        let costs = |turn: Turn| turn.ns + turn.calls * around;
        let mut turns: Vec<(ObjectId, Nanos)> =
            analysis.fought_for(slot).map(|(mutex, turn)| (self.id(mutex), costs(turn))).collect();
        turns.sort_unstable();
        let comm = analysis.comm(t);
        let done =
            work::work_to(&self.ops[from as usize..], run_ns, self.analysis.limit(&NAMED)) as u32;
        let (mut arrives, mut sleeps) = (0, 0);
        for op in &self.ops[from as usize..] {
            arrives += Nanos::from(matches!(op, Op::Arrive { .. }));
            sleeps += Nanos::from(matches!(op, Op::Sleep(..) | Op::Wait { .. }));
        }
        // All threads of a JVM meet now and then, once also those that only compute.
        let matters = self.analysis.limit(&MATTERS);
        let at_barriers = arrives > 1 && is_part(arrives, arrives + sleeps, matters);
        ThreadProgram {
            work_to: from + done,
            ends_ns: 0,
            ends: ends.into_iter().collect(),
            napped_ns,
            occupied_ns,
            keeps_waiting: occupied_ns * 2 > slept_ns,
            served_ns: requests.served_ns(),
            clients: requests.clients(),
            watches: false,
            at_barriers,
            team: None,
            slot,
            tid: t.tid.0,
            works: false,
            serves_work: false,
            run_ns,
            irq_ns: t.irq_ns,
            is_softirq: comm.starts_with("ksoftirqd"),
            comm,
            from,
            to: self.ops.len() as u32,
            spawned,
            delay: narrow(first_delay),
            usual_delay: narrow(usual),
            allowed,
            held_off_ns,
            is_background: false,
            is_kthread: t.is_kthread(),
            drives: drives && t.is_kthread(),
            turns,
        }
    }
}

fn narrow(ns: Nanos) -> u32 {
    ns.min(u64::from(u32::MAX)) as u32
}

/// Whether a sleep for it ends when its time is up.
fn is_timed(object: Option<&ReplayObject>) -> bool {
    object.is_some_and(|o| matches!(o.kind, ObjectKind::Timer | ObjectKind::Poll))
}
