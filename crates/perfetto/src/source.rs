//! Where the bytes come from: the file, mapped or in memory, and the data unpacked from it.
//!
//! Packets may be compressed, many in one. They are unpacked once, when the trace is opened, into
//! memory and beyond a limit into a temporary file: every block has events of every CPU, so
//! unpacking on demand would unpack each block once per CPU.

use holdup_map::Bytes;
use std::sync::atomic::{AtomicBool, Ordering};

/// Which bytes a place refers to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// The trace file itself.
    File,
    /// The data unpacked from it.
    Unpacked,
}

/// A stretch of bytes of one part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) part: Part,
    pub(crate) start: usize,
    pub(crate) end: usize,
}

impl Place {
    pub(crate) fn len(self) -> usize {
        self.end - self.start
    }
}

/// All bytes of a trace.
pub(crate) struct Source {
    pub(crate) file: Bytes,
    pub(crate) unpacked: Bytes,
    /// Whether it was reported that the file shrank.
    reported: AtomicBool,
}

impl Source {
    pub(crate) fn new(file: Bytes, unpacked: Bytes) -> Source {
        Source { file, unpacked, reported: AtomicBool::new(false) }
    }

    #[inline]
    pub(crate) fn get(&self, place: Place) -> &[u8] {
        let bytes = match place.part {
            Part::File => self.file.all(),
            Part::Unpacked => self.unpacked.all(),
        };
        bytes.get(place.start..place.end).unwrap_or(&[])
    }

    /// Whether the file has been cut off since it was opened; true only for the first call after
    /// that.
    pub(crate) fn has_shrunk(&self) -> bool {
        self.file.shrank() && !self.reported.swap(true, Ordering::Relaxed)
    }
}
