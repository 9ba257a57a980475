//! Whether waiting for an object costs anything, and why.

use crate::leaf::Leaf;
use crate::server::{Server, top_waker};
use crate::wait::Wait;
use holdup_passes::{Analysis, ByThread, FutexUse, Object, ObjectKind, ObjectStats, PairSum, Slot};
use holdup_trace::Nanos;
use std::collections::{BTreeMap, BTreeSet};

/// Why waits for an object count as harmful or idle; docs/waits.md explains the ids.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum WaitRule {
    /// One thread at a time holds it and releases it itself.
    LockContention,
    /// Handed from thread to thread.
    HandoverContention,
    /// Others wait for one busy thread.
    OneServer,
    /// Others wait for the last thread to arrive.
    BarrierImbalance,
    /// A lock of the kernel.
    KernelLock,
    /// A device.
    IoDevice,
    /// A page that a device has to read.
    IoPaging,
    /// A timer.
    IdleTimer,
    /// The end of a child process.
    IdleChild,
    /// The end of a thread.
    IdleJoin,
    /// A signal.
    IdleSignal,
    /// One of several descriptors.
    IdlePoll,
    /// A client.
    IdleAccept,
    /// A lock, but mostly waited for until a time-out.
    IdleTimeout,
    /// No thread had anything to hand over.
    IdleNoWork,
    /// Something in the kernel that is neither I/O nor a lock of application threads.
    IdleKernel,
    /// The trace does not show the call.
    #[default]
    IdleUnknown,
}

impl WaitRule {
    /// Its stable id, as in the `rule` column.
    pub fn id(self) -> &'static str {
        match self {
            WaitRule::LockContention => "lock-contention",
            WaitRule::HandoverContention => "handover-contention",
            WaitRule::OneServer => "one-server",
            WaitRule::BarrierImbalance => "barrier-imbalance",
            WaitRule::KernelLock => "kernel-lock",
            WaitRule::IoDevice => "io-device",
            WaitRule::IoPaging => "io-paging",
            WaitRule::IdleTimer => "idle-timer",
            WaitRule::IdleChild => "idle-child",
            WaitRule::IdleJoin => "idle-join",
            WaitRule::IdleSignal => "idle-signal",
            WaitRule::IdlePoll => "idle-poll",
            WaitRule::IdleAccept => "idle-accept",
            WaitRule::IdleTimeout => "idle-timeout",
            WaitRule::IdleNoWork => "idle-no-work",
            WaitRule::IdleKernel => "idle-kernel",
            WaitRule::IdleUnknown => "idle-unknown",
        }
    }

    /// The waits cost something.
    pub fn is_harmful(self) -> bool {
        match self {
            WaitRule::LockContention
            | WaitRule::HandoverContention
            | WaitRule::OneServer
            | WaitRule::BarrierImbalance
            | WaitRule::KernelLock
            | WaitRule::IoDevice
            | WaitRule::IoPaging => true,
            WaitRule::IdleTimer
            | WaitRule::IdleChild
            | WaitRule::IdleJoin
            | WaitRule::IdleSignal
            | WaitRule::IdlePoll
            | WaitRule::IdleAccept
            | WaitRule::IdleTimeout
            | WaitRule::IdleNoWork
            | WaitRule::IdleKernel
            | WaitRule::IdleUnknown => false,
        }
    }
}

/// An object that threads waited for, judged.
#[derive(Clone, Copy, Debug)]
pub struct JudgedObject {
    /// The measurements.
    pub stats: ObjectStats,
    /// Its kind, by what the waits turned out to be for: a file whose waits were for the device is
    /// the disk.
    pub kind: ObjectKind,
    /// The thread that ended most of the waiting time, and that time.
    pub top_waker: Option<(Slot, Nanos)>,
    /// Why its waits count as harmful or idle.
    pub rule: WaitRule,
}

/// Judge every object.
pub(crate) fn judge(
    analysis: &Analysis,
    server: Option<Server>,
    ended_by: &ByThread<PairSum>,
) -> BTreeMap<Object, JudgedObject> {
    analysis
        .objects()
        .map(|stats| {
            let wakers = ended_by.get(&stats.object).into_iter().flatten();
            let wakers = wakers.map(|(&slot, pair)| (slot, pair.wait_ns)).collect();
            let mut object = JudgedObject {
                stats,
                kind: kind(&stats),
                top_waker: top_waker(&wakers),
                rule: WaitRule::default(),
            };
            object.rule = object.rule_if_ended_by(object.top_waker, server);
            (stats.object, object)
        })
        .collect()
}

/// Waits are idle for objects that threads mostly wait for in vain, or for threads that have waited
/// for input themselves: there is no work to hand over.
pub(crate) fn lack_work(
    objects: &BTreeMap<Object, JudgedObject>,
    analysis: &Analysis,
    waits: &mut [Wait],
) {
    let lacks_work = |o: &JudgedObject| {
        let ended_ns = o.stats.wait_ns.saturating_sub(o.stats.idle_ns);
        o.rule == WaitRule::IdleNoWork && o.stats.followed_idle_ns * 2 > ended_ns
    };
    let idle: BTreeSet<Object> =
        objects.iter().filter(|(_, o)| lacks_work(o)).map(|of| *of.0).collect();
    for wait in waits.iter_mut().filter(|w| idle.contains(&analysis.final_object(w.row.object))) {
        wait.leaf = Leaf::NoWork;
    }
}

/// Waits that look harmful become idle if the ledger says that nothing in this machine could have
/// ended them earlier.
pub(crate) fn follow_ledger(
    objects: &mut BTreeMap<Object, JudgedObject>,
    analysis: &Analysis,
    waits: &[Wait],
) {
    let of = |w: &Wait| analysis.final_object(w.row.object);
    let lost: BTreeSet<Object> = waits.iter().filter(|w| w.leaf != Leaf::NoWork).map(of).collect();
    for object in waits.iter().map(of).filter(|object| !lost.contains(object)) {
        if let Some(o) = objects.get_mut(&object).filter(|o| o.rule.is_harmful()) {
            o.rule = WaitRule::IdleNoWork;
        }
    }
}

/// Its kind, by what more than half of the waiting time was for.
fn kind(stats: &ObjectStats) -> ObjectKind {
    let mostly = |part: Nanos| part * 2 > stats.wait_ns;
    match stats.kind {
        ObjectKind::File | ObjectKind::Descriptor | ObjectKind::KernelLock | ObjectKind::Pipe
            if mostly(stats.device_ns) =>
        {
            ObjectKind::Disk
        }
        ObjectKind::File | ObjectKind::Descriptor if mostly(stats.lock_ns) => {
            ObjectKind::KernelLock
        }
        kind => kind,
    }
}

impl JudgedObject {
    /// One thread at a time holds and releases it: it has holders, not threads that hand something
    /// over.
    pub(crate) fn is_held(&self) -> bool {
        self.stats.is_lock && self.rule != WaitRule::OneServer
    }

    /// Whether waiting for it costs anything, and why; `top` ended most of it.
    pub(crate) fn rule_if_ended_by(
        &self,
        top: Option<(Slot, Nanos)>,
        server: Option<Server>,
    ) -> WaitRule {
        let o = &self.stats;
        let mostly = |part: Nanos| part * 2 > o.wait_ns;
        let idle = mostly(o.idle_ns);
        match self.kind {
            ObjectKind::Timer | ObjectKind::Timerfd => WaitRule::IdleTimer,
            ObjectKind::Child => WaitRule::IdleChild,
            // Unless siblings wake the waiter, by signals.
            ObjectKind::Signal if idle || o.wait_ns == 0 => WaitRule::IdleSignal,
            ObjectKind::Poll | ObjectKind::Epoll if idle || o.wait_ns == 0 => WaitRule::IdlePoll,
            ObjectKind::Accept => WaitRule::IdleAccept,
            ObjectKind::Disk => WaitRule::IoDevice,
            // The kernel does not say what these waits were for, or says that they were neither.
            ObjectKind::PageFault | ObjectKind::KernelLock if idle => WaitRule::IdleKernel,
            ObjectKind::PageFault if o.lock_ns * 2 > o.wait_ns => WaitRule::KernelLock,
            ObjectKind::PageFault => WaitRule::IoPaging,
            ObjectKind::KernelLock => WaitRule::KernelLock,
            ObjectKind::Uninterruptible if o.lock_ns * 2 > o.wait_ns => WaitRule::KernelLock,
            ObjectKind::Uninterruptible if o.device_ns * 2 > o.wait_ns => WaitRule::IoDevice,
            ObjectKind::Uninterruptible => WaitRule::IdleKernel,
            _ if o.usage == Some(FutexUse::Join) => WaitRule::IdleJoin,
            _ if idle && o.is_lock => WaitRule::IdleTimeout,
            _ if idle => WaitRule::IdleNoWork,
            _ if o.usage == Some(FutexUse::Barrier) => WaitRule::BarrierImbalance,
            _ if server.is_some() && top.map(|t| t.0) == server.map(|s| s.slot) => {
                WaitRule::OneServer
            }
            // The wakers spent most of their own time waiting for input: they had nothing to give.
            _ if mostly(o.followed_idle_ns) => WaitRule::IdleNoWork,
            _ if o.is_lock => WaitRule::LockContention,
            ObjectKind::Other => WaitRule::IdleUnknown,
            _ => WaitRule::HandoverContention,
        }
    }
}
