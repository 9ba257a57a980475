//! Threads that contend for a lock without waking each other.
//!
//! A thread that waits for the lock of an interpreter (Python's GIL) sleeps for a few milliseconds.
//! Then it asks the holder to give the lock up, and finds it free before it sleeps again. So no
//! thread ends its sleeps; they look like those of a thread that naps for a time. But of threads
//! that nap independently several are awake at once as often as chance has it. Of threads that take
//! turns one is.
//!
//! ```text
//!  A  ▓▓▓▓▓▓░.....░.....░▓▓▓▓▓▓    ▓ awake, with the lock
//!  B  .....░▓▓▓▓▓▓░.....░.....░    ░ asks for it
//!  C  ░.....░.....░▓▓▓▓▓▓░.....    . asleep at the futex until its time is up
//! ```
//!
//! The threads sleep at one futex, or each at one of its own (Ruby, where only the next in line
//! times out). Then they are all threads of the process that sleep at futexes, and one of them must
//! be awake at nearly all times: a wait for a lock lasts as long as somebody has it.

use crate::limits::{ENOUGH, MATTERS, MISSING_ENDS};
use crate::overlap::Overlap;
use crate::slot::Slot;
use holdup_trace::{Cpu, Nanos};

/// So many times awake are kept, to be counted in order of time: one that began early may end after
/// others that began late.
const KEPT: usize = 256;

/// When the threads are awake that time out at a futex.
#[derive(Clone, Debug, Default)]
pub(crate) struct Turns {
    /// The latest, not counted yet.
    awake: Vec<(Nanos, Nanos, Slot)>,
    counted: Overlap,
    /// How many there are, and at how many it is looked again whether they exclude each other.
    pieces: usize,
    next: usize,
    /// Where a thread ran first, and whether any ran elsewhere. On one CPU threads take turns
    /// anyway.
    cpu: Option<Cpu>,
    moved: bool,
    /// Whether one thread at a time was awake, and whether one was at nearly all times.
    pub(super) found: bool,
    pub(super) always: bool,
    /// Whether most times awake are much shorter than the mean: a try at the lock, in vain.
    pub(super) mostly_tries: bool,
    /// Those that were for a part that matters of what each was on average.
    pub(super) takers: Vec<Slot>,
}

impl Turns {
    /// A thread that woke at `since` goes to sleep.
    pub(super) fn add(&mut self, slot: Slot, since: Progress, at: Progress) {
        self.moved |= *self.cpu.get_or_insert(at.cpu) != at.cpu;
        // Without the time in which it queued for a CPU: one that only asks for the lock may queue
        // behind the holder for much longer than it runs.
        let ran = at.ran.saturating_sub(since.ran).min(at.now.saturating_sub(since.now));
        self.awake.push((at.now - ran, at.now, slot));
        self.pieces += 1;
        let enough = ENOUGH.default as usize;
        if self.pieces < self.next.max(enough) {
            return;
        }
        self.next = self.pieces + (self.pieces / 2).clamp(enough, KEPT);
        self.awake.sort_unstable();
        let mut lengths: Vec<Nanos> = self.awake.iter().map(|of| of.1 - of.0).collect();
        lengths.sort_unstable();
        let mean = lengths.iter().sum::<Nanos>() as f64 / lengths.len() as f64;
        let is_try = |ns: Nanos| ns as f64 * 100.0 <= mean * MATTERS.default;
        self.mostly_tries = is_try(lengths[lengths.len() / 2]);
        // Whoever tries for the lock is awake while another has it.
        let mut all = self.counted.clone();
        let early = self.awake.len().saturating_sub(KEPT);
        for (i, &(from, to, slot)) in self.awake.iter().enumerate() {
            if is_try(to - from) {
                continue;
            }
            all.add(slot, from, to);
            if i < early {
                self.counted.add(slot, from, to);
            }
        }
        self.awake.drain(..early);
        self.found = self.moved && all.is_below(MATTERS.default, MISSING_ENDS.default);
        self.always = all.any_pct() >= 100.0 - MATTERS.default;
        self.takers = all.who_matters(MATTERS.default);
    }
}

/// What is known of a thread when it wakes and when it goes to sleep.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Progress {
    pub(crate) now: Nanos,
    /// How long it has run until now, and where it ran last.
    pub(crate) ran: Nanos,
    pub(crate) cpu: Cpu,
}
