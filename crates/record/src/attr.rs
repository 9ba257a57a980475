//! The attributes of the events that are opened.

use crate::runtimes::Probe;
use crate::sys::{Attr, abi};
use holdup_host::tracefs::Tracepoint;
use holdup_trace::EventKind;
use std::num::NonZeroU32;
use std::time::Duration;

/// The fields of every record. Each costs eight bytes per event, so there are only those that
/// readers need: no instruction pointer, because that of a tracepoint is the tracepoint's own
/// address.
const FIELDS: u64 = (abi::PERF_SAMPLE_IDENTIFIER
    | abi::PERF_SAMPLE_TID
    | abi::PERF_SAMPLE_TIME
    | abi::PERF_SAMPLE_CPU) as u64;

/// The register with a call's first argument, as a bit of `sample_regs_user`.
const FIRST_ARGUMENT: u64 = if cfg!(target_arch = "x86_64") {
    1 << 5 // PERF_REG_X86_DI
} else if cfg!(target_arch = "aarch64") {
    1 // PERF_REG_ARM64_X0
} else {
    0
};

/// Maximal number of frames in a probe's call chain: the caller is among the innermost, and each
/// frame costs time while a thread waits.
const CALLERS: u16 = 24;

/// How the events of a recording are opened and written.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Manner {
    /// With the call chain of each event.
    pub(crate) stacks: bool,
    /// With the place in the kernel where a thread leaves its CPU, which shows the untraced call it
    /// is in.
    pub(crate) calls: bool,
    /// With code mappings, which are needed to name functions and variables.
    pub(crate) maps: bool,
    /// With the control group of the threads that leave a CPU, and of sampled threads.
    ///
    /// The kernel's own field is the best source (`PERF_SAMPLE_CGROUP`, Linux 5.7): a thread may be
    /// moved (`cgroup_attach_task` shows this) or created in another group than its parent's
    /// (`CLONE_INTO_CGROUP`, which has no event). It costs a load and eight bytes, and every thread
    /// that has run leaves a CPU in the end: so only switches carry it, not the many other events.
    pub(crate) groups: bool,
    /// With the build id of each file that is mapped during the recording (Linux 5.12).
    pub(crate) build_ids: bool,
    /// Into rings that keep the last records.
    pub(crate) backward: bool,
    /// For threads and the children they create, instead of CPUs.
    pub(crate) inherit: bool,
    /// Bytes in a ring after which its reader is woken.
    pub(crate) wake_after: u32,
}

impl Manner {
    /// A sample each time the tracepoint is hit.
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

    /// A sample each time the function is called, with the registers of its arguments. The
    /// attribute points to the path of `probe`.
    pub(crate) fn probe(&self, probe: &Probe) -> Attr {
        let mut attr = self.plain(probe.pmu, 0);
        attr.__bindgen_anon_3.uprobe_path = probe.path.as_ptr() as u64;
        attr.__bindgen_anon_4.probe_offset = probe.offset;
        attr.sample_period = 1;
        // For events other than tracepoints, perf script wants to print the address.
        attr.sample_type |= u64::from(abi::PERF_SAMPLE_REGS_USER | abi::PERF_SAMPLE_ADDR);
        attr.sample_regs_user = probe.registers;
        if probe.stack {
            attr.sample_type |= u64::from(abi::PERF_SAMPLE_CALLCHAIN);
            attr.set_exclude_callchain_kernel(1);
            attr.sample_max_stack = CALLERS;
        }
        attr
    }

    /// No event, but records of threads that are created, ended and renamed, and of code mappings,
    /// to name functions and variables. The rings are mapped from it, because every recording has
    /// it.
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

    /// A sample after each interval, also on an idle CPU.
    pub(crate) fn timer(&self, interval: Duration) -> Attr {
        let mut attr = self.plain(abi::PERF_TYPE_SOFTWARE, u64::from(abi::PERF_COUNT_SW_CPU_CLOCK));
        attr.sample_period = u64::try_from(interval.as_nanos()).unwrap_or(u64::MAX >> 1);
        attr.sample_type |= u64::from(abi::PERF_SAMPLE_PERIOD);
        attr
    }

    /// `hz` samples a second on each CPU, with the running code, except in idle tasks.
    pub(crate) fn sample(&self, hz: NonZeroU32) -> Attr {
        let mut attr = self.timer(Duration::from_secs(1) / hz.get());
        attr.sample_type |= u64::from(abi::PERF_SAMPLE_IP) | self.group();
        attr.set_exclude_idle(1);
        self.with_stacks(attr)
    }

    /// The flag for the control group, if it is wanted.
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
