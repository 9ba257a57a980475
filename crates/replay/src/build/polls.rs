//! Sleeps with a timeout that a thread repeats until another thread ends one: a single wait.
//!
//! The thread looks now and then whether it should do something else: Ruby's threads ask for the
//! lock of their interpreter like this. If the other thread comes earlier, fewer timeouts pass.
//! Only of a futex it is certain that a sleep which no thread ended was over by its timeout.

use super::is_part;
use crate::program::{ObjectId, Op};
use holdup_trace::Nanos;

/// Joins such sleeps, from step `from` on, to the wait that follows them. The CPU time between them
/// comes after the wait then, so it may be `most_pct` of the time. Returns the length of these
/// sleeps.
pub(super) fn join(
    ops: &mut Vec<Op>,
    times: &mut Vec<Nanos>,
    from: usize,
    is_futex: impl Fn(ObjectId) -> bool,
    most_pct: f64,
) -> Nanos {
    let mut gone = vec![false; ops.len() - from];
    let mut joined = 0;
    for at in (from..ops.len()).rev() {
        let Op::Wait { object, .. } = ops[at] else { continue };
        let polls = is_futex(object).then(|| polls_before(&ops[from..at], object, most_pct));
        let Some((first, slept)) = polls.flatten() else { continue };
        for later in first + 1..=at - from {
            gone[later] |= matches!(ops[from + later], Op::Sleep(..) | Op::Wait { .. });
        }
        ops[from + first] = ops[at];
        joined += slept;
    }
    if joined > 0 {
        remove(ops, from, &gone);
        remove(times, from, &gone);
    }
    joined
}

/// The first of the sleeps for `object` that these steps end with, and the length of all of them.
fn polls_before(ops: &[Op], object: ObjectId, most_pct: f64) -> Option<(usize, Nanos)> {
    let (mut polls, mut slept, mut ran) = (None, 0, 0);
    for (at, &op) in ops.iter().enumerate().rev() {
        match op {
            Op::Run(ns) => ran += ns,
            Op::Sleep(ns, of) if of == object => {
                slept += ns;
                if is_part(ran, slept + ran, most_pct) && ran > 0 {
                    break;
                }
                polls = Some((at, slept));
            }
            Op::Queues(..) | Op::Preempts(_) | Op::LosesCpu(_) => {}
            _ => break,
        }
    }
    polls
}

/// Removes the steps from `from` on that are gone.
fn remove<T>(all: &mut Vec<T>, from: usize, gone: &[bool]) {
    let tail = all.split_off(from);
    all.extend(tail.into_iter().zip(gone).filter(|of| !of.1).map(|of| of.0));
}

#[cfg(test)]
mod tests {
    use super::*;

    const WORD: ObjectId = ObjectId(0);
    const OTHER: ObjectId = ObjectId(1);
    const WAIT: Op = Op::Wait { number: 7, object: WORD, delay: 0 };

    /// The steps that are left from the second on, the first being another thread's.
    fn joined(steps: &[Op]) -> (Vec<Op>, Nanos) {
        let mut ops = [&[Op::Sleep(1_000, WORD)], steps].concat();
        let mut times: Vec<Nanos> = (0..ops.len() as Nanos).collect();
        let slept = join(&mut ops, &mut times, 1, |of| of == WORD, 2.0);
        assert_eq!(ops.len(), times.len());
        assert_eq!((ops.remove(0), times[0]), (Op::Sleep(1_000, WORD), 0));
        (ops, slept)
    }

    #[test]
    fn timeouts_before_a_wake_up_are_one_wait() {
        let steps =
            [Op::Run(50), Op::Sleep(1_000, WORD), Op::Run(10), Op::Sleep(900, WORD), Op::Run(9)];
        let (ops, slept) = joined(&[&steps[..], &[WAIT, Op::Run(70)]].concat());
        assert_eq!(ops, [Op::Run(50), WAIT, Op::Run(10), Op::Run(9), Op::Run(70)]);
        assert_eq!(slept, 1_900);
    }

    #[test]
    fn other_sleeps_and_work_between_timeouts_stay() {
        let stays = |before: Op| assert_eq!(joined(&[before, WAIT]), (vec![before, WAIT], 0));
        stays(Op::Sleep(1_000, OTHER));
        stays(Op::Hold(WORD));
        let works = [Op::Sleep(1_000, WORD), Op::Run(500), WAIT];
        assert_eq!(joined(&works), (works.to_vec(), 0));
        let asks = [Op::Sleep(1_000, WORD), Op::Wake { thread: 1, number: 2 }, WAIT];
        assert_eq!(joined(&asks), (asks.to_vec(), 0));
        let other = [Op::Sleep(1_000, OTHER), Op::Wait { number: 7, object: OTHER, delay: 0 }];
        assert_eq!(joined(&other), (other.to_vec(), 0));
    }
}
