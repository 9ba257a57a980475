//! The same scenario gives the same answer whatever file it came in.
//!
//! `fixtures/equivalence` holds scenarios recorded by perf, by trace-cmd and by reading the
//! kernel's `trace` file at the same time, and the text `trace-cmd report` makes of the second.
//! What must agree, and how far, depends on how a form came about:
//!
//! * text with nanoseconds made from the trace.dat: every figure of every table, exactly;
//! * text with microseconds: every count exactly; a sum of n spans to (n + 1) x 1 us, because each
//!   of its n + 1 ends is rounded by at most half a microsecond either way;
//! * another recorder's file: every event is stamped once by each recorder, one after the other, so
//!   times differ by what a recorder takes. Counts agree but for the edges of the window common to
//!   all, sums to 1 % and 50 us per span, the ledger to 2 % of capacity (a recorder's own work, one
//!   to two microseconds per event here, falls before or after the other's stamp: into user or
//!   kernel).
//!
//! `trace-cmd report` prints a preempted thread's state as `R`, where the kernel says `R+`. So its
//! text cannot tell waits after preemption from those after waking: columns of run-queue delays are
//! left out for it, and for it only.
//!
//! And in all of them: the same verdict.

use crate::by_key::{self, Tables, json};
use holdup_attribution::{Attribution, analyze};
use holdup_passes::{Analysis, Group, Options, Selection};
use holdup_testkit::{Generic, Packing, PerfettoForm, perfetto};
use holdup_trace::{Batch, Event, EventId, Reader, merge};
use serde_json::Value;
use std::collections::HashMap;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

const SCENARIOS: [(&str, &str); 3] = [
    ("ser_semop_c4", "application-serialization"),
    ("thr_mutex_c4", "thread-serialization"),
    ("imb_single_c4", "workload-imbalance"),
];
const TRACE_DAT: &str = "trace.dat.zst";
/// Form, and format as `info` names it.
const FORMS: [(&str, &str); 5] = [
    (TRACE_DAT, "trace.dat v7 in zstd"),
    ("report-ns.txt.xz", "trace-cmd report text in xz"),
    ("report.txt.xz", "trace-cmd report text in xz"),
    ("ftrace.txt.xz", "ftrace text in xz"),
    ("perf.data.zst", "perf.data in zstd"),
];

/// Recorded by LTTng and ftrace at the same time, in other runs of the same scenarios. LTTng began
/// seconds earlier, and knows what others were waiting in when ftrace began: there only the rows
/// of the workload itself can be the same, and those of CPUs and ledger.
const LTTNG: [(&str, &str); 2] = [
    ("lttng_ser_semop_c4", "application-serialization"),
    ("lttng_thr_mutex_c4", "thread-serialization"),
];
const LTTNG_FORMS: [(&str, &str); 2] =
    [(TRACE_DAT, "trace.dat v7 in zstd"), ("lttng.tar.gz", "CTF 1.8 (lttng-modules) in gzip")];

fn open(scenario: &str, form: &str) -> Box<dyn Reader> {
    let path: PathBuf = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("fixtures/equivalence")
        .join(scenario)
        .join(form);
    holdup_open::open(&path).unwrap()
}

fn tables(a: &Analysis) -> Tables {
    let mut tables = Tables::new();
    let mut add = |table, keys: &[&str], rows| by_key::add(&mut tables, table, keys, rows);
    add("syscalls", &["name"], json(a.syscalls(Group::System)));
    add("syscalls by thread", &["comm", "tid", "name"], json(a.syscalls(Group::Thread)));
    add("procs", &["comm", "tid"], json(a.procs(Group::Thread)));
    add("cpus", &["cpu"], json(a.cpu_rows()));
    add("switches", &["comm", "tid"], json(a.switches()));
    add("ledger", &["path"], json(Attribution::from(a).ledger.nodes()));
    // Interrupts are numbered; work items are known by the address or name of a function.
    let irqs = json(a.irqs(true)).into_iter().filter(|r| r["kind"] != "workqueue").collect();
    add("irqs", &["kind", "id", "cpu"], irqs);
    tables
}

/// How many events each thread and CPU has: each begins or ends at most one span of each kind.
#[derive(Default)]
struct Census {
    by_tid: HashMap<u64, u64>,
    by_cpu: HashMap<u64, u64>,
}

fn census(reader: &dyn Reader) -> Census {
    let mut c = Census::default();
    merge::drive(reader, 1, &mut |events: &[Event], _: &Batch| {
        for e in events.iter().filter(|e| e.id != EventId::SIDEBAND) {
            *c.by_tid.entry(e.tid.0.into()).or_default() += 1;
            *c.by_cpu.entry(e.cpu.0.into()).or_default() += 1;
        }
        ControlFlow::Continue(())
    })
    .unwrap();
    c
}

/// Spans added up in a row.
fn spans(table: &str, row: &Value, census: &Census) -> u64 {
    let n = |key: &str| row[key].as_u64().unwrap_or(0);
    match table {
        "cpus" => census.by_cpu.get(&n("cpu")).copied().unwrap_or(0),
        "procs" | "switches" => census.by_tid.get(&n("tid")).copied().unwrap_or(0) + n("switches"),
        "ledger" => census.by_cpu.values().sum(),
        _ => n("count") + n("pending"),
    }
}

/// Shares, rates and quantiles follow from what is compared; one bucket of a histogram is wider
/// than a microsecond. Which of several spans is the longest may be a matter of a microsecond.
fn is_derived(key: &str) -> bool {
    key.ends_with("_start_ns")
        || key.ends_with("_end_ns")
        || key.starts_with("pct")
        || key.ends_with("_per_s")
        || key.ends_with("_ratio")
        || matches!(key, "p50_ns" | "p99_ns")
}

/// Run-queue delays, for which the text of `trace-cmd report` lacks the `R+`.
fn needs_preemption(table: &str, column: &str) -> bool {
    table == "switches" && column.contains("delay")
}

/// Leaves of the ledger that follow from what calls typically cost.
fn inferred(key: &str) -> bool {
    key.contains("busy/kernel/lock-wait") || key.contains("busy/kernel/other")
}

/// Whether a row says the same whenever its recorder began.
fn begins_inside(table: &str, key: &str) -> bool {
    match table {
        "cpus" | "irqs" | "ledger" => true,
        "syscalls" => false,
        _ => key.starts_with("\"wl\" "),
    }
}

fn verdict(reader: &dyn Reader, analysis: &Analysis) -> &'static str {
    holdup_diagnose::diagnose(reader.info(), analysis, None).verdict.class.id()
}

#[test]
fn every_form_gives_the_same_verdict() {
    for (scenario, class) in SCENARIOS {
        for (form, format) in FORMS {
            let reader = open(scenario, form);
            assert_eq!(reader.info().format, format);
            let analysis = analyze(&*reader, &Options::default()).unwrap();
            assert_eq!(verdict(&*reader, &analysis), class, "{scenario}/{form}");
        }
    }
}

#[test]
fn text_with_nanoseconds_is_the_trace_dat() {
    for (scenario, _) in SCENARIOS {
        let [dat, text] = [TRACE_DAT, "report-ns.txt.xz"].map(|form| {
            let reader = open(scenario, form);
            assert_eq!(reader.info().clock.resolution_ns, 1);
            tables(&analyze(&*reader, &Options::default()).unwrap())
        });
        assert_eq!(dat.keys().collect::<Vec<_>>(), text.keys().collect::<Vec<_>>(), "{scenario}");
        for ((table, key), row) in &dat {
            let other = &text[&(*table, key.clone())];
            for (column, value) in
                row.as_object().unwrap().iter().filter(|(c, _)| !needs_preemption(table, c))
            {
                assert_eq!(value, &other[column], "{scenario} {table} {key} {column}");
            }
        }
    }
}

/// Perfetto keeps all that the text with nanoseconds says, in each of its forms. Nobody recorded a
/// scenario with it: the files are written here, from the trace.dat.
#[test]
fn perfetto_is_the_text_with_nanoseconds() {
    let plain = PerfettoForm::default();
    let forms = [
        plain,
        PerfettoForm { generic: Generic::Described, packing: Packing::Deflate, ..plain },
        PerfettoForm { compact: true, packing: Packing::Zstd, ..plain },
    ];
    for (scenario, class) in SCENARIOS {
        let dat = open(scenario, TRACE_DAT);
        let text = open(scenario, "report-ns.txt.xz");
        let wanted = tables(&analyze(&*text, &Options::default()).unwrap());
        for form in forms {
            let mut file = tempfile::NamedTempFile::new().unwrap();
            std::io::Write::write_all(&mut file, &perfetto(&*dat, &form)).unwrap();
            let reader = holdup_open::open(file.path()).unwrap();
            assert_eq!(reader.info().format, "Perfetto");
            assert_eq!(reader.info().capabilities, dat.info().capabilities, "{scenario} {form:?}");
            let analysis = analyze(&*reader, &Options::default()).unwrap();
            assert_eq!(verdict(&*reader, &analysis), class, "{scenario} {form:?}");
            let got = tables(&analysis);
            if form.compact {
                // Until its first switch a CPU's thread is not known.
                continue;
            }
            assert_eq!(got.keys().collect::<Vec<_>>(), wanted.keys().collect::<Vec<_>>());
            for ((table, key), row) in &wanted {
                let other = &got[&(*table, key.clone())];
                for (column, value) in
                    row.as_object().unwrap().iter().filter(|(c, _)| !needs_preemption(table, c))
                {
                    assert_eq!(value, &other[column], "{scenario} {table} {key} {column}");
                }
            }
        }
    }
}

#[test]
fn text_with_microseconds_is_the_trace_dat_to_the_microsecond() {
    for (scenario, _) in SCENARIOS {
        let (dat, text) = (open(scenario, TRACE_DAT), open(scenario, "report.txt.xz"));
        assert_eq!(text.info().clock.resolution_ns, 1000);
        let census = census(&*dat);
        let [dat, text] = [dat, text].map(|r| tables(&analyze(&*r, &Options::default()).unwrap()));
        assert_eq!(dat.keys().collect::<Vec<_>>(), text.keys().collect::<Vec<_>>(), "{scenario}");
        for ((table, key), row) in &dat {
            let other = &text[&(*table, key.clone())];
            let n = spans(table, row, &census);
            for (column, value) in row.as_object().unwrap() {
                let what =
                    || format!("{scenario} {table} {key} {column}: {value} and {}", other[column]);
                match (value.as_u64(), other[column].as_u64()) {
                    _ if is_derived(column) || needs_preemption(table, column) => {}
                    (Some(a), Some(b)) if column.ends_with("ns") => {
                        assert!(a.abs_diff(b) <= (n + 1) * 1000, "{}, {n} spans", what())
                    }
                    _ => assert_eq!(value, &other[column], "{}", what()),
                }
            }
        }
    }
}

#[test]
fn recorders_that_ran_at_the_same_time_agree() {
    let recorded = SCENARIOS.map(|s| (s, &FORMS[..]));
    let recorded = recorded.into_iter().chain(LTTNG.map(|s| (s, &LTTNG_FORMS[..])));
    for ((scenario, class), forms) in recorded {
        let readers: Vec<_> = forms.iter().map(|(form, _)| (form, open(scenario, form))).collect();
        let from = readers.iter().filter_map(|r| r.1.info().span).map(|s| s.0).max();
        let to = readers.iter().filter_map(|r| r.1.info().span).map(|s| s.1).min();
        let options = Options::from(Selection { from, to, ..Selection::default() });
        let (_, dat) = &readers[0];
        let census = census(&**dat);
        let analysis = analyze(&**dat, &options).unwrap();
        let (capacity, wanted) = (analysis.capacity_ns(), tables(&analysis));
        for (form, reader) in &readers[1..] {
            let analysis = analyze(&**reader, &options).unwrap();
            assert_eq!(verdict(&**reader, &analysis), class, "{scenario}/{form}");
            let got = tables(&analysis);
            // What is inferred from calls' typical cost holds or does not, by limits: near a limit
            // a few calls more or less at the ends of a recording decide. The kernel's time as a
            // whole is compared.
            let lttng = reader.info().format.starts_with("CTF");
            let same = |table, key| !inferred(key) && (!lttng || begins_inside(table, key));
            for ((table, key), row) in wanted.iter().filter(|((table, key), _)| same(table, key)) {
                let n = spans(table, row, &census);
                let Some(other) = got.get(&(*table, key.clone())) else {
                    assert!(n <= 2, "{scenario}/{form} lacks {table} {key}: {row}");
                    continue;
                };
                // Sums and counts; the one longest span of many may differ by what a recorder was
                // interrupted for. Not runtime_ns, which perf's rules begin with the first switch
                // of the file, not of the window.
                for column in
                    ["count", "switches", "total_ns", "blocked_ns", "combined_ns", "idle_ns", "ns"]
                {
                    let (Some(a), Some(b)) = (row[column].as_u64(), other[column].as_u64()) else {
                        continue;
                    };
                    let tolerance = match (*table, column) {
                        ("ledger" | "cpus", _) => capacity / 50,
                        (_, c) if c.ends_with("ns") => a / 100 + (n + 1) * 50_000,
                        _ => 2 + a / 100,
                    };
                    assert!(
                        a.abs_diff(b) <= tolerance,
                        "{scenario}/{form} {table} {key} {column}: {a} and {b}, {n} spans"
                    );
                }
            }
        }
    }
}
