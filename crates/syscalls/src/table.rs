//! Numbers and names.
//!
//! The tables come from the `syscalls` crate (generated from the kernel's). This module adds what
//! that crate lacks: x32, the calls private to Arm, and the kernel's own spelling of its entry
//! points.

use crate::Arch;
use syscalls::{aarch64, arm, x86, x86_64};

/// Set in the number of an x32 call (64-bit mode, 32-bit pointers).
const X32_BIT: u32 = 0x4000_0000;

/// The calls that have a separate x32 number.
const X32_FIRST: u32 = 512;
const X32: [&str; 36] = [
    "rt_sigaction",
    "rt_sigreturn",
    "ioctl",
    "readv",
    "writev",
    "recvfrom",
    "sendmsg",
    "recvmsg",
    "execve",
    "ptrace",
    "rt_sigpending",
    "rt_sigtimedwait",
    "rt_sigqueueinfo",
    "sigaltstack",
    "timer_create",
    "mq_notify",
    "kexec_load",
    "waitid",
    "set_robust_list",
    "get_robust_list",
    "vmsplice",
    "move_pages",
    "preadv",
    "pwritev",
    "rt_tgsigqueueinfo",
    "recvmmsg",
    "sendmmsg",
    "process_vm_readv",
    "process_vm_writev",
    "setsockopt",
    "getsockopt",
    "io_setup",
    "io_submit",
    "execveat",
    "preadv2",
    "pwritev2",
];

/// Calls private to 32-bit Arm (`__ARM_NR_*`), far above the table.
const ARM_PRIVATE: [(u32, &str); 6] = [
    (0xf0001, "breakpoint"),
    (0xf0002, "cacheflush"),
    (0xf0003, "usr26"),
    (0xf0004, "usr32"),
    (0xf0005, "set_tls"),
    (0xf0006, "get_tls"),
];

/// The `_time64` calls, which only 32-bit tables have.
const TIME64: std::ops::RangeInclusive<u32> = 403..=423;

/// Number 79 on aarch64, which the source of the tables misnames; the common name is `newfstatat`.
const AARCH64_NEWFSTATAT: u32 = 79;

/// Kernel entry point to the name in the table, 64-bit tables.
const ENTRIES_64: &[(&str, &str)] = &[
    ("fadvise64_64", "fadvise64"),
    ("newfstat", "fstat"),
    ("newlstat", "lstat"),
    ("newstat", "stat"),
    ("newuname", "uname"),
    ("sendfile64", "sendfile"),
    ("sysctl", "_sysctl"),
    ("umount", "umount2"),
];

/// Kernel entry point to the name in the table, 32-bit tables. Some names mean one call as an entry
/// point and an older call in the table.
const ENTRIES_32: &[(&str, &str)] = &[
    ("fstat", "oldfstat"),
    ("getrlimit", "ugetrlimit"),
    ("llseek", "_llseek"),
    ("lstat", "oldlstat"),
    ("mmap_pgoff", "mmap2"),
    ("newfstat", "fstat"),
    ("newlstat", "lstat"),
    ("newstat", "stat"),
    ("newuname", "uname"),
    ("old_getrlimit", "getrlimit"),
    ("old_mmap", "mmap"),
    ("old_msgctl", "msgctl"),
    ("old_readdir", "readdir"),
    ("old_select", "select"),
    ("old_semctl", "semctl"),
    ("old_shmctl", "shmctl"),
    ("oldumount", "umount"),
    ("olduname", "oldolduname"),
    ("select", "_newselect"),
    ("stat", "oldstat"),
    ("sync_file_range2", "arm_sync_file_range"),
    ("sysctl", "_sysctl"),
    ("umount", "umount2"),
    ("uname", "olduname"),
];

/// The name of call `nr` on `arch`, `None` if there is none.
///
/// ```
/// use holdup_syscalls::{Arch, name};
/// assert_eq!(name(Arch::X86_64, 202), Some("futex"));
/// assert_eq!(name(Arch::Aarch64, 98), Some("futex"));
/// assert_eq!(name(Arch::X86_64, 9999), None);
/// ```
pub fn name(arch: Arch, nr: u32) -> Option<&'static str> {
    let id = nr as usize;
    match arch {
        Arch::X86_64 if nr & X32_BIT != 0 => match nr & !X32_BIT {
            n if n >= X32_FIRST => X32.get((n - X32_FIRST) as usize).copied(),
            n => x86_64::Sysno::new(n as usize).map(|s| s.name()),
        },
        Arch::X86_64 => x86_64::Sysno::new(id).map(|s| s.name()),
        Arch::I386 => x86::Sysno::new(id).map(|s| s.name()),
        Arch::Aarch64 if nr == AARCH64_NEWFSTATAT => Some("newfstatat"),
        Arch::Aarch64 if TIME64.contains(&nr) => None,
        Arch::Aarch64 => aarch64::Sysno::new(id).map(|s| s.name()),
        Arch::Arm => arm::Sysno::new(id).map(|s| s.name()).or_else(|| {
            ARM_PRIVATE.iter().find(|&&(private, _)| private == nr).map(|&(_, name)| name)
        }),
        Arch::Other => None,
    }
}

/// One more than the highest number of the main table of `arch`: the length of a vector indexed by
/// number. 0 for [`Arch::Other`]. x32 and private Arm calls lie beyond it.
pub fn table_len(arch: Arch) -> usize {
    let last = match arch {
        Arch::X86_64 => x86_64::Sysno::last().id(),
        Arch::I386 => x86::Sysno::last().id(),
        Arch::Aarch64 => aarch64::Sysno::last().id(),
        Arch::Arm => arm::Sysno::last().id(),
        Arch::Other => return 0,
    };
    last as usize + 1
}

/// The number of the call named `name`, in the spelling of [`name`](crate::name()) or, if no call
/// has that spelling, of the kernel's entry point ([`entry_number`]).
///
/// A call with a separate x32 number is found under its 64-bit number.
pub fn number(arch: Arch, name: &str) -> Option<u32> {
    by_name(arch, name).or_else(|| by_entry(arch, name))
}

/// The number of the call of a tracepoint of the `syscalls:` group.
///
/// Those tracepoints are named after the kernel's entry point, here with or without `sys_enter_` or
/// `sys_exit_`: `sys_enter_newfstat` is `fstat`, `sys_enter_umount` is `umount2`. This differs from
/// [`number`] in which reading wins if both exist, which matters on 32-bit machines: on these the
/// entry point `futex` is the call `futex_time64`, and the entry point of the call `futex` is
/// `futex_time32`.
///
/// That holds since Linux 5.1; before, 32-bit kernels had 32-bit times only, and entry points named
/// like the calls. If the event has the number (`__syscall_nr`), that is right.
///
/// ```
/// use holdup_syscalls::{Arch, entry_number, number};
/// assert_eq!(entry_number(Arch::X86_64, "sys_enter_newuname"), number(Arch::X86_64, "uname"));
/// assert_eq!(entry_number(Arch::Arm, "sys_enter_futex"), number(Arch::Arm, "futex_time64"));
/// ```
pub fn entry_number(arch: Arch, entry: &str) -> Option<u32> {
    let entry = entry
        .strip_prefix("sys_enter_")
        .or_else(|| entry.strip_prefix("sys_exit_"))
        .unwrap_or(entry);
    by_entry(arch, entry).or_else(|| by_name(arch, entry))
}

/// By the table's spelling only.
fn by_name(arch: Arch, wanted: &str) -> Option<u32> {
    let nr = match arch {
        Arch::X86_64 => wanted.parse::<x86_64::Sysno>().map(|s| s.id()),
        Arch::I386 => wanted.parse::<x86::Sysno>().map(|s| s.id()),
        Arch::Aarch64 if wanted == "newfstatat" => return Some(AARCH64_NEWFSTATAT),
        Arch::Aarch64 => wanted.parse::<aarch64::Sysno>().map(|s| s.id()),
        Arch::Arm => wanted.parse::<arm::Sysno>().map(|s| s.id()),
        Arch::Other => return None,
    };
    match nr {
        // Excludes what `name` excludes.
        Ok(nr) => Some(nr as u32).filter(|&nr| name(arch, nr) == Some(wanted)),
        Err(()) if arch == Arch::Arm => {
            ARM_PRIVATE.iter().find(|&&(_, name)| name == wanted).map(|&(nr, _)| nr)
        }
        Err(()) => None,
    }
}

/// By the spelling of an entry point. 64-bit tables: only where it differs from the table's.
fn by_entry(arch: Arch, entry: &str) -> Option<u32> {
    let listed = |list: &[(&str, &str)]| {
        list.iter().find(|&&(from, _)| from == entry).and_then(|&(_, to)| by_name(arch, to))
    };
    if !arch.is_32bit() {
        return listed(ENTRIES_64);
    }
    let entry = entry.strip_prefix("ia32_").unwrap_or(entry);
    // 32-bit times and 16-bit ids came first and have the plain names in the table; their
    // successors have the plain entry points.
    let same = by_name(arch, entry);
    let old = || {
        ["_time32", "32", "16"]
            .into_iter()
            .find_map(|suffix| by_name(arch, entry.strip_suffix(suffix)?))
    };
    let new = || {
        ["_time64", "32"].into_iter().find_map(|suffix| by_name(arch, &format!("{entry}{suffix}")))
    };
    // `clock_gettime64` and the like; not `fcntl64` or `stat64`, which are entry points themselves.
    let new_time = || by_name(arch, &format!("{entry}64")).filter(|nr| TIME64.contains(nr));
    let old = if same.is_none() { old() } else { None };
    listed(ENTRIES_32).or(old).or_else(new).or_else(new_time).or(same)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [Arch; 4] = [Arch::X86_64, Arch::I386, Arch::Aarch64, Arch::Arm];

    #[test]
    fn known_numbers() {
        for (call, x86_64, i386, aarch64, arm) in [
            ("read", 0, 3, 63, 3),
            ("futex", 202, 240, 98, 240),
            ("fstat", 5, 108, 80, 108),
            ("sched_yield", 24, 158, 124, 158),
            ("fsync", 74, 118, 82, 118),
            ("flock", 73, 143, 32, 143),
            ("msgrcv", 70, 401, 188, 302),
            ("wait4", 61, 114, 260, 114),
            ("clone3", 435, 435, 435, 435),
            ("futex_waitv", 449, 449, 449, 449),
            ("futex_wake", 454, 454, 454, 454),
            ("futex_wait", 455, 455, 455, 455),
            ("futex_requeue", 456, 456, 456, 456),
            ("mseal", 462, 462, 462, 462),
            ("setxattrat", 463, 463, 463, 463),
        ] {
            for (arch, nr) in ALL.into_iter().zip([x86_64, i386, aarch64, arm]) {
                assert_eq!(name(arch, nr), Some(call), "{arch} {nr}");
                assert_eq!(number(arch, call), Some(nr), "{arch} {call}");
            }
        }
        for (arch, nr, call) in [
            (Arch::X86_64, 262, "newfstatat"),
            (Arch::X86_64, 220, "semtimedop"),
            (Arch::X86_64, 302, "prlimit64"),
            (Arch::X86_64, 166, "umount2"),
            (Arch::X86_64, 17, "pread64"),
            (Arch::I386, 420, "semtimedop_time64"),
            (Arch::I386, 142, "_newselect"),
            (Arch::I386, 102, "socketcall"),
            (Arch::I386, 117, "ipc"),
            (Arch::Aarch64, 192, "semtimedop"),
            (Arch::Aarch64, 79, "newfstatat"),
            (Arch::Arm, 312, "semtimedop"),
            (Arch::Arm, 420, "semtimedop_time64"),
            (Arch::Arm, 0xf0002, "cacheflush"),
        ] {
            assert_eq!(name(arch, nr), Some(call), "{arch} {nr}");
            assert_eq!(number(arch, call), Some(nr), "{arch} {call}");
        }
    }

    #[test]
    fn every_name_leads_back_to_its_number() {
        for arch in ALL {
            let mut named = 0;
            for nr in (0..table_len(arch) as u32).chain(ARM_PRIVATE.map(|(nr, _)| nr)) {
                if let Some(call) = name(arch, nr) {
                    named += 1;
                    assert_eq!(number(arch, call), Some(nr), "{arch} {call}");
                }
            }
            assert!(named > 300, "{arch}: {named}");
            assert!(name(arch, table_len(arch) as u32 - 1).is_some());
        }
    }

    #[test]
    fn x32() {
        assert_eq!(name(Arch::X86_64, X32_BIT | 202), Some("futex"));
        assert_eq!(name(Arch::X86_64, X32_BIT | 512), Some("rt_sigaction"));
        assert_eq!(name(Arch::X86_64, X32_BIT | 545), Some("execveat"));
        assert_eq!(name(Arch::X86_64, X32_BIT | 547), Some("pwritev2"));
        assert_eq!(name(Arch::X86_64, X32_BIT | 548), None);
        assert_eq!(name(Arch::X86_64, 512), None);
        assert_eq!(name(Arch::Aarch64, X32_BIT | 98), None);
        for call in X32 {
            assert!(by_name(Arch::X86_64, call).is_some(), "{call}");
        }
    }

    #[test]
    fn unknown() {
        for arch in ALL.into_iter().chain([Arch::Other]) {
            for nr in [table_len(arch) as u32, 9999, i32::MAX as u32, u32::MAX] {
                assert_eq!(name(arch, nr), None, "{arch} {nr}");
            }
            for call in
                ["", "nosuchcall", "FUTEX", "sys_futex", "fstatat", "32", "_time32", "sys_enter_"]
            {
                assert_eq!(number(arch, call), None, "{arch} {call}");
                assert_eq!(entry_number(arch, call), None, "{arch} {call}");
            }
        }
        // Architectures that always had 64-bit times have no second call.
        assert_eq!(number(Arch::Aarch64, "futex_time64"), None);
        assert_eq!(name(Arch::Aarch64, 422), None);
        assert_eq!(name(Arch::Other, 0), None);
        assert_eq!(number(Arch::Other, "read"), None);
    }

    #[test]
    fn entry_points() {
        for (arch, entry, call) in [
            (Arch::X86_64, "newstat", "stat"),
            (Arch::X86_64, "newfstat", "fstat"),
            (Arch::X86_64, "newlstat", "lstat"),
            (Arch::X86_64, "newfstatat", "newfstatat"),
            (Arch::X86_64, "newuname", "uname"),
            (Arch::X86_64, "sendfile64", "sendfile"),
            (Arch::X86_64, "umount", "umount2"),
            (Arch::X86_64, "futex", "futex"),
            (Arch::Aarch64, "sendfile64", "sendfile"),
            (Arch::Aarch64, "fadvise64_64", "fadvise64"),
            (Arch::Aarch64, "newfstat", "fstat"),
            (Arch::I386, "futex", "futex_time64"),
            (Arch::I386, "futex_time32", "futex"),
            (Arch::I386, "stat", "oldstat"),
            (Arch::I386, "newstat", "stat"),
            (Arch::I386, "stat64", "stat64"),
            (Arch::I386, "select", "_newselect"),
            (Arch::I386, "getuid", "getuid32"),
            (Arch::I386, "getuid16", "getuid"),
            (Arch::I386, "clock_gettime", "clock_gettime64"),
            (Arch::I386, "clock_gettime32", "clock_gettime"),
            (Arch::I386, "fcntl", "fcntl"),
            (Arch::I386, "fcntl64", "fcntl64"),
            (Arch::I386, "truncate", "truncate"),
            (Arch::I386, "sendfile64", "sendfile64"),
            (Arch::I386, "ia32_truncate64", "truncate64"),
            (Arch::I386, "umount", "umount2"),
            (Arch::I386, "oldumount", "umount"),
            (Arch::I386, "uname", "olduname"),
            (Arch::I386, "time32", "time"),
            (Arch::I386, "chown32", "chown32"),
            (Arch::Arm, "semtimedop", "semtimedop_time64"),
            (Arch::Arm, "semtimedop_time32", "semtimedop"),
            (Arch::Arm, "sync_file_range2", "arm_sync_file_range"),
            (Arch::Arm, "getrlimit", "ugetrlimit"),
            (Arch::Arm, "stat", "stat"),
        ] {
            let nr = by_name(arch, call);
            assert!(nr.is_some(), "{arch} {call}");
            assert_eq!(entry_number(arch, entry), nr, "{arch} {entry}");
            assert_eq!(entry_number(arch, &format!("sys_enter_{entry}")), nr, "{arch} {entry}");
            assert_eq!(entry_number(arch, &format!("sys_exit_{entry}")), nr, "{arch} {entry}");
        }
        assert_eq!(number(Arch::X86_64, "newuname"), Some(63));
        assert_eq!(number(Arch::I386, "futex"), Some(240));
        assert_eq!(number(Arch::I386, "newuname"), Some(122));
        for list in [(ENTRIES_64, Arch::X86_64), (ENTRIES_32, Arch::I386)] {
            for &(entry, _) in list.0.iter().filter(|&&(_, to)| to != "arm_sync_file_range") {
                assert!(entry_number(list.1, entry).is_some(), "{entry}");
            }
        }
    }
}
