//! The numbers of the perf.data format, for readers and writers.
//!
//! From the kernel's `include/uapi/linux/perf_event.h`, `tools/perf/util/header.h`,
//! `tools/lib/perf/include/perf/event.h` and `tools/perf/Documentation/perf.data-file-format.txt`.

#![allow(missing_docs, reason = "the names are the kernel's, which documents them")]

/// First eight bytes of a file written by a little-endian and by a big-endian machine.
pub const MAGIC: [&[u8; 8]; 2] = [b"PERFILE2", b"2ELIFREP"];

/// Where the parts of the file header are (`struct perf_file_header`).
pub mod header {
    /// Bytes of the header of a pipe: magic and size.
    pub const PIPE_SIZE: u64 = 16;
    /// Bytes of a file's header without and with the bitmap of features.
    pub const SIZE_WITHOUT_FEATURES: u64 = 72;
    pub const FULL_SIZE: u64 = 104;

    /// Offsets of what follows the magic: the header's size, bytes per entry of the attrs section,
    /// then sections (offset and size) and the bitmap.
    pub const SIZE: usize = 8;
    pub const ATTR_ENTRY: usize = 16;
    pub const ATTRS: usize = 24;
    pub const DATA: usize = 40;
    pub const EVENT_TYPES: usize = 56;
    pub const FEATURES: usize = 72;
}

/// Bytes of `struct perf_file_section`: offset and size.
pub const SECTION: usize = 16;

/// Strings of feature sections are padded to a multiple of this many bytes (perf's `NAME_ALIGN`).
pub const STRING_ALIGN: usize = 64;

/// The first bytes of a tracing-data section; the version follows.
pub const TRACING_DATA_MAGIC: &[u8; 10] = b"\x17\x08\x44tracing";

/// Types of records; from 64 on they are perf's own.
pub mod record {
    pub const MMAP: u32 = 1;
    pub const LOST: u32 = 2;
    pub const COMM: u32 = 3;
    pub const EXIT: u32 = 4;
    pub const THROTTLE: u32 = 5;
    pub const FORK: u32 = 7;
    pub const SAMPLE: u32 = 9;
    pub const MMAP2: u32 = 10;
    pub const AUX: u32 = 11;
    pub const LOST_SAMPLES: u32 = 13;
    pub const SWITCH: u32 = 14;
    pub const SWITCH_CPU_WIDE: u32 = 15;
    pub const NAMESPACES: u32 = 16;
    pub const KSYMBOL: u32 = 17;
    pub const BPF_EVENT: u32 = 18;
    pub const CGROUP: u32 = 19;
    pub const TEXT_POKE: u32 = 20;
    /// Highest type the kernel writes as of Linux 6.18 (CALLCHAIN_DEFERRED).
    pub const LAST_KERNEL: u32 = 22;

    pub const HEADER_ATTR: u32 = 64;
    pub const HEADER_EVENT_TYPE: u32 = 65;
    pub const HEADER_TRACING_DATA: u32 = 66;
    pub const HEADER_BUILD_ID: u32 = 67;
    pub const FINISHED_ROUND: u32 = 68;
    pub const ID_INDEX: u32 = 69;
    pub const AUXTRACE_INFO: u32 = 70;
    pub const AUXTRACE: u32 = 71;
    pub const AUXTRACE_ERROR: u32 = 72;
    pub const THREAD_MAP: u32 = 73;
    pub const EVENT_UPDATE: u32 = 78;
    pub const HEADER_FEATURE: u32 = 80;
    pub const COMPRESSED: u32 = 81;
    pub const FINISHED_INIT: u32 = 82;
    pub const COMPRESSED2: u32 = 83;
    /// Highest type perf writes as of Linux 6.18 (SCHEDSTAT_DOMAIN).
    pub const LAST_PERF: u32 = 86;

    /// `PERF_RECORD_MISC_KERNEL` and `_USER`: whether a mapping is in kernel or user memory.
    pub const MISC_KERNEL: u16 = 1;
    pub const MISC_USER: u16 = 2;
    /// `PERF_RECORD_MISC_CPUMODE_MASK`: the bits that hold this.
    pub const MISC_CPUMODE: u16 = 7;
    /// `PERF_RECORD_MISC_FORK_EXEC`: a thread read from `/proc`, whose mappings come as records.
    pub const MISC_FORK_EXEC: u16 = 1 << 13;
    /// `PERF_RECORD_MISC_MMAP_BUILD_ID`: a mapping that carries the build id of its file.
    pub const MISC_MMAP_BUILD_ID: u16 = 1 << 14;
    /// `PERF_RECORD_MISC_MMAP_DATA`: a mapping without code.
    pub const MISC_MMAP_DATA: u16 = 1 << 13;
    /// `PERF_RECORD_MISC_BUILD_ID_SIZE`: a build id with an explicit length.
    pub const MISC_BUILD_ID_SIZE: u16 = 1 << 15;
    /// `PERF_RECORD_KSYMBOL_FLAGS_UNREGISTER`: the function was removed.
    pub const KSYMBOL_UNREGISTER: u16 = 1;
    /// `PERF_RECORD_MISC_COMM_EXEC`, `_SWITCH_OUT` (bit 13) and `_SWITCH_OUT_PREEMPT`.
    pub const MISC_COMM_EXEC: u16 = 1 << 13;
    pub const MISC_SWITCH_OUT: u16 = 1 << 13;
    pub const MISC_SWITCH_OUT_PREEMPT: u16 = 1 << 14;

    /// Bytes of `struct perf_event_header`: type, misc, size.
    pub const HEADER: usize = 8;
}

/// Numbers of the feature sections, which are bits of the header's bitmap.
pub mod feature {
    /// perf never sets this bit, and skips the section. holdup sets it while a recording is in
    /// progress: the table of sections is then a FINISHED_ROUND record, and this is the table's
    /// entry for the record's header.
    pub const RESERVED: u32 = 0;
    pub const TRACING_DATA: u32 = 1;
    pub const BUILD_ID: u32 = 2;
    pub const HOSTNAME: u32 = 3;
    pub const OSRELEASE: u32 = 4;
    pub const VERSION: u32 = 5;
    pub const ARCH: u32 = 6;
    pub const NRCPUS: u32 = 7;
    pub const CPUDESC: u32 = 8;
    pub const CPUID: u32 = 9;
    pub const TOTAL_MEM: u32 = 10;
    pub const CMDLINE: u32 = 11;
    pub const EVENT_DESC: u32 = 12;
    pub const CPU_TOPOLOGY: u32 = 13;
    pub const NUMA_TOPOLOGY: u32 = 14;
    pub const BRANCH_STACK: u32 = 15;
    pub const PMU_MAPPINGS: u32 = 16;
    pub const AUXTRACE: u32 = 18;
    pub const CACHE: u32 = 20;
    pub const SAMPLE_TIME: u32 = 21;
    pub const MEM_TOPOLOGY: u32 = 22;
    pub const CLOCKID: u32 = 23;
    pub const DIR_FORMAT: u32 = 24;
    pub const COMPRESSED: u32 = 27;
    pub const CLOCK_DATA: u32 = 29;
    /// What the recorder saw of file descriptors, as text. perf has no section of this number and
    /// skips it.
    pub const DESCRIPTORS: u32 = 200;
    /// What the recorder read of control groups, as text; perf skips this section, too.
    pub const CONTROL_GROUPS: u32 = 201;
    /// What the recorder knows of runtimes that schedule tasks of their own, as text; perf skips
    /// this section, too.
    pub const RUNTIMES: u32 = 202;
    /// Where the sampled code spins, as text; perf skips this section, too.
    pub const SPINS: u32 = 203;
}

/// What EVENT_UPDATE records carry: the event's name.
pub const EVENT_UPDATE_NAME: u64 = 2;
/// Type of compression in a COMPRESSED section.
pub const COMPRESSED_ZSTD: u32 = 1;

/// `perf_event_attr::sample_type` bits, in the kernel's numbering.
pub mod sample {
    pub const IP: u64 = 1 << 0;
    pub const TID: u64 = 1 << 1;
    pub const TIME: u64 = 1 << 2;
    pub const ADDR: u64 = 1 << 3;
    pub const READ: u64 = 1 << 4;
    pub const CALLCHAIN: u64 = 1 << 5;
    pub const ID: u64 = 1 << 6;
    pub const CPU: u64 = 1 << 7;
    pub const PERIOD: u64 = 1 << 8;
    pub const STREAM_ID: u64 = 1 << 9;
    pub const RAW: u64 = 1 << 10;
    pub const BRANCH_STACK: u64 = 1 << 11;
    pub const REGS_USER: u64 = 1 << 12;
    pub const STACK_USER: u64 = 1 << 13;
    pub const IDENTIFIER: u64 = 1 << 16;
    pub const AUX: u64 = 1 << 20;
    pub const CGROUP: u64 = 1 << 21;
    pub const DATA_PAGE_SIZE: u64 = 1 << 22;
    pub const CODE_PAGE_SIZE: u64 = 1 << 23;
}

/// Marks between the addresses of a call chain: whose they are from there on. None is an address.
pub mod context {
    /// `PERF_CONTEXT_MAX`: the lowest of the marks.
    pub const FIRST: u64 = -4095i64 as u64;
    pub const KERNEL: u64 = -128i64 as u64;
    pub const USER: u64 = -512i64 as u64;
}

/// `perf_event_attr::read_format` bits.
pub mod read {
    pub const TOTAL_TIME_ENABLED: u64 = 1 << 0;
    pub const TOTAL_TIME_RUNNING: u64 = 1 << 1;
    pub const ID: u64 = 1 << 2;
    pub const GROUP: u64 = 1 << 3;
    pub const LOST: u64 = 1 << 4;
}

/// `perf_event_attr::type`.
pub mod kind {
    pub const HARDWARE: u32 = 0;
    pub const SOFTWARE: u32 = 1;
    pub const TRACEPOINT: u32 = 2;
    pub const HW_CACHE: u32 = 3;
    pub const RAW: u32 = 4;
    pub const BREAKPOINT: u32 = 5;

    /// `PERF_COUNT_SW_DUMMY`, as `config` of [`SOFTWARE`]: it never counts.
    pub const DUMMY: u64 = 9;
}

/// Bits of the flag word, counted from its first declared bitfield.
pub mod flag {
    pub const INHERIT: u64 = 1 << 1;
    pub const EXCLUDE_USER: u64 = 1 << 4;
    pub const EXCLUDE_KERNEL: u64 = 1 << 5;
    pub const EXCLUDE_HV: u64 = 1 << 6;
    pub const FREQ: u64 = 1 << 10;
    pub const SAMPLE_ID_ALL: u64 = 1 << 18;
    pub const EXCLUDE_HOST: u64 = 1 << 19;
    pub const EXCLUDE_GUEST: u64 = 1 << 20;
    pub const EXCLUDE_CALLCHAIN_USER: u64 = 1 << 22;
    pub const USE_CLOCKID: u64 = 1 << 25;
    pub const CONTEXT_SWITCH: u64 = 1 << 26;
    pub const CGROUP: u64 = 1 << 32;
    pub const BUILD_ID: u64 = 1 << 34;
}
