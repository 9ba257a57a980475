//! `holdup fleet`: many traces at once.

pub(crate) mod args;
mod one;

use crate::config;
use crate::exit::{self, Failure, Result, bad_input, usage};
use crate::output::Output;
use crate::progress;
use crate::thresholds::thresholds;
use args::{FleetArgs, PartitionName};
use holdup_fleet::{
    Dataset, Entry, Head, Item, JOURNAL, Journal, Kind, MANIFEST, Partition, Progress, Settings,
    Stamp, Store, TABLES, Verdict, find, parts, run as judge_all, write,
};
use holdup_render::fleet::{FailedRow, FleetReport};
use std::io::{self, BufWriter, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;

/// Default number of rows of each ranking in text.
const ENTRIES: usize = 10;

/// Run the verb.
pub(crate) fn run(args: &FleetArgs) -> Result<u8> {
    if args.inputs.iter().any(|input| input.as_os_str() == "-") {
        return Err(usage("fleet: a trace cannot come from standard input; name files or folders"));
    }
    let settings =
        Settings { thresholds: thresholds(args.thresholds.as_deref())?, gain: args.gain };
    match &args.to {
        _ if args.list => list(args, &settings),
        None => Err(usage("--to: name the folder to write into")),
        Some(to) if args.one => one::run(args, to, &settings),
        Some(to) => fleet(args, to, &settings),
    }
}

/// Print which files would be judged. Skips files that are certainly no traces, and traces that the
/// output's journal already has.
fn list(args: &FleetArgs, settings: &Settings) -> Result<u8> {
    let mut known = Store::new(settings.key());
    if let Some(journal) = args.to.as_ref().map(|to| to.join(JOURNAL)).filter(|path| path.exists())
    {
        known.read(&journal).map_err(|e| bad_input(&journal, e))?;
    }
    let is_known = |path: &Path| {
        let entry = known.of_path(&path.to_string_lossy());
        let is_judged = |e: &&Entry| matches!(e.head.result, Verdict::Judged { .. });
        entry
            .filter(is_judged)
            .is_some_and(|entry| Stamp::of(path).is_ok_and(|stamp| stamp == entry.head.stamp()))
    };
    let mut out = BufWriter::new(io::stdout().lock());
    let mut code = exit::OK;
    for Item { path, kind } in find(&args.inputs, args.to.as_deref()) {
        match kind {
            Kind::Special(_) => continue,
            Kind::Lost(why) => {
                let message = format!("{}: {why}", path.display());
                eprintln!("holdup: {}", holdup_render::escape(&message));
                code = exit::INPUT;
                continue;
            }
            Kind::Found if matches!(holdup_open::no_trace(&path), Ok(Some(_))) => continue,
            Kind::Named | Kind::Found | Kind::Folder => {}
        }
        if !is_known(&path) {
            let line = [path.as_os_str().as_bytes(), b"\n"].concat();
            out.write_all(&line).map_err(Failure::Stdout)?;
        }
    }
    out.flush().map(|()| code).map_err(Failure::Stdout)
}

fn fleet(args: &FleetArgs, to: &Path, settings: &Settings) -> Result<u8> {
    if to.exists() && !to.is_dir() {
        return Err(usage(format!("--to: {}: is not a folder", to.display())));
    }
    let output = Output::open(args.output.output.as_deref(), &[])?;
    let format = config::format(&args.output, &output)?;
    let dataset = Dataset {
        partition: match args.partition {
            PartitionName::DateHost => Partition::DateHost,
            PartitionName::Date => Partition::Date,
            PartitionName::None => Partition::Nothing,
        },
        per_file: args.per_file.get(),
    };
    let began = Instant::now();
    let (report, judged) = if args.merge {
        (merged(args, to, settings, dataset)?, None)
    } else {
        let (report, judged) = judged(args, to, settings, dataset)?;
        (report, Some(judged))
    };
    progress::end();
    if !args.output.quiet {
        let words = account(judged, began.elapsed().as_secs_f64(), &report, to);
        eprintln!("holdup: {}", holdup_render::escape(&words));
    }
    let entries = config::entries(&format, args.entries.entries, ENTRIES);
    output.write_with(|out| report.write(entries, &format, out))?;
    Ok(if report.failed.is_empty() { exit::OK } else { exit::INPUT })
}

/// Judge what is not judged yet, and write the tables. Returns how many traces were judged now.
fn judged(
    args: &FleetArgs,
    to: &Path,
    settings: &Settings,
    dataset: Dataset,
) -> Result<(FleetReport, usize)> {
    let mut journal = Journal::open(&to.join(JOURNAL), settings.key())?;
    let progress = Arc::new(Progress::default());
    progress::start_fleet(args.output.quiet, progress.clone());
    let items = find(&args.inputs, Some(to));
    let cpus = std::thread::available_parallelism().map_or(1, |n| n.get());
    let jobs = args.jobs.map_or(cpus, |n| n.get());
    let entries = judge_all(&items, &mut journal, settings, jobs, &progress)?;
    let report = write(&entries, journal.store(), to, dataset)?;
    Ok((report, progress.judged.load(Relaxed)))
}

/// Make the tables from traces judged elsewhere.
fn merged(
    args: &FleetArgs,
    to: &Path,
    settings: &Settings,
    dataset: Dataset,
) -> Result<FleetReport> {
    std::fs::create_dir_all(to).map_err(|e| exit::unwritable(to, &e))?;
    let mut store = Store::new(settings.key());
    let mut bad: Vec<FailedRow> = Vec::new();
    let mut fail = |path: &Path, error: String| {
        bad.push(FailedRow { path: path.to_string_lossy().into_owned(), error });
    };
    let inputs: Vec<PathBuf> = args.inputs.iter().filter(|path| path.exists()).cloned().collect();
    for missing in args.inputs.iter().filter(|path| !path.exists()) {
        fail(missing, "no such file".to_owned());
    }
    for part in parts(&inputs).map_err(|e| bad_input(to, e))? {
        match store.read(&part) {
            Err(error) => fail(&part, error.to_string()),
            Ok(scanned) if scanned.taken == 0 && scanned.others > 0 => {
                let why = "made by another version of holdup or with other thresholds";
                fail(&part, format!("{why}; run holdup fleet --one again"));
            }
            Ok(scanned) if scanned.taken == 0 || scanned.damaged > 0 => {
                fail(
                    &part,
                    "incomplete: holdup fleet --one did not finish, or the file is not a part"
                        .into(),
                );
            }
            Ok(_) => {}
        }
    }
    let failed = |row: &FailedRow| Entry {
        head: Head {
            made_by: settings.key(),
            hash: None,
            path: row.path.clone(),
            bytes: 0,
            mtime_ns: 0,
            ctime_ns: 0,
            seconds: 0.0,
            result: Verdict::Failed { error: row.error.clone() },
        },
        place: None,
    };
    let mut entries: Vec<Entry> = bad.iter().map(failed).collect();
    entries.extend(store.entries().iter().cloned());
    entries.sort_by(|a, b| a.head.path.cmp(&b.head.path));
    Ok(write(&entries, &store, to, dataset)?)
}

/// A summary of this run, which differs from run to run and is therefore not part of the answer.
fn account(judged: Option<usize>, seconds: f64, report: &FleetReport, to: &Path) -> String {
    let head = &report.head;
    let to = to.display();
    let tables = format!(
        "{to}/{TABLES}: {} files, {:.1} MB; {to}/{MANIFEST}",
        head.table_files,
        head.table_bytes as f64 / 1e6
    );
    let Some(judged) = judged else { return format!("{tables}, in {seconds:.1} s") };
    let memory = peak_memory()
        .map_or(String::new(), |kb| format!(", peak memory {:.0} MB", kb as f64 * 1024.0 / 1e6));
    format!(
        "{judged} traces read in {seconds:.1} s ({:.1} a second){memory}; {tables}",
        judged as f64 / seconds.max(1e-3)
    )
}

/// The most memory that this process had resident, KiB.
fn peak_memory() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().strip_suffix(" kB")?.trim().parse().ok()
}
