//! The rules: one file each, whose description is its manual page.
//!
//! A rule computes the CPU time lost. It holds where that loss matters (`weight`), or where a
//! replay gains enough without it (`replayed`), and where nothing in its own file rules it out.

mod application_serialization;
mod cpu_overload;
mod cpu_quota;
mod funneled_driver;
mod hardware_bandwidth;
mod io_bound;
mod kernel_lock_conflict;
mod mp_up_overhead;
mod thread_serialization;
mod workload_imbalance;

pub(crate) use hardware_bandwidth::{advice as hardware_advice, lead};
pub(crate) use mp_up_overhead::overhead;

use crate::chosen;
use crate::code;
use crate::culprits;
use crate::facts::Facts;
use crate::report::{Class, Culprit, Evidence, Finding, NOT_JUDGED, Part};
use crate::worth::{Basis, Worth};
use holdup_attribution::limits::{MATTERS, REGISTRY};
use holdup_attribution::{Check, Leaf, Threshold, Total};
use holdup_passes::{Slot, percent};
use holdup_trace::Nanos;
use serde::Serialize;

/// A rule.
pub struct Rule {
    /// Stable id.
    pub id: &'static str,
    /// The class that it judges.
    pub class: Class,
    /// The check of the facts; called only if the trace has what the rule needs (`rules::check`).
    pub check: fn(&Facts<'_>) -> Finding,
    /// The text of its file, whose description is the manual page ([`Rule::manual`]).
    pub file: &'static str,
    /// Names of the capabilities that it needs; `a or b` if one of them is enough.
    pub needs: &'static [&'static str],
    /// The thresholds that the rule uses.
    pub thresholds: &'static [Threshold],
    /// Recordings that show when the rule fires.
    pub fixtures: Fixtures,
}

/// Recordings under `fixtures/` that show when a rule fires.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Fixtures {
    /// A recording on which the rule fires, and whose verdict is the class of the rule.
    pub positive: &'static str,
    /// A recording that looks similar, but on which the rule does not fire.
    pub negative: &'static str,
}

impl Rule {
    /// The manual page: Markdown, its first line a sentence that says what the rule is about.
    pub fn manual(&self) -> String {
        let lines = self.file.lines().take_while(|l| l.starts_with("//!"));
        lines
            .map(|l| l.trim_start_matches("//!").strip_prefix(' ').unwrap_or("").to_owned() + "\n")
            .collect()
    }

    /// The first paragraph of the manual page, on one line.
    pub fn title(&self) -> String {
        self.manual().lines().take_while(|l| !l.is_empty()).collect::<Vec<_>>().join(" ")
    }
}

/// A manual page as JSON shows it.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Page {
    /// Stable id of the rule.
    pub id: &'static str,
    /// Class of bottleneck that the rule recognises.
    pub class: Class,
    /// The class in one sentence.
    pub title: String,
    /// The manual page, in Markdown.
    pub manual: String,
    /// Capabilities that the trace must have: without them the rule cannot fire.
    pub needs: Vec<&'static str>,
    /// The thresholds that the rule compares figures with.
    pub thresholds: Vec<Threshold>,
    /// Recordings that show when the rule fires.
    pub fixtures: Fixtures,
}

impl Page {
    /// The page of this rule.
    pub fn of(rule: &Rule) -> Page {
        Page {
            id: rule.id,
            class: rule.class,
            title: rule.title(),
            manual: rule.manual(),
            needs: rule.needs.to_vec(),
            thresholds: rule.thresholds.to_vec(),
            fixtures: rule.fixtures,
        }
    }
}

/// Thresholds that belong to no single rule: those of `all`, and those that no rule lists.
pub fn shared_thresholds() -> Vec<Threshold> {
    let listed = |t: &Threshold| ALL.iter().any(|r| r.thresholds.iter().any(|o| o.key == t.key));
    let all = thresholds().into_iter();
    all.filter(|t| t.key.starts_with("all.") || !listed(t)).collect()
}

/// Every threshold there is.
pub fn thresholds() -> Vec<Threshold> {
    REGISTRY.to_vec()
}

/// Every rule.
pub const ALL: &[Rule] = &[
    workload_imbalance::RULE,
    application_serialization::RULE,
    thread_serialization::RULE,
    kernel_lock_conflict::RULE,
    funneled_driver::RULE,
    mp_up_overhead::RULE,
    hardware_bandwidth::RULE,
    io_bound::RULE,
    cpu_quota::RULE,
    cpu_overload::RULE,
];

/// What helps if one thread has most of the work.
const DIVIDE: &str = "divide the work of this thread: use more worker threads or processes, \
                      shards, or a parallel mode of the program";

/// What helps if one of several alike has the longest part.
const LONGEST_FIRST: &str = "divide the longest part of the work, or start it first: the other \
                             parts are done before it";

/// What helps if the workers of a server sleep while requests wait.
const MORE_WORKERS: &str = "use more worker threads or processes, or let a worker handle other \
                            requests while one request waits: these workers hardly use a CPU";

/// What helps if threads wait for the last of them.
const EVENLY: &str = "divide the work evenly: the thread that arrives last has the most work";

/// A rule's story, in one sentence.
pub(crate) struct Explanation {
    /// Stable id.
    pub(crate) story: &'static str,
    pub(crate) summary: String,
    pub(crate) advice: Vec<String>,
}

impl Explanation {
    /// A story without advice.
    fn plain(story: &'static str, summary: impl Into<String>) -> Explanation {
        Explanation { story, summary: summary.into(), advice: Vec::new() }
    }
}

/// A finding of the rule's class. It costs the ledger's leaves that were lost to resources of that
/// class, and holds if that matters.
fn finding(facts: &Facts<'_>, rule: &Rule, explanation: Explanation) -> Finding {
    costing(facts, rule, lost(facts, rule.class), explanation)
}

/// The leaves lost to resources of a class. Time in which few threads had work counts only if it
/// was most of the time.
fn lost(facts: &Facts<'_>, class: Class) -> Vec<Part> {
    let of_class = |leaf: Leaf| leaf.lost_to().and_then(Class::of) == Some(class);
    let too_few = facts.judged.alone.is_too_few();
    // Threads that never sleep do not contend, whatever the calls cost.
    let counts = |leaf: Leaf| match leaf {
        Leaf::Serial => too_few,
        Leaf::ThreadSyncCalls => facts.leaf(Leaf::ThreadSync) > 0,
        Leaf::ServiceCalls => facts.leaf(Leaf::KernelServices) > 0,
        _ => true,
    };
    let leaves = facts.judged.ledger.leaves();
    let lost = leaves.filter(|&(leaf, ns)| ns > 0 && of_class(leaf) && counts(leaf));
    lost.map(|(leaf, ns)| Part { path: leaf.path(), ns, pct: percent(ns, facts.capacity) })
        .collect()
}

/// A finding that costs these parts of leaves.
fn costing(facts: &Facts<'_>, rule: &Rule, leaves: Vec<Part>, explanation: Explanation) -> Finding {
    let lost = leaves.iter().map(|p| p.ns).sum();
    let weight = weight(facts, &leaves);
    // A nanosecond that no CPU loses any more ends the work at most a nanosecond earlier.
    let left = facts.wall.saturating_sub(lost);
    let most = if left > 0 { facts.wall as f64 / left as f64 } else { f64::INFINITY };
    let worth = Worth::bound(weight.value).at_most(most);
    let small = if !weight.holds() {
        Some(format!(
            "this costs {:.1} % of wanted CPU time; the threshold is {} %",
            weight.value, weight.limit
        ))
    } else if worth.times < facts.matters() {
        Some(format!(
            "without this loss the work would be at most {:.2} times as fast",
            worth.times
        ))
    } else {
        None
    };
    Finding {
        class: rule.class,
        rule: rule.id,
        share: percent(lost, facts.capacity),
        lost_cpu_ns: lost,
        leaves,
        demand: worth.times,
        worth,
        wanted_pct: weight.value,
        lacked_ns: 0,
        story: explanation.story,
        summary: explanation.summary,
        culprits: Vec::new(),
        evidence: Vec::new(),
        is_too_little: small.is_some(),
        ruled_out: small,
        advice: explanation.advice,
    }
}

/// A loss, compared with the limit for a verdict.
///
/// The limit is not relative to capacity: on a machine with more CPUs than the work can use, the
/// same problem would be a smaller part of it.
fn weight(facts: &Facts<'_>, leaves: &[Part]) -> Check {
    let lost: Nanos = leaves.iter().map(|p| p.ns).sum();
    // Time without work for more threads counts if the finding says that there should be work.
    let spare = [Leaf::Serial.path()];
    let claimed: Nanos = leaves.iter().filter(|p| spare.contains(&p.path)).map(|p| p.ns).sum();
    let idle = idle_ns(leaves);
    let wanted = facts.wanted() + claimed;
    // While a CPU was taken away no thread used it, so that time is subtracted. Sleepers went on
    // waiting: their idle time is a part of all.
    let burning = wanted.saturating_sub(facts.leaf(Leaf::Stolen));
    let of = |ns: Nanos, whole: Nanos| ns as f64 * 100.0 / whole.max(1) as f64;
    facts.at_least(of(idle, wanted) + of(lost - idle, burning), &MATTERS)
}

/// The idle CPU time.
fn idle_ns(leaves: &[Part]) -> Nanos {
    let idle = |p: &&Part| p.path.starts_with(Total::Idle.path());
    leaves.iter().filter(idle).map(|p| p.ns).sum()
}

/// The CPU time that threads spin in their own code, if the finding costs it. A replay knows it.
fn spun_ns(facts: &Facts<'_>, f: &Finding) -> Nanos {
    let spinning = facts.judged.user_spinning.iter();
    let costs = |leaf: Leaf| f.leaves.iter().any(|p| p.path == leaf.path());
    spinning.filter(|s| costs(s.leaf())).map(|s| s.spun_ns).sum()
}

/// The part of the busy CPU time that threads spin in their own code.
fn spun_part(facts: &Facts<'_>) -> f64 {
    let spun: Nanos = facts.judged.user_spinning.iter().map(|s| s.spun_ns).sum();
    (spun as f64 / facts.total(Total::Busy).max(1) as f64).min(1.0)
}

/// The cost of a finding, compared with the limit.
fn cost(facts: &Facts<'_>, f: &Finding) -> Evidence {
    let weight = weight(facts, &f.leaves);
    Evidence::checked("total cost", &weight, "% of wanted CPU time", "ledger")
}

/// Check the facts, if the trace has what the rule needs.
pub(crate) fn check(rule: &Rule, facts: &Facts<'_>) -> Finding {
    let caps = facts.caps.list();
    let lacking: Vec<String> = rule
        .needs
        .iter()
        .filter_map(|need| {
            let of: Vec<_> = caps.iter().filter(|c| need.split(" or ").any(|n| n == c.0)).collect();
            let has = of.iter().any(|c| c.1);
            (!has).then(|| of.iter().map(|c| format!("{} ({})", c.0, c.2)).collect::<Vec<_>>())
        })
        .map(|alternatives| alternatives.join(" or "))
        .collect();
    if lacking.is_empty() {
        let mut finding = (rule.check)(facts);
        if facts.judged.chosen.is_some() {
            let mut finding = chosen::judge(facts, finding);
            code::advise(facts, &mut finding);
            return finding;
        }
        replayed(facts, &mut finding);
        code::advise(facts, &mut finding);
        return finding;
    }
    let why = format!("not judged: the trace lacks {}", lacking.join(" and "));
    not_judged(facts, rule, why)
}

/// Apply the replays to a finding. If removing it gains what matters, that gain is its worth,
/// however small its demand. If not, the replay may lack what the demand knows, and the demand
/// stays; but a machine with more CPUs is replayed exactly.
fn replayed(facts: &Facts<'_>, f: &mut Finding) {
    let Some(Ok(replays)) = &facts.replays else { return };
    let is_judged = f.ruled_out.is_none() || f.is_too_little;
    let Some(replay) = replays.of_class(f.class) else {
        // Other threads queue: unrelated ones or kernel threads.
        if is_judged && f.class == Class::CpuOverload {
            too_little(f, "no thread that does the work waits for a CPU".to_owned());
        }
        return;
    };
    let worth = match f.class {
        // Threads that spin would spin on more CPUs too, and the replay takes that for work.
        Class::CpuOverload => replay.worth.clone().for_part(1.0 - spun_part(facts)),
        _ => replay.worth.clone(),
    };
    let gains = worth.firm() >= facts.matters();
    if !is_judged {
        return;
    }
    if !gains && f.class != Class::CpuOverload {
        // If only one of replay and demand says that it matters, the low end lies between them. A
        // replay does not know the CPU time that calls cost because of other threads.
        if f.ruled_out.is_none() && (idle_ns(&f.leaves) + spun_ns(facts, f)) * 2 >= f.lost_cpu_ns {
            f.worth.low = match replay.worth.basis {
                // No division of all work gains more.
                Basis::Bound if replay.tids.is_empty() => replay.worth.low,
                _ => (f.demand * replay.worth.low).sqrt(),
            };
            if f.worth.low < facts.matters() {
                f.worth = replay.worth.clone();
                too_little(
                    f,
                    format!(
                        "without this loss the work would be only {:.2} times as fast",
                        f.worth.low
                    ),
                );
            }
        } else if f.is_too_little && worth.times > f.worth.times {
            // Too little too, but more than the cost shows.
            f.worth = worth;
        }
        return;
    }
    // The judged part may have other threads than the whole trace.
    let threads: Vec<Slot> = replay.tids.iter().filter_map(|&tid| facts.longest(tid)).collect();
    f.worth = worth;
    if f.story == "server" && f.worth.basis == Basis::Bound {
        f.advice = vec![
            "divide each piece of this thread's work: a second thread of its kind gains nothing, \
             because each piece needs the previous piece"
                .to_owned(),
        ];
    }
    // Threads queue, but more CPUs would not make the work faster: it is no overload.
    if !gains {
        let times = f.worth.times;
        let why = format!("in a replay with more CPUs the work is only {times:.2} times as fast");
        return too_little(f, why);
    }
    let unnamed = f.culprits.iter().all(|c| c.kind == "syscall");
    if f.ruled_out.take().is_some() && (!threads.is_empty() || unnamed) {
        // The figures do not show what the replay shows.
        f.story = "replayed";
        // A thread is busy also in its sleeps with a request in hand.
        let all_sleep = threads.iter().all(|&slot| {
            let t = facts.thread(slot);
            !t.is_kthread() && t.active_ns() * 2 < facts.wall
        });
        f.summary = match threads[..] {
            [slot] => {
                let runs = percent(facts.thread(slot).running_ns, facts.wall);
                let name = facts.name(slot);
                let sleeps = match all_sleep {
                    true => ", because it sleeps before its work is done",
                    false => "",
                };
                format!(
                    "{name} runs {runs:.0} % of the time and delays the other threads{sleeps}: if \
                     other threads did a part of its work, all work would be done sooner"
                )
            }
            [slot, ..] if all_sleep => format!(
                "{} threads like {} sleep before their work is done while more work waits for \
                 them: with more such threads, all work would be done sooner",
                threads.len(),
                facts.name(slot)
            ),
            _ => replay.summary(),
        };
        if f.advice.is_empty() && !threads.is_empty() {
            let advice = match replay.is_dealt {
                true => EVENLY,
                false if replay.is_of_team => LONGEST_FIRST,
                false if all_sleep => MORE_WORKERS,
                false => DIVIDE,
            };
            f.advice.push(advice.to_owned());
        }
        let threads = threads.iter().map(|&slot| culprits::runs(facts, slot));
        let mut named: Vec<Culprit> = threads.collect();
        named.extend(culprits::freed(facts, &replay.objects, |_| 0));
        named.truncate(3);
        if !named.is_empty() {
            f.culprits = named;
        }
    }
}

fn too_little(f: &mut Finding, why: String) {
    f.is_too_little = true;
    f.ruled_out.get_or_insert(why);
}

/// A finding about something that the trace cannot show.
fn not_judged(facts: &Facts<'_>, rule: &Rule, why: String) -> Finding {
    let mut f = costing(facts, rule, Vec::new(), Explanation::plain(NOT_JUDGED, why.clone()));
    f.ruled_out = Some(why);
    f
}

/// CPU time as a mean number of CPUs.
fn in_cpus(facts: &Facts<'_>, ns: Nanos) -> f64 {
    ns as f64 / facts.wall.max(1) as f64
}
