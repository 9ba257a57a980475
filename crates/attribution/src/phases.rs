//! The phases of a trace: where its composition changes, and which phases are the work.
//!
//! The passes measure what the CPUs did in up to 128 equal bins ([`Analysis::bins`]) and which
//! programs ran. A bin's *composition* is two lists of shares of capacity: what the CPUs did (user,
//! kernel, kernel threads, interrupts, idle by what threads waited for), and which programs ran.
//!
//! 1. **Merge.** Each bin is a piece at first. The two most similar neighbours are merged
//!    repeatedly until all that are left differ by twice the limit of what matters and none is too
//!    short. A cycle (A B A B A) is one piece too: the work alternates.
//! 2. **Name.** The piece with most CPU time of applications shows the programs that do the work.
//!    Pieces at the beginning and the end are start-up and tail if they are short, or if those
//!    programs do not run there and nothing else that lasts does.

use crate::background::is_recorder;
use crate::leaf::Leaf;
use crate::limits::{MATTERS, Thresholds};
use holdup_passes::{Analysis, Bin, Cause, Who};
use holdup_trace::Nanos;

/// The largest number of phases that is easy to read.
const MOST: usize = 16;
/// This many alternating pieces in a row are one phase: A B A B A, twice there and back.
const CYCLE: usize = 5;

/// What a phase is to the work.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Part {
    /// Before the work.
    StartUp,
    /// The work itself.
    Work,
    /// After the work.
    Tail,
}

impl Part {
    /// In one word.
    pub fn word(self) -> &'static str {
        match self {
            Part::StartUp => "start-up",
            Part::Work => "work",
            Part::Tail => "tail",
        }
    }
}

/// A part of the trace with one composition.
#[derive(Clone, Debug, PartialEq)]
pub struct Phase {
    /// Start time.
    pub start: Nanos,
    /// End time; the next phase starts there.
    pub end: Nanos,
    /// Its relation to the work.
    pub part: Part,
    /// Mean number of busy CPUs.
    pub busy_cpus: f64,
    /// The largest use of CPU time, as finely as the timeline tells.
    pub leading: Leaf,
}

impl Phase {
    /// Its duration.
    pub fn wall_ns(&self) -> Nanos {
        self.end - self.start
    }
}

/// What CPUs may do, as the timeline distinguishes it.
const KINDS: [Leaf; 12] = [
    Leaf::UserUndivided,
    Leaf::KernelUndivided,
    Leaf::Kthreads,
    Leaf::Irq,
    Leaf::Softirq,
    Leaf::ThreadSync,
    Leaf::KernelServices,
    Leaf::KernelLocks,
    Leaf::Io,
    Leaf::Scheduler,
    Leaf::NoWork,
    Leaf::Unaccounted,
];

/// CPU time of a bin by [`KINDS`].
fn kinds(bin: &Bin) -> [Nanos; KINDS.len()] {
    let waiting = |cause: Cause| bin.waiting[cause as usize];
    let mut rest = bin.idle_ns;
    let mut take = |ns: Nanos| {
        let ns = ns.min(rest);
        rest -= ns;
        ns
    };
    // In the order of `KINDS`, in which time is assigned: idle time that no wait explains is last.
    [
        bin.user_ns,
        bin.kernel_ns,
        bin.kthread_ns,
        bin.irq_ns,
        bin.softirq_ns,
        take(waiting(Cause::ThreadSync)),
        take(waiting(Cause::KernelService)),
        take(waiting(Cause::KernelLock)),
        take(waiting(Cause::Io)),
        take(bin.scheduler_ns),
        take(Nanos::MAX),
        bin.unaccounted_ns,
    ]
}

/// Bins from the first up to the second, which is excluded.
type Piece = (usize, usize);

/// The piece with this index, if pieces are given by their ends.
fn piece(ends: &[usize], i: usize) -> Piece {
    (if i == 0 { 0 } else { ends[i - 1] }, ends[i])
}

/// Prefix sums over bins, so that the sum of any piece is one subtraction.
struct Sums {
    /// Before each bin: by kind, then by program, in ns.
    before: Vec<Vec<Nanos>>,
    /// Capacity before each bin.
    capacity: Vec<Nanos>,
}

impl Sums {
    fn new(rows: &[Vec<Nanos>], capacity: &[Nanos]) -> Sums {
        let width = rows.first().map_or(0, Vec::len);
        let mut sums = Sums { before: vec![vec![0; width]], capacity: vec![0] };
        for (row, capacity) in rows.iter().zip(capacity) {
            let last = sums.before.len() - 1;
            let next = sums.before[last].iter().zip(row).map(|(a, b)| a + b).collect();
            sums.before.push(next);
            sums.capacity.push(sums.capacity[last] + capacity);
        }
        sums
    }

    fn len(&self) -> usize {
        self.capacity.len() - 1
    }

    /// Time of the bins `from..to` by kind and program.
    fn time(&self, from: usize, to: usize) -> Vec<Nanos> {
        self.before[to].iter().zip(&self.before[from]).map(|(b, a)| b - a).collect()
    }

    fn capacity(&self, from: usize, to: usize) -> Nanos {
        self.capacity[to] - self.capacity[from]
    }

    /// The composition of the bins `from..to`: shares of capacity.
    fn shares(&self, from: usize, to: usize) -> impl Iterator<Item = f64> {
        let whole = self.capacity(from, to).max(1) as f64;
        (0..self.before[0].len())
            .map(move |k| (self.before[to][k] - self.before[from][k]) as f64 / whole)
    }

    /// How much two pieces differ, in per cent of capacity: in what the CPUs do or in which
    /// programs run, whichever differs more.
    fn change(&self, a: Piece, b: Piece) -> f64 {
        let by: Vec<f64> = (self.shares(a.0, a.1).zip(self.shares(b.0, b.1)))
            .map(|(a, b)| (a - b).abs())
            .collect();
        let (what, who) = by.split_at(KINDS.len().min(by.len()));
        // What one kind gains another loses, so half the sum counts. Programs need not add up to
        // the same, as one may run where nothing ran before: then this is half of its time.
        let half = |shares: &[f64]| shares.iter().sum::<f64>() / 2.0;
        half(what).max(half(who)) * 100.0
    }

    /// Merge pieces, given by their ends, until no neighbours are similar.
    fn merge(&self, ends: &mut Vec<usize>, limits: &Thresholds) {
        let blip = self.len() as f64 / MOST as f64;
        let short = |piece: Piece| ((piece.1 - piece.0) as f64) < blip;
        let change = |ends: &[usize], i: usize| self.change(piece(ends, i), piece(ends, i + 1));
        // How much each piece differs from the next; a merge changes only its two neighbours.
        let mut changes: Vec<f64> = (1..ends.len()).map(|i| change(ends, i - 1)).collect();
        loop {
            let alike = (changes.iter().enumerate())
                .filter(|&(i, &change)| {
                    short(piece(ends, i)) || short(piece(ends, i + 1)) || !differ(change, limits)
                })
                .min_by(|a, b| a.1.total_cmp(b.1));
            let Some((i, _)) = alike else { break };
            ends.remove(i);
            changes.remove(i);
            for at in i.saturating_sub(1)..changes.len().min(i + 1) {
                changes[at] = change(ends, at);
            }
        }
        self.merge_cycles(ends, limits);
    }

    /// Merge cycles: A B A B A is one piece.
    fn merge_cycles(&self, ends: &mut Vec<usize>, limits: &Thresholds) {
        let mut first = 0;
        while first + CYCLE <= ends.len() {
            let recurs = |i: usize| {
                let change = self.change(piece(ends, i), piece(ends, i - 2));
                !differ(change, limits)
            };
            let last = (first + 2..ends.len()).take_while(|&i| recurs(i)).last().unwrap_or(first);
            if last > first && last + 1 - first >= CYCLE {
                ends.drain(first..last);
            }
            first += 1;
        }
    }
}

/// Whether this difference, in per cent of capacity, separates pieces: twice what matters.
fn differ(change_pct: f64, limits: &Thresholds) -> bool {
    change_pct >= 2.0 * limits.get(&MATTERS)
}

/// The phases of the analysed time, in order; one if nothing changes, none without time.
pub fn phases(analysis: &Analysis, limits: &Thresholds) -> Vec<Phase> {
    of(analysis, limits).0
}

/// The phases where only switches were analysed, which do not show what threads wait for. `None` if
/// that decides: nearly idle time at an end of the trace, too long to be left out unchecked.
pub fn phases_by_switches(analysis: &Analysis, limits: &Thresholds) -> Option<Vec<Phase>> {
    let (phases, waits_decide) = of(analysis, limits);
    (!waits_decide).then_some(phases)
}

/// The phases, and whether one was left out because no thread waits in it.
fn of(analysis: &Analysis, limits: &Thresholds) -> (Vec<Phase>, bool) {
    let bins = analysis.bins();
    let cpus = analysis.cpus as u64;
    let capacity: Vec<Nanos> = bins.iter().map(|b| (b.end - b.start) * cpus).collect();
    if capacity.iter().all(|&ns| ns == 0) {
        return (Vec::new(), false);
    }
    let programs = programs(analysis);
    let rows: Vec<Vec<Nanos>> = (bins.iter().enumerate())
        .map(|(i, bin)| kinds(bin).into_iter().chain(programs.iter().map(|p| p.ns[i])).collect())
        .collect();
    let sums = Sums::new(&rows, &capacity);
    let mut ends: Vec<usize> = (1..=sums.len()).collect();
    sums.merge(&mut ends, limits);
    let pieces: Vec<Piece> = (0..ends.len()).map(|i| piece(&ends, i)).collect();
    let recorder: Vec<bool> = programs.iter().map(|p| p.recorder).collect();
    let judge = Work { sums: &sums, pieces: &pieces, recorder: &recorder, limits };
    let work = judge.find();
    let mut left_out = (0..pieces.len()).filter(|i| !work.contains(i));
    let waits_decide = left_out.any(|i| judge.is_long(i));
    let phases = pieces
        .iter()
        .enumerate()
        .map(|(i, &(from, to))| {
            let end = bins[to - 1].end;
            let (start, time) = (bins[from].start, sums.time(from, to));
            let busy: Nanos = KINDS
                .iter()
                .zip(&time)
                .filter(|(leaf, _)| leaf.is_in(crate::Total::Busy))
                .map(|(_, ns)| ns)
                .sum();
            let leading = (KINDS.iter().zip(&time))
                .max_by_key(|&(leaf, ns)| (ns, std::cmp::Reverse(leaf)))
                .map_or(Leaf::NoWork, |(&leaf, _)| leaf);
            let leading = match leading {
                Leaf::UserUndivided => crate::ledger::application(analysis),
                leaf => leaf,
            };
            Phase {
                start,
                end,
                part: match i {
                    i if i < work.start => Part::StartUp,
                    i if i < work.end => Part::Work,
                    _ => Part::Tail,
                },
                busy_cpus: (busy as f64 * 1000.0 / (end - start).max(1) as f64).round() / 1000.0,
                leading,
            }
        })
        .collect();
    (phases, waits_decide)
}

/// Whether start-up and tail take so much of the trace that the work alone is to be judged.
pub fn edges_matter(phases: &[Phase], limits: &Thresholds) -> bool {
    let all: Nanos = phases.iter().map(Phase::wall_ns).sum();
    let edges: Nanos = phases.iter().filter(|p| p.part != Part::Work).map(Phase::wall_ns).sum();
    edges as f64 * 100.0 > all as f64 * limits.get(&MATTERS)
}

/// A program and its CPU time by bin.
struct Runs {
    /// It is a recorder.
    recorder: bool,
    ns: Vec<Nanos>,
}

/// The programs that matter, those with the largest share of any bin first.
fn programs(analysis: &Analysis) -> Vec<Runs> {
    let mut all: Vec<Runs> = (analysis.programs().into_iter())
        // Kernel threads are among the kinds already.
        .filter_map(|p| match p.who {
            Who::Kernel | Who::Others => None,
            Who::Named(name) => Some(Runs { recorder: is_recorder(&name), ns: p.ns }),
        })
        .collect();
    all.sort_by_key(|p| std::cmp::Reverse(p.ns.iter().sum::<Nanos>()));
    all.truncate(FOLLOWED);
    all
}

/// The number of programs that are distinguished: more do not run concurrently for long.
const FOLLOWED: usize = 24;

/// Which pieces are the work.
struct Work<'a> {
    sums: &'a Sums,
    pieces: &'a [Piece],
    recorder: &'a [bool],
    limits: &'a Thresholds,
}

impl Work<'_> {
    /// CPU time of the programs with these numbers, in a piece.
    fn time(&self, piece: usize, programs: &[usize]) -> Nanos {
        let (from, to) = self.pieces[piece];
        let time = self.sums.time(from, to);
        programs.iter().map(|&p| time[KINDS.len() + p]).sum()
    }

    fn find(&self) -> std::ops::Range<usize> {
        let applications: Vec<usize> =
            (0..self.recorder.len()).filter(|&p| !self.recorder[p]).collect();
        let main = (0..self.pieces.len())
            .max_by_key(|&i| (self.time(i, &applications), std::cmp::Reverse(i)))
            .unwrap_or(0);
        let all = self.time(main, &applications);
        // The programs that do the work: those with a tenth of it.
        let workers: Vec<usize> = (applications.iter().copied())
            .filter(|&p| {
                self.time(main, &[p]) as f64 * 100.0 >= all as f64 * self.limits.get(&MATTERS)
            })
            .collect();
        let little = self.time(main, &workers) as f64 * self.limits.get(&MATTERS) / 100.0;
        let edge = |pieces: &mut dyn Iterator<Item = usize>| {
            let (mut bins, mut work) = (0, 0);
            pieces
                .take_while(|&i| {
                    bins += self.pieces[i].1 - self.pieces[i].0;
                    work += self.time(i, &workers);
                    self.part_pct(bins) <= self.limits.get(&MATTERS)
                        || work as f64 <= little && self.is_idle(i)
                })
                .count()
        };
        let before = edge(&mut (0..main));
        let after = edge(&mut (main + 1..self.pieces.len()).rev());
        before..self.pieces.len() - after
    }

    /// The share of the trace that this many bins take, in per cent.
    fn part_pct(&self, bins: usize) -> f64 {
        bins as f64 * 100.0 / self.sums.len().max(1) as f64
    }

    /// A piece in which the working programs do not run is not work either, unless it is long and
    /// other programs are busy or threads wait in it.
    fn is_idle(&self, piece: usize) -> bool {
        let (from, to) = self.pieces[piece];
        let shares: Vec<f64> = self.sums.shares(from, to).take(KINDS.len()).collect();
        let share = |wanted: &dyn Fn(Leaf) -> bool| -> f64 {
            let shares = KINDS.iter().zip(&shares).filter(|(leaf, _)| wanted(**leaf));
            shares.map(|(_, share)| share * 100.0).sum()
        };
        let quiet = self.limits.get(&MATTERS);
        let busy = share(&|leaf| leaf.is_in(crate::Total::Busy));
        let waiting = share(&|leaf| {
            leaf.is_in(crate::Total::Idle) && !matches!(leaf, Leaf::NoWork | Leaf::Scheduler)
        });
        !self.is_long(piece) || waiting <= quiet && busy <= quiet
    }

    fn is_long(&self, piece: usize) -> bool {
        let (from, to) = self.pieces[piece];
        self.part_pct(to - from) > 2.0 * self.limits.get(&MATTERS)
    }
}
