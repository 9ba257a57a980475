//! The dialects of `trace-cmd report` give the same events, and so does the kernel's own text.

use crate::common::{all, assert_same, inflate, output, row};
use holdup_ftracetext::{DialectKind, TextTrace, open, open_stream};
use holdup_testkit::{corpus, needs};
use holdup_trace::{Quality, QualityCode, Reader};
use std::path::Path;

fn report(data: &Path, options: &[&str]) -> TextTrace {
    let mut args = vec!["report"];
    args.extend(options);
    args.extend(["-i", data.to_str().unwrap()]);
    let text = output("trace-cmd", &args);
    let trace =
        open_stream(Path::new(&options.join(" ")), &text[..]).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(trace.dialect().kind, DialectKind::Report);
    trace
}

/// trace-cmd's own rendering of sched_switch does not distinguish `R+` from `R`.
fn without_plus(rows: Vec<String>) -> Vec<String> {
    rows.into_iter().map(|r| r.replace(" R+ ", " R ")).collect()
}

fn without_time(rows: Vec<String>) -> Vec<String> {
    rows.into_iter().map(|r| r.split_once(' ').map_or(String::new(), |s| s.1.to_owned())).collect()
}

#[needs(trace_cmd, corpus)]
#[test]
fn every_dialect_of_trace_cmd_tells_the_same() {
    let corpus = corpus().join("vm");
    let dir = tempfile::tempdir().unwrap();
    for file in [
        "debian61/kern_mmap_c4.trace.dat.zst",
        "debian61/drv_loop_wq_cpu0_c4.trace.dat.zst",
        "debian61/thr_mutex_tctsc_c8.trace.dat.zst",
        "lockstat612/ls_kern_mmap_c4.trace.dat.zst",
    ] {
        let tsc = file.contains("tsc");
        let sound =
            |quality: &Quality| quality.entries().iter().all(|q| tsc && q.code == "tick-clock");
        let data = inflate(&corpus.join(file), dir.path());
        let plain = report(&data, &["-t", "-N"]);
        let (want, quality) = all(&plain, &row);
        assert!(sound(&quality), "{file}: {quality:?}");
        assert_eq!(plain.event_count(), want.len() as u64);
        assert!(
            plain.info().capabilities.switches && plain.info().capabilities.syscalls.are_all(),
            "{file}"
        );

        let (raw, quality) = all(&report(&data, &["-t", "-R"]), &row);
        assert!(sound(&quality), "{file} -R: {quality:?}");
        assert_same(&format!("{file}: -R against -N"), raw, want.clone());

        let want = without_plus(want);
        for options in [&["-t"][..], &["-t", "-l"]] {
            let (got, quality) = all(&report(&data, options), &row);
            assert!(sound(&quality), "{file} {options:?}: {quality:?}");
            assert_same(
                &format!("{file}: {options:?} against -N"),
                without_plus(got),
                want.clone(),
            );
        }
        for options in [&[][..], &["-l"], &["--ts-diff"]] {
            let micro = report(&data, options);
            let (got, quality) = all(&micro, &row);
            assert_eq!(
                quality.count(QualityCode::MicrosecondClock),
                u64::from(!tsc),
                "{file} {options:?}"
            );
            assert_eq!(
                quality.count(QualityCode::UnreadableLines)
                    + quality.count(QualityCode::MissingField),
                0
            );
            assert_eq!(micro.info().clock.resolution_ns, if tsc { 1 } else { 1000 });
            assert_same(
                &format!("{file}: {options:?}"),
                without_time(without_plus(got)),
                without_time(want.clone()),
            );
        }
        std::fs::remove_file(data).unwrap();
    }
}

fn compare_with_binary(file: &Path, dir: &Path) {
    let data = inflate(file, dir);
    let binary = holdup_tracedat::open(&data).unwrap_or_else(|e| panic!("{e}"));
    let (b, _) = all(&binary, &row);
    let (a, quality) = all(&report(&data, &["-t", "-N"]), &row);
    let file = file.display().to_string();
    assert_eq!(
        quality.count(QualityCode::UnreadableLines) + quality.count(QualityCode::MissingField),
        0,
        "{file}: {quality:?}"
    );
    assert_same(&file, a, b);
    let (a, _) = all(&report(&data, &["-t"]), &row);
    let (b, _) = all(&binary, &row);
    assert_same(&file, without_plus(a), without_plus(b));
    std::fs::remove_file(data).unwrap();
}

#[needs(trace_cmd, corpus)]
#[test]
fn text_and_binary_tell_the_same() {
    let corpus = corpus().join("vm");
    let dir = tempfile::tempdir().unwrap();
    for file in ["debian61/kern_mmap_c4.trace.dat.zst", "lockstat612/ls_kern_mmap_c4.trace.dat.zst"]
    {
        compare_with_binary(&corpus.join(file), dir.path());
    }
}

#[needs(trace_cmd, corpus)]
#[test]
fn text_and_binary_tell_the_same_of_every_recording() {
    let files = crate::common::files(&corpus().join("vm"), ".trace.dat.zst");
    assert!(!files.is_empty());
    holdup_testkit::in_parallel(files, |file| {
        compare_with_binary(&file, tempfile::tempdir().unwrap().path());
    });
}

#[needs(trace_cmd, corpus)]
#[test]
fn reports_of_several_files_name_each() {
    let corpus = corpus().join("vm");
    let dir = tempfile::tempdir().unwrap();
    let a = inflate(&corpus.join("debian61/kern_mmap_c4.trace.dat.zst"), dir.path());
    let b = inflate(&corpus.join("debian61/imb_single_c2.trace.dat.zst"), dir.path());
    let count = |t: &TextTrace| t.event_count();
    let (na, nb) = (count(&report(&a, &[])), count(&report(&b, &[])));
    let both =
        output("trace-cmd", &["report", "-i", a.to_str().unwrap(), "-i", b.to_str().unwrap()]);
    let both = open_stream(Path::new("both"), &both[..]).unwrap();
    let (rows, quality) = all(&both, &|e, _, r| Some(r.info().names.get(e.comm)));
    assert_eq!((both.event_count(), rows.len() as u64), (na + nb, na + nb));
    assert_eq!(quality.count(QualityCode::UnreadableLines), 0, "{quality:?}");
    assert!(
        rows.iter().all(|comm| !comm.contains(".dat")),
        "the file's name is not part of the comm"
    );
}

#[needs(corpus)]
#[test]
fn kernel_text_of_the_corpus() {
    let corpus = corpus().join("vm");
    let dir = tempfile::tempdir().unwrap();
    for (file, events, cpus) in [
        ("debian61/thr_mutex_ftrace_c8.ftrace.txt.zst", 9645, 8),
        ("lockstat612/ls_kern_mmap_ftrace_c4.ftrace.txt.zst", 14572, 4),
    ] {
        let path = inflate(&corpus.join(file), dir.path());
        let trace = open(&path).unwrap();
        let (rows, quality) = all(&trace, &row);
        assert_eq!((trace.event_count(), rows.len()), (events, events as usize));
        assert_eq!(trace.info().cpus_online, Some(cpus));
        assert_eq!(
            quality.entries().iter().map(|q| q.code).collect::<Vec<_>>(),
            ["microsecond-clock"]
        );
        // Every event of these recordings is one holdup reads.
        assert!(!rows.iter().any(|r| r.ends_with(" Other")));
        // The text is in time order already, so it is cut by size only, at each MiB.
        let size = std::fs::metadata(&path).unwrap().len();
        assert_eq!(trace.runs().len() as u64, size.div_ceil(1 << 20));
    }
}
