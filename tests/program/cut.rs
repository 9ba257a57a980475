//! `holdup cut`: figures of a cut are those of the window on the whole; the tools of the formats
//! open it and count the same; the document's commands are true.

use crate::support::{fixture, root, run, stdout};
use holdup_testkit::{corpus, needs};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

/// Recordings of each kind and format, and of programs that wait for different things.
const RECORDINGS: [&str; 9] = [
    "healthy_cpu_threads_c4/perf.data",
    "native_make_j1/perf.data",
    "native_quota/perf.data",
    "ser_psem_c2/perf.data",
    "thr_mutex_perfpipe_c8/perf.data",
    "thr_mutex_perfz_c8/perf.data",
    "tracedat-small/thr_mutex_tc6_c8.trace.dat.zst",
    "equivalence/imb_single_c4/ftrace.txt.xz",
    "equivalence/lttng_ser_semop_c4/lttng.tar.gz",
];

/// Verbs with a table, and those that judge.
const VERBS: [&[&str]; 12] = [
    &["ledger"],
    &["syscalls"],
    &["syscalls", "--by", "thread"],
    &["procs"],
    &["cpus"],
    &["switches"],
    &["irqs"],
    &["locks"],
    &["waits"],
    &["waits", "--by", "kind"],
    &["waits", "--by", "thread"],
    &["diagnose"],
];

fn cut(path: &Path, select: &[&str]) -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let output = folder.path().join("cut");
    let (path, to) = (path.to_str().unwrap(), output.to_str().unwrap());
    stdout(&[&["cut", "-q", path, "-o", to], select].concat());
    (folder, output)
}

/// What a verb says, without what it says of the file.
fn figures(verb: &[&str], path: &Path, select: &[&str]) -> Value {
    let path = path.to_str().unwrap();
    let out = run(&[verb, &["--format", "json", path], select].concat());
    // What cannot be decided is an answer too.
    assert!(matches!(out.status.code(), Some(0 | 4)), "{verb:?} {path} {select:?}: {out:?}");
    let text = String::from_utf8(out.stdout).expect("UTF-8");
    let mut json: Value = serde_json::from_str(&text.replace(path, "TRACE")).unwrap();
    for key in ["trace", "quality", "next"] {
        json.as_object_mut().unwrap().remove(key);
    }
    json
}

#[track_caller]
fn same(name: &str, select: &[&str]) {
    same_of(&fixture(name), select);
}

#[track_caller]
fn same_of(path: &Path, select: &[&str]) {
    let (_folder, output) = cut(path, select);
    for verb in VERBS {
        let (part, whole) = (figures(verb, &output, &[]), figures(verb, path, select));
        let (part, whole) = (format!("{part:#}"), format!("{whole:#}"));
        let differs = part.lines().zip(whole.lines()).find(|(a, b)| a != b);
        assert!(part == whole, "{} {select:?} {verb:?}: {differs:?}", path.display());
    }
}

#[track_caller]
fn same_in_corpus(name: &str, time: &str) {
    same_of(&corpus().join(name), &["--time", time]);
}

#[test]
fn tables_of_a_cut_are_those_of_the_window() {
    holdup_testkit::in_parallel(RECORDINGS.to_vec(), |name| {
        for window in ["30%,50%", "80%,95%"] {
            same(name, &["--time", window]);
        }
    });
}

#[test]
fn tables_of_a_phase_and_of_cpus_are_those_of_the_whole() {
    same("ser_retry_c2/perf.data", &["--phase", "1"]);
    same("ser_retry_c2/perf.data", &["--phase", "2"]);
    same("imb_amdahl_c2/perf.data", &["--cpu", "1"]);
    same("thr_mutex_perfz_c8/perf.data", &["--cpu", "0-3", "--time", "20%,60%"]);
    same("tracedat-small/thr_mutex_tc6_c8.trace.dat.zst", &["--cpu", "2,5"]);
}

/// Its wake-up stayed without the switch before it, and the sleep in `wait4` was missing.
#[test]
fn who_sleeps_at_the_beginning_of_a_part_was_woken_from_an_earlier_sleep() {
    same("native_steps/perf.data", &["--time", "10%,30%"]);
}

/// An entry without its return was kept: the thread was in that call for ever, and woke others out
/// of it whenever a timer ended their naps.
#[test]
fn half_a_call_makes_no_two_files_one() {
    same("native_pipe_pair/perf.data", &["--time", "80%,95%"]);
    same("real/trylock_one.perf.data.zst", &["--time", "40%,60%"]);
    same("ser_retry_c2/perf.data", &["--time", "40%,60%"]);
}

/// A record was kept without the switch that had brought its thread, so that another seemed to run.
#[test]
fn who_runs_at_a_record_was_brought_there() {
    same("equivalence/thr_mutex_c4/report-ns.txt.xz", &["--time", "10%,30%"]);
}

/// A waking was kept without the call that its waker was in.
#[test]
fn who_wakes_does_so_in_a_call() {
    same("code/rust/perf.data.zst", &["--time", "10%,30%"]);
}

/// A lock was taken in a call that was kept, and given back in one that was not.
#[test]
fn what_was_given_back_is_not_held() {
    same("native_gil_python/perf.data", &["--time", "10%,30%"]);
}

/// Of two workers that did nothing, the first was named.
#[test]
fn a_worker_that_did_nothing_is_not_the_busiest() {
    same("profile_convoy/perf.data", &["--time", "40%,60%"]);
}

/// How many threads were in calls at the beginning was counted from the beginning of the file.
#[test]
fn who_is_in_a_call_at_the_beginning_of_a_part_is_known() {
    same("equivalence/ser_semop_c4/ftrace.txt.xz", &["--time", "80%,95%"]);
    same("ser_append_case2_c2/perf.data", &["--time", "40%,60%"]);
}

/// A thread that had once let another go on waited for its turn in the whole, for work in the cut.
#[test]
fn who_once_let_another_go_on_is_for_contention() {
    same("real/postgres_row_one_g4.perf.data.zst", &["--time", "80%,95%"]);
}

/// The first nap after a try that failed was ended by whoever was in a call on such a lock.
#[test]
fn time_alone_ends_a_nap() {
    same("ser_retry_c2/perf.data", &["--time", "80%,95%"]);
}

/// What a wake-up under way cost went by how often its thread had run since the file began.
#[test]
fn a_wake_up_under_way_costs_a_part_nothing() {
    same("imb_server_c4/perf.data", &["--time", "80%,95%"]);
}

/// Of a switch that was not recorded the first event after it tells.
#[test]
fn the_first_event_of_a_thread_on_its_cpu_stays() {
    same("host_healthy_n1_proc/perf.data", &["--time", "10%,30%"]);
}

/// The end of a wait for a lock of the kernel was left out: its thread spun until the next one.
#[needs(corpus)]
#[test]
fn who_waited_for_a_lock_of_the_kernel_got_it() {
    same_in_corpus("vm/lockstat612/ls_kern_dir_lockc_c4.perf.data.zst", "10%,30%");
}

/// The first record of a page of trace.dat could not be left out: a lock was taken and not given
/// back. And what kind a lock is was known from a wait that was left out.
#[needs(corpus)]
#[test]
fn the_first_record_of_a_page_is_left_out() {
    same_in_corpus("vm/lockstat612/ls_kern_dir_c4.trace.dat.zst", "10%,30%");
    same_in_corpus("vm/lockstat612/ls_ser_append_case2_c4.trace.dat.zst", "40%,60%");
}

/// Of several works begun on one CPU only the last was known.
#[needs(corpus)]
#[test]
fn a_worker_may_sleep_while_another_begins_a_work_on_its_cpu() {
    same_in_corpus("vm/funnel/fun_dmcrypt_read_cpu0_c4.trace.dat.zst", "10%,30%");
}

/// Locks that are taken and given back by the same call: whoever lost its CPU in one had slept for
/// it, and what happened in one brought that half alone.
#[needs(corpus)]
#[test]
fn every_other_call_gives_a_lock_back() {
    same_in_corpus("real/wis/lock1.perf.data.zst", "10%,30%");
}

/// An interrupt of a disk woke a thread while another one was writing: their files were one.
#[needs(corpus)]
#[test]
fn whoever_an_interrupt_wakes_shares_no_file_with_whom_it_interrupts() {
    same_in_corpus("real/apps/guest/sqlite_full_c4.perf.data.zst", "40%,60%");
}

#[test]
fn a_window_of_a_cut_is_that_of_the_whole() {
    let path = fixture("native_pipe_pair/perf.data");
    let (_folder, output) = cut(&path, &["--time", "20%,80%"]);
    let span = holdup_open::open(&path).unwrap().info().span.unwrap();
    let at = |part: u64| {
        let ns = span.0 + (span.1 - span.0) * part / 100;
        format!("{}.{:09}", ns / 1_000_000_000, ns % 1_000_000_000)
    };
    let window = format!("{},{}", at(40), at(60));
    for verb in [&["ledger"][..], &["waits"], &["procs"]] {
        let select = ["--time", window.as_str()];
        assert_eq!(figures(verb, &output, &select), figures(verb, &path, &select), "{verb:?}");
    }
}

#[test]
fn names_go_and_figures_stay() {
    let path = fixture("imb_server_c4/perf.data");
    let (_folder, output) = cut(&path, &["--anonymize"]);
    for verb in [&["ledger"][..], &["cpus"], &["syscalls"]] {
        assert_eq!(figures(verb, &output, &[]), figures(verb, &path, &[]), "{verb:?}");
    }
    let said = stdout(&["diagnose", output.to_str().unwrap()]);
    assert!(said.contains("workload-imbalance") && !said.contains("server-0"), "{said}");
    let info = stdout(&["info", output.to_str().unwrap()]);
    assert!(info.contains("--anonymize") && !info.contains("/bin/perf"), "{info}");
}

#[test]
fn what_is_wrong_is_said() {
    let path = fixture("imb_server_c4/perf.data");
    let (path, folder) = (path.to_str().unwrap(), tempfile::tempdir().unwrap());
    let to = folder.path().join("cut");
    let to = to.to_str().unwrap();
    let fails = |args: &[&str], code: i32, why: &str| {
        let out = run(args);
        let said = String::from_utf8_lossy(&out.stderr).into_owned();
        assert_eq!(out.status.code(), Some(code), "{args:?}: {said}");
        assert!(said.contains(why), "{args:?}: {said}");
        assert!(!Path::new(to).exists());
    };
    fails(&["cut", path, "-o", to], 2, "--time");
    fails(&["cut", "--time", "1,2", path, "-o", to], 2, "is outside the trace");
    fails(&["cut", "--time", "10%,20%", path, "-o", path], 2, "is the trace itself");
    fails(&["cut", "--time", "10%,20%", path, "-o", "/nowhere/cut"], 2, "cannot be written");
    // A folder takes no other's place.
    let ctf = fixture("equivalence/lttng_thr_mutex_c4/lttng.tar.gz");
    let there = folder.path().to_str().unwrap();
    std::fs::write(folder.path().join("other"), "").unwrap();
    let args = ["cut", "--time", "10%,20%", ctf.to_str().unwrap(), "-o", there];
    fails(&args, 2, "cannot be written: Directory not empty");
}

/// Lines that a command prints.
fn lines(program: &str, args: &[&str]) -> usize {
    let out = Command::new(program).args(args).output().expect("it runs");
    assert!(out.status.success(), "{program}: {}", String::from_utf8_lossy(&out.stderr));
    out.stdout.iter().filter(|&&b| b == b'\n').count()
}

#[needs(perf)]
#[test]
fn perf_counts_the_same_in_the_part() {
    for name in ["imb_server_c4", "thr_mutex_perfpipe_c8", "thr_mutex_perfz_c8", "profile_bank"] {
        let path = fixture(name).join("perf.data");
        let (first, last) = holdup_open::open(&path).unwrap().info().span.unwrap();
        // perf takes microseconds here.
        let at = |part: u64| {
            let us = (first + (last - first) * part / 100) / 1000;
            format!("{}.{:06}", us / 1_000_000, us % 1_000_000)
        };
        let window = format!("{},{}", at(30), at(50));
        let (_folder, output) = cut(&path, &["--time", &window]);
        let of = |path: &Path| {
            let path = path.to_str().unwrap();
            lines("perf", &["script", "-f", "-F", "time,event", "--time", &window, "-i", path])
        };
        let whole = of(&path);
        assert!(whole > 10, "{name}: {whole}");
        assert_eq!(of(&output), whole, "{name}");
    }
}

#[needs(trace_cmd)]
#[test]
fn trace_cmd_reports_the_same_of_the_part() {
    for name in ["thr_mutex_tc6_c8", "thr_mutex_tc7n_c8", "imb_single_c2"] {
        let path = fixture("tracedat-small").join(format!("{name}.trace.dat.zst"));
        let unpacked = holdup_open::unpacked(&path).unwrap();
        let (_folder, output) = cut(&path, &["--time", "30%,50%"]);
        let part = holdup_open::open(&output).unwrap().info().cut.clone().unwrap();
        let (from, to) = part.time.unwrap();
        let of = |path: &Path| -> Vec<String> {
            let report = Command::new("trace-cmd").args(["report", "-t", "-i"]).arg(path).output();
            let text = String::from_utf8(report.expect("it runs").stdout).unwrap();
            let time = |line: &&str| -> Option<u64> {
                let stamp = line.split("] ").nth(1)?.trim_start().split_once(':')?.0;
                let (s, ns) = stamp.split_once('.')?;
                Some(s.trim().parse::<u64>().ok()? * 1_000_000_000 + ns.parse::<u64>().ok()?)
            };
            let inside = |line: &&str| time(line).is_some_and(|t| (from..=to).contains(&t));
            text.lines().filter(inside).map(str::to_owned).collect()
        };
        let whole = of(unpacked.path());
        assert!(whole.len() > 100, "{name}: {}", whole.len());
        assert_eq!(of(&output), whole, "{name}");
    }
}

#[needs(babeltrace2)]
#[test]
fn babeltrace_prints_the_same_of_the_part() {
    for name in ["lttng_thr_mutex_c4", "lttng_ser_semop_c4"] {
        let path = fixture("equivalence").join(name).join("lttng.tar.gz");
        let whole = tempfile::tempdir().unwrap();
        let mut tar = Command::new("tar");
        tar.arg("-xzf").arg(&path).arg("-C").arg(whole.path());
        assert!(tar.status().unwrap().success(), "{name}");
        let (_folder, output) = cut(&path, &["--time", "30%,50%"]);
        let part = holdup_open::open(&output).unwrap().info().cut.clone().unwrap();
        let (from, to) = part.time.unwrap();
        let of = |path: &Path| -> Vec<String> {
            let printed = Command::new("babeltrace2")
                .args(["--clock-cycles", "--no-delta"])
                .arg(path)
                .output()
                .expect("it runs");
            assert!(printed.status.success(), "{name}: {printed:?}");
            let text = String::from_utf8(printed.stdout).unwrap();
            let inside = |line: &&str| {
                let stamp = line.strip_prefix('[').and_then(|l| l.split_once(']')).unwrap().0;
                (from..=to).contains(&stamp.parse::<u64>().unwrap())
            };
            text.lines().filter(inside).map(str::to_owned).collect()
        };
        let lines = of(whole.path());
        assert!(lines.len() > 100, "{name}: {}", lines.len());
        assert!(of(&output) == lines, "{name}");
    }
}

#[test]
fn the_commands_of_the_document_are_true() {
    let text = std::fs::read_to_string(root().join("docs/cut.md")).unwrap();
    let folder = tempfile::tempdir().unwrap();
    std::fs::copy(fixture("ser_retry_c2/perf.data"), folder.path().join("perf.data")).unwrap();
    let block = text.split("```sh\n").nth(1).unwrap().split("```").next().unwrap();
    let mut ran = 0;
    for line in block.lines() {
        let command = line.split('#').next().unwrap().trim();
        let args: Vec<&str> = command.split(' ').skip(1).collect();
        let out = crate::support::holdup().args(&args).current_dir(folder.path()).output().unwrap();
        let said = String::from_utf8_lossy(&out.stderr);
        assert_eq!(out.status.code(), Some(0), "{command}: {said}");
        let to = args[args.iter().position(|a| *a == "-o").unwrap() + 1];
        assert!(folder.path().join(to).is_file(), "{command}");
        ran += 1;
    }
    assert_eq!(ran, 4);
}
