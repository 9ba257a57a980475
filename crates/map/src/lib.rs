//! A file mapped into memory, safe to read while others truncate it.
//!
//! Mapping saves the copy out of the page cache, which is the largest single cost of reading a
//! trace: on the 500 MB benchmark recording the page faults of a mapping cost 40 to 60 ms of CPU
//! time, reading it with `pread` 110 ms. The price is SIGBUS: touching a page beyond the end of a
//! file that has shrunk kills the process. So a handler maps a page of zeros in its place, and
//! [`Map::shrank`] tells the reader, for which zeros are not records, what happened.
//!
//! This is the only crate of holdup with `unsafe`: mapping a file, installing the handler, and the
//! handler itself.
#![allow(unsafe_code, reason = "mapping files and catching SIGBUS cannot be done without")]

mod bytes;

pub use bytes::{ALLOWANCE, Bytes, IN_MEMORY, RATIO, Spool, most_unpacked};

use memmap2::UncheckedAdvice;
use std::fs::File;
use std::ops::Range;
use std::sync::Once;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// A read-only view of a regular file.
#[derive(Debug)]
pub struct Map {
    map: memmap2::Mmap,
    region: &'static Region,
    /// For each block, how many bytes the reader is done with.
    used: Box<[AtomicUsize]>,
}

/// Pages are released this many bytes at a time: each release interrupts the other CPUs.
const BLOCK: usize = 4 << 20;

/// The address range of a map, for the handler.
#[derive(Debug)]
struct Region {
    taken: AtomicBool,
    /// 0 while there is no map.
    start: AtomicUsize,
    len: AtomicUsize,
    shrank: AtomicBool,
}

impl Region {
    const fn new() -> Region {
        Region {
            taken: AtomicBool::new(false),
            start: AtomicUsize::new(0),
            len: AtomicUsize::new(0),
            shrank: AtomicBool::new(false),
        }
    }
}

/// A handler cannot take locks or allocate: a fixed table. More maps at once are refused.
static REGIONS: [Region; 64] = [const { Region::new() }; 64];
static PAGE: AtomicUsize = AtomicUsize::new(4096);

impl Map {
    /// Maps all of `file`. `None` if it cannot be mapped (empty, not a regular file, too many
    /// maps): the caller then reads it instead.
    pub fn new(file: &File) -> Option<Map> {
        let metadata = file.metadata().ok()?;
        if !metadata.is_file() || metadata.len() == 0 {
            return None;
        }
        install();
        let free = |r: &&Region| {
            r.taken.compare_exchange(false, true, Ordering::AcqRel, Ordering::Relaxed).is_ok()
        };
        let region = REGIONS.iter().find(free)?;
        // SAFETY: the mapping is private and read-only. The file may change under us: that changes
        // bytes, which readers bounds-check one load at a time and never trust, and removes pages,
        // which the handler replaces.
        let Ok(map) = (unsafe { memmap2::Mmap::map(file) }) else {
            region.taken.store(false, Ordering::Release);
            return None;
        };
        region.shrank.store(false, Ordering::Relaxed);
        region.len.store(map.len(), Ordering::Release);
        region.start.store(map.as_ptr() as usize, Ordering::Release);
        let used = (0..map.len().div_ceil(BLOCK)).map(|_| AtomicUsize::new(0)).collect();
        Some(Map { map, region, used })
    }

    /// The file as it was when mapped; zeros where it has been truncated since.
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        &self.map
    }

    /// Whether bytes have been missing so far.
    pub fn shrank(&self) -> bool {
        self.region.shrank.load(Ordering::Relaxed)
    }

    /// The reader has read these bytes once, and needs them again later: their pages are released
    /// until then, so that a file much larger than memory does not look as if all of it were in
    /// use.
    pub fn release(&self, bytes: Range<usize>) {
        let page = PAGE.load(Ordering::Relaxed);
        let from = bytes.start / page * page;
        let to = bytes.end.min(self.map.len());
        if from < to {
            self.drop_pages(from, to);
        }
    }

    /// Drops the pages from `from`, which must be the start of a page, to `to`.
    fn drop_pages(&self, from: usize, to: usize) {
        // SAFETY: the mapping is private and never written to: dropped pages come back from the
        // file with the same content (or, if that has changed, as if they had not been touched
        // before).
        let _ =
            unsafe { self.map.unchecked_advise_range(UncheckedAdvice::DontNeed, from, to - from) };
    }

    /// The reader is done with these bytes. Once it is done with all of a block, the block's pages
    /// are released (and read from the file again if they are used nevertheless). Unmapping takes
    /// as long as some millions of events; done here it costs the decoders' time, and does not
    /// delay the end of the process.
    pub fn done_with(&self, bytes: Range<usize>) {
        let mut at = bytes.start;
        let end = bytes.end.min(self.map.len());
        while at < end {
            let block = at / BLOCK;
            let from = block * BLOCK;
            let to = (from + BLOCK).min(self.map.len());
            let n = end.min(to) - at;
            if self.used[block].fetch_add(n, Ordering::Relaxed) + n == to - from {
                self.used[block].store(0, Ordering::Relaxed);
                // A block starts at a page.
                self.drop_pages(from, to);
            }
            at = to;
        }
    }
}

impl Drop for Map {
    fn drop(&mut self) {
        self.region.start.store(0, Ordering::Release);
        self.region.len.store(0, Ordering::Release);
        self.region.taken.store(false, Ordering::Release);
    }
}

/// Install the handler, once.
fn install() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // SAFETY: sysconf has no preconditions. sigaction is given a zeroed struct with the fields
        // it reads filled in, and a handler that only calls async-signal-safe functions.
        unsafe {
            if let Ok(page) = usize::try_from(libc::sysconf(libc::_SC_PAGESIZE)) {
                PAGE.store(page, Ordering::Relaxed);
            }
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = on_sigbus
                as extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut libc::c_void)
                as usize;
            action.sa_flags = libc::SA_SIGINFO;
            libc::sigemptyset(&mut action.sa_mask);
            libc::sigaction(libc::SIGBUS, &action, std::ptr::null_mut());
        }
    });
}

extern "C" fn on_sigbus(_: libc::c_int, info: *mut libc::siginfo_t, _: *mut libc::c_void) {
    // SAFETY: the kernel passes a valid siginfo. Only atomics and mmap are used; mmap is a bare
    // system call. The page replaced lies inside one of our own private mappings.
    unsafe {
        let address = (*info).si_addr() as usize;
        for region in &REGIONS {
            let start = region.start.load(Ordering::Acquire);
            let len = region.len.load(Ordering::Acquire);
            if start == 0 || address < start || address - start >= len {
                continue;
            }
            let page = PAGE.load(Ordering::Relaxed);
            let at = address & !(page - 1);
            let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED;
            if libc::mmap(at as *mut libc::c_void, page, libc::PROT_READ, flags, -1, 0)
                != libc::MAP_FAILED
            {
                region.shrank.store(true, Ordering::Relaxed);
                return;
            }
        }
        // Not one of our maps: let it kill the process as usual.
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = libc::SIG_DFL;
        libc::sigaction(libc::SIGBUS, &action, std::ptr::null_mut());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn a_file_that_shrinks_under_the_reader_turns_into_zeros() {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&[7; 100_000]).unwrap();
        let map = Map::new(&file).unwrap();
        assert_eq!(map.bytes()[99_999], 7);
        assert!(!map.shrank());
        file.set_len(10_000).unwrap();
        assert_eq!(map.bytes()[9_999], 7);
        // The page with the end remains, with zeros after the end; the next pages are gone.
        assert_eq!(map.bytes().iter().filter(|&&b| b == 7).count(), 10_000);
        assert!(map.shrank());
    }

    #[test]
    fn bytes_done_with_can_still_be_read() {
        let mut file = tempfile::tempfile().unwrap();
        let len = 2 * BLOCK + 5000;
        file.write_all(&vec![7; len]).unwrap();
        let map = Map::new(&file).unwrap();
        for round in 0..2 {
            for from in (0..len).step_by(1 << 20) {
                assert!(map.bytes()[from..].iter().all(|&b| b == 7), "round {round}");
                map.done_with(from..from + (1 << 20));
            }
            assert!(map.used.iter().all(|n| n.load(Ordering::Relaxed) == 0));
        }
    }

    #[test]
    fn what_cannot_be_mapped_is_refused_not_fatal() {
        assert!(Map::new(&tempfile::tempfile().unwrap()).is_none());
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(b"x").unwrap();
        let maps: Vec<Map> = std::iter::from_fn(|| Map::new(&file)).take(1000).collect();
        assert!(!maps.is_empty() && maps.len() <= 64);
        drop(maps);
        assert_eq!(Map::new(&file).unwrap().bytes(), b"x");
    }

    #[test]
    fn released_pages_are_given_back_and_come_again() {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&vec![7; 8 << 20]).unwrap();
        let map = Map::new(&file).unwrap();
        let touch = || map.bytes().iter().step_by(4096).map(|&b| u64::from(b)).sum::<u64>();
        assert_eq!(touch(), 7 * 2048);
        assert_eq!(resident_kib(&map), 8 << 10);
        // From the middle of a page to the end of the file. The kernel may have mapped the first
        // part with a larger page, and then drops that too.
        map.release((1 << 20) + 5..usize::MAX);
        assert!(resident_kib(&map) <= 1 << 10);
        assert_eq!(touch(), 7 * 2048);
    }

    /// How much of the map is in memory, according to /proc/self/smaps.
    fn resident_kib(map: &Map) -> u64 {
        let smaps = std::fs::read_to_string("/proc/self/smaps").unwrap();
        let start = format!("{:x}-", map.bytes().as_ptr() as usize);
        let lines = smaps.lines().skip_while(|l| !l.starts_with(&start));
        let rss = lines.map(str::trim).find_map(|l| l.strip_prefix("Rss:")).unwrap();
        rss.trim().strip_suffix(" kB").unwrap().parse().unwrap()
    }
}
