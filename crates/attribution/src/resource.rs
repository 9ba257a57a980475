//! The resources that CPU time is lost to.

/// What the work lacked while time was lost. Every leaf of lost time names exactly one resource
/// ([`crate::Leaf::lost_to`]), so that no loss is claimed twice.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Resource {
    /// A free CPU: threads were ready and all CPUs were busy.
    Cpus,
    /// A CPU that the threads were allowed on: others were idle.
    Placement,
    /// The scheduler's time from a wake-up to running on an idle CPU.
    Dispatch,
    /// CPU time that a control group's quota allows.
    Quota,
    /// A disk or similar device.
    Device,
    /// A lock, condition or queue of the threads library.
    ThreadLock,
    /// A kernel service in which threads contend: semaphore, file lock, queue, pipe.
    Service,
    /// A kernel lock.
    KernelLock,
    /// Driver work that one CPU or one worker does for all.
    Driver,
    /// One busy thread that serves the others, or that arrives last at their barrier.
    Server,
    /// One thread's work, while others spin until it is done.
    Straggler,
    /// Work for more than one thread at a time.
    Parallelism,
    /// The result of a thread that was busy itself: a data dependency.
    Dependency,
    /// Memory, caches, or the sibling hyperthread.
    Memory,
    /// The longer code path of a multiprocessor kernel.
    KernelPath,
    /// A CPU that the hypervisor took away.
    Hypervisor,
    /// Something outside the machine, or a timer.
    Outside,
    /// Unknown: events are missing.
    Unknown,
}

impl Resource {
    /// In one word, as in tables and JSON.
    pub fn word(self) -> &'static str {
        match self {
            Resource::Cpus => "cpus",
            Resource::Placement => "placement",
            Resource::Dispatch => "dispatch",
            Resource::Quota => "quota",
            Resource::Device => "device",
            Resource::ThreadLock => "lock",
            Resource::Service => "service",
            Resource::KernelLock => "kernel-lock",
            Resource::Driver => "driver",
            Resource::Server => "server",
            Resource::Straggler => "straggler",
            Resource::Parallelism => "parallelism",
            Resource::Dependency => "dependency",
            Resource::Memory => "memory",
            Resource::KernelPath => "kernel-path",
            Resource::Hypervisor => "hypervisor",
            Resource::Outside => "outside",
            Resource::Unknown => "unknown",
        }
    }
}
