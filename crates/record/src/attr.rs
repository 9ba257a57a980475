//! The attributes of the events that are opened.

use crate::runtimes::Probe;
use crate::sys::{Attr, abi};
use holdup_host::tracefs::Tracepoint;
use holdup_trace::EventKind;
use std::num::NonZeroU32;
use std::time::Duration;

/// What every record carries. Nothing of it is needed twice by what reads the file, and each is
/// eight bytes of every event: so no instruction pointer, which of a tracepoint is its own address.
const FIELDS: u64 = (abi::PERF_SAMPLE_IDENTIFIER
    | abi::PERF_SAMPLE_TID
    | abi::PERF_SAMPLE_TIME
    | abi::PERF_SAMPLE_CPU) as u64;

/// The register that the kernel finds a call's first argument in, as a bit of `sample_regs_user`.
const FIRST_ARGUMENT: u64 = if cfg!(target_arch = "x86_64") {
    1 << 5 // PERF_REG_X86_DI
} else if cfg!(target_arch = "aarch64") {
    1 // PERF_REG_ARM64_X0
} else {
    0
};

/// Frames that a probe's call chain has at most: who asked is among the innermost, and each frame
/// costs time while somebody waits.
const CALLERS: u16 = 24;

/// How the events of a recording are read and written.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Manner {
    /// With the call chain of each event.
    pub(crate) stacks: bool,
    /// With where in the kernel a thread leaves its CPU, which names the calls that are not
    /// recorded.
    pub(crate) calls: bool,
    /// With what code is mapped, which names functions and variables.
    pub(crate) maps: bool,
    /// With the control group of the threads that leave a CPU, and of those that are sampled.
    ///
    /// The kernel says it best (`PERF_SAMPLE_CGROUP`, Linux 5.7): a thread may be moved
    /// (`cgroup_attach_task` tells) or be made in another group than its parent's
    /// (`CLONE_INTO_CGROUP`, of which nothing tells). It is a load and eight bytes, and a thread
    /// that has run has left a CPU at the end: so switches carry it and the many other events need
    /// not.
    pub(crate) groups: bool,
    /// With the build of each file that is mapped meanwhile (Linux 5.12).
    pub(crate) build_ids: bool,
    /// Into rings that keep the last records.
    pub(crate) backward: bool,
    /// Of threads and the children they make, not of CPUs.
    pub(crate) inherit: bool,
    /// Bytes in a ring after which its reader is woken.
    pub(crate) wake_after: u32,
}

impl Manner {
    /// Every time the tracepoint is passed.
    pub(crate) fn tracepoint(&self, tracepoint: &Tracepoint) -> Attr {
        let mut attr = self.plain(abi::PERF_TYPE_TRACEPOINT, tracepoint.id);
        attr.sample_period = 1;
        attr.sample_type |= u64::from(abi::PERF_SAMPLE_PERIOD | abi::PERF_SAMPLE_RAW);
        let switch = EventKind::Switch;
        let name = (&*tracepoint.system, &*tracepoint.name);
        let is_switch = name == (switch.system(), switch.kernel_name());
        if is_switch {
            attr.sample_type |= self.group();
        }
        if self.calls && FIRST_ARGUMENT != 0 && is_switch {
            attr.sample_type |= u64::from(abi::PERF_SAMPLE_CALLCHAIN | abi::PERF_SAMPLE_REGS_USER);
            attr.sample_regs_user = FIRST_ARGUMENT;
            attr.set_exclude_callchain_user((!self.stacks).into());
        }
        self.with_stacks(attr)
    }

    /// Every time the function is called, with the registers that have its arguments. The attribute
    /// points to the path of `probe`.
    pub(crate) fn probe(&self, probe: &Probe) -> Attr {
        let mut attr = self.plain(probe.pmu, 0);
        attr.__bindgen_anon_3.uprobe_path = probe.path.as_ptr() as u64;
        attr.__bindgen_anon_4.probe_offset = probe.offset;
        attr.sample_period = 1;
        // Of an event that is not a tracepoint perf script wants to print where it was.
        attr.sample_type |= u64::from(abi::PERF_SAMPLE_REGS_USER | abi::PERF_SAMPLE_ADDR);
        attr.sample_regs_user = probe.registers;
        if probe.stack {
            attr.sample_type |= u64::from(abi::PERF_SAMPLE_CALLCHAIN);
            attr.set_exclude_callchain_kernel(1);
            attr.sample_max_stack = CALLERS;
        }
        attr
    }

    /// No event, but records of threads made, ended and renamed, and of the code that is mapped, to
    /// name functions and variables. The rings are mapped from it, as it is there always.
    pub(crate) fn sideband(&self) -> Attr {
        let mut attr = self.plain(abi::PERF_TYPE_SOFTWARE, u64::from(abi::PERF_COUNT_SW_DUMMY));
        attr.set_comm(1);
        attr.set_comm_exec(1);
        attr.set_task(1);
        attr.set_cgroup(self.groups.into());
        if self.maps {
            attr.set_mmap(1);
            attr.set_mmap2(1);
            attr.set_ksymbol(self.stacks.into());
            attr.set_build_id(self.build_ids.into());
        }
        attr.set_watermark(1);
        attr.wakeup_watermark = self.wake_after;
        attr
    }

    /// A counter that is read with the leader of its group.
    pub(crate) fn counter(&self, kind: u32, config: u64) -> Attr {
        let mut attr = self.plain(kind, config);
        attr.set_disabled(0);
        attr
    }

    /// Every time so much time has passed, on a CPU that idles too.
    pub(crate) fn timer(&self, interval: Duration) -> Attr {
        let mut attr = self.plain(abi::PERF_TYPE_SOFTWARE, u64::from(abi::PERF_COUNT_SW_CPU_CLOCK));
        attr.sample_period = u64::try_from(interval.as_nanos()).unwrap_or(u64::MAX >> 1);
        attr.sample_type |= u64::from(abi::PERF_SAMPLE_PERIOD);
        attr
    }

    /// So many times a second on each CPU, with the code that runs. Idle tasks are left out.
    pub(crate) fn sample(&self, hz: NonZeroU32) -> Attr {
        let mut attr = self.timer(Duration::from_secs(1) / hz.get());
        attr.sample_type |= u64::from(abi::PERF_SAMPLE_IP) | self.group();
        attr.set_exclude_idle(1);
        self.with_stacks(attr)
    }

    /// The control group, if it is wanted.
    fn group(&self) -> u64 {
        if self.groups { abi::PERF_SAMPLE_CGROUP.into() } else { 0 }
    }

    fn with_stacks(&self, mut attr: Attr) -> Attr {
        if self.stacks {
            attr.sample_type |= u64::from(abi::PERF_SAMPLE_CALLCHAIN);
        }
        attr
    }

    fn plain(&self, kind: u32, config: u64) -> Attr {
        let mut attr = Attr { size: crate::sys::ATTR_SIZE, type_: kind, config, ..Attr::default() };
        attr.sample_type = FIELDS;
        attr.read_format = u64::from(abi::PERF_FORMAT_ID);
        attr.set_disabled(1);
        attr.set_sample_id_all(1);
        attr.set_inherit(self.inherit.into());
        attr.set_write_backward(self.backward.into());
        attr
    }
}
