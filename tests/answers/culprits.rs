//! The verdict names the thing itself: where the programs say what held them up, it is among the
//! first culprits, under the name that the table of waits has for it, and never a mere system call
//! where that table knows better.

use holdup_attribution::{Attribution, WaitsBy, WaitsRow, analyze};
use holdup_diagnose::{Class, Culprit, Diagnosis, Finding, Role, diagnose};
use holdup_passes::{Analysis, Options};
use holdup_testkit::{corpus, needs};
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::Path;

/// Part of the recordings in which the known object or thread must be a culprit, in per cent.
const NAMED_PCT: usize = 90;
/// Among so many.
const FIRST: usize = 3;

/// A recording of a program that knows what held it up.
struct Case {
    name: String,
    /// Right answers, the truth first; as the labels or as holdup spells them.
    classes: Vec<String>,
    truth: Value,
    analysis: Analysis,
    diagnosis: Diagnosis,
}

impl Case {
    fn read(name: &str, path: &Path, classes: Vec<String>, truth: Value) -> Case {
        let reader = holdup_open::open(path).unwrap_or_else(|e| panic!("{name}: {e}"));
        let analysis =
            analyze(&*reader, &Options::default()).unwrap_or_else(|e| panic!("{name}: {e}"));
        let diagnosis = diagnose(reader.info(), &analysis, None);
        Case { name: name.to_owned(), classes, truth, analysis, diagnosis }
    }

    fn finding(&self) -> Option<&Finding> {
        let class = self.diagnosis.verdict.class;
        self.diagnosis.findings.iter().find(|f| f.class == class && f.ruled_out.is_none())
    }

    /// The truth, as holdup spells it.
    fn class(&self) -> Option<Class> {
        self.classes.first().and_then(|c| class(c))
    }
}

fn class(label: &str) -> Option<Class> {
    let id = label.replace('_', "-");
    Class::from_id(match id.as_str() {
        "kernel-lock" => "kernel-lock-conflict",
        "overload" => "cpu-overload",
        other => other,
    })
}

/// The labelled recordings, one after the other.
fn labelled(mut look: impl FnMut(Case)) {
    let dir = corpus().join("vm");
    let labels = std::fs::read_to_string(dir.join("LABELS.tsv")).expect("labels");
    for line in labels.lines().skip(1) {
        let fields: Vec<&str> = line.split('\t').collect();
        let path = dir.join(fields[0]);
        if path.is_file() {
            let classes = fields[7].split('|').map(str::to_owned).collect();
            let truth = serde_json::from_str(fields.last().expect("fields")).expect("truth");
            look(Case::read(fields[0], &path, classes, truth));
        }
    }
}

/// The recordings kept here.
fn fixtures(mut look: impl FnMut(Case)) {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures");
    let mut scenarios: Vec<_> =
        std::fs::read_dir(dir).expect("fixtures").map(|e| e.expect("fixture").path()).collect();
    scenarios.sort();
    for scenario in scenarios {
        let Ok(truth) = std::fs::read_to_string(scenario.join("truth.json")) else { continue };
        let truth: Value = serde_json::from_str(&truth).expect("truth");
        let classes = [&truth["true_class"]]
            .into_iter()
            .chain(truth["also_right"].as_array().into_iter().flatten())
            .filter_map(|c| c.as_str().map(str::to_owned))
            .collect();
        let name = scenario.display().to_string();
        look(Case::read(&name, &scenario.join("perf.data"), classes, truth));
    }
}

/// Thread ids by place, of the roles or of the workers: `[7, "..", 12]` is a range.
fn tids(truth: &Value) -> Vec<u32> {
    let mut out = Vec::new();
    let roles = truth["roles"].as_object().into_iter().flat_map(|m| m.values());
    for list in roles.filter_map(Value::as_array) {
        let n: Vec<u32> = list.iter().filter_map(Value::as_u64).map(|n| n as u32).collect();
        match (list.iter().any(Value::is_string), n.first(), n.last()) {
            (true, Some(&a), Some(&b)) => out.extend(a..=b),
            _ => out.extend(n),
        }
    }
    let workers = truth["workers"].as_array().into_iter().flatten();
    out.extend(workers.filter_map(|w| w["tid"].as_u64()).map(|n| n as u32));
    out
}

fn server(truth: &Value) -> Option<u32> {
    let of_role = truth["roles"]["server"][0].as_u64();
    let worker = || truth["workers"].as_array()?.iter().find(|w| w["role"] == "server");
    of_role.or_else(|| worker()?["tid"].as_u64()).map(|t| t as u32)
}

/// Whether the culprits have what the program says; `None` where it cannot be told.
fn named(case: &Case, culprits: &[Culprit]) -> Option<bool> {
    let b = &case.truth["bottleneck"];
    let number = |text: &str| u64::from_str_radix(text.strip_prefix("0x")?, 16).ok();
    let address = |key: &str| b[key].as_str().and_then(number);
    let object = |kinds: &[&str], id: &dyn Fn(&str) -> bool| {
        culprits.iter().any(|c| kinds.contains(&c.kind) && id(&c.id))
    };
    let thread = |tid: u32| culprits.iter().any(|c| c.kind == "thread" && c.tid == Some(tid));
    let worker = |place: &Value| tids(&case.truth).get(place.as_u64()? as usize).copied();
    let lock =
        |class: &str| culprits.iter().any(|c| c.kind == "kernel-lock" && c.name.contains(class));
    let any = |_: &str| true;
    let kind = b["kind"].as_str()?;
    let caps = &case.analysis.capabilities;
    if !caps.syscalls.are_any() && case.class() != Some(Class::WorkloadImbalance) {
        return None;
    }
    Some(match kind {
        "pthread mutex" if b["locks"] == 1 => {
            let addr = address("addr");
            object(&["mutex", "pi-mutex"], &|id| number(id) == addr)
        }
        "condition variable broadcast" => {
            let (cond, mutex) = (address("cond")?, address("mutex")?);
            let word =
                |id: &str| number(id).is_some_and(|a| a == mutex || (cond..cond + 48).contains(&a));
            object(&["condvar", "mutex"], &word)
        }
        // The object and the thread that comes late.
        "pthread barrier" => object(&["barrier"], &any) && thread(worker(&b["longest_worker"])?),
        "serial phase" => object(&["barrier"], &any) && thread(worker(&b["worker"])?),
        "single server" => thread(server(&case.truth)?),
        "SysV semaphore" => object(&["semop"], &|id| id == format!("semid {}", b["semid"])),
        "SysV message queue token" => {
            object(&["msgq"], &|id| id == format!("msqid {}", b["msqid"]))
        }
        "file lock (flock)" => object(&["flock"], &any),
        "pipe token ring" => object(&["pipe"], &any),
        "block device" if case.class() == Some(Class::IoBound) => culprits.iter().any(|c| {
            c.kind == "disk" && c.waiters.iter().any(|w| tids(&case.truth).contains(&w.tid))
        }),
        // Only lockdep knows locks by name.
        "mmap_lock of one mm" if caps.lockdep => lock("mmap_lock"),
        k if k.contains("inode rwsem") && caps.lockdep => lock("i_mutex"),
        k if k.contains("f_pos_lock") && caps.lockdep => lock("f_pos_lock"),
        k if k.contains("flush_to_ldisc") => {
            culprits.iter().any(|c| c.name.contains("flush_to_ldisc"))
        }
        // Under load softirqs run in a thread of their own.
        k if k.starts_with("receive softirq") => culprits.iter().any(|c| {
            c.name.contains("NET_RX") || c.name.contains("ksoftirqd") || c.name.contains("napi/")
        }),
        _ => return None,
    })
}

/// What is wrong with the culprits whatever the program did: names that the table of waits does
/// not have, people without end, a system call where an object is known.
fn faults(case: &Case) -> Vec<String> {
    let mut out = Vec::new();
    let waits = Attribution::from(&case.analysis).waits(WaitsBy::Object);
    let rows: BTreeSet<(&str, &str)> =
        waits.iter().map(|r| (r.usage.unwrap_or(r.kind), r.object.as_str())).collect();
    let verdict = case.diagnosis.verdict.class;
    for f in &case.diagnosis.findings {
        for c in &f.culprits {
            let of_waits = !matches!(
                c.role,
                Role::Costs
                    | Role::Spins
                    | Role::Loops
                    | Role::Server
                    | Role::Straggler
                    | Role::Runs
                    | Role::Queued
                    | Role::Throttled
                    | Role::Driver
            );
            // A lock of the kernel may be one that nobody slept for.
            if of_waits && c.kind != "kernel-lock" && !rows.contains(&(c.kind, c.id.as_str())) {
                out.push(format!("{} {} is no row of waits", c.kind, c.id));
            }
            let counted = |people: usize, in_all: Option<u64>| {
                people <= 8 && in_all.map_or(people == 0, |n| n >= people as u64 && n > 0)
            };
            if !counted(c.holders.len(), c.holders_in_all)
                || !counted(c.waiters.len(), c.waiters_in_all)
            {
                out.push(format!("{}: people and their number differ", c.name));
            }
        }
        let known = |r: &&WaitsRow| r.harmful && r.idle_blamed_ns * 2 > f.lost_cpu_ns;
        let calls: Vec<&str> =
            f.culprits.iter().filter(|c| c.kind == "syscall").map(|c| c.name.as_str()).collect();
        if f.class == verdict
            && f.class != Class::MpUpOverhead
            && f.ruled_out.is_none()
            && !calls.is_empty()
            && let Some(row) = waits.iter().find(known)
        {
            out.push(format!("{calls:?} although waits knows {} {}", row.kind, row.object));
        }
    }
    out
}

/// How many of the recordings of a set name what they should.
#[derive(Default)]
struct Score {
    cases: usize,
    named: usize,
    wrong: String,
    faults: String,
}

impl Score {
    fn add(&mut self, case: &Case) {
        for fault in faults(case) {
            self.faults.push_str(&format!("{}: {fault}\n", case.name));
        }
        let verdict = case.diagnosis.verdict.class;
        let is_trouble = !matches!(
            case.class(),
            None | Some(Class::Healthy | Class::CpuOverload | Class::MpUpOverhead)
        );
        // Another right answer has other culprits.
        let other =
            Some(verdict) != case.class() && case.classes.iter().any(|c| class(c) == Some(verdict));
        if !is_trouble || other {
            return;
        }
        let culprits =
            case.finding().map_or(&[][..], |f| &f.culprits[..f.culprits.len().min(FIRST)]);
        let Some(ok) = named(case, culprits) else { return };
        self.cases += 1;
        self.named += ok as usize;
        if !ok {
            let names: Vec<&str> = culprits.iter().map(|c| c.name.as_str()).collect();
            self.wrong.push_str(&format!(
                "{}: {} names {names:?}, not {}\n",
                case.name,
                verdict.id(),
                case.truth["bottleneck"]
            ));
        }
    }

    fn check(&self, least: usize) {
        let Score { cases, named, wrong, faults } = self;
        println!("the thing itself among the first {FIRST} culprits: {named} of {cases}\n{wrong}");
        assert!(faults.is_empty(), "{faults}");
        assert!(*cases >= least, "{cases} cases");
        assert!(named * 100 >= cases * NAMED_PCT, "{named} of {cases}\n{wrong}");
    }
}

#[test]
fn fixtures_name_the_thing_itself() {
    let mut score = Score::default();
    fixtures(|case| score.add(&case));
    score.check(6);
}

#[needs(corpus)]
#[test]
fn labelled_recordings_name_the_thing_itself() {
    let mut score = Score::default();
    labelled(|case| score.add(&case));
    score.check(45);
}
