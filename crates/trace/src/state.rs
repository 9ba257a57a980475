//! The state a thread is left in at `sched_switch`.

use std::fmt;

/// `prev_state` of `sched_switch`, normalised.
///
/// The kernel reports one bit per state (`include/linux/sched.h`, `TASK_*`): S=1 D=2 T=4 t=8
/// X=0x10 Z=0x20 P=0x40 I=0x80. A thread that was preempted while runnable carries only a bit
/// above them, which the kernel prints as `R+`. Which bit that is has changed (0x100 since 4.14,
/// 0x400 to 0x1000 before), so every value whose low eight bits are clear counts as runnable.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct TaskState(pub u16);

impl TaskState {
    /// Runnable, left the CPU in favour of another (`R`).
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

    const LETTERS: &'static [u8; 8] = b"SDTtXZPI";

    /// From the raw field of the binary event.
    pub fn from_raw(raw: u64) -> TaskState {
        let low = (raw & 0xff) as u16;
        TaskState(if low == 0 && raw != 0 { 0x100 } else { low | ((raw >> 8 != 0) as u16) << 8 })
    }

    /// From the text forms (`R`, `R+`, `S`, `D|K`, `x`, …). Unknown letters are ignored.
    pub fn from_text(text: &[u8]) -> TaskState {
        let mut bits = 0u16;
        for &c in text {
            match c {
                b'+' => bits |= 0x100,
                // Old kernels: `x` is dead, `W` waking, `K` wakekill, `N` noload (idle kthread).
                b'x' => bits |= 0x10,
                b'N' => bits |= 0x80,
                _ => {
                    if let Some(i) = Self::LETTERS.iter().position(|&l| l == c) {
                        bits |= 1 << i;
                    }
                }
            }
        }
        TaskState(bits)
    }

    /// Still wants the CPU: it did not leave by its own will.
    #[inline]
    pub fn is_runnable(self) -> bool {
        self.0 & 0xff == 0
    }

    /// Left because another thread took the CPU (`R+`).
    #[inline]
    pub fn is_preempted(self) -> bool {
        self.0 == 0x100
    }

    /// `D`: waits for a disk, a kernel mutex or rwsem, and takes no signals.
    #[inline]
    pub fn is_uninterruptible(self) -> bool {
        self.0 & 2 != 0
    }

    /// Will never run again.
    #[inline]
    pub fn is_dead(self) -> bool {
        self.0 & 0x30 != 0
    }
}

impl fmt::Display for TaskState {
    /// As the kernel prints it: `R`, `R+`, `S`, `D`, `X|Z` …
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_runnable() {
            f.write_str("R")?;
        }
        let mut first = true;
        for (i, letter) in Self::LETTERS.iter().enumerate() {
            if self.0 & (1 << i) != 0 {
                if !first {
                    f.write_str("|")?;
                }
                first = false;
                write!(f, "{}", *letter as char)?;
            }
        }
        if self.0 & 0x100 != 0 {
            f.write_str("+")?;
        }
        Ok(())
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

    #[test]
    fn old_and_new_preempt_bits_are_runnable() {
        for raw in [0x100u64, 0x400, 0x800, 0x1000] {
            let s = TaskState::from_raw(raw);
            assert!(s.is_runnable() && s.is_preempted(), "{raw:#x}");
            assert_eq!(s.to_string(), "R+");
        }
        assert_eq!(TaskState::from_raw(0).to_string(), "R");
        assert!(!TaskState::from_raw(0).is_preempted());
    }

    #[test]
    fn text_and_raw_agree() {
        for (raw, text) in [
            (0u64, "R"),
            (1, "S"),
            (2, "D"),
            (0x10, "X"),
            (0x20, "Z"),
            (0x80, "I"),
            (0x30, "X|Z"),
            (0x101, "S+"),
        ] {
            assert_eq!(TaskState::from_raw(raw), TaskState::from_text(text.as_bytes()), "{text}");
            assert_eq!(TaskState::from_raw(raw).to_string(), text);
        }
    }
}
