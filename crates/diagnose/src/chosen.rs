//! The verdict about chosen threads: what delays *them*, with all other threads as background.
//!
//! The ledger and what a rule finds in it concern all threads. Here only replays decide: the
//! resource whose removal would finish the chosen threads earlier is their bottleneck. The rules
//! add which threads are concerned and what to do.

use crate::class::Class;
use crate::culprits;
use crate::facts::Facts;
use crate::others::KEEP_OFF;
use crate::report::{BackgroundProgram, Chosen, ChosenWait, Finding, NOT_JUDGED, PROGRAMS};
use crate::worth::Worth;
use holdup_attribution::Holder;
use holdup_attribution::limits::NAMED;
use holdup_passes::{Slot, Thread, percent};
use holdup_trace::Nanos;
use std::collections::BTreeMap;

/// The number of waits that are shown.
const WAITS: usize = 5;

/// The number of other programs on the CPUs that are shown.
const OTHERS: usize = 5;

/// The chosen threads; `None` if the user chose none.
pub(crate) fn chosen(facts: &Facts<'_>) -> Option<Chosen> {
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
            by: by(&o.row.holders),
        })
        // Less than 0.05 % is shown as nothing.
        .filter(|w| w.ns > 0 && w.ns >= chosen.life_ns / 2000)
        .collect();
    waits.sort_by(|a, b| b.ns.cmp(&a.ns).then_with(|| a.object.cmp(&b.object)));
    waits.truncate(WAITS);
    chosen.waits = waits;
    chosen.others = others(facts);
    Some(chosen)
}

/// Other programs on the CPUs, by name.
fn others(facts: &Facts<'_>) -> Vec<BackgroundProgram> {
    let a = facts.analysis;
    let mut by: BTreeMap<(String, Option<String>), Nanos> = BTreeMap::new();
    for (_, t) in a.all_threads().filter(|(_, t)| !a.is_chosen(t) && t.running_ns > 0) {
        let group = Some(a.group(t)).filter(|&group| a.path_of(group) != "/");
        let name = match t.is_kthread() {
            true => ("the kernel's threads".to_owned(), None),
            false => (a.comm(t), group.and_then(|group| a.group_words(group))),
        };
        *by.entry(name).or_default() += t.running_ns;
    }
    let pct = |ns| percent(ns, facts.capacity);
    let mut all: Vec<BackgroundProgram> = by
        .into_iter()
        .map(|((comm, cgroup), ns)| BackgroundProgram { comm, cgroup, ns, pct: pct(ns) })
        .collect();
    all.sort_by(|a, b| {
        b.ns.cmp(&a.ns).then_with(|| (&a.comm, &a.cgroup).cmp(&(&b.comm, &b.cgroup)))
    });
    all.truncate(OTHERS);
    all.retain(|other| facts.at_least(other.pct, &NAMED).holds());
    all
}

/// Limit a rule's finding to the chosen threads.
pub(crate) fn judge(facts: &Facts<'_>, mut f: Finding) -> Finding {
    // These figures are the whole machine's.
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
        return out(
            f,
            "not judged: only a replay of the trace shows what delays the chosen threads"
                .to_owned(),
        );
    };
    let Some(replay) = replays.of_class(f.class) else {
        return out(f, "the chosen threads do not wait for such a resource".to_owned());
    };
    if !replay.concerns {
        return out(
            f,
            "neither the chosen threads nor the threads that they depend on wait for such a \
             resource"
                .into(),
        );
    }
    f.worth = replay.worth.clone();
    if replay.worth.low < facts.matters() {
        f.is_too_little = true;
        let times = replay.worth.times;
        return out(
            f,
            format!("without this loss the chosen threads would be only {times:.2} times as fast"),
        );
    }
    let threads: Vec<Slot> = replay.tids.iter().filter_map(|&tid| facts.longest(tid)).collect();
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
            let (who, concurrent) = chosen_words(facts);
            if concurrent.is_some() {
                f.advice.insert(0, KEEP_OFF.to_owned());
            }
            let concurrent =
                concurrent.map_or_else(String::new, |concurrent| format!("; {concurrent}"));
            format!("{who}: {}{concurrent}", queued(facts))
        }
        _ => format!("of {}: {}", chosen_words(facts).0, replay.summary()),
    };
    f
}

/// How the chosen threads lack CPUs: directly, or through the threads they wait for.
fn queued(facts: &Facts<'_>) -> String {
    let a = facts.analysis;
    let ready = |threads: &mut dyn Iterator<Item = &Thread>| {
        let (ns, life) = threads
            .fold((0, 0), |(ns, life), t| (ns + t.woken_ns + t.preempted_ns, life + a.life_ns(t)));
        percent(ns, life)
    };
    let own = ready(&mut a.chosen().map(|(_, t)| t));
    let (mut waits, mut all): (BTreeMap<u32, Nanos>, Nanos) = (BTreeMap::new(), 0);
    for o in facts.objects() {
        let slept: Nanos = o.sleepers.iter().map(|s| s.wait_ns).sum();
        all += slept;
        if let Some(h) = o.row.holders.first() {
            *waits.entry(h.tid).or_default() += (slept as f64 * h.pct_explained / 100.0) as Nanos;
        }
    }
    // A thread that ended some of the waits may only have been interrupted at the time.
    let servers = waits.into_iter().max_by_key(|&(_, ns)| ns);
    let server = servers
        .filter(|&(_, ns)| ns > all / 2)
        .and_then(|(tid, _)| facts.longest(tid))
        .filter(|&slot| !a.is_chosen(a.thread(slot)))
        .map(|slot| (a.comm(a.thread(slot)), ready(&mut std::iter::once(a.thread(slot)))));
    match server {
        Some((name, pct)) if pct > own => format!(
            "these threads are ready but without a CPU for {own:.0} % of the time; {name}, which \
             they wait for, is ready but without a CPU for {pct:.0} %"
        ),
        _ => format!("these threads are ready but without a CPU for {own:.0} % of the time"),
    }
}

/// The names of threads that held an object or ended the waits for it.
fn by(holders: &[Holder]) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for h in holders {
        if !names.contains(&h.comm) {
            names.push(h.comm.clone());
        }
    }
    names.truncate(PROGRAMS);
    names
}

/// The chosen threads, and the other programs on the CPUs.
pub(crate) fn chosen_words(facts: &Facts<'_>) -> (String, Option<String>) {
    let chosen = chosen(facts).unwrap_or_default();
    (chosen.listed(), chosen.concurrent())
}

/// Why the chosen threads cannot be judged, if so.
pub(crate) fn no_evidence(facts: &Facts<'_>) -> Option<String> {
    if facts.analysis.chosen().all(|(_, t)| t.running_ns == 0) {
        return Some("the chosen threads did not run in this trace".to_owned());
    }
    match &facts.replays {
        Some(Ok(_)) => None,
        Some(Err(why)) => Some(format!(
            "only a replay shows what delays the chosen threads, and this trace cannot be \
             replayed: {why}"
        )),
        None => Some(
            "only a replay shows what delays the chosen threads, and this trace was not replayed: \
             --gain replays any trace"
                .to_owned(),
        ),
    }
}
