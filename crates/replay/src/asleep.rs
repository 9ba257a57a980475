//! Sleeps that the end of the work waits for, and that no thread ends.
//!
//! From the end of the work back: where a thread was woken, the path goes on with its waker; where
//! it woke up by itself, it had slept for a timer or for input, and the path goes on before the
//! sleep. No replay removes such sleeps, because a trace does not show whether they could overlap.
//! But who reads that CPUs idle wants to know which thread makes the work last so long.

use crate::program::{ObjectId, Program};
use crate::relief::{Wait, Waits};
use holdup_trace::Nanos;
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// The sleeps of one thread on the path to the end of the work.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Asleep {
    /// The thread, by its place in [`Program::threads`].
    pub thread: usize,
    /// How long it slept, in ns.
    pub ns: Nanos,
    /// In how many sleeps.
    pub times: u64,
    /// The length of the path, in ns: from the first step of the work to its end.
    pub of_ns: Nanos,
}

impl Asleep {
    /// The thread that sleeps longest on the path; `None` if none does, or nothing works.
    pub(crate) fn of(program: &Program, waits: &Waits) -> Option<Asleep> {
        let working =
            || program.threads.iter().zip(0_u32..).filter(|(t, _)| t.works && t.to > t.from);
        // Who polls for the end of the work sleeps until it is there.
        let ends = working().filter(|(t, _)| !t.watches).map(|(t, i)| (t.work_ends(program), i));
        let (end, last) = ends.max()?;
        let start = working().map(|(t, _)| program.times[t.from as usize]).min()?;
        let mut sums: BTreeMap<u32, (Nanos, u64)> = BTreeMap::new();
        for (thread, ns) in slept(&waits.by_thread(program.threads.len()), last, end) {
            let sum = sums.entry(thread).or_default();
            *sum = (sum.0 + ns, sum.1 + 1);
        }
        let (thread, (ns, times)) = sums.into_iter().max_by_key(|of| (of.1.0, Reverse(of.0)))?;
        Some(Asleep { thread: thread as usize, ns, times, of_ns: end.saturating_sub(start) })
    }
}

/// The sleeps on the path to `end` of thread `last`: whose, and how long.
fn slept(waits: &[Vec<Wait>], last: u32, end: Nanos) -> Vec<(u32, Nanos)> {
    let (mut thread, mut at) = (last, end);
    let mut found = Vec::new();
    // No wait is on the path twice, unless threads wake each other at one moment.
    for _ in 0..waits.iter().map(Vec::len).sum() {
        let of = &waits[thread as usize];
        let Some(wait) = of[..of.partition_point(|w| w.to <= at)].last() else { break };
        match wait.waker {
            Some(waker) => (thread, at) = (waker, wait.to),
            None => {
                // A thread without quota has work.
                if wait.object != ObjectId::QUOTA {
                    found.push((thread, wait.to - wait.from));
                }
                at = wait.from;
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::Op;
    use crate::tests::{LOCK, program, waits};

    fn asleep(p: &Program) -> Option<Asleep> {
        Asleep::of(p, &waits(p))
    }

    const NAP: Op = Op::Sleep(100, ObjectId::NONE);

    /// The first waits until the second, which naps three times, is done; the third naps as well,
    /// but nobody waits for it.
    #[test]
    fn the_naps_that_count_are_those_the_end_waits_for() {
        let wait = Op::Wait { number: 1, object: LOCK, delay: 0 };
        let mut p = program(
            2,
            &[
                vec![Op::Run(10), wait, Op::Run(20)],
                vec![NAP, Op::Run(5), NAP, NAP, Op::Wake { thread: 0, number: 1 }],
                vec![NAP, Op::Run(5)],
            ],
        );
        p.times = vec![0, 10, 305, 0, 100, 105, 205, 305, 0, 100];
        assert_eq!(asleep(&p), Some(Asleep { thread: 1, ns: 300, times: 3, of_ns: 325 }));
        // Who polls for the end is not asked what it waits for.
        p.threads[0].watches = true;
        assert_eq!(asleep(&p).map(|of| (of.thread, of.of_ns)), Some((1, 305)));
    }

    #[test]
    fn work_that_never_sleeps_and_quotas_are_no_sleep() {
        let quota = Op::Sleep(50, ObjectId::QUOTA);
        assert_eq!(asleep(&program(1, &[vec![Op::Run(10), quota, Op::Run(10)]])), None);
        assert_eq!(asleep(&program(1, &[vec![]])), None);
    }

    /// Two threads wake each other at one moment: the path goes back in time, and ends.
    #[test]
    fn a_circle_of_wakers_ends() {
        let wait = |number| Op::Wait { number, object: LOCK, delay: 0 };
        let wake = |thread, number| Op::Wake { thread, number };
        let steps =
            |number, other: u32| vec![wait(number), wake(1 - other, 3 - number), Op::Run(1)];
        let mut p = program(2, &[steps(1, 0), steps(2, 1)]);
        p.times = vec![0, 50, 50, 0, 50, 50];
        assert_eq!(asleep(&p), None);
    }
}
