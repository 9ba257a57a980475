//! `holdup predict` from outside: the published table and figures, traces that were recorded on two
//! numbers of CPUs, and a message for everything that can be wrong.

mod support;

use holdup_attribution::{Attribution, analyze};
use holdup_diagnose::predict::{Forecast, of_trace};
use holdup_passes::Options;
use holdup_testkit::{corpus, in_parallel, needs};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use support::{root, run, stdout};

#[track_caller]
fn json(args: &[&str]) -> Value {
    let text = stdout(&[&["predict", "--format", "json"], args].concat());
    serde_json::from_str(&text).unwrap()
}

/// The row of `object` (the first if empty) for `cpus` CPUs.
#[track_caller]
fn row<'a>(found: &'a Value, object: &str, cpus: u32) -> &'a Value {
    let rows = found["rows"].as_array().unwrap().iter();
    let mut rows = rows.filter(|r| object.is_empty() || r["object"] == object);
    rows.find(|r| r["cpus"] == cpus).unwrap_or_else(|| panic!("no row for {cpus}: {found:#}"))
}

const TABLE_1: &str = "fixtures/published/bier-vernon-table-1.toml";

/// Bier and Vernon's table 1: case, CPUs, measured demand in %, power measured and predicted.
const PRINTED: [(&str, u32, f64, f64, f64); 12] = [
    ("compile-12-c2", 2, 26.64, 1.78, 1.87),
    ("compile-12-c4", 4, 24.40, 3.03, 3.21),
    ("exec-20-c2", 2, 0.21, 2.0, 2.0),
    ("exec-20-c4", 4, 0.16, 4.0, 4.0),
    ("exec-15-c2", 2, 1.10, 2.0, 2.0),
    ("exec-15-c4", 4, 3.76, 3.93, 3.98),
    ("mixed-30-c2", 2, 5.59, 1.95, 1.99),
    ("mixed-30-c4", 4, 6.65, 3.81, 3.94),
    ("compile-30-c2", 2, 44.12, 1.54, 1.67),
    ("compile-30-c4", 4, 38.69, 2.33, 2.44),
    ("idle-c2", 2, 0.31, 2.0, 2.0),
    ("idle-c4", 4, 0.12, 4.0, 4.0),
];

#[test]
fn table_1_as_published() {
    for (case, cpus, demand, measured, predicted) in PRINTED {
        let found = json(&["--metrics", TABLE_1, "--case", case]);
        let row = row(&found, "operating system semaphore", cpus);
        let near = |key: &str, printed: f64, within: f64| {
            let ours = row[key].as_f64().unwrap();
            assert!((ours - printed).abs() <= within, "{case}: {key} {ours} is not {printed}");
        };
        near("demand", demand / 100.0, 0.001);
        near("measured_effective_cpus", measured, 0.02);
        near("effective_cpus", predicted, 0.02);
        assert_eq!(row["basis"], "measured");
        assert_eq!(found["rows"].as_array().unwrap().len(), 4, "its CPUs times 1, 2, 4 and 8");
    }
}

#[test]
fn figures_2_2_and_2_3_as_published() {
    for (demand, power) in [("4%", 15.3), ("0.05", 14.7), ("6 %", 13.9)] {
        let found = json(&["--demand", demand, "--cpus", "16"]);
        let ours = row(&found, "lock", 16)["effective_cpus"].as_f64().unwrap();
        assert!((ours - power).abs() < 0.05, "{demand}: {ours} is not {power}");
    }
    let found = json(&["--demand", "1%", "--cpus", "64,400"]);
    let here = row(&found, "lock", 64);
    assert_eq!(here["saturation_cpus"], 100.0);
    assert!(here["degradation_pct"].as_f64().unwrap() < 3.0, "{here}");
    let beyond = row(&found, "lock", 400)["effective_cpus"].as_f64().unwrap();
    assert!((beyond - 100.0).abs() < 1e-3, "{beyond}");
}

/// Threads to spare keep CPUs at work that would wait; a lock of four lets four times as many in.
#[test]
fn threads_and_servers_change_what_a_demand_costs() {
    let working = |args: &[&str]| {
        let found = json(&[&["--demand", "20%", "--cpus", "8"], args].concat());
        row(&found, "lock", 8)["effective_cpus"].as_f64().unwrap()
    };
    let spins = working(&[]);
    assert!((working(&["--threads", "8"]) - spins).abs() < 1e-6, "a CPU for each");
    assert!(working(&["--threads", "64"]) > spins + 0.1);
    assert!((working(&["--threads", "64"]) - 5.0).abs() < 1e-3, "1 / D, and no more");
    assert!(working(&["--servers", "4"]) > 7.9);
}

const MUTEX: &str = "fixtures/thr_mutex_perfz_c8/perf.data";

/// Of a trace: rows for its own CPUs carry the measurement, the others the model's answer alone.
#[test]
fn a_trace_says_what_was_measured_and_what_follows() {
    let found = json(&["--cpus", "2,16", MUTEX]);
    let rows = found["rows"].as_array().unwrap();
    let mutex = rows.iter().find(|r| r["object"].as_str().unwrap().starts_with("mutex")).unwrap();
    let object = mutex["object"].as_str().unwrap();
    let (two, eight, more) =
        (row(&found, object, 2), row(&found, object, 8), row(&found, object, 16));
    assert_eq!(two["measured_effective_cpus"], Value::Null);
    assert_eq!(more["measured_effective_cpus"], Value::Null);
    let measured = eight["measured_effective_cpus"].as_f64().unwrap();
    assert!((3.0..5.0).contains(&measured), "half of the CPUs wait: {eight}");
    assert_eq!((&eight["basis"], &eight["threads"]), (&"inferred".into(), &8.into()));
    assert_eq!(more["threads"], 16, "a thread for each CPU, as on eight");
    for row in [two, eight, more] {
        let sum = row["effective_cpus"].as_f64().unwrap() + row["lost_cpus"].as_f64().unwrap();
        assert!((sum - row["cpus"].as_f64().unwrap()).abs() < 1e-5, "{row}");
        let full = row["saturation_cpus"].as_f64().unwrap();
        assert!(row["effective_cpus"].as_f64().unwrap() <= full + 1e-5, "{row}");
    }
    let notes = found["notes"].as_array().unwrap();
    assert!(notes[0].as_str().unwrap().contains("2 to 5 % optimistic"), "{notes:?}");
    // Where no hold was recorded, or nothing was lost, the row says so.
    let known = ["measured", "inferred", "lost-cpus"];
    for row in rows {
        match row["basis"].as_str() {
            Some(basis) => assert!(known.contains(&basis) && row["demand"].is_number(), "{row}"),
            None => assert!(row["demand"].is_null() && row["saturation_cpus"].is_null(), "{row}"),
        }
    }
}

/// A trace without a lock that anybody waits for has no rows, and no curve.
#[test]
fn no_lock_no_rows() {
    let trace = "fixtures/host_healthy_n1_proc/perf.data";
    let found = json(&[trace]);
    assert_eq!(found["rows"], Value::Array(Vec::new()));
    assert!(stdout(&["predict", trace]).contains("none"));
}

#[test]
fn a_demand_in_every_form() {
    let of = |more: &[&str]| {
        stdout(&[&["predict", "--demand", "6%", "--cpus", "1,4,16,32"], more].concat())
    };
    insta::assert_snapshot!("predict_text", of(&[]));
    insta::assert_snapshot!("predict_markdown", of(&["--format", "md"]));
    insta::assert_snapshot!("predict_csv", of(&["--format", "csv"]));
    assert_eq!(of(&["--color", "never"]), of(&[]));
    assert!(of(&["--color", "always"]).contains("\u{1b}["));
}

#[test]
fn the_curve_is_drawn() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("curve.svg");
    let plot = path.to_str().unwrap();
    let case = ["--metrics", TABLE_1, "--case", "compile-12-c4"];
    stdout(&[&["predict"], &case[..], &["--cpus", "4,16", "--plot", plot]].concat());
    let svg = std::fs::read_to_string(&path).unwrap();
    assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>\n"), "{svg}");
    assert!(svg.contains("prefers-color-scheme: dark"));
    assert!(svg.contains("16 CPUs: 4.08 working, predicted"), "{svg}");
    assert!(svg.contains("4 CPUs: 3.03 working, measured"), "{svg}");
    let out = run(&["predict", "fixtures/host_healthy_n1_proc/perf.data", "--plot", plot]);
    assert_eq!(out.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&out.stderr).contains("nothing to draw"));
}

#[test]
fn mistakes_have_a_message_each() {
    let wrong = |args: &[&str], code: i32, says: &str| {
        let out = run(&[&["predict"], args].concat());
        let error = String::from_utf8_lossy(&out.stderr);
        assert_eq!(out.status.code(), Some(code), "{args:?}: {error}");
        assert!(error.contains(says), "{args:?}: {error}");
    };
    for demand in ["x", "", "-1%", "101%", "1.5", "nan", "%"] {
        wrong(&[&format!("--demand={demand}")], 2, "write 6% or 0.06");
    }
    for cpus in ["0", "x", "1,,2", "8-4-2", "", "9000", "5-"] {
        wrong(&["--demand", "5%", &format!("--cpus={cpus}")], 2, "write 2,4,8 or 1-16");
    }
    wrong(&["--demand", "5%", "--cpus", "8-4"], 2, "write 2,4,8 or 1-16");
    wrong(&["--demand", "5%", MUTEX], 2, "cannot be used with");
    wrong(&["--servers", "2", MUTEX], 2, "cannot be used with");
    wrong(&["--servers", "2"], 2, "--demand");
    wrong(&["--metrics", TABLE_1], 2, "compile-12-c2");
    wrong(&["--metrics", "fixtures/published/aix-case-1.toml"], 2, "semaphores");
    wrong(&["--metrics", "missing.toml"], 2, "missing.toml");
    wrong(&["missing.data"], 3, "missing.data");
    wrong(&["--demand", "5%", "--sort", "moon"], 2, "unknown sort key");
}

/// A lock that holds and waits for more time than there is has no demand.
#[test]
fn figures_that_contradict_each_other_predict_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("wrong.toml");
    let lock = "name = \"l\", requests_per_s = 10000, hold_us = 150, wait_us = 100";
    std::fs::write(&path, format!("cpus = 2\nsemaphores = [{{ {lock} }}]\n")).unwrap();
    let found = json(&["--metrics", path.to_str().unwrap(), "--cpus", "4"]);
    assert_eq!(row(&found, "l", 4)["effective_cpus"], Value::Null);
    assert_eq!(row(&found, "l", 2)["measured_effective_cpus"], 1.0);
    assert!(found["notes"][1].as_str().unwrap().contains("contradict"), "{found}");
}

/// Several locks: each alone, and all in one network, which lose no less than the worst of them.
#[test]
fn several_locks_are_one_network() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("two.toml");
    let lock = |name: &str, hold: u32| {
        format!("{{ name = \"{name}\", requests_per_s = 1000, hold_us = {hold}, wait_us = 20 }}")
    };
    let figures = format!("cpus = 4\nsemaphores = [{}, {}]\n", lock("a", 200), lock("b", 300));
    std::fs::write(&path, figures).unwrap();
    let found = json(&["--metrics", path.to_str().unwrap(), "--cpus", "4,32"]);
    assert_eq!(found["rows"][0]["object"], "all");
    let working = |object| row(&found, object, 32)["effective_cpus"].as_f64().unwrap();
    assert!(working("all") <= working("b").min(working("a")), "{found:#}");
    // Both are there in the traced row: 2000 acquisitions a second, of 250 us and 20 us.
    let all = row(&found, "all", 4);
    assert_eq!((&all["throughput_per_s"], &all["hold_ns"]), (&2000.0.into(), &250_000.into()));
    assert_eq!((&all["wait_ns"], &all["measured_effective_cpus"]), (&20_000.into(), &3.96.into()));
}

// ---- predicted against measured --------------------------------------------------------------

/// A labelled recording of some work on some number of CPUs, with what is said of its worst lock.
struct Rung {
    cpus: u32,
    name: String,
    forecast: Forecast,
}

impl Rung {
    /// Working CPUs that were measured with the lock that costs most.
    fn measured(&self) -> Option<f64> {
        self.worst(self.cpus)?.measured_effective_cpus
    }

    fn worst(&self, cpus: u32) -> Option<&holdup_diagnose::predict::PredictRow> {
        let mut rows = self.forecast.rows.iter().filter(|r| r.object != "all");
        let object = &rows.clone().next()?.object;
        rows.find(|r| r.object == *object && r.cpus == cpus)
    }
}

/// Work that was recorded on several numbers of CPUs: all ladders of the corpus whose programs
/// contend for something that one at a time has. What differs within one is the CPUs; the workers
/// are eight, or one for each CPU.
fn ladders() -> Vec<(String, Vec<Rung>)> {
    let dir = corpus().join("vm");
    let labels = std::fs::read_to_string(dir.join("LABELS.tsv")).unwrap();
    let mut works: BTreeMap<String, (bool, Vec<(u32, String)>)> = BTreeMap::new();
    for line in labels.lines().skip(1) {
        let fields: Vec<&str> = line.split('\t').collect();
        let (file, work, class) = (fields[0], fields[5], fields[7]);
        let folder = file.split('/').next().unwrap();
        if !folder.starts_with("debian61") || !dir.join(file).is_file() {
            continue;
        }
        let like = |p: &&str| {
            !p.starts_with("dur=") && (!p.starts_with("n=") || folder == "debian61-ladder")
        };
        let work: Vec<&str> = work.split(' ').filter(like).collect();
        let contended = work[0] == "server"
            || ["kernel_lock", "thread_serialization", "application_serialization"]
                .iter()
                .any(|c| class.split('|').any(|own| own == *c));
        let of_work = works.entry(work.join(" ")).or_default();
        of_work.0 |= contended;
        of_work.1.push((fields[4].parse().unwrap(), file.into()));
    }
    let works = works.into_iter().filter(|(_, (contended, _))| *contended);
    let works = works.map(|(work, (_, files))| (work, files));
    let works = works.filter(|(_, files)| files.iter().any(|f| f.0 != files[0].0));
    let read = |(work, mut files): (String, Vec<(u32, String)>)| {
        files.sort();
        let all: Vec<u32> = files.iter().map(|f| f.0).collect();
        let rung = |(cpus, file): &(u32, String)| {
            let reader = holdup_open::open(&dir.join(file)).unwrap();
            let analysis = analyze(&*reader, &Options::default()).unwrap();
            let forecast = of_trace(&Attribution::from(&analysis), &all, None);
            Rung { cpus: *cpus, name: file.split('/').next_back().unwrap().to_owned(), forecast }
        };
        (work, files.iter().map(rung).collect())
    };
    in_parallel(works.collect(), read)
}

fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    match sorted.len() {
        0 => f64::NAN,
        n if n % 2 == 1 => sorted[n / 2],
        n => (sorted[n / 2 - 1] + sorted[n / 2]) / 2.0,
    }
}

/// The ladders on which it was decided that holds go before lost CPUs where both are known. All
/// others are held out.
const FOR_RULES: [&str; 6] = [
    "condvar cs=200 think=200",
    "flock cs=400 think=400",
    "mmap think=100",
    "mutex cs=300 think=200",
    "mutex n=8 cs=200 think=600",
    "server cs=800 think=400",
];

/// The table of docs/models.md: every step of every ladder, predicted from the smaller machine.
fn predicted_against_measured(ladders: &[(String, Vec<Rung>)]) -> String {
    let mut table = String::from(
        "| half | work | from | to | demand | from | predicted | measured | error |\n\
         |---|---|---|---|---|---|---|---|---|\n",
    );
    let mut errors = [Vec::new(), Vec::new()];
    for (work, rungs) in ladders {
        let held_out = !FOR_RULES.contains(&work.as_str());
        for (here, from) in rungs.iter().enumerate() {
            let mut targets: Vec<u32> = rungs.iter().map(|r| r.cpus).collect();
            targets.dedup();
            // One row where several recordings are the same step.
            if rungs[..here].iter().any(|r| r.cpus == from.cpus) {
                continue;
            }
            for to in targets.into_iter().filter(|&to| to > from.cpus) {
                let same = rungs.iter().filter(|r| r.cpus == to);
                let measured: Vec<f64> = same.filter_map(Rung::measured).collect();
                let Some(row) = from.worst(to) else { continue };
                let (measured, basis) = (median(&measured), row.basis.map_or("", |b| b.id()));
                let half = if held_out { "held out" } else { "rules" };
                let Some((predicted, demand)) = row.effective_cpus.zip(row.demand) else {
                    writeln!(
                        table,
                        "| {half} | `{work}` | {} | {to} | n/a | | n/a | {measured:.2} | |",
                        from.cpus
                    )
                    .unwrap();
                    continue;
                };
                let error = (predicted / measured - 1.0) * 100.0;
                errors[usize::from(held_out)].push(error.abs());
                writeln!(
                    table,
                    "| {half} | `{work}` | {} | {to} | {:.1} % | {basis} | {predicted:.2} | \
                     {measured:.2} | {error:+.0} % |",
                    from.cpus,
                    demand * 100.0
                )
                .unwrap();
            }
        }
    }
    let sum = |errors: &[f64]| {
        let near = errors.iter().filter(|&&e| e <= 15.0).count();
        format!(
            "median error {:.0} %, {near} of {} steps within 15 %, worst {:.0} %",
            median(errors),
            errors.len(),
            errors.iter().copied().fold(0.0, f64::max)
        )
    };
    let held_out = sum(&errors[1]);
    let mut said = format!("Held-out half: {held_out}.\nHalf for rules: {}.\n", sum(&errors[0]));
    // The same work on the same CPUs, recorded again and again.
    for (work, rungs) in ladders {
        let eight: Vec<f64> =
            rungs.iter().filter(|r| r.cpus == 8).filter_map(Rung::measured).collect();
        if eight.len() >= 5 {
            let (low, high) =
                eight.iter().fold((f64::INFINITY, 0.0_f64), |(a, b), &x| (a.min(x), b.max(x)));
            writeln!(
                said,
                "Run-to-run spread: `{work}` on 8 CPUs, recorded {} times, had {low:.2} to \
                 {high:.2} working CPUs, median {:.2}.",
                eight.len(),
                median(&eight)
            )
            .unwrap();
        }
    }
    format!("{said}\n{table}")
}

const BEGIN: &str =
    "<!-- predicted against measured: HOLDUP_BLESS=1 cargo test --test predict -->\n";
const END: &str = "<!-- end -->\n";

#[needs(corpus)]
#[test]
fn the_table_of_predictions_is_up_to_date() {
    let ladders = ladders();
    assert!(ladders.len() >= 8, "{}", ladders.len());
    for rung in ladders.iter().flat_map(|l| &l.1) {
        for row in &rung.forecast.rows {
            let none_negative = [row.effective_cpus, row.lost_cpus, row.measured_effective_cpus]
                .iter()
                .all(|x| x.is_none_or(|x| x >= 0.0 && x.is_finite()));
            assert!(none_negative, "{}: {row:?}", rung.name);
        }
    }
    let made = predicted_against_measured(&ladders);
    let path = root().join("docs/models.md");
    let text = std::fs::read_to_string(&path).unwrap();
    let (before, rest) = text.split_once(BEGIN).expect("docs/models.md has the mark");
    let (published, after) = rest.split_once(END).expect("docs/models.md has the end");
    if std::env::var_os("HOLDUP_BLESS").is_some() {
        std::fs::write(&path, format!("{before}{BEGIN}\n{made}\n{END}{after}")).unwrap();
    } else {
        assert_eq!(published.trim(), made.trim(), "HOLDUP_BLESS=1 cargo test --test predict");
    }
}

/// The examples of the document print what stands there.
#[test]
fn the_documents_figures_are_those_printed() {
    let text = std::fs::read_to_string(Path::new(root()).join("docs/models.md")).unwrap();
    let block = text.split("$ holdup predict --demand 6% --cpus 8,16,32 --threads 32\n").nth(1);
    let printed = block.and_then(|b| b.split("```").next()).expect("the example is there");
    let args = ["predict", "-q", "--demand", "6%", "--cpus", "8,16,32", "--threads", "32"];
    assert_eq!(printed, stdout(&args));
}
