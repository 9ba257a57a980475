//! The files that a host describes itself in: its own, or those of a folder that looks like it.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// No file that is read here is larger; what lies behind it is left out.
const MOST: u64 = 1 << 20;

/// Where the files of a host begin.
#[derive(Clone, Debug)]
pub struct Root(PathBuf);

impl Root {
    /// This host.
    pub fn host() -> Root {
        Root(PathBuf::from("/"))
    }

    /// A host that `folder` holds the files of, for tests.
    pub fn at(folder: &Path) -> Root {
        Root(folder.to_owned())
    }

    /// Where the file is that the host knows as `path`, which begins with a slash.
    pub fn path(&self, path: impl AsRef<Path>) -> PathBuf {
        let path = path.as_ref();
        self.0.join(path.strip_prefix("/").unwrap_or(path))
    }

    /// The text of a file without the blanks around it, of a large one the beginning.
    pub(crate) fn text(&self, path: &str) -> io::Result<String> {
        let mut bytes = Vec::new();
        File::open(self.path(path))?.take(MOST).read_to_end(&mut bytes)?;
        Ok(String::from_utf8_lossy(&bytes).trim().to_owned())
    }

    /// The first number of a file; none if there is no such file or no number in it.
    pub(crate) fn number(&self, path: &str) -> Option<i64> {
        self.text(path).ok()?.split_whitespace().next()?.parse().ok()
    }

    /// What a symbolic link says.
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
