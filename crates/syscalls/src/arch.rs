//! The architecture to which call numbers belong.

use std::fmt;

/// The instruction set, and so the system call table, of the recorded machine.
///
/// A 64-bit kernel also runs 32-bit programs, whose calls carry the numbers of the 32-bit table.
/// `raw_syscalls` events do not say which table a number belongs to; `perf` reads them all by the
/// kernel's own table, and so does this crate.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Arch {
    /// 64-bit x86, with the x32 calls (bit 30 of the number set).
    X86_64,
    /// 32-bit x86.
    I386,
    /// 64-bit Arm.
    Aarch64,
    /// 32-bit Arm, EABI.
    Arm,
    /// Anything else: numbers have no names.
    #[default]
    Other,
}

impl Arch {
    /// From the machine field of `uname`, which is what `perf.data` and `trace.dat` store.
    pub fn from_uname(machine: &str) -> Arch {
        match machine.trim_end_matches('\0').trim() {
            "x86_64" | "amd64" => Arch::X86_64,
            "i386" | "i486" | "i586" | "i686" => Arch::I386,
            "aarch64" | "aarch64_be" | "arm64" => Arch::Aarch64,
            m if m.starts_with("arm") => Arch::Arm,
            _ => Arch::Other,
        }
    }

    /// The usual short name (`x86_64`, `i386`, `aarch64`, `arm`, `other`).
    pub fn as_str(self) -> &'static str {
        match self {
            Arch::X86_64 => "x86_64",
            Arch::I386 => "i386",
            Arch::Aarch64 => "aarch64",
            Arch::Arm => "arm",
            Arch::Other => "other",
        }
    }

    /// Whether it has a 32-bit table, with the history of 16-bit ids and 32-bit times.
    pub(crate) fn is_32bit(self) -> bool {
        matches!(self, Arch::I386 | Arch::Arm)
    }
}

impl fmt::Display for Arch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uname_machines() {
        for (arch, machines) in [
            (Arch::X86_64, &["x86_64", "amd64", "x86_64\0"][..]),
            (Arch::I386, &["i386", "i486", "i586", "i686"]),
            (Arch::Aarch64, &["aarch64", "arm64", "aarch64_be"]),
            (Arch::Arm, &["arm", "armv5tel", "armv6l", "armv7l", "armv8l", "armhf"]),
            (Arch::Other, &["", "riscv64", "s390x", "ppc64le", "x86"]),
        ] {
            for m in machines {
                assert_eq!(Arch::from_uname(m), arch, "{m}");
            }
            assert!(arch == Arch::Other || Arch::from_uname(arch.as_str()) == arch);
        }
    }
}
