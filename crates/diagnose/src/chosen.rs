//! The verdict about chosen threads: what holds *them* up, all others being background.
//!
//! The ledger stays the machine's. What a rule finds in it is about everybody, so here only replays
//! decide: the trace is replayed without each resource being scarce, and what would have the chosen
//! threads done sooner holds them up. The rules add whom it is about and what to do.

use crate::culprits;
use crate::facts::Facts;
use crate::report::{Class, Finding, Neighbour};
use crate::rules::NOT_JUDGED;
use crate::worth::Worth;
use holdup_attribution::limits::NAMED;
use holdup_passes::{Slot, percent};
use holdup_trace::Nanos;
use serde::Serialize;
use std::collections::BTreeMap;

/// Waits that are shown.
const WAITS: usize = 5;
/// Programs that are named.
const PROGRAMS: usize = 3;
/// Others on the CPUs that are shown.
const OTHERS: usize = 5;

/// What the chosen threads did with their time, and who else was on the CPUs.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Chosen {
    /// Who they are: names, with the process of each.
    pub names: Vec<String>,
    /// How many threads.
    pub threads: u64,
    /// How long they lived, in sum.
    pub life_ns: u64,
    /// On a CPU.
    pub running_ns: u64,
    /// Ready, and without a CPU.
    pub ready_ns: u64,
    /// Asleep.
    pub asleep_ns: u64,
    /// What they slept for, longest first.
    pub waits: Vec<ChosenWait>,
    /// Who else was on the CPUs, those that took most first; threads of the kernel are one.
    pub others: Vec<Neighbour>,
}

/// What chosen threads slept for.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ChosenWait {
    /// What it is, as `holdup waits` calls it.
    pub object: String,
    /// Time they slept for it, in sum.
    pub ns: u64,
    /// Why that is harmful or idle: the rule of its row in `holdup waits`.
    pub rule: &'static str,
    /// Those who had it or ended the waits, most first.
    pub by: Vec<String>,
}

impl Chosen {
    /// Of a trace in which somebody chose threads.
    pub(crate) fn of(facts: &Facts<'_>) -> Option<Chosen> {
        facts.judged.chosen.as_ref()?;
        let a = facts.analysis;
        let mut chosen = Chosen::default();
        let mut names: BTreeMap<(String, Option<u32>), (u64, Nanos)> = BTreeMap::new();
        for (_, t) in a.chosen() {
            let of = names.entry((a.comm(t), a.pid(t))).or_default();
            *of = (of.0 + 1, of.1 + t.running_ns);
            chosen.threads += 1;
            chosen.life_ns += a.life_ns(t);
            chosen.running_ns += t.running_ns;
            chosen.ready_ns += t.woken_ns + t.preempted_ns;
        }
        chosen.asleep_ns =
            chosen.life_ns.saturating_sub(chosen.running_ns.saturating_add(chosen.ready_ns));
        let mut names: Vec<_> = names.into_iter().collect();
        names.sort_by(|a, b| b.1.1.cmp(&a.1.1).then_with(|| a.0.cmp(&b.0)));
        let name = |((comm, pid), (count, _)): ((String, Option<u32>), (u64, Nanos))| {
            let pid = pid.map_or_else(String::new, |pid| format!(" ({pid})"));
            match count {
                1 => format!("{comm}{pid}"),
                count => format!("{comm}{pid} x {count}"),
            }
        };
        chosen.names = names.into_iter().map(name).collect();
        let mut waits: Vec<ChosenWait> = facts
            .objects()
            .iter()
            .map(|o| ChosenWait {
                object: o.names.first().cloned().unwrap_or_default(),
                ns: o.sleepers.iter().map(|s| s.wait_ns).sum(),
                rule: o.row.rule,
                by: o.row.holders.iter().take(PROGRAMS).map(|h| h.comm.clone()).collect(),
            })
            .filter(|w| w.ns > 0)
            .collect();
        waits.sort_by(|a, b| b.ns.cmp(&a.ns).then_with(|| a.object.cmp(&b.object)));
        waits.truncate(WAITS);
        chosen.waits = waits;
        chosen.others = others(facts);
        Some(chosen)
    }

    /// Who they are, in few words.
    pub fn listed(&self) -> String {
        let few = self.names.iter().take(PROGRAMS).cloned().collect::<Vec<_>>().join(", ");
        match self.names.len().saturating_sub(PROGRAMS) {
            0 => few,
            more => format!("{few} and {more} more"),
        }
    }

    /// What they did, in a sentence.
    pub fn course(&self) -> String {
        let of = |ns| percent(ns, self.life_ns);
        format!(
            "{}: running {:.1} % of the time, ready without a CPU {:.1} %, asleep {:.1} %",
            self.listed(),
            of(self.running_ns),
            of(self.ready_ns),
            of(self.asleep_ns)
        )
    }

    /// What they slept for, a line each.
    pub fn slept(&self) -> Vec<String> {
        let line = |w: &ChosenWait| {
            let by = match &w.by[..] {
                [] => String::new(),
                by => format!("; by {}", by.join(", ")),
            };
            let pct = percent(w.ns, self.life_ns);
            format!("asleep {pct:.1} % for {} ({}{by})", w.object, w.rule)
        };
        self.waits.iter().map(line).collect()
    }

    /// Who else was on the CPUs, in a line.
    pub fn beside(&self) -> Option<String> {
        let of = |p: &Neighbour| format!("{} {:.1} %", p.comm, p.pct);
        let others: Vec<String> = self.others.iter().map(of).collect();
        let all = others.join(", ");
        (!others.is_empty()).then(|| format!("others took of the capacity: {all}"))
    }
}

/// Who else was on the CPUs, by name.
fn others(facts: &Facts<'_>) -> Vec<Neighbour> {
    let a = facts.analysis;
    let mut by: BTreeMap<String, Nanos> = BTreeMap::new();
    for (_, t) in a.all_threads().filter(|(_, t)| !a.is_chosen(t) && t.running_ns > 0) {
        let name = if t.is_kthread() { "the kernel's threads".to_owned() } else { a.comm(t) };
        *by.entry(name).or_default() += t.running_ns;
    }
    let pct = |ns| percent(ns, facts.capacity);
    let mut all: Vec<Neighbour> =
        by.into_iter().map(|(comm, ns)| Neighbour { comm, ns, pct: pct(ns) }).collect();
    all.sort_by(|a, b| b.ns.cmp(&a.ns).then_with(|| a.comm.cmp(&b.comm)));
    all.truncate(OTHERS);
    all.retain(|other| facts.at_least(other.pct, &NAMED).holds());
    all
}

/// Make a rule's finding one about the chosen threads.
pub(crate) fn judge(facts: &Facts<'_>, mut f: Finding) -> Finding {
    // Figures of the machine.
    f.leaves.clear();
    f.evidence.clear();
    (f.share, f.lost_cpu_ns, f.wanted_pct, f.lacked_ns) = (0.0, 0, 0.0, 0);
    f.is_too_little = false;
    (f.worth, f.demand) = (Worth::bound(0.0), 1.0);
    let out = |mut f: Finding, why: String| {
        f.culprits.clear();
        f.ruled_out = Some(why);
        f
    };
    if f.story == NOT_JUDGED {
        return f;
    }
    let Some(Ok(replays)) = &facts.replays else {
        f.story = NOT_JUDGED;
        return out(f, "not judged: only a replay tells what holds chosen threads up".to_owned());
    };
    let Some(replay) = replays.of_class(f.class) else {
        return out(f, "the chosen threads wait for nothing of it".to_owned());
    };
    f.worth = replay.worth.clone();
    if replay.worth.low < facts.matters() {
        f.is_too_little = true;
        let times = replay.worth.times;
        return out(f, format!("without it the chosen threads are only {times:.2} times as fast"));
    }
    let threads: Vec<Slot> =
        replay.tids.iter().filter_map(|&tid| crate::rules::longest(facts, tid)).collect();
    if !threads.is_empty() {
        f.culprits =
            threads.iter().take(PROGRAMS).map(|&slot| culprits::runs(facts, slot)).collect();
    } else if f.class == Class::CpuOverload {
        f.culprits = culprits::queued(facts);
    }
    f.story = "replayed";
    f.ruled_out = None;
    f.summary = match f.class {
        Class::CpuOverload => {
            let (who, beside) = chosen_words(facts);
            if beside.is_some() {
                let keep = "keep the others off some CPUs (systemd's AllowedCPUs=, cpusets), or \
                            give these threads more weight (nice, CPUWeight=)";
                f.advice.insert(0, keep.to_owned());
            }
            let beside = beside.map_or_else(String::new, |beside| format!("; {beside}"));
            format!("{who} wait for a CPU{beside}")
        }
        _ => format!("of {}: {}", chosen_words(facts).0, replay.summary()),
    };
    f
}

/// Who was chosen, and who else was on the CPUs.
pub(crate) fn chosen_words(facts: &Facts<'_>) -> (String, Option<String>) {
    let chosen = Chosen::of(facts).unwrap_or_default();
    (chosen.listed(), chosen.beside())
}

/// Why nothing can be said about the chosen threads, if so.
pub(crate) fn no_evidence(facts: &Facts<'_>) -> Option<String> {
    if facts.analysis.chosen().all(|(_, t)| t.running_ns == 0) {
        return Some("the chosen threads did not run in this trace".to_owned());
    }
    match &facts.replays {
        Some(Ok(_)) => None,
        Some(Err(why)) => Some(format!(
            "what holds the chosen threads up is told by a replay, and this trace cannot be \
             replayed: {why}"
        )),
        None => Some(
            "what holds the chosen threads up is told by a replay, and this trace was not \
             replayed: --gain does that with any"
                .to_owned(),
        ),
    }
}
