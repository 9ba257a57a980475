//! The files of a trace: a folder, a tar archive, or memory.

use holdup_map::{Bytes, IN_MEMORY, Map};
use holdup_trace::ErrorKind;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;

/// Deepest nesting of folders that is searched. A complete LTTng session has seven levels.
const DEPTH: u32 = 10;
/// Most files and folders that are looked at.
const ENTRIES: usize = 200_000;

/// The content of a file of the trace: all of a file, or a part of an archive.
pub(crate) struct Content {
    whole: Arc<Bytes>,
    from: usize,
    len: usize,
}

impl Content {
    pub(crate) fn memory(bytes: Vec<u8>) -> Content {
        Content::all(Bytes::Memory(bytes))
    }

    fn all(whole: Bytes) -> Content {
        Content { from: 0, len: whole.all().len(), whole: Arc::new(whole) }
    }

    fn file(path: &Path) -> Result<Content, ErrorKind> {
        let file = File::open(path)?;
        if let Some(map) = Map::new(&file) {
            return Ok(Content::all(Bytes::Mapped(Box::new(map))));
        }
        let metadata = file.metadata()?;
        if metadata.is_file() && metadata.len() > IN_MEMORY {
            return Err(ErrorKind::Unsupported {
                what: "the trace has more files than can be mapped into memory".into(),
                way_out: "name one of the trace's folders that contain a file called \
                          metadata"
                    .into(),
            });
        }
        let mut bytes = Vec::new();
        file.take(IN_MEMORY).read_to_end(&mut bytes)?;
        Ok(Content::memory(bytes))
    }

    #[inline]
    pub(crate) fn bytes(&self) -> &[u8] {
        self.whole.all().get(self.from..self.from.saturating_add(self.len)).unwrap_or(&[])
    }

    /// Whether the file has shrunk, so that reads now return zeros.
    pub(crate) fn shrank(&self) -> bool {
        self.whole.shrank()
    }

    /// Release these bytes, which have been read.
    pub(crate) fn done_with(&self, start: u64, len: u64) {
        let start = self.from + start as usize;
        self.whole.done_with(start..start + len as usize);
    }
}

/// A folder with a file called `metadata` and the streams of the trace.
pub(crate) struct Folder {
    /// Path relative to the folder opened; empty for that folder itself.
    pub(crate) name: String,
    pub(crate) metadata: Content,
    /// The stream files, by name.
    pub(crate) streams: Vec<(String, Content)>,
}

/// A folder's files that are part of a trace. `index/` and hidden files are not.
fn is_stream(name: &str) -> bool {
    !name.starts_with('.') && name != "metadata" && !name.ends_with(".idx")
}

/// All traces in a folder and below.
pub(crate) fn below(path: &Path) -> Result<Vec<Folder>, ErrorKind> {
    let mut found = Vec::new();
    let mut budget = ENTRIES;
    walk(path, "", DEPTH, &mut budget, &mut found)?;
    Ok(found)
}

/// Whether [`below`] would find something. Does not open a file.
pub(crate) fn has_trace(path: &Path) -> bool {
    fn look(path: &Path, depth: u32, budget: &mut usize) -> bool {
        if path.join("metadata").is_file() {
            return true;
        }
        let entries = fs::read_dir(path).into_iter().flatten().flatten();
        for entry in entries {
            let Some(left) = budget.checked_sub(1) else { return false };
            *budget = left;
            let is_dir = entry.file_type().is_ok_and(|t| t.is_dir());
            if is_dir && depth > 0 && look(&entry.path(), depth - 1, budget) {
                return true;
            }
        }
        false
    }
    look(path, DEPTH, &mut 10_000)
}

fn walk(
    path: &Path,
    name: &str,
    depth: u32,
    budget: &mut usize,
    found: &mut Vec<Folder>,
) -> Result<(), ErrorKind> {
    let mut entries = Vec::new();
    for entry in fs::read_dir(path)? {
        let Some(left) = budget.checked_sub(1) else { break };
        *budget = left;
        entries.push(entry?);
    }
    entries.sort_by_key(fs::DirEntry::file_name);
    let metadata = path.join("metadata");
    let is_trace = metadata.is_file();
    let mut streams = Vec::new();
    for entry in entries {
        let file = entry.file_name().to_string_lossy().into_owned();
        let full = entry.path();
        // Links are followed to files only: a link to a folder can lead in circles.
        let kind = entry.file_type()?;
        if kind.is_dir() {
            if depth > 0 && file != "index" && !file.starts_with('.') {
                let name = if name.is_empty() { file } else { format!("{name}/{file}") };
                walk(&full, &name, depth - 1, budget, found)?;
            }
        } else if is_trace && is_stream(&file) && full.is_file() {
            streams.push((file, Content::file(&full)?));
        }
    }
    if is_trace {
        let metadata = Content::file(&metadata)?;
        found.push(Folder { name: name.to_owned(), metadata, streams });
    }
    Ok(())
}

/// Whether a file begins as a tar archive does.
pub(crate) fn is_tar(head: &[u8]) -> bool {
    head.get(257..262) == Some(b"ustar")
}

/// All traces in a tar archive, and whether the archive was cut off. Nothing is unpacked: the
/// streams are parts of the archive.
pub(crate) fn tar(archive: Bytes) -> Result<(Vec<Folder>, bool), ErrorKind> {
    let whole = Arc::new(archive);
    let mut files: Vec<(String, Content)> = Vec::new();
    let mut cut = false;
    let mut archive = tar::Archive::new(io::Cursor::new(whole.all()));
    for entry in archive.entries()? {
        let Ok(entry) = entry else {
            cut = true;
            break;
        };
        if files.len() >= ENTRIES {
            cut = true;
            break;
        }
        if !entry.header().entry_type().is_file() || entry.header().entry_type().is_gnu_sparse() {
            continue;
        }
        let name = entry.path().map(|p| p.to_string_lossy().into_owned()).unwrap_or_default();
        let (Ok(from), Ok(len)) =
            (usize::try_from(entry.raw_file_position()), usize::try_from(entry.size()))
        else {
            continue;
        };
        let there = whole.all().len().saturating_sub(from);
        cut |= len > there;
        let name = name.trim_start_matches("./").to_owned();
        files.push((name, Content { whole: whole.clone(), from, len: len.min(there) }));
    }
    Ok((group(files), cut))
}

/// Traces among files given by path.
pub(crate) fn group(mut files: Vec<(String, Content)>) -> Vec<Folder> {
    files.sort_by(|a, b| a.0.cmp(&b.0));
    let mut folders: Vec<Folder> = Vec::new();
    let mut others = Vec::new();
    for (path, bytes) in files {
        let (folder, name) = path.rsplit_once('/').unwrap_or(("", &path));
        if name == "metadata" {
            let name = folder.to_owned();
            folders.push(Folder { name, metadata: bytes, streams: Vec::new() });
        } else if is_stream(name) {
            others.push((folder.to_owned(), name.to_owned(), bytes));
        }
    }
    for (folder, name, bytes) in others {
        if let Ok(at) = folders.binary_search_by(|f| f.name.as_str().cmp(&folder)) {
            folders[at].streams.push((name, bytes));
        }
    }
    folders
}
