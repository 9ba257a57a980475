//! Threads that may not run on every CPU.

use super::{Builder, is_part};
use holdup_passes::limits::{MATTERS, Thresholds};
use holdup_passes::{Thread, ThreadSteps};
use holdup_trace::Nanos;

/// Groups of threads that mostly have the same CPU affinity.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) enum Alike {
    /// The threads of a process.
    Process(u32),
    /// The threads with this name, ignoring a number at its end.
    Name(Vec<u8>),
}

/// What threads did while they were ready and CPUs idled: one thread, or a group with the same
/// affinity, which shares the idle time.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct WaitedWhileIdle {
    ns: Nanos,
    ready: Nanos,
    /// The CPUs that they waited for or ran on since.
    waited_for: u64,
    since: u64,
}

impl WaitedWhileIdle {
    fn of(t: &Thread, of: &ThreadSteps<'_>) -> WaitedWhileIdle {
        WaitedWhileIdle {
            ns: long_waits(of),
            ready: t.woken_ns + t.preempted_ns,
            waited_for: of.waited_for,
            since: of.since,
        }
    }

    fn add(&mut self, o: WaitedWhileIdle) {
        self.ns += o.ns;
        self.ready += o.ready;
        self.waited_for |= o.waited_for;
        self.since |= o.since;
    }

    /// Whether one thread was not allowed elsewhere. A thread that has run elsewhere since, or
    /// waited like this only a few times, could have moved but was not.
    fn is_bound(&self, wall_ns: Nanos, limits: &Thresholds) -> bool {
        self.stayed()
            && is_part(self.ns, wall_ns, limits.get(&MATTERS))
            && is_part(self.ns, self.ready, limits.get(&MATTERS))
    }

    /// Whether threads together kept to some CPUs, at most half of all `cpus`, while others idled.
    fn are_bound(&self, wall_ns: Nanos, cpus: usize, limits: &Thresholds) -> bool {
        self.stayed()
            && self.waited_for.count_ones() as usize * 2 <= cpus
            && is_part(self.ns, wall_ns, limits.get(&MATTERS))
    }

    fn stayed(&self) -> bool {
        self.waited_for != 0 && self.since & !self.waited_for == 0
    }
}

impl Builder<'_> {
    /// Add up what the threads of each process did, and those of one name ignoring a number.
    pub(super) fn find_passed_over(&mut self) {
        for &(slot, t) in &self.slots {
            let of = self.analysis.steps(slot);
            for alike in self.alike(t).collect::<Vec<_>>() {
                self.waited_while_idle.entry(alike).or_default().add(WaitedWhileIdle::of(t, &of));
            }
        }
    }

    /// The groups whose affinity a thread mostly shares.
    fn alike(&self, t: &Thread) -> impl Iterator<Item = Alike> {
        let name = Alike::Name(self.analysis.role(t));
        self.analysis.pid(t).map(Alike::Process).into_iter().chain([name])
    }

    /// The CPUs that a thread may run on, as far as its behaviour tells.
    pub(super) fn allowed(&self, t: &Thread, of: &ThreadSteps<'_>) -> u64 {
        let cpus = self.analysis.cpu_list();
        let all = cpus.iter().fold(0_u64, |all, cpu| all | 1 << (cpu.0 % 64));
        let wall_ns = self.analysis.wall_ns();
        let limits = self.analysis.limits();
        let own = WaitedWhileIdle::of(t, of);
        // A thread that never waited like this may have run elsewhere: it is not bound like its
        // group.
        let mut alike =
            self.alike(t).filter_map(|alike| self.waited_while_idle.get(&alike)).filter(|a| {
                a.are_bound(wall_ns, cpus.len(), limits)
                    && (of.waited_for != 0 || of.cpus & !a.waited_for == 0)
            });
        let bound = if own.is_bound(wall_ns, limits) { Some(&own) } else { alike.next() };
        let at_home = is_per_cpu(&self.analysis.comm(t)) && of.cpus.count_ones() == 1;
        let bound_to = match (bound, at_home) {
            (Some(bound), _) => bound.waited_for,
            (None, true) => of.cpus,
            (None, false) => 0,
        };
        if cpus.len() > 64 || bound_to == 0 || bound_to & all == all {
            return u64::MAX;
        }
        // As indices in the list of CPUs.
        let places = cpus.iter().enumerate().filter(|(_, cpu)| bound_to >> (cpu.0 % 64) & 1 == 1);
        places.fold(0, |allowed, (place, _)| allowed | 1 << place)
    }
}

/// How long idle CPUs skipped a thread, counting long waits only. Every scheduler lets threads wait
/// a little, which says nothing about their affinity but adds up over thousands of threads.
fn long_waits(of: &ThreadSteps<'_>) -> Nanos {
    if of.waited_for == 0 { 0 } else { of.waited_while_idle_ns }
}

/// Whether the kernel has a thread of this name for each CPU, such as `ksoftirqd/3` and
/// `kworker/3:1H`.
fn is_per_cpu(comm: &str) -> bool {
    comm.split_once('/').is_some_and(|(_, of)| of.starts_with(|c: char| c.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::{ThreadSteps, Thresholds, WaitedWhileIdle, long_waits};

    /// Eight threads with `taskset -c 0` share the idle time of the other CPU: each was skipped for
    /// a quarter of the time that it was ready, and all together nearly always.
    #[test]
    fn threads_that_are_bound_alike_are_told_together() {
        let limits = Thresholds::default();
        let one = WaitedWhileIdle { ns: 60, ready: 250, waited_for: 1, since: 1 };
        let mut all = WaitedWhileIdle::default();
        (0..8).for_each(|_| all.add(one));
        assert_eq!((one.is_bound(500, &limits), all.are_bound(500, 2, &limits)), (false, true));
        // No affinity if one of them ran elsewhere since, or if they use most of the CPUs.
        let mut roaming = all;
        roaming.add(WaitedWhileIdle { since: 2, ..WaitedWhileIdle::default() });
        assert!(!roaming.are_bound(500, 2, &limits));
        assert!(!WaitedWhileIdle { waited_for: 7, since: 7, ..all }.are_bound(500, 4, &limits));
        assert!(!WaitedWhileIdle { ns: 70, ..all }.are_bound(500, 2, &limits));
        assert!(!WaitedWhileIdle::default().are_bound(0, 2, &limits));
    }

    /// One of 8,000 short-lived threads waited for a millisecond. All others that ran on its CPU
    /// alone were taken to be bound to it, because together they had waited for long.
    #[test]
    fn short_waits_of_many_threads_bind_none() {
        let waits = |waited_while_idle_ns, waited_for| {
            long_waits(&ThreadSteps { waited_while_idle_ns, waited_for, ..ThreadSteps::default() })
        };
        assert_eq!((waits(160_000, 0), waits(2_000_000, 1)), (0, 2_000_000));
    }
}
