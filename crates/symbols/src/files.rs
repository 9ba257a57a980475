//! Finds the recorded file on this machine.
//!
//! Another build of a file would give wrong names, so every file's build id is checked. If the
//! recording has no build id, the file is used and reported as unverified.

use crate::Options;
use crate::elf::Elf;
use holdup_trace::BuildId;
use std::path::{Path, PathBuf};

/// The kernel's suffix for the name of a deleted file.
const DELETED: &str = " (deleted)";

/// The result of the search for a file.
#[derive(Default)]
pub(crate) struct Search {
    pub(crate) elf: Option<Elf>,
    /// A separate file with debug information.
    pub(crate) debug: Option<Elf>,
    /// Files with another build id.
    pub(crate) refused: Vec<(PathBuf, Option<BuildId>)>,
    /// A file that is used although it cannot be verified as the recorded one.
    pub(crate) unverified: Option<PathBuf>,
}

impl Search {
    /// The file with the names of functions and variables.
    pub(crate) fn names(&self) -> Option<&Elf> {
        // A stripped file has only dynamic symbols.
        let full = self.elf.as_ref().filter(|elf| !elf.only_dynamic());
        full.or(self.debug.as_ref()).or(self.elf.as_ref()).filter(|elf| elf.has_functions())
    }
}

/// Look for the file recorded as `name`.
pub(crate) fn search(name: &str, build: Option<BuildId>, options: &Options) -> Search {
    let mut found = Search::default();
    for path in candidates(name, build, options) {
        let Some(elf) = Elf::open(&path) else { continue };
        match (build, elf.build_id) {
            (None, _) => found.unverified = Some(path),
            (Some(recorded), here) if here != Some(recorded) => {
                found.refused.push((path, here));
                continue;
            }
            (Some(_), _) => {}
        }
        found.elf = Some(elf);
        break;
    }
    if let Some(build) = build {
        let mut apart = debug_files(build, options).into_iter();
        found.debug = apart.find_map(|path| {
            Elf::open(&path).filter(|elf| elf.build_id == Some(build) && !elf.only_dynamic())
        });
    }
    found
}

/// Where the file may be, the most reliable first.
fn candidates(name: &str, build: Option<BuildId>, options: &Options) -> Vec<PathBuf> {
    let mut places = Vec::new();
    let path = name.strip_suffix(DELETED).unwrap_or(name);
    let is_path = path.starts_with('/') && !path.starts_with("//");
    if let (Some(root), true) = (&options.symfs, is_path) {
        places.push(root.join(path.trim_start_matches('/')));
        places.extend(Path::new(path).file_name().map(|file| root.join(file)));
    }
    if let (Some(build), Some(home)) = (build, &options.home) {
        let (first, rest) = split(build);
        let folder = home.join(".debug/.build-id").join(first).join(rest);
        places.extend(["elf", "vdso"].map(|kind| folder.join(kind)));
        places.push(debuginfod(home, build).join("executable"));
    }
    // A file with the name of a deleted one is another file, unless its build id proves otherwise.
    if options.symfs.is_none() && is_path && (path == name || build.is_some()) {
        places.push(path.into());
    }
    places
}

/// Where debug information of a build may be.
fn debug_files(build: BuildId, options: &Options) -> Vec<PathBuf> {
    let (first, rest) = split(build);
    let root = options.symfs.as_deref().unwrap_or(Path::new("/"));
    let system = root.join("usr/lib/debug/.build-id").join(&first).join(format!("{rest}.debug"));
    let mut places = vec![system];
    if let Some(home) = &options.home {
        places.push(home.join(".debug/.build-id").join(first).join(rest).join("debug"));
        places.push(debuginfod(home, build).join("debuginfo"));
    }
    places
}

fn debuginfod(home: &Path, build: BuildId) -> PathBuf {
    home.join(".cache/debuginfod_client").join(build.to_string())
}

/// A build id as in names of folders: the first byte, and the rest.
pub(crate) fn split(build: BuildId) -> (String, String) {
    let text = build.to_string();
    let (first, rest) = text.split_at(2);
    (first.to_owned(), rest.to_owned())
}
