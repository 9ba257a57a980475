//! The leaves of the capacity ledger, and the nodes that sum them.

/// A node that is the sum of others.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Total {
    /// CPUs did something.
    Busy,
    /// In system calls of applications.
    Kernel,
    /// CPUs had nothing to do.
    Idle,
}

impl Total {
    /// `busy`, `busy/kernel` …
    pub fn path(self) -> &'static str {
        match self {
            Total::Busy => "busy",
            Total::Kernel => "busy/kernel",
            Total::Idle => "idle",
        }
    }

    /// The node that this one is part of.
    pub fn parent(self) -> Option<Total> {
        match self {
            Total::Kernel => Some(Total::Busy),
            Total::Busy | Total::Idle => None,
        }
    }
}

macro_rules! leaves {
    ($($(#[doc = $doc:literal])+ $name:ident = $parent:expr, $path:literal, $title:literal;)+) => {
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

            /// The node that it is part of.
            pub fn parent(self) -> Option<Total> {
                match self { $(Leaf::$name => $parent),+ }
            }

            /// What it is, or what is waited for, in words.
            pub fn title(self) -> &'static str {
                match self { $(Leaf::$name => $title),+ }
            }
        }
    };
}

leaves! {
    /// Application code.
    User = Some(Total::Busy), "busy/user", "application code";
    /// System calls, where nothing tells spinning from work.
    KernelUndivided = Some(Total::Kernel), "busy/kernel", "system calls";
    /// Spinning that events of kernel locks show.
    LockSpin = Some(Total::Kernel), "busy/kernel/lock-spin", "spinning for locks of the kernel";
    /// The rest of system calls.
    KernelOther = Some(Total::Kernel), "busy/kernel/other", "system calls otherwise";
    /// Kernel threads.
    Kthreads = Some(Total::Busy), "busy/kthreads", "kernel threads";
    /// Interrupt handlers.
    Irq = Some(Total::Busy), "busy/irq", "interrupts";
    /// Softirqs.
    Softirq = Some(Total::Busy), "busy/softirq", "softirqs";
    /// Idle, where nothing tells why.
    IdleUndivided = Some(Total::Idle), "idle", "a reason that is not known";
    /// Threads waited for futexes.
    ThreadSync = Some(Total::Idle), "idle/thread-sync", "objects of the threads library (futex)";
    /// Threads waited for each other in kernel services.
    KernelServices = Some(Total::Idle), "idle/kernel-services",
        "semaphores, message queues, file locks, pipes";
    /// Threads slept for locks of the kernel.
    KernelLocks = Some(Total::Idle), "idle/kernel-locks", "locks of the kernel";
    /// Threads waited for one busy thread, or for the last one at a barrier.
    OneServer = Some(Total::Idle), "idle/one-server", "one thread that is busy itself";
    /// Threads waited for a device.
    Io = Some(Total::Idle), "idle/io", "disks and paging";
    /// Threads were ready, but for other CPUs.
    Scheduler = Some(Total::Idle), "idle/scheduler", "a CPU, while others are idle";
    /// No thread waited for anything that this machine could have done sooner.
    NoWork = Some(Total::Idle), "idle/no-work", "nothing: there is no work";
    /// Lost events, gaps.
    Unaccounted = None, "unaccounted", "not known: events are missing";
}

impl Leaf {
    /// The last part of its path.
    pub fn name(self) -> &'static str {
        self.path().rsplit('/').next().unwrap_or_default()
    }

    /// Its place in [`Leaf::ALL`].
    pub(crate) fn index(self) -> usize {
        self as usize
    }

    /// Whether it is part of `branch`, however deep.
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
