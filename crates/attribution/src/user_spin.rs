//! Threads that wait without sleeping, in a loop of their own code: spin locks, adaptive mutexes,
//! barriers.
//!
//! Such a loop leaves no event. Samples of the running code show it ([`SampledRun`]): a thread's
//! CPU time outside recorded calls is divided in proportion to its samples. Samples are
//! chance: of a program with too few of them in spinning code nothing is said.
//!
//! Threads wait for each other if nearly always one of the program's threads works, or would work
//! if it had a CPU. Otherwise they poll for something outside, and nothing is gained if they stop.
//!
//! One thread may have most of the work while the others spin most of their time: then they wait
//! at a barrier for it, and its work should be divided. It hardly waits for them in turn. Where the
//! same holds of no thread, samples cannot tell a lock from a barrier at which another thread is
//! the last one each time; a lock is the more general thing.

use crate::leaf::Leaf;
use crate::limits::{ENOUGH, SERVER_ENDS, Thresholds};
use crate::peers::{Peers, peers};
use holdup_passes::{Analysis, SampledRun, Slot, Thread};
use holdup_trace::Nanos;
use std::cmp::Reverse;

/// Threads of one program that wait for each other by spinning in user mode.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UserSpinning {
    /// They belong to several processes.
    pub between_processes: bool,
    /// The thread that has most of the work while the others spin.
    pub straggler: Option<Slot>,
    /// CPU time of all their spinning.
    pub spun_ns: Nanos,
    /// The program's threads with their work, as CPU time without spinning, and their spinning;
    /// the one that spins longest first.
    pub threads: Vec<(Slot, Nanos, Nanos)>,
    /// The functions in which they spin, with the number of samples, most first.
    pub functions: Vec<(String, u64)>,
}

/// One thread's samples, and what follows.
struct Spinner {
    slot: Slot,
    samples: SampledRun,
    spun_ns: Nanos,
    work_ns: Nanos,
    ready_ns: Nanos,
}

/// Every program whose threads wait like this, most CPU time first.
pub(crate) fn user_spinning(analysis: &Analysis, thresholds: &Thresholds) -> Vec<UserSpinning> {
    let sampled = analysis.all_threads().filter(|(_, t)| !t.is_kthread());
    let sampled = sampled.map(|(slot, t)| (slot, Spinner::of(slot, t, analysis.sampled(slot))));
    let peers = peers(analysis, sampled.filter(|(_, spinner)| spinner.samples.all > 0));
    let of = |peers| UserSpinning::of(analysis, peers, thresholds);
    let mut out: Vec<UserSpinning> = peers.into_iter().filter_map(of).collect();
    out.sort_by_key(|s| (Reverse(s.spun_ns), s.threads.first().map(|t| t.0)));
    out
}

impl Spinner {
    fn of(slot: Slot, t: &Thread, samples: SampledRun) -> Spinner {
        let spun_ns = samples.spun_ns(t.user_ns);
        let work_ns = t.running_ns.saturating_sub(t.irq_ns).saturating_sub(spun_ns);
        Spinner { slot, samples, spun_ns, work_ns, ready_ns: t.woken_ns + t.preempted_ns }
    }

    /// The part of its samples that are spinning.
    fn part(&self) -> f64 {
        self.samples.spinning() as f64 / self.samples.all.max(1) as f64
    }
}

impl UserSpinning {
    /// Where its CPU time is in the ledger.
    pub fn leaf(&self) -> Leaf {
        match (self.straggler, self.between_processes) {
            (Some(_), _) => Leaf::BarrierSpin,
            (None, true) => Leaf::ServiceSpin,
            (None, false) => Leaf::Spin,
        }
    }

    fn of(
        analysis: &Analysis,
        peers: Peers<Spinner>,
        thresholds: &Thresholds,
    ) -> Option<UserSpinning> {
        let between_processes = peers.between_processes;
        let mut threads: Vec<Spinner> = peers.threads.into_iter().map(|t| t.1).collect();
        let samples: u64 = threads.iter().map(|t| t.samples.spinning()).sum();
        if !thresholds.enough(samples, &ENOUGH) || !is_for_each_other(&threads) {
            return None;
        }
        threads.sort_by_key(|t| (Reverse(t.spun_ns), t.slot));
        let slots: Vec<Slot> = threads.iter().map(|t| t.slot).collect();
        Some(UserSpinning {
            between_processes,
            straggler: straggler(&threads, thresholds),
            spun_ns: threads.iter().map(|t| t.spun_ns).sum(),
            threads: threads.iter().map(|t| (t.slot, t.work_ns, t.spun_ns)).collect(),
            functions: analysis.spins_in(&slots),
        })
    }
}

/// Whether for most of the time one of the threads works, or waits for a CPU.
fn is_for_each_other(threads: &[Spinner]) -> bool {
    let works: Nanos = threads.iter().map(|t| t.work_ns + t.ready_ns).sum();
    let longest = threads.iter().map(|t| t.work_ns + t.spun_ns + t.ready_ns).max();
    works * 2 >= longest.unwrap_or(0)
}

/// The thread that does most of the work of all, while the others spin most of their time, if it is
/// the server of the others: of the time that it and one of them spin for each other, it ended the
/// part that a server ends.
fn straggler(threads: &[Spinner], thresholds: &Thresholds) -> Option<Slot> {
    let seen = |t: &&Spinner| thresholds.enough(t.samples.all, &ENOUGH);
    let most = threads.iter().filter(seen).max_by_key(|t| t.work_ns)?;
    let work: Nanos = threads.iter().map(|t| t.work_ns).sum();
    let others = || threads.iter().filter(seen).filter(|t| t.slot != most.slot);
    let theirs = others().map(Spinner::part).sum::<f64>() / others().count().max(1) as f64;
    let ended = theirs * 100.0 / (theirs + most.part());
    let has_most = most.work_ns * 2 >= work && theirs * 2.0 >= 1.0;
    (has_most && thresholds.at_least(ended, &SERVER_ENDS).holds()).then_some(most.slot)
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: Nanos = 1_000_000_000;

    /// A thread with 100 samples that works and spins for these tenths of a second.
    fn thread(slot: u32, work: u64, spun: u64, ready: u64) -> Spinner {
        let pause = 100 * spun / (work + spun).max(1);
        let samples = SampledRun { all: 100, pause, ..SampledRun::default() };
        let ns = |tenths| tenths * S / 10;
        Spinner {
            slot: Slot(slot),
            samples,
            spun_ns: ns(spun),
            work_ns: ns(work),
            ready_ns: ns(ready),
        }
    }

    fn last(threads: &[Spinner]) -> Option<Slot> {
        straggler(threads, &Thresholds::default())
    }

    #[test]
    fn one_thread_that_works_while_the_others_spin_is_a_straggler() {
        assert_eq!(last(&[thread(1, 10, 0, 0), thread(2, 1, 9, 0)]), Some(Slot(1)));
        let several = [thread(1, 9, 1, 0), thread(2, 2, 8, 0), thread(3, 2, 8, 0)];
        assert_eq!(last(&several), Some(Slot(1)));
    }

    #[test]
    fn threads_that_spin_alike_contend() {
        assert_eq!(last(&[thread(1, 5, 5, 0), thread(2, 5, 5, 0)]), None);
        assert_eq!(last(&[thread(1, 6, 4, 0), thread(2, 4, 6, 0)]), None);
    }

    #[test]
    fn who_is_late_ends_as_much_of_the_waiting_as_a_server() {
        let spins = |spun: u64| [thread(1, 100 - spun, spun, 0), thread(2, 20, 80, 0)];
        assert_eq!(last(&spins(20)), Some(Slot(1)), "of 100 it ended 80");
        assert_eq!(last(&spins(25)), None);
        let mut strict = Thresholds::default();
        strict.set(&SERVER_ENDS, 90.0);
        assert_eq!(straggler(&spins(20), &strict), None);
    }

    #[test]
    fn threads_that_poll_while_nobody_works_wait_for_no_other() {
        assert!(!is_for_each_other(&[thread(1, 0, 10, 0), thread(2, 1, 9, 0)]));
        assert!(is_for_each_other(&[thread(1, 5, 5, 0), thread(2, 5, 5, 0)]));
        assert!(is_for_each_other(&[thread(1, 0, 5, 5), thread(2, 0, 5, 5)]), "no CPU");
    }
}
