//! What the numbers of `prev_state` stand for.
//!
//! The kernel's own event writes one bit per letter since Linux 4.14, and so does lttng-modules
//! 2.13. lttng-modules 2.10 wrote `task_struct::state` itself, whose bits above 0x40 differ: 0x402
//! of a kernel thread that waits for work, 0x102 of a killable sleep, 0x1000 of a preempted thread.
//! (No trace of the versions in between was available; they are read like 2.13.) Before 4.14 the
//! kernel's event held the bits of the state as well.

use crate::parse::Metadata;
use holdup_trace::{StateTable, kernel_version};

/// Bits of `task_struct::state` from 4.14 on (`include/linux/sched.h`), and `TASK_STATE_MAX`.
const BITS: [(u64, &[u8]); 12] = [
    (0x1, b"S"),
    (0x2, b"D"),
    (0x4, b"T"),
    (0x8, b"t"),
    (0x10, b"X"),
    (0x20, b"Z"),
    (0x40, b"P"),
    (0x80, b"x"),
    (0x100, b"K"),
    (0x200, b"W"),
    (0x400, b"N"),
    (0x1000, b"+"),
];

/// The table for a trace.
pub(crate) fn table(metadata: &Metadata) -> StateTable {
    let release = metadata.env("kernel_release");
    let since_4_14 = release.and_then(kernel_version).is_some_and(|v| v >= (4, 14));
    let tracer = |key: &str| metadata.env(key).and_then(|v| v.parse::<u32>().ok());
    let version = tracer("tracer_major").zip(tracer("tracer_minor"));
    let modules = metadata.env("tracer_name") == Some("lttng-modules");
    if modules && version.is_some_and(|v| v <= (2, 10)) && since_4_14 {
        return StateTable::of_format(u64::MAX, BITS);
    }
    StateTable::of_kernel(release)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse::parse;

    fn letters(tracer: u32, release: &str, raw: u64) -> String {
        let text = format!(
            "/* CTF 1.8 */ env {{ tracer_name = \"lttng-modules\"; tracer_major = 2; \
             tracer_minor = {tracer}; kernel_release = \"{release}\"; }}; \
             trace {{ major = 1; minor = 8; }};"
        );
        table(&parse(text.as_bytes()).unwrap()).state(raw).to_string()
    }

    #[test]
    fn lttng_2_10_wrote_the_bits_of_the_state_itself() {
        for (raw, state) in [(0, "R"), (1, "S"), (2, "D"), (0x1000, "R+"), (0x80, "x")] {
            assert_eq!(letters(10, "4.15.0-65-generic", raw), state, "{raw:#x}");
        }
        assert_eq!(letters(10, "4.15.0-65-generic", 0x402), "D|N");
        assert_eq!(letters(10, "4.15.0-65-generic", 0x102), "D|K");
        assert_eq!(letters(10, "4.4.0", 0x82), "D|K");
        for (raw, state) in [(2, "D"), (0x80, "I"), (0x100, "R+")] {
            assert_eq!(letters(13, "6.1.0-56-amd64", raw), state, "{raw:#x}");
        }
    }
}
