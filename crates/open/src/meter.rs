//! The state of unpacking a file.

use crate::Stream;
use holdup_trace::progress;
use std::io::{self, Read};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

/// The state of unpacking one file, shared by all its layers.
#[derive(Default)]
pub(crate) struct Meter {
    /// Bytes read from the file.
    read: AtomicU64,
    /// Layers that read from the file itself: only the outermost does.
    layers: AtomicU64,
    /// Whether reading the file failed, rather than unpacking it.
    pub(crate) io_failed: AtomicBool,
    /// Whether the limit was reached.
    pub(crate) too_much: AtomicBool,
    /// Why unpacking stopped before the end.
    damage: Mutex<Option<String>>,
}

impl Meter {
    /// Count the bytes read from `stream` if it is the file itself.
    pub(crate) fn metered(self: &Arc<Meter>, stream: Stream) -> Metered {
        Metered {
            stream,
            meter: (self.layers.fetch_add(1, Ordering::Relaxed) == 0).then(|| self.clone()),
        }
    }

    /// Bytes of the file read so far.
    pub(crate) fn bytes_read(&self) -> u64 {
        self.read.load(Ordering::Relaxed)
    }

    /// Whether more came out than is allowed.
    pub(crate) fn is_too_much(&self) -> bool {
        self.too_much.load(Ordering::Relaxed)
    }

    /// Why unpacking stopped before the end, if it did.
    pub(crate) fn damage(&self) -> Option<String> {
        self.damage.lock().unwrap_or_else(|e| e.into_inner()).clone()
    }

    /// Record why unpacking cannot continue.
    pub(crate) fn note_damage(&self, what: String) {
        self.damage.lock().unwrap_or_else(|e| e.into_inner()).get_or_insert(what);
    }

    /// Most bytes that may come out, given the bytes read so far.
    pub(crate) fn limit(&self) -> u64 {
        holdup_map::most_unpacked(self.bytes_read())
    }
}

/// Counts compressed bytes.
pub(crate) struct Metered {
    stream: Stream,
    meter: Option<Arc<Meter>>,
}

impl Read for Metered {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let result = self.stream.read(buf);
        if let Some(meter) = &self.meter {
            match &result {
                Ok(n) => {
                    meter.read.fetch_add(*n as u64, Ordering::Relaxed);
                    progress::advance(*n as u64);
                }
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => meter.io_failed.store(true, Ordering::Relaxed),
            }
        }
        result
    }
}
