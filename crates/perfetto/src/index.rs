//! Finds the bundles, the times of their events, and the runs to which they belong.
//!
//! Opening a trace scans every bundle once, on all cores: its CPU, its first and last time, the
//! kinds of its events. The bundles of a CPU follow each other in time, with exceptions: two ftrace
//! instances are recorded at the same time, and a damaged time can be anything. So a CPU has as
//! many runs as are needed to keep each in order.

use crate::bundle::{Compact, Head, Lane, Raw};
use crate::schema::{clock, event};
use crate::source::{Place, Source};
use crate::table::Seen;
use holdup_trace::{Cpu, Nanos, Quality, QualityCode, progress};
use std::ops::Range;

/// CPU numbers from here on are damage: no kernel can be built for more (`CONFIG_NR_CPUS`).
const MOST_CPUS: u64 = 8192;
/// Most runs of one CPU: runs that overlap take memory while they are read. A bundle that fits into
/// no run is read as if it began where the last one ended.
const MOST_RUNS: usize = 16;

/// A bundle found while walking the packets.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Found {
    pub(crate) place: Place,
    /// Index of the symbol table for its numbers.
    pub(crate) symbols: u32,
    /// The recorder dropped packets before this one.
    pub(crate) dropped: bool,
}

/// A bundle with events.
#[derive(Clone, Debug)]
pub(crate) struct Bundle {
    pub(crate) place: Place,
    pub(crate) cpu: Cpu,
    pub(crate) symbols: u32,
    /// Range of its `compact_sched`.
    pub(crate) compact: Option<Range<usize>>,
    /// Events were lost before its first event: on this CPU, or on any if packets were dropped.
    pub(crate) lost: Option<Cpu>,
    /// Time of its first event, and of its last.
    pub(crate) first: Nanos,
    last: Nanos,
    clock: u64,
    /// Offset from the clock of the events to the clock of the trace, ns.
    shift: i64,
}

impl Bundle {
    /// A time of the bundle by the clock of the trace.
    #[inline(always)]
    pub(crate) fn time(&self, ts: u64) -> Nanos {
        ts.saturating_add_signed(self.shift)
    }
}

/// Bundles of one CPU in time order: one run.
pub(crate) struct Lined {
    pub(crate) bundles: Vec<Bundle>,
}

/// The result of indexing the bundles.
pub(crate) struct Index {
    pub(crate) runs: Vec<Lined>,
    pub(crate) seen: Seen,
    pub(crate) quality: Quality,
    /// The clock of the events.
    pub(crate) clock: Clocks,
}

/// The clocks used for the times of events (`FtraceClock`).
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Clocks {
    /// The first clock found that is not the boot clock.
    pub(crate) other: Option<u64>,
    /// Whether its times were shifted to those of the boot clock.
    pub(crate) shifted: bool,
}

impl Clocks {
    /// The name of the clock.
    pub(crate) fn name(self) -> &'static str {
        match self.other {
            None => "boot",
            Some(clock::GLOBAL) => "global",
            Some(clock::LOCAL) => "local",
            Some(clock::MONO_RAW) => "mono_raw",
            Some(_) => "unknown",
        }
    }
}

/// The result of one thread for its share of the bundles.
struct Share {
    bundles: Vec<Bundle>,
    seen: Seen,
    quality: Quality,
    /// Clock and shift of each bundle with a pair of times.
    pairs: Vec<(u64, i64)>,
}

impl Share {
    fn new() -> Share {
        Share { bundles: vec![], seen: Seen::new(), quality: Quality::default(), pairs: vec![] }
    }
}

/// Scan all bundles. `raw_to_boot` is the offset of `CLOCK_MONOTONIC_RAW` from snapshots, ns.
pub(crate) fn index(
    source: &Source,
    found: &[Found],
    raw_to_boot: Option<i64>,
) -> Result<Index, std::io::Error> {
    progress::indexing(found.iter().map(|f| f.place.len() as u64).sum());
    let threads = std::thread::available_parallelism().map_or(1, |n| n.get()).min(8);
    let each = found.len().div_ceil(threads).max(64);
    let shares: Vec<Option<Share>> = std::thread::scope(|scope| {
        let look = |part| scope.spawn(move || look_through(source, part));
        let threads: Vec<_> = found.chunks(each).map(look).collect();
        threads.into_iter().map(|t| t.join().ok()).collect()
    });
    let mut all = Share::new();
    for share in shares {
        let share =
            share.ok_or_else(|| std::io::Error::other("a thread of the reader ended early"))?;
        all.bundles.extend(share.bundles);
        all.seen.absorb(share.seen);
        all.quality.absorb(&share.quality);
        all.pairs.extend(share.pairs);
    }
    let clock = set_clocks(&mut all.bundles, &all.pairs, raw_to_boot);
    Ok(Index { runs: line_up(all.bundles), seen: all.seen, quality: all.quality, clock })
}

/// Convert all times to the boot clock, each clock by its first known pair of times. This preserves
/// the distances between one clock's times, however much it drifts.
fn set_clocks(bundles: &mut [Bundle], pairs: &[(u64, i64)], raw_to_boot: Option<i64>) -> Clocks {
    let mut clocks = Clocks::default();
    for bundle in bundles.iter_mut().filter(|b| b.clock != 0) {
        let pair = pairs.iter().find(|(clock, _)| *clock == bundle.clock).map(|p| p.1);
        let raw = raw_to_boot.filter(|_| bundle.clock == clock::MONO_RAW);
        clocks.other.get_or_insert(bundle.clock);
        if let Some(shift) = pair.or(raw) {
            bundle.shift = shift;
            bundle.first = bundle.time(bundle.first);
            bundle.last = bundle.time(bundle.last);
            clocks.shifted = true;
        }
    }
    clocks
}

fn look_through(source: &Source, found: &[Found]) -> Share {
    let mut share = Share::new();
    // A loss from bundles that report one but have no events.
    let mut lost: Option<Cpu> = None;
    for f in found {
        let message = source.get(f.place);
        progress::advance(message.len() as u64);
        let mut times = Times::default();
        let (seen, quality) = (&mut share.seen, &mut share.quality);
        let mut descriptors = Ok(());
        let head = Head::read(
            message,
            |event| {
                if let Ok(raw) = Raw::read(event) {
                    times.note(raw.ts);
                    seen.event(&raw);
                }
            },
            |_| {},
        );
        // A second walk, for the few bundles that have any.
        if head.has_descriptors {
            Head::read(message, |_| {}, |d| descriptors = seen.descriptor(d));
        }
        if descriptors.is_err() {
            quality.add(QualityCode::BadRecords, 1);
        }
        quality.add(QualityCode::BadRecords, head.errors);
        let Some(cpu) = head.cpu.filter(|&cpu| cpu < MOST_CPUS) else {
            quality.add(QualityCode::BadRecords, 1);
            continue;
        };
        let cpu = Cpu(cpu as u16);
        let compact = head.compact.map(|lists| {
            if let Ok(lists) = Compact::read(lists, |_| {}) {
                seen.count(event::SCHED_SWITCH, times.list(lists.switches));
                seen.count(event::SCHED_WAKING, times.list(lists.wakings));
            }
            let start = lists.as_ptr() as usize - message.as_ptr() as usize;
            start..start + lists.len()
        });
        if head.clock != 0
            && let (Some(from), Some(to)) = head.clocks
            && !share.pairs.iter().any(|p| p.0 == head.clock)
        {
            share.pairs.push((head.clock, to.wrapping_sub(from) as i64));
        }
        let here = if f.dropped { Some(Cpu::UNKNOWN) } else { head.lost_events.then_some(cpu) };
        let gone = here.or(lost.take());
        let Some((first, last)) = times.span else {
            // Without an event the loss has no time; it is carried on to the next bundle.
            lost = gone;
            continue;
        };
        share.bundles.push(Bundle {
            place: f.place,
            cpu,
            symbols: f.symbols,
            compact,
            lost: gone,
            first,
            last,
            clock: head.clock,
            shift: 0,
        });
    }
    share.quality.add(QualityCode::LostChunks, lost.is_some() as u64);
    share
}

/// Earliest and latest time.
#[derive(Default)]
struct Times {
    span: Option<(u64, u64)>,
}

impl Times {
    #[inline(always)]
    fn note(&mut self, ts: u64) {
        let (first, last) = self.span.unwrap_or((ts, ts));
        self.span = Some((first.min(ts), last.max(ts)));
    }

    /// Include all times of a list; returns how many there were.
    fn list(&mut self, mut lane: Lane<'_>) -> u64 {
        let mut n = 0;
        while let Ok(Some((ts, _))) = lane.next() {
            self.note(ts);
            n += 1;
        }
        n
    }
}

/// Assign every bundle to a run, CPUs ascending.
fn line_up(bundles: Vec<Bundle>) -> Vec<Lined> {
    let cpus = bundles.iter().map(|b| b.cpu.0 as usize + 1).max().unwrap_or(0);
    let mut runs: Vec<Vec<Lined>> = Vec::new();
    runs.resize_with(cpus, Vec::new);
    for bundle in bundles {
        let of_cpu = &mut runs[bundle.cpu.0 as usize];
        let end = |run: &Lined| run.bundles.last().map_or(0, |b| b.last);
        let latest = |runs: &[Lined], fits: &dyn Fn(&Lined) -> bool| -> Option<usize> {
            (0..runs.len()).filter(|&i| fits(&runs[i])).max_by_key(|&i| end(&runs[i]))
        };
        let place = latest(of_cpu, &|run| end(run) <= bundle.first);
        match place {
            Some(i) => of_cpu[i].bundles.push(bundle),
            None if of_cpu.len() < MOST_RUNS => {
                of_cpu.push(Lined { bundles: vec![bundle] });
            }
            // The bundle is least out of order in the run that ends first.
            None => {
                let first = (0..of_cpu.len()).min_by_key(|&i| end(&of_cpu[i])).unwrap_or(0);
                let mut bundle = bundle;
                bundle.last = bundle.last.max(end(&of_cpu[first]));
                of_cpu[first].bundles.push(bundle);
            }
        }
    }
    runs.into_iter().flatten().collect()
}

impl Lined {
    /// Earliest and latest time.
    pub(crate) fn span(&self) -> (Nanos, Nanos) {
        let first = self.bundles.first().map_or(0, |b| b.first);
        (first, self.bundles.last().map_or(first, |b| b.last).max(first))
    }
}
