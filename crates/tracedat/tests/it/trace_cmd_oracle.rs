//! Every trace.dat of the corpus must read as `trace-cmd report -t -R` prints it: the sequence of
//! (time, CPU, pid, event) with the losses in between, and the fields of every event holdup
//! understands.

use holdup_testkit::{corpus, needs};
use holdup_trace::What;
use std::path::Path;
use std::process::Command;

/// A trace.dat on disk, decompressed if it has to be.
fn unpacked(path: &Path, dir: &Path) -> std::path::PathBuf {
    if path.extension().is_none_or(|e| e != "zst") {
        return path.to_owned();
    }
    let out = dir.join("trace.dat");
    let mut file = std::fs::File::create(&out).unwrap();
    zstd::stream::copy_decode(std::fs::File::open(path).unwrap(), &mut file).unwrap();
    out
}

#[needs(trace_cmd, corpus)]
#[test]
fn every_trace_of_the_corpus_reads_as_trace_cmd_reads_it() {
    let corpus = corpus();
    let files = crate::support::files(corpus, &["trace.dat.zst", "trace.dat"]);
    assert!(files.len() >= 70, "the corpus has {} trace.dat", files.len());
    let judged = holdup_testkit::in_parallel(files, |path| {
        let dir = tempfile::tempdir().unwrap();
        let file = unpacked(&path, dir.path());
        let result = match holdup_tracedat::open(&file) {
            Ok(dat) => crate::support::compare(&dat, &file),
            Err(e) => Err(e.to_string()),
        };
        result.map_err(|e| format!("{}: {e}", path.strip_prefix(corpus).unwrap().display()))
    });
    let all = judged.len();
    let failed: Vec<String> = judged.into_iter().filter_map(Result::err).collect();
    assert!(failed.is_empty(), "{} of {all} differ: {failed:#?}", failed.len());
}

/// Kernels of 2014 to 2016, whose bits 0x40 and 0x80 are `x` and `K`, not `P` and `I`.
#[needs(trace_cmd, corpus)]
#[test]
fn states_have_the_letters_of_the_files_own_kernel() {
    let mut old = 0;
    for path in crate::support::files(&corpus().join("public"), &["trace.dat"]) {
        let Ok(dat) = holdup_tracedat::open(&path) else { continue };
        // Without plug-ins, which print other letters.
        let report = Command::new("trace-cmd").args(["report", "-N", "-i"]).arg(&path).output();
        let report = String::from_utf8_lossy(&report.unwrap().stdout).into_owned();
        let theirs: Vec<&str> = report
            .lines()
            .filter_map(|l| l.split_once(" prev_state=")?.1.split_once(" ==>"))
            .map(|(state, _)| state)
            .collect();
        let (states, _) = crate::support::events(&dat, |_, e, _| match e.what {
            What::Switch { prev_state, .. } => Some(prev_state.to_string()),
            _ => None,
        });
        let ours: Vec<String> = states.into_iter().flatten().collect();
        assert_eq!(ours, theirs, "{}", path.display());
        old += ours.iter().filter(|s| *s == "x" || *s == "D|K").count();
    }
    assert!(old >= 28, "{old} letters of old kernels");
}
