//! The article's heuristics as a walk: one question after the other, each with its figures.
//!
//! ```text
//!  busy? ──► user or system? ──► which threads
//!    │              ├──► which system call? ──► which lock?
//!    │              └──► which driver, on which CPU?
//!    └──► disk, network, paging? ──► which event? ──► who waits for whom?
//! ```
//!
//! The walk is data: all questions with their branches, one of them recommended and why. Where the
//! figures of a question leave it open, the branch that leads to the verdict is recommended, so
//! that who follows all recommendations arrives at what `diagnose` says. Whoever takes another
//! branch arrives at the rule that judges it, and reads there why it does not hold.

use crate::Beside;
use crate::facts::Facts;
use crate::phases::{Judged, PhaseRow};
use crate::report::{Class, Diagnosis};
use crate::rules;
use holdup_attribution::{Leaf, Thresholds, Total, thresholds};
use holdup_passes::{Analysis, Cause};
use holdup_syscalls::{WaitKind, wait_kind};
use holdup_trace::{Calls, TraceInfo};
use serde::{Serialize, Serializer};

thresholds! {
    UNACCOUNTED_SHOWN = "guide.unaccounted_pct", 0.5, "% of capacity",
        meaning: "capacity that is not accounted for is shown from here on",
        source: "half of the last digit that the walk shows of large figures";
    ASLEEP = "guide.asleep_threads", 0.01, "threads",
        meaning: "with fewer asleep for each other on average the walk leads to 'no more work'",
        source: "one thread for a hundredth of the time";
}

/// A walk and what it ends in.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Walk {
    /// Every question; the first is where the walk begins.
    pub questions: Vec<Question>,
    /// The report at its end.
    #[serde(skip)]
    pub diagnosis: Diagnosis,
}

/// A fork.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Question {
    /// What branches name it by.
    pub id: &'static str,
    /// The question.
    pub text: String,
    /// What is known about it.
    pub figures: Vec<Figure>,
    /// Where one can go.
    pub branches: Vec<Branch>,
    /// Index of the recommended branch.
    pub recommended: usize,
    /// Tables that show more, by the verb that prints them.
    pub tables: &'static [&'static str],
}

/// A figure at a fork.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Figure {
    /// What.
    pub label: String,
    /// How much; `null` where the trace cannot say.
    pub value: Option<f64>,
    /// Of what.
    pub unit: &'static str,
}

/// A way on.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Branch {
    /// The answer that it stands for.
    pub answer: String,
    /// What speaks for it.
    pub why: String,
    /// Where it leads.
    pub to: To,
}

/// The end of a branch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(with = "String", inline))]
pub enum To {
    /// Another question.
    Question(&'static str),
    /// The rule that judges this class, and with it the report.
    Class(Class),
}

impl Serialize for To {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        match self {
            To::Question(id) => s.serialize_str(id),
            To::Class(class) => s.serialize_str(class.id()),
        }
    }
}

impl Walk {
    /// The question with this id.
    pub fn question(&self, id: &str) -> Option<&Question> {
        self.questions.iter().find(|q| q.id == id)
    }

    /// The questions on the way of all recommendations, and the class at its end.
    pub fn recommended(&self) -> (Vec<&Question>, Class) {
        let mut way = Vec::new();
        let mut at = self.questions.first();
        while let Some(q) = at.filter(|_| way.len() < self.questions.len()) {
            way.push(q);
            match q.branches[q.recommended].to {
                To::Class(class) => return (way, class),
                To::Question(id) => at = self.question(id),
            }
        }
        (way, self.diagnosis.verdict.class)
    }

    /// Whether a walk from here may end at `class`.
    fn leads(questions: &[Question], to: To, class: Class) -> bool {
        match to {
            To::Class(c) => c == class,
            // Questions only lead to later ones: this ends.
            To::Question(id) => {
                let q = questions.iter().find(|q| q.id == id);
                q.is_some_and(|q| q.branches.iter().any(|b| Walk::leads(questions, b.to, class)))
            }
        }
    }
}

/// Build the walk through a trace.
pub fn walk(info: &TraceInfo, analysis: &Analysis, thresholds: Thresholds) -> Walk {
    of(&Facts::with(info, analysis, None, thresholds), Vec::new())
}

/// The same through the part of a trace that the verdict is about.
pub fn walk_judged(
    info: &TraceInfo,
    judged: &Judged,
    beside: Beside<'_>,
    thresholds: Thresholds,
) -> Walk {
    let mut facts = Facts::beside(info, &judged.analysis, beside, thresholds);
    facts.left_out_ns = judged.left_out_ns;
    let mut walk = of(&facts, judged.phases.clone());
    walk.diagnosis.verdict.gain = judged.gain(&walk.diagnosis);
    walk
}

fn of(facts: &Facts<'_>, phases: Vec<PhaseRow>) -> Walk {
    let diagnosis = Diagnosis { phases, ..crate::judge(facts) };
    let mut questions = vec![
        busy(facts),
        mode(facts),
        threads(facts),
        calls(facts),
        locks(facts),
        driver(facts),
        idle(facts),
        event(facts),
        who(facts),
    ];
    let class = diagnosis.verdict.class;
    for i in 0..questions.len() {
        let leads: Vec<bool> =
            questions[i].branches.iter().map(|b| Walk::leads(&questions, b.to, class)).collect();
        let q = &mut questions[i];
        if let (false, Some(other)) = (leads[q.recommended], leads.iter().position(|&l| l)) {
            q.recommended = other;
        }
    }
    Walk { questions, diagnosis }
}

fn figure(label: impl Into<String>, value: f64, unit: &'static str) -> Figure {
    Figure { label: label.into(), value: Some((value * 100.0).round() / 100.0), unit }
}

fn unknown(label: impl Into<String>, unit: &'static str) -> Figure {
    Figure { label: label.into(), value: None, unit }
}

fn branch(answer: impl Into<String>, why: impl Into<String>, to: To) -> Branch {
    Branch { answer: answer.into(), why: why.into(), to }
}

/// Index of the largest; the first of equal ones.
fn largest(values: &[f64]) -> usize {
    let mut best = 0;
    for (i, v) in values.iter().enumerate() {
        if *v > values[best] {
            best = i;
        }
    }
    best
}

const OF_CAPACITY: &str = "% of capacity";

fn busy(f: &Facts<'_>) -> Question {
    let (busy, idle) = (f.total_pct(Total::Busy), f.total_pct(Total::Idle));
    let sar = f.analysis.sar(false);
    let mut figures = vec![
        figure("CPUs", f64::from(f.analysis.cpus), ""),
        figure("busy", busy, OF_CAPACITY),
        figure("idle", idle, OF_CAPACITY),
        figure("threads running or ready, on average", f.queue, "threads"),
    ];
    let unseen = f.pct(f.unseen());
    if unseen >= f.limit(&UNACCOUNTED_SHOWN) {
        figures.push(figure("not accounted for", unseen, OF_CAPACITY));
    }
    match sar.first().and_then(|s| s.cswch_per_s) {
        Some(rate) => figures.push(figure("context switches", rate, "1/s")),
        None => figures.push(unknown("context switches", "1/s")),
    }
    Question {
        id: "busy",
        text: "Are the CPUs busy?".to_owned(),
        figures,
        branches: vec![
            branch(
                "yes: see what they do",
                format!("{busy:.0} % of capacity is used"),
                To::Question("mode"),
            ),
            branch(
                "no: see what threads wait for",
                format!("{idle:.0} % of capacity is idle"),
                To::Question("idle"),
            ),
        ],
        recommended: usize::from(busy < idle),
        tables: &["cpus"],
    }
}

fn mode(f: &Facts<'_>) -> Question {
    let driver = f.leaf_pct(Leaf::Kthreads) + f.leaf_pct(Leaf::Irq) + f.leaf_pct(Leaf::Softirq);
    let user = f.pct(f.application());
    let application = match f.caps.syscalls.chosen() {
        Some(_) => "application code, or calls that were not recorded",
        None => "application code",
    };
    let kernel = f.total_pct(Total::Kernel) + f.leaf_pct(Leaf::Spin);
    Question {
        id: "mode",
        text: "User or system?".to_owned(),
        figures: vec![
            figure(application, user, OF_CAPACITY),
            match &f.caps.syscalls {
                Calls::All => figure("system calls", kernel, OF_CAPACITY),
                Calls::Chosen(_) => figure("recorded system calls", kernel, OF_CAPACITY),
                Calls::None => unknown("system calls", OF_CAPACITY),
            },
            figure("kernel threads", f.leaf_pct(Leaf::Kthreads), OF_CAPACITY),
            figure(
                "interrupts and softirqs",
                f.leaf_pct(Leaf::Irq) + f.leaf_pct(Leaf::Softirq),
                OF_CAPACITY,
            ),
        ],
        branches: vec![
            branch(
                "user: which threads?",
                format!("applications use {user:.0} % of capacity"),
                To::Question("threads"),
            ),
            branch(
                "system: which system call?",
                format!("system calls use {kernel:.0} % of capacity"),
                To::Question("calls"),
            ),
            branch(
                "the kernel's own work: which driver?",
                format!("threads and interrupts of the kernel use {driver:.0} % of capacity"),
                To::Question("driver"),
            ),
        ],
        recommended: largest(&[user, kernel, driver]),
        tables: &["cpus", "procs", "syscalls"],
    }
}

fn threads(f: &Facts<'_>) -> Question {
    let cpus = f64::from(f.analysis.cpus.max(1));
    let of_one = |ns: u64| ns as f64 * 100.0 / f.wall.max(1) as f64;
    let mut figures: Vec<Figure> = f
        .workers
        .iter()
        .take(4)
        .map(|w| figure(f.name(w.0), of_one(w.1), "% of one CPU"))
        .collect();
    let full = f.workers.iter().filter(|w| of_one(w.1) >= f.limit(&rules::DOMINANT)).count();
    figures.push(figure(
        format!("threads that use {} % of a CPU or more", f.limit(&rules::DOMINANT)),
        full as f64,
        "threads",
    ));
    figures.push(figure("threads running or ready, per CPU", f.queue / cpus, "threads"));
    let queued = f.queue / cpus >= f.limit(&rules::QUEUE);
    let mut q = Question {
        id: "threads",
        text: "Which threads use it, and is there a CPU for each?".to_owned(),
        figures,
        branches: vec![
            branch(
                "there are more threads than CPUs",
                format!("{:.1} threads want {cpus} CPUs", f.queue),
                To::Class(Class::CpuOverload),
            ),
            branch(
                "few threads do all the work",
                format!("{full} of {cpus} CPUs have a thread that fills them"),
                To::Class(Class::WorkloadImbalance),
            ),
            branch(
                "the work is spread and gets done",
                format!("CPUs are {:.0} % busy", f.busy()),
                To::Class(Class::Healthy),
            ),
        ],
        recommended: if queued {
            0
        } else if full > 0 && full as f64 <= cpus / 2.0 {
            1
        } else {
            2
        },
        tables: &["procs", "switches"],
    };
    let slow = rules::hardware_bandwidth(f);
    let why = slow.ruled_out.unwrap_or(slow.summary);
    q.branches.push(branch(
        "they work, but each slower than alone: memory, caches",
        why,
        To::Class(Class::HardwareBandwidth),
    ));
    q
}

fn calls(f: &Facts<'_>) -> Question {
    let mut calls: Vec<_> =
        f.judged.calls.iter().filter_map(|c| Some((c, c.cpu_ns?))).filter(|c| c.1 > 0).collect();
    calls.sort_by(|a, b| b.1.cmp(&a.1).then(a.0.nr.cmp(&b.0.nr)));
    let mut figures = Vec::new();
    for (c, ns) in calls.iter().take(4) {
        figures.push(figure(
            format!("{}: {} calls, {} us each", c.name, c.count, c.avg_ns / 1000),
            f.pct(*ns),
            OF_CAPACITY,
        ));
    }
    if calls.is_empty() {
        figures.push(unknown("system calls (not recorded, or none)", OF_CAPACITY));
    }
    let of = |wanted: &dyn Fn(WaitKind) -> bool| {
        f.pct(calls.iter().filter(|c| wanted(wait_kind(&c.0.name))).map(|c| c.1).sum())
    };
    let (services, library) = (of(&WaitKind::is_service), of(&WaitKind::is_library));
    // Who yields to wait does so in the call and around it.
    let spin = f.leaf_pct(Leaf::Spin);
    let others = (of(&|k| !k.takes_turns()) - spin).max(0.0);
    let mut q = Question {
        id: "calls",
        text: "Which system calls?".to_owned(),
        figures,
        branches: vec![
            branch(
                "semaphores, message queues, file locks",
                format!("they use {services:.1} % of capacity"),
                To::Question("who"),
            ),
            branch(
                "the threads library's (futex)",
                format!("they use {library:.1} % of capacity"),
                To::Question("who"),
            ),
            branch(
                "others: do they wait for a lock of the kernel?",
                format!("they use {others:.1} % of capacity"),
                To::Question("locks"),
            ),
        ],
        recommended: largest(&[services, library, others, spin]),
        tables: &["syscalls"],
    };
    if spin > 0.0 {
        q.branches.push(branch(
            "sched_yield, again and again, to wait for each other",
            format!("it uses {spin:.1} % of capacity, the code between the calls included"),
            To::Question("who"),
        ));
    }
    q
}

fn locks(f: &Facts<'_>) -> Question {
    let mut figures = Vec::new();
    let excess = f.pct(f.judged.contended.iter().map(|c| c.lost_ns).sum());
    figures.push(figure("CPU time of system calls beyond their own work", excess, OF_CAPACITY));
    for c in
        f.judged.contended.iter().take(3).filter(|c| f.pct(c.lost_ns) >= f.limit(&rules::NAMED))
    {
        figures.push(figure(
            format!("{}: mean cost against its own work", c.name),
            c.mean_ns as f64 / c.own_ns.max(1) as f64,
            "times",
        ));
    }
    let asleep = f.leaf_pct(Leaf::KernelLocks);
    figures.push(figure("idle while threads slept for kernel locks", asleep, OF_CAPACITY));
    if !f.caps.contention {
        figures.push(unknown(
            "contended locks (not recorded: lock:contention_begin,lock:contention_end)",
            "1/s",
        ));
    }
    let cost = excess + asleep;
    let scale = f.capacity as f64 / f.wanted().max(1) as f64;
    Question {
        id: "locks",
        text: "Do they wait for a lock of the kernel?".to_owned(),
        figures,
        branches: vec![
            branch(
                "yes: the same call costs more when others are in the kernel",
                format!("{cost:.0} % of capacity"),
                To::Class(Class::KernelLockConflict),
            ),
            branch(
                "no: that is what the calls cost",
                format!("only {cost:.0} % of capacity depends on company"),
                To::Class(Class::Healthy),
            ),
        ],
        recommended: usize::from(cost * scale < f.limit(&rules::MATTERS)),
        tables: &["locks", "syscalls", "switches"],
    }
}

fn driver(f: &Facts<'_>) -> Question {
    let rows = f.analysis.cpu_rows();
    let work = |r: &holdup_passes::CpuRow| {
        r.kthread_ns + r.irq_ns.unwrap_or(0) + r.softirq_ns.unwrap_or(0)
    };
    let all: u64 = rows.iter().map(work).sum();
    let mut sorted: Vec<_> = rows.iter().map(|r| (r.cpu, work(r))).collect();
    sorted.sort_by_key(|r| (std::cmp::Reverse(r.1), r.0));
    let mut figures: Vec<Figure> = sorted
        .iter()
        .take(3)
        .map(|(cpu, ns)| {
            figure(
                format!("driver work on CPU {cpu}"),
                *ns as f64 * 100.0 / f.wall.max(1) as f64,
                "% of its time",
            )
        })
        .collect();
    let part = sorted.first().map_or(0.0, |r| r.1 as f64 * 100.0 / all.max(1) as f64);
    figures.push(figure("part of all such work on the first of them", part, "%"));
    let holds = rows.len() > 1
        && part >= f.limit(&rules::CONCENTRATED)
        && sorted
            .first()
            .is_some_and(|r| r.1 as f64 * 100.0 >= f.limit(&rules::SATURATED) * f.wall as f64);
    Question {
        id: "driver",
        text: "Is the kernel's own work confined to one CPU?".to_owned(),
        figures,
        branches: vec![
            branch(
                "yes: one CPU does most of it",
                format!("{part:.0} % of it is on one CPU"),
                To::Class(Class::FunneledDriver),
            ),
            branch(
                "no: it is spread; is it for a disk?",
                format!("the busiest CPU does {part:.0} % of it"),
                To::Class(Class::IoBound),
            ),
            branch(
                "no: it is spread, and gets done",
                format!("the busiest CPU does {part:.0} % of it"),
                To::Class(Class::Healthy),
            ),
        ],
        recommended: if holds { 0 } else { 2 },
        tables: &["irqs", "cpus", "procs"],
    }
}

fn idle(f: &Facts<'_>) -> Question {
    let io = f.leaf_pct(Leaf::Io);
    let decides = f.wanted_pct(f.leaf(Leaf::Io)) >= f.limit(&rules::MATTERS);
    let (waited, by_call) = f.waiting_for(Cause::Io);
    let mut figures = vec![
        figure("idle while threads waited for disks", io, OF_CAPACITY),
        figure(
            "threads asleep for disks, on average",
            waited as f64 / f.wall.max(1) as f64,
            "threads",
        ),
    ];
    if let Some((call, ns)) = by_call.first() {
        figures.push(figure(
            format!("most of it in {call}"),
            *ns as f64 * 100.0 / waited.max(1) as f64,
            "%",
        ));
    }
    // A wait for the disk outside any system call is a page fault's.
    let paging = f.faulting(Cause::Io);
    if let Some(paging) = paging {
        figures.push(figure(
            "threads asleep for pages (faults that went to a disk)",
            paging as f64 / f.wall.max(1) as f64,
            "threads",
        ));
    }
    let (network, _) = f.waiting_for(Cause::External);
    figures.push(figure(
        "threads asleep for network, terminal or timers",
        network as f64 / f.wall.max(1) as f64,
        "threads",
    ));
    let paged = paging.is_some_and(|paging| paging * 2 > waited);
    Question {
        id: "idle",
        text: "Is it no problem of a multiprocessor: disk, paging, network?".to_owned(),
        figures,
        branches: vec![
            branch(
                "disk or paging",
                format!(
                    "{io:.0} % of capacity is idle for {}",
                    if paged { "pages" } else { "disks" }
                ),
                To::Class(Class::IoBound),
            ),
            branch(
                "one CPU does all driver work",
                format!("kernel threads use {:.0} % of capacity", f.leaf_pct(Leaf::Kthreads)),
                To::Question("driver"),
            ),
            branch(
                "none of these: threads wait for events",
                format!("disks explain {io:.0} % of capacity"),
                To::Question("event"),
            ),
        ],
        recommended: if decides { 0 } else { 2 },
        tables: &["syscalls", "irqs"],
    }
}

fn event(f: &Facts<'_>) -> Question {
    let parts = [
        Leaf::ThreadSync,
        Leaf::KernelServices,
        Leaf::KernelLocks,
        Leaf::OneServer,
        Leaf::Throttled,
        Leaf::Scheduler,
        Leaf::NoWork,
    ];
    let pct: Vec<f64> = parts.iter().map(|&leaf| f.leaf_pct(leaf)).collect();
    let why = |pct: f64| format!("{pct:.0} % of capacity is idle for it");
    let to = |leaf: Leaf| match leaf {
        Leaf::KernelLocks => To::Class(Class::KernelLockConflict),
        Leaf::Throttled => To::Class(Class::CpuQuota),
        Leaf::Scheduler => To::Class(Class::WorkloadImbalance),
        _ => To::Question("who"),
    };
    Question {
        id: "event",
        text: "For which event do threads wait while CPUs are idle?".to_owned(),
        figures: parts.iter().zip(&pct).map(|(l, v)| figure(l.title(), *v, OF_CAPACITY)).collect(),
        branches: parts.iter().zip(&pct).map(|(l, v)| branch(l.title(), why(*v), to(*l))).collect(),
        recommended: largest(&pct),
        tables: &["waits", "syscalls", "switches"],
    }
}

fn who(f: &Facts<'_>) -> Question {
    let mut figures = Vec::new();
    if let Some(s) = f.judged.server {
        figures.push(figure(
            format!("{}: running or ready", f.name(s.slot)),
            s.busy_pct(),
            "% of its life",
        ));
        figures.push(figure("waiting time of others that it ended", s.ended_pct(), "%"));
    } else if let Some((slot, ns)) = f.workers.first() {
        figures.push(figure(
            format!("longest running: {}", f.name(*slot)),
            *ns as f64 * 100.0 / f.wall.max(1) as f64,
            "% of one CPU",
        ));
    }
    let mut weight = [0.0, 0.0];
    for (i, (cause, what)) in
        [(Cause::KernelService, "kernel services"), (Cause::ThreadSync, "the threads library")]
            .into_iter()
            .enumerate()
    {
        let (waited, _) = f.waiting_for(cause);
        let (wakers, most) = f.wakers(cause);
        weight[i] = waited as f64 / f.wall.max(1) as f64;
        figures.push(figure(format!("threads asleep in {what}, on average"), weight[i], "threads"));
        if waited > 0 {
            figures.push(figure(
                "  different threads that ended those waits",
                wakers as f64,
                "threads",
            ));
            figures.push(figure("  largest part ended by one of them", most, "%"));
        }
    }
    let server = f.judged.server.map(|s| f.name(s.slot));
    Question {
        id: "who",
        text: "Who waits for whom?".to_owned(),
        figures,
        branches: vec![
            branch(
                "all for one thread, or nobody: the others have no work",
                server.as_ref().map_or("no single thread ends most waits".to_owned(), |s| {
                    format!("{s} ends most waits and is busy itself")
                }),
                To::Class(Class::WorkloadImbalance),
            ),
            branch(
                "they take turns at a kernel service (semaphore, queue, file lock, pipe)",
                format!("{:.1} threads sleep there on average", weight[0]),
                To::Class(Class::ApplicationSerialization),
            ),
            branch(
                "they take turns at an object of the threads library",
                format!("{:.1} threads sleep there on average", weight[1]),
                To::Class(Class::ThreadSerialization),
            ),
            branch(
                "nobody waits for anybody: there is no more work",
                format!("CPUs are {:.0} % busy", f.busy()),
                To::Class(Class::Healthy),
            ),
        ],
        recommended: if server.is_some() {
            0
        } else {
            [1, 2, 3][largest(&[weight[0], weight[1], f.limit(&ASLEEP)])]
        },
        tables: &["waits", "syscalls", "procs"],
    }
}
