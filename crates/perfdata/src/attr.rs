//! `struct perf_event_attr`: the parameters with which one event was opened
//! (`include/uapi/linux/perf_event.h`).

use crate::cursor::Order;
pub(crate) use crate::format::{flag, kind, read, sample};

/// Bytes of the first published `perf_event_attr`; a recorded size of 0 means this.
pub(crate) const SIZE_VER0: usize = 64;

/// The fields of an attr that holdup uses. Fields the recording kernel did not know are 0.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Attr {
    pub(crate) kind: u32,
    pub(crate) config: u64,
    /// Events per sample; samples per second if [`flag::FREQ`] is set.
    pub(crate) sample_period: u64,
    pub(crate) sample_type: u64,
    pub(crate) read_format: u64,
    pub(crate) flags: u64,
    pub(crate) precise_ip: u8,
    pub(crate) clockid: i32,
    /// The user-space registers that samples carry, one bit per register.
    pub(crate) regs_user: u64,
    /// Ids of the event's instances (one per CPU or thread).
    pub(crate) ids: Vec<u64>,
    /// Name from EVENT_DESC or EVENT_UPDATE.
    pub(crate) name: Option<String>,
}

impl Attr {
    /// Whether the event is a hardware counter.
    pub(crate) fn counts_hardware(&self) -> bool {
        matches!(self.kind, kind::HARDWARE | kind::HW_CACHE | kind::RAW)
    }

    /// The size of the attr at the start of `bytes`, by its own size field.
    pub(crate) fn size(bytes: &[u8], order: Order) -> usize {
        match order.u32(bytes, 4) as usize {
            0 => SIZE_VER0,
            n => n,
        }
    }

    /// Parse; `None` if `bytes` cannot hold the smallest attr.
    pub(crate) fn parse(bytes: &[u8], order: Order) -> Option<Attr> {
        if bytes.len() < SIZE_VER0 {
            return None;
        }
        // Bytes beyond the recorded size are not part of this attr.
        let bytes = &bytes[..Attr::size(bytes, order).clamp(SIZE_VER0, bytes.len())];
        let mut flags = order.u64(bytes, 40);
        if order == Order::Big {
            // Bitfields fill a big-endian word from its most significant bit.
            flags = flags.reverse_bits();
        }
        let precise = (flags >> 15 & 3) as u8;
        Some(Attr {
            kind: order.u32(bytes, 0),
            config: order.u64(bytes, 8),
            sample_period: order.u64(bytes, 16),
            sample_type: order.u64(bytes, 24),
            read_format: order.u64(bytes, 32),
            flags,
            // The reversal above also reversed the one field wider than a bit.
            precise_ip: if order == Order::Big {
                precise >> 1 | (precise & 1) << 1
            } else {
                precise
            },
            clockid: order.u32(bytes, 92) as i32,
            regs_user: order.u64(bytes, 80),
            ids: Vec::new(),
            name: None,
        })
    }

    /// The period of a sample that does not carry one: the attr's, unless that is a frequency.
    pub(crate) fn default_period(&self) -> u64 {
        if self.sample_type & sample::PERIOD == 0 && !self.has(flag::FREQ) {
            self.sample_period
        } else {
            0
        }
    }

    /// Whether its samples carry the values of all counters of its group, each with its id. False
    /// for inherited events: their values are per thread although all threads share one id.
    pub(crate) fn reads_group(&self) -> bool {
        self.sample_type & sample::READ != 0
            && self.read_format & read::GROUP != 0
            && self.read_format & read::ID != 0
            && !self.has(flag::INHERIT)
    }

    /// Whether its samples show which system call a thread is in: they have the kernel's part of
    /// the call chain, and the one user register that holds a call's first argument (`di` of
    /// x86-64, `x0` of arm64), as `holdup record` requests it.
    pub(crate) fn tells_calls(&self) -> bool {
        /// `1 << PERF_REG_X86_DI`, `1 << PERF_REG_ARM64_X0`.
        const FIRST_ARGUMENT: [u64; 2] = [1 << 5, 1];
        let both = sample::CALLCHAIN | sample::REGS_USER;
        self.sample_type & (both | sample::BRANCH_STACK) == both
            && FIRST_ARGUMENT.contains(&self.regs_user)
    }

    /// Whether its samples have call chains that reach into user space, or might.
    pub(crate) fn has_chains(&self) -> bool {
        let names_calls = self.tells_calls() && self.has(flag::EXCLUDE_CALLCHAIN_USER);
        self.sample_type & sample::CALLCHAIN != 0 && !names_calls
    }

    /// Whether its samples carry the thread's control group.
    pub(crate) fn tells_group(&self) -> bool {
        self.sample_type & (sample::CGROUP | sample::AUX) == sample::CGROUP
    }

    /// Whether the event takes no samples and is only read together with others.
    pub(crate) fn only_counts(&self) -> bool {
        self.sample_period == 0
    }

    pub(crate) fn has(&self, flag: u64) -> bool {
        self.flags & flag != 0
    }

    /// Name of a counter from its type and config, as perf prints it; `None` for tracepoints and
    /// for types that only the recording machine could name.
    pub(crate) fn counter_name(&self) -> Option<String> {
        const HARDWARE: [&str; 10] = [
            "cycles",
            "instructions",
            "cache-references",
            "cache-misses",
            "branches",
            "branch-misses",
            "bus-cycles",
            "stalled-cycles-frontend",
            "stalled-cycles-backend",
            "ref-cycles",
        ];
        const SOFTWARE: [&str; 12] = [
            "cpu-clock",
            "task-clock",
            "page-faults",
            "context-switches",
            "cpu-migrations",
            "minor-faults",
            "major-faults",
            "alignment-faults",
            "emulation-faults",
            "dummy",
            "bpf-output",
            "cgroup-switches",
        ];
        let config = usize::try_from(self.config).ok();
        let base = match self.kind {
            kind::HARDWARE => config
                .and_then(|c| HARDWARE.get(c).copied())
                .map_or_else(|| "unknown-hardware".into(), String::from),
            kind::SOFTWARE => config
                .and_then(|c| SOFTWARE.get(c).copied())
                .map_or_else(|| "unknown-software".into(), String::from),
            kind::HW_CACHE => cache_name(self.config),
            kind::RAW => format!("raw 0x{:x}", self.config),
            kind::BREAKPOINT => "mem".to_owned(),
            _ => return None,
        };
        Some(base + &self.modifiers())
    }

    /// The modifiers (`:u`, `:pp`, `:HG`) that perf appends to events not opened with the defaults.
    fn modifiers(&self) -> String {
        let mut m = String::new();
        let levels =
            [(flag::EXCLUDE_KERNEL, 'k'), (flag::EXCLUDE_USER, 'u'), (flag::EXCLUDE_HV, 'h')];
        let mut guest_excluded_by_default = false;
        if levels.iter().any(|&(bit, _)| self.has(bit)) {
            m.extend(levels.iter().filter(|&&(bit, _)| !self.has(bit)).map(|&(_, c)| c));
            guest_excluded_by_default = true;
        }
        if self.precise_ip > 0 {
            m.extend(std::iter::repeat_n('p', self.precise_ip as usize));
            guest_excluded_by_default = true;
        }
        if self.has(flag::EXCLUDE_HOST)
            || self.has(flag::EXCLUDE_GUEST) == guest_excluded_by_default
        {
            m.extend((!self.has(flag::EXCLUDE_HOST)).then_some('H'));
            m.extend((!self.has(flag::EXCLUDE_GUEST)).then_some('G'));
        }
        if m.is_empty() { m } else { format!(":{m}") }
    }
}

/// Name of a cache event, e.g. `L1-dcache-load-misses`: cache, operation and result are a byte
/// each.
fn cache_name(config: u64) -> String {
    const CACHE: [&str; 7] = ["L1-dcache", "L1-icache", "LLC", "dTLB", "iTLB", "branch", "node"];
    const OPS: [(&str, &str); 3] =
        [("load", "loads"), ("store", "stores"), ("prefetch", "prefetches")];
    let (cache, op, result) = (config & 0xff, config >> 8 & 0xff, config >> 16 & 0xff);
    match (CACHE.get(cache as usize), OPS.get(op as usize), result) {
        (Some(cache), Some((_, plural)), 0) => format!("{cache}-{plural}"),
        (Some(cache), Some((singular, _)), 1) => format!("{cache}-{singular}-misses"),
        _ => "unknown-ext-hardware-cache-type".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attr(kind: u32, config: u64, flags: u64, precise_ip: u8) -> Attr {
        Attr { kind, config, flags, precise_ip, ..Attr::default() }
    }

    #[test]
    fn names_are_perfs() {
        assert_eq!(attr(0, 0, flag::EXCLUDE_GUEST, 0).counter_name().unwrap(), "cycles");
        assert_eq!(attr(1, 9, 0, 0).counter_name().unwrap(), "dummy:HG");
        let user = flag::EXCLUDE_KERNEL | flag::EXCLUDE_HV;
        assert_eq!(attr(0, 1, user, 0).counter_name().unwrap(), "instructions:u");
        assert_eq!(attr(0, 0, 0, 3).counter_name().unwrap(), "cycles:ppp");
        assert_eq!(
            attr(3, 0x1_00_00, flag::EXCLUDE_GUEST, 0).counter_name().unwrap(),
            "L1-dcache-load-misses"
        );
        assert_eq!(attr(2, 0x174, 0, 0).counter_name(), None);
    }

    #[test]
    fn big_endian_bitfields_run_from_the_top() {
        let mut bytes = [0u8; 136];
        bytes[..4].copy_from_slice(&2u32.to_be_bytes());
        bytes[4..8].copy_from_slice(&136u32.to_be_bytes());
        // sample_id_all is bit 18: third byte, third bit from the top. precise_ip = 1 is bit 16.
        bytes[40 + 2] = 0x20 | 0x80;
        let a = Attr::parse(&bytes, Order::Big).unwrap();
        assert_eq!(
            (a.kind, a.flags & flag::SAMPLE_ID_ALL, a.precise_ip),
            (2, flag::SAMPLE_ID_ALL, 1)
        );
        assert!(Attr::parse(&bytes[..63], Order::Big).is_none());
    }
}
