//! `holdup fleet`: every trace counts once, whatever lies beside it; a run that is killed goes on;
//! and whoever judged the traces, the tables are the same.

mod document;
mod engines;
mod killed;
mod oddities;
mod others;

use crate::support::{fixture, holdup, recording};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;
use std::time::{Duration, SystemTime};
use tempfile::TempDir;

/// Small recordings with different verdicts and hosts.
const TRACES: [&str; 6] = [
    "thr_mutex_perfz_c8",
    "lost_sysloop_n2",
    "host_falseshare_n2",
    "imb_server_c4",
    "ser_append_case2_c2",
    "healthy_cpu_threads_c4",
];

/// A folder with traces, and one for what comes of them.
struct Bench {
    folder: TempDir,
}

impl Bench {
    fn new() -> Bench {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("in")).unwrap();
        Bench { folder }
    }

    /// With each of [`TRACES`] in it.
    fn with_traces() -> Bench {
        let bench = Bench::new();
        for name in TRACES {
            fs::copy(recording(name), bench.input(&format!("{name}.data"))).unwrap();
        }
        bench
    }

    /// A path below the folder with traces.
    fn input(&self, name: &str) -> PathBuf {
        self.folder.path().join("in").join(name)
    }

    /// A path beside it.
    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Run `holdup fleet` on the folder, into `to`.
    fn fleet(&self, to: &str, more: &[&str]) -> Output {
        let mut command = holdup();
        command.current_dir(self.folder.path()).args(["fleet", "in", "--to", to]).args(more);
        command.output().unwrap()
    }

    /// Run `holdup fleet` with these words, in the folder.
    fn run(&self, words: &[&str]) -> Output {
        holdup().current_dir(self.folder.path()).arg("fleet").args(words).output().unwrap()
    }

    /// What became of each file: its row in the manifest, by path.
    fn manifest(&self, to: &str) -> BTreeMap<String, Value> {
        let text = fs::read_to_string(self.path(to).join("manifest.json")).unwrap();
        let manifest: Value = serde_json::from_str(&text).unwrap();
        let files = manifest["files"].as_array().unwrap().clone();
        files.into_iter().map(|f| (f["path"].as_str().unwrap().to_owned(), f)).collect()
    }

    /// Paths of files with this outcome.
    fn with_outcome(&self, to: &str, outcome: &str) -> Vec<String> {
        let files = self.manifest(to);
        files.into_iter().filter(|(_, f)| f["outcome"] == outcome).map(|(path, _)| path).collect()
    }

    /// Every file of the tables, with its bytes.
    fn tables(&self, to: &str) -> BTreeMap<PathBuf, Vec<u8>> {
        fn walk(folder: &Path, below: &Path, found: &mut BTreeMap<PathBuf, Vec<u8>>) {
            for entry in fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    walk(&path, below, found);
                } else {
                    let name = path.strip_prefix(below).unwrap().to_owned();
                    found.insert(name, fs::read(&path).unwrap());
                }
            }
        }
        let (folder, mut found) = (self.path(to).join("tables"), BTreeMap::new());
        walk(&folder, &folder, &mut found);
        assert!(found.len() >= 8, "a file of each table at least");
        found
    }
}

fn code(output: &Output) -> i32 {
    output.status.code().expect("an exit code")
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

/// How many traces a run read itself.
#[track_caller]
fn judged(output: &Output) -> usize {
    let said = stderr(output);
    let (_, rest) = said.split_once("holdup: ").unwrap_or_else(|| panic!("{said}"));
    rest.split_once(" traces read in ").unwrap_or_else(|| panic!("{said}")).0.parse().unwrap()
}

#[test]
fn verdicts_are_those_of_diagnose_and_rankings_add_them_up() {
    let bench = Bench::with_traces();
    let out = bench.fleet("out", &["--format", "json"]);
    assert_eq!((code(&out), judged(&out)), (0, TRACES.len()), "{}", stderr(&out));
    let answer: Value = serde_json::from_slice(&out.stdout).unwrap();
    let mut expected: BTreeMap<String, u64> = BTreeMap::new();
    let manifest = bench.manifest("out");
    for name in TRACES {
        // The exit code tells of verdicts too.
        let trace = recording(name);
        let said = crate::support::run(&["diagnose", "-j", trace.to_str().unwrap()]).stdout;
        let diagnosis: Value = serde_json::from_slice(&said).unwrap();
        let class = diagnosis["verdict"]["class"].as_str().unwrap();
        assert_eq!(manifest[&format!("in/{name}.data")]["verdict"], class, "{name}");
        *expected.entry(class.to_owned()).or_default() += 1;
    }
    let rows = answer["verdicts"].as_array().unwrap();
    let found = rows
        .iter()
        .map(|r| (r["verdict"].as_str().unwrap().to_owned(), r["traces"].as_u64().unwrap()));
    assert_eq!(found.collect::<BTreeMap<_, _>>(), expected);
    let pct: f64 = rows.iter().map(|r| r["pct"].as_f64().unwrap()).sum();
    assert!((pct - 100.0).abs() < 1e-9, "{pct}");
    assert_eq!(answer["fleet"]["judged"], TRACES.len());
    let mutex = &answer["objects"][0];
    assert_eq!(mutex["name"], "mutex of wl", "{mutex}");
    assert_eq!(mutex["traces"], 1);
    assert_eq!(mutex["worst"], "in/thr_mutex_perfz_c8.data");
}

#[test]
fn every_form_has_the_rankings_and_names_what_failed() {
    let bench = Bench::with_traces();
    fs::write(bench.input("cut.data"), &fs::read(recording(TRACES[0])).unwrap()[..90]).unwrap();
    for (format, parts) in [
        ("text", &["Verdicts\n", "mutex of wl", "Could not be read (1)", "in/cut.data: "][..]),
        ("csv", &["# verdicts\nverdict,traces,pct,", "# failed\npath,error\nin/cut.data,"]),
        ("md", &["# holdup fleet", "## verdicts", "mutex of wl", "in/cut.data"]),
        ("html", &["<!doctype html>", "mutex of wl", "in/cut.data"]),
    ] {
        let out = bench.fleet("out", &["--format", format, "-q"]);
        assert_eq!((code(&out), stderr(&out).as_str()), (3, ""), "{format}");
        let text = String::from_utf8(out.stdout).unwrap();
        for part in parts {
            assert!(text.contains(part), "{format}: {part:?}: {text}");
        }
    }
}

#[test]
fn partitions_are_folders_or_columns() {
    let bench = Bench::with_traces();
    for (partition, depth) in [("date-host", 4), ("date", 3), ("none", 2)] {
        let out = bench.fleet("out", &["--partition", partition, "-q"]);
        assert_eq!(code(&out), 0, "{}", stderr(&out));
        for path in bench.tables("out").keys() {
            assert_eq!(path.components().count(), depth, "{}", path.display());
        }
    }
    let one_each = bench.fleet("out", &["--partition", "none", "--per-file", "1", "-q"]);
    assert_eq!(code(&one_each), 0);
    let traces = bench.tables("out").into_keys().filter(|p| p.starts_with("trace"));
    assert_eq!(traces.count(), TRACES.len());
}

#[test]
fn the_date_is_that_of_the_recording_or_else_of_the_file() {
    let bench = Bench::new();
    let written = SystemTime::UNIX_EPOCH + Duration::from_secs(951_782_400);
    for (from, to) in [
        ("equivalence/ser_semop_c4/perf.data.zst", "clock.zst"),
        ("equivalence/lttng_ser_semop_c4/lttng.tar.gz", "lttng.tar.gz"),
        ("host_falseshare_n2/perf.data", "no-clock.data"),
    ] {
        fs::copy(fixture(from), bench.input(to)).unwrap();
        let file = fs::File::options().write(true).open(bench.input(to)).unwrap();
        file.set_modified(written).unwrap();
    }
    let out = bench.fleet("out", &["-q"]);
    assert_eq!(code(&out), 0, "{}", stderr(&out));
    let files = bench.manifest("out");
    for (name, recorded, from, host) in [
        ("in/clock.zst", "2026-11-21T02:15:08Z", "trace", "unknown"),
        ("in/lttng.tar.gz", "2026-11-22T06:18:03Z", "trace", "unknown"),
        ("in/no-clock.data", "2000-02-29T00:00:00Z", "mtime", "vm"),
    ] {
        let file = &files[name];
        assert_eq!(file["recorded"], recorded, "{file}");
        assert_eq!((&file["date_from"], &file["host"]), (&from.into(), &host.into()), "{file}");
    }
    let place = Path::new("trace/date=2000-02-29/host=vm/part-0000.parquet");
    assert!(bench.tables("out").contains_key(place));
}
