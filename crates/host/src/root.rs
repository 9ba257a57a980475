//! The files that describe a host: its own, or a folder that imitates them.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// Maximal bytes read of a file; the rest is ignored.
const MOST: u64 = 1 << 20;

/// The folder that contains the files of a host.
#[derive(Clone, Debug)]
pub struct Root(PathBuf);

impl Root {
    /// This host.
    pub fn host() -> Root {
        Root(PathBuf::from("/"))
    }

    /// A host whose files are in `folder`, for tests.
    pub fn at(folder: &Path) -> Root {
        Root(folder.to_owned())
    }

    /// Path of the file that has the absolute path `path` on the host.
    pub fn path(&self, path: impl AsRef<Path>) -> PathBuf {
        let path = path.as_ref();
        self.0.join(path.strip_prefix("/").unwrap_or(path))
    }

    /// The trimmed text of a file; only the beginning of a large one.
    pub(crate) fn text(&self, path: &str) -> io::Result<String> {
        let mut bytes = Vec::new();
        File::open(self.path(path))?.take(MOST).read_to_end(&mut bytes)?;
        Ok(String::from_utf8_lossy(&bytes).trim().to_owned())
    }

    /// The first number in a file; `None` if there is no such file or no number in it.
    pub(crate) fn number(&self, path: &str) -> Option<i64> {
        self.text(path).ok()?.split_whitespace().next()?.parse().ok()
    }

    /// The target of a symbolic link.
    pub(crate) fn link(&self, path: &str) -> Option<String> {
        Some(fs::read_link(self.path(path)).ok()?.to_string_lossy().into_owned())
    }

    /// Whether there is such a file.
    pub(crate) fn exists(&self, path: &str) -> bool {
        self.path(path).exists()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_of_the_host_lies_below_the_root() {
        let root = Root::at(Path::new("/tmp/fake"));
        assert_eq!(root.path("/proc/mounts"), Path::new("/tmp/fake/proc/mounts"));
        assert_eq!(Root::host().path("/proc/mounts"), Path::new("/proc/mounts"));
    }

    #[test]
    fn what_is_no_text_and_no_number_is_read_without_harm() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("a"), b" \xff1\n").unwrap();
        fs::write(folder.path().join("b"), b"-1\t7\n").unwrap();
        let root = Root::at(folder.path());
        assert_eq!(root.text("/a").unwrap(), "\u{fffd}1");
        assert_eq!(
            (root.number("/a"), root.number("/b"), root.number("/c")),
            (None, Some(-1), None)
        );
    }
}
