//! tracefs: which tracepoints the kernel has, their numbers, and the formats of their records.
//!
//! It is searched for wherever it is mounted; a container may have it anywhere, and older systems
//! have it below debugfs only.

use crate::Root;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Its usual places, for when `/proc/mounts` cannot be read.
const USUAL: [&str; 2] = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];

/// A mounted tracefs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tracefs {
    root: PathBuf,
}

/// Why tracefs cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum NoTracefs {
    /// It is not mounted, at least not in this mount namespace.
    #[error("tracefs is not mounted")]
    NotMounted,
    /// It is mounted, but this user may not read it.
    #[error("{}: cannot be read: {error}", path.display())]
    Unreadable {
        /// The mount point, or the folder of the events.
        path: PathBuf,
        /// The error of reading it.
        error: io::Error,
    },
}

/// A tracepoint of this kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tracepoint {
    /// Such as `sched`.
    pub system: String,
    /// Such as `sched_switch`.
    pub name: String,
    /// The number by which the event is opened; its records carry it too.
    pub id: u64,
}

impl Tracefs {
    /// Finds tracefs.
    ///
    /// # Errors
    ///
    /// If it is not mounted, or this user may not read it; the ways out differ.
    pub fn find() -> Result<Tracefs, NoTracefs> {
        Tracefs::find_in(&Root::host())
    }

    /// Finds the tracefs of the host whose files `host` has.
    ///
    /// # Errors
    ///
    /// As for [`Tracefs::find`].
    pub fn find_in(host: &Root) -> Result<Tracefs, NoTracefs> {
        let mounts = host.text("/proc/mounts").unwrap_or_default();
        let mut unreadable = None;
        for root in candidates(&mounts).into_iter().map(|place| host.path(place)) {
            match fs::read_dir(root.join("events")).map(Iterator::count) {
                // An empty folder of that name is the usual mount point.
                Ok(1..) => match closed(&root) {
                    None => return Ok(Tracefs { root }),
                    Some(error) => {
                        unreadable.get_or_insert(NoTracefs::Unreadable { path: root, error });
                    }
                },
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    let path = root.join("events");
                    unreadable.get_or_insert(NoTracefs::Unreadable { path, error });
                }
                _ => {}
            }
        }
        Err(unreadable.unwrap_or(NoTracefs::NotMounted))
    }

    /// A tracefs at a known place, for tests and other roots.
    pub fn at(root: &Path) -> Tracefs {
        Tracefs { root: root.to_owned() }
    }

    /// Where it is mounted.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The tracepoint `system:name`; `None` if this kernel has none, or if the user may not read
    /// it.
    pub fn tracepoint(&self, system: &str, name: &str) -> Option<Tracepoint> {
        let text = fs::read_to_string(self.folder(system, name).join("id")).ok()?;
        let id = text.trim().parse().ok()?;
        Some(Tracepoint { system: system.to_owned(), name: name.to_owned(), id })
    }

    /// The text that describes the records of `system:name`.
    pub fn format(&self, system: &str, name: &str) -> io::Result<String> {
        fs::read_to_string(self.folder(system, name).join("format"))
    }

    /// The names of the events of a system, sorted; empty if there is no such system.
    pub fn names(&self, system: &str) -> Vec<String> {
        let mut names = folders(&self.root.join("events").join(system));
        // A system's own control files are not folders, and ftrace's events have no id.
        names.retain(|name| self.folder(system, name).join("id").exists());
        names
    }

    /// The names of the systems, sorted.
    pub fn systems(&self) -> Vec<String> {
        folders(&self.root.join("events"))
    }

    fn folder(&self, system: &str, name: &str) -> PathBuf {
        self.root.join("events").join(system).join(name)
    }
}

/// The folders may be readable by all, but the files with the numbers of the events by root only:
/// since Linux 5.16 their mode is 440, whatever the mode of the mount.
fn closed(root: &Path) -> Option<io::Error> {
    let error = fs::File::open(root.join("events/sched/sched_switch/id")).err()?;
    (error.kind() == io::ErrorKind::PermissionDenied).then_some(error)
}

/// Where tracefs may be: by the table of mounts; then its usual places, because accessing them
/// makes the kernel mount it below debugfs.
fn candidates(mounts: &str) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = Vec::new();
    let mut below_debugfs: Vec<PathBuf> = Vec::new();
    for line in mounts.lines() {
        let mut words = line.split(' ');
        let (Some(_), Some(point), Some(kind)) = (words.next(), words.next(), words.next()) else {
            continue;
        };
        match kind {
            "tracefs" => found.push(unescape(point)),
            "debugfs" => below_debugfs.push(unescape(point).join("tracing")),
            _ => {}
        }
    }
    found.extend(below_debugfs);
    found.extend(USUAL.map(PathBuf::from));
    found
}

/// `/proc/mounts` writes blanks, tabs, newlines and backslashes as `\040` and so on.
fn unescape(text: &str) -> PathBuf {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        out.push_str(&rest[..at]);
        let code = rest.get(at + 1..at + 4).and_then(|d| u8::from_str_radix(d, 8).ok());
        match code {
            Some(code) if code.is_ascii() => {
                out.push(code.into());
                rest = &rest[at + 4..];
            }
            _ => {
                out.push('\\');
                rest = &rest[at + 1..];
            }
        }
    }
    out.push_str(rest);
    PathBuf::from(out)
}

/// The names of the folders in a folder, sorted.
fn folders(path: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(path)
        .into_iter()
        .flatten()
        .flatten()
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
        .filter_map(|entry| entry.file_name().into_string().ok())
        .collect();
    names.sort_unstable();
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_found_wherever_it_is_mounted() {
        let mounts = "proc /proc proc rw 0 0\n\
                      debugfs /sys/kernel/debug debugfs rw 0 0\n\
                      nodev /mnt/my\\040traces\\134x tracefs rw,nosuid 0 0\n\
                      broken\n";
        let found = candidates(mounts);
        assert_eq!(found[0], Path::new("/mnt/my traces\\x"));
        assert_eq!(found[1], Path::new("/sys/kernel/debug/tracing"));
        assert!(found.contains(&PathBuf::from("/sys/kernel/tracing")));
    }

    #[test]
    fn a_path_with_a_stray_backslash_stays_as_it_is() {
        assert_eq!(unescape("/a\\"), Path::new("/a\\"));
        assert_eq!(unescape("/a\\9é"), Path::new("/a\\9é"));
    }

    #[test]
    fn events_are_folders_with_an_id() {
        let root = tempfile::tempdir().unwrap();
        let sched = root.path().join("events/sched");
        for (name, id) in [("sched_switch", Some("316\n")), ("sched_odd", Some("x")), ("z", None)] {
            fs::create_dir_all(sched.join(name)).unwrap();
            if let Some(id) = id {
                fs::write(sched.join(name).join("id"), id).unwrap();
            }
        }
        fs::write(sched.join("enable"), "0\n").unwrap();
        let tracefs = Tracefs::at(root.path());
        assert_eq!(tracefs.systems(), ["sched"]);
        assert_eq!(tracefs.names("sched"), ["sched_odd", "sched_switch"]);
        assert_eq!(tracefs.tracepoint("sched", "sched_switch").map(|t| t.id), Some(316));
        assert_eq!(tracefs.tracepoint("sched", "sched_odd"), None);
        assert_eq!(tracefs.tracepoint("sched", "z"), None);
    }
}
