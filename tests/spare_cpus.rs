//! What holds the work up does not depend on how many CPUs have nothing to do: the same recording,
//! judged as if the machine had twice the CPUs, keeps its class.
//!
//! Three things are left out, because the added CPUs contradict what the recording shows:
//!
//! * threads that queue for CPUs (`cpu-overload`) would not, were others idle. Beside idle CPUs
//!   they look bound, which a verdict may say then;
//! * on one CPU nobody can tell a program with one thread from one with work for more;
//! * recordings of some tasks only, where nobody knows what the CPUs did.

#[path = "oracle/corpus.rs"]
#[allow(dead_code)]
mod corpus;

use holdup_attribution::analyze;
use holdup_diagnose::{Class, Diagnosis, diagnose};
use holdup_passes::Options;
use holdup_testkit::{SpareCpus, in_parallel, needs};

/// Of 100 recordings so many keep their class.
const SAME_PCT: usize = 95;

/// Fixtures that do change. Threads hand each other work and are busy for half of the time: on full
/// CPUs their waits leave none idle and cost nothing. Beside idle ones they look like rivals for
/// the object, since nobody is busy enough to show that they wait for results.
const CHANGE: &[&str] = &["fixtures/healthy_pairs_c2/", "fixtures/healthy_pool_c2/"];

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
    let spare = SpareCpus::beside(&*reader, analysis.cpus as u16)?;
    let more = analyze(&spare, &Options::default()).expect("as readable as before");
    assert_eq!(more.cpus, analysis.cpus * 2, "{}", file.name);
    let more = diagnose(reader.info(), &more, None);
    let kept = plain.verdict.class == more.verdict.class || story(&more) == "bound";
    let (a, b) = (plain.verdict.class.id(), more.verdict.class.id());
    Some((!kept).then(|| format!("{}: {a}, then {b}: {}", file.name, more.verdict.summary)))
}

fn over(files: Vec<corpus::Recording>) -> (usize, Vec<String>) {
    let judged: Vec<Option<String>> =
        in_parallel(files, |file| changes(&file)).into_iter().flatten().collect();
    (judged.len(), judged.into_iter().flatten().collect())
}

#[test]
fn idle_cpus_more_change_no_verdict() {
    let fixtures = corpus::all_files().into_iter().filter(|f| f.name.starts_with("fixtures"));
    let (judged, changed) = over(fixtures.collect());
    assert!(judged >= 10, "{judged} fixtures: where are the recordings?");
    let known = |c: &String| CHANGE.iter().any(|name| c.starts_with(name));
    assert!(changed.iter().all(known), "{changed:#?}");
    assert_eq!(changed.len(), CHANGE.len(), "take them off the list: {changed:#?}");
}

#[needs(corpus)]
#[test]
fn nor_do_they_in_the_labelled_corpus() {
    let labelled = corpus::all_files().into_iter().filter(corpus::Recording::is_labelled);
    let (judged, changed) = over(labelled.collect());
    println!("{} of {judged} keep their class; not {changed:#?}", judged - changed.len());
    assert!((judged - changed.len()) * 100 >= judged * SAME_PCT, "of {judged}: {changed:#?}");
}
