//! A glance claims nothing that reading the whole file refutes, and says n/a where it cannot know.

use holdup_testkit::needs;
use holdup_trace::{Glance, Reader};
use std::path::{Path, PathBuf};

/// The glance of the format's reader, regardless of the file's size.
fn glance(path: &Path) -> Option<Glance> {
    let head = std::fs::read(path).unwrap();
    if holdup_perfdata::sniff(&head) {
        holdup_perfdata::glance(path).ok()
    } else if holdup_tracedat::sniff(&head) {
        holdup_tracedat::glance(path).ok()?
    } else {
        holdup_ftracetext::TextOptions::default().glance(path).ok()?
    }
}

/// Where a glance and the whole file contradict each other.
fn contradictions(glance: &Glance, whole: &dyn Reader) -> Vec<String> {
    let mut found = Vec::new();
    let (quick, info) = (&glance.info, whole.info());
    let mut differ = |what: &str, quick: &dyn std::fmt::Debug, whole: &dyn std::fmt::Debug| {
        found.push(format!("{what}: {quick:?}, in fact {whole:?}"));
    };
    if quick.format != info.format {
        differ("format", &quick.format, &info.format);
    }
    if quick.span.is_some() && quick.span != info.span {
        differ("span", &quick.span, &info.span);
    }
    if glance.all_tasks && quick.tasks.len() != info.tasks.len() {
        differ("threads", &quick.tasks.len(), &info.tasks.len());
    }
    if quick.system_wide.is_some() && quick.system_wide != info.system_wide {
        differ("system-wide", &quick.system_wide, &info.system_wide);
    }
    if (&quick.cpus_online, &quick.hostname, &quick.cmdline)
        != (&info.cpus_online, &info.hostname, &info.cmdline)
    {
        differ("machine", &quick.hostname, &info.hostname);
    }
    let promised = glance.listed.as_ref().map(|l| l.list());
    for (i, (name, seen, _)) in quick.capabilities.list().into_iter().enumerate() {
        let there = info.capabilities.list()[i].1;
        if seen && !there {
            differ(name, &"seen", &there);
        }
        if promised.as_ref().is_some_and(|l| !l[i].1) && there {
            differ(name, &"not listed", &there);
        }
    }
    // An event that occurs without description has no name before it is seen.
    let name = |e: &holdup_trace::EventDesc| e.name.clone();
    let known: Vec<String> = quick.events.iter().map(name).collect();
    let there: Vec<String> = info.events.iter().map(name).collect();
    let unnamed = |n: &String| n.starts_with("unknown event");
    if !known.iter().all(|n| there.contains(n))
        || glance.all_kinds && !there.iter().all(|n| known.contains(n) || unnamed(n))
    {
        differ("kinds of events", &known, &there);
    }
    found
}

/// Compare every trace below `folders`; returns how many there were, and how many had a span.
#[track_caller]
fn check_all(folders: &[PathBuf]) -> (usize, usize) {
    let (mut checked, mut spans, mut failures) = (0, 0, Vec::new());
    let mut todo = folders.to_vec();
    while let Some(path) = todo.pop() {
        if path.is_dir() {
            todo.extend(std::fs::read_dir(&path).unwrap().map(|e| e.unwrap().path()));
            continue;
        }
        let Some(glance) = glance(&path) else { continue };
        let Ok(whole) = holdup_open::open(&path) else { continue };
        checked += 1;
        spans += glance.info.span.is_some() as usize;
        let found = contradictions(&glance, &*whole);
        failures.extend(found.into_iter().map(|f| format!("{}: {f}", path.display())));
    }
    assert!(failures.is_empty(), "{failures:#?}");
    (checked, spans)
}

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures")
}

#[test]
fn the_whole_file_refutes_no_glance_at_a_fixture() {
    let (checked, spans) = check_all(&[fixtures()]);
    assert!(checked > 40 && spans > 20, "{checked} checked, {spans} with a span");
}

#[test]
fn no_damage_crashes_a_glance() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("trace");
    let dat = fixtures().join("tracedat-small/imb_single_c2.trace.dat.zst");
    let dat = zstd::decode_all(std::fs::File::open(dat).unwrap()).unwrap();
    let perf = std::fs::read(fixtures().join("healthy_cpu_threads_c4/perf.data")).unwrap();
    let mut answers = 0;
    let mut try_it = |bytes: &[u8]| {
        std::fs::write(&path, bytes).unwrap();
        answers += glance(&path).is_some() as usize;
    };
    let mut random = 1u64;
    for whole in [&perf, &dat] {
        for cut in (0..200).chain((200..whole.len()).step_by(whole.len() / 60)) {
            try_it(&whole[..cut]);
        }
        for _ in 0..200 {
            let mut bytes = whole.clone();
            for i in 0..8 {
                random = random.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                // Mostly change the tables, at the beginning and the end.
                let near = (random >> 33) as usize % if i < 6 { 2048 } else { bytes.len() };
                let at = if i % 2 == 0 { near } else { bytes.len() - 1 - near };
                bytes[at] = (random >> 24) as u8;
            }
            try_it(&bytes);
        }
    }
    assert!(answers > 100, "{answers} answers: the damage is too heavy to test anything");
}

#[needs(corpus)]
#[test]
fn the_whole_file_refutes_no_glance_at_other_peoples_files() {
    let (checked, spans) = check_all(&[holdup_testkit::corpus().join("public")]);
    assert!(checked > 30 && spans > 3, "{checked} checked, {spans} with a span");
}
