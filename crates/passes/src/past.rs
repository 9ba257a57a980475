//! What a thread did while it held something that others waited for: why a holder was slow.
//!
//! A thread that releases an object may have run, queued for a CPU, or slept for a disk while
//! others waited. Its [`Past`] has this without gaps, as far back as a hold may last. At the
//! release, the part of the past in which others waited is added up:
//!
//! ```text
//!  holder   ▐ user ▌▐─── asleep for a disk ───▌▐ ready ▌▐ kernel: futex ▌
//!                        ┊ waiter sleeps                                ┊ gives it back
//!                        └────────── so long, and no longer ────────────┘
//! ```
//!
//! A thread is followed from the first time that it is seen to hold something.

use crate::cause::Cause;
use crate::slot::Slot;
use crate::state::{Mode, State};
use crate::waits::{Object, ObjectKind};
use holdup_trace::Nanos;
use std::collections::VecDeque;

/// Makes [`HolderPart`] from one list: its id in JSON, and it in words.
macro_rules! parts {
    ($($(#[doc = $doc:literal])+ $name:ident = $id:literal, $title:literal;)+) => {
        /// What a thread did during a part of the time for which it held something.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub enum HolderPart { $($(#[doc = $doc])+ $name),+ }

        impl HolderPart {
            /// All of them.
            pub const ALL: &'static [HolderPart] = &[$(HolderPart::$name),+];

            /// Stable id.
            pub fn id(self) -> &'static str {
                match self { $(HolderPart::$name => $id),+ }
            }

            /// Description for sentences: what holders were doing.
            pub fn title(self) -> &'static str {
                match self { $(HolderPart::$name => $title),+ }
            }
        }
    };
}

parts! {
    /// On a CPU, in application code.
    User = "user", "in their own code";
    /// On a CPU, in the kernel.
    Kernel = "kernel", "in the kernel";
    /// On a CPU, spinning for a lock of the kernel.
    Spinning = "spinning", "spinning in the kernel";
    /// On a CPU, with an interrupt or softirq on top of it.
    Interrupted = "interrupted", "interrupted";
    /// On a CPU that the hypervisor gave to another guest.
    Stolen = "stolen", "without their virtual CPU";
    /// Ready after a wake-up, but not on a CPU yet.
    Woken = "woken", "woken but still without a CPU";
    /// Ready after another thread took its CPU.
    Preempted = "preempted", "preempted";
    /// Ready, but not allowed to run: its control group is out of quota.
    Throttled = "throttled", "throttled";
    /// Asleep for a device.
    Disk = "disk", "waiting for a disk";
    /// Asleep for a page of memory.
    PageFault = "page-fault", "waiting for memory";
    /// Asleep for a lock of the kernel.
    KernelLock = "kernel-lock", "waiting for a kernel lock";
    /// Asleep for a futex: another lock, a condition variable, a barrier.
    ThreadSync = "thread-sync", "waiting for another futex";
    /// Asleep for a semaphore, queue, file lock, pipe or socket that a thread of this machine ends.
    KernelService = "kernel-service", "waiting for another thread";
    /// Asleep until a time.
    Timer = "timer", "sleeping until a set time";
    /// Asleep for what comes from outside: a peer on the network, a client.
    Outside = "outside", "waiting for input";
    /// Asleep, and the trace does not show for what.
    Asleep = "asleep", "asleep";
    /// The trace does not show it, or it is too far back.
    Unknown = "unknown", "in an unknown state";
}

/// What a holder did, and where.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct HolderDid {
    /// What it did.
    pub part: HolderPart,
    /// The system call in which it did this.
    pub call: Option<u32>,
    /// If asleep, what for, by the number at that time; see [`crate::Analysis::final_object`].
    pub object: Option<Object>,
}

impl HolderPart {
    /// Whether it is asleep, for whatever reason.
    pub fn is_asleep(self) -> bool {
        use HolderPart::*;
        match self {
            Disk | PageFault | KernelLock | ThreadSync | KernelService | Timer | Outside
            | Asleep => true,
            User | Kernel | Spinning | Interrupted | Stolen | Woken | Preempted | Throttled
            | Unknown => false,
        }
    }

    /// Ready, but without a CPU.
    pub fn is_without_cpu(self) -> bool {
        matches!(self, HolderPart::Woken | HolderPart::Preempted | HolderPart::Throttled)
    }
}

impl From<Mode> for HolderPart {
    fn from(mode: Mode) -> HolderPart {
        match mode {
            Mode::User | Mode::Unknown => HolderPart::User,
            Mode::Kernel | Mode::Kthread => HolderPart::Kernel,
        }
    }
}

impl HolderDid {
    /// The trace does not show what it did.
    pub(crate) const UNKNOWN: HolderDid =
        HolderDid { part: HolderPart::Unknown, call: None, object: None };

    pub(crate) fn running(part: HolderPart, call: Option<u32>) -> HolderDid {
        HolderDid { part, call, object: None }
    }

    /// A sleep for an object of this kind.
    pub(crate) fn slept(
        cause: Cause,
        kind: ObjectKind,
        object: Object,
        call: Option<u32>,
    ) -> HolderDid {
        let part = match (cause, kind) {
            (_, ObjectKind::PageFault) => HolderPart::PageFault,
            (Cause::Io, _) => HolderPart::Disk,
            (Cause::KernelLock, _) => HolderPart::KernelLock,
            (Cause::ThreadSync, _) => HolderPart::ThreadSync,
            (Cause::KernelService, _) => HolderPart::KernelService,
            (_, ObjectKind::Timer | ObjectKind::Timerfd) => HolderPart::Timer,
            (Cause::External, _) => HolderPart::Outside,
            (Cause::Unknown, _) => HolderPart::Asleep,
        };
        HolderDid { part, call, object: Some(object) }
    }
}

/// One activity, up to a time.
#[derive(Clone, Copy, Debug)]
struct Piece {
    to: Nanos,
    did: HolderDid,
}

/// What one thread did, from its first piece on, without gaps.
#[derive(Clone, Debug, Default)]
pub(crate) struct Past {
    start: Nanos,
    pieces: VecDeque<Piece>,
    /// What the sleep that ends now was for, once it is known.
    slept: Option<HolderDid>,
    /// It is not known yet what the last sleep was for.
    unsettled: bool,
}

impl Past {
    /// Pieces kept per thread: the beginning of a longer hold is not known.
    const PIECES: usize = 1024;

    /// Nothing is known before `now`.
    pub(crate) fn since(now: Nanos) -> Past {
        Past { start: now, ..Past::default() }
    }

    fn end(&self) -> Nanos {
        self.pieces.back().map_or(self.start, |last| last.to)
    }

    /// The thread did this from one time to another; what is already recorded stays.
    pub(crate) fn did(&mut self, from: Nanos, to: Nanos, did: HolderDid) {
        if from > self.end() {
            self.push(from, HolderDid::UNKNOWN);
        }
        self.push(to, did);
    }

    fn push(&mut self, to: Nanos, did: HolderDid) {
        if to <= self.end() {
            return;
        }
        match self.pieces.back_mut() {
            Some(last) if last.did == did => last.to = to,
            _ => self.pieces.push_back(Piece { to, did }),
        }
        if self.pieces.len() > Past::PIECES
            && let Some(first) = self.pieces.pop_front()
        {
            self.start = first.to;
        }
    }

    /// A sleep ends, and what it was for is not known yet.
    pub(crate) fn wakes(&mut self) {
        self.slept = None;
        self.unsettled = false;
    }

    /// What the sleep was for that ends now or ended last.
    pub(crate) fn learn(&mut self, did: HolderDid) {
        self.slept = Some(did);
        if std::mem::take(&mut self.unsettled) {
            let asleep =
                |p: &&mut Piece| p.did.part == HolderPart::Asleep && p.did.object.is_none();
            if let Some(piece) = self.pieces.iter_mut().rev().find(asleep) {
                piece.did = did;
            }
        }
    }

    /// It was ready but not allowed to run.
    pub(crate) fn throttled(&mut self, from: Nanos, to: Nanos) {
        self.did(from, to, HolderDid::running(HolderPart::Throttled, None));
    }

    /// It was in `state` for this span; running time is added piece by piece elsewhere.
    pub(crate) fn was(&mut self, state: State, from: Nanos, to: Nanos) {
        let did = match state {
            State::Woken(_) => HolderDid::running(HolderPart::Woken, None),
            State::Preempted(_) => HolderDid::running(HolderPart::Preempted, None),
            State::Blocked | State::Waking => match self.slept {
                Some(did) => did,
                None => {
                    self.unsettled = true;
                    HolderDid::running(HolderPart::Asleep, None)
                }
            },
            State::Running(_) | State::Unseen | State::New | State::Lost | State::Dead => return,
        };
        self.did(from, to, did);
    }

    /// Hands out what it did from one time to another while it held an object, with `now` as the
    /// activity of time not recorded yet. The times add up to the whole span, or to the span after
    /// its own wait for the object, because it did not hold the object before.
    pub(crate) fn while_it_had(
        &self,
        is_own: impl Fn(Object) -> bool,
        (from, to): (Nanos, Nanos),
        now: HolderDid,
        mut each: impl FnMut(HolderDid, Nanos),
    ) {
        let mut rest = to;
        if rest > self.end() {
            let begin = self.end().max(from);
            each(now, rest.saturating_sub(begin));
            rest = begin;
        }
        let starts = self.pieces.iter().map(|p| p.to).rev().skip(1).chain([self.start]);
        for (piece, start) in self.pieces.iter().rev().zip(starts) {
            if rest <= from {
                return;
            }
            let begin = start.max(from);
            if begin < rest {
                if piece.did.object.is_some_and(&is_own) {
                    return;
                }
                each(piece.did, rest - begin);
                rest = begin;
            }
        }
        if rest > from {
            each(HolderDid::UNKNOWN, rest - from);
        }
    }
}

/// Maximal number of different activities of one thread with one object: beyond it, calls and
/// objects are not distinguished.
const DIFFERENT: usize = 64;

/// What the holders of an object did while others waited for it, added up.
#[derive(Clone, Debug, Default)]
pub(crate) struct HolderTimes(Vec<(HolderDid, Nanos)>);

impl HolderTimes {
    /// Adds `ns` of this activity.
    pub(crate) fn add(&mut self, did: HolderDid, ns: Nanos) {
        if ns == 0 {
            return;
        }
        let known = self.0.iter().any(|(other, _)| *other == did);
        let did = match known || self.0.len() < DIFFERENT {
            true => did,
            false => HolderDid { call: None, object: None, ..did },
        };
        match self.0.iter_mut().find(|(other, _)| *other == did) {
            Some((_, sum)) => *sum += ns,
            None => self.0.push((did, ns)),
        }
    }

    /// All activities and their times.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (HolderDid, Nanos)> {
        self.0.iter().copied()
    }
}

/// A change of what threads hold.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Holding {
    /// A thread holds something that others may come to wait for.
    Has(Slot),
    /// It released an object for which others waited during a span.
    GaveBack {
        /// The holder.
        slot: Slot,
        /// The object.
        object: Object,
        /// Since when it held the object and others waited.
        from: Nanos,
        /// Until when.
        to: Nanos,
    },
}

#[cfg(test)]
mod tests {
    use super::*;
    use holdup_trace::Cpu;

    const OTHER: Object = Object(3);

    fn parts(past: &Past, from: Nanos, to: Nanos) -> Vec<(HolderPart, Nanos)> {
        let mut all = Vec::new();
        let each = |did: HolderDid, ns| all.push((did.part, ns));
        past.while_it_had(|object| object == OTHER, (from, to), HolderDid::UNKNOWN, each);
        all.reverse();
        all
    }

    fn user(past: &mut Past, from: Nanos, to: Nanos) {
        past.did(from, to, HolderDid::running(HolderPart::User, None));
    }

    #[test]
    fn what_nobody_saw_is_unknown_and_the_rest_is_cut_to_the_time() {
        let mut past = Past::since(10);
        user(&mut past, 10, 20);
        user(&mut past, 15, 25);
        past.was(State::Preempted(Cpu(0)), 30, 40);
        use HolderPart::{Preempted, Unknown, User};
        assert_eq!(parts(&past, 5, 35), [(Unknown, 5), (User, 15), (Unknown, 5), (Preempted, 5)]);
        assert_eq!(parts(&past, 12, 45), [(User, 13), (Unknown, 5), (Preempted, 10), (Unknown, 5)]);
        assert_eq!(parts(&past, 12, 12), []);
    }

    #[test]
    fn a_sleep_is_known_when_it_is_told_even_if_later() {
        let disk = HolderDid { part: HolderPart::Disk, call: Some(1), object: None };
        let mut past = Past::since(0);
        past.wakes();
        past.was(State::Blocked, 0, 10);
        user(&mut past, 10, 12);
        past.learn(disk);
        past.wakes();
        past.learn(disk);
        past.was(State::Blocked, 12, 20);
        past.was(State::Waking, 20, 21);
        use HolderPart::{Disk, User};
        assert_eq!(parts(&past, 0, 21), [(Disk, 10), (User, 2), (Disk, 9)]);
    }

    #[test]
    fn nothing_before_its_own_wait_counts() {
        let own = HolderDid { part: HolderPart::ThreadSync, call: None, object: Some(OTHER) };
        let mut past = Past::since(0);
        user(&mut past, 0, 10);
        past.did(10, 20, own);
        user(&mut past, 20, 30);
        assert_eq!(parts(&past, 0, 30), [(HolderPart::User, 10)]);
    }

    #[test]
    fn memory_is_bounded_and_the_oldest_goes() {
        let mut past = Past::since(0);
        for i in 0..Past::PIECES as u64 {
            user(&mut past, 2 * i, 2 * i + 1);
            past.was(State::Preempted(Cpu(0)), 2 * i + 1, 2 * i + 2);
        }
        let (end, kept) = (2 * Past::PIECES as u64, Past::PIECES as u64);
        let unknown = parts(&past, 0, end)[0];
        assert_eq!(unknown, (HolderPart::Unknown, end - kept));
        assert_eq!(parts(&past, 0, end).iter().map(|part| part.1).sum::<Nanos>(), end);
    }

    #[test]
    fn too_many_different_things_are_no_longer_told_apart() {
        let mut times = HolderTimes::default();
        for call in 0..200 {
            times.add(HolderDid::running(HolderPart::Kernel, Some(call)), 1);
        }
        assert_eq!(times.iter().map(|(_, ns)| ns).sum::<Nanos>(), 200);
        assert_eq!(times.iter().count(), DIFFERENT + 1);
    }
}
