//! Steps through records, and names their types.

pub(crate) use crate::format::record::*;
use holdup_tracepoint::Endian;

/// Name of a record type without `PERF_RECORD_`, for messages and the record census.
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

/// How many bytes follow a record without being part of it.
pub(crate) fn payload<E: Endian>(kind: u32, rec: &[u8]) -> u64 {
    match kind {
        HEADER_TRACING_DATA if rec.len() >= 12 => E::u32(rec, 8) as u64,
        // Some old recorders use this number for something else, of odd size.
        AUXTRACE if rec.len() >= 16 && rec.len().is_multiple_of(8) => E::u64(rec, 8),
        _ => 0,
    }
}

/// Touches the memory beyond `at`. A loop that does little per header waits for memory at the start
/// of each page, where a processor's own prefetching ends: where a header is depends on the one
/// before.
#[inline(always)]
pub(crate) fn touch_ahead(buf: &[u8], at: usize) {
    const AHEAD: usize = 2048;
    if let Some(&soon) = buf.get(at + AHEAD) {
        std::hint::black_box(soon);
    }
}
