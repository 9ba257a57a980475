//! The state a thread is left in at `sched_switch`.

use std::fmt::{self, Write};

/// `prev_state` of `sched_switch`, in one notation for all kernels.
///
/// The raw number is read by the table of the recorded kernel ([`crate::StateTable`]): bit 0x80 is
/// `K` of `D|K` before 4.14 and `I` since. Here each letter that a kernel prints
/// (`include/trace/events/sched.h`) has a bit of its own: those of 4.14 and later have the kernel's
/// bits, S=1 D=2 T=4 t=8 X=0x10 Z=0x20 P=0x40 I=0x80 and `+`=0x100; those of older kernels lie
/// above.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct TaskState(pub u16);

/// Letters as the kernel prints them, with their bits, in the order of its tables.
const LETTERS: [(u8, u16); 13] = [
    (b'S', 0x1),
    (b'D', 0x2),
    (b'T', 0x4),
    (b't', 0x8),
    (b'X', 0x10),
    (b'Z', 0x20),
    // `TASK_DEAD` before 4.14.
    (b'x', 0x200),
    // `TASK_WAKEKILL` before 4.14: a fatal signal ends the sleep.
    (b'K', 0x400),
    // `TASK_WAKING` before 4.14. Before 3.9 the kernel printed it for `TASK_WAKEKILL`.
    (b'W', 0x800),
    (b'P', 0x40),
    // `TASK_NOLOAD`, 4.2 to 4.13: `D|N` is what later kernels print as `I`.
    (b'N', 0x1000),
    (b'I', 0x80),
    (b'?', TaskState::UNKNOWN.0),
];

impl TaskState {
    /// Runnable, left the CPU to another thread (`R`).
    pub const RUNNING: TaskState = TaskState(0);
    /// Runnable, preempted (`R+`).
    pub const PREEMPTED: TaskState = TaskState(0x100);
    /// Interruptible sleep (`S`).
    pub const INTERRUPTIBLE: TaskState = TaskState(1);
    /// Uninterruptible sleep (`D`).
    pub const UNINTERRUPTIBLE: TaskState = TaskState(2);
    /// Exit, dead (`X`).
    pub const DEAD: TaskState = TaskState(0x10);
    /// Exit, zombie (`Z`).
    pub const ZOMBIE: TaskState = TaskState(0x20);
    /// Kernel thread waiting without adding to the load average (`I`).
    pub const IDLE: TaskState = TaskState(0x80);
    /// A bit or letter that the recorded kernel's table does not have: newer than this program.
    /// Shown as `?`.
    pub const UNKNOWN: TaskState = TaskState(0x2000);

    const NOLOAD: u16 = 0x1000;
    const SLEEPS: u16 = !(TaskState::PREEMPTED.0 | TaskState::UNKNOWN.0);

    /// Parses the letters that the kernel prints: `R`, `R+`, `S`, `D|K`, `x` …. Anything that is
    /// not a letter of any kernel, such as the number that a kernel prints for bits without a
    /// letter, is [`TaskState::UNKNOWN`].
    pub fn from_text(text: &[u8]) -> TaskState {
        let mut bits = 0u16;
        for word in text.split(|&b| b == b'|') {
            let (letters, plus) = match word.strip_suffix(b"+") {
                Some(before) => (before, Self::PREEMPTED.0),
                None => (word, 0),
            };
            bits |= plus;
            bits |= match letters {
                b"R" | b"" => 0,
                [letter] => {
                    let known = LETTERS.iter().find(|l| l.0 == *letter);
                    known.map_or(Self::UNKNOWN.0, |l| l.1)
                }
                _ => Self::UNKNOWN.0,
            };
        }
        TaskState(bits)
    }

    /// Both states together.
    pub(crate) fn with(self, other: TaskState) -> TaskState {
        TaskState(self.0 | other.0)
    }

    /// Whether it still wants the CPU: it did not leave voluntarily. A thread that was preempted on
    /// its way to sleep (`S+` of some kernels) stays on the run queue.
    #[inline]
    pub fn is_runnable(self) -> bool {
        self.is_preempted() || self.0 == 0
    }

    /// Whether it left because another thread took the CPU (`R+`).
    #[inline]
    pub fn is_preempted(self) -> bool {
        self.0 & Self::PREEMPTED.0 != 0
    }

    /// `D`: waits for a disk, a kernel mutex or rwsem, or a driver, and takes no signals, or only
    /// fatal ones. Not the idling of a kernel thread (`D|N`).
    #[inline]
    pub fn is_uninterruptible(self) -> bool {
        self.0 & (2 | Self::NOLOAD) == 2
    }

    /// Whether it will never run again.
    #[inline]
    pub fn is_dead(self) -> bool {
        self.0 & 0x230 != 0
    }

    /// A kernel thread that waits for work: `I`, before 4.14 `D|N`.
    #[inline]
    pub fn is_idle_kthread(self) -> bool {
        self.0 & (Self::IDLE.0 | Self::NOLOAD) != 0
    }

    /// Whether no table knows some part of it.
    #[inline]
    pub fn has_unknown(self) -> bool {
        self.0 & Self::UNKNOWN.0 != 0
    }

    /// What [`fmt::Display`] shows, letter by letter: faster for millions of states.
    #[inline]
    pub fn spell(self, mut put: impl FnMut(u8)) {
        if self.0 & !Self::PREEMPTED.0 == 0 {
            put(b'R');
        }
        let mut first = true;
        for (letter, bit) in LETTERS {
            if self.0 & bit != 0 {
                if !std::mem::take(&mut first) {
                    put(b'|');
                }
                put(letter);
            }
        }
        if self.is_preempted() {
            put(b'+');
        }
    }

    /// Whether nothing is known about it: the thread may be asleep, ready or dead.
    #[inline]
    pub fn is_unknown(self) -> bool {
        self.has_unknown() && self.0 & Self::SLEEPS == 0 && !self.is_preempted()
    }
}

impl fmt::Display for TaskState {
    /// As the kernel prints it: `R`, `R+`, `S`, `D`, `D|K` …
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut done = Ok(());
        self.spell(|letter| done = done.and_then(|()| f.write_char(letter.into())));
        done
    }
}

impl fmt::Debug for TaskState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Everything that the tables of 2.6.31 to 6.18 print, alone and in the kernels' combinations.
    #[test]
    fn every_letter_of_every_kernel_is_read_and_printed_alike() {
        for text in [
            "R", "R+", "S", "D", "T", "t", "X", "Z", "x", "K", "W", "P", "N", "I", "S+", "D|K",
            "T|K", "t|K", "D|W", "S|W", "D|N", "S|P", "X|Z", "D|K|W",
        ] {
            let state = TaskState::from_text(text.as_bytes());
            assert_eq!(state.to_string(), text);
            assert!(!state.has_unknown(), "{text}");
        }
    }

    #[test]
    fn letters_mean_what_the_kernel_does_with_the_thread() {
        let of = |text: &str| TaskState::from_text(text.as_bytes());
        for text in ["R", "R+", "S+", "D+"] {
            assert!(of(text).is_runnable(), "{text}");
        }
        for text in ["D", "D|K", "D|W"] {
            assert!(of(text).is_uninterruptible() && !of(text).is_idle_kthread(), "{text}");
        }
        for text in ["I", "D|N"] {
            assert!(!of(text).is_uninterruptible() && of(text).is_idle_kthread(), "{text}");
        }
        for text in ["X", "Z", "x", "X|Z"] {
            assert!(of(text).is_dead(), "{text}");
        }
        assert!(!of("W").is_runnable() && !of("P").is_runnable() && !of("K").is_dead());
    }

    #[test]
    fn a_letter_of_no_kernel_is_unknown_and_no_state_is_made_up_for_it() {
        for text in ["Q", "0x800", "?"] {
            let state = TaskState::from_text(text.as_bytes());
            assert!(state.is_unknown() && !state.is_runnable() && !state.is_dead(), "{text}");
            assert_eq!(state.to_string(), "?");
        }
        let mixed = TaskState::from_text(b"D|0x800");
        assert!(mixed.has_unknown() && !mixed.is_unknown() && mixed.is_uninterruptible());
        assert_eq!(mixed.to_string(), "D|?");
    }
}
