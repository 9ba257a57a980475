//! A recording in several files, each complete: for a recorder that runs for days.

use crate::file::{Error, Writer};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// When the next file begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Due {
    /// When a file has this many bytes.
    Size(u64),
    /// When a file covers this much time.
    Time(Duration),
}

impl Due {
    /// Whether a file is large enough that has `bytes` bytes and covers the time `held`.
    pub(crate) fn is_over(self, bytes: u64, held: Duration) -> bool {
        match self {
            Due::Size(size) => bytes >= size,
            Due::Time(time) => held >= time,
        }
    }
}

/// How a recording is divided into files.
#[derive(Clone, Copy, Debug)]
pub struct Rotation {
    /// When the next file begins.
    pub due: Due,
    /// How many of the latest files are kept; `None` for all.
    pub keep: Option<u32>,
}

impl Rotation {
    /// The name of file `n`, from 1 on: the order by name is the order by time.
    pub fn path(output: &Path, n: u32) -> PathBuf {
        let mut name = output.as_os_str().to_owned();
        name.push(format!(".{n:04}"));
        name.into()
    }

    /// The file that must be deleted once file `n` has begun.
    pub(crate) fn stale(&self, output: &Path, n: u32) -> Option<PathBuf> {
        let stale = n.checked_sub(self.keep?).filter(|&stale| stale > 0)?;
        Some(Rotation::path(output, stale))
    }
}

/// Creates the next file.
pub(crate) struct Next<'a> {
    pub(crate) due: Due,
    pub(crate) writer: &'a mut dyn FnMut() -> Result<Writer, Error>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_files_go_and_names_sort_by_time() {
        let output = Path::new("/tmp/a.data");
        let names: Vec<PathBuf> = [9, 10, 100].map(|n| Rotation::path(output, n)).into();
        assert!(names.is_sorted() && names[0].ends_with("a.data.0009"), "{names:?}");
        let rotation = Rotation { due: Due::Size(1), keep: Some(3) };
        assert_eq!(rotation.stale(output, 3), None);
        assert_eq!(rotation.stale(output, 4), Some(Rotation::path(output, 1)));
        assert_eq!(Rotation { keep: None, ..rotation }.stale(output, 99), None);
    }

    #[test]
    fn a_file_is_over_at_its_size_or_its_time() {
        let second = Duration::from_secs(1);
        assert!(Due::Size(10).is_over(10, Duration::ZERO) && !Due::Size(10).is_over(9, second));
        assert!(Due::Time(second).is_over(0, second));
        assert!(!Due::Time(second).is_over(u64::MAX, second / 2));
    }
}
