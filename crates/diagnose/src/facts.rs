//! The figures that rules look at, drawn once from the tables.

use crate::class::Class;
use crate::comparison::{Overhead, Slowdown};
use crate::judged::Judged;
use crate::replays::Replays;
use crate::report::{Culprit, Evidence};
use crate::worth::HolderWorth;
use crate::{Beside, Measured};
use holdup_attribution::limits::{ENOUGH, MATTERS, NAMED};
use holdup_attribution::{
    Attribution, Blamed, Check, Leaf, Threshold, Thresholds, Total, is_recorder,
};
use holdup_passes::{Analysis, Cause, Object, Slot, Thread, WaitRow};
use holdup_profile::KnowsCode;
use holdup_trace::{Capabilities, Nanos, TraceInfo};
use std::cell::OnceCell;

/// Stands for the call of waits outside of system calls, where page faults were recorded.
const PAGE_FAULTS: &str = "page faults";
/// The same where they were not: what such a wait was for is a guess.
const NO_CALL: &str = "no recorded call";
/// The same where not all system calls were recorded: what a thread slept in is not known.
pub(crate) const NOT_RECORDED: &str = "unrecorded calls";

/// Time a thread spent ready but not running, though it might have.
fn ready(t: &Thread) -> Nanos {
    (t.woken_ns + t.preempted_ns).saturating_sub(t.throttle().map_or(0, |t| t.ns))
}

/// Everything a rule may look at.
pub struct Facts<'a> {
    /// What was judged of the waits, calls and threads, and the limits in force.
    pub judged: Attribution<'a>,
    /// The tables.
    pub analysis: &'a Analysis,
    /// What the file is.
    pub info: &'a TraceInfo,
    /// The same work elsewhere, to compare with.
    pub baseline: Option<&'a Analysis>,
    /// What perf stat counted of the same work.
    pub measured: &'a [Measured],
    /// The code around what threads waited for, where call chains were recorded.
    pub(crate) code: Option<&'a dyn KnowsCode>,
    /// What the trace can show.
    pub caps: Capabilities,
    /// CPUs x wall.
    pub capacity: Nanos,
    /// Length of the trace.
    pub wall: Nanos,
    /// Time of start-up and tail, which are left out on purpose.
    pub left_out_ns: Nanos,
    /// Application threads that ran for `all.named_pct` of the wall time, longest first.
    pub workers: Vec<(Slot, Nanos)>,
    /// Time application threads spent ready but not running, though they might have.
    pub ready: Nanos,
    /// Time threads spent ready and kept off the CPUs by a quota.
    pub throttled: Nanos,
    /// Of it: behind another thread on the same CPU.
    pub queued: Nanos,
    /// Of it: until the thread that had woken it went to sleep and so handed its CPU over.
    pub handed: Nanos,
    /// Time that application threads, the recorder's left out, ran or were ready to, hand-overs
    /// left out.
    pub demand: Nanos,
    /// Mean number of threads running or ready.
    pub queue: f64,
    /// Ways to tell how much slower application code runs under concurrency, most trusted first.
    pub(crate) slowdowns: Vec<Slowdown>,
    /// What system calls cost more than in the baseline, if there is one.
    pub(crate) overhead: Option<Overhead>,
    /// What replays say, where the trace was replayed.
    pub(crate) replays: Option<Result<Replays, String>>,
    /// See [`Facts::objects`].
    objects: OnceCell<Vec<Blamed>>,
}

impl<'a> Facts<'a> {
    /// Draw them, before anything is compared.
    pub(crate) fn drawn(
        info: &'a TraceInfo,
        analysis: &'a Analysis,
        beside: Beside<'a>,
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
            baseline: beside.baseline,
            measured: beside.measured,
            code: beside.code,
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

    /// Replay what there is to replay.
    pub(crate) fn replay(&mut self, judged: &Judged) {
        self.replays = if std::ptr::eq(judged.replayed(), self.analysis) {
            self.analysis.keeps_steps().then(|| Replays::of(&self.judged))
        } else {
            Replays::of_judged(judged, &self.judged.thresholds)
        };
    }

    /// What the work would be done sooner without, by a replay: the objects of a class that gain
    /// what matters.
    pub(crate) fn worth_removing(&self, class: Class) -> Option<&[Object]> {
        let replays = self.replays.as_ref()?.as_ref().ok()?;
        let replay = replays.of_class(class)?;
        (replay.worth.low >= self.matters() && !replay.objects.is_empty())
            .then_some(&replay.objects)
    }

    /// What the work gains if the holders of this lock lose no time, where that was replayed.
    pub(crate) fn holders_worth(&self, objects: &[Object]) -> Vec<HolderWorth> {
        let replays = self.replays.as_ref().and_then(|of| of.as_ref().ok());
        let found = replays.into_iter().flat_map(Replays::of_holders);
        found.filter(|of| objects.contains(&of.0)).flat_map(|of| of.1.clone()).collect()
    }

    /// What threads waited for, with the people around it; drawn when first asked for.
    pub(crate) fn objects(&self) -> &[Blamed] {
        self.objects.get_or_init(|| {
            let mut objects = self.judged.blamed();
            if self.judged.chosen.is_some() {
                // What the chosen threads waited for, by them.
                let chosen = |slot: Slot| self.analysis.is_chosen(self.thread(slot));
                objects.iter_mut().for_each(|o| o.sleepers.retain(|s| chosen(s.slot)));
                objects.retain(|o| !o.sleepers.is_empty());
            }
            objects
        })
    }

    /// The thread with this id that ran longest: an id may have been used again.
    pub(crate) fn longest(&self, tid: u32) -> Option<Slot> {
        let same = self.analysis.all_threads().filter(|(_, t)| t.tid.0 == tid);
        same.max_by_key(|(_, t)| t.running_ns).map(|(slot, _)| slot)
    }

    /// The value of a threshold.
    pub fn limit(&self, threshold: &Threshold) -> f64 {
        self.judged.thresholds.get(threshold)
    }

    /// A gain from which on something is worth changing: times as fast.
    pub(crate) fn matters(&self) -> f64 {
        100.0 / (100.0 - self.limit(&MATTERS).min(99.0))
    }

    /// Capacity of which nobody knows what it did, in per cent, that makes a verdict less sure: a
    /// third of what matters.
    pub(crate) fn doubtful(&self) -> f64 {
        self.limit(&MATTERS) / 3.0
    }

    /// Whether there are so many that a mean of them says something.
    pub(crate) fn enough(&self, count: u64) -> bool {
        self.judged.thresholds.enough(count, &ENOUGH)
    }

    /// Capacity of which nobody knows what it did, in per cent, that could hide the largest
    /// finding:
    /// twice what matters.
    pub(crate) fn too_much(&self) -> f64 {
        2.0 * self.limit(&MATTERS)
    }

    /// A figure that should be at the threshold or above.
    pub fn at_least(&self, value: f64, threshold: &Threshold) -> Check {
        self.judged.thresholds.at_least(value, threshold)
    }

    /// The time at a leaf as evidence: not known where the leaf is not.
    pub(crate) fn share(&self, metric: impl Into<String>, leaf: Leaf) -> Evidence {
        let row = Evidence::of(metric, self.leaf_pct(leaf), "% of capacity", leaf.source());
        match self.judged.ledger.get(leaf) {
            Some(_) => row,
            None => Evidence { value: None, ..row },
        }
    }

    /// Time at a leaf of the ledger; 0 where it is not known.
    pub fn leaf(&self, leaf: Leaf) -> Nanos {
        self.judged.ledger.ns(leaf)
    }

    /// The same, in per cent of capacity.
    pub fn leaf_pct(&self, leaf: Leaf) -> f64 {
        self.pct(self.leaf(leaf))
    }

    /// Time of which nobody knows what the CPUs did, because events are missing.
    pub fn unseen(&self) -> Nanos {
        self.leaf(Leaf::Unaccounted) + self.leaf(Leaf::Unseen)
    }

    /// Time in a sum of the ledger.
    pub fn total(&self, total: Total) -> Nanos {
        self.judged.ledger.total(total)
    }

    /// Time in application code; in calls that were not recorded too, where a choice was.
    pub fn application(&self) -> Nanos {
        self.total(Total::User) + self.total(Total::Application)
    }

    /// CPU time that the work used or lacked ([`holdup_attribution::Ledger::wanted_ns`]).
    pub fn wanted(&self) -> Nanos {
        self.judged.ledger.wanted_ns()
    }

    /// Part of the CPU time that the work used or lacked, in per cent.
    pub fn wanted_pct(&self, ns: Nanos) -> f64 {
        ns as f64 * 100.0 / self.wanted().max(1) as f64
    }

    /// Part of capacity in per cent.
    pub fn pct(&self, ns: Nanos) -> f64 {
        if self.capacity == 0 { 0.0 } else { ns as f64 * 100.0 / self.capacity as f64 }
    }

    /// Time in a sum of the ledger, in per cent of capacity.
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

    /// Waiting time for this cause: all, and by system call, largest first.
    pub fn waiting_for(&self, cause: Cause) -> (Nanos, Vec<(String, Nanos)>) {
        let mut by_call: Vec<(String, Nanos)> = Vec::new();
        for w in self.waits_for(cause) {
            let outside = match (self.caps.syscalls.are_all(), self.caps.page_faults) {
                (true, true) => PAGE_FAULTS,
                (true, false) => NO_CALL,
                (false, _) => NOT_RECORDED,
            };
            let name = w.call.clone().unwrap_or_else(|| outside.to_owned());
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
        for w in self.waits_for(cause) {
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
        format!("{} ({})", self.analysis.comm(t), t.tid.words())
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
            code: self.code.and_then(|code| code.thread(t.tid)),
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
