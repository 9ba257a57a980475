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
//!   calls do not sleep, and do not end as close together as chance would have it.

use holdup_passes::{Analysis, Costing, Costs, Exclusion, SyscallRow};
use holdup_syscalls::WaitKind;
use holdup_trace::Nanos;

/// A mean or quantile over fewer calls says nothing.
const FEW: u64 = 20;
/// Fewer calls begun alone, or in company, do not prove that company costs nothing.
const MANY: u64 = 200;
/// Calls in company that cost no more than this much of those alone, in per cent: no contention.
const SAME_PCT: u64 = 110;
/// Calls in company that cost this much of those alone, in per cent, if there were this many of
/// each: contention, whatever the rest says. Stolen CPUs make means differ by chance up to this.
const DEARER_PCT: u64 = 200;
const VERY_MANY: u64 = 500;
/// The same for fewer calls: this many.
const MUCH_DEARER_PCT: u64 = 1000;
const RATHER_MANY: u64 = 100;
/// Ends so close that this many were expected and at most one in [`MISSING`] of them was seen:
/// calls exclude each other. A Poisson variable of mean 8 is below 3 once in 70 times.
const EXPECTED: f64 = 8.0;
const MISSING: f64 = 3.0;
/// So many such ends seen, and at least this part of those expected: calls do not exclude each
/// other.
const FREE: f64 = 0.6;
const FREE_SEEN: f64 = 4.0;
/// Changes of the thread that ends a call, as part of what independent threads would have: below
/// this one thread gets on at a time. Two independent ones change places half of the time.
const ONE_AT_A_TIME: f64 = 0.5;
/// Calls stretched so many times further than application code, by so many stalls: not by chance.
const FAR: f64 = 2.0;
const STALLS: f64 = 50.0;
/// Part of the application's stretches that nothing disturbs: what takes CPUs away hits fewer than
/// a tenth.
const UNDISTURBED: f64 = 0.9;

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
}

/// How much longer application code takes on average than undisturbed, 1 or more.
pub(crate) fn stretch(analysis: &Analysis, calls: &[SyscallRow]) -> f64 {
    let (mut total, mut undisturbed) = (0.0, 0.0);
    for all in calls.iter().filter_map(|c| Some(&analysis.costs(c.nr)?.stretches)) {
        if all.count >= FEW {
            total += all.total_ns as f64;
            undisturbed += all.count as f64 * all.mean_below_ns(UNDISTURBED);
        }
    }
    if undisturbed == 0.0 { 1.0 } else { (total / undisturbed).max(1.0) }
}

/// Every call that costs more because of others, most lost time first. On one CPU nobody spins.
pub(crate) fn contended(analysis: &Analysis, calls: &[SyscallRow], stretch: f64) -> Vec<Contended> {
    if analysis.cpus < 2 {
        return Vec::new();
    }
    let squares = analysis.squares_of_calls();
    let mut out: Vec<Contended> = calls
        .iter()
        .filter_map(|call| {
            judge(analysis, call, stretch, squares.get(&call.nr).copied().unwrap_or(0))
        })
        .collect();
    out.sort_by(|a, b| b.lost_ns.cmp(&a.lost_ns).then(a.nr.cmp(&b.nr)));
    out
}

fn judge(analysis: &Analysis, call: &SyscallRow, stretch: f64, squares: u128) -> Option<Contended> {
    let costs = analysis.costs(call.nr)?;
    let all = costs.calls();
    if all.count < FEW {
        return None;
    }
    let kind = holdup_syscalls::wait_kind(&call.name);
    let ends = costs.exclusion();
    // Whoever takes turns in a call keeps apart from others by its own will.
    let exclusion = Some(ends).filter(|e| {
        !kind.takes_turns() && e.expected >= EXPECTED && e.observed * MISSING <= e.expected
    });
    let free = ends.observed >= FREE_SEEN && ends.observed >= ends.expected * FREE;
    let turns = turns(costs, call.count, squares);
    let (alone, company) = (&costs.alone, &costs.company);
    let fewer = alone.count.min(company.count);
    let company_pct = (fewer >= FEW).then(|| company.mean_ns() * 100 / alone.mean_ns().max(1));
    let harmless = fewer >= MANY && company_pct.is_some_and(|pct| pct <= SAME_PCT);
    let dearer = company_pct.is_some_and(|pct| {
        fewer >= VERY_MANY && pct >= DEARER_PCT || fewer >= RATHER_MANY && pct >= MUCH_DEARER_PCT
    });
    // Medians are not moved by what takes CPUs away: fewer calls will do.
    let typically_dearer =
        fewer >= FEW && company.median_ns() * 100 >= alone.median_ns() * DEARER_PCT;
    let beyond = |own: Nanos| {
        (all.total_ns as f64 - all.count as f64 * own as f64 * stretch).max(0.0) as Nanos
    };
    let (typical, mean) = (all.median_ns(), all.total_ns as f64 / all.count as f64);
    let stretched_far = mean >= typical as f64 * stretch * FAR && stalls(&all) >= STALLS;
    let (own_ns, lost_ns) = if exclusion.is_some() {
        // Part of the calls had to wait, so the typical one may have; the cheapest quarter did not.
        let own = all.quantile_ns(0.25);
        (own, beyond(own))
    } else if typically_dearer {
        let own = alone.median_ns();
        (own, beyond(own).min(begun_in_company(costs)).max(beyond(typical)))
    } else if dearer {
        (typical, beyond(typical).min(begun_in_company(costs)))
    } else if harmless {
        (typical, 0)
    } else if turns.is_some_and(|t| t <= ONE_AT_A_TIME || stretched_far) {
        (typical, beyond(typical))
    } else if free || turns.is_none() {
        (typical, 0)
    } else {
        (typical, beyond(typical).min(begun_in_company(costs).max(met_company(analysis, call.nr))))
    };
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
    })
}

/// How many independent stalls a sum of calls far above the typical one amounts to: (sum x)^2 / sum
/// x^2.
fn stalls(all: &Costing) -> f64 {
    let (sum, squares) = all.beyond(all.median_ns() * 4);
    if squares > 0.0 { sum * sum / squares } else { 0.0 }
}

/// How often another thread ends the next call, against drawing it by lot.
fn turns(costs: &Costs, calls: u64, squares: u128) -> Option<f64> {
    let (other, same) = costs.turns();
    let by_lot = 1.0 - squares as f64 / (calls as f64 * calls as f64);
    let enough = other + same >= FEW && (other + same) * 2 >= calls && by_lot > 0.0;
    enough.then(|| other as f64 / (other + same) as f64 / by_lot)
}

/// CPU time of calls begun in company beyond what they would have cost alone.
fn begun_in_company(costs: &Costs) -> Nanos {
    if costs.alone.count < FEW {
        return 0;
    }
    costs.company.total_ns.saturating_sub(costs.company.count * costs.alone.mean_ns())
}

/// CPU time of calls beyond what they cost with at most half of the company there ever was.
fn met_company(analysis: &Analysis, nr: u32) -> Nanos {
    const FEW: u64 = 5;
    let Some(call) = analysis.crowding(nr) else { return 0 };
    let Some(highest) = call.levels.iter().rposition(|l| l.count >= FEW) else { return 0 };
    let low = &call.levels[..=(highest.saturating_sub(1)) / 2];
    let Some(alone) = low.iter().filter(|l| l.count >= FEW).map(|l| l.cpu_ns / l.count).min()
    else {
        return 0;
    };
    call.levels[..=highest].iter().map(|l| l.cpu_ns.saturating_sub(l.count * alone)).sum()
}
