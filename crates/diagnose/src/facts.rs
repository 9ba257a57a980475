//! The figures that rules look at, drawn once from the tables.

use crate::contention::{Contended, contended, stretch};
use crate::report::Culprit;
use crate::thresholds::{Threshold, Thresholds};
use holdup_passes::{Analysis, Cause, Group, Ledger, Server, Slot, SyscallRow, Thread, WaitRow};
use holdup_syscalls::WaitKind;
use holdup_trace::{Capabilities, Nanos, TraceInfo};

/// Everything a rule may look at.
pub struct Facts<'a> {
    /// What rules hold figures against.
    pub thresholds: Thresholds,
    /// The tables.
    pub analysis: &'a Analysis,
    /// What the file is.
    pub info: &'a TraceInfo,
    /// The same work elsewhere, to compare with.
    pub baseline: Option<&'a Analysis>,
    /// What it can prove.
    pub caps: Capabilities,
    /// CPUs x wall.
    pub capacity: Nanos,
    /// Length of the trace.
    pub wall: Nanos,
    /// Where it went.
    pub ledger: Ledger,
    /// System calls of the whole system, most elapsed time first.
    pub calls: Vec<SyscallRow>,
    /// Waits that may explain idle CPUs.
    pub waits: Vec<WaitRow>,
    /// The one thread all wait for, if there is one.
    pub server: Option<Server>,
    /// Application threads that ran for at least 1 % of the wall time, longest first.
    pub workers: Vec<(Slot, Nanos)>,
    /// System calls that cost more because of others in the kernel, most lost time first.
    pub contended: Vec<Contended>,
    /// How much longer application code takes on average than typically.
    pub stretch: f64,
    /// Time application threads spent ready but not running.
    pub ready: Nanos,
    /// Of it: behind another thread on the same CPU.
    pub queued: Nanos,
    /// Mean number of threads running or ready.
    pub queue: f64,
}

impl<'a> Facts<'a> {
    /// Draw them; every threshold has its default.
    pub fn new(
        info: &'a TraceInfo,
        analysis: &'a Analysis,
        baseline: Option<&'a Analysis>,
    ) -> Facts<'a> {
        Facts::with(info, analysis, baseline, Thresholds::default())
    }

    /// Draw them.
    pub fn with(
        info: &'a TraceInfo,
        analysis: &'a Analysis,
        baseline: Option<&'a Analysis>,
        thresholds: Thresholds,
    ) -> Facts<'a> {
        let wall = analysis.wall_ns();
        let mut calls = analysis.syscalls(Group::System);
        calls.sort_by(|a, b| {
            (b.total_ns + b.pending_ns).cmp(&(a.total_ns + a.pending_ns)).then(a.nr.cmp(&b.nr))
        });
        let applications = || analysis.threads().filter(|(_, t)| !t.is_kthread());
        let mut workers: Vec<(Slot, Nanos)> = applications()
            .map(|(s, t)| (s, t.running_ns))
            .filter(|&(_, ns)| ns > 0 && ns * 100 >= wall)
            .collect();
        workers.sort_by_key(|&(slot, ns)| (std::cmp::Reverse(ns), slot));
        let stretch = stretch(analysis, &calls);
        Facts {
            thresholds,
            analysis,
            info,
            baseline,
            caps: analysis.capabilities,
            capacity: analysis.capacity_ns(),
            wall,
            contended: contended(analysis, &calls, stretch),
            stretch,
            ledger: analysis.ledger(),
            calls,
            waits: analysis.wait_rows(),
            server: analysis.server(),
            workers,
            ready: applications().map(|(_, t)| t.woken_ns + t.preempted_ns).sum(),
            queued: applications().map(|(_, t)| t.queued_ns).sum(),
            queue: analysis.mean_queue_milli() as f64 / 1000.0,
        }
    }

    /// The value of a threshold.
    pub fn limit(&self, threshold: &Threshold) -> f64 {
        self.thresholds.get(threshold)
    }

    /// Part of capacity in per cent.
    pub fn pct(&self, ns: Nanos) -> f64 {
        if self.capacity == 0 { 0.0 } else { ns as f64 * 100.0 / self.capacity as f64 }
    }

    /// A node of the ledger in per cent of capacity.
    pub fn node(&self, path: &str) -> f64 {
        self.pct(self.ledger.ns(path))
    }

    /// Per cent of the accounted capacity in which CPUs were busy.
    pub fn busy(&self) -> f64 {
        let known = self.capacity - self.ledger.ns("unaccounted");
        if known == 0 { 0.0 } else { self.ledger.ns("busy") as f64 * 100.0 / known as f64 }
    }

    /// CPU time spent inside calls of these kinds.
    pub fn cpu_in(&self, kinds: fn(WaitKind) -> bool) -> Nanos {
        self.calls_of(kinds).filter_map(|c| c.cpu_ns).sum()
    }

    /// CPU time inside calls of these kinds, if threads also sleep in them: who never sleeps takes
    /// no turns.
    pub fn cpu_in_turns(&self, kinds: fn(WaitKind) -> bool) -> Nanos {
        let cpu = self.cpu_in(kinds);
        let blocked: Nanos = self.calls_of(kinds).filter_map(|c| c.blocked_ns).sum();
        if blocked * NEVER_SLEEPS >= cpu { cpu } else { 0 }
    }

    /// Calls of these kinds, most elapsed time first.
    pub fn calls_of(&self, kinds: fn(WaitKind) -> bool) -> impl Iterator<Item = &SyscallRow> {
        self.calls.iter().filter(move |c| kinds(holdup_syscalls::wait_kind(&c.name)))
    }

    /// Waiting time for this cause: all, and by system call, largest first.
    pub fn waiting_for(&self, cause: Cause) -> (Nanos, Vec<(String, Nanos)>) {
        let mut by_call: Vec<(String, Nanos)> = Vec::new();
        for w in self.waits.iter().filter(|w| w.cause == cause) {
            let name = w.call.clone().unwrap_or_else(|| "no system call (page fault)".to_owned());
            match by_call.iter_mut().find(|c| c.0 == name) {
                Some(c) => c.1 += w.sum.wait_ns,
                None => by_call.push((name, w.sum.wait_ns)),
            }
        }
        by_call.sort_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(&b.0)));
        (by_call.iter().map(|c| c.1).sum(), by_call)
    }

    /// Different threads that ended waits for this cause, and the largest one's part in per cent.
    pub fn wakers(&self, cause: Cause) -> (usize, f64) {
        let mut by: Vec<(Slot, Nanos)> = Vec::new();
        for w in self.waits.iter().filter(|w| w.cause == cause) {
            let Some(waker) = w.waker else { continue };
            match by.iter_mut().find(|b| b.0 == waker) {
                Some(b) => b.1 += w.sum.wait_ns,
                None => by.push((waker, w.sum.wait_ns)),
            }
        }
        let all: Nanos = by.iter().map(|b| b.1).sum();
        let most = by.iter().map(|b| b.1).max().unwrap_or(0);
        (by.len(), if all == 0 { 0.0 } else { most as f64 * 100.0 / all as f64 })
    }

    /// `server-0 (tid 295)`.
    pub fn name(&self, slot: Slot) -> String {
        let t = self.thread(slot);
        format!("{} (tid {})", self.analysis.comm(t), t.tid)
    }

    /// A thread as a culprit that stands for so much CPU time; `kind` is what it is called.
    pub(crate) fn culprit(&self, kind: &'static str, slot: Slot, ns: Nanos) -> Culprit {
        let t = self.thread(slot);
        Culprit {
            kind,
            id: t.tid.to_string(),
            name: self.analysis.comm(t),
            tid: Some(t.tid.0),
            pid: self.analysis.pid(t),
            ns,
            ..Culprit::default()
        }
    }

    /// Only some tasks were recorded, so that what the CPUs did otherwise is not known.
    pub fn tasks_only(&self) -> bool {
        self.info.system_wide == Some(false)
    }

    /// One thread.
    pub fn thread(&self, slot: Slot) -> &Thread {
        self.analysis.thread(slot)
    }
}

/// Threads that sleep in a call for less than one part in so many of its CPU time do not sleep in
/// it.
const NEVER_SLEEPS: u64 = 50;
/// CPU time lost in a call counts as its threads' own taking turns if they sleep in it for each
/// other for at least this part of it.
const SLEEPS: u64 = 3;

impl Facts<'_> {
    /// Whether threads sleep for each other in this call rather than for the kernel: then what they
    /// burn in it beyond its own work belongs to that too. The lists behind semaphores, file locks
    /// and futexes are guarded by spinlocks of the kernel, which contend without any thread asleep.
    pub fn sleeps_for_others(&self, call: &Contended) -> bool {
        let peers = |w: &&WaitRow| {
            w.nr == Some(call.nr) && matches!(w.cause, Cause::ThreadSync | Cause::KernelService)
        };
        let waited: Nanos = self.waits.iter().filter(peers).map(|w| w.sum.wait_ns).sum();
        waited * SLEEPS >= call.lost_ns
    }

    /// Calls of these kinds burn time on locks of the kernel rather than by taking turns.
    pub fn kernel_contends_in(&self, kinds: fn(WaitKind) -> bool) -> bool {
        let lost = |c: &&Contended| kinds(c.kind) && !self.sleeps_for_others(c);
        self.pct(self.contended.iter().filter(lost).map(|c| c.lost_ns).sum()) >= 1.0
    }
}
