//! Threads that may not run on every CPU.

use super::{Builder, is_part};
use holdup_passes::{Thread, ThreadSteps};

/// A thread that was ready for so much of the time, in per cent, while CPUs idled that never took
/// it was not allowed there.
const PASSED_OVER_PCT: u64 = 30;
/// If that was so much of the recording, in per cent, too.
const PASSED_OVER_WALL_PCT: u64 = 5;
/// And if it happened so often.
const PASSED_OVER_TIMES: u32 = 5;

impl Builder<'_> {
    /// The CPUs that a thread may run on, as far as what it did tells.
    pub(super) fn allowed(&self, t: &Thread, of: &ThreadSteps<'_>) -> u64 {
        let cpus = self.analysis.cpu_list();
        let all = cpus.iter().fold(0_u64, |all, cpu| all | 1 << (cpu.0 % 64));
        let ready = t.woken_ns + t.preempted_ns;
        // Who has run elsewhere since, or waited so a few times only, was left where it was.
        let passed_over = of.waits >= PASSED_OVER_TIMES
            && of.since & !of.waited_for == 0
            && is_part(of.passed_over_ns, self.analysis.wall_ns(), PASSED_OVER_WALL_PCT)
            && is_part(of.passed_over_ns, ready, PASSED_OVER_PCT);
        let at_home = is_per_cpu(&self.analysis.comm(t)) && of.cpus.count_ones() == 1;
        let bound_to = match (passed_over, at_home) {
            (true, _) => of.waited_for,
            (false, true) => of.cpus,
            (false, false) => 0,
        };
        if cpus.len() > 64 || bound_to == 0 || bound_to & all == all {
            return u64::MAX;
        }
        // As places in the list of CPUs.
        let places = cpus.iter().enumerate().filter(|(_, cpu)| bound_to >> (cpu.0 % 64) & 1 == 1);
        places.fold(0, |allowed, (place, _)| allowed | 1 << place)
    }
}

/// Whether a thread of this name is one that the kernel has for each CPU, such as `ksoftirqd/3`
/// and `kworker/3:1H`.
fn is_per_cpu(comm: &str) -> bool {
    comm.split_once('/').is_some_and(|(_, of)| of.starts_with(|c: char| c.is_ascii_digit()))
}
