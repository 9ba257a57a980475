//! Identifies a trace: its content, and how to see without reading it that it has not changed.

use sha2::{Digest, Sha256};
use std::fs::{self, File, Metadata};
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// What the file system says of a file, or of all files of a folder. If it is unchanged, so is the
/// content: only the kernel sets the ctime.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    /// Size.
    pub bytes: u64,
    /// Latest time the content was written, ns since 1970.
    pub mtime_ns: i64,
    /// Latest time anything was changed, ns since 1970.
    pub ctime_ns: i64,
}

fn nanos(seconds: i64, ns: i64) -> i64 {
    seconds.saturating_mul(1_000_000_000).saturating_add(ns)
}

impl Stamp {
    /// Read it from the file system.
    ///
    /// # Errors
    /// It cannot be read, or the path is neither a regular file nor a folder of regular files.
    pub fn of(path: &Path) -> io::Result<Stamp> {
        let one = |m: &Metadata| Stamp {
            bytes: m.len(),
            mtime_ns: nanos(m.mtime(), m.mtime_nsec()),
            ctime_ns: nanos(m.ctime(), m.ctime_nsec()),
        };
        let metadata = path.metadata()?;
        if !metadata.is_dir() {
            return Ok(one(&metadata));
        }
        let none = Stamp { bytes: 0, mtime_ns: i64::MIN, ctime_ns: i64::MIN };
        files(path)?.iter().try_fold(none, |all, file| {
            let file = one(&file.metadata()?);
            Ok(Stamp {
                bytes: all.bytes + file.bytes,
                mtime_ns: all.mtime_ns.max(file.mtime_ns),
                ctime_ns: all.ctime_ns.max(file.ctime_ns),
            })
        })
    }
}

/// SHA-256 of the content, in hexadecimal digits: for a file as `sha256sum` prints it, for a folder
/// over the names and contents of its files.
///
/// # Errors
/// The trace cannot be read.
pub fn content(path: &Path) -> io::Result<String> {
    let mut hash = Sha256::new();
    let mut buffer = vec![0; 256 << 10];
    if path.metadata()?.is_dir() {
        for file in files(path)? {
            let name = file.strip_prefix(path).unwrap_or(&file).as_os_str().as_bytes();
            hash.update((name.len() as u64).to_le_bytes());
            hash.update(name);
            hash.update(file.metadata()?.len().to_le_bytes());
            read(&file, &mut buffer, &mut hash)?;
        }
    } else {
        read(path, &mut buffer, &mut hash)?;
    }
    Ok(format!("{:x}", hash.finalize()))
}

fn read(path: &Path, buffer: &mut [u8], hash: &mut Sha256) -> io::Result<()> {
    let mut file = File::open(path)?;
    loop {
        match file.read(buffer) {
            Ok(0) => return Ok(()),
            Ok(n) => hash.update(&buffer[..n]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// A folder with more files than this is not a trace.
const MOST: usize = 200_000;

/// All files of a folder that is a trace, by name. Links to folders are not followed.
fn files(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let (mut found, mut ahead) = (Vec::new(), vec![folder.to_owned()]);
    while let Some(folder) = ahead.pop() {
        for entry in fs::read_dir(&folder)? {
            let entry = entry?;
            let path = entry.path();
            if entry.file_type()?.is_dir() {
                ahead.push(path);
            } else if path.metadata()?.is_file() {
                found.push(path);
            } else if !path.is_dir() {
                // Opening a pipe blocks until it has a writer.
                return Err(io::Error::other(format!("{} is not a file", path.display())));
            }
            if found.len() + ahead.len() > MOST {
                return Err(io::Error::other(format!("more than {MOST} files")));
            }
        }
    }
    found.sort();
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_has_the_sum_that_sha256sum_prints() {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), "abc").unwrap();
        let abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(content(file.path()).unwrap(), abc);
        assert_eq!(Stamp::of(file.path()).unwrap().bytes, 3);
    }

    #[test]
    fn a_folder_is_the_names_and_contents_of_its_files() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path();
        fs::create_dir(path.join("d")).unwrap();
        fs::write(path.join("d/a"), "1").unwrap();
        fs::write(path.join("b"), "2").unwrap();
        let before = (content(path).unwrap(), Stamp::of(path).unwrap());
        assert_eq!(before, (content(path).unwrap(), Stamp::of(path).unwrap()));
        assert_eq!(before.1.bytes, 2);
        fs::rename(path.join("d/a"), path.join("d/c")).unwrap();
        assert_ne!(before.0, content(path).unwrap(), "another name");
        fs::write(path.join("d/c"), "").unwrap();
        fs::write(path.join("b"), "21").unwrap();
        assert_ne!(before.0, content(path).unwrap(), "what was in one file is in the other");
        let listener = std::os::unix::net::UnixListener::bind(path.join("d/socket")).unwrap();
        assert!(content(path).is_err());
        drop(listener);
    }
}
