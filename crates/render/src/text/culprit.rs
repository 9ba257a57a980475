//! A culprit in a sentence, for an engineer woken at night: what it is, which threads wait and what
//! that costs, which held it meanwhile.

use super::units::duration;
use holdup_diagnose::{Culprit, Person, Role};
use holdup_passes::{HolderPart, HolderTime};
use holdup_trace::Tid;

/// Most holders and waiters named in a sentence; JSON has more.
const NAMED: usize = 3;

/// A smaller gain is not worth a sentence.
const MENTIONED: f64 = 1.05;

/// A culprit in a sentence: what it is, which threads wait and what that costs, which held it
/// meanwhile.
pub(crate) fn culprit(c: &Culprit) -> String {
    let subject = match (c.tid, c.role) {
        (Some(tid), _) => format!("{} {} ({})", c.kind, c.name, Tid(tid).words()),
        (None, Role::Costs | Role::Runs | Role::Queued) => format!("{} {}", c.kind, c.name),
        (None, _) => c.name.clone(),
    };
    let time = duration(c.ns);
    let waiting = match c.waiters_in_all {
        None => "threads".to_owned(),
        Some(1) if c.waiters.len() == 1 => who(&c.waiters[0]),
        Some(1) => "1 thread".to_owned(),
        Some(n) => format!("{n} threads"),
    };
    let one = c.waiters_in_all == Some(1);
    let s = if one { "s" } else { "" };
    let mut costs = String::new();
    if let Some(ns) = c.waited_ns {
        costs.push_str(&format!(", waiting {} in total", duration(ns)));
    }
    if c.ns > 0 {
        costs.push_str(&format!(", which costs {time} of CPU time"));
    }
    let does = match c.role {
        Role::Costs if c.ns == 0 => return subject,
        Role::Costs => format!("costs {time} of CPU time"),
        Role::Contended => format!("{waiting} contend{s}{costs}"),
        Role::Spins => format!("{waiting} call{s} it instead of sleeping{costs}"),
        Role::Loops => format!("{waiting} spin{s} in it instead of sleeping{costs}"),
        Role::Handover => format!("{waiting} wait{s} for data or a signal{costs}"),
        Role::Barrier => format!("{waiting} wait{s} until the last thread arrives{costs}"),
        Role::Served => format!("{waiting} wait{s} to be served{costs}"),
        Role::Device => format!("{waiting} wait{s} for it{costs}"),
        Role::KernelLock => format!("{waiting} wait{s} for it{costs}"),
        Role::Server => format!("runs for {time}; {waiting} wait{s} for it"),
        Role::Straggler => {
            format!("runs for {time}; the other threads wait for this thread most often")
        }
        Role::Runs => format!("runs for {time}"),
        Role::Queued if let Some(waited) = c.waited_ns => format!(
            "{waiting} run{s} for {time}, and {} ready without a CPU for {}",
            if one { "is" } else { "are" },
            duration(waited),
        ),
        Role::Queued => format!("ready for {time}, waiting for other threads on its CPU"),
        Role::Throttled => {
            format!("ready but throttled, while {time} of CPU time were idle")
        }
        Role::Driver if c.waiters.is_empty() => format!("runs for {time}"),
        Role::Driver => format!("runs for {time}; meanwhile {waiting} wait{s}"),
    };
    let mut line = format!("{subject}: {does}");
    let counts = |h: &Person| h.pct.is_none_or(|pct| pct >= 0.5);
    if c.holders.iter().any(counts) {
        let guess = c.holders.iter().all(|h| h.inferred);
        let (before, first, then) = match c.role {
            Role::Contended | Role::KernelLock if guess => {
                ("inferred from wake-ups: held for ", "by", "by")
            }
            Role::Contended | Role::KernelLock => ("held for ", "by", "by"),
            Role::Barrier => ("", "was for", "for"),
            _ => ("", "was ended by", "by"),
        };
        let people = |(i, h): (usize, &Person)| {
            if h.pct.is_none() {
                return format!("{} by {}", duration(h.ns), who(h));
            }
            let pct = h.pct.map_or("n/a".to_owned(), |pct| format!("{pct:.0}"));
            let words =
                if i == 0 { format!("of the waiting time {first}") } else { then.to_owned() };
            format!("{pct} % {words} {}", who(h))
        };
        line.push_str(&format!("; {before}{}", list(&c.holders, c.holders_in_all, people)));
        if let Some(phrase) = holders_did(&c.holders_did) {
            line.push_str(&format!("; {phrase}"));
        }
        for worth in c.holders_worth.iter().filter(|worth| worth.times >= MENTIONED) {
            line.push_str(&format!(
                "; the work would be {:.2} times as fast {}",
                worth.times, worth.fix
            ));
        }
    } else if c.waiters.len() > 1 && c.role != Role::Queued {
        let people = |(_, w): (usize, &Person)| format!("{} {}", who(w), duration(w.ns));
        line.push_str(&format!("; longest {}", list(&c.waiters, c.waiters_in_all, people)));
    }
    for phrase in c.phrases_of_code() {
        line.push_str(&format!("; {phrase}"));
    }
    line
}

/// `meanwhile the holders spent 61 % waiting for a disk (fsync), 25 % in their own code`: the two
/// largest parts of at least a tenth.
fn holders_did(times: &[HolderTime]) -> Option<String> {
    let one = |t: &HolderTime| format!("{:.0} % {}", t.pct, t.phrase());
    let known = |t: &&HolderTime| t.pct >= 10.0 && t.did != HolderPart::Unknown.id();
    let words: Vec<String> = times.iter().take(2).filter(known).map(one).collect();
    (!words.is_empty()).then(|| format!("meanwhile the holders spent {}", words.join(", ")))
}

fn who(p: &Person) -> String {
    format!("{} ({})", p.comm, Tid(p.tid).words())
}

/// The first few, and how many more there are.
fn list(
    people: &[Person],
    in_all: Option<u64>,
    word: impl Fn((usize, &Person)) -> String,
) -> String {
    // Threads whose share rounds to 0 are only counted.
    let counts = |p: &&Person| p.pct.is_none_or(|pct| pct >= 1.0);
    let shown = people.iter().take(1).chain(people.iter().skip(1).take(NAMED - 1).filter(counts));
    let mut words: Vec<String> = shown.enumerate().map(word).collect();
    let more = in_all.unwrap_or(people.len() as u64).saturating_sub(words.len() as u64);
    if more > 0 {
        words.push(format!("and {more} more"));
    }
    words.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use holdup_diagnose::HolderWorth;

    fn person(tid: u32, ns: u64, pct: f64, inferred: bool) -> Person {
        Person { tid, pid: Some(1), comm: format!("w-{tid}"), ns, pct: Some(pct), inferred }
    }

    #[test]
    fn a_lock_says_who_is_for_contention_and_who_held_it() {
        let mutex = Culprit {
            kind: "mutex",
            name: "mutex 0x1000 of wl (1)".to_owned(),
            ns: 1_203_000_000,
            holders: vec![
                person(2, 9, 17.4, true),
                person(3, 8, 16.0, true),
                person(4, 7, 0.4, true),
            ],
            holders_in_all: Some(5),
            waiters: vec![person(2, 9, 60.0, false), person(3, 8, 40.0, false)],
            waiters_in_all: Some(8),
            role: Role::Contended,
            ..Culprit::default()
        };
        assert_eq!(
            culprit(&mutex),
            "mutex 0x1000 of wl (1): 8 threads contend, which costs 1.203 s of CPU time; inferred \
             from wake-ups: held for 17 % of the waiting time by w-2 (tid 2), 16 % by w-3 (tid 3), \
             and 3 more"
        );
    }

    #[test]
    fn a_lock_says_what_its_holders_did_and_what_that_costs() {
        let time = |title, call: Option<&str>, pct| HolderTime {
            title,
            call: call.map(str::to_owned),
            pct,
            ..HolderTime::default()
        };
        let worth = |fix, times| HolderWorth { change: String::new(), fix, pct: 30.0, times };
        let lock = Culprit {
            name: "mutex 0x1000 of wl (1)".to_owned(),
            holders: vec![person(2, 9, 100.0, false)],
            holders_in_all: Some(1),
            holders_did: vec![
                time("waiting for a disk", Some("fsync"), 55.1),
                time("in their own code", None, 40.0),
                time("preempted", None, 4.9),
            ],
            holders_worth: vec![worth("without their sleep", 1.4), worth("with a CPU", 1.01)],
            waiters_in_all: Some(2),
            role: Role::Contended,
            ..Culprit::default()
        };
        assert_eq!(
            culprit(&lock),
            "mutex 0x1000 of wl (1): 2 threads contend; held for 100 % of the waiting time by w-2 \
             (tid 2); meanwhile the holders spent 55 % waiting for a disk (fsync), 40 % in their \
             own code; the work would be 1.40 times as fast without their sleep"
        );
    }

    #[test]
    fn a_lone_waiter_has_a_name() {
        let pipe = Culprit {
            kind: "pipe",
            name: "pipe fd 5 of pid 1 (wl)".to_owned(),
            waiters: vec![person(2, 9, 100.0, false)],
            waiters_in_all: Some(1),
            role: Role::Handover,
            ..Culprit::default()
        };
        assert_eq!(
            culprit(&pipe),
            "pipe fd 5 of pid 1 (wl): w-2 (tid 2) waits for data or a signal"
        );
    }

    #[test]
    fn what_has_nobody_around_says_what_it_costs() {
        let call = Culprit {
            kind: "syscall",
            name: "write".to_owned(),
            ns: 5_000_000,
            ..Culprit::default()
        };
        assert_eq!(culprit(&call), "syscall write: costs 5.000 ms of CPU time");
        let nothing = Culprit { ns: 0, ..call };
        assert_eq!(culprit(&nothing), "syscall write");
    }
}
