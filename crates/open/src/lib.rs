//! Opens a trace of any format holdup reads. What a file is shows in its first bytes, never in its
//! name.

mod foreign;

use holdup_trace::{ErrorKind, Reader, Result};
use std::fs::File;
use std::io::{self, Cursor, Read};
use std::path::Path;

/// How much of a file is looked at to tell what it is.
const HEAD: usize = 4096;

/// A stream whose first bytes have been looked at and put back.
type Stream = Box<dyn Read + Send>;

/// A format holdup reads.
struct Format {
    sniff: fn(&[u8]) -> bool,
    open: fn(&Path) -> Result<Box<dyn Reader>>,
    stream: fn(&Path, Stream) -> Result<Box<dyn Reader>>,
}

/// One line per reader crate.
macro_rules! formats {
    ($($reader:ident),* $(,)?) => {
        &[$(Format {
            sniff: $reader::sniff,
            open: |path| Ok(Box::new($reader::open(path)?)),
            stream: |path, stream| Ok(Box::new($reader::open_stream(path, stream)?)),
        }),*]
    };
}

const FORMATS: &[Format] = formats![holdup_perfdata, holdup_tracedat, text,];

/// Text comes last: its sniffer is the least certain.
mod text {
    use holdup_ftracetext::TextOptions;
    pub(super) use holdup_ftracetext::TextTrace;
    use holdup_syscalls::{Arch, entry_number};
    use holdup_trace::Result;
    use std::io::Read;
    use std::path::Path;

    pub(super) fn sniff(head: &[u8]) -> bool {
        holdup_ftracetext::sniff(head).is_some()
    }
    // Where the text does not say which machine it comes from, calls are numbered as on x86_64.
    fn options() -> TextOptions {
        let syscall_nr = |machine: Option<&str>, name: &str| entry_number(machine.map_or(Arch::X86_64, Arch::from_uname), name);
        TextOptions { syscall_nr, ..TextOptions::default() }
    }
    pub(super) fn open(path: &Path) -> Result<TextTrace> {
        options().open(path)
    }
    pub(super) fn open_stream(name: &Path, input: impl Read) -> Result<TextTrace> {
        options().open_stream(name, input)
    }
}

/// Open `path`; `-` is standard input. Pipes and devices are read as streams.
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
    if !metadata.is_file() {
        return open_stream(path, Box::new(file));
    }
    let head = read_head(&mut file).map_err(fail)?;
    drop(file);
    (recognise(path, &head)?.open)(path)
}

fn open_stream(path: &Path, mut stream: Stream) -> Result<Box<dyn Reader>> {
    let head = read_head(&mut stream).map_err(|e| ErrorKind::from(e).in_file(path))?;
    (recognise(path, &head)?.stream)(path, Box::new(Cursor::new(head).chain(stream)))
}

/// perf (`record --threads`) and LTTng write directories.
fn open_directory(path: &Path) -> Result<Box<dyn Reader>> {
    if path.join("metadata").exists() {
        return Err(foreign::ctf().in_file(path));
    }
    if path.join("data").exists() || path.join("data.0").exists() {
        return Ok(Box::new(holdup_perfdata::open(path)?));
    }
    Err(ErrorKind::Unsupported { what: "a directory".to_owned(), way_out: "name the trace file in it".to_owned() }.in_file(path))
}

fn recognise(path: &Path, head: &[u8]) -> Result<&'static Format> {
    FORMATS.iter().find(|f| (f.sniff)(head)).ok_or_else(|| foreign::name(head).in_file(path))
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
        std::fs::create_dir(dir.path().join("threads")).unwrap();
        std::fs::write(dir.path().join("threads/data"), "").unwrap();
        assert!(message(&dir.path().join("threads")).contains("--threads"));
        std::fs::create_dir(dir.path().join("lttng")).unwrap();
        std::fs::write(dir.path().join("lttng/metadata"), "").unwrap();
        assert!(message(&dir.path().join("lttng")).contains("CTF"));
    }
}
