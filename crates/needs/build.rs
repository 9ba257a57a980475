//! Looks for what some tests need and writes what is missing into a table for the macros.
//!
//! Cargo runs this again when a tool that was found changes, and when anything is installed into a
//! folder of `PATH` while a tool is missing. Cargo cannot wait for a folder to appear: after
//! putting recordings next to the repository, or npm packages into `target/ci-node`, run
//! `cargo clean -p holdup-needs`.

use std::env;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Recordings that are too many for the repository, expected next to it.
const RECORDINGS: &str = "../../../shared/corpus";

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=PATH");

    let manifest = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it"));
    let recordings = manifest.join(RECORDINGS);
    let labels = recordings.join("vm/LABELS.tsv");
    if labels.exists() {
        println!("cargo::rerun-if-changed={}", labels.display());
    }
    let perf = version("perf");
    // The tests of the tables know the rules of this version, with its errors.
    let perf_6_1 = perf.clone().and_then(|version| {
        if version.starts_with("perf version 6.1.") { Ok(version) } else { Err(version) }
    });

    // Perfetto's own reader of its traces.
    let perfetto = imports("perfetto.protos.perfetto.trace.perfetto_trace_pb2", "perfetto");

    // Some tests record: even with perf installed, the kernel may refuse, as it does in most
    // containers.
    let tracepoints = perf.clone().and_then(|_| records_tracepoints());

    // Every probe: its name in `#[needs(..)]`, its name in words, and the result.
    let probes = [
        ("perf", "perf", perf),
        ("perf_6_1", "perf 6.1", perf_6_1),
        ("tracepoints", "the right to record tracepoints", tracepoints),
        ("trace_cmd", "trace-cmd", version("trace-cmd")),
        ("babeltrace2", "babeltrace2", version("babeltrace2")),
        // Runs a program with fewer rights.
        ("root", "root", is_root()),
        ("unshare", "namespaces of one's own", makes_namespaces()),
        // Read manual pages and completion scripts, and make a terminal.
        ("groff", "groff", version("groff")),
        ("jq", "jq", version("jq")),
        ("bash", "bash", version("bash")),
        ("zsh", "zsh", version("zsh")),
        ("fish", "fish", version("fish")),
        ("script", "script", version("script")),
        // Writes the bill of materials of a release.
        ("python", "python3", version("python3")),
        ("crates", "all crates of Cargo.lock", all_crates()),
        // Validates XML against a schema.
        ("xmllint", "xmllint", version("xmllint")),
        // Open and drive pages, and check their accessibility.
        ("chromium", "chromium", version("chromium")),
        (
            "node_browser",
            "the npm packages puppeteer-core and axe-core",
            npm_packages(&manifest, &["puppeteer-core", "axe-core"]),
        ),
        // Know inlined functions, and open profiles.
        ("addr2line", "addr2line", version("addr2line")),
        ("go", "go", tool("go", "version")),
        (
            "profiler_cli",
            "the npm package @firefox-devtools/profiler-cli",
            npm_packages(&manifest, &["@firefox-devtools/profiler-cli"]),
        ),
        ("perfetto_python", "the Python package perfetto", perfetto),
        // Read exported tables and exported traces.
        ("trace_processor", "trace_processor_shell", version("trace_processor_shell")),
        (
            "pyarrow",
            "the Python packages pyarrow and duckdb",
            imports("pyarrow.parquet, duckdb", "pyarrow duckdb"),
        ),
        (
            "dask",
            "the Python package dask.distributed",
            imports("dask.distributed", "'dask[distributed]'"),
        ),
        ("corpus", "../shared/corpus", labels.exists().then(String::new).ok_or("absent".into())),
    ];

    let mut table = String::from("const PROBES: &[(&str, Option<&str>)] = &[\n");
    for (name, words, found) in probes {
        let missing = found.err().map(|why| format!("needs {words}: {why}"));
        writeln!(table, "    ({name:?}, {missing:?}),").expect("a String takes it");
    }
    writeln!(table, "];").expect("a String takes it");
    writeln!(table, "const CORPUS: &str = {:?};", recordings.display().to_string())
        .expect("a String takes it");
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets it"));
    fs::write(out.join("probes.rs"), table).expect("the build folder can be written");
}

/// Whether the registry has the crates of all features, not only those of the default build, or how
/// to get them.
fn all_crates() -> Result<String, String> {
    println!("cargo::rerun-if-changed=../../Cargo.lock");
    let mut metadata = Command::new(env::var_os("CARGO").expect("cargo sets it"));
    metadata.args(["metadata", "--locked", "--offline", "--format-version", "1"]);
    metadata.args(["--filter-platform", "x86_64-unknown-linux-musl"]);
    match metadata.stdin(Stdio::null()).output() {
        Ok(out) if out.status.success() => Ok(String::new()),
        _ => Err("cargo fetch".into()),
    }
}

/// Whether Python can import these modules of these packages, or how to install them.
fn imports(modules: &str, packages: &str) -> Result<String, String> {
    let mut import = Command::new("python3");
    import.args(["-c", &format!("import {modules}")]);
    match import.stdin(Stdio::null()).output() {
        Ok(out) if out.status.success() => Ok(String::new()),
        _ => Err(format!("python3 cannot import it (pip install {packages})")),
    }
}

/// Whether perf may record tracepoints of the whole machine, or why not.
fn records_tracepoints() -> Result<String, String> {
    let file = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets it")).join("probe.data");
    let mut perf = Command::new("perf");
    perf.args(["record", "-q", "-a", "-e", "sched:sched_switch", "-o"]).arg(&file);
    let done = perf.args(["--", "true"]).stdin(Stdio::null()).output();
    let recorded = done.is_ok_and(|out| out.status.success()) && file.exists();
    // Fails if the file is not there; what was recorded is not needed.
    let _ = fs::remove_file(file);
    recorded.then(String::new).ok_or_else(|| "perf record -a -e sched:sched_switch fails".into())
}

/// Whether node finds these packages, in the folder that CI puts them in.
fn npm_packages(manifest: &Path, packages: &[&str]) -> Result<String, String> {
    version("node")?;
    let folder = manifest.join("../../target/ci-node");
    let lock = folder.join("package-lock.json");
    // Cargo takes a file that is not there for one that has changed, each time.
    if lock.exists() {
        println!("cargo::rerun-if-changed={}", lock.display());
    }
    let missing = |name: &&&str| !folder.join("node_modules").join(name).is_dir();
    match packages.iter().find(missing) {
        None => Ok(String::new()),
        Some(name) => Err(format!("npm install --prefix target/ci-node {name}")),
    }
}

/// Whether this is root, or which user it is.
fn is_root() -> Result<String, String> {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let user = status.lines().find_map(|l| l.strip_prefix("Uid:")).unwrap_or("").split_whitespace();
    match user.clone().next() {
        Some("0") => Ok(String::new()),
        Some(user) => Err(format!("this is user {user}")),
        None => Err("/proc/self/status does not say who this is".to_owned()),
    }
}

/// Whether unshare may make namespaces of users, mounts and PIDs, or why not.
fn makes_namespaces() -> Result<String, String> {
    version("unshare")?;
    for args in [&["-U"][..], &["-m"], &["-p", "-f", "--mount-proc"]] {
        let mut unshare = Command::new("unshare");
        let done = unshare.args(args).arg("true").stdin(Stdio::null()).output();
        if !done.is_ok_and(|out| out.status.success()) {
            return Err(format!("unshare {} fails", args.join(" ")));
        }
    }
    Ok(String::new())
}

/// The first line a tool prints of itself, or why it prints none.
fn version(name: &str) -> Result<String, String> {
    tool(name, "--version")
}

/// The first line of a tool that has another option for its version.
fn tool(tool: &str, version: &str) -> Result<String, String> {
    let folders: Vec<PathBuf> =
        env::split_paths(&env::var_os("PATH").unwrap_or_default()).filter(|p| p.is_dir()).collect();
    let Some(path) = folders.iter().map(|f| f.join(tool)).find(|p| p.is_file()) else {
        for folder in folders {
            println!("cargo::rerun-if-changed={}", folder.display());
        }
        return Err("not in PATH".into());
    };
    println!("cargo::rerun-if-changed={}", path.display());
    run(&path, version).ok_or_else(|| format!("{} does not run", path.display()))
}

fn run(path: &Path, version: &str) -> Option<String> {
    let out = Command::new(path).arg(version).stdin(Stdio::null()).output().ok()?;
    // Old trace-cmds know no --version but print their version with the usage.
    // xmllint prints its version as an error.
    let silent = out.stdout.is_empty() && out.status.success();
    let text = String::from_utf8_lossy(if silent { &out.stderr } else { &out.stdout });
    let line = text.lines().map(str::trim).find(|l| !l.is_empty())?;
    Some(line.to_owned())
}
