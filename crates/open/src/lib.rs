//! Opens a trace of any format that holdup reads. The format is recognised by the first bytes,
//! never by the file's name.
//!
//! ```text
//!  path | pipe ──► first bytes ──► a wrapper? unpack, look again (twice at most)
//!                       │
//!                       ├────────► a format: its reader
//!                       └────────► anything else: its name, and the way out
//! ```

mod foreign;
mod glance;
mod look;
mod meter;
mod printed;
mod unpacked;
mod wrap;
mod zip;

pub use glance::{SMALL, glance};
pub use holdup_map::{ALLOWANCE, RATIO};
pub use look::{is_trace_folder, no_trace};
pub use unpacked::{Unpacked, first_bytes, unpacked};

use holdup_trace::{
    ErrorKind, Glance, QualityCode, ReadError, Reader, Result, TraceInfo, progress, union,
};
use meter::Meter;
use std::fs::File;
use std::io::{self, Cursor, Read};
use std::path::Path;
use std::sync::Arc;
use wrap::{Input, Wrapper};

/// How much of a file is examined to recognise it: enough for text that begins with a few hundred
/// lines of heading.
const HEAD: usize = 64 << 10;
/// Most nested wrappers around a trace.
const LAYERS: usize = 2;

/// A stream of bytes.
type Stream = Box<dyn Read + Send>;

/// A format holdup reads.
struct Format {
    /// By what the format is recognised, if `head` is of this format.
    sniff: fn(&[u8]) -> Option<&'static str>,
    open: fn(&Path) -> Result<Box<dyn Reader>>,
    stream: fn(&Path, Stream) -> Result<Box<dyn Reader>>,
    /// Looks at a regular file without reading all of it; `None` if samples say too little.
    glance: fn(&Path) -> Result<Option<Glance>>,
}

/// Text comes last: its sniffer is the least certain.
const FORMATS: &[Format] = &[
    Format {
        sniff: |head| {
            holdup_perfdata::sniff(head).then_some("the magic number PERFILE2 (perf.data)")
        },
        open: |path| Ok(Box::new(holdup_perfdata::open(path)?)),
        stream: |path, stream| Ok(Box::new(holdup_perfdata::open_stream(path, stream)?)),
        glance: |path| holdup_perfdata::glance(path).map(Some),
    },
    Format {
        sniff: |head| {
            holdup_tracedat::sniff(head)
                .then_some("the magic number 17 08 44 and `tracing` (trace.dat)")
        },
        open: |path| dat::reader(path, holdup_tracedat::content(path)?),
        stream: |path, stream| dat::reader(path, holdup_tracedat::content_stream(path, stream)?),
        glance: holdup_tracedat::glance,
    },
    Format {
        sniff: |head| holdup_perfetto::sniff(head).then_some("packets of Perfetto's TracePacket"),
        open: |path| Ok(Box::new(holdup_perfetto::open(path)?)),
        stream: |path, stream| Ok(Box::new(holdup_perfetto::open_stream(path, stream)?)),
        // There are no tables: the facts are in packets all over the file.
        glance: |_| Ok(None),
    },
    Format {
        sniff: |head| holdup_ctf::sniff(head).map(holdup_ctf::Part::why),
        open: |path| Ok(Box::new(holdup_ctf::open(path)?)),
        stream: |path, stream| Ok(Box::new(holdup_ctf::open_stream(path, stream)?)),
        // The counts of events are in packets all over the files.
        glance: |_| Ok(None),
    },
    Format {
        sniff: text::sniff,
        open: |path| Ok(Box::new(text::open(path)?)),
        stream: |path, stream| Ok(Box::new(text::open_stream(path, stream)?)),
        glance: text::glance,
    },
];

/// A trace.dat of a latency tracer holds text: one reader extracts it, the other reads it.
mod dat {
    use holdup_trace::{Reader, Result};
    use holdup_tracedat::Content;
    use std::path::Path;

    pub(super) fn reader(path: &Path, content: Content) -> Result<Box<dyn Reader>> {
        let mut latency = match content {
            Content::Events(dat) => return Ok(dat),
            Content::Text(latency) => latency,
        };
        let mut reader = super::text::open_stream(path, latency.take_text().as_slice())?;
        let (info, quality) = reader.amend();
        latency.amend(info, quality);
        Ok(Box::new(reader))
    }
}

mod text {
    use holdup_ftracetext::{TextOptions, TextTrace};
    use holdup_syscalls::{Arch, entry_number};
    use holdup_trace::{Glance, Result};
    use std::io::Read;
    use std::path::Path;

    pub(super) fn sniff(head: &[u8]) -> Option<&'static str> {
        holdup_ftracetext::sniff(head).map(|dialect| dialect.why)
    }
    // If the text does not name its machine, calls are numbered as on x86_64.
    fn options() -> TextOptions {
        let syscall_nr = |machine: Option<&str>, name: &str| {
            entry_number(machine.map_or(Arch::X86_64, Arch::from_uname), name)
        };
        TextOptions { syscall_nr, ..TextOptions::default() }
    }
    pub(super) fn open(path: &Path) -> Result<TextTrace> {
        options().open(path)
    }
    pub(super) fn glance(path: &Path) -> Result<Option<Glance>> {
        options().glance(path)
    }
    pub(super) fn open_stream(name: &Path, input: impl Read) -> Result<TextTrace> {
        options().open_stream(name, input)
    }
}

/// Open `path`; `-` is standard input. Pipes and devices are read as streams.
///
/// A trace in gzip, xz, zstd or zip is unpacked on the way, up to two wrappers deep; one that
/// unpacks to more than [`ALLOWANCE`] bytes and [`RATIO`] times its size is refused.
///
/// # Errors
/// The file cannot be read, or is not a trace that holdup reads; the message says what it is and
/// what to do.
pub fn open(path: &Path) -> Result<Box<dyn Reader>> {
    if path.as_os_str() == "-" {
        return open_stream(path, Box::new(io::stdin()));
    }
    let fail = |e: io::Error| ErrorKind::from(e).in_file(path);
    let metadata = path.metadata().map_err(fail)?;
    if metadata.is_dir() {
        return open_directory(path);
    }
    let mut file = File::open(path).map_err(fail)?;
    // Files of tracefs and procfs are regular but report length 0.
    if !metadata.is_file() || metadata.len() == 0 {
        return open_stream(path, Box::new(file));
    }
    let head = read_head(&mut file).map_err(fail)?;
    if let Some(wrapper) = Wrapper::of(&head) {
        io::Seek::rewind(&mut file).map_err(fail)?;
        return open_wrapped(path, wrapper, Input::File(file));
    }
    drop(file);
    let (format, why) = recognise(&head).map_err(|kind| kind.in_file(path))?;
    Ok(note((format.open)(path)?, why))
}

fn open_stream(path: &Path, mut stream: Stream) -> Result<Box<dyn Reader>> {
    progress::unpacking(None);
    let head = read_head(&mut stream).map_err(|e| ErrorKind::from(e).in_file(path))?;
    if let Some(wrapper) = Wrapper::of(&head) {
        let input = Input::Stream(Box::new(Cursor::new(head).chain(stream)));
        return open_wrapped(path, wrapper, input);
    }
    let (format, why) = recognise(&head).map_err(|kind| kind.in_file(path))?;
    let stream = Watched(Box::new(Cursor::new(head).chain(stream)));
    Ok(note((format.stream)(path, Box::new(stream))?, why))
}

/// A stream whose bytes are counted for the progress display.
struct Watched(Stream);

impl Read for Watched {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let n = self.0.read(buf)?;
        progress::advance(n as u64);
        Ok(n)
    }
}

/// Unpack until the content is no wrapper.
fn unwrap_all(
    path: &Path,
    outermost: Wrapper,
    mut input: Input,
    meter: &Arc<Meter>,
) -> Result<(Vec<Wrapper>, Input)> {
    if let Some(len) = input.len() {
        progress::unpacking(Some(len));
    }
    let mut layers = Vec::new();
    let mut next = Some(outermost);
    let mut head = Vec::new();
    while let Some(wrapper) = next {
        if layers.len() == LAYERS {
            let what =
                format!("a trace inside more than {LAYERS} layers of compression or archives");
            return Err(ErrorKind::Unsupported {
                what,
                way_out: format!("unpack it first: {}", outermost.command()),
            }
            .in_file(path));
        }
        layers.push(wrapper);
        let unpacked = wrapper.unwrap(input, meter).and_then(|mut stream| {
            head = read_head(&mut stream)?;
            Ok(stream)
        });
        let stream = unpacked.map_err(|kind| not_unpacked(kind, wrapper, meter).in_file(path))?;
        next = Wrapper::of(&head);
        input = Input::Stream(Box::new(
            Cursor::new(std::mem::take(&mut head).into_boxed_slice()).chain(stream),
        ));
        if next.is_none() {
            break;
        }
    }
    Ok((layers, input))
}

fn open_wrapped(path: &Path, outermost: Wrapper, input: Input) -> Result<Box<dyn Reader>> {
    let meter = Arc::new(Meter::default());
    let (layers, input) = unwrap_all(path, outermost, input, &meter)?;
    let Input::Stream(mut stream) = input else { return Err(io_other(path)) };
    let head = read_head(&mut stream)
        .map_err(|e| not_unpacked(e.into(), outermost, &meter).in_file(path))?;
    let names: Vec<&str> = layers.iter().rev().map(|w| w.name()).collect();
    let names = names.join(" in ");
    let (format, why) = recognise(&head).map_err(|kind| inside(kind, &names).in_file(path))?;
    let mut reader = (format.stream)(path, Box::new(Cursor::new(head).chain(stream)))
        .map_err(|e| not_unpacked(inside(e.kind, &names), outermost, &meter).in_file(path))?;
    let (info, quality) = reader.amend();
    info.format = format!("{} in {names}", info.format);
    if let Some(damage) = meter.damage() {
        quality.add(QualityCode::Truncated, 1);
        info.extra.push((
            "unpacking".to_owned(),
            format!("stopped before the end of the {names} data: {damage}"),
        ));
    }
    Ok(note(reader, &format!("{why}, inside {names} data (by the magic number)")))
}

fn io_other(path: &Path) -> ReadError {
    ErrorKind::Io(io::Error::other("nothing was unpacked")).in_file(path)
}

/// Extends an error to say that it is about the content of the wrapper.
fn inside(kind: ErrorKind, names: &str) -> ErrorKind {
    match kind {
        ErrorKind::Unsupported { what, way_out } => {
            ErrorKind::Unsupported { what: format!("{what} (inside {names})"), way_out }
        }
        other => other,
    }
}

/// Why a wrapped trace cannot be read.
fn not_unpacked(kind: ErrorKind, wrapper: Wrapper, meter: &Meter) -> ErrorKind {
    let way_out = format!("if that is intended, unpack the trace first: {}", wrapper.command());
    if meter.is_too_much() {
        let what = format!(
            "{} bytes of {} data that unpack to more than {RATIO} times as much",
            meter.bytes_read(),
            wrapper.name()
        );
        return ErrorKind::Unsupported {
            what: format!("{what} and {} GiB", ALLOWANCE >> 30),
            way_out,
        };
    }
    match (kind, meter.damage()) {
        (ErrorKind::Io(e), _) if e.kind() == io::ErrorKind::StorageFull => ErrorKind::Unsupported {
            what: "no room for the unpacked trace in the folder for temporary files".to_owned(),
            way_out: format!(
                "set TMPDIR to a folder on a larger disk, or unpack the trace there: {}",
                wrapper.command()
            ),
        },
        // The decoders report damaged data as I/O errors.
        (ErrorKind::Io(e), _) if e.raw_os_error().is_none() => {
            let record = Some(format!("{} data", wrapper.name()));
            ErrorKind::malformed(
                meter.bytes_read(),
                record,
                "data that can be unpacked",
                format!("{e}; try: {}", wrapper.command()),
            )
        }
        (kind, Some(damage)) => {
            let record = Some(format!("{} data", wrapper.name()));
            ErrorKind::malformed(
                meter.bytes_read(),
                record,
                "a whole file",
                format!(
                    "a file that ends early ({damage}); the data before the end also has an error: \
                     {kind}"
                ),
            )
        }
        (kind, None) => kind,
    }
}

/// Note by what a trace was recognised. The text reader notes this itself.
fn note(mut reader: Box<dyn Reader>, why: &str) -> Box<dyn Reader> {
    note_in(reader.amend().0, why);
    reader
}

fn note_in(info: &mut TraceInfo, why: &str) {
    const LABEL: &str = "recognised by";
    info.extra.retain(|(label, _)| label != LABEL);
    info.extra.insert(0, (LABEL.to_owned(), why.to_owned()));
    if let Some(cut) = &info.cut {
        // The span of a part ends where it was cut, not at its last event.
        info.span = cut.whole.or(union(info.span, cut.time));
        info.extra.push(("cut out of a longer trace by".to_owned(), cut.words()));
    }
}

/// Open a directory that is a trace: of `perf record --threads`, or per-CPU dumps of ftrace.
fn open_directory(path: &Path) -> Result<Box<dyn Reader>> {
    let has = |name: &str| path.join(name).exists();
    if has("data") {
        return Ok(note(
            Box::new(holdup_perfdata::open(path)?),
            "a folder with a file called data (perf record --threads)",
        ));
    }
    if ["traces", "per_cpu", "cpu0"].into_iter().any(has) {
        return Ok(note(
            Box::new(holdup_tracedat::open_raw_dir(path)?),
            "a folder with one file per CPU (trace_pipe_raw)",
        ));
    }
    if holdup_ctf::is_trace(path) {
        return Ok(note(
            Box::new(holdup_ctf::open(path)?),
            "a folder with a file called metadata in it or below (CTF, LTTng)",
        ));
    }
    let what = "a directory that is not a trace".to_owned();
    Err(ErrorKind::Unsupported { what, way_out: "name the trace file in it".to_owned() }
        .in_file(path))
}

fn recognise(head: &[u8]) -> Result<(&'static Format, &'static str), ErrorKind> {
    FORMATS.iter().find_map(|f| Some((f, (f.sniff)(head)?))).ok_or_else(|| foreign::name(head))
}

fn read_head(stream: &mut impl Read) -> io::Result<Vec<u8>> {
    let mut head = Vec::with_capacity(HEAD);
    stream.take(HEAD as u64).read_to_end(&mut head)?;
    Ok(head)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_opened_names_the_file() {
        let dir = tempfile::tempdir().unwrap();
        let message = |path: &Path| open(path).err().unwrap().to_string();
        let missing = dir.path().join("missing");
        assert!(message(&missing).starts_with(&format!("{}: No such file", missing.display())));
        assert!(message(dir.path()).contains("a directory"));
        let empty = dir.path().join("empty");
        std::fs::write(&empty, "").unwrap();
        assert!(message(&empty).contains("an empty file"));
        std::fs::create_dir_all(dir.path().join("lttng/kernel")).unwrap();
        std::fs::write(dir.path().join("lttng/kernel/metadata"), "").unwrap();
        let lttng = message(&dir.path().join("lttng"));
        assert!(lttng.contains("kernel/metadata") && lttng.contains("a trace block"), "{lttng}");
        std::fs::create_dir_all(dir.path().join("raw/traces")).unwrap();
        assert!(message(&dir.path().join("raw")).contains("folder of raw dumps"));
    }
}
