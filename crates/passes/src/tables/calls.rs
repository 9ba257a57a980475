//! System calls.

use super::GroupKey;
use crate::analysis::Analysis;
use crate::rounding::percent;
use crate::rows::*;
use crate::slot::Slot;
use crate::syscalls::{CallStats, CallSum};
use crate::threads::{Thread, pid_of};
use holdup_syscalls::WaitKind;
use holdup_trace::{Nanos, Tid};
use std::collections::BTreeMap;

/// Name of an error; `errno_N` for unknown numbers.
pub fn errno_word(errno: u32) -> String {
    holdup_syscalls::errno_name(errno).map_or_else(|| format!("errno_{errno}"), str::to_owned)
}

type Groups = BTreeMap<(GroupKey, u32), (CallStats, Option<Slot>)>;

impl Analysis {
    /// The calls of all threads by number: added up once, because there may be very many threads.
    fn calls(&self) -> &BTreeMap<u32, CallSum> {
        self.calls.get_or_init(|| {
            let mut sums: BTreeMap<u32, CallSum> = BTreeMap::new();
            for (nr, calls) in self.threads().flat_map(|(_, t)| t.living.calls()) {
                let sum = sums.entry(nr).or_default();
                let before = sum.stats.count;
                calls.add_to(&mut sum.stats);
                sum.squares += u128::from(sum.stats.count - before).pow(2);
            }
            sums
        })
    }

    /// The numbers of the calls that any thread finished.
    pub(crate) fn numbers_of_calls(&self) -> impl Iterator<Item = u32> {
        self.calls().keys().copied()
    }

    /// For each system call the sum of the squares of the threads' counts. Divided by the square of
    /// the total count it is the probability that two random calls come from the same thread.
    pub fn squares_of_calls(&self) -> BTreeMap<u32, u128> {
        self.calls().iter().map(|(&nr, sum)| (nr, sum.squares)).collect()
    }

    /// CPU time in calls of these kinds that slept or ended the sleep of another thread: the cost
    /// of waiting for each other, without the waiting time.
    pub fn sleep_and_wake_ns(&self, kinds: impl Fn(WaitKind) -> bool) -> Nanos {
        let of_kind = |nr: u32| kinds(self.call_kind(nr));
        let calls = self.calls().iter().filter(|(nr, _)| of_kind(**nr));
        calls.map(|(_, sum)| sum.stats.sleeps_and_wakes).sum()
    }

    /// The same for each thread, by kind.
    pub fn sleep_and_wake_by_thread(&self) -> Vec<(Slot, WaitKind, Nanos)> {
        let kinds: BTreeMap<u32, WaitKind> =
            self.calls().keys().map(|&nr| (nr, self.call_kind(nr))).collect();
        let threads = self.threads().flat_map(|(slot, t)| t.living.calls().map(move |c| (slot, c)));
        let calls =
            threads.map(|(slot, (nr, calls))| (slot, nr, calls.sums(|s| s.sleeps_and_wakes)));
        calls
            .filter(|call| call.2 > 0)
            .filter_map(|(slot, nr, ns)| Some((slot, *kinds.get(&nr)?, ns)))
            .collect()
    }

    /// Every thread that made one of these calls, in order of appearance.
    pub fn callers(&self, numbers: &[u32]) -> Vec<Caller> {
        let of = |(slot, t): (Slot, &Thread)| {
            let (mut calls, mut all_calls) = (0, 0);
            for (nr, finished) in t.living.calls() {
                let count = finished.sums(|s| s.count);
                all_calls += count;
                calls += if numbers.contains(&nr) { count } else { 0 };
            }
            (calls > 0).then_some(Caller { slot, calls, all_calls })
        };
        self.threads().filter_map(of).collect()
    }

    /// The CPU time of each thread in calls of each number; none if switches were not recorded.
    pub fn cpu_in_calls(&self) -> impl Iterator<Item = (Tid, u32, Nanos)> {
        let threads = self.threads().filter(|_| self.sees_switches());
        threads.flat_map(|(_, t)| {
            t.living.calls().map(|(nr, calls)| (t.tid, nr, calls.sums(|s| s.running)))
        })
    }

    fn calls_by(&self, by: Group) -> Groups {
        let mut groups = Groups::new();
        if by == Group::System {
            let whole =
                |(&nr, sum): (&u32, &CallSum)| ((GroupKey::All, nr), (sum.stats.clone(), None));
            return self.calls().iter().map(whole).collect();
        }
        for (slot, t) in self.threads() {
            let key = self.group_key(by, slot, t);
            for (nr, calls) in t.living.calls() {
                let entry = groups.entry((key.clone(), nr)).or_default();
                calls.add_to(&mut entry.0);
                // A process is named after its leader, or the first thread seen.
                if entry.1.is_none() || t.tid.0 == t.pid.0 {
                    entry.1 = Some(slot);
                }
            }
        }
        groups
    }

    /// System calls.
    pub fn syscalls(&self, by: Group) -> Vec<SyscallRow> {
        let sched = self.sees_switches();
        let capacity = self.capacity_ns();
        self.calls_by(by)
            .into_iter()
            .map(|((_, nr), (s, slot))| {
                let t = slot.map(|s| self.thread(s));
                SyscallRow {
                    cgroup: t
                        .filter(|_| matches!(by, Group::Cgroup | Group::Thread))
                        .map(|t| self.group_words(self.group(t))),
                    comm: t
                        .filter(|_| !matches!(by, Group::System | Group::Cgroup))
                        .map(|t| self.comm(t)),
                    pid: t.filter(|_| matches!(by, Group::Process | Group::Thread)).map(pid_of),
                    tid: t.filter(|_| by == Group::Thread).map(|t| t.tid.0),
                    name: self.call_name(nr),
                    nr,
                    count: s.count,
                    errors: s.errors,
                    total_ns: s.total,
                    cpu_ns: sched.then_some(s.running),
                    interrupted_ns: sched.then_some(s.interrupted),
                    runnable_ns: sched.then_some(s.runnable),
                    blocked_ns: sched.then_some(s.blocked),
                    min_ns: s.min,
                    avg_ns: s.total.checked_div(s.count).unwrap_or(0),
                    max_ns: s.max,
                    // The middle of a bucket may exceed the longest call.
                    p50_ns: s.hist.percentile(50).map(|p| p.clamp(s.min, s.max)),
                    p99_ns: s.hist.percentile(99).map(|p| p.clamp(s.min, s.max)),
                    pending: s.pending,
                    pending_ns: s.pending_ns,
                    returned_only: s.returned_only,
                    pct_capacity: sched.then(|| percent(s.running, capacity)),
                    errnos: s.errnos.iter().map(|&(e, n)| (errno_word(e.into()), n)).collect(),
                    code: None,
                }
            })
            .collect()
    }
}
