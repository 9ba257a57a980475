//! The leaves of the capacity ledger, their sums, and the resource that each leaf's time was lost
//! to.

use crate::resource::Resource;

/// A node that is the sum of others.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Total {
    /// CPUs ran something.
    Busy,
    /// In the applications' own code.
    User,
    /// In the applications' own code or in system calls that were not recorded because only some
    /// calls were: the two cannot be distinguished.
    Application,
    /// In recorded system calls of applications; and in the kernel otherwise, as far as samples
    /// show that.
    Kernel,
    /// CPUs had nothing to do.
    Idle,
    /// Unknown, or CPUs did nothing because they were taken away.
    Unaccounted,
}

impl Total {
    /// `busy`, `busy/kernel` …
    pub fn path(self) -> &'static str {
        match self {
            Total::Busy => "busy",
            Total::User => "busy/user",
            Total::Application => "busy/application",
            Total::Kernel => "busy/kernel",
            Total::Idle => "idle",
            Total::Unaccounted => "unaccounted",
        }
    }

    /// The node that contains this one.
    pub fn parent(self) -> Option<Total> {
        match self {
            Total::User | Total::Application | Total::Kernel => Some(Total::Busy),
            Total::Busy | Total::Idle | Total::Unaccounted => None,
        }
    }
}

macro_rules! leaves {
    ($(
        $(#[doc = $doc:literal])+
        $name:ident = $parent:expr, $lost:expr, $path:literal;
    )+) => {
        /// Where CPU time may go. In pre-order of the tree.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub enum Leaf { $($(#[doc = $doc])+ $name),+ }

        impl Leaf {
            /// Every leaf, in the order of the ledger.
            pub const ALL: &'static [Leaf] = &[$(Leaf::$name),+];

            /// `idle/thread-sync` …: stable.
            pub fn path(self) -> &'static str {
                match self { $(Leaf::$name => $path),+ }
            }

            /// The node that contains it.
            pub fn parent(self) -> Option<Total> {
                match self { $(Leaf::$name => $parent),+ }
            }

            /// The resource its time was lost to; `None` for time that was used.
            pub fn lost_to(self) -> Option<Resource> {
                match self { $(Leaf::$name => $lost),+ }
            }

            /// `ledger idle/thread-sync` …: the source that evidence names for its figure.
            pub fn source(self) -> &'static str {
                match self { $(Leaf::$name => concat!("ledger ", $path)),+ }
            }
        }
    };
}

leaves! {
    /// Application code, if nothing tells how fast it ran.
    UserUndivided = Some(Total::User), None, "busy/user";
    /// The time that application code took beyond that of similar work with few CPUs busy.
    UserStalled = Some(Total::User), Some(Resource::Memory), "busy/user/stalled";
    /// The rest of application code.
    UserWork = Some(Total::User), None, "busy/user/work";
    /// Application code or unrecorded calls, if nothing tells how fast the code ran.
    ApplicationUndivided = Some(Total::Application), None, "busy/application";
    /// The time that it took beyond that of similar work with few CPUs busy.
    ApplicationStalled = Some(Total::Application), Some(Resource::Memory),
        "busy/application/stalled";
    /// The rest of that time.
    ApplicationWork = Some(Total::Application), None, "busy/application/work";
    /// System calls, if nothing distinguishes spinning from work.
    KernelUndivided = Some(Total::Kernel), None, "busy/kernel";
    /// In futex calls that slept or woke another thread, and in those by which threads contend for
    /// a mutex although none sleeps.
    ThreadSyncCalls = Some(Total::Kernel), Some(Resource::ThreadLock), "busy/kernel/thread-sync";
    /// In such calls on semaphores, message queues and file locks; and what reads and writes cost
    /// beyond their own work while threads sleep in them for each other.
    ServiceCalls = Some(Total::Kernel), Some(Resource::Service), "busy/kernel/kernel-services";
    /// In such calls, if they are clients' way of waiting for one busy thread.
    ServerCalls = Some(Total::Kernel), Some(Resource::Server), "busy/kernel/one-server";
    /// Spinning that events of kernel locks show.
    LockSpin = Some(Total::Kernel), Some(Resource::KernelLock), "busy/kernel/lock-spin";
    /// Waiting inside the kernel that no event shows: what calls cost beyond their own work because
    /// other threads were in the kernel too. Inferred.
    LockWait = Some(Total::Kernel), Some(Resource::KernelLock), "busy/kernel/lock-wait";
    /// What calls made alone cost beyond the same calls in a baseline with fewer CPUs.
    MpOverhead = Some(Total::Kernel), Some(Resource::KernelPath), "busy/kernel/mp-overhead";
    /// By samples: page faults, and calls that were not recorded.
    KernelUnrecorded = Some(Total::Kernel), None, "busy/kernel/unrecorded";
    /// The rest of recorded system calls.
    KernelOther = Some(Total::Kernel), None, "busy/kernel/other";
    /// Threads of one process that wait without sleeping until another thread lets them continue:
    /// they yield, look and yield again, in the calls and between them; or, by samples, they spin
    /// in their own code.
    Spin = Some(Total::Busy), Some(Resource::ThreadLock), "busy/spin";
    /// Such waiting by threads of several processes.
    ServiceSpin = Some(Total::Busy), Some(Resource::Service), "busy/service-spin";
    /// Spinning, by samples, until the one thread with most of the work arrives too.
    BarrierSpin = Some(Total::Busy), Some(Resource::Straggler), "busy/barrier-spin";
    /// Kernel threads.
    Kthreads = Some(Total::Busy), None, "busy/kthreads";
    /// Interrupt handlers.
    Irq = Some(Total::Busy), None, "busy/irq";
    /// Softirqs.
    Softirq = Some(Total::Busy), None, "busy/softirq";
    /// Idle, if nothing tells why.
    IdleUndivided = Some(Total::Idle), Some(Resource::Unknown), "idle";
    /// Threads waited for futexes.
    ThreadSync = Some(Total::Idle), Some(Resource::ThreadLock), "idle/thread-sync";
    /// Threads waited for each other in kernel services.
    KernelServices = Some(Total::Idle), Some(Resource::Service), "idle/kernel-services";
    /// Threads slept for kernel locks.
    KernelLocks = Some(Total::Idle), Some(Resource::KernelLock), "idle/kernel-locks";
    /// Threads waited for one busy thread, or for the last thread at a barrier.
    OneServer = Some(Total::Idle), Some(Resource::Server), "idle/one-server";
    /// Threads waited for a device.
    Io = Some(Total::Idle), Some(Resource::Device), "idle/io";
    /// Threads were ready but throttled: their CPU quota was used up.
    Throttled = Some(Total::Idle), Some(Resource::Quota), "idle/throttled";
    /// Threads were ready and had not got the CPU yet.
    Scheduler = Some(Total::Idle), Some(Resource::Dispatch), "idle/scheduler";
    /// Threads were ready but bound to other CPUs.
    Bound = Some(Total::Idle), Some(Resource::Placement), "idle/bound";
    /// Exactly one application thread, or one of two that contend only with each other, had work;
    /// or the same few threads had all of it.
    Serial = Some(Total::Idle), Some(Resource::Parallelism), "idle/serial";
    /// Threads waited for the results of threads that were busy themselves and never wait for them:
    /// stages of a pipeline, not contenders for an object.
    Order = Some(Total::Idle), Some(Resource::Dependency), "idle/order";
    /// One CPU or one worker did driver work that others waited for.
    Driver = Some(Total::Idle), Some(Resource::Driver), "idle/driver";
    /// No thread waited for anything that this machine could have done earlier.
    NoWork = Some(Total::Idle), Some(Resource::Outside), "idle/no-work";
    /// Lost events and gaps.
    Unaccounted = Some(Total::Unaccounted), Some(Resource::Unknown), "unaccounted";
    /// Lost events and gaps, if stolen time is known.
    Unseen = Some(Total::Unaccounted), Some(Resource::Unknown), "unaccounted/unseen";
    /// A hypervisor ran something else on the CPU. Inferred from missing timer ticks.
    Stolen = Some(Total::Unaccounted), Some(Resource::Hypervisor), "unaccounted/stolen";
}

impl Leaf {
    /// What of idle time belongs to what threads waited for and to nothing else, in the order in
    /// which the ledger assigns it.
    pub const WAITED_FOR: [Leaf; 5] =
        [Leaf::ThreadSync, Leaf::KernelServices, Leaf::KernelLocks, Leaf::OneServer, Leaf::Io];

    /// The last part of its path.
    pub fn name(self) -> &'static str {
        self.path().rsplit('/').next().unwrap_or_default()
    }

    /// Its place in [`Leaf::ALL`].
    pub(crate) fn index(self) -> usize {
        self as usize
    }

    /// Whether it is part of `branch`, at any depth.
    pub fn is_in(self, branch: Total) -> bool {
        let mut at = self.parent();
        while let Some(b) = at {
            if b == branch {
                return true;
            }
            at = b.parent();
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_begin_with_their_parents() {
        for (i, leaf) in Leaf::ALL.iter().enumerate() {
            assert_eq!(leaf.index(), i);
            if let Some(parent) = leaf.parent() {
                assert!(leaf.path().starts_with(parent.path()), "{leaf:?}");
                assert!(leaf.is_in(parent));
            }
        }
        assert!(Leaf::LockSpin.is_in(Total::Busy) && !Leaf::Io.is_in(Total::Busy));
    }
}
