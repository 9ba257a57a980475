//! What the raw number of `prev_state` means on one kernel.
//!
//! The kernel changed its bits four times (`include/linux/sched.h`, `TASK_*`,
//! `include/trace/events/sched.h`):
//!
//! ```text
//!               1 2 4 8 0x10 0x20 0x40 0x80 0x100 0x200 0x400 0x800 0x1000
//! before 3.9    S D T t  Z    X    x    W    W     +
//! 3.9           S D T t  Z    X    x    K    W     P     +
//! 4.2           S D T t  Z    X    x    K    W     P     N     +
//! 4.8           S D T t  Z    X    x    K    W     P     N    new    +
//! 4.14          S D T t  X    Z    P    I    +
//! ```
//!
//! From 3.15 to 4.13 the kernel's own table prints `Z` for the bit that later means `X`, and vice
//! versa. Both mean that the thread never runs again, so the table is followed. Before 3.9 the
//! table printed `W` for `TASK_WAKEKILL` (0x80) and had no letter for `TASK_WAKING`.

use crate::{TaskState, kernel_version};
use std::sync::LazyLock;

/// How to read the raw `prev_state` of one kernel's `sched_switch`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StateTable {
    /// Bits that count; the kernel prints the others as if they were clear.
    mask: u64,
    /// Bits and their meanings, in the order in which they are removed from the number. An entry
    /// with several bits stands for all of them together.
    flags: Box<[(u64, TaskState)]>,
    origin: Origin,
}

/// Where a table comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Origin {
    /// The event's own format: right for any kernel.
    Format,
    Release,
    Assumed,
}

/// Letters from bit 0 on, for kernels before this release.
const ERAS: [((u32, u32), &[&str]); 5] = [
    ((3, 9), &["S", "D", "T", "t", "Z", "X", "x", "W", "W", "+"]),
    ((4, 2), &["S", "D", "T", "t", "Z", "X", "x", "K", "W", "P", "+"]),
    ((4, 8), &["S", "D", "T", "t", "Z", "X", "x", "K", "W", "P", "N", "+"]),
    ((4, 14), &["S", "D", "T", "t", "Z", "X", "x", "K", "W", "P", "N", "?", "+"]),
    ((u32::MAX, 0), &["S", "D", "T", "t", "X", "Z", "P", "I", "+"]),
];

impl StateTable {
    /// The table in an event's format: `flags`, bits with the letters they are printed as, of which
    /// the kernel uses those in `mask`. `+` stands for a preempted thread. Entries without bits are
    /// left out.
    pub fn of_format<'a>(
        mask: u64,
        flags: impl IntoIterator<Item = (u64, &'a [u8])>,
    ) -> StateTable {
        StateTable::new(mask, flags, Origin::Format)
    }

    fn new<'a>(
        mask: u64,
        flags: impl IntoIterator<Item = (u64, &'a [u8])>,
        origin: Origin,
    ) -> StateTable {
        let flags = flags.into_iter().filter(|f| f.0 != 0);
        let flags = flags.map(|(bits, letters)| (bits, TaskState::from_text(letters))).collect();
        StateTable { mask, flags, origin }
    }

    /// How the states are read, as a label and text for `info`, unless the file itself defines it.
    pub fn note(&self) -> Option<(String, String)> {
        let words = match self.origin {
            Origin::Format => return None,
            Origin::Release => {
                "decoded by the kernel's release, because the event format is missing"
            }
            Origin::Assumed => {
                "decoded as Linux 4.14 and later write them, because the event format is missing"
            }
        };
        Some(("states of threads".to_owned(), words.to_owned()))
    }

    /// The table of a kernel, by its release (`uname -r`) if that is known.
    pub fn of_kernel(release: Option<&str>) -> StateTable {
        release.and_then(StateTable::of_release).unwrap_or_else(|| StateTable::assumed().clone())
    }

    /// The table of the kernel `release` (`uname -r`), for traces that lack the event's print
    /// format. `None` if the release does not begin with two numbers.
    pub fn of_release(release: &str) -> Option<StateTable> {
        let version = kernel_version(release)?;
        let letters = ERAS.iter().find(|era| version < era.0)?.1;
        let flags = letters.iter().enumerate().map(|(bit, t)| (1 << bit, t.as_bytes()));
        Some(StateTable::new(u64::MAX, flags, Origin::Release))
    }

    /// The table if the kernel is not known: that of 4.14 and later, which write one bit at a time,
    /// plus bits of older kernels that these never write. Bit 0x200 has had two meanings in older
    /// kernels and none in these: unknown.
    pub fn assumed() -> &'static StateTable {
        static ASSUMED: LazyLock<StateTable> = LazyLock::new(|| {
            let older: [(u64, &[u8]); 4] =
                [(0x402, b"D|N"), (0x82, b"D|K"), (0x84, b"T|K"), (0x88, b"t|K")];
            let letters = ERAS[ERAS.len() - 1].1;
            let newer = letters.iter().enumerate().map(|(bit, t)| (1 << bit, t.as_bytes()));
            let preempted: [(u64, &[u8]); 3] = [(0x400, b"+"), (0x800, b"+"), (0x1000, b"+")];
            let flags = older.into_iter().chain(newer).chain(preempted);
            StateTable::new(u64::MAX, flags, Origin::Assumed)
        });
        &ASSUMED
    }

    /// The state for the raw number. Bits without an entry make it partly or wholly unknown.
    #[inline]
    pub fn state(&self, raw: u64) -> TaskState {
        let mut left = raw & self.mask;
        let mut state = TaskState::RUNNING;
        for &(bits, letters) in &self.flags {
            // Most threads leave in one of the first two states of every table.
            if left == 0 {
                return state;
            }
            if left & bits == bits {
                state = state.with(letters);
                left &= !bits;
            }
        }
        if left == 0 { state } else { state.with(TaskState::UNKNOWN) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_number_has_other_letters_on_other_kernels() {
        let cases = [
            ("2.6.32-754.el6", 0x82, "D|W"),
            ("3.8.0", 0x200, "R+"),
            ("3.10.0-957.el7", 0x82, "D|K"),
            ("3.10.0", 0x40, "x"),
            ("3.10.0", 0x400, "R+"),
            ("4.4.0-210-generic", 0x402, "D|N"),
            ("4.4.0", 0x800, "R+"),
            ("4.9.0", 0x1000, "R+"),
            ("4.9.0", 0x800, "?"),
            ("4.14.0", 0x80, "I"),
            ("4.14.0", 0x40, "P"),
            ("4.14.0", 0x100, "R+"),
            ("6.18.44", 0x20, "Z"),
            ("6.18.44", 0x200, "?"),
        ];
        for (release, raw, want) in cases {
            let table = StateTable::of_release(release).unwrap();
            assert_eq!(table.state(raw).to_string(), want, "{release} {raw:#x}");
        }
        assert_eq!(StateTable::of_release("unknown"), None);
        assert_eq!(StateTable::of_release("4"), None);
    }

    #[test]
    fn without_a_kernel_only_what_is_no_other_ones_is_read() {
        let of = |raw| StateTable::assumed().state(raw).to_string();
        for raw in [0x100, 0x400, 0x800, 0x1000] {
            assert_eq!(of(raw), "R+", "{raw:#x}");
            assert!(StateTable::assumed().state(raw).is_runnable());
        }
        assert_eq!([of(0), of(1), of(2), of(0x80)], ["R", "S", "D", "I"]);
        assert_eq!([of(0x82), of(0x402), of(0x101)], ["D|K", "D|N", "S+"]);
        assert_eq!([of(0x200), of(0x10002), of(u64::MAX << 40)], ["?", "D|?", "?"]);
    }
}
