//! Whether waiting for an object costs anything, and why.

use holdup_passes::{Analysis, ByThread, FutexUse, Object, ObjectKind, ObjectStats, PairSum, Slot};
use holdup_trace::Nanos;
use std::cmp::Reverse;
use std::collections::BTreeMap;

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

/// The thread that ended most of the waiting time, and that time.
pub(crate) fn top_waker(ended_by: impl Iterator<Item = (Slot, Nanos)>) -> Option<(Slot, Nanos)> {
    ended_by.max_by_key(|&(slot, ns)| (ns, Reverse(slot)))
}

/// Every object, not yet judged.
pub(crate) fn measured(
    analysis: &Analysis,
    ended_by: &ByThread<PairSum>,
) -> BTreeMap<Object, JudgedObject> {
    let measured = |stats: ObjectStats| {
        let wakers = ended_by.of(stats.object).iter();
        JudgedObject {
            kind: kind(&stats),
            top_waker: top_waker(wakers.map(|&(slot, pair)| (slot, pair.wait_ns))),
            rule: WaitRule::default(),
            stats,
        }
    };
    analysis.objects().map(|stats| (stats.object, measured(stats))).collect()
}

/// Judge every object; `server` is the thread that the others wait for.
pub(crate) fn judge(objects: &mut BTreeMap<Object, JudgedObject>, server: Option<Slot>) {
    for object in objects.values_mut() {
        object.rule = object.rule_if_ended_by(object.top_waker, server);
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
        server: Option<Slot>,
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
            _ if server.is_some() && top.map(|t| t.0) == server => WaitRule::OneServer,
            // The wakers spent most of their own time waiting for input: they had nothing to give.
            _ if mostly(o.followed_idle_ns) => WaitRule::IdleNoWork,
            _ if o.is_lock => WaitRule::LockContention,
            ObjectKind::Other => WaitRule::IdleUnknown,
            _ => WaitRule::HandoverContention,
        }
    }
}
