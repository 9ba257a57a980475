//! The figures that rules look at, computed once from the tables.

use crate::class::Class;
use crate::comparison::{Overhead, Slowdown};
use crate::judged::Judged;
use crate::replays::Replays;
use crate::report::{Culprit, Evidence};
use crate::worth::HolderWorth;
use crate::{Extras, Measured};
use holdup_attribution::limits::{ENOUGH, MATTERS, NAMED};
use holdup_attribution::{
    Attribution, Blamed, Check, Leaf, Threshold, Thresholds, Total, is_recorder,
};
use holdup_passes::{Analysis, Cause, Object, Slot, Thread, WaitRow};
use holdup_profile::KnowsCode;
use holdup_trace::{Capabilities, Nanos, TraceInfo};
use std::cell::OnceCell;
use std::collections::BTreeMap;

/// Stands for the call of a wait outside system calls, if page faults were recorded.
const PAGE_FAULTS: &str = "page faults";
/// As [`PAGE_FAULTS`], if page faults were not recorded: the cause is a guess.
const NO_CALL: &str = "no recorded call";
/// As [`PAGE_FAULTS`], if not all system calls were recorded: the call is unknown.
pub(crate) const NOT_RECORDED: &str = "unrecorded calls";

/// How long a thread was ready and not throttled, but did not run.
fn ready(t: &Thread) -> Nanos {
    (t.woken_ns + t.preempted_ns).saturating_sub(t.throttle().map_or(0, |t| t.ns))
}

/// Everything a rule may look at.
pub struct Facts<'a> {
    /// The judgements on waits, calls and threads, and the limits in force.
    pub judged: Attribution<'a>,
    /// The tables.
    pub analysis: &'a Analysis,
    /// What kind of file it is.
    pub info: &'a TraceInfo,
    /// The same work elsewhere, for comparison.
    pub baseline: Option<&'a Analysis>,
    /// `perf stat` counts of the same work.
    pub measured: &'a [Measured],
    /// The code around what threads waited for, if call chains were recorded.
    pub(crate) code: Option<&'a dyn KnowsCode>,
    /// What the trace can show.
    pub caps: Capabilities,
    /// CPUs x wall time, in ns.
    pub capacity: Nanos,
    /// Length of the trace, in ns.
    pub wall: Nanos,
    /// Time of start-up and tail, which are left out deliberately.
    pub left_out_ns: Nanos,
    /// Application threads that ran for `all.named_pct` of the wall time, longest first.
    pub workers: Vec<(Slot, Nanos)>,
    /// How long application threads were ready and not throttled, but did not run.
    pub ready: Nanos,
    /// How long a quota throttled threads.
    pub throttled: Nanos,
    /// The part of `ready` behind another thread on the same CPU.
    pub queued: Nanos,
    /// The part of `ready` until the waking thread went to sleep and so handed its CPU over.
    pub handed: Nanos,
    /// How long application threads, except the recorder's, ran or were ready, without hand-overs.
    pub demand: Nanos,
    /// Mean number of threads running or ready.
    pub queue: f64,
    /// Estimates of how much slower application code runs under concurrency, most trusted first.
    pub(crate) slowdowns: Vec<Slowdown>,
    /// The cost of system calls beyond the baseline's, if there is a baseline.
    pub(crate) overhead: Option<Overhead>,
    /// The result of replays, if the trace was replayed.
    pub(crate) replays: Option<Result<Replays, String>>,
    /// See [`Facts::objects`].
    objects: OnceCell<Vec<Blamed>>,
}

impl<'a> Facts<'a> {
    /// Compute them, before anything is compared.
    pub(crate) fn drawn(
        info: &'a TraceInfo,
        analysis: &'a Analysis,
        extras: Extras<'a>,
        thresholds: Thresholds,
    ) -> Facts<'a> {
        let wall = analysis.wall_ns();
        let applications = || analysis.all_threads().filter(|(_, t)| !t.is_kthread());
        let mut workers: Vec<(Slot, Nanos)> = applications()
            .filter(|(_, t)| !is_recorder(&analysis.comm(t)))
            .map(|(s, t)| (s, t.running_ns))
            .filter(|&(_, ns)| ns > 0 && ns as f64 * 100.0 >= wall as f64 * thresholds.get(&NAMED))
            .collect();
        workers.sort_by_key(|&(slot, ns)| (std::cmp::Reverse(ns), slot));
        Facts {
            judged: Attribution::new(analysis, &thresholds),
            slowdowns: Vec::new(),
            overhead: None,
            analysis,
            info,
            baseline: extras.baseline,
            measured: extras.measured,
            code: extras.code,
            caps: analysis.capabilities.clone(),
            capacity: analysis.capacity_ns(),
            wall,
            left_out_ns: 0,
            workers,
            ready: applications().map(|(_, t)| ready(t)).sum(),
            throttled: applications().filter_map(|(_, t)| t.throttle()).map(|t| t.ns).sum(),
            queued: applications().map(|(_, t)| t.queued_ns).sum(),
            handed: applications().map(|(_, t)| t.handed_ns).sum(),
            demand: applications()
                .filter(|(_, t)| !is_recorder(&analysis.comm(t)))
                .map(|(_, t)| (t.running_ns + ready(t)).saturating_sub(t.handed_ns))
                .sum(),
            queue: analysis.mean_queue_milli() as f64 / 1000.0,
            replays: None,
            objects: OnceCell::new(),
        }
    }

    /// Replay the trace if its steps were kept.
    pub(crate) fn replay(&mut self, judged: &Judged) {
        self.replays = if std::ptr::eq(judged.replayed(), self.analysis) {
            self.analysis.keeps_steps().then(|| Replays::of(&self.judged))
        } else {
            Replays::of_judged(judged, &self.judged.thresholds)
        };
    }

    /// The objects of a class whose removal makes the replayed work faster by enough to matter.
    pub(crate) fn worth_removing(&self, class: Class) -> Option<&[Object]> {
        let replays = self.replays.as_ref()?.as_ref().ok()?;
        let replay = replays.of_class(class)?;
        (replay.worth.low >= self.matters() && !replay.objects.is_empty())
            .then_some(&replay.objects)
    }

    /// The gain if this lock's holders lose no time, if that was replayed.
    pub(crate) fn holders_worth(&self, objects: &[Object]) -> Vec<HolderWorth> {
        let replays = self.replays.as_ref().and_then(|of| of.as_ref().ok());
        let found = replays.into_iter().flat_map(Replays::of_holders);
        found.filter(|of| objects.contains(&of.0)).flat_map(|of| of.1.clone()).collect()
    }

    /// The objects that threads waited for, with their threads; computed when first asked for.
    pub(crate) fn objects(&self) -> &[Blamed] {
        self.objects.get_or_init(|| {
            let mut objects = self.judged.blamed();
            if self.judged.chosen.is_some() {
                // Only waits of the chosen threads, if there are any.
                let chosen = |slot: Slot| self.analysis.is_chosen(self.thread(slot));
                objects.iter_mut().for_each(|o| o.sleepers.retain(|s| chosen(s.slot)));
                objects.retain(|o| !o.sleepers.is_empty());
            }
            objects
        })
    }

    /// The thread with this id that ran longest: an id may be reused.
    pub(crate) fn longest(&self, tid: u32) -> Option<Slot> {
        let same = self.analysis.all_threads().filter(|(_, t)| t.tid.0 == tid);
        same.max_by_key(|(_, t)| t.running_ns).map(|(slot, _)| slot)
    }

    /// The value of a threshold.
    pub fn limit(&self, threshold: &Threshold) -> f64 {
        self.judged.thresholds.get(threshold)
    }

    /// The smallest speed-up that makes a change worthwhile, as a factor.
    pub(crate) fn matters(&self) -> f64 {
        self.judged.thresholds.worthwhile()
    }

    /// The unknown part of capacity, in per cent, that makes a verdict less sure: a third of what
    /// matters.
    pub(crate) fn doubtful(&self) -> f64 {
        self.limit(&MATTERS) / 3.0
    }

    /// Whether there are enough for a meaningful mean.
    pub(crate) fn enough(&self, count: u64) -> bool {
        self.judged.thresholds.enough(count, &ENOUGH)
    }

    /// The unknown part of capacity, in per cent, that could hide the largest finding: twice what
    /// matters.
    pub(crate) fn too_much(&self) -> f64 {
        2.0 * self.limit(&MATTERS)
    }

    /// A check that a figure is at least the threshold.
    pub fn at_least(&self, value: f64, threshold: &Threshold) -> Check {
        self.judged.thresholds.at_least(value, threshold)
    }

    /// The time at a leaf as evidence: unknown if the leaf is.
    pub(crate) fn share(&self, metric: impl Into<String>, leaf: Leaf) -> Evidence {
        let row = Evidence::of(metric, self.leaf_pct(leaf), "% of capacity", leaf.source());
        match self.judged.ledger.get(leaf) {
            Some(_) => row,
            None => Evidence { value: None, ..row },
        }
    }

    /// Time at a leaf of the ledger; 0 if unknown.
    pub fn leaf(&self, leaf: Leaf) -> Nanos {
        self.judged.ledger.ns(leaf)
    }

    /// Time at a leaf, in per cent of capacity.
    pub fn leaf_pct(&self, leaf: Leaf) -> f64 {
        self.pct(self.leaf(leaf))
    }

    /// Time for which the CPUs' activity is unknown because events are missing.
    pub fn unseen(&self) -> Nanos {
        self.leaf(Leaf::Unaccounted) + self.leaf(Leaf::Unseen)
    }

    /// Time in a node of the ledger.
    pub fn total(&self, total: Total) -> Nanos {
        self.judged.ledger.total(total)
    }

    /// Time in application code, with unrecorded calls if only some calls were recorded.
    pub fn application(&self) -> Nanos {
        self.total(Total::User) + self.total(Total::Application)
    }

    /// CPU time that the work used or lacked ([`holdup_attribution::Ledger::wanted_ns`]).
    pub fn wanted(&self) -> Nanos {
        self.judged.ledger.wanted_ns()
    }

    /// This time in per cent of the CPU time that the work used or lacked.
    pub fn wanted_pct(&self, ns: Nanos) -> f64 {
        ns as f64 * 100.0 / self.wanted().max(1) as f64
    }

    /// This time in per cent of capacity.
    pub fn pct(&self, ns: Nanos) -> f64 {
        if self.capacity == 0 { 0.0 } else { ns as f64 * 100.0 / self.capacity as f64 }
    }

    /// Time in a node of the ledger, in per cent of capacity.
    pub fn total_pct(&self, total: Total) -> f64 {
        self.pct(self.total(total))
    }

    /// Per cent of the accounted capacity in which CPUs were busy.
    pub fn busy(&self) -> f64 {
        let known = self.capacity - self.total(Total::Unaccounted);
        if known == 0 { 0.0 } else { self.total(Total::Busy) as f64 * 100.0 / known as f64 }
    }

    fn waits_for(&self, cause: Cause) -> impl Iterator<Item = &WaitRow> {
        self.judged.waits.iter().map(|w| &w.row).filter(move |w| w.cause == cause)
    }

    /// Waiting time for this cause: the total, and by system call, largest first.
    pub fn waiting_for(&self, cause: Cause) -> (Nanos, Vec<(String, Nanos)>) {
        let outside = match (self.caps.syscalls.are_all(), self.caps.page_faults) {
            (true, true) => PAGE_FAULTS,
            (true, false) => NO_CALL,
            (false, _) => NOT_RECORDED,
        };
        let mut by: BTreeMap<Option<u32>, Nanos> = BTreeMap::new();
        for w in self.waits_for(cause) {
            *by.entry(w.nr).or_default() += w.sum.wait_ns;
        }
        // Calls of several interfaces of the kernel may have one name.
        let mut by_name: BTreeMap<String, Nanos> = BTreeMap::new();
        for (nr, ns) in by {
            let name = nr.map_or_else(|| outside.to_owned(), |nr| self.analysis.call_name(nr));
            *by_name.entry(name).or_default() += ns;
        }
        let mut by_call: Vec<(String, Nanos)> = by_name.into_iter().collect();
        by_call.sort_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(&b.0)));
        (by_call.iter().map(|c| c.1).sum(), by_call)
    }

    /// The number of threads that ended waits for this cause, and the largest share in per cent.
    pub fn wakers(&self, cause: Cause) -> (usize, f64) {
        let mut by: BTreeMap<Slot, Nanos> = BTreeMap::new();
        for w in self.waits_for(cause) {
            if let Some(waker) = w.waker {
                *by.entry(waker).or_default() += w.sum.wait_ns;
            }
        }
        let all: Nanos = by.values().sum();
        let most = by.values().copied().max().unwrap_or(0);
        (by.len(), if all == 0 { 0.0 } else { most as f64 * 100.0 / all as f64 })
    }

    /// `server-0 (tid 295)`.
    pub fn name(&self, slot: Slot) -> String {
        let t = self.thread(slot);
        format!("{} ({})", self.analysis.comm(t), t.tid.words())
    }

    /// A thread as a culprit that costs this much CPU time; `kind` is its description.
    pub(crate) fn culprit(&self, kind: &'static str, slot: Slot, ns: Nanos) -> Culprit {
        let t = self.thread(slot);
        Culprit {
            kind,
            id: t.tid.to_string(),
            name: self.analysis.comm(t),
            tid: Some(t.tid.0),
            pid: self.analysis.pid(t),
            ns,
            code: self.code.and_then(|code| code.thread(t.tid)),
            ..Culprit::default()
        }
    }

    /// Only some tasks were recorded, so what else the CPUs did is unknown.
    pub fn tasks_only(&self) -> bool {
        self.info.system_wide == Some(false)
    }

    /// One thread.
    pub fn thread(&self, slot: Slot) -> &Thread {
        self.analysis.thread(slot)
    }
}
