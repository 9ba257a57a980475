//! The first look at the trace data, taken when a file is opened.
//!
//! A trace.dat describes events that were never recorded, so only the pages show which events
//! occur. The scan walks every record header and reads the two bytes of the event's id, on all
//! processors; it also finds the time span and the losses.

use crate::blocks::{CpuData, Fetch};
use crate::page::{Loss, Page, PageLayout};
use crate::time::TimeMap;
use holdup_trace::Quality;
use holdup_tracepoint::Endian;
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Blocks one thread takes at a time: about 4 MiB of pages.
const SHARE: usize = 16;

/// One bit per event id.
#[derive(Clone)]
pub(crate) struct IdSet(Box<[u64; 1024]>);

impl Default for IdSet {
    fn default() -> IdSet {
        IdSet(Box::new([0; 1024]))
    }
}

impl IdSet {
    #[inline(always)]
    fn insert(&mut self, id: u16) {
        self.0[id as usize >> 6] |= 1 << (id & 63);
    }

    fn absorb(&mut self, other: &IdSet) {
        self.0.iter_mut().zip(other.0.iter()).for_each(|(a, b)| *a |= b);
    }

    /// The union of several buffers' sets, and how many ids are in more than one of them.
    pub(crate) fn join(sets: &[IdSet]) -> (IdSet, u64) {
        let mut all = IdSet::default();
        let mut repeated = IdSet::default();
        for set in sets {
            for ((all, repeated), new) in
                all.0.iter_mut().zip(repeated.0.iter_mut()).zip(set.0.iter())
            {
                *repeated |= *all & new;
                *all |= new;
            }
        }
        (all, repeated.0.iter().map(|w| w.count_ones() as u64).sum())
    }

    /// The ids, ascending.
    pub(crate) fn ids(&self) -> Vec<u16> {
        (0..=u16::MAX).filter(|&id| self.0[id as usize >> 6] >> (id & 63) & 1 != 0).collect()
    }
}

/// What the scan found in a CPU's pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Found {
    pub(crate) events: u64,
    /// Earliest and latest time of an event, in the clock that is printed; (MAX, 0) without events.
    pub(crate) first: u64,
    pub(crate) last: u64,
    /// Earliest time of an event or of a loss mark: the start of the run.
    pub(crate) start: u64,
    /// Losses marked on the pages: those with a count, and those without.
    pub(crate) lost: u64,
    pub(crate) lost_unknown: u64,
    /// Bytes of pages scanned, uncompressed.
    pub(crate) bytes: u64,
    /// If only samples of a CPU were scanned, the number of scanned blocks without an event: the
    /// CPU's first or last event may be elsewhere.
    pub(crate) blank: u64,
}

impl Default for Found {
    fn default() -> Found {
        Found {
            events: 0,
            first: u64::MAX,
            last: 0,
            start: u64::MAX,
            lost: 0,
            lost_unknown: 0,
            bytes: 0,
            blank: 0,
        }
    }
}

impl Found {
    /// Add what was found in other blocks of the same CPU.
    pub(crate) fn absorb(&mut self, other: &Found) {
        self.events += other.events;
        self.first = self.first.min(other.first);
        self.last = self.last.max(other.last);
        self.start = self.start.min(other.start);
        self.lost = self.lost.saturating_add(other.lost);
        self.lost_unknown += other.lost_unknown;
        self.bytes += other.bytes;
        self.blank += other.blank;
    }
}

/// What one thread found: shares of CPUs, and the ids in every buffer.
type Work = (Vec<(usize, Found)>, Vec<IdSet>);

/// How much of the trace data is scanned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Look {
    /// All of it.
    Whole,
    /// Some blocks of each CPU, including the first and the last. Pages of a CPU are in time order,
    /// so these two have its earliest and latest event.
    Samples,
}

/// Blocks scanned in a sample, over all CPUs; at least two of each CPU.
const SAMPLED: usize = 32;

impl Look {
    /// How many of a CPU's `blocks` blocks are scanned, if not all.
    fn sampled(self, cpus: usize, blocks: usize) -> Option<usize> {
        let each = (SAMPLED / cpus.max(1)).max(2);
        (self == Look::Samples && blocks > each).then_some(each)
    }

    /// The shares, each a CPU, its first block and the block after its last.
    fn shares(self, cpus: &[CpuData]) -> Vec<(usize, usize, usize)> {
        let of_cpu = |(i, data): (usize, &CpuData)| -> Vec<(usize, usize, usize)> {
            let n = data.blocks();
            match self.sampled(cpus.len(), n) {
                Some(each) => {
                    // Evenly from 0 to n - 1; in u128, because the file states the number of blocks
                    // and may lie.
                    let at = |k: usize| (k as u128 * (n as u128 - 1) / (each as u128 - 1)) as usize;
                    (0..each).map(|k| (i, at(k), at(k) + 1)).collect()
                }
                // Small enough that the pages of one busy CPU are spread over several threads.
                None => (0..n).step_by(SHARE).map(|b| (i, b, (b + SHARE).min(n))).collect(),
            }
        };
        cpus.iter().enumerate().flat_map(of_cpu).collect()
    }
}

/// Scan all CPUs, each with its own element of `times` and of `buffers`. The result has one
/// [`Found`] per CPU and one [`IdSet`] per buffer.
pub(crate) fn scan<E: Endian>(
    cpus: &[CpuData],
    layout: &PageLayout,
    times: &[TimeMap],
    buffers: &[usize],
    look: Look,
) -> io::Result<(Vec<Found>, Vec<IdSet>)> {
    let sets = buffers.iter().max().map_or(0, |last| last + 1);
    let shares = look.shares(cpus);
    let next = AtomicUsize::new(0);
    let work = || -> io::Result<Work> {
        let mut ids = vec![IdSet::default(); sets];
        let mut found = Vec::new();
        while let Some(&(cpu, from, to)) = shares.get(next.fetch_add(1, Relaxed)) {
            found.push((
                cpu,
                share::<E>(&cpus[cpu], from..to, layout, &times[cpu], &mut ids[buffers[cpu]])?,
            ));
        }
        Ok((found, ids))
    };
    let threads = std::thread::available_parallelism().map_or(1, |n| n.get()).min(shares.len());
    let results: Vec<_> = if threads <= 1 {
        vec![work()]
    } else {
        std::thread::scope(|scope| {
            let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
            let lost = || Err(io::Error::other("a thread of the scan ended early"));
            workers.into_iter().map(|w| w.join().unwrap_or_else(|_| lost())).collect()
        })
    };
    let mut all = vec![Found::default(); cpus.len()];
    let mut ids = vec![IdSet::default(); sets];
    for result in results {
        let (found, seen) = result?;
        ids.iter_mut().zip(&seen).for_each(|(a, b)| a.absorb(b));
        for (cpu, f) in found {
            all[cpu].absorb(&f);
            let sampled = look.sampled(cpus.len(), cpus[cpu].blocks()).is_some();
            all[cpu].blank += (sampled && f.events == 0) as u64;
        }
    }
    Ok((all, ids))
}

fn share<E: Endian>(
    cpu: &CpuData,
    blocks: std::ops::Range<usize>,
    layout: &PageLayout,
    time: &TimeMap,
    ids: &mut IdSet,
) -> io::Result<Found> {
    let mut out = Found::default();
    let mut fetch = Fetch::new(cpu)?;
    // Damage is counted when the events are decoded, not here.
    let mut quality = Quality::default();
    for n in blocks {
        fetch.load(n, &mut quality)?;
        out.bytes += fetch.block().len() as u64;
        for bytes in fetch.block().chunks(cpu.page_size) {
            let Some(page) = Page::parse::<E>(layout, bytes, cpu.page_size) else { continue };
            let mut records = page.records::<E>();
            let mut next = records.next_payload();
            match page.loss {
                Loss::None => {}
                Loss::Count(n) => out.lost = out.lost.saturating_add(n),
                Loss::Unknown => out.lost_unknown += 1,
            }
            if page.loss != Loss::None {
                out.start = out.start.min(time.apply(records.time));
            }
            while let Some(payload) = next {
                let at = time.apply(records.time);
                out.events += 1;
                out.first = out.first.min(at);
                out.last = out.last.max(at);
                ids.insert(E::u16(payload, 0));
                next = records.next_payload();
            }
        }
    }
    out.start = out.start.min(out.first);
    Ok(out)
}
