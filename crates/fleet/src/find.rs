//! Finds what can be analysed: files, folders that are traces, and all that lies below a folder.

use std::collections::HashSet;
use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use wildmatch::WildMatch;

/// Something that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item {
    /// Its path.
    pub path: PathBuf,
    /// What it is.
    pub kind: Kind,
}

/// What kind of item was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A regular file that the user named: a trace, or a mistake.
    Named,
    /// A regular file below a folder or matched by a pattern: a trace or any other file.
    Found,
    /// A folder that is one trace.
    Folder,
    /// Cannot be analysed, for this reason.
    Lost(String),
    /// Never opened, because it is this: a device or a pipe.
    Special(&'static str),
}

impl Item {
    /// One trace that the user named.
    pub fn named(path: &Path) -> Item {
        let kind = match path.metadata() {
            Err(error) => Kind::Lost(why(path, &error)),
            Ok(metadata) if metadata.is_file() => Kind::Named,
            Ok(metadata) if !metadata.is_dir() => {
                Kind::Lost(format!("{}, not a file", special(&metadata)))
            }
            Ok(_) if holdup_open::is_trace_folder(path) => Kind::Folder,
            Ok(_) => Kind::Lost("this folder is not a trace; name a trace in it".to_owned()),
        };
        Item { path: path.to_owned(), kind }
    }
}

/// What the user named: files, folders and patterns, in which `*` stands for any characters and `?`
/// for one, including `/`. A folder is searched, each folder once, whatever links lead there;
/// `leave_out` is not. Items come in the order of their paths, each once.
pub fn find(inputs: &[PathBuf], leave_out: Option<&Path>) -> Vec<Item> {
    let mut walk = Walk { found: Vec::new(), seen: HashSet::new() };
    if let Some(metadata) = leave_out.and_then(|path| path.metadata().ok()) {
        walk.seen.insert((metadata.dev(), metadata.ino()));
    }
    for input in inputs {
        match input.to_str().filter(|text| text.contains(['*', '?'])) {
            Some(pattern) if fs::symlink_metadata(input).is_err() => walk.pattern(pattern),
            _ => walk.named(input),
        }
    }
    let mut found = walk.found;
    // A file that was named, and also lies below a named folder, counts as named.
    found.sort_by(|a, b| (&a.path, a.kind != Kind::Named).cmp(&(&b.path, b.kind != Kind::Named)));
    found.dedup_by(|b, a| a.path == b.path);
    found
}

struct Walk {
    found: Vec<Item>,
    /// Folders already searched, by device and inode.
    seen: HashSet<(u64, u64)>,
}

impl Walk {
    fn add(&mut self, path: &Path, kind: Kind) {
        self.found.push(Item { path: path.to_owned(), kind });
    }

    fn named(&mut self, path: &Path) {
        match path.metadata() {
            Ok(metadata) if metadata.is_dir() => self.folders(path, &metadata),
            Ok(_) | Err(_) => self.found.push(Item::named(path)),
        }
    }

    fn pattern(&mut self, pattern: &str) {
        let plain = pattern.find(['*', '?']).unwrap_or(0);
        let base = match pattern[..plain].rfind('/') {
            Some(0) => Path::new("/"),
            Some(end) => Path::new(&pattern[..end]),
            None => Path::new("."),
        };
        let mut below = Walk { found: Vec::new(), seen: self.seen.clone() };
        if let Ok(metadata) = base.metadata() {
            below.folders(base, &metadata);
        }
        let matches = WildMatch::new(pattern);
        let fits = |item: &Item| {
            let path = item.path.to_string_lossy();
            matches.matches(&path) || path.strip_prefix("./").is_some_and(|p| matches.matches(p))
        };
        let before = self.found.len();
        self.found.extend(below.found.into_iter().filter(fits));
        if self.found.len() == before {
            self.add(Path::new(pattern), Kind::Lost("no file matches".to_owned()));
        }
    }

    /// Everything in a folder and below. Without recursion, because folders may be nested deeply.
    fn folders(&mut self, path: &Path, metadata: &Metadata) {
        let mut ahead = vec![(path.to_owned(), metadata.clone())];
        while let Some((folder, metadata)) = ahead.pop() {
            if !self.seen.insert((metadata.dev(), metadata.ino())) {
                continue;
            }
            if holdup_open::is_trace_folder(&folder) {
                self.add(&folder, Kind::Folder);
                continue;
            }
            let entries = match fs::read_dir(&folder) {
                Ok(entries) => entries,
                Err(error) => {
                    self.add(&folder, Kind::Lost(why(&folder, &error)));
                    continue;
                }
            };
            let mut below = Vec::new();
            for entry in entries {
                match entry {
                    Ok(entry) => below.extend(self.entry(entry.path())),
                    Err(error) => self.add(&folder, Kind::Lost(why(&folder, &error))),
                }
            }
            // The first by name is taken next: which of two ways to a folder counts must not depend
            // on the file system.
            below.sort_by(|a, b| b.0.cmp(&a.0));
            ahead.append(&mut below);
        }
    }

    /// Take a file; return a folder.
    fn entry(&mut self, path: PathBuf) -> Option<(PathBuf, Metadata)> {
        match path.metadata() {
            Ok(metadata) if metadata.is_dir() => return Some((path, metadata)),
            Ok(metadata) if metadata.is_file() => self.add(&path, Kind::Found),
            Ok(metadata) => self.add(&path, Kind::Special(special(&metadata))),
            Err(error) => self.add(&path, Kind::Lost(why(&path, &error))),
        }
        None
    }
}

/// Why a path cannot be examined.
fn why(path: &Path, error: &io::Error) -> String {
    let is_link = fs::symlink_metadata(path).is_ok_and(|m| m.is_symlink());
    match error.kind() {
        io::ErrorKind::NotFound if is_link => "the target of this link does not exist".to_owned(),
        _ => error.to_string(),
    }
}

fn special(metadata: &Metadata) -> &'static str {
    let kind = metadata.file_type();
    if kind.is_fifo() {
        "a pipe"
    } else if kind.is_socket() {
        "a socket"
    } else {
        "a device"
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn kinds(inputs: &[PathBuf], below: &Path) -> Vec<(String, Kind)> {
        let name = |item: Item| {
            let path = item.path.strip_prefix(below).unwrap_or(&item.path).to_owned();
            (path.display().to_string(), item.kind)
        };
        find(inputs, Some(&below.join("out"))).into_iter().map(name).collect()
    }

    #[test]
    fn links_in_circles_end_and_each_folder_is_gone_through_once() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        for name in ["a/deep", "b", "out"] {
            fs::create_dir_all(root.join(name)).unwrap();
        }
        for name in ["a/deep/one", "b/two", "out/never"] {
            fs::write(root.join(name), name).unwrap();
        }
        symlink(root, root.join("a/deep/up")).unwrap();
        symlink("../a", root.join("b/again")).unwrap();
        symlink("one", root.join("a/deep/linked")).unwrap();
        symlink("nowhere", root.join("b/dead")).unwrap();
        let found = kinds(&[root.to_owned()], root);
        let expected = [
            ("a/deep/linked", Kind::Found),
            ("a/deep/one", Kind::Found),
            ("b/dead", Kind::Lost("the target of this link does not exist".into())),
            ("b/two", Kind::Found),
        ];
        assert_eq!(found, expected.map(|(name, kind)| (name.to_owned(), kind)));
    }

    #[test]
    fn what_is_no_file_is_not_opened_and_what_is_not_there_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        fs::write(root.join("x.data"), "x").unwrap();
        let socket = std::os::unix::net::UnixListener::bind(root.join("socket")).unwrap();
        let found = kinds(&[root.to_owned(), root.join("x.data"), root.join("absent")], root);
        let names: Vec<_> = found.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["absent", "socket", "x.data"]);
        assert!(matches!(&found[0].1, Kind::Lost(why) if why.contains("No such file")));
        assert_eq!(found[1].1, Kind::Special("a socket"));
        assert_eq!(found[2].1, Kind::Named, "it was named, and only then found");
        let named = kinds(&[root.join("socket")], root);
        assert!(matches!(&named[0].1, Kind::Lost(why) if why == "a socket, not a file"));
        drop(socket);
    }

    #[test]
    fn patterns_match_whole_paths() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        fs::create_dir_all(root.join("d/e")).unwrap();
        for name in ["d/a.data", "d/e/b.data", "d/e/c.txt"] {
            fs::write(root.join(name), name).unwrap();
        }
        let names = |pattern: &str| {
            let found = kinds(&[root.join(pattern)], root);
            found.into_iter().map(|(name, _)| name).collect::<Vec<_>>()
        };
        assert_eq!(names("d/*.data"), ["d/a.data", "d/e/b.data"]);
        assert_eq!(names("d/?.data"), ["d/a.data"]);
        assert_eq!(names("*/c.*"), ["d/e/c.txt"]);
        assert!(matches!(&kinds(&[root.join("no*")], root)[0].1, Kind::Lost(why)
            if why == "no file matches"));
    }
}
