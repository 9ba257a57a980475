//! Names that only kernel threads have.

/// Prefixes of names that only kernel threads have.
const PREFIXES: &[&[u8]] = &[
    b"kworker/",
    b"ksoftirqd/",
    b"migration/",
    b"rcu_",
    b"rcuc/",
    b"rcuog/",
    b"rcuos/",
    b"rcuop/",
    b"rcub/",
    b"cpuhp/",
    b"idle_inject/",
    b"watchdog/",
    b"kswapd",
    b"kcompactd",
    b"khugepaged",
    b"kthreadd",
    b"ksmd",
    b"kauditd",
    b"khungtaskd",
    b"oom_reaper",
    b"kdevtmpfs",
    b"jbd2/",
    b"xfsaild/",
    b"btrfs-",
    b"irq/",
    b"scsi_eh_",
    b"nvme-",
    b"dmcrypt_",
    b"ktimers/",
    b"kpsmoused",
    b"netns",
    b"posixcputmr",
];

/// Where in the name of a kernel thread the part begins that differs by machine; `None` if programs
/// may have such names.
pub fn kernel_thread(name: &[u8]) -> Option<usize> {
    PREFIXES.iter().find(|p| name.starts_with(p)).map(|p| p.len())
}

/// Whether only kernel threads have such names. For files that do not name parents.
pub fn is_kernel_thread(name: &[u8]) -> bool {
    kernel_thread(name).is_some()
}
