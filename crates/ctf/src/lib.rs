//! Reads the Common Trace Format 1.8: what LTTng records of the kernel and of user space.
//!
//! ```no_run
//! use holdup_trace::{Reader, merge};
//! use std::path::Path;
//!
//! let trace = holdup_ctf::open(Path::new("lttng-traces/auto-20240101-120000"))?;
//! for event in merge::events(&trace).take(100) {
//!     let event = event?;
//!     println!("{} ns: {:?}", event.ts, event.what);
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # How it works
//!
//! ```text
//!  folder | tar ─► metadata ─ text ─ declarations ─► plans: steps and loads at fixed offsets
//!             └──► stream files ─ packets ─► streams ─► lanes, one per CPU, one run each
//! ```
//!
//! A trace is a folder with a file `metadata`, which declares every bit of the other files. All
//! traces below the opened folder are read together: LTTng makes one for the kernel and one or more
//! for user space.
//!
//! Files are mapped, and no length is trusted: lengths are checked against the file sizes, damage
//! is counted, and everything readable is read.
//!
//! Sources: the specification of CTF 1.8 (diamon.org/ctf), lttng-modules 2.13, Babeltrace 2.

mod compile;
mod decode;
mod exec;
mod files;
mod kind;
mod lane;
mod lex;
mod metadata;
mod packet;
mod parse;
mod plan;
mod raw;
mod reader;
mod scan;
mod schema;
mod states;
mod time;
mod types;

pub use exec::Spot;
pub use raw::{Counts, RawCtf, RawEvent, RawFolder, RawGap, RawKind, RawPacket, open_raw};
pub use reader::CtfTrace;

use files::{Content, Folder};
use holdup_map::Bytes;
use holdup_trace::{ErrorKind, QualityCode, Reader, Result};
use std::io::Read;
use std::path::{Path, PathBuf};

/// Which part of a trace a file is, by its first bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Part {
    /// The metadata of a trace: its folder is the trace.
    Metadata,
    /// A stream of a trace: its folder is the trace.
    Stream,
    /// An archive, which may have traces in it.
    Tar,
}

impl Part {
    /// By what it was recognised, in words.
    pub fn why(self) -> &'static str {
        match self {
            Part::Metadata => "the metadata of CTF (LTTng) in its folder",
            Part::Stream => "the magic number c1fc1fc1 (a stream of CTF, LTTng)",
            Part::Tar => "a tar archive with metadata of CTF (LTTng) in it",
        }
    }
}

/// Which part of a trace a file that starts with these bytes is, if it is one.
pub fn sniff(head: &[u8]) -> Option<Part> {
    if head.starts_with(metadata::TEXT) || metadata::is_packets(head) {
        return Some(Part::Metadata);
    }
    if let Some(&magic) = head.first_chunk::<4>()
        && [u32::from_le_bytes(magic), u32::from_be_bytes(magic)].contains(&(packet::MAGIC as u32))
    {
        return Some(Part::Stream);
    }
    files::is_tar(head).then_some(Part::Tar)
}

/// Whether this folder or one below holds a trace.
pub fn is_trace(folder: &Path) -> bool {
    files::has_trace(folder)
}

/// Open a folder with a trace in it or below, one file of such a folder, or an archive of one.
///
/// Looks at all events once, so that [`CtfTrace`] knows which occur and when.
///
/// # Errors
/// A file cannot be read; there is no trace; the metadata cannot be understood; the traces are of
/// several machines. Damaged or missing data is no error; it is counted in the reader's quality.
pub fn open(path: &Path) -> Result<CtfTrace> {
    let (name, folders, cut) = find(path)?;
    let mut trace = CtfTrace::assemble(&name, folders)?;
    trace.amend().1.add(QualityCode::Truncated, u64::from(cut));
    Ok(trace)
}

/// The traces in `path`, the path to show to the user, and whether it is a truncated archive.
fn find(path: &Path) -> Result<(PathBuf, Vec<Folder>, bool)> {
    let fail = |kind: ErrorKind| kind.in_file(path);
    let all = |folder: &Path| files::below(folder).and_then(some).map_err(fail);
    if path.is_dir() {
        return Ok((path.to_owned(), all(path)?, false));
    }
    let mut head = Vec::new();
    let file = std::fs::File::open(path).map_err(|e| fail(e.into()))?;
    (&file).take(512).read_to_end(&mut head).map_err(|e| fail(e.into()))?;
    if files::is_tar(&head) {
        let archive = std::fs::File::open(path).and_then(Bytes::file);
        let (folders, cut) = in_archive(path, archive.map_err(|e| fail(e.into()))?)?;
        return Ok((path.to_owned(), folders, cut));
    }
    let folder = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if !folder.join("metadata").is_file() {
        return Err(fail(alone()));
    }
    Ok((folder.to_owned(), all(folder)?, false))
}

/// Read an archive (tar) with a trace in it from a stream. Up to 64 MiB are kept in memory, more in
/// a temporary file. `name` stands for the file in errors and reports.
///
/// # Errors
/// As [`open`]; also if the stream is not an archive: a trace is more than one file.
pub fn open_stream(name: &Path, mut input: impl Read) -> Result<CtfTrace> {
    let mut head = Vec::new();
    input
        .by_ref()
        .take(512)
        .read_to_end(&mut head)
        .map_err(|e| ErrorKind::from(e).in_file(name))?;
    if !files::is_tar(&head) {
        return Err(alone().in_file(name));
    }
    let archive = Bytes::spool(head.as_slice().chain(input));
    let archive = archive.map_err(|e| ErrorKind::from(e).in_file(name))?;
    let (folders, cut) = in_archive(name, archive)?;
    let mut trace = CtfTrace::assemble(name, folders)?;
    trace.amend().1.add(QualityCode::Truncated, u64::from(cut));
    Ok(trace)
}

/// The traces in an archive, and whether it was cut off.
fn in_archive(name: &Path, archive: Bytes) -> Result<(Vec<Folder>, bool)> {
    let (folders, cut) = files::tar(archive).map_err(|k| k.in_file(name))?;
    if folders.is_empty() {
        return Err(ErrorKind::Unsupported {
            what: "a tar archive without a CTF trace".into(),
            way_out: "unpack it (tar xf FILE) and name the trace in it; a folder of per-CPU dumps \
                is a trace"
                .into(),
        }
        .in_file(name));
    }
    Ok((folders, cut))
}

/// Open files that are in memory, given by their paths: `metadata`, `kernel/channel0_0`.
///
/// # Errors
/// As [`open`].
pub fn open_files(name: &Path, files: Vec<(String, Vec<u8>)>) -> Result<CtfTrace> {
    let files = files.into_iter().map(|(path, bytes)| (path, Content::memory(bytes))).collect();
    let folders = some(files::group(files)).map_err(|kind| kind.in_file(name))?;
    CtfTrace::assemble(name, folders)
}

fn some(folders: Vec<Folder>) -> Result<Vec<Folder>, ErrorKind> {
    if folders.is_empty() {
        return Err(ErrorKind::Unsupported {
            what: "a folder without a CTF trace".into(),
            way_out: "name the folder that holds a file called metadata, or a folder above it"
                .into(),
        });
    }
    Ok(folders)
}

fn alone() -> ErrorKind {
    ErrorKind::Unsupported {
        what: "one file of a CTF trace (LTTng)".into(),
        way_out: "name the folder that holds it and the file metadata, or a tar archive of that \
            folder"
            .into(),
    }
}
