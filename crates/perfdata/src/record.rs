//! Record types (`include/uapi/linux/perf_event.h`, `enum perf_event_type`; from 64 on perf's
//! own, kernel `tools/lib/perf/include/perf/event.h`).

#![allow(missing_docs)]

use holdup_tracepoint::Endian;

pub(crate) const MMAP: u32 = 1;
pub(crate) const LOST: u32 = 2;
pub(crate) const COMM: u32 = 3;
pub(crate) const EXIT: u32 = 4;
pub(crate) const THROTTLE: u32 = 5;
pub(crate) const FORK: u32 = 7;
pub(crate) const SAMPLE: u32 = 9;
pub(crate) const AUX: u32 = 11;
pub(crate) const LOST_SAMPLES: u32 = 13;
pub(crate) const SWITCH: u32 = 14;
pub(crate) const SWITCH_CPU_WIDE: u32 = 15;
/// Highest type the kernel writes as of Linux 6.18 (CALLCHAIN_DEFERRED).
pub(crate) const LAST_KERNEL: u32 = 22;

pub(crate) const HEADER_ATTR: u32 = 64;
pub(crate) const HEADER_EVENT_TYPE: u32 = 65;
pub(crate) const HEADER_TRACING_DATA: u32 = 66;
pub(crate) const FINISHED_ROUND: u32 = 68;
pub(crate) const ID_INDEX: u32 = 69;
pub(crate) const AUXTRACE: u32 = 71;
pub(crate) const THREAD_MAP: u32 = 73;
pub(crate) const EVENT_UPDATE: u32 = 78;
pub(crate) const HEADER_FEATURE: u32 = 80;
pub(crate) const COMPRESSED: u32 = 81;
pub(crate) const FINISHED_INIT: u32 = 82;
pub(crate) const COMPRESSED2: u32 = 83;
/// Highest type perf writes as of Linux 6.18 (SCHEDSTAT_DOMAIN).
pub(crate) const LAST_PERF: u32 = 86;

/// `PERF_RECORD_MISC_COMM_EXEC`, `_SWITCH_OUT` (bit 13) and `_SWITCH_OUT_PREEMPT`.
pub(crate) const MISC_COMM_EXEC: u16 = 1 << 13;
pub(crate) const MISC_SWITCH_OUT: u16 = 1 << 13;
pub(crate) const MISC_SWITCH_OUT_PREEMPT: u16 = 1 << 14;

/// Bytes of `struct perf_event_header`: type, misc, size.
pub(crate) const HEADER: usize = 8;

/// Name without `PERF_RECORD_`, for messages and the record census.
pub(crate) fn name(kind: u32) -> &'static str {
    const KERNEL: [&str; 22] = [
        "MMAP",
        "LOST",
        "COMM",
        "EXIT",
        "THROTTLE",
        "UNTHROTTLE",
        "FORK",
        "READ",
        "SAMPLE",
        "MMAP2",
        "AUX",
        "ITRACE_START",
        "LOST_SAMPLES",
        "SWITCH",
        "SWITCH_CPU_WIDE",
        "NAMESPACES",
        "KSYMBOL",
        "BPF_EVENT",
        "CGROUP",
        "TEXT_POKE",
        "AUX_OUTPUT_HW_ID",
        "CALLCHAIN_DEFERRED",
    ];
    const PERF: [&str; 23] = [
        "HEADER_ATTR",
        "HEADER_EVENT_TYPE",
        "HEADER_TRACING_DATA",
        "HEADER_BUILD_ID",
        "FINISHED_ROUND",
        "ID_INDEX",
        "AUXTRACE_INFO",
        "AUXTRACE",
        "AUXTRACE_ERROR",
        "THREAD_MAP",
        "CPU_MAP",
        "STAT_CONFIG",
        "STAT",
        "STAT_ROUND",
        "EVENT_UPDATE",
        "TIME_CONV",
        "HEADER_FEATURE",
        "COMPRESSED",
        "FINISHED_INIT",
        "COMPRESSED2",
        "BPF_METADATA",
        "SCHEDSTAT_CPU",
        "SCHEDSTAT_DOMAIN",
    ];
    let named = match kind {
        0 => None,
        1..HEADER_ATTR => KERNEL.get(kind as usize - 1),
        _ => PERF.get((kind - HEADER_ATTR) as usize),
    };
    named.copied().unwrap_or("unknown")
}

/// Whether a record of this type has ever been written.
pub(crate) fn is_known(kind: u32) -> bool {
    matches!(kind, MMAP..=LAST_KERNEL | HEADER_ATTR..=LAST_PERF)
}

/// The record at `at`, if all of it is there.
#[inline(always)]
pub(crate) fn next_record<E: Endian>(buf: &[u8], at: usize) -> Option<(u32, &[u8])> {
    let rest = buf.get(at..)?;
    let header = rest.first_chunk::<{ HEADER }>()?;
    let size = E::u16(header, 6) as usize;
    if size < HEADER {
        return None;
    }
    Some((E::u32(header, 0), rest.get(..size)?))
}

/// Bytes that follow a record without being part of it.
pub(crate) fn payload<E: Endian>(kind: u32, rec: &[u8]) -> u64 {
    match kind {
        HEADER_TRACING_DATA if rec.len() >= 12 => E::u32(rec, 8) as u64,
        AUXTRACE if rec.len() >= 16 => E::u64(rec, 8),
        _ => 0,
    }
}
