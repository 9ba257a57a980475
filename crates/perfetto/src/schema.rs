//! Numbers of the fields that are read, from the descriptors of perfetto 0.59.
//!
//! They are defined in `protos/perfetto/trace/perfetto_trace.proto` of Perfetto's sources; the
//! Python package `perfetto` has them as descriptors. The events themselves are in
//! `ftrace_events.txt`.

/// Fields of `Trace`.
pub(crate) mod trace {
    pub(crate) const PACKET: u32 = 1;
}

/// Fields of `TracePacket`.
pub(crate) mod packet {
    pub(crate) const FTRACE_EVENTS: u32 = 1;
    pub(crate) const PROCESS_TREE: u32 = 2;
    pub(crate) const TRUSTED_UID: u32 = 3;
    pub(crate) const CLOCK_SNAPSHOT: u32 = 6;
    pub(crate) const TIMESTAMP: u32 = 8;
    pub(crate) const TRUSTED_PACKET_SEQUENCE_ID: u32 = 10;
    pub(crate) const INTERNED_DATA: u32 = 12;
    pub(crate) const SEQUENCE_FLAGS: u32 = 13;
    pub(crate) const TRACE_CONFIG: u32 = 33;
    pub(crate) const FTRACE_STATS: u32 = 34;
    pub(crate) const TRACE_STATS: u32 = 35;
    pub(crate) const INCREMENTAL_STATE_CLEARED: u32 = 41;
    pub(crate) const PREVIOUS_PACKET_DROPPED: u32 = 42;
    pub(crate) const SYSTEM_INFO: u32 = 45;
    pub(crate) const COMPRESSED_PACKETS: u32 = 50;
    pub(crate) const PERF_SAMPLE: u32 = 66;
    pub(crate) const TIMESTAMP_CLOCK_ID: u32 = 58;
    pub(crate) const TRACE_PACKET_DEFAULTS: u32 = 59;
    pub(crate) const TRUSTED_PID: u32 = 79;
    pub(crate) const FIRST_PACKET_ON_SEQUENCE: u32 = 87;
    pub(crate) const MACHINE_ID: u32 = 98;
    pub(crate) const ZSTD_COMPRESSED_PACKETS: u32 = 133;
    /// Data of Perfetto's own tests, which tools ignore.
    pub(crate) const FOR_TESTING: u32 = 900;
    /// The largest field number assigned so far.
    pub(crate) const LAST: u32 = FOR_TESTING;

    /// The fields above that are numbers; the other fields of a packet are messages, bytes or text.
    pub(crate) const NUMBERS: &[u32] = &[
        TRUSTED_UID,
        TIMESTAMP,
        TRUSTED_PACKET_SEQUENCE_ID,
        SEQUENCE_FLAGS,
        INCREMENTAL_STATE_CLEARED,
        PREVIOUS_PACKET_DROPPED,
        TIMESTAMP_CLOCK_ID,
        TRUSTED_PID,
        FIRST_PACKET_ON_SEQUENCE,
        MACHINE_ID,
    ];

    /// `SEQ_INCREMENTAL_STATE_CLEARED` of the sequence flags: interned data is forgotten.
    pub(crate) const SEQ_INCREMENTAL_STATE_CLEARED: u64 = 1;
}

/// Fields of `FtraceEventBundle`.
pub(crate) mod bundle {
    pub(crate) const CPU: u32 = 1;
    pub(crate) const EVENT: u32 = 2;
    pub(crate) const LOST_EVENTS: u32 = 3;
    pub(crate) const COMPACT_SCHED: u32 = 4;
    pub(crate) const FTRACE_CLOCK: u32 = 5;
    pub(crate) const FTRACE_TIMESTAMP: u32 = 6;
    pub(crate) const BOOT_TIMESTAMP: u32 = 7;
    pub(crate) const ERROR: u32 = 8;
    pub(crate) const GENERIC_EVENT_DESCRIPTORS: u32 = 11;
}

/// Fields of `FtraceEventBundle.GenericEventDescriptor`.
pub(crate) mod descriptor {
    pub(crate) const FIELD_ID: u32 = 1;
    pub(crate) const GROUP_NAME: u32 = 3;
    pub(crate) const EVENT_DESCRIPTOR: u32 = 2;
    /// Fields of `google.protobuf.DescriptorProto`.
    pub(crate) const NAME: u32 = 1;
    pub(crate) const FIELD: u32 = 2;
    /// Fields of `google.protobuf.FieldDescriptorProto`.
    pub(crate) const FIELD_NAME: u32 = 1;
    pub(crate) const FIELD_NUMBER: u32 = 3;
}

/// Fields of `FtraceEventBundle.CompactSched`.
pub(crate) mod compact {
    pub(crate) const SWITCH_TIMESTAMP: u32 = 1;
    pub(crate) const SWITCH_PREV_STATE: u32 = 2;
    pub(crate) const SWITCH_NEXT_PID: u32 = 3;
    pub(crate) const SWITCH_NEXT_PRIO: u32 = 4;
    pub(crate) const INTERN_TABLE: u32 = 5;
    pub(crate) const SWITCH_NEXT_COMM_INDEX: u32 = 6;
    pub(crate) const WAKING_TIMESTAMP: u32 = 7;
    pub(crate) const WAKING_PID: u32 = 8;
    pub(crate) const WAKING_TARGET_CPU: u32 = 9;
    pub(crate) const WAKING_PRIO: u32 = 10;
    pub(crate) const WAKING_COMM_INDEX: u32 = 11;
    pub(crate) const WAKING_COMMON_FLAGS: u32 = 12;
}

/// Fields of `FtraceEvent`. Every other field is a message; its field number identifies the event.
pub(crate) mod event {
    pub(crate) const TIMESTAMP: u32 = 1;
    pub(crate) const PID: u32 = 2;
    pub(crate) const COMMON_FLAGS: u32 = 5;
    /// Events that this crate handles specially.
    pub(crate) const SCHED_SWITCH: u32 = 4;
    pub(crate) const SCHED_WAKING: u32 = 20;
    pub(crate) const TASK_RENAME: u32 = 236;
    /// `GenericFtraceEvent`: an event that the recorder did not know, with its fields by name.
    pub(crate) const GENERIC: u32 = 327;
}

/// Fields of `GenericFtraceEvent` and its `Field`.
pub(crate) mod generic {
    pub(crate) const EVENT_NAME: u32 = 1;
    pub(crate) const FIELD: u32 = 2;
    pub(crate) const NAME: u32 = 1;
    pub(crate) const STR_VALUE: u32 = 3;
    pub(crate) const INT_VALUE: u32 = 4;
    pub(crate) const UINT_VALUE: u32 = 5;
}

/// Values of `FtraceClock`; without one the events are stamped with the boot clock.
pub(crate) mod clock {
    pub(crate) const GLOBAL: u64 = 2;
    pub(crate) const LOCAL: u64 = 3;
    pub(crate) const MONO_RAW: u64 = 4;
    /// Values of `BuiltinClock`, as in snapshots.
    pub(crate) const BUILTIN_MONOTONIC_RAW: u64 = 5;
    pub(crate) const BUILTIN_BOOTTIME: u64 = 6;
    pub(crate) const LAST_BUILTIN: u64 = 63;
}

/// Fields of `ClockSnapshot` and its `Clock`.
pub(crate) mod snapshot {
    pub(crate) const CLOCKS: u32 = 1;
    pub(crate) const CLOCK_ID: u32 = 1;
    pub(crate) const TIMESTAMP: u32 = 2;
}

/// Fields of `ProcessTree`, its `Process` and its `Thread`.
pub(crate) mod tree {
    pub(crate) const PROCESSES: u32 = 1;
    pub(crate) const THREADS: u32 = 2;
    pub(crate) const PROCESS_PID: u32 = 1;
    pub(crate) const PROCESS_PPID: u32 = 2;
    pub(crate) const PROCESS_CMDLINE: u32 = 3;
    pub(crate) const PROCESS_IS_KTHREAD: u32 = 8;
    pub(crate) const PROCESS_CMDLINE_IS_COMM: u32 = 9;
    pub(crate) const THREAD_TID: u32 = 1;
    pub(crate) const THREAD_NAME: u32 = 2;
    pub(crate) const THREAD_TGID: u32 = 3;
}

/// Fields of `SystemInfo` and its `Utsname`.
pub(crate) mod system {
    pub(crate) const UTSNAME: u32 = 1;
    pub(crate) const ANDROID_BUILD_FINGERPRINT: u32 = 2;
    pub(crate) const TRACING_SERVICE_VERSION: u32 = 4;
    pub(crate) const NUM_CPUS: u32 = 8;
    pub(crate) const SYSTEM_RAM_BYTES: u32 = 16;
    pub(crate) const UTS_RELEASE: u32 = 3;
    pub(crate) const UTS_MACHINE: u32 = 4;
}

/// Fields of `FtraceStats` and its `FtraceCpuStats`.
pub(crate) mod stats {
    pub(crate) const PHASE: u32 = 1;
    pub(crate) const CPU_STATS: u32 = 2;
    pub(crate) const UNKNOWN_FTRACE_EVENTS: u32 = 6;
    pub(crate) const FAILED_FTRACE_EVENTS: u32 = 7;
    pub(crate) const CPU: u32 = 1;
    pub(crate) const OVERRUN: u32 = 3;
    pub(crate) const COMMIT_OVERRUN: u32 = 4;
    pub(crate) const DROPPED_EVENTS: u32 = 8;
    pub(crate) const START_OF_TRACE: u64 = 1;
}

/// Fields of `TraceConfig` down to `FtraceConfig`.
pub(crate) mod config {
    pub(crate) const DATA_SOURCES: u32 = 2;
    pub(crate) const DATA_SOURCE_CONFIG: u32 = 1;
    pub(crate) const FTRACE_CONFIG: u32 = 100;
    pub(crate) const FTRACE_EVENTS: u32 = 1;
    pub(crate) const TIDS_TO_TRACE: u32 = 35;
}

/// Fields of `TraceStats` and its `BufferStats`.
pub(crate) mod buffers {
    pub(crate) const BUFFER_STATS: u32 = 1;
    pub(crate) const CHUNKS_OVERWRITTEN: u32 = 3;
    pub(crate) const CHUNKS_DISCARDED: u32 = 18;
}

/// Fields of `InternedData` and its `InternedString`.
pub(crate) mod interned {
    pub(crate) const FUNCTION_NAMES: u32 = 5;
    pub(crate) const FRAMES: u32 = 6;
    pub(crate) const CALLSTACKS: u32 = 7;
    pub(crate) const MAPPING_PATHS: u32 = 17;
    pub(crate) const MAPPINGS: u32 = 19;
    pub(crate) const KERNEL_SYMBOLS: u32 = 26;
    pub(crate) const IID: u32 = 1;
    pub(crate) const STR: u32 = 2;
}

/// Fields of `PerfSample`, of messages that it refers to (`Frame`, `Mapping`, `Callstack`), and of
/// its defaults (`TracePacketDefaults`, `PerfSampleDefaults`).
pub(crate) mod perf {
    pub(crate) const CPU: u32 = 1;
    pub(crate) const PID: u32 = 2;
    pub(crate) const TID: u32 = 3;
    pub(crate) const CALLSTACK_IID: u32 = 4;
    pub(crate) const UNWIND_ERROR: u32 = 16;
    pub(crate) const UNWIND_ERROR_NONE: u64 = 1;
    pub(crate) const KERNEL_RECORDS_LOST: u32 = 17;
    pub(crate) const SAMPLE_SKIPPED_REASON: u32 = 18;
    pub(crate) const FRAME_FUNCTION: u32 = 2;
    pub(crate) const FRAME_MAPPING: u32 = 3;
    pub(crate) const FRAME_REL_PC: u32 = 4;
    pub(crate) const FRAME_KIND: u32 = 7;
    pub(crate) const KIND_KERNEL: u64 = 2;
    pub(crate) const MAPPING_PATH: u32 = 7;
    pub(crate) const FRAME_IDS: u32 = 2;
    pub(crate) const SAMPLE_DEFAULTS: u32 = 12;
    pub(crate) const DEFAULTS_TIMEBASE: u32 = 1;
}

/// Fields of `PerfEvents.Timebase` and its `Tracepoint`.
pub(crate) mod timebase {
    pub(crate) const PERIOD: u32 = 1;
    pub(crate) const FREQUENCY: u32 = 2;
    pub(crate) const TRACEPOINT: u32 = 3;
    pub(crate) const COUNTER: u32 = 4;
    pub(crate) const RAW_EVENT: u32 = 5;
    pub(crate) const NAME: u32 = 10;
    pub(crate) const TRACEPOINT_NAME: u32 = 1;
}

/// `PerfEvents.Counter`, by perf's names.
pub(crate) mod counter {
    pub(crate) const CPU_CLOCK: usize = 1;
    pub(crate) const TASK_CLOCK: usize = 3;
    /// Counters from here on are hardware counters.
    pub(crate) const FIRST_HARDWARE: usize = 10;
    pub(crate) const NAMES: [&str; 20] = [
        "unknown counter",
        "cpu-clock",
        "page-faults",
        "task-clock",
        "context-switches",
        "cpu-migrations",
        "minor-faults",
        "major-faults",
        "alignment-faults",
        "emulation-faults",
        "cycles",
        "instructions",
        "cache-references",
        "cache-misses",
        "branch-instructions",
        "branch-misses",
        "bus-cycles",
        "stalled-cycles-frontend",
        "stalled-cycles-backend",
        "ref-cycles",
    ];
}
