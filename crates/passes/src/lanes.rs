//! Lanes: what chosen CPUs and threads did, moment by moment, for a picture.
//!
//! A picture has a fixed number of pixels, whatever the length of the trace. A [`Lane`] keeps at
//! most one piece per pixel, and every single interval within one window of time:
//!
//! ```text
//!  what the thread did   ▐run▌▐──wait──▌▐r▌▐w▌▐r▌▐w▌▐r▌▐────────wait────────▌
//!  pixels                ┊    ┊    ┊    ┊    ┊    ┊    ┊    ┊    ┊    ┊    ┊
//!  pieces                │run │wait     │run 60 % of it │wait               │
//! ```
//!
//! An interval that fills whole pixels is one piece, however many they are. For a pixel in which
//! several things happened, the piece has what took most of the time, and how much of it.
//!
//! Which CPUs and threads are worth a lane is known only after the trace was read once, so lanes
//! are drawn in a second reading ([`crate::follow`]). Memory grows with lanes and pixels.

use crate::cause::Cause;
use crate::slot::Slot;
use crate::state::State;
use crate::waits::Object;
use holdup_trace::{Cpu, Nanos};

/// Makes [`Doing`] from one list: its id in JSON, and it in words.
macro_rules! doings {
    ($($(#[doc = $doc:literal])+ $name:ident = $id:literal, $title:literal;)+) => {
        /// What a lane shows a CPU or a thread doing.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub enum Doing { $($(#[doc = $doc])+ $name),+ }

        impl Doing {
            /// All of them, in the order of their numbers.
            pub const ALL: &'static [Doing] = &[$(Doing::$name),+];

            /// Stable id.
            pub fn id(self) -> &'static str {
                match self { $(Doing::$name => $id),+ }
            }

            /// In words.
            pub fn title(self) -> &'static str {
                match self { $(Doing::$name => $title),+ }
            }
        }
    };
}

doings! {
    /// Nothing is known, or the thread did not exist.
    Unknown = "unknown", "unknown, or does not exist";
    /// On a CPU; for a CPU: running an application's thread.
    Running = "running", "running";
    /// For a CPU: running a thread of the kernel.
    Kernel = "kernel-thread", "running a kernel thread";
    /// For a CPU: running no thread.
    Idle = "idle", "idle";
    /// Ready, but not on a CPU.
    Ready = "ready", "ready, waiting for a CPU";
    /// Asleep: [`Cause::ThreadSync`].
    ThreadSync = "thread-sync", "waiting for a futex";
    /// Asleep: [`Cause::KernelService`].
    KernelService = "kernel-service",
        "waiting for a semaphore, message queue, file lock, pipe or socket";
    /// Asleep: [`Cause::KernelLock`].
    KernelLock = "kernel-lock", "waiting for a lock of the kernel";
    /// Asleep: [`Cause::Io`].
    Io = "io", "waiting for a disk";
    /// Asleep: [`Cause::External`].
    Outside = "outside", "waiting for input, a timer or work";
    /// Asleep for a reason that the trace does not show.
    Asleep = "asleep", "asleep for an unknown reason";
}

/// Number of activities.
const DOINGS: usize = Doing::ALL.len();

impl From<Cause> for Doing {
    fn from(cause: Cause) -> Doing {
        match cause {
            Cause::ThreadSync => Doing::ThreadSync,
            Cause::KernelService => Doing::KernelService,
            Cause::KernelLock => Doing::KernelLock,
            Cause::Io => Doing::Io,
            Cause::External => Doing::Outside,
            Cause::Unknown => Doing::Asleep,
        }
    }
}

/// Which CPUs and threads to follow, and over which time.
#[derive(Clone, Debug, Default)]
pub struct Follow {
    /// CPUs with a lane.
    pub cpus: Vec<Cpu>,
    /// Threads with a lane, ascending.
    pub threads: Vec<Slot>,
    /// Whether a thread is a kernel thread, by slot.
    pub kernel: Vec<bool>,
    /// First and last time of the picture.
    pub span: (Nanos, Nanos),
    /// Part of the span in which every interval is kept.
    pub window: (Nanos, Nanos),
}

impl Follow {
    /// A lane for this thread, if it is followed.
    pub(crate) fn of_thread(&self, slot: Slot) -> Option<Box<Lane>> {
        self.threads.binary_search(&slot).is_ok().then(|| Box::new(Lane::new(self)))
    }

    /// What a CPU does while this thread is on it.
    pub(crate) fn on_cpu(&self, slot: Slot) -> Doing {
        match slot {
            Slot::IDLE => Doing::Idle,
            _ if self.kernel.get(slot.0 as usize) == Some(&true) => Doing::Kernel,
            _ => Doing::Running,
        }
    }
}

/// What a sleep turned out to be for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct SleptFor {
    pub(crate) cause: Cause,
    pub(crate) object: Object,
    pub(crate) waker: Option<Slot>,
}

/// One activity, over whole pixels.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Piece {
    /// How many pixels.
    pub pixels: u32,
    /// What took most of their time.
    pub what: Doing,
    /// How much of it, in per cent.
    pub pct: u8,
}

/// One activity, from one time to another, within the window.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Span {
    /// Its first moment.
    pub from: Nanos,
    /// Its end.
    pub to: Nanos,
    /// The activity.
    pub what: Doing,
    /// For a CPU: the thread on it. For a sleeping thread: the thread that ended the sleep.
    /// `Slot::IDLE` for none.
    pub who: Slot,
    /// For a sleeping thread: what it slept for.
    pub object: Option<Object>,
}

/// What one CPU or thread did.
#[derive(Clone, Debug)]
pub struct Lane {
    start: Nanos,
    end: Nanos,
    window: (Nanos, Nanos),
    /// Time per pixel.
    width: Nanos,
    pieces: Vec<Piece>,
    /// The pixel being filled, and the time of each activity in it.
    pixel: u32,
    filling: [Nanos; DOINGS],
    /// Drawn up to this time.
    at: Nanos,
    /// What the sleep that ends now was for.
    pub(crate) slept: Option<SleptFor>,
    /// The reason of the last sleep may still come; and the sleep, once it is over.
    awaits_reason: bool,
    asleep: Option<(Nanos, Nanos)>,
    spans: Vec<Span>,
    full: Option<Nanos>,
    /// Total time of each activity.
    sums: [Nanos; DOINGS],
}

impl Lane {
    /// Pixels of a picture.
    pub const PIXELS: u64 = 2000;
    /// Maximal number of intervals kept per lane in the window.
    const SPANS: usize = 30_000;

    fn new(follow: &Follow) -> Lane {
        let (start, end) = follow.span;
        Lane {
            start,
            end,
            window: follow.window,
            width: end.saturating_sub(start).div_ceil(Lane::PIXELS).max(1),
            pieces: Vec::new(),
            pixel: 0,
            filling: [0; DOINGS],
            at: start,
            slept: None,
            awaits_reason: false,
            asleep: None,
            spans: Vec::new(),
            full: None,
            sums: [0; DOINGS],
        }
    }

    /// A lane for a CPU.
    pub(crate) fn of_cpu(follow: &Follow) -> Box<Lane> {
        Box::new(Lane::new(follow))
    }

    /// What the sleep that ends now was for may still come.
    pub(crate) fn awaits_reason(&mut self) {
        self.awaits_reason = true;
    }

    /// What the sleep was for that ends now or ended last.
    pub(crate) fn learn(&mut self, slept: SleptFor) {
        self.slept = Some(slept);
        self.awaits_reason = false;
        if let Some((from, to)) = self.asleep.take() {
            self.was(State::Blocked, from, to);
        }
    }

    /// A thread was in `state` for this span.
    pub(crate) fn was(&mut self, state: State, from: Nanos, to: Nanos) {
        if self.awaits_reason && state == State::Blocked {
            self.asleep = Some((from, to));
            return;
        }
        let what = match state {
            State::Running(_) => Doing::Running,
            State::Woken(_) | State::Preempted(_) => Doing::Ready,
            State::Blocked | State::Waking => self.slept.map_or(Doing::Asleep, |s| s.cause.into()),
            State::Unseen | State::New | State::Lost | State::Dead => return,
        };
        let slept = self.slept.filter(|_| what != Doing::Running && what != Doing::Ready);
        let who = slept.and_then(|s| s.waker).unwrap_or(Slot::IDLE);
        self.add(Span { from, to, what, who, object: slept.map(|s| s.object) });
    }

    /// A CPU did `what` up to `to`, with or for the thread `who`.
    pub(crate) fn until(&mut self, to: Nanos, what: Doing, who: Slot) {
        self.add(Span { from: self.at, to, what, who, object: None });
    }

    fn add(&mut self, span: Span) {
        let Span { from, to, what, .. } = span;
        self.sums[what as usize] += to.saturating_sub(from);
        let (from, to) = (from.max(self.at), to.min(self.end));
        if from >= to {
            return;
        }
        self.keep(Span { from, to, ..span });
        let mut at = from;
        while at < to {
            let pixel = self.pixel_of(at);
            self.go_to(pixel);
            let whole = self.pixel_of(to) - pixel;
            if at == self.begin(pixel) && whole > 0 {
                self.push(Piece { pixels: whole, what, pct: 100 });
                self.pixel += whole;
                at = self.begin(self.pixel);
            } else {
                let until = to.min(self.begin(pixel + 1));
                self.filling[what as usize] += until - at;
                at = until;
            }
        }
        self.at = to;
    }

    fn keep(&mut self, span: Span) {
        let (from, to) = (span.from.max(self.window.0), span.to.min(self.window.1));
        if from >= to || self.full.is_some() {
            return;
        }
        let goes_on = |last: &&mut Span| {
            last.to == from
                && (last.what, last.who, last.object) == (span.what, span.who, span.object)
        };
        if let Some(last) = self.spans.last_mut().filter(goes_on) {
            last.to = to;
        } else if self.spans.len() < Lane::SPANS {
            self.spans.push(Span { from, to, ..span });
        } else {
            self.full = Some(from);
        }
    }

    fn pixel_of(&self, at: Nanos) -> u32 {
        ((at - self.start) / self.width) as u32
    }

    fn begin(&self, pixel: u32) -> Nanos {
        self.start + u64::from(pixel) * self.width
    }

    /// Closes the pixel being filled if `pixel` is another, and leaves those in between empty.
    fn go_to(&mut self, pixel: u32) {
        if pixel == self.pixel {
            return;
        }
        self.close_pixel();
        if pixel > self.pixel {
            self.push(Piece { pixels: pixel - self.pixel, what: Doing::Unknown, pct: 100 });
            self.pixel = pixel;
        }
    }

    fn close_pixel(&mut self) {
        let filling = std::mem::take(&mut self.filling);
        let most = Doing::ALL.iter().max_by_key(|&&d| filling[d as usize]);
        if let Some((&what, ns)) = most.map(|d| (d, filling[*d as usize])).filter(|m| m.1 > 0) {
            // The last pixel may reach beyond the end.
            let width = self.begin(self.pixel + 1).min(self.end) - self.begin(self.pixel);
            let pct = (ns * 100 / width.max(1)).clamp(1, 100) as u8;
            self.push(Piece { pixels: 1, what, pct });
            self.pixel += 1;
        }
    }

    fn push(&mut self, piece: Piece) {
        match self.pieces.last_mut() {
            Some(last) if (last.what, last.pct) == (piece.what, piece.pct) => {
                last.pixels += piece.pixels;
            }
            _ => self.pieces.push(piece),
        }
    }

    /// The trace is over.
    pub(crate) fn finish(&mut self) {
        self.close_pixel();
    }

    /// The part analysed begins now: what came before counts in no sum.
    pub(crate) fn restart(&mut self, now: Nanos) {
        let start = self.start.max(now);
        *self = Lane {
            pieces: Vec::new(),
            pixel: 0,
            filling: [0; DOINGS],
            at: start,
            spans: Vec::new(),
            full: None,
            sums: [0; DOINGS],
            ..self.clone()
        };
    }

    /// Time per pixel.
    pub fn pixel_ns(&self) -> Nanos {
        self.width
    }

    /// All pieces from the start, without gaps.
    pub fn pieces(&self) -> &[Piece] {
        &self.pieces
    }

    /// Every interval of the window, in order.
    pub fn spans(&self) -> &[Span] {
        &self.spans
    }

    /// When the window began to have more intervals than are kept.
    pub fn full(&self) -> Option<Nanos> {
        self.full
    }

    /// Total time of one activity: what the tables say about it.
    pub fn sum(&self, what: Doing) -> Nanos {
        self.sums[what as usize]
    }
}

/// Length of the busiest part of a trace that is shown with every interval.
pub const CLOSE_UP: Nanos = 200_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    fn lane(end: Nanos, window: (Nanos, Nanos)) -> Lane {
        Lane::new(&Follow { span: (1000, end), window, ..Follow::default() })
    }

    fn pieces(lane: &Lane) -> Vec<(u32, Doing, u8)> {
        lane.pieces.iter().map(|p| (p.pixels, p.what, p.pct)).collect()
    }

    #[test]
    fn whole_pixels_stay_whole_and_parts_of_one_are_merged() {
        // 2000 pixels of 100 ns.
        let mut lane = lane(201_000, (0, 0));
        assert_eq!(lane.width, 100);
        let running = State::Running(Cpu(0));
        lane.was(running, 1000, 1300);
        lane.was(State::Woken(Cpu(0)), 1300, 1310);
        lane.was(running, 1310, 1370);
        lane.was(State::Woken(Cpu(0)), 1370, 1500);
        // Nothing is known about two and a half pixels.
        lane.was(running, 1750, 1900);
        lane.finish();
        assert_eq!(
            pieces(&lane),
            [
                (3, Doing::Running, 100),
                (1, Doing::Running, 60),
                (1, Doing::Ready, 100),
                (2, Doing::Unknown, 100),
                (1, Doing::Running, 50),
                (1, Doing::Running, 100),
            ]
        );
        assert_eq!((lane.sum(Doing::Running), lane.sum(Doing::Ready)), (510, 140));
    }

    #[test]
    fn there_are_never_more_pieces_than_pixels() {
        let mut lane = lane(1000 + 50_000_000, (0, 0));
        let mut at = 1000;
        while at < 50_001_000 {
            lane.was(State::Running(Cpu(0)), at, at + 700);
            lane.was(State::Preempted(Cpu(0)), at + 700, at + 1100);
            at += 1100;
        }
        lane.finish();
        assert!(lane.pieces.len() as u64 <= Lane::PIXELS, "{}", lane.pieces.len());
        let pixels: u32 = lane.pieces.iter().map(|p| p.pixels).sum();
        assert_eq!(u64::from(pixels), Lane::PIXELS);
    }

    #[test]
    fn the_window_has_every_interval_cut_at_its_borders() {
        let mut lane = lane(1_001_000, (2000, 3000));
        lane.was(State::Running(Cpu(0)), 1000, 2100);
        lane.slept =
            Some(SleptFor { cause: Cause::Io, object: Object::OTHER, waker: Some(Slot(7)) });
        lane.was(State::Blocked, 2100, 2101);
        lane.slept = None;
        lane.was(State::Running(Cpu(0)), 2101, 5000);
        let spans: Vec<_> = lane.spans.iter().map(|s| (s.from, s.to, s.what, s.who.0)).collect();
        assert_eq!(
            spans,
            [
                (2000, 2100, Doing::Running, 0),
                (2100, 2101, Doing::Io, 7),
                (2101, 3000, Doing::Running, 0)
            ]
        );
    }

    #[test]
    fn a_full_window_says_so() {
        let mut lane = lane(1_001_000, (1000, 1_001_000));
        for i in 0..Lane::SPANS as u64 {
            lane.was(State::Running(Cpu(0)), 1000 + 2 * i, 1000 + 2 * i + 1);
        }
        assert_eq!((lane.full(), lane.spans.len()), (None, Lane::SPANS));
        lane.was(State::Running(Cpu(0)), 900_000, 900_001);
        assert_eq!((lane.full(), lane.spans.len()), (Some(900_000), Lane::SPANS));
    }
}
