//! User probes in the runtimes of programs whose locks the kernel does not see.
//!
//! The kernel sees the threads of a Go program sleep because there is no goroutine to run. Only the
//! runtime knows what a goroutine waits for, or which monitor a thread of Java sleeps for. Probes
//! at the beginning of a few functions show this. All these functions run only when a task or
//! thread has to wait or can go on: taking a free lock calls none.
//!
//! Probes are events of the kernel's `uprobe` PMU ([`find`] says in which files and where). They
//! belong to a file, not to a process: every process that runs the file meanwhile hits them. They
//! are removed when the recorder ends, however it ends.

mod go;
mod java;

use holdup_trace::Runtimes;
use object::{Object, ObjectSection, ObjectSegment, ObjectSymbol, ReadCache};
use std::collections::{HashMap, HashSet};
use std::ffi::CString;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The PMU's number on this machine.
const TYPE: &str = "/sys/bus/event_source/devices/uprobe/type";

/// A file of which only the needed parts are read.
type Elf<'a> = object::File<'a, &'a ReadCache<fs::File>>;

/// A probe at the beginning of a function.
#[derive(Clone, Debug)]
pub struct Probe {
    /// The name of the event: `go:gopark`.
    pub name: String,
    /// The number of the kernel's PMU.
    pub(crate) pmu: u32,
    /// The file.
    pub(crate) path: CString,
    /// The offset in the file.
    pub(crate) offset: u64,
    /// The registers with its arguments, a bit each.
    pub(crate) registers: u64,
    /// With the program's call chain.
    pub(crate) stack: bool,
    /// The meaning of its numbers.
    pub(crate) reasons: Vec<String>,
}

/// The runtimes that were found.
#[derive(Clone, Debug, Default)]
pub struct Found {
    /// The probes.
    pub probes: Vec<Probe>,
    /// The files with probes, and their runtimes.
    pub files: Vec<(PathBuf, String)>,
    /// Files that cannot be probed, and why.
    pub refused: Vec<(PathBuf, String)>,
    /// Files with a runtime that was not to be probed.
    pub unprobed: Vec<PathBuf>,
}

impl Found {
    /// What the file says about them, if the first probe is the event with this number.
    pub(crate) fn runtimes(&self, first: usize) -> Runtimes {
        let numbered = (first..).zip(&self.probes);
        let with_reasons = numbered.filter(|(_, probe)| !probe.reasons.is_empty());
        let reasons = with_reasons.filter_map(|(number, probe)| {
            Some((u16::try_from(number).ok()?, probe.reasons.clone()))
        });
        let shown = |path: &PathBuf| path.display().to_string();
        Runtimes { reasons: reasons.collect(), unprobed: self.unprobed.iter().map(shown).collect() }
    }
}

/// Finds the files with a runtime that could be probed, and probes none.
pub fn leave(named: &[PathBuf]) -> Found {
    let has = |path: &&PathBuf| {
        let file = look_once(path, &mut HashSet::new()).ok().flatten().map(ReadCache::new);
        let version = |file: &ReadCache<fs::File>| go::version(&object::File::parse(file).ok()?);
        file.as_ref().and_then(version).is_some_and(|version| !version.is_empty())
    };
    Found { unprobed: named.iter().filter(has).cloned().collect(), ..Found::default() }
}

/// Looks for runtimes in these named files and in the programs of the processes in `proc`: of all
/// processes, or of `pids`.
pub fn find(proc: &Path, pids: Option<&[u32]>, named: &[PathBuf]) -> Found {
    let mut found = Found::default();
    let pmu = fs::read_to_string(TYPE).ok().and_then(|text| text.trim().parse().ok());
    let Some(pmu) = pmu else {
        let why = "this kernel has no user probes as events (CONFIG_UPROBE_EVENTS)";
        found.refused.push((PathBuf::from(TYPE), why.to_owned()));
        return found;
    };
    let mut seen = HashSet::new();
    for path in named {
        let library = java::of_launcher(path);
        let path = library.as_ref().unwrap_or(path);
        let why = match look_once(path, &mut seen) {
            Err(error) => Some(error.to_string()),
            Ok(None) => None,
            Ok(Some(file)) => match found.add(pmu, path, path, file) {
                Ok(true) => None,
                Ok(false) => Some("is not a program with a known runtime (Go or Java)".to_owned()),
                Err(why) => Some(why),
            },
        };
        found.refused.extend(why.map(|why| (path.clone(), why)));
    }
    let all = || crate::file::host::numbered(proc, "");
    for pid in pids.map_or_else(all, <[u32]>::to_vec) {
        // This path leads to the file even if it is deleted, or in another container.
        let process = proc.join(pid.to_string());
        let exe = process.join("exe");
        let shown = fs::read_link(&exe).unwrap_or_else(|_| exe.clone());
        let maps = fs::read(process.join("maps")).unwrap_or_default();
        let library = java::mapped(&String::from_utf8_lossy(&maps)).map(Path::to_owned);
        let inside =
            |path: &Path| process.join("root").join(path.strip_prefix("/").unwrap_or(path));
        let library = library.map(|path| (inside(&path), path));
        for (path, shown) in [Some((exe, shown)), library].into_iter().flatten() {
            if let Ok(Some(file)) = look_once(&path, &mut seen)
                && let Err(why) = found.add(pmu, &path, &shown, file)
            {
                found.refused.push((shown, why));
            }
        }
    }
    found
}

/// Opens a file, if it was not looked at before.
fn look_once(path: &Path, seen: &mut HashSet<(u64, u64)>) -> io::Result<Option<fs::File>> {
    let metadata = path.metadata()?;
    if !seen.insert((metadata.dev(), metadata.ino())) {
        return Ok(None);
    }
    // Opening a pipe would block.
    if !metadata.is_file() {
        return Err(io::Error::other("is not a file"));
    }
    fs::File::open(path).map(Some)
}

impl Found {
    /// Adds the file, shown to the user as `shown`, if it has a known runtime.
    fn add(&mut self, pmu: u32, path: &Path, shown: &Path, file: fs::File) -> Result<bool, String> {
        let bytes = ReadCache::new(file);
        let Ok(file) = object::File::parse(&bytes) else { return Ok(false) };
        let name = CString::new(path.as_os_str().as_bytes()).map_err(|e| e.to_string())?;
        let (probes, of) = if let Some(version) = go::version(&file) {
            (go::probes(&file, &version, pmu, &name)?, format!("Go {version}"))
        } else if java::is(&file) {
            (java::probes(&file, pmu, &name)?, "HotSpot, of Java".to_owned())
        } else {
            return Ok(false);
        };
        self.probes.extend(probes);
        self.files.push((shown.to_owned(), of));
        Ok(true)
    }
}

/// Offset of functions in a file, by name; missing ones are left out.
fn offsets(file: &Elf<'_>, names: &[&str]) -> HashMap<String, u64> {
    let wanted: HashSet<&str> = names.iter().copied().collect();
    let symbols = file.symbols().filter_map(|symbol| {
        let name = symbol.name().ok().filter(|name| wanted.contains(name))?;
        Some((name.to_owned(), offset_of(file, symbol.address())?))
    });
    symbols.collect()
}

/// Offset in the file of the byte at a virtual address.
fn offset_of(file: &Elf<'_>, address: u64) -> Option<u64> {
    file.segments().find_map(|segment| {
        let (offset, size) = segment.file_range();
        let within = address.checked_sub(segment.address()).filter(|&within| within < size)?;
        Some(offset + within)
    })
}

/// `size` bytes of code at an offset of the file.
fn code_at<'a>(file: &Elf<'a>, offset: u64, size: usize) -> Option<&'a [u8]> {
    file.segments().find_map(|segment| {
        let within = offset.checked_sub(segment.file_range().0)?;
        segment.data_range(segment.address() + within, size as u64).ok()?
    })
}

/// `size` bytes at a virtual address.
fn bytes_at<'a>(file: &Elf<'a>, address: u64, size: u64) -> Option<&'a [u8]> {
    file.sections().find_map(|section| {
        let within = address.checked_sub(section.address())?;
        if within >= section.size() {
            return None;
        }
        let data = section.data().ok()?;
        data.get(within as usize..)?.get(..size as usize)
    })
}
