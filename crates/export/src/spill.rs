//! Slices in the order of their beginnings, however many there are. Facts come in the order of
//! their ends, and the last to end may have begun first. Sorted parts go to a file and are merged.

use crate::error::ExportError;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs::{self, File};
use std::io::{self, BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::PathBuf;

/// A span of time on a track. The meaning of `args` depends on `sort`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Slice {
    pub(crate) start: u64,
    pub(crate) end: u64,
    pub(crate) track: u32,
    pub(crate) name: u32,
    pub(crate) sort: u32,
    pub(crate) args: [u32; 3],
}

const BYTES: usize = 40;

impl Slice {
    /// Earlier first; of those that begin together the longest, so enclosing slices come first.
    fn key(&self) -> (u64, Reverse<u64>, u32, u32, [u32; 3]) {
        (self.start, Reverse(self.end), self.track, self.name, self.args)
    }

    fn to_bytes(self) -> [u8; BYTES] {
        let mut out = [0; BYTES];
        out[..8].copy_from_slice(&self.start.to_le_bytes());
        out[8..16].copy_from_slice(&self.end.to_le_bytes());
        let rest = [self.track, self.name, self.sort, self.args[0], self.args[1], self.args[2]];
        for (to, n) in out[16..].chunks_exact_mut(4).zip(rest) {
            to.copy_from_slice(&n.to_le_bytes());
        }
        out
    }

    fn of_bytes(bytes: [u8; BYTES]) -> Slice {
        let long =
            |at: usize| bytes[at..at + 8].iter().rev().fold(0, |n: u64, &b| n << 8 | u64::from(b));
        let short =
            |at: usize| bytes[at..at + 4].iter().rev().fold(0, |n: u32, &b| n << 8 | u32::from(b));
        Slice {
            start: long(0),
            end: long(8),
            track: short(16),
            name: short(20),
            sort: short(24),
            args: [short(28), short(32), short(36)],
        }
    }
}

/// This many slices are sorted in memory at a time: 40 MB.
const PART: usize = 1 << 20;

pub(crate) struct Spill {
    here: Vec<Slice>,
    part: usize,
    path: PathBuf,
    file: Option<BufWriter<File>>,
    /// Number of slices in each part of the file.
    parts: Vec<u64>,
}

impl Spill {
    /// `path` is for a temporary file.
    pub(crate) fn new(path: PathBuf) -> Spill {
        Spill { here: Vec::new(), part: PART, path, file: None, parts: Vec::new() }
    }

    pub(crate) fn push(&mut self, slice: Slice) -> Result<(), ExportError> {
        self.here.push(slice);
        if self.here.len() < self.part {
            return Ok(());
        }
        self.write().map_err(|error| ExportError::Write { path: self.path.clone(), error })
    }

    fn write(&mut self) -> io::Result<()> {
        self.here.sort_unstable_by_key(Slice::key);
        let file = match &mut self.file {
            Some(file) => file,
            none => {
                let mut open = File::options();
                let file =
                    open.read(true).write(true).create(true).truncate(true).open(&self.path)?;
                // The open file has no name any more, so it never stays behind.
                fs::remove_file(&self.path)?;
                none.insert(BufWriter::new(file))
            }
        };
        for slice in &self.here {
            file.write_all(&slice.to_bytes())?;
        }
        self.parts.push(self.here.len() as u64);
        self.here.clear();
        Ok(())
    }

    /// Pass on all slices in order.
    pub(crate) fn drain(mut self, take: &mut dyn FnMut(Slice) -> io::Result<()>) -> io::Result<()> {
        let Some(file) = self.file.take() else {
            self.here.sort_unstable_by_key(Slice::key);
            return self.here.iter().try_for_each(|&slice| take(slice));
        };
        let mut last = std::mem::take(&mut self.here);
        last.sort_unstable_by_key(Slice::key);
        let file = file.into_inner().map_err(io::IntoInnerError::into_error)?;
        let mut at = 0;
        let mut parts = Vec::new();
        for &slices in &self.parts {
            let part = PartOf { file: &file, at, end: at + slices * BYTES as u64 };
            at = part.end;
            parts.push(BufReader::with_capacity(64 << 10, part));
        }
        let mut next: Vec<Option<Slice>> = Vec::new();
        for part in &mut parts {
            next.push(read(part)?);
        }
        let mut rest = last.into_iter();
        next.push(rest.next());
        let mut heap: BinaryHeap<_> = (next.iter().enumerate())
            .filter_map(|(i, s)| Some(Reverse((s.as_ref()?.key(), i))))
            .collect();
        while let Some(Reverse((_, i))) = heap.pop() {
            let following = match parts.get_mut(i) {
                Some(part) => read(part)?,
                None => rest.next(),
            };
            if let Some(slice) = std::mem::replace(&mut next[i], following) {
                take(slice)?;
            }
            if let Some(slice) = &next[i] {
                heap.push(Reverse((slice.key(), i)));
            }
        }
        Ok(())
    }
}

/// A part of a file of which other readers read other parts.
struct PartOf<'a> {
    file: &'a File,
    at: u64,
    end: u64,
}

impl Read for PartOf<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = usize::try_from(self.end - self.at).unwrap_or(usize::MAX);
        let most = buffer.len().min(left);
        let mut file = self.file;
        file.seek(SeekFrom::Start(self.at))?;
        let n = file.read(&mut buffer[..most])?;
        self.at += n as u64;
        Ok(n)
    }
}

fn read(part: &mut impl Read) -> io::Result<Option<Slice>> {
    let mut bytes = [0; BYTES];
    let mut have = 0;
    while have < BYTES {
        match part.read(&mut bytes[have..])? {
            0 if have == 0 => return Ok(None),
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            n => have += n,
        }
    }
    Ok(Some(Slice::of_bytes(bytes)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_spilled_comes_back_in_order() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("spill");
        for part in [3, 1000] {
            let mut spill = Spill { part, ..Spill::new(path.clone()) };
            let mut expected = Vec::new();
            for i in 0u64..100 {
                let start = i * 7919 % 101;
                let n = i as u32;
                let args = [n, u32::MAX - n, n * 3];
                let slice = Slice { start, end: start + i % 5, track: n, name: n, sort: 1, args };
                expected.push(slice);
                spill.push(slice).unwrap();
            }
            expected.sort_by_key(Slice::key);
            let mut got = Vec::new();
            spill
                .drain(&mut |slice| {
                    got.push(slice);
                    Ok(())
                })
                .unwrap();
            assert_eq!(got, expected);
            assert_eq!(folder.path().read_dir().unwrap().count(), 0);
        }
    }
}
