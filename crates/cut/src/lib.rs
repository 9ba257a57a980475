//! Cuts a part out of a trace: a small file of the same format that the tools of that format open.
//!
//! The trace is read twice. The first pass, over events, finds which records from before the part
//! must stay so that the state at its beginning is known (`head`). The second, over bytes, copies
//! these records and those of the part, and adjusts the tables around them; each format has a
//! module for that. Nothing is made up: a cut holds records of the whole, and a note of which part
//! it is ([`holdup_trace::Cut`]), from which holdup recognises the records outside.
//!
//! With `anonymize` the strings in what is copied are replaced by `names`.
//!
//! Memory grows with threads and objects, not with events.

mod about;
mod ctf;
mod fields;
mod head;
mod keep;
mod names;
mod perfdata;
mod perfetto;
mod spot;
mod text;
mod tracedat;
mod tracing;
mod tsdl;
mod wire;

use head::Head;
use holdup_trace::{Batch, Cut, ErrorKind, Event, ReadError, Reader, merge};
use keep::Keep;
use std::fs::File;
use std::io;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

/// Statistics of the written cut.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Written {
    /// Records of the part.
    pub inside: u64,
    /// Records from before and after it, for the state at its beginning.
    pub outside: u64,
    /// Size of the output in bytes.
    pub bytes: u64,
}

/// Why nothing was cut.
#[derive(Debug, thiserror::Error)]
pub enum CutError {
    /// The trace cannot be read.
    #[error(transparent)]
    Trace(#[from] ReadError),
    /// The cut cannot be written.
    #[error("{}: cannot be written: {error}", path.display())]
    Output {
        /// The path.
        path: PathBuf,
        /// The error.
        error: io::Error,
    },
    /// The output does not open, so it was not kept: the head of the cut has records that the
    /// reader of the whole file skips as damaged.
    #[error(
        "nothing was written, because the part of the trace cannot be opened as a file of its own: \
         {kind}"
    )]
    Unreadable {
        /// The error of its reader.
        kind: ErrorKind,
    },
}

/// Cut `cut` out of the trace of `reader`, which is in the uncompressed file or folder `input`,
/// into `output`.
///
/// # Errors
/// The trace cannot be read, has a format that cannot be cut, or `output` cannot be written; or the
/// trace is damaged, and the part alone does not open.
pub fn cut(
    reader: &dyn Reader,
    input: &Path,
    cut: &Cut,
    output: &Path,
) -> Result<Written, CutError> {
    let write = writer(reader, input).map_err(|kind| kind.in_file(input))?;
    let keep = keep(reader, cut)?;
    write(input, keep, output)
}

type Writer = fn(&Path, Keep, &Path) -> Result<Written, CutError>;

/// The writer for this format.
fn writer(reader: &dyn Reader, raw: &Path) -> Result<Writer, ErrorKind> {
    let format = reader.info().format.as_str();
    if format.starts_with("CTF 1.8") {
        return Ok(ctf::write);
    }
    let head = holdup_open::first_bytes(raw)?;
    if raw.is_dir() && raw.join("data").is_file() || holdup_perfdata::sniff(&head) {
        return Ok(perfdata::write);
    }
    if holdup_tracedat::sniff(&head) {
        return Ok(tracedat::write);
    }
    if holdup_perfetto::sniff(&head) {
        return Ok(perfetto::write);
    }
    if holdup_ftracetext::sniff(&head).is_some() {
        return Ok(text::write);
    }
    Err(ErrorKind::Unsupported {
        what: format!("holdup cut does not write this format ({format})"),
        way_out: "let the other verbs read a part of the trace: they take --time".into(),
    })
}

/// Read all events once and find the records that must stay.
fn keep(reader: &dyn Reader, cut: &Cut) -> Result<Keep, ReadError> {
    let (from, to) = cut.times();
    let mut head = Head::new(reader.info(), from, cut.cpus.clone());
    merge::drive(reader, 0, &mut |events: &[Event], batch: &Batch| {
        for e in events {
            head.event(e, batch, to);
        }
        ControlFlow::Continue(())
    })?;
    Ok(Keep::new(cut.clone(), head.places()))
}

/// Whether the output at `path` opens: if the whole is damaged, a part may not.
fn opens(path: &Path, written: &Written) -> Result<(), CutError> {
    match holdup_open::open(path) {
        Err(error) if written.inside > 0 => Err(CutError::Unreadable { kind: error.kind }),
        _ => Ok(()),
    }
}

/// Write with `write` into a new file next to `output`, which replaces `output` when everything is
/// written.
fn into_file(
    output: &Path,
    write: impl FnOnce(&mut io::BufWriter<&File>) -> Result<Written, CutError>,
) -> Result<Written, CutError> {
    let failed = |error: io::Error| CutError::Output { path: output.to_owned(), error };
    let folder = output.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let file =
        tempfile::Builder::new().prefix(".holdup-cut").tempfile_in(folder).map_err(failed)?;
    let mut out = io::BufWriter::with_capacity(1 << 20, file.as_file());
    let mut written = write(&mut out)?;
    io::Write::flush(&mut out).map_err(failed)?;
    drop(out);
    opens(file.path(), &written)?;
    written.bytes = file.as_file().metadata().map_err(failed)?.len();
    let readable = std::os::unix::fs::PermissionsExt::from_mode(0o644);
    file.as_file().set_permissions(readable).map_err(failed)?;
    file.persist(output).map_err(|e| failed(e.error))?;
    Ok(written)
}
