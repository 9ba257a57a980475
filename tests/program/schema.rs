//! The JSON Schemas in `docs/schema/`: that they are those of the types, and that real output and
//! real figures conform to them.

use holdup_gate::change_points::Options;
use holdup_gate::history::Course;
use holdup_gate::judge::Sides;
use holdup_gate::metric::Per;
use holdup_gate::policy::Policy;
use holdup_gate::run::Setting;
use holdup_gate::scale::{Known, Step, scaling};
use holdup_gate::self_test::self_test;
use holdup_gate::verdict::decide;
use holdup_gate::{Baseline, Run, Work};
use holdup_render::compare::{
    self, BaselineReport, Comparison, DiffReport, GateReport, HistoryReport, ScaleReport,
    SelfTestReport, SideHead,
};
use holdup_render::{Format, json_schema};
use jsonschema::Validator;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::Command;

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// `docs/schema/NAME` must be `made`; `HOLDUP_BLESS=1` writes it.
#[track_caller]
fn is_published(name: &str, made: &Value) {
    let path = root().join("docs/schema").join(name);
    let made = format!("{made:#}\n");
    if std::env::var_os("HOLDUP_BLESS").is_some() {
        std::fs::write(&path, &made).unwrap();
    }
    let published = std::fs::read_to_string(&path).unwrap();
    assert!(
        published == made,
        "docs/schema/{name} is not what the types say; HOLDUP_BLESS=1 cargo test --test program \
         schema writes it"
    );
}

#[test]
fn the_published_schemas_are_those_of_the_types() {
    is_published("holdup-1.json", &json_schema::outputs());
    is_published("metrics.json", &json_schema::figures());
}

#[track_caller]
fn validator(schema: &Value) -> Validator {
    assert!(jsonschema::meta::is_valid(schema), "no schema: {schema:#}");
    jsonschema::validator_for(schema).unwrap_or_else(|e| panic!("{e}"))
}

/// What is wrong with `value`, one line each.
fn complaints(validator: &Validator, value: &Value) -> String {
    validator.iter_errors(value).take(10).map(|e| format!("{}: {e}\n", e.instance_path())).collect()
}

/// The published schema, whole and by verb: the whole one only says that no verb fits.
struct Published {
    schema: Value,
    whole: Validator,
}

impl Published {
    fn new() -> Published {
        let schema = json_schema::outputs();
        Published { whole: validator(&schema), schema }
    }

    fn of(&self, definition: &str) -> Validator {
        let reference = format!("#/$defs/{definition}");
        assert!(self.schema.pointer(&reference[1..]).is_some(), "no {definition} in the schema");
        validator(&json!({ "$ref": reference, "$defs": self.schema["$defs"] }))
    }
}

fn output(args: &[&str]) -> Value {
    let out =
        Command::new(env!("CARGO_BIN_EXE_holdup")).current_dir(root()).args(args).output().unwrap();
    serde_json::from_slice(&out.stdout)
        .unwrap_or_else(|e| panic!("{args:?}: {e}\n{}", String::from_utf8_lossy(&out.stderr)))
}

/// Each of `runs`, verb first, prints what the schema says of that verb, and of no other.
#[track_caller]
fn conform(schema: &Published, runs: &[Vec<&str>]) {
    let mut known: Vec<(&str, Validator)> = Vec::new();
    for args in runs {
        let verb = args[0];
        if !known.iter().any(|(name, _)| *name == verb) {
            known.push((verb, schema.of(&format!("output-{verb}"))));
        }
        let own = &known.iter().find(|(name, _)| *name == verb).unwrap().1;
        let value = output(args);
        let wrong = complaints(own, &value);
        assert!(wrong.is_empty(), "{args:?}:\n{wrong}");
        assert!(schema.whole.is_valid(&value), "{args:?} fits {verb}, but not it alone");
    }
}

const TRACES: [&str; 5] = [
    "fixtures/profile_bank/perf.data",
    "fixtures/thr_mutex_perfz_c8/perf.data",
    "fixtures/lost_sysloop_n2/perf.data",
    "fixtures/host_falseshare_n2/perf.data",
    "fixtures/tracedat-small/thr_mutex_tc6_c8.trace.dat.zst",
];

#[test]
fn outputs_of_every_verb_conform() {
    let schema = Published::new();
    for trace in TRACES {
        let verbs = [
            "syscalls", "procs", "cpus", "switches", "irqs", "locks", "waits", "latency", "path",
            "ledger", "info", "summary", "diagnose", "guide", "phases", "predict",
        ];
        let mut runs: Vec<Vec<&str>> = verbs.iter().map(|verb| vec![*verb]).collect();
        for by in ["process", "thread"] {
            runs.push(vec!["syscalls", "--by", by]);
            runs.push(vec!["procs", "--by", by]);
        }
        for by in ["function", "thread", "process", "dso", "line", "cpu"] {
            runs.push(vec!["profile", "--by", by]);
        }
        runs.push(vec!["profile", "--children"]);
        for way in ["top-down", "bottom-up"] {
            runs.push(vec!["profile", "--tree", way]);
        }
        for by in ["class", "caller", "type", "task"] {
            runs.push(vec!["locks", "--by", by]);
        }
        for by in ["kind", "thread", "caller"] {
            runs.push(vec!["waits", "--by", by]);
        }
        runs.push(vec!["procs", "--by", "command"]);
        runs.push(vec!["irqs", "--by", "total"]);
        runs.push(vec!["waits", "--graph", "json"]);
        runs.push(vec!["waits", "--hist"]);
        runs.push(vec!["locks", "--hist"]);
        runs.push(vec!["summary", "--per-cpu"]);
        runs.push(vec!["whatif"]);
        runs.push(vec!["whatif", "--cpus", "1,4", "--devices", "none"]);
        runs.iter_mut().for_each(|run| run.extend(["-j", trace]));
        conform(&schema, &runs);
    }
}

#[test]
fn a_look_at_tables_and_samples_conforms() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("long.txt");
    let line = "  worker-100   [000] d..2.   100.000001: sched_wakeup: comm=a pid=7 prio=120 \
                target_cpu=000\n";
    std::fs::write(&path, format!("# tracer: nop\n#\n{}", line.repeat(200_000))).unwrap();
    let path = path.to_str().unwrap();
    let (quick, full) = (vec!["info", "-j", path], vec!["info", "-j", "--full", path]);
    assert_eq!(output(&quick)["info"]["complete"], false);
    conform(&Published::new(), &[quick, full]);
}

#[test]
fn diagnoses_of_every_fixture_conform() {
    let mut runs = vec![vec!["rules", "-j"], vec!["rules", "-j", "io-bound"]];
    let fixtures = std::fs::read_dir(root().join("fixtures")).unwrap();
    let traces: Vec<PathBuf> = fixtures.map(|e| e.unwrap().path().join("perf.data")).collect();
    let traces: Vec<&str> =
        traces.iter().filter(|t| t.exists()).map(|t| t.to_str().unwrap()).collect();
    assert!(traces.len() >= 10);
    runs.extend(traces.iter().map(|trace| vec!["diagnose", "-j", trace]));
    let cases = (1..=4).map(|n| format!("fixtures/published/aix-case-{n}.toml"));
    let cases: Vec<String> = cases.collect();
    runs.extend(cases.iter().map(|case| vec!["diagnose", "-j", "--metrics", case]));
    runs.push(vec!["predict", "-j", "--demand", "6%"]);
    let published = "fixtures/published/bier-vernon-table-1.toml";
    runs.push(vec!["predict", "-j", "--metrics", published, "--case", "idle-c2"]);
    conform(&Published::new(), &runs);
}

fn measured(folder: &str) -> Run {
    let path = root().join("fixtures").join(folder).join("perf.data");
    Run::measure(&*holdup_open::open(&path).unwrap(), None).unwrap()
}

/// Comparisons have a head for each side instead of a trace.
#[test]
fn comparisons_conform() {
    let schema = Published::new();
    let (before, after) = (measured("thr_mutex_perfz_c8"), measured("host_falseshare_n2"));
    let sides = Sides { a: &vec![before.clone(); 6], b: &vec![after; 6], paired: false };
    let heads = || (SideHead::of(sides.a, Some("base.json")), SideHead::of(sides.b, None));
    let work = Work::Units(2.0);
    let policy = Policy::of(Policy::default_metric(&work));
    let (a, b) = heads();
    let verdict = decide(sides, &policy, &work, &[], 0).unwrap();
    let gate = GateReport { verdict, a, b, baseline: Some("base.json".to_owned()) };
    let test = self_test(sides.a, &policy, &work, 5).unwrap();
    let baseline = Baseline { work: None, redacted: false, runs: sides.a.to_vec() };
    let course = [("1".to_owned(), baseline.clone()), ("2".to_owned(), baseline.clone())];
    let course = Course::of(&course, &policy.primary.metric, &work, &Options::default());
    let self_test = SelfTestReport { baseline: "base.json".to_owned(), test };
    for (verb, comparison) in [
        ("diff", Comparison::Diff(DiffReport::of(sides, heads(), Per::Work, &work))),
        ("gate", Comparison::Gate(Box::new(gate))),
        ("gate", Comparison::SelfTest(Box::new(self_test))),
        ("history", Comparison::History(HistoryReport { course })),
        ("baseline", Comparison::Baseline(BaselineReport::of("base.json", &baseline, &work))),
        ("scale", Comparison::Scale(ladder(&before))),
    ] {
        let mut text = Vec::new();
        compare::write(&comparison, &Format::Json, &mut text).unwrap();
        let good: Value = serde_json::from_slice(&text).unwrap();
        let wrong = complaints(&schema.of(&format!("output-{verb}")), &good);
        assert!(wrong.is_empty(), "{verb}:\n{wrong}");
        refused(&schema, &good, "an unknown key", |v| v["moon"] = 1.into());
        refused(&schema, &good, "another verb", |v| v["command"] = "info".into());
        if verb == "diff" {
            let row = good["rows"][0].as_object().unwrap();
            for key in ["table", "key", "metric", "a", "b", "change"] {
                assert!(row.contains_key(key), "{key}");
            }
            refused(&schema, &good, "a number in words", |v| v["rows"][0]["a"] = "1 ms".into());
        }
    }
}

/// Many traces are not one.
#[test]
fn what_fleet_says_conforms() {
    let (schema, folder) = (Published::new(), tempfile::tempdir().unwrap());
    let cut = folder.path().join("cut.data");
    std::fs::write(&cut, "PERFILE2").unwrap();
    let mut args = vec!["fleet", "-j", "--to", folder.path().to_str().unwrap()];
    args.extend([cut.to_str().unwrap()]);
    args.extend(TRACES);
    conform(&schema, &[args]);
}

/// A host is not a trace either, whatever it allows.
#[test]
fn what_doctor_says_conforms() {
    let schema = Published::new();
    conform(&schema, &[vec!["doctor", "-j"]]);
    let good = output(&["doctor", "-j"]);
    refused(&schema, &good, "a state there is not", |v| v["rows"][0]["state"] = "fine".into());
    refused(&schema, &good, "no way out", |v| v["rows"][0]["ways_out"] = Value::Null);
}

/// Recordings on both rows, so that leaves and system calls are there.
fn ladder(run: &Run) -> ScaleReport {
    let step = |cpus| {
        let setting = Setting { cpus, ..run.setting.clone() };
        let runs = vec![Run { setting, ..run.clone() }; 3];
        Step { cpus, known: Known::Runs(runs) }
    };
    let scaling = scaling([1, 2, 4].map(step).to_vec(), &Work::Unknown, None).unwrap();
    ScaleReport { scaling, work: Work::Unknown, entries: None }
}

/// A dump of counters is not a trace: its head is shorter.
#[test]
fn a_dump_of_lock_stat_conforms() {
    let folder = tempfile::tempdir().unwrap();
    let dump = folder.path().join("lock_stat");
    let text = "lock_stat version 0.4\n--\n class name con-bounces\n--\n\n  \
                &mm->mmap_lock-W: 1 2 1.00 9.00 10.00 5.00 3 40 0.10 7.00 80.00 2.00\n";
    std::fs::write(&dump, text).unwrap();
    let args = ["locks", "--by", "class", "-j", dump.to_str().unwrap()];
    assert_eq!(output(&args)["rows"][0]["acquired"], 40);
    conform(&Published::new(), &[args.to_vec()]);
}

/// `change` makes of a good output one that the schema must refuse.
#[track_caller]
fn refused(schema: &Published, good: &Value, why: &str, change: impl Fn(&mut Value)) {
    assert!(schema.whole.is_valid(good), "{}", complaints(&schema.whole, good));
    let mut value = good.clone();
    change(&mut value);
    assert_ne!(&value, good, "{why}: no change");
    assert!(!schema.whole.is_valid(&value), "accepted: {why}");
}

#[test]
fn the_schema_refuses_what_is_not_so() {
    let schema = Published::new();
    let good = output(&["diagnose", "-j", "fixtures/imb_server_c4/perf.data"]);
    let refused = |why: &str, change: &dyn Fn(&mut Value)| refused(&schema, &good, why, change);
    refused("a class there is not", &|v| v["verdict"]["class"] = "slow".into());
    refused("fewer CPUs than none", &|v| v["trace"]["cpus"] = (-1).into());
    refused("an unknown key in a finding", &|v| v["findings"][0]["moon"] = 1.into());
    refused("an unknown key beside them", &|v| v["moon"] = 1.into());
    refused("no next", &|v| drop(v.as_object_mut().unwrap().remove("next")));
    refused("another version", &|v| v["schema"] = "holdup/2".into());
    refused("another verb's name", &|v| v["command"] = "guide".into());
    refused("half a nanosecond", &|v| v["ledger"]["capacity_ns"] = 0.5.into());
    refused("a culprit without holders", &|v| {
        drop(v["findings"][0]["culprits"][0].as_object_mut().unwrap().remove("holders"))
    });
}

#[test]
fn the_schema_refuses_rows_that_are_not_so() {
    let schema = Published::new();
    let trace = "fixtures/thr_mutex_perfz_c8/perf.data";
    for verb in
        ["syscalls", "procs", "cpus", "switches", "irqs", "waits", "path", "phases", "whatif"]
    {
        let good = output(&[verb, "-j", trace]);
        let row = good["rows"][0].as_object().unwrap_or_else(|| panic!("{verb} has no rows"));
        let refused = |why: &str, change: &dyn Fn(&mut Value)| {
            refused(&schema, &good, &format!("{verb}: {why}"), change);
        };
        refused("an unknown key", &|v| v["rows"][0]["moon"] = 1.into());
        for (key, value) in row {
            if value.is_string() {
                refused(key, &|v| v["rows"][0][key] = 1.into());
            } else if value.is_number() || value.is_boolean() {
                refused(key, &|v| v["rows"][0][key] = "moon".into());
            }
            refused(key, &|v| v["rows"][0][key] = json!([[]]));
        }
        // What is there whatever the table is grouped by.
        for key in ["total_ns", "combined_ns", "idle_ns", "runtime_ns", "wait_total_ns"] {
            if row.contains_key(key) {
                refused(key, &|v| drop(v["rows"][0].as_object_mut().unwrap().remove(key)));
            }
        }
    }
}

/// Figures of the folder `folder` of the fixtures, by file.
fn figures(folder: &str) -> Vec<(PathBuf, Value)> {
    let files = std::fs::read_dir(root().join(folder)).unwrap().map(|e| e.unwrap().path());
    files
        .filter(|path| path.extension().is_some_and(|e| e == "toml"))
        .map(|path| {
            let table: toml::Table = std::fs::read_to_string(&path).unwrap().parse().unwrap();
            (path, serde_json::to_value(table).unwrap())
        })
        .collect()
}

#[test]
fn published_figures_conform() {
    let schema = validator(&json_schema::figures());
    let files = [figures("fixtures/published"), figures("fixtures/figures")].concat();
    assert!(files.len() >= 7);
    for (path, value) in &files {
        let wrong = complaints(&schema, value);
        assert!(wrong.is_empty(), "{}:\n{wrong}", path.display());
    }
    assert!(Path::new(&root().join("docs/metrics.md")).exists());
}

/// The schema refuses what the reader refuses, but for what concerns several figures at once.
#[test]
fn the_schema_of_figures_and_their_reader_refuse_the_same() {
    let schema = validator(&json_schema::figures());
    for (text, good) in [
        ("cpus = 4", true),
        ("cpus = 0", false),
        ("cpus = -1", false),
        ("cpu = 4", false),
        ("[sar]\npct_usr = 100.5", true),
        ("[sar]\npct_usr = 101", false),
        ("[sar]\nscall_per_s = -1", false),
        ("[sar]\nscall_per_s = 500000", true),
        ("[sar]\nmoon = 1", false),
        ("[[syscalls]]\nname = \"semop\"\npct = 101", false),
        ("[[syscalls]]\nname = \"semop\"\npct = 63.181\ncount = 3", true),
        ("[[syscalls]]\nname = \"semop\"\ncount = 3.5", false),
        ("[[semaphores]]\nname = \"a\"\nowner = \"threads\"\nhold_us = 3.5", true),
        ("[[semaphores]]\nname = \"a\"\nowner = \"moon\"\nhold_us = 3.5", false),
        ("[[runs]]\ncpus = 2\nseconds = 3", true),
        ("[[runs]]\ncpus = 0\nseconds = 3", false),
        ("[[runs]]\nseconds = 3", false),
    ] {
        let table: toml::Table = text.parse().unwrap();
        let value = serde_json::to_value(table).unwrap();
        assert_eq!(complaints(&schema, &value).is_empty(), good, "the schema of {text}");
        let read = holdup_diagnose::metrics::Figures::parse(text, None);
        assert_eq!(read.is_ok(), good, "the reader of {text}: {read:?}");
    }
}
