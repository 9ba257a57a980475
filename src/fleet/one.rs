//! `holdup fleet --one`: a single trace, for engines that spread traces over machines.

use super::args::FleetArgs;
use crate::exit::{self, Failure, Result, unwritable, usage};
use crate::progress;
use holdup_fleet::{Item, Known, Record, Settings, Store, Verdict, analyse, look};
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Judge the trace, write its part, and print the result.
pub(super) fn run(args: &FleetArgs, to: &Path, settings: &Settings) -> Result<u8> {
    let [trace] = &args.inputs[..] else {
        return Err(usage("--one takes one trace; --merge takes the parts of many traces"));
    };
    let folder = to.is_dir() || to.as_os_str().to_string_lossy().ends_with('/');
    let key = settings.key();
    progress::start(args.output.quiet);
    let item = Item::named(trace);
    let (mut record, part) = match look(&item, &key, &|_, _| None) {
        Known::Settled(head) => {
            let record = Record { head, rows: Default::default() };
            let name = if folder { named(to, &unread(trace)) } else { to.to_owned() };
            (record, name)
        }
        Known::Trace { hash, stamp } => {
            let part = if folder { named(to, &hash) } else { to.to_owned() };
            match kept(&part, &hash, &key) {
                Some(record) => (record, part),
                None => (analyse(&item, settings, &key, hash, stamp).0, part),
            }
        }
    };
    record.head.path = match &args.name {
        Some(name) => name.clone(),
        None => trace.to_string_lossy().into_owned(),
    };
    progress::end();
    if folder {
        fs::create_dir_all(to).map_err(|e| unwritable(to, &e))?;
    }
    put(&part, &record).map_err(|e| unwritable(&part, &e))?;
    let mut out = io::stdout().lock();
    let head = serde_json::to_string(&record.head).map_err(Failure::Json)?;
    writeln!(out, "{head}").map_err(Failure::Stdout)?;
    Ok(match record.head.result {
        Verdict::Judged { .. } => exit::OK,
        Verdict::Failed { .. } | Verdict::NoTrace { .. } => exit::INPUT,
    })
}

fn named(folder: &Path, name: &str) -> PathBuf {
    folder.join(format!("{name}.ndjson"))
}

/// The name of the part of a trace whose content is unreadable.
fn unread(trace: &Path) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' };
    let name: String = trace.to_string_lossy().chars().map(plain).collect();
    format!("unread-{}", &name[name.len().saturating_sub(200)..])
}

/// The earlier result for this content, if there is one.
fn kept(part: &Path, hash: &str, key: &str) -> Option<Record> {
    let mut store = Store::new(key.to_owned());
    store.read(part).ok()?;
    let entry = store.of_content(hash)?;
    let is_judged = matches!(entry.head.result, Verdict::Judged { .. });
    let rows = store.rows(entry.place?).ok()??;
    is_judged.then(|| Record { head: entry.head.clone(), rows })
}

/// Write a part; it gets its name only when it is complete.
fn put(part: &Path, record: &Record) -> io::Result<()> {
    let mut name = part.as_os_str().to_owned();
    name.push(format!(".{}.part", std::process::id()));
    let unfinished = PathBuf::from(name);
    let write = || {
        let mut line = serde_json::to_vec(record)?;
        line.push(b'\n');
        let mut file = File::create(&unfinished)?;
        file.write_all(&line)?;
        file.sync_data()?;
        fs::rename(&unfinished, part)
    };
    write().inspect_err(|_| {
        let _ = fs::remove_file(&unfinished);
    })
}
