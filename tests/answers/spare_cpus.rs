//! What holds the work up does not depend on how many CPUs have nothing to do: the same recording,
//! judged as if the machine had twice the CPUs, keeps its class.
//!
//! Four things are left out, because the added CPUs contradict what the recording shows:
//!
//! * threads that run all the time, as many as there are CPUs, are too few for twice the CPUs, if
//!   nothing else holds them up;
//! * threads that queue for CPUs (`cpu-overload`) would not, were others idle. Beside idle CPUs
//!   they look bound, which a verdict may say then;
//! * on one CPU nobody can tell a program with one thread from one with work for more;
//! * recordings of some tasks only, where nobody knows what the CPUs did.

use crate::oracle::changes;
use crate::oracle::corpus;

use holdup_attribution::analyze;
use holdup_diagnose::{Class, Diagnosis, diagnose};
use holdup_passes::Options;
use holdup_testkit::{SpareCpus, needs};

/// Of 100 recordings so many keep their class.
const SAME_PCT: usize = 95;

/// Fixtures that do change. Threads hand each other work and are busy for half of the time: on full
/// CPUs their waits leave none idle and cost nothing. Beside idle ones they look like rivals for
/// the object, since nobody is busy enough to show that they wait for results. A text without
/// system calls has no more than wake-ups to go by. Two threads that spin for a lock all the time
/// are too few for four CPUs; only a replay tells that the lock costs more, and none is made here.
const CHANGE: &[&str] =
    &["fixtures/healthy_pairs_c2/", "fixtures/blocked/mmap.txt", "fixtures/native_spin_lock/"];

/// The story of the verdict.
fn story(d: &Diagnosis) -> &'static str {
    d.findings.iter().find(|f| f.class == d.verdict.class).map_or("", |f| f.story)
}

/// `None` if the recording says nothing about it; `Some(None)` if the class stays.
fn changes(file: &corpus::Recording) -> Option<Option<String>> {
    let reader = holdup_open::open(&file.path).ok()?;
    let analysis = analyze(&*reader, &Options::default()).ok()?;
    let plain = diagnose(reader.info(), &analysis, None);
    let one_cpu = analysis.cpus == 1;
    let in_part = reader.info().system_wide == Some(false);
    if one_cpu || in_part || plain.verdict.class == Class::CpuOverload {
        return None;
    }
    let spare = SpareCpus::added_to(&*reader, analysis.cpus as u16)?;
    let more = analyze(&spare, &Options::default()).expect("as readable as before");
    assert_eq!(more.cpus, analysis.cpus * 2, "{}", file.name);
    let more = diagnose(reader.info(), &more, None);
    let too_few = plain.verdict.class == Class::Healthy && story(&more) == "few-threads";
    let same = plain.verdict.class == more.verdict.class;
    let kept = same || story(&more) == "bound" || too_few;
    let (a, b) = (plain.verdict.class.id(), more.verdict.class.id());
    Some((!kept).then(|| format!("{}: {a}, then {b}: {}", file.name, more.verdict.summary)))
}

#[test]
fn idle_cpus_more_change_no_verdict() {
    changes::assert_that_only_these_change(CHANGE, changes);
}

#[needs(corpus)]
#[test]
fn nor_do_they_in_the_labelled_corpus() {
    changes::assert_that_most_stay(SAME_PCT, changes);
}
