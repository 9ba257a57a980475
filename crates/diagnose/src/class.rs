//! The named classes of bottlenecks.

use holdup_attribution::Resource;
use serde::{Serialize, Serializer};

macro_rules! classes {
    ($($(#[doc = $doc:literal])+ $name:ident = $id:literal,)+) => {
        /// The kinds of bottleneck of a multiprocessor system; ids are stable.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, schemars::JsonSchema)]
        pub enum Class {
            $($(#[doc = $doc])+ #[schemars(rename = $id)] $name),+
        }

        impl Class {
            /// Every class.
            pub const ALL: &'static [Class] = &[$(Class::$name),+];

            /// The stable id.
            pub fn id(self) -> &'static str {
                match self { $(Class::$name => $id),+ }
            }

            /// The class with this id.
            pub fn from_id(id: &str) -> Option<Class> {
                Self::ALL.iter().copied().find(|c| c.id() == id)
            }
        }
    };
}

classes! {
    /// Too little parallelism: one busy server, one long-running worker, or work that only one CPU
    /// can do.
    WorkloadImbalance = "workload-imbalance",
    /// Threads queue on kernel services: semaphores, file locks, message queues, pipes.
    ApplicationSerialization = "application-serialization",
    /// Threads queue on objects of the threads library: futexes.
    ThreadSerialization = "thread-serialization",
    /// Threads contend for one or a few locks of the kernel itself.
    KernelLockConflict = "kernel-lock-conflict",
    /// Interrupts, softirqs or kernel workers run on one CPU only, while threads wait for them.
    FunneledDriver = "funneled-driver",
    /// The same work takes more CPU time in the kernel than on one CPU.
    MpUpOverhead = "mp-up-overhead",
    /// CPUs are busy, but memory bandwidth, contended cache lines or the other hardware thread of a
    /// core slow them down.
    HardwareBandwidth = "hardware-bandwidth",
    /// Threads wait for disks while CPUs are idle.
    IoBound = "io-bound",
    /// A quota of CPU time keeps ready threads off idle CPUs.
    CpuQuota = "cpu-quota",
    /// More threads are ready to run than there are CPUs, or other programs take the CPUs from the
    /// work.
    CpuOverload = "cpu-overload",
    /// There is no bottleneck.
    Healthy = "healthy",
    /// The trace does not contain enough events for a verdict.
    NotEnoughEvidence = "not-enough-evidence",
}

impl Class {
    /// The class of a scarce resource; `None` if no change of this machine or its programs provides
    /// more of it.
    pub fn of(resource: Resource) -> Option<Class> {
        Some(match resource {
            Resource::Cpus => Class::CpuOverload,
            Resource::Placement
            | Resource::Server
            | Resource::Straggler
            | Resource::Parallelism => Class::WorkloadImbalance,
            Resource::Quota => Class::CpuQuota,
            Resource::Device => Class::IoBound,
            Resource::ThreadLock => Class::ThreadSerialization,
            Resource::Service => Class::ApplicationSerialization,
            Resource::KernelLock => Class::KernelLockConflict,
            Resource::Driver => Class::FunneledDriver,
            Resource::Memory => Class::HardwareBandwidth,
            Resource::KernelPath => Class::MpUpOverhead,
            Resource::Dispatch
            | Resource::Dependency
            | Resource::Hypervisor
            | Resource::Outside
            | Resource::Unknown => return None,
        })
    }
}

impl Serialize for Class {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.serialize_str(self.id())
    }
}
