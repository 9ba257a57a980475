//! `holdup whatif` from outside: the unchanged replay comes first and meets the trace, changes have
//! a row each, and whatever cannot be asked has a message.

use crate::support::{run, stdout};
use serde_json::Value;

/// Eight threads that queue for one mutex.
const MUTEX: &str = "fixtures/thr_mutex_perfz_c8/perf.data";
/// One server, four clients.
const SERVER: &str = "fixtures/imb_server_c4/perf.data";

/// Writers to a disk.
const DISK: &str = "fixtures/io_disk_perf_c4/perf.data";

#[track_caller]
fn json(trace: &str, args: &[&str]) -> Value {
    let out = stdout(&[&["whatif", "-j", trace], args].concat());
    serde_json::from_str(&out).unwrap()
}

fn rows(answer: &Value) -> &[Value] {
    answer["rows"].as_array().unwrap()
}

fn changes(answer: &Value) -> Vec<&str> {
    rows(answer).iter().map(|row| row["change"].as_str().unwrap_or("n/a")).collect()
}

/// The row whose change begins so.
#[track_caller]
fn row<'a>(answer: &'a Value, change: &str) -> &'a Value {
    let mut found =
        rows(answer).iter().filter(|r| r["change"].as_str().unwrap().starts_with(change));
    found.next().unwrap_or_else(|| panic!("no {change} in {:?}", changes(answer)))
}

/// Words with their figures masked: those are the engine's, and have tests of their own.
fn masked(text: &str) -> String {
    let mut out = String::new();
    for line in text.lines() {
        let mut last = ' ';
        for c in line.chars() {
            let c = if c.is_ascii_digit() || (c == '.' && last == '#') { '#' } else { c };
            // A run of masked digits is one, and so is a run of spaces, which depends on it.
            if c != last || !matches!(c, '#' | ' ' | '-') {
                out.push(c);
            }
            last = c;
        }
        out.truncate(out.trim_end().len());
        out.push('\n');
    }
    // How well a trace is met is a figure too.
    let met = "the same as in the trace";
    out.replace("# % less than in the trace", met).replace("# % more than in the trace", met)
}

#[test]
fn the_first_row_is_the_unchanged_replay_and_meets_the_trace() {
    for trace in [MUTEX, SERVER] {
        let answer = json(trace, &[]);
        let first = &rows(&answer)[0];
        assert_eq!((&first["change"], &first["gain"]), (&"none".into(), &1.0.into()));
        let (traced, wall) = (&answer["traced_wall_ns"], &first["wall_ns"]);
        let off = wall.as_f64().unwrap() / traced.as_f64().unwrap() * 100.0 - 100.0;
        assert!(off.abs() < 2.0, "{trace}: {off} %");
        assert!((off - answer["replay_off_pct"].as_f64().unwrap()).abs() < 1e-9);
        assert_eq!(answer["doubts"], Value::Array(Vec::new()), "{trace}");
        assert!(answer["work_threads"].as_u64().unwrap() >= 5);
    }
}

#[test]
fn rows_hold_together() {
    let answer = json(MUTEX, &[]);
    let unchanged = rows(&answer)[0]["wall_ns"].as_f64().unwrap();
    for row in rows(&answer) {
        let of = |key: &str| row[key].as_f64().unwrap_or_else(|| panic!("{key} of {row}"));
        assert!(of("wall_low_ns") <= of("wall_ns") && of("wall_ns") <= of("wall_high_ns"), "{row}");
        assert!((of("gain") - unchanged / of("wall_ns")).abs() < 1e-9, "{row}");
        assert!((of("throughput_pct") - (of("gain") - 1.0) * 100.0).abs() < 1e-9, "{row}");
        assert!(of("throughput_low_pct") <= of("throughput_high_pct"), "{row}");
    }
}

/// What the verdict is about is what is worth most.
#[test]
fn the_mutex_and_the_server_are_ranked_first() {
    let answer = json(MUTEX, &[]);
    let best = &rows(&answer)[1];
    assert!(best["change"].as_str().unwrap().starts_with("lock mutex 0x7f71238a0108"), "{best}");
    assert_eq!(best["kind"], "lock");
    assert_eq!(best["waits"], 899);
    assert!(best["gain"].as_f64().unwrap() > 1.5, "{best}");
    let said = answer["conclusions"][0].as_str().unwrap();
    assert!(said.contains("removing the waiting for mutex 0x7f71238a0108"), "{said}");

    let answer = json(SERVER, &["--rank"]);
    let best = &rows(&answer)[1];
    assert!(best["change"].as_str().unwrap().contains("(server-0)=split:"), "{best}");
    let gains: Vec<f64> = rows(&answer)[1..].iter().map(|r| r["gain"].as_f64().unwrap()).collect();
    assert!(gains.is_sorted_by(|a, b| a >= b), "{gains:?}");
}

/// A verdict quotes what a replay of the change gives.
#[test]
fn the_verdict_says_what_it_is_worth() {
    for (trace, change) in [(MUTEX, "--lock=0x7f71238a0108=none"), (DISK, "--devices=none")] {
        let diagnosis: Value = serde_json::from_str(&stdout(&["diagnose", "-j", trace])).unwrap();
        let worth = &diagnosis["findings"][0]["worth"];
        assert_eq!(diagnosis["findings"][0]["class"], diagnosis["verdict"]["class"]);
        let asked = json(trace, &[change]);
        let of = |key: &str| worth[key].as_f64().unwrap();
        assert!(of("low") <= of("times") && of("times") <= of("high"), "{worth}");
        if worth["basis"] == "replayed" {
            assert_eq!(worth["unchanged_ns"], rows(&asked)[0]["wall_ns"], "{trace}");
            assert!(
                stdout(&["diagnose", trace]).contains("result of a replay with this change"),
                "{trace}"
            );
        } else {
            assert_eq!(worth["basis"], "chains", "{trace}");
            assert!(
                stdout(&["diagnose", trace]).contains("estimated from who woke whom"),
                "{trace}"
            );
        }
    }
}

/// The ranking has the fix of the verdict, with the same gain, however the gain is known: by a
/// replay, from chains, bounded for one thread, and bounded by the ledger alone.
#[test]
fn the_ranking_and_the_verdict_agree() {
    for (trace, basis) in [
        (DISK, "replayed"),
        (MUTEX, "chains"),
        ("fixtures/native_pipe_pair/perf.data", "bound"),
        ("fixtures/ser_latch_c2/perf.data", "chains"),
        ("fixtures/thr_yield_c2/perf.data", "bound"),
        ("fixtures/real/postgres_row_one_g4.perf.data.zst", "bound"),
    ] {
        let diagnosis: Value = serde_json::from_str(&stdout(&["diagnose", "-j", trace])).unwrap();
        let worth = &diagnosis["findings"][0]["worth"];
        assert_eq!(worth["basis"], basis, "{trace}");
        let ranked = json(trace, &["--rank", "-n", "0"]);
        let mut same = rows(&ranked)[1..].iter().filter(|row| row["change"] == worth["change"]);
        let same = same.next().unwrap_or_else(|| panic!("{trace}: {:?}", changes(&ranked)));
        assert_eq!(same["basis"], basis, "{trace}");
        let (gain, times) = (same["gain"].as_f64().unwrap(), worth["times"].as_f64().unwrap());
        assert!((gain - times).abs() < 0.001, "{trace}: {gain} {times}");
        // Rows that only a ranking tries do not change the ranges of the others.
        let high = 1.0 + same["throughput_high_pct"].as_f64().unwrap() / 100.0;
        assert!((high - worth["high"].as_f64().unwrap()).abs() < 0.001, "{trace}: {high}");
        let said = ranked["conclusions"][0].as_str().unwrap();
        assert!(said.contains(same["fix"].as_str().unwrap()), "{trace}: {said}");
    }
}

/// Where a replay can say nothing the reason is there, and the demand decides.
#[test]
fn where_nothing_is_replayed_the_reason_is_there() {
    #[track_caller]
    fn reason(args: &[&str], says: &str) {
        let out = run(&[&["diagnose", "-j"], args].concat());
        let diagnosis: Value = serde_json::from_slice(&out.stdout).unwrap();
        let why = diagnosis["not_replayed"].as_str().unwrap();
        assert!(why.contains(says), "{why}");
        assert_eq!(diagnosis["findings"][0]["worth"]["basis"], "bound");
    }
    reason(&[MUTEX, "-C", "0-3"], "some CPUs were selected");
}

#[test]
fn changes_have_a_row_each_and_one_together() {
    let lock = "--lock=0x7f71238a0108=hold*0.5";
    let answer = json(MUTEX, &[lock, "--devices", "none"]);
    let found = changes(&answer);
    assert_eq!(found.len(), 4, "{found:?}");
    assert_eq!(found[3], format!("{} + {}", found[1], found[2]));
    assert_eq!(row(&answer, found[3])["kind"], "several");
    assert!(row(&answer, "lock mutex 0x7f71238a0108")["gain"].as_f64().unwrap() > 1.2);

    // Together once for each number of CPUs.
    let answer = json(MUTEX, &["--cpus", "1,16", lock]);
    let found = changes(&answer);
    assert_eq!(found.len(), 6, "{found:?}");
    assert_eq!(found[1..3], ["cpus 1", "cpus 16"]);
    assert!(found[4].starts_with("cpus 1 + lock") && found[5].starts_with("cpus 16 + lock"));
    let alone = row(&answer, "cpus 1");
    assert_eq!(alone["kind"], "cpus");
    assert!(alone["gain"].as_f64().unwrap() < 0.9, "{alone}");

    // Numbers of CPUs are alternatives, and so are two changes of one lock.
    assert_eq!(rows(&json(MUTEX, &["--cpus", "4-6"])).len(), 4);
    let twice = json(MUTEX, &[lock, "--lock=0x7f71238a0108=none"]);
    assert_eq!(rows(&twice).len(), 3);
}

/// The same lock by any of its names.
#[test]
fn objects_are_chosen_by_name_part_or_address() {
    let names = json(MUTEX, &[]);
    let whole = names["rows"][1]["change"].as_str().unwrap();
    let whole = whole.strip_prefix("lock ").unwrap();
    let expected = json(MUTEX, &[&format!("--lock={whole}")])["rows"][1].clone();
    for word in ["0x7f71238a0108", "7f71238a0108", "mutex 0x7f71", "MUTEX 0x"] {
        let found = json(MUTEX, &[&format!("--lock={word}=none")]);
        assert_eq!(found["rows"][1], expected, "{word}");
    }
    let by_name = json(MUTEX, &["--speed", "mutex-1*1.5"]);
    let by_number = json(MUTEX, &["--speed", "590*1.5"]);
    assert_eq!(by_name["rows"], by_number["rows"]);
}

/// Most of the threads that do the work of interrupts never run: there is nothing to spread.
#[test]
fn interrupts_can_be_spread_where_they_hardly_came() {
    let answer = json(MUTEX, &["--irq", "spread", "--affinity", "none"]);
    assert_eq!(changes(&answer)[..3], ["none", "irq spread", "affinity none"]);
}

#[test]
fn interrupts_can_be_spread_and_devices_taken_away() {
    let answer = json(DISK, &["--irq", "spread", "--devices", "none"]);
    assert_eq!(changes(&answer)[1..3], ["irq spread", "devices none"]);
    assert_eq!(rows(&answer)[1]["kind"], "driver");
    assert!(row(&answer, "devices none")["gain"].as_f64().unwrap() > 2.0);
}

/// Half the CPU time of a call is less than all of the thread's.
#[test]
fn a_call_is_a_part_of_what_threads_do() {
    let answer = json(SERVER, &["--syscall", "semtimedop*0.5", "--syscall", "semtimedop*1"]);
    let half = &rows(&answer)[1];
    assert_eq!(
        (&half["change"], &half["kind"]),
        (&"syscall semtimedop*0.5".into(), &"syscall".into())
    );
    assert!((0.99..1.5).contains(&half["gain"].as_f64().unwrap()), "{half}");
    assert_eq!(rows(&answer)[2]["wall_ns"], rows(&answer)[0]["wall_ns"]);
}

#[test]
fn rows_are_as_many_as_asked_for_beside_the_unchanged_one() {
    assert_eq!(rows(&json(MUTEX, &["-n", "2"])).len(), 3);
    assert_eq!(rows(&json(MUTEX, &["--cpus", "1-4", "-n", "1"])).len(), 2);
    assert_eq!(rows(&json(MUTEX, &["--cpus", "1-4", "-n", "0"])).len(), 5);
}

#[test]
fn an_answer_in_every_form() {
    let args = ["--cpus", "1,16", "--lock=0x7f71238a0108=split:2"];
    let answer = |form: &str| {
        let out = stdout(&[&["whatif", MUTEX, "--format", form][..], &args].concat());
        masked(&out)
    };
    insta::assert_snapshot!("whatif_text", answer("text"));
    insta::assert_snapshot!("whatif_markdown", answer("md"));
    insta::assert_snapshot!("whatif_csv", answer("csv"));
    let ranked = stdout(&["whatif", SERVER, "-n", "1"]);
    insta::assert_snapshot!("whatif_ranked", masked(&ranked));
}

#[test]
fn what_a_replay_lacks_is_said() {
    let lost = "fixtures/lost_sysloop_n2/perf.data";
    let answer = json(lost, &["--devices", "none"]);
    let doubts = answer["doubts"].to_string();
    for words in ["no wake-ups were recorded", "lost-events", "only some threads were recorded"] {
        assert!(doubts.contains(words), "{words}: {doubts}");
    }
    assert!(stdout(&["whatif", lost]).contains("WARNING: no wake-ups were recorded"));
    let csv = run(&["whatif", lost, "--format", "csv"]);
    assert!(String::from_utf8_lossy(&csv.stderr).contains("no wake-ups were recorded"));
}

#[test]
fn mistakes_have_a_message_each() {
    #[track_caller]
    fn wrong(args: &[&str], code: i32, says: &str) {
        let out = run(&[&["whatif"], args].concat());
        let error = String::from_utf8_lossy(&out.stderr);
        assert_eq!(out.status.code(), Some(code), "{args:?}: {error}");
        assert!(out.stdout.is_empty() && error.contains(says), "{args:?}: {error}");
    }
    for (args, says) in [
        (&["--lock=mutex"][..], "write OBJ=hold*0.5"),
        (&["--lock=join=none"], "may mean any of 2 names: 'join 0x7f71"),
        (&["--lock=mutx 0x7f71238a0108=none"], "the trace has 'mutex 0x7f71238a0108"),
        (&["--lock=timer=hold*0.5"], "timer clock_nanosleep of mutex-0 has no holder"),
        (&["--server=590=2"], "write TID=split:N"),
        (&["--speed=99999*2"], "no thread 99999 in the trace"),
        (&["--speed=mutx-1*2"], "the trace has 'mutex-1'"),
        (&["--speed=590*0"], "a factor from 0.001 to 1000"),
        (&["--syscall=futx*0.5"], "the trace has 'futex'"),
        (&["--cpus=0"], "not a list of numbers of CPUs"),
        (&["--cpus=2", "--rank"], "cannot be used with"),
        (&["--irq=none"], "invalid value"),
        (&["--affinity=none", "--rank"], "cannot be used with"),
        (&["-p", "587"], "--pid: a replay needs all threads"),
        (&["-C", "0-3"], "--cpus simulates a machine"),
    ] {
        wrong(&[&[MUTEX], args].concat(), 2, says);
    }
    wrong(&["missing.data"], 3, "missing.data");
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trace.txt");
    let line = "  worker-100   [000] d..2.   100.000001: sched_wakeup: comm=a pid=7 prio=120 \
                target_cpu=000\n";
    std::fs::write(&path, format!("# tracer: nop\n#\n{line}")).unwrap();
    wrong(&[path.to_str().unwrap()], 4, "no sched_switch events");
    wrong(&["fixtures/native_cpu2_switches/perf.data", "--syscall=write*2"], 4, "no system calls");
}
