//! Which threads do the work, from when to when.

use super::{Builder, is_part};
use crate::program::{Op, ThreadProgram};
use holdup_attribution::is_recorder;
use holdup_passes::Analysis;
use holdup_trace::Nanos;

/// Threads with so much of all CPU time, in per cent, the busiest first, do the work: when the last
/// of them ends, the work does. What is left are daemons that wake up now and then, and a
/// recorder's `sleep 10`.
pub const WORK_PCT: u64 = 98;

/// Part of a thread's CPU time that is work, in per cent. What comes last is being told to stop,
/// which may be hours later, and cleaning up.
const DONE_PCT: u64 = 99;

/// Of the threads that are neither the kernel's nor a recorder's, the busiest.
pub(super) fn mark_workers(analysis: &Analysis, threads: &mut [ThreadProgram]) {
    // Who sleeps for half of the recording only says when it is over.
    let is_worker =
        |t: &ThreadProgram| !is_recorder(&t.comm) && t.longest_ns < analysis.wall_ns() / 2;
    let of_program = |t: &ThreadProgram| is_worker(t) && !analysis.thread(t.slot).is_kthread();
    let any = threads.iter().any(|t| of_program(t) && t.run_ns > 0);
    let mut order: Vec<usize> = (0..threads.len())
        .filter(|&i| if any { of_program(&threads[i]) } else { is_worker(&threads[i]) })
        .collect();
    order.sort_by_key(|&i| std::cmp::Reverse(threads[i].run_ns));
    let all: Nanos = order.iter().map(|&i| threads[i].run_ns).sum();
    let mut sum = 0;
    for i in order {
        if is_part(sum, all, WORK_PCT) {
            break;
        }
        sum += threads[i].run_ns;
        threads[i].works = true;
    }
}

/// The step after which a thread has done its work.
pub(super) fn work_to(ops: &[Op], run_ns: Nanos) -> usize {
    let mut sum = 0;
    for (op, next) in ops.iter().zip(1..) {
        if let Op::Run(ns) | Op::Spin(ns, _) = op {
            sum += ns;
            if is_part(sum, run_ns, DONE_PCT) {
                return next;
            }
        }
    }
    ops.len()
}

impl Builder<'_> {
    /// From the moment those threads began that do the work to the one when they had done it.
    pub(super) fn traced_span(&self, threads: &[ThreadProgram]) -> Option<Nanos> {
        let mut span: Option<(Nanos, Nanos)> = None;
        for t in threads.iter().filter(|t| t.works) {
            for at in t.from as usize..t.work_to as usize {
                if let Op::Run(ns) | Op::Spin(ns, _) = self.ops[at] {
                    let begins = self.times[at];
                    let (from, to) = span.unwrap_or((begins, 0));
                    span = Some((from.min(begins), to.max(begins + ns)));
                }
            }
        }
        span.map(|(from, to)| to - from)
    }
}
