//! What system calls cost beyond their own work because others are in the kernel too.
//!
//! Spinning for a lock looks like any other kernel time and often leaves no event. What shows it:
//!
//! * **stretch**: the mean call costs many times the typical one. So it does where a hypervisor
//!   takes CPUs away, or interrupts are not recorded; then application code is stretched as well,
//!   and only what exceeds that is the calls' own. Nor is it enough: calls differ in size. One of
//!   these must say that others are why:
//! * **exclusion**: calls of different threads never end as close together as they would by chance,
//!   so one lock is held for much of each;
//! * **one at a time**: one thread ends call after call while the others get nowhere, although they
//!   are on CPUs too;
//! * **stretched far**: much further than application code, by many stalls;
//! * **company at the start**: calls begun while others were in the kernel cost more than those
//!   begun alone. If they cost the same, it is not the others;
//! * **company meanwhile**: calls with more company during their time cost more. Always there, but
//!   a long call meets average company whatever made it long; so it counts only if most of the
//!   calls do not sleep, and do not end as close together as chance would have it;
//! * **siblings**: calls that change an address space ([`holdup_passes::SpaceCosts`]) cost more
//!   while another thread of the process is on a CPU than while none is, strangers or not. A slower
//!   machine would make no difference between siblings and strangers.

use crate::section::{Section, section};
use crate::threshold::Thresholds;
use crate::thresholds;
use crate::wait::Wait;
use holdup_passes::{Analysis, Costing, Costs, Ends, Exclusion, Level, SpaceCosts, SyscallRow};
use holdup_syscalls::WaitKind;
use holdup_trace::Nanos;

thresholds! {
    MIN_CALLS = "calls.min_calls", 20.0, "calls",
        meaning: "a mean or quantile over fewer calls says nothing",
        source: "of 20 values the median is off by a quarter of their spread";
    MIN_CALLS_HARMLESS = "calls.min_calls_harmless", 200.0, "calls",
        meaning: "fewer calls begun alone, or in company, do not prove that company costs nothing",
        source: "a mean over 200 calls is off by a fourteenth of their spread";
    SAME = "calls.same_pct", 110.0, "% of a call alone",
        meaning: "calls in company that cost no more than this are not contended",
        source: "a choice: means over some hundred calls differ by about a tenth by chance";
    DEARER = "calls.dearer_pct", 200.0, "% of a call alone",
        meaning: "calls in company that cost this much are contended, whatever the rest says, if \
                  there were calls.min_calls_dearer of each",
        source: "CPUs that a hypervisor takes away make means differ by chance up to this";
    MIN_CALLS_DEARER = "calls.min_calls_dearer", 500.0, "calls",
        meaning: "of each kind, alone and in company, for calls.dearer_pct to decide",
        source: "a choice: means of fewer calls still double where CPUs are taken away";
    MUCH_DEARER = "calls.much_dearer_pct", 1000.0, "% of a call alone",
        meaning: "the same for fewer calls, calls.min_calls_much_dearer of each",
        source: "a choice: beyond what stolen CPUs do to a mean of 100 calls";
    MIN_CALLS_MUCH_DEARER = "calls.min_calls_much_dearer", 100.0, "calls",
        meaning: "of each kind, alone and in company, for calls.much_dearer_pct to decide",
        source: "a choice: a mean over 100 calls is off by a tenth of their spread";
    MIN_EXPECTED_ENDS = "calls.min_expected_ends", 8.0, "ends",
        meaning: "ends of calls so close that one lock rules them out: as many must be expected by \
                  chance before their absence means anything",
        source: "a Poisson variable of mean 8 is below 3 once in 70 times";
    MISSING_ENDS = "calls.missing_ends", 3.0, "times",
        meaning: "so many times fewer such ends than expected: calls exclude each other",
        source: "a Poisson variable of mean 8 is below 3 once in 70 times";
    CHANCE_ENDS = "calls.chance_ends", 0.6, "of the expected ends",
        meaning: "at least this part of them seen: calls do not exclude each other",
        source: "a choice: well above the third that calls.missing_ends asks for";
    MIN_CHANCE_ENDS = "calls.min_chance_ends", 4.0, "ends",
        meaning: "and at least so many seen",
        source: "a choice: fewer are single accidents";
    ONE_AT_A_TIME = "calls.one_at_a_time", 0.5, "of the changes that independent threads would \
        have",
        meaning: "changes of the thread that ends a call: at this part or less of them one thread \
                  gets on at a time",
        source: "two independent threads change places half of the time";
    STRETCHED_FAR = "calls.stretched_far", 2.0, "times",
        meaning: "calls whose mean exceeds the typical one by so many times what stretches \
                  application code are stretched by something in the kernel",
        source: "a choice: together with calls.min_stalls it does not come by chance";
    STALL = "calls.stall", 4.0, "times the typical call",
        meaning: "longer calls count as stalled",
        source: "a choice: far beyond the quarter of an octave that like calls are sorted by";
    MIN_STALLS = "calls.min_stalls", 50.0, "stalls",
        meaning: "so many independent stalls make calls.stretched_far decide",
        source: "a choice: fewer come by chance where CPUs are taken away";
    UNDISTURBED = "calls.undisturbed", 0.9, "of the stretches of application code",
        meaning: "the shortest part of them, which nothing disturbs",
        source: "what takes CPUs away hits fewer than a tenth";
    MIN_CALLS_AT_LEVEL = "calls.min_calls_at_level", 5.0, "calls",
        meaning: "calls that met so much company, for their cost to be compared with less of it",
        source: "a choice: each level has few calls, and they are summed over all levels";
    SLEEPS = "calls.sleeps", 3.0, "times",
        meaning: "time lost in a call is its threads' own taking turns if it is no more than so \
            many times the time that they sleep in it for each other",
        source: "the lists behind semaphores, file locks and futexes are guarded by spinlocks, \
            which contend without any thread asleep; taking turns is mostly sleeping";
    IN_USE = "calls.in_use_pct", 70.0, "% of the wall time",
        meaning: "a lock that is held for so long is never free: calls wait for it all the time",
        source: "with two threads that want it again at once each waits for the other";
    SIBLING = "calls.sibling_pct", 200.0, "% of a call without siblings",
        meaning: "calls that change an address space and typically cost this much while a sibling \
                  is on a CPU wait for its lock, or for the sibling's CPU",
        source: "two threads of one core get half of it each at worst; mprotect beside one sibling \
                 takes 600 %, madvise 350 %, either beside another process 100 %";
    KERNEL_CONTENDS = "calls.kernel_contends_pct", 1.0, "% of capacity",
        meaning: "time lost in calls of one kind to locks of the kernel, from which on their CPU \
            time is not that of taking turns",
        source: "a choice: less is not worth naming (all.named_pct)";
}

/// What others in the kernel cost one system call.
#[derive(Clone, Debug, PartialEq)]
pub struct Contended {
    /// The call.
    pub name: String,
    /// Its number.
    pub nr: u32,
    /// What threads wait for in it.
    pub kind: WaitKind,
    /// CPU time of one call on average.
    pub mean_ns: Nanos,
    /// CPU time of one call's own work.
    pub own_ns: Nanos,
    /// CPU time of all calls beyond their own work, and beyond what stretches everything.
    pub lost_ns: Nanos,
    /// Calls of different threads keep apart: how many ends so close were expected, how many seen.
    pub exclusion: Option<Exclusion>,
    /// Of calls begun in company, CPU time against that of calls begun alone; `None` if too few.
    pub company_pct: Option<u64>,
    /// How often another thread than the last ends a call, as part of what independent threads
    /// would show; `None` if most calls sleep.
    pub turns: Option<f64>,
    /// Of a call that changes an address space: the typical one with a sibling on a CPU against one
    /// without, in per cent; `None` for other calls, and if too few.
    pub siblings_pct: Option<u64>,
    /// That is so much that siblings are why ([`Contended::own_ns`] is that of calls without them).
    pub is_dearer_beside_siblings: bool,
    /// CPU time of such calls made with siblings on CPUs, of which nobody can say whether they wait
    /// for them: none was made without.
    pub unjudged_ns: Nanos,
    /// They pass one at a time.
    pub section: Option<Section>,
    /// Threads sleep for each other in this call rather than for the kernel: then what they burn in
    /// it beyond its own work belongs to that too.
    pub for_others: bool,
}

/// How much longer application code takes on average than undisturbed, 1 or more.
pub(crate) fn stretch(analysis: &Analysis, calls: &[SyscallRow], thresholds: &Thresholds) -> f64 {
    let (mut total, mut undisturbed) = (0.0, 0.0);
    let part = thresholds.get(&UNDISTURBED);
    for all in calls.iter().filter_map(|c| Some(&analysis.costs(c.nr)?.stretches)) {
        if thresholds.enough(all.count, &MIN_CALLS) {
            total += all.total_ns as f64;
            undisturbed += all.count as f64 * all.mean_below_ns(part);
        }
    }
    if undisturbed == 0.0 { 1.0 } else { (total / undisturbed).max(1.0) }
}

/// Every call that costs more because of others, most lost time first. On one CPU nobody spins.
pub(crate) fn contended(
    analysis: &Analysis,
    calls: &[SyscallRow],
    waits: &[Wait],
    stretch: f64,
    thresholds: &Thresholds,
) -> Vec<Contended> {
    if analysis.cpus < 2 {
        return Vec::new();
    }
    let squares = analysis.squares_of_calls();
    let numbers: Vec<u32> = calls.iter().map(|c| c.nr).collect();
    let spaces: Vec<u32> =
        numbers.iter().copied().filter(|&nr| analysis.space_costs(nr).is_some()).collect();
    let mut of = Machine { analysis, waits, stretch, thresholds, numbers: &numbers, space: None };
    of.space = of.section(&spaces, analysis.space_ends());
    let mut out: Vec<Contended> = calls
        .iter()
        .filter_map(|call| of.judge(call, squares.get(&call.nr).copied().unwrap_or(0)))
        .collect();
    out.sort_by(|a, b| b.lost_ns.cmp(&a.lost_ns).then(a.nr.cmp(&b.nr)));
    out
}

/// What every call is judged by.
struct Machine<'a> {
    analysis: &'a Analysis,
    waits: &'a [Wait],
    stretch: f64,
    thresholds: &'a Thresholds,
    /// Of every call that was made.
    numbers: &'a [u32],
    /// The section of calls that change an address space.
    space: Option<Section>,
}

/// What siblings cost a call that changes an address space.
struct Siblings {
    /// The typical call with one on a CPU against the typical one without, in per cent.
    pct: u64,
    own_ns: Nanos,
    lost_ns: Nanos,
}

impl Machine<'_> {
    fn judge(&self, call: &SyscallRow, squares: u128) -> Option<Contended> {
        let t = self.thresholds;
        let costs = self.analysis.costs(call.nr)?;
        let all = costs.calls();
        if !t.enough(all.count, &MIN_CALLS) {
            return None;
        }
        let kind = holdup_syscalls::wait_kind(&call.name);
        let ends = costs.exclusion();
        // Whoever takes turns in a call keeps apart from others by its own will.
        let exclusion = Some(ends).filter(|e| {
            !kind.takes_turns()
                && e.expected >= t.get(&MIN_EXPECTED_ENDS)
                && e.observed * t.get(&MISSING_ENDS) <= e.expected
        });
        let free = ends.observed >= t.get(&MIN_CHANCE_ENDS)
            && ends.observed >= ends.expected * t.get(&CHANCE_ENDS);
        let turns = self.turns(costs, call.count, squares);
        let (alone, company) = (&costs.alone, &costs.company);
        let fewer = alone.count.min(company.count);
        let company_pct =
            t.enough(fewer, &MIN_CALLS).then(|| company.mean_ns() * 100 / alone.mean_ns().max(1));
        let costs_at_least = |limit| company_pct.is_some_and(|pct| pct as f64 >= t.get(limit));
        let harmless = t.enough(fewer, &MIN_CALLS_HARMLESS)
            && company_pct.is_some_and(|pct| pct as f64 <= t.get(&SAME));
        let dearer = t.enough(fewer, &MIN_CALLS_DEARER) && costs_at_least(&DEARER)
            || t.enough(fewer, &MIN_CALLS_MUCH_DEARER) && costs_at_least(&MUCH_DEARER);
        // Medians are not moved by what takes CPUs away: fewer calls will do.
        let typically_dearer = t.enough(fewer, &MIN_CALLS)
            && company.median_ns() as f64 * 100.0 >= alone.median_ns() as f64 * t.get(&DEARER);
        let beyond = |own: Nanos| {
            (all.total_ns as f64 - all.count as f64 * own as f64 * self.stretch).max(0.0) as Nanos
        };
        let (typical, mean) = (all.median_ns(), all.total_ns as f64 / all.count as f64);
        let stretched_far = mean >= typical as f64 * self.stretch * t.get(&STRETCHED_FAR)
            && self.stalls(&all) >= t.get(&MIN_STALLS);
        let begun_in_company = || self.begun_in_company(costs);
        let space = self.analysis.space_costs(call.nr);
        let section = match (kind.takes_turns(), space) {
            (true, _) => None,
            (false, Some(_)) => self.space,
            (false, None) => self.section(&[call.nr], costs.ends()),
        };
        let siblings = space.and_then(|s| self.siblings(&all, s));
        let dearer_beside = siblings.as_ref().filter(|s| s.pct as f64 >= t.get(&SIBLING));
        let (own_ns, lost_ns) = if let Some(s) = dearer_beside {
            (s.own_ns, s.lost_ns)
        } else if exclusion.is_some() {
            // Part of the calls had to wait, so the typical one may have; the cheapest quarter did
            // not, unless the lock was never free: then a call's own part is the time it held it.
            let full = section.filter(|s| s.in_use_pct >= t.get(&IN_USE)).map(|s| s.ns);
            let own = all.quantile_ns(0.25).min(full.unwrap_or(Nanos::MAX));
            (own, beyond(own))
        } else if typically_dearer {
            let own = alone.median_ns();
            (own, beyond(own).min(begun_in_company()).max(beyond(typical)))
        } else if dearer {
            (typical, beyond(typical).min(begun_in_company()))
        } else if harmless {
            (typical, 0)
        } else if turns.is_some_and(|p| p <= t.get(&ONE_AT_A_TIME) || stretched_far) {
            (typical, beyond(typical))
        } else if free || turns.is_none() {
            (typical, 0)
        } else {
            (typical, beyond(typical).min(begun_in_company().max(self.met_company(call.nr))))
        };
        let waited = self.slept_for_others(call.nr);
        Some(Contended {
            name: call.name.clone(),
            nr: call.nr,
            kind,
            mean_ns: all.mean_ns(),
            own_ns,
            lost_ns,
            exclusion,
            company_pct,
            turns,
            is_dearer_beside_siblings: dearer_beside.is_some(),
            siblings_pct: siblings.as_ref().map(|s| s.pct),
            unjudged_ns: space
                .filter(|_| siblings.is_none() && lost_ns == 0)
                .map_or(0, |s| s.beside.total_ns),
            section,
            for_others: waited as f64 * t.get(&SLEEPS) >= lost_ns as f64,
        })
    }

    fn section(&self, of: &[u32], ends: &Ends) -> Option<Section> {
        section(self.analysis, of, self.numbers, ends, self.stretch, self.thresholds)
    }

    /// What calls cost with siblings on CPUs against those without; `None` if too few of either.
    fn siblings(&self, all: &Costing, costs: &SpaceCosts) -> Option<Siblings> {
        let (beside, apart) = (&costs.beside, &costs.apart);
        let own_ns = apart.median_ns();
        // A sibling that came or left meanwhile disturbed as well: it may have slept for the lock.
        let (count, total_ns) =
            (all.count.saturating_sub(apart.count), all.total_ns.saturating_sub(apart.total_ns));
        let undisturbed = count as f64 * own_ns as f64 * self.stretch;
        self.thresholds.enough(beside.count.min(apart.count), &MIN_CALLS).then(|| Siblings {
            pct: beside.median_ns() * 100 / own_ns.max(1),
            own_ns,
            lost_ns: (total_ns as f64 - undisturbed).max(0.0) as Nanos,
        })
    }

    /// Time that threads sleep in a call for each other.
    fn slept_for_others(&self, nr: u32) -> Nanos {
        let peers = |w: &&Wait| w.row.nr == Some(nr) && w.row.cause.is_turns();
        self.waits.iter().filter(peers).map(|w| w.row.sum.wait_ns).sum()
    }

    /// How many independent stalls a sum of calls far above the typical one amounts to: (sum x)^2 /
    /// sum x^2.
    fn stalls(&self, all: &Costing) -> f64 {
        let limit = all.median_ns() as f64 * self.thresholds.get(&STALL);
        let (sum, squares) = all.beyond(limit as Nanos);
        if squares > 0.0 { sum * sum / squares } else { 0.0 }
    }

    /// How often another thread ends the next call, against drawing it by lot; `None` if most calls
    /// sleep.
    fn turns(&self, costs: &Costs, calls: u64, squares: u128) -> Option<f64> {
        let (other, same) = costs.ends().turns();
        let by_lot = 1.0 - squares as f64 / (calls as f64 * calls as f64);
        let enough = self.thresholds.enough(other + same, &MIN_CALLS)
            && (other + same) * 2 >= calls
            && by_lot > 0.0;
        enough.then(|| other as f64 / (other + same) as f64 / by_lot)
    }

    /// CPU time of calls begun in company beyond what they would have cost alone.
    fn begun_in_company(&self, costs: &Costs) -> Nanos {
        if !self.thresholds.enough(costs.alone.count, &MIN_CALLS) {
            return 0;
        }
        costs.company.total_ns.saturating_sub(costs.company.count * costs.alone.mean_ns())
    }

    /// CPU time of calls beyond what they cost with at most half of the company there ever was.
    fn met_company(&self, nr: u32) -> Nanos {
        let enough =
            |l: &&Level| l.count > 0 && self.thresholds.enough(l.count, &MIN_CALLS_AT_LEVEL);
        let Some(call) = self.analysis.crowding(nr) else { return 0 };
        let Some(highest) = call.levels.iter().rposition(|l| enough(&l)) else { return 0 };
        let low = &call.levels[..=(highest.saturating_sub(1)) / 2];
        let Some(alone) = low.iter().filter(enough).map(|l| l.cpu_ns / l.count).min() else {
            return 0;
        };
        call.levels[..=highest].iter().map(|l| l.cpu_ns.saturating_sub(l.count * alone)).sum()
    }
}

/// Whether this much of capacity is worth naming.
pub(crate) fn is_named(ns: Nanos, analysis: &Analysis, thresholds: &Thresholds) -> bool {
    let capacity = analysis.capacity_ns();
    let pct = if capacity == 0 { 0.0 } else { ns as f64 * 100.0 / capacity as f64 };
    pct >= thresholds.get(&KERNEL_CONTENDS)
}
