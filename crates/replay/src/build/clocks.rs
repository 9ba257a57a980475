//! Waits for threads that go by their own clock keep their length.
//!
//! A kernel thread that a timer wakes now and then, such as DAMON's or khugepaged, may have a lock
//! that the work wants at that moment. If the work gets there sooner, the thread is somewhere else:
//! a wait until it comes to what it did in the trace would last until the time of the trace.

use super::is_part;
use crate::program::{Op, ThreadProgram};
use holdup_trace::Nanos;
use rustc_hash::FxHashMap;

/// Makes sleeps of the waits that such threads ended. `matters_pct` is the part of its sleeps from
/// which on a thread counts as one that others wake.
pub(super) fn keep_waits(
    threads: &[ThreadProgram],
    ops: &mut [Op],
    times: &[Nanos],
    matters_pct: f64,
) {
    let steps = |t: &ThreadProgram| t.from as usize..t.to as usize;
    let may = |t: &&ThreadProgram| !t.works && (t.is_kthread || t.is_background);
    let goes_by_clock = |t: &&ThreadProgram| {
        // Interrupts wake what serves a device. But what serves others ends a wait each time.
        let (mut sleeps, mut wakes) = (0, 0);
        let (mut all, mut by_others) = (0, 0);
        for at in steps(t) {
            let next = times.get(at + 1).filter(|_| at + 1 < t.to as usize);
            let slept = next.map_or(0, |next| next.saturating_sub(times[at]));
            match ops[at] {
                Op::Sleep(ns, _) => (all, sleeps) = (all + ns, sleeps + 1),
                Op::Wait { .. } | Op::Arrive { .. } => {
                    (all, by_others) = (all + slept, by_others + slept);
                }
                Op::Wake { .. } => wakes += 1,
                _ => {}
            }
        }
        let is_seldom = |part, all| all > 0 && !is_part(part, all, matters_pct);
        is_seldom(by_others, all) && is_seldom(wakes, sleeps)
    };
    let mut ended: FxHashMap<u32, Nanos> = FxHashMap::default();
    for t in threads.iter().filter(may).filter(goes_by_clock) {
        for at in steps(t) {
            if let Op::Wake { number, .. } = ops[at] {
                ended.insert(number, times[at]);
            }
        }
    }
    if ended.is_empty() {
        return;
    }
    for (op, &from) in ops.iter_mut().zip(times) {
        if let Op::Wait { number, object, .. } = *op
            && let Some(to) = ended.get(&number)
        {
            *op = Op::Sleep(to.saturating_sub(from), object);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::change::Change;
    use crate::program::{ObjectId, Program};
    use crate::tests::{LOCK, program, wall};

    const MS: Nanos = 1_000_000;

    /// A kernel thread runs each millisecond, and the work waits for it once, after `wakes` of its
    /// runs. The work then computes until 200 ms have passed.
    fn waits_once(wakes: usize) -> Program {
        let mut clock = Vec::new();
        for i in 0..100 {
            clock.extend([Op::Sleep(MS, ObjectId::NONE), Op::Run(10_000)]);
            if i == 99 {
                clock.push(Op::Wake { thread: 1, number: 1 });
            } else if i + wakes >= 100 {
                clock.push(Op::Wake { thread: 1, number: 2 + i as u32 % 50 });
            }
        }
        let work = vec![
            Op::Run(100 * MS),
            Op::Wait { number: 1, object: LOCK, delay: 0 },
            Op::Run(99 * MS),
        ];
        let mut p = program(2, &[clock, work]);
        (p.threads[0].works, p.threads[0].is_kthread) = (false, true);
        keep_waits(&p.threads, &mut p.ops, &p.times, p.free_pct);
        p
    }

    /// nginx waited once for kdamond, which had a page. With half of the CPU time it waited until
    /// kdamond had run as often as in the trace.
    #[test]
    fn a_wait_for_a_thread_that_a_timer_wakes_keeps_its_length() {
        let p = waits_once(1);
        assert!(p.ops.iter().all(|op| !matches!(op, Op::Wait { .. })));
        assert_eq!(wall(&p, &[Change::Speed(1, 2.0)]), 51 * MS + 49_500_000);
    }

    #[test]
    fn who_ends_waits_each_time_it_runs_serves() {
        let p = waits_once(50);
        assert!(p.ops.iter().any(|op| matches!(op, Op::Wait { .. })));
        assert!(wall(&p, &[Change::Speed(1, 2.0)]) > 140 * MS);
    }

    #[test]
    fn who_is_woken_by_others_does_not_go_by_a_clock() {
        let wait = |number| Op::Wait { number, object: LOCK, delay: 0 };
        let mut p = program(2, &[vec![wait(1)], vec![Op::Run(MS), wait(2)]]);
        (p.threads[0].works, p.threads[0].is_kthread) = (false, true);
        p.ops.extend([Op::Wake { thread: 1, number: 2 }]);
        p.times = vec![0, 0, MS, 2 * MS];
        p.threads[0].from = 0;
        keep_waits(&p.threads, &mut p.ops, &p.times, p.free_pct);
        assert!(p.ops.contains(&wait(2)));
    }
}
