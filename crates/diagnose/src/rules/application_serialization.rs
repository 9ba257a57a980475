//! Threads contend for a shared kernel object: a semaphore, a message queue, a file lock or a pipe.
//!
//! # What it does
//! It adds up leaves of the ledger. `idle/kernel-services` is idle CPU time while threads slept in
//! calls on semaphores, message queues and file locks, in reads and writes that another thread
//! ended (pipes, local sockets), or in futex calls on memory that processes share.
//! `busy/kernel/kernel-services` is the CPU time of these calls if they slept or ended the sleep of
//! another thread. Calls that neither sleep nor wake a thread do not count.
//!
//! Three more kinds of waiting belong to this class. The rule recognises each by a pattern:
//! * **a latch**: a thread sleeps in `epoll_wait`, `poll` or `pause` until another thread of its
//!   program sends it a signal or writes to its eventfd, pipe or local socket. The woken thread
//!   wakes other threads in the same way;
//! * **a retry loop**: an attempt to take a file lock or semaphore fails, and the thread sleeps and
//!   tries again, repeatedly. No thread wakes it. The thread that got the lock meanwhile counts as
//!   the holder;
//! * **a loop around `sched_yield`** in several processes of the same name (`busy/service-spin`): a
//!   thread calls `sched_yield` many times in a row, with hardly any code of its own in between,
//!   although the thread works at other times. A loop in the processes' own code counts too if
//!   samples show it (see thread-serialization).
//!
//! # Why it holds a system up
//! Only one thread at a time can use what the object protects. The signs are many context switches,
//! and much kernel time in a few calls on the object. The thread that holds the object changes all
//! the time, whereas a busy server (workload-imbalance) is always the same thread.
//!
//! # What it is not
//! A thread may wait for the result of a busy thread that never waits for it: a stage of a
//! pipeline, or the main thread of a pool. Finer locks would not help the waiting thread. Its idle
//! time is in the leaf `idle/order` and costs nothing here. If two threads wait for each other,
//! such a dependency looks like contention.
//!
//! # What it cannot tell
//! A program that regularly checks a lock, and that would sleep even if the lock were free, looks
//! like a retry loop. Event loops of one program that pass work in both directions look like
//! latches. The trace does not say which file a lock is on, so all file locks of one kind that a
//! program tries to take count as one lock. An attempt without a system call
//! (`pthread_mutex_trylock` and a sleep) is not seen.
//!
//! # What to do
//! Use several semaphores or files instead of one, each for a part of the data. Make critical
//! sections shorter.
//!
//! Source: Olszewski and Van Fleet, "SMP Performance", section Application Serialization and
//! case 3 (one semaphore: 63 % of processing time in semop).

use super::{Explanation, Fixtures, Rule, cost, finding, in_cpus};
use crate::culprits;
use crate::facts::Facts;
use crate::report::{Class, Culprit, Evidence, Finding, Role};
use holdup_attribution::limits::MATTERS;
use holdup_attribution::{Leaf, Spinning, UserSpinning};
use holdup_passes::{Cause, FutexUse, Object, ObjectKind, Outside};
use holdup_trace::Nanos;

pub(super) const RULE: Rule = Rule {
    id: "application-serialization",
    class: Class::ApplicationSerialization,
    check,
    file: include_str!("application_serialization.rs"),
    needs: &["switches", "syscalls or wakers"],
    thresholds: &[MATTERS],
    fixtures: Fixtures {
        positive: "ser_semop_perf_c8/perf.data",
        negative: "imb_server_c4/perf.data",
    },
};

fn check(facts: &Facts<'_>) -> Finding {
    contention(
        facts,
        &RULE,
        &ContentionLeaves {
            cause: Cause::KernelService,
            asleep: Leaf::KernelServices,
            awake: Leaf::ServiceCalls,
            spins: Leaf::ServiceSpin,
            at: "services of the kernel",
            nobody: "no thread waits in a kernel service",
            advice: [
                "split the object: use several semaphores, files or queues instead of one",
                "shorten the critical section",
            ],
        },
    )
}

/// The leaves of the two rules about contention.
pub(super) struct ContentionLeaves {
    pub(super) cause: Cause,
    /// Idle CPU time of threads that sleep for an object.
    pub(super) asleep: Leaf,
    /// CPU time in the calls by which they sleep and wake.
    pub(super) awake: Leaf,
    /// CPU time of threads that yield repeatedly and do not sleep.
    pub(super) spins: Leaf,
    pub(super) at: &'static str,
    pub(super) nobody: &'static str,
    pub(super) advice: [&'static str; 2],
}

impl ContentionLeaves {
    /// Threads that wait without sleeping for threads of the same kind.
    fn spinning<'a>(&self, facts: &'a Facts<'_>) -> Vec<&'a Spinning> {
        let services = self.cause == Cause::KernelService;
        facts.judged.spinning.iter().filter(|s| s.between_processes == services).collect()
    }

    /// Threads that spin in their own code for threads of the same kind.
    fn in_user<'a>(&self, facts: &'a Facts<'_>) -> Vec<&'a UserSpinning> {
        facts.judged.user_spinning.iter().filter(|s| s.leaf() == self.spins).collect()
    }
}

/// What helps if threads spin in their own code.
const LOOPS: [&str; 2] = [
    "split the object that the threads spin for, so that fewer threads want it at once, or hold it \
     for less time",
    "let threads sleep after a short spin, as a mutex does, above all if there are more threads \
     than CPUs",
];

/// Why the holders were slow, if they did one thing other than running for most of the time in
/// which others waited.
fn slow_holders(lock: &Culprit) -> Option<String> {
    let most = lock.holders_did.first()?;
    (!most.runs && most.pct > 50.0)
        .then(|| format!("; for {:.0} % of that time its holders are {}", most.pct, most.phrase()))
}

/// What helps if threads contend for the permission to run code.
const INTERPRETER: [&str; 2] = [
    "use processes instead of threads: one thread runs at a time, as with the lock of an \
     interpreter (Python's GIL, Ruby's GVL)",
    "do the computing in native code that releases the interpreter's lock",
];

/// What helps if the object is no mutex and may count the connections or workers of a pool.
fn of_pool(culprits: &[Culprit]) -> Option<&'static str> {
    let counts = [FutexUse::Condvar.name(), FutexUse::Semaphore.name(), ObjectKind::Semop.name()];
    let kind = culprits.first()?.kind;
    counts
        .contains(&kind)
        .then_some("if the object guards a pool of connections or workers: make the pool larger")
}

/// Whether the object that threads wait for longest lets one thread run at a time.
fn is_for_code(facts: &Facts<'_>) -> bool {
    let harmful = facts.objects().iter().filter(|o| o.rule.is_harmful());
    let longest = harmful.max_by_key(|o| o.row.wait_total_ns);
    let stats = |o: &Object| facts.judged.objects.get(o).map(|judged| &judged.stats);
    longest.is_some_and(|o| o.objects.iter().filter_map(stats).any(|of| of.in_turn))
}

/// Threads contend: their sleep leaves CPUs idle, and going to sleep and waking costs CPU time.
pub(super) fn contention(facts: &Facts<'_>, rule: &Rule, of: &ContentionLeaves) -> Finding {
    let (idle, cpu, spun) = (facts.leaf(of.asleep), facts.leaf(of.awake), facts.leaf(of.spins));
    let (spinning, in_user) = (of.spinning(facts), of.in_user(facts));
    let in_user_ns: Nanos = in_user.iter().map(|s| s.spun_ns).sum();
    let (waited, by_call) = facts.waiting_for(of.cause);
    let leaves = (of.asleep, of.awake);
    let culprits = culprits::contention(facts, rule.class, leaves, &by_call, (&spinning, &in_user));
    // A mean that would be shown as 0.0 says nothing.
    let shows = |waited: &u64| *waited * 20 >= facts.wall;
    // A lock that is held while sleeping costs hardly any CPU time, but all the others' time.
    let priced = facts.worth_removing(rule.class).and(culprits.first());
    let priced = priced.and_then(|c| c.waited_ns);
    let at = match culprits.first() {
        _ if facts.analysis.outside() == Outside::Unknown => {
            format!(
                "in {} (the object is unknown, because raw_syscalls events were not recorded)",
                of.at
            )
        }
        Some(c) if c.role == Role::Loops => format!("in {}", c.name),
        Some(c) if c.kind != "syscall" => format!("for {}", c.named_in_code()),
        Some(c) => format!("in {}", c.name),
        None => format!("in {}", of.at),
    };
    let explanation = match by_call.first() {
        _ if spun > idle + cpu => Explanation {
            story: "spinning",
            summary: format!(
                "threads wait {at} without sleeping: {:.1} of {} CPUs are lost to this spinning",
                in_cpus(facts, idle + cpu + spun),
                facts.analysis.cpus,
            ),
            advice: match in_user_ns * 2 > spun {
                true => LOOPS.map(str::to_owned).to_vec(),
                false => vec![
                    "let waiting threads sleep: use a mutex instead of a loop around sched_yield"
                        .to_owned(),
                    of.advice[1].to_owned(),
                ],
            },
        },
        None if priced.is_none() => Explanation::plain("nobody-waits", of.nobody),
        _ => Explanation {
            story: "contention",
            summary: match priced.filter(shows) {
                Some(waited) => format!(
                    "threads contend {at}: on average {:.1} threads wait for it{}",
                    in_cpus(facts, waited),
                    culprits.first().and_then(slow_holders).unwrap_or_default(),
                ),
                None => format!(
                    "threads contend {at}: {:.1} of {} CPUs are lost, {:.1} of them idle",
                    in_cpus(facts, idle + cpu + spun),
                    facts.analysis.cpus,
                    in_cpus(facts, idle),
                ),
            },
            advice: match is_for_code(facts) {
                true => INTERPRETER.map(str::to_owned).to_vec(),
                false => {
                    of.advice.into_iter().chain(of_pool(&culprits)).map(str::to_owned).collect()
                }
            },
        },
    };
    let mut f = finding(facts, rule, explanation);
    let (wakers, most) = facts.wakers(of.cause);
    let of_wanted = cost(facts, &f);
    let slept = match facts.analysis.outside() {
        Outside::Unknown => "idle while threads slept waiting for each other".to_owned(),
        _ => format!("idle while threads slept in {}", of.at),
    };
    f.evidence = vec![
        facts.share(slept, of.asleep),
        facts.share("CPU time of calls that slept or that woke a sleeping thread", of.awake),
        of_wanted,
        Evidence::of(
            "threads asleep in these calls, on average",
            waited as f64 / facts.wall.max(1) as f64,
            "threads",
            "waits",
        ),
        Evidence::of("threads that ended these waits", wakers as f64, "threads", "wake-ups"),
        Evidence::of(
            "part of the waits that were ended by the thread that ended most of them",
            most,
            "%",
            "wake-ups",
        ),
    ];
    if !spinning.is_empty() {
        f.evidence.insert(
            2,
            facts.share("CPU time of threads that call sched_yield repeatedly", of.spins),
        );
    }
    if !in_user.is_empty() {
        let row = "CPU time of threads that spin in their own code";
        f.evidence.insert(2, Evidence::of(row, facts.pct(in_user_ns), "% of capacity", "samples"));
    }
    f.culprits = culprits;
    f
}
