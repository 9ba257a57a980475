//! What no recording can make the ledger say: laws of physics over every trace at hand, whole and
//! with events taken out.
//!
//! * `idle/scheduler` is at most the run-queue delays of the tables.
//! * `idle/thread-sync` is at most the capacity of the times in which a thread slept in a futex
//!   call, `idle/io` that of the times in which one slept uninterruptibly. [`sleep`] works these
//!   out event by event, without any of holdup's state machines. (Not the sum over the threads: one
//!   thread asleep for the disk with a lock in hand is the cause of all the waits for the lock.)
//! * What is busy is at least what the threads ran; leaves add up to the capacity.
//! * What `waits`, `switches` and `path` print is the ledger's idle time, and the time of threads
//!   that it was made from ([`printed`]).
//! * What the ledger charges to a finding bounds its gain.
//! * Without some of its events a trace keeps its verdict or is less sure.
//!
//! `docs/invariants.md` shows how often which invariant of run queues was applied where;
//! `HOLDUP_BLESS=1 cargo test --test answers physics` writes it.

use crate::oracle::corpus;
mod printed;
mod sleep;

use crate::verdicts::thinned;
use corpus::Recording;
use holdup_attribution::{Attribution, Leaf, Total, analyze};
use holdup_diagnose::{Class, Finding, Verdict, diagnose};
use holdup_passes::{Analysis, Detail, Invariant, Options};
use holdup_testkit::{in_parallel, needs};
use holdup_trace::{Cpu, Nanos, Reader};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::sync::OnceLock;
use thinned::{Missing, Thinned};

/// What is taken out of each trace.
const CHANGES: [&str; 6] = [
    "nothing",
    "5 % of the events",
    "20 % of the events",
    "the events of one CPU's idle task",
    "the events of the busiest thread",
    "every wake-up",
];

/// Of 100 verdicts at least so many stand whatever of [`CHANGES`] is missing.
const KEPT_PCT: usize = 70;
/// The same of fixtures alone without the busiest thread: these small recordings have two or three,
/// and little is left.
const KEPT_WITHOUT_BUSIEST_PCT: usize = 50;
/// And at most so many become others without being less sure: these verdicts are by demand alone,
/// without a replay, and unsure as they are.
const NEITHER_PCT: usize = 3;
/// The same of all recordings, the small fixtures among them: what the busiest thread did is what
/// most verdicts rest on.
const KEPT_IN_THE_CORPUS_PCT: usize = 62;

/// The division of sums by fixed point may lose so much at each of the ledger's leaves.
const ROUNDING: Nanos = 1000;

/// One trace under one change.
struct Outcome {
    name: String,
    change: usize,
    invariants: BTreeMap<Invariant, u64>,
    verdict: Verdict,
    failures: Vec<String>,
}

/// The change at index `i` of [`CHANGES`], for this trace; `None` leaves all events in.
fn missing(i: usize, whole: &Analysis) -> Option<Missing> {
    match i {
        1 => Some(Missing::Percent(5)),
        2 => Some(Missing::Percent(20)),
        3 => Some(Missing::IdleTask(Cpu(whole.cpus.saturating_sub(1) as u16))),
        4 => {
            let threads = whole.threads().filter(|(_, t)| !t.is_kthread());
            threads.max_by_key(|(_, t)| t.running_ns).map(|(_, t)| Missing::Task(t.tid))
        }
        5 => Some(Missing::WakeUps),
        _ => None,
    }
}

fn outcomes_of(file: &Recording) -> Vec<Outcome> {
    let Ok(reader) = holdup_open::open(&file.path) else { return Vec::new() };
    let options = Options { detail: Detail::Intervals, ..Options::default() };
    let Ok(whole) = analyze(&*reader, &options) else { return Vec::new() };
    let mut out = vec![outcome(file, 0, &*reader, &whole)];
    for change in 1..CHANGES.len() {
        if let Some(missing) = missing(change, &whole) {
            let reader = Thinned::of(&*reader, missing);
            let analysis = analyze(&reader, &options).expect("readable before");
            out.push(outcome(file, change, &reader, &analysis));
        }
    }
    out
}

fn outcome(file: &Recording, change: usize, reader: &dyn Reader, a: &Analysis) -> Outcome {
    let mut invariants = BTreeMap::new();
    for (invariant, _, n) in a.invariants() {
        *invariants.entry(invariant).or_default() += n;
    }
    let found = diagnose(reader.info(), a, None);
    let mut failures = broken(reader, a);
    failures.extend(found.findings.iter().filter_map(|f| beyond(f, a.wall_ns())));
    Outcome { name: file.name.clone(), change, invariants, verdict: found.verdict, failures }
}

/// A nanosecond that no CPU loses any more ends the work at most a nanosecond earlier. (What
/// threads lacked for want of CPUs no CPU lost.)
fn beyond(f: &Finding, wall: Nanos) -> Option<String> {
    let left = wall.saturating_sub(f.lost_cpu_ns);
    let is_beyond = f.lacked_ns == 0 && left as f64 * f.worth.times > wall as f64 * 1.001;
    is_beyond.then(|| format!("{}: {} times by {} ns", f.class.id(), f.worth.times, f.lost_cpu_ns))
}

/// The laws of physics that the ledger breaks.
fn broken(reader: &dyn Reader, a: &Analysis) -> Vec<String> {
    let ledger = Attribution::from(a).ledger;
    let leaves: Nanos = ledger.leaves().map(|l| l.1).sum();
    let delays: Nanos = a.threads().map(|(_, t)| t.woken_ns + t.preempted_ns).sum();
    let ran: Nanos = a.threads().map(|(_, t)| t.user_ns + t.kernel_ns).sum();
    let (idle, scheduler) = (ledger.total(Total::Idle), ledger.ns(Leaf::Scheduler));
    let mut claims = vec![
        ("leaves = capacity", leaves, ledger.capacity_ns),
        ("capacity = leaves", ledger.capacity_ns, leaves),
        ("idle/scheduler <= run-queue delays", scheduler, delays),
        ("CPU time of threads <= busy or stolen", ran, {
            ledger.total(Total::Busy) + ledger.ns(Leaf::Stolen)
        }),
        ("stolen <= CPU time of threads and softirqs", ledger.ns(Leaf::Stolen), {
            a.cpu_rows().iter().map(|r| r.wall_ns - r.idle_ns - r.unaccounted_ns).sum()
        }),
        ("idle/throttled <= time that threads were throttled", ledger.ns(Leaf::Throttled), {
            a.threads().filter_map(|(_, t)| t.throttle()).map(|t| t.ns).sum()
        }),
        ("serial and scheduler <= idle", a.serial_ns() + scheduler, idle),
        ("serial time <= all time", a.serial_wall_ns(), a.wall_ns()),
        ("serial CPU time <= CPUs x serial time", a.serial_ns(), {
            a.cpus as u64 * a.serial_wall_ns()
        }),
    ];
    if a.capabilities.switches {
        let slept = sleep::times(reader, a);
        let cpus = a.cpus as u64;
        claims.push(("idle/io <= CPUs x sleep in D", ledger.ns(Leaf::Io), cpus * slept.device));
        if a.capabilities.syscalls.are_all() {
            let futex = ledger.ns(Leaf::ThreadSync);
            claims.push(("idle/thread-sync <= CPUs x sleep in futexes", futex, cpus * slept.futex));
        }
    }
    claims.extend(printed::claims(a));
    let broken = claims.into_iter().filter(|&(_, part, whole)| part > whole + ROUNDING);
    broken.map(|(claim, part, whole)| format!("{claim}: {part} and {whole}")).collect()
}

/// Every trace under every change, worked out once.
fn outcomes() -> &'static [Outcome] {
    static OUTCOMES: OnceLock<Vec<Outcome>> = OnceLock::new();
    OUTCOMES.get_or_init(|| {
        let done = in_parallel(corpus::all_files(), |file| outcomes_of(&file));
        let mut done: Vec<Outcome> = done.into_iter().flatten().collect();
        done.sort_by(|a, b| (&a.name, a.change).cmp(&(&b.name, b.change)));
        done
    })
}

#[test]
fn no_leaf_of_the_ledger_exceeds_what_the_events_allow() {
    let failures: Vec<String> = outcomes()
        .iter()
        .flat_map(|o| {
            o.failures.iter().map(|f| format!("{}, without {}: {f}", o.name, CHANGES[o.change]))
        })
        .collect();
    let shown = &failures[..failures.len().min(60)];
    assert!(failures.is_empty(), "{} of {}: {shown:#?}", failures.len(), outcomes().len());
}

#[test]
fn a_thinned_trace_keeps_its_verdict_or_is_less_sure() {
    let mut whole = None;
    let mut counts = [[0; 3]; CHANGES.len()];
    let mut neither = Vec::new();
    for o in outcomes() {
        if o.change == 0 {
            whole = Some(&o.verdict);
            continue;
        }
        let (Some(before), after) = (whole, &o.verdict) else { continue };
        let fate = if after.class == before.class {
            0
        } else if after.class == Class::NotEnoughEvidence || after.confidence < before.confidence {
            1
        } else {
            neither.push(format!(
                "{}, without {}: {} {:.2} -> {} {:.2}",
                o.name,
                CHANGES[o.change],
                before.class.id(),
                before.confidence,
                after.class.id(),
                after.confidence
            ));
            2
        };
        counts[o.change][fate] += 1;
    }
    for (change, [kept, less, neither]) in CHANGES.iter().zip(counts).skip(1) {
        println!("without {change}: {kept} kept, {less} less sure, {neither} neither");
    }
    println!("{neither:#?}");
    for (change, [kept, less, neither]) in CHANGES.iter().zip(counts).skip(1) {
        let all = kept + less + neither;
        let busiest = change.ends_with("busiest thread");
        let small = busiest && !holdup_testkit::corpus().is_dir();
        let least = match (busiest, small) {
            (true, true) => KEPT_WITHOUT_BUSIEST_PCT,
            (true, false) => KEPT_IN_THE_CORPUS_PCT,
            (false, _) => KEPT_PCT,
        };
        assert!(kept * 100 >= all * least, "without {change}: {kept} of {all} kept");
        assert!(neither * 100 <= all * NEITHER_PCT, "without {change}: {neither} of {all} neither");
    }
}

/// How often which invariant was applied, and in how many traces, by what was taken out.
fn page(all: &[Outcome]) -> String {
    let mut out = include_str!("intro.md").to_owned();
    out.push_str("\n| invariant | in `quality` |");
    for change in CHANGES {
        write!(out, " {change} |").unwrap();
    }
    out.push_str(&format!("\n|---|---|{}\n", "--:|".repeat(CHANGES.len())));
    for &invariant in Invariant::ALL {
        write!(out, "| {} | `{}` |", invariant.says(), invariant.code().code()).unwrap();
        for change in 0..CHANGES.len() {
            let of = all.iter().filter(|o| o.change == change);
            let counts: Vec<u64> =
                of.filter_map(|o| o.invariants.get(&invariant).copied()).collect();
            let times: u64 = counts.iter().sum();
            write!(out, " {times} in {} |", counts.len()).unwrap();
        }
        out.push('\n');
    }
    let traces = all.iter().filter(|o| o.change == 0).count();
    writeln!(out, "\n{traces} traces were analysed.").unwrap();
    out
}

/// The page counts recordings of the corpus.
#[needs(corpus)]
#[test]
fn the_page_of_invariants_is_up_to_date() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/invariants.md");
    let page = page(outcomes());
    if std::env::var_os("HOLDUP_BLESS").is_some() {
        std::fs::write(&path, &page).unwrap();
    }
    assert!(
        std::fs::read_to_string(&path).is_ok_and(|p| p == page),
        "docs/invariants.md: HOLDUP_BLESS=1 cargo test --test answers physics"
    );
}
