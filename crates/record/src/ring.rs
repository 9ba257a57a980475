//! The memory in which the kernel leaves the records of one CPU, and how they are read.
//!
//! A ring is a page of positions and a power of two of pages of records, mapped from an event.
//! There are two kinds. From a [`Ring::queue`] records are read in the order in which they were
//! written, and the kernel counts records that do not fit. A [`Ring::last`] is never full: the
//! kernel writes it backwards, from its end to its start and around, over the oldest records. So
//! reading it forwards from the kernel's position yields the newest record first, then older whole
//! records, up to the first one that is partly overwritten.
//!
//! Records are passed on unparsed, as the kernel wrote them.
#![allow(unsafe_code, reason = "a ring is memory shared with the kernel")]

use perf_event_open_sys::bindings::perf_event_mmap_page;
use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering, fence};

use holdup_host::page_size;

/// The start of every record: its type (4 bytes), flags (2), and size (2), including the header.
const HEADER: usize = 8;

/// A mapped ring.
#[derive(Debug)]
pub struct Ring {
    map: NonNull<u8>,
    /// Bytes mapped: the page of positions, and the records.
    len: usize,
    page: usize,
}

// SAFETY: the mapping belongs to the process, not to a thread, and the positions in it are only
// accessed as atomics; reading records needs `&mut self`.
unsafe impl Send for Ring {}

impl Ring {
    /// A ring of `size` bytes, a power of two of pages, from which records are read in order.
    ///
    /// # Errors
    ///
    /// `EPERM` if the user may not lock so much memory, `ENOMEM` if there is not enough.
    pub fn queue(event: &impl AsFd, size: usize) -> io::Result<Ring> {
        // If the position of the reader is writable, the kernel waits for the reader.
        Ring::map(event, size, libc::PROT_READ | libc::PROT_WRITE)
    }

    /// A ring of `size` bytes that keeps the last records; `event` has `write_backward` set.
    ///
    /// # Errors
    ///
    /// Those of [`Ring::queue`].
    pub fn last(event: &impl AsFd, size: usize) -> io::Result<Ring> {
        Ring::map(event, size, libc::PROT_READ)
    }

    fn map(event: &impl AsFd, size: usize, access: i32) -> io::Result<Ring> {
        let page = page_size();
        let len = size + page;
        // SAFETY: a new mapping at an address of the kernel's choice overlaps no existing one.
        let map = unsafe {
            let fd = event.as_fd().as_raw_fd();
            libc::mmap(std::ptr::null_mut(), len, access, libc::MAP_SHARED, fd, 0)
        };
        match NonNull::new(map.cast::<u8>()) {
            Some(map) if map.as_ptr().cast() != libc::MAP_FAILED => Ok(Ring { map, len, page }),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// Passes the records since the last call to `sink`, in one part or, if the ring's end lies
    /// within them, in two. Only both together are whole records. What `sink` does not take stays.
    /// Returns the bytes.
    #[inline]
    pub fn drain<E>(
        &mut self,
        mut sink: impl FnMut(&[u8], &[u8]) -> Result<(), E>,
    ) -> Result<u64, E> {
        // SAFETY: the positions lie in the first page, aligned to eight bytes, as long as `self`
        // lives; the kernel writes one of them, only this thread the other.
        let (head, tail) = unsafe {
            let positions = self.map.cast::<perf_event_mmap_page>().as_ptr();
            (
                AtomicU64::from_ptr(&raw mut (*positions).data_head),
                AtomicU64::from_ptr(&raw mut (*positions).data_tail),
            )
        };
        // Acquire: the records before it are seen as the kernel wrote them.
        let end = head.load(Ordering::Acquire);
        let start = tail.load(Ordering::Relaxed);
        // The kernel is never further ahead than the length of the ring.
        let bytes = end.wrapping_sub(start).min(self.size() as u64);
        if bytes > 0 {
            let (first, second) = self.part(start, bytes as usize);
            sink(first, second)?;
            // Release: the kernel reuses the space only after the records were read.
            tail.store(end, Ordering::Release);
        }
        Ok(bytes)
    }

    /// Passes the records of a ring that keeps the last ones to `sink`, oldest first, each whole.
    /// The kernel's writing must be paused ([`crate::sys::Event::pause_output`]).
    pub fn oldest_first<E>(
        &mut self,
        mut sink: impl FnMut(&[u8], &[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let head = self.backward_head();
        // The position counts down.
        let written = head.wrapping_neg().min(self.size() as u64) as usize;
        let mut records: Vec<(u32, u16)> = Vec::new();
        let mut at = 0;
        while at + HEADER <= written {
            // Records are multiples of eight bytes, so a header never lies across the end.
            let (header, _) = self.part(head.wrapping_add(at as u64), HEADER);
            let size = u16::from_ne_bytes([header[6], header[7]]);
            if usize::from(size) < HEADER || at + usize::from(size) > written {
                break;
            }
            records.push((at as u32, size));
            at += usize::from(size);
        }
        for &(at, size) in records.iter().rev() {
            let (first, second) = self.part(head.wrapping_add(at.into()), size.into());
            sink(first, second)?;
        }
        Ok(())
    }

    /// Whether a ring that keeps the last records has overwritten older ones.
    pub fn is_full(&self) -> bool {
        self.backward_head().wrapping_neg() >= self.size() as u64
    }

    /// The position of the newest record in a ring that is written backwards. It starts at 0.
    fn backward_head(&self) -> u64 {
        // SAFETY: as in `drain`; the page is mapped for reading only, from which Rust allows
        // relaxed loads.
        let head = unsafe {
            let positions = self.map.cast::<perf_event_mmap_page>().as_ptr();
            AtomicU64::from_ptr(&raw mut (*positions).data_head).load(Ordering::Relaxed)
        };
        fence(Ordering::Acquire);
        head
    }

    /// Bytes of records.
    pub fn size(&self) -> usize {
        self.len - self.page
    }

    /// `bytes` of records from the position `start`, in two parts if the end of the ring lies
    /// within.
    fn part(&self, start: u64, bytes: usize) -> (&[u8], &[u8]) {
        let size = self.size();
        let start = (start % size as u64) as usize;
        let first = bytes.min(size - start);
        // SAFETY: both parts lie in the mapped records. The kernel does not write there meanwhile:
        // they lie before the position that the reader has confirmed, or the writing is paused.
        unsafe {
            let records = self.map.as_ptr().add(self.page);
            (
                std::slice::from_raw_parts(records.add(start), first),
                std::slice::from_raw_parts(records, bytes - first),
            )
        }
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: nothing else uses the mapping, and no slice of it outlives `self`.
        unsafe { libc::munmap(self.map.as_ptr().cast(), self.len) };
    }
}

/// The size of a ring that holds at least `bytes`: a power of two of pages.
pub fn ring_size(bytes: usize) -> usize {
    bytes.max(page_size()).checked_next_power_of_two().unwrap_or(1 << (usize::BITS - 2))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use std::io::{Seek, SeekFrom, Write};
    use std::mem::offset_of;

    /// A file that imitates the kernel: positions, and one page of records.
    struct Kernel(File);

    impl Kernel {
        fn new() -> Kernel {
            let file = tempfile::tempfile().unwrap();
            file.set_len(2 * page_size() as u64).unwrap();
            Kernel(file)
        }

        fn put(&mut self, at: usize, bytes: &[u8]) {
            self.0.seek(SeekFrom::Start(at as u64)).unwrap();
            self.0.write_all(bytes).unwrap();
        }

        fn set_head(&mut self, head: u64) {
            self.put(offset_of!(perf_event_mmap_page, data_head), &head.to_ne_bytes());
        }

        /// A record of `size` bytes at the position `at`, filled with `mark`.
        fn record(&mut self, at: u64, size: u16, mark: u8) {
            let mut bytes = vec![0, 0, 0, 0, 0, 0];
            bytes.extend(size.to_ne_bytes());
            bytes.resize(size.into(), mark);
            for (i, byte) in bytes.into_iter().enumerate() {
                let place = at.wrapping_add(i as u64) as usize % page_size();
                self.put(page_size() + place, &[byte]);
            }
        }
    }

    fn drained(ring: &mut Ring) -> Vec<u8> {
        let mut all = Vec::new();
        let bytes = ring
            .drain(|first, second| {
                all.extend_from_slice(first);
                all.extend_from_slice(second);
                Ok::<(), ()>(())
            })
            .unwrap();
        assert_eq!(bytes, all.len() as u64);
        all
    }

    #[test]
    fn what_lies_across_the_end_comes_out_whole_and_once() {
        let mut kernel = Kernel::new();
        let mut ring = Ring::queue(&kernel.0, page_size()).unwrap();
        let most = page_size() as u64 - 16;
        kernel.set_head(most);
        assert_eq!(drained(&mut ring).len() as u64, most);
        assert!(drained(&mut ring).is_empty());
        kernel.record(most, 40, 7);
        kernel.set_head(most + 40);
        let record = drained(&mut ring);
        assert_eq!((record.len(), record[6], &record[8..]), (40, 40, &[7; 32][..]));
        assert!(drained(&mut ring).is_empty());
    }

    #[test]
    fn what_the_sink_does_not_take_stays() {
        let mut kernel = Kernel::new();
        let mut ring = Ring::queue(&kernel.0, page_size()).unwrap();
        kernel.record(0, 16, 1);
        kernel.set_head(16);
        assert_eq!(ring.drain(|_, _| Err("full")), Err("full"));
        assert_eq!(drained(&mut ring).len(), 16);
    }

    #[test]
    fn the_last_records_come_oldest_first_without_the_one_that_is_written_over() {
        let mut kernel = Kernel::new();
        let mut ring = Ring::last(&kernel.0, page_size()).unwrap();
        // 48 bytes each: the page is not a multiple of that, so the oldest record is cut.
        let mut head = 0u64;
        let count = page_size() / 48 + 3;
        for i in 0..count {
            head = head.wrapping_sub(48);
            kernel.record(head, 48, i as u8);
        }
        kernel.set_head(head);
        let mut marks = Vec::new();
        ring.oldest_first(|first, second| {
            assert_eq!(first.len() + second.len(), 48);
            marks.push(*second.last().or(first.last()).unwrap());
            Ok::<(), ()>(())
        })
        .unwrap();
        let expected: Vec<u8> = (3..count).map(|i| i as u8).collect();
        assert_eq!(marks, expected);
    }

    #[test]
    fn a_ring_nothing_was_written_to_holds_nothing() {
        let kernel = Kernel::new();
        let mut ring = Ring::last(&kernel.0, page_size()).unwrap();
        ring.oldest_first(|_, _| Err("there is something")).unwrap();
        assert!(drained(&mut Ring::queue(&kernel.0, page_size()).unwrap()).is_empty());
    }

    #[test]
    fn sizes_are_powers_of_two_of_pages() {
        assert_eq!(ring_size(0), page_size());
        assert_eq!(ring_size(page_size() + 1), 2 * page_size());
        assert_eq!(ring_size(4 << 20), 4 << 20);
        assert!(ring_size(usize::MAX).is_power_of_two());
    }
}
