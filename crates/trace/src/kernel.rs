//! Names that only the kernel's own threads have.

/// How a name begins that only threads of the kernel have.
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

/// Where in the name of a thread of the kernel the part begins that differs by machine; `None` if
/// programs have such names.
pub fn kernel_thread(name: &[u8]) -> Option<usize> {
    PREFIXES.iter().find(|p| name.starts_with(p)).map(|p| p.len())
}

/// Whether only threads of the kernel have such names. For where a file says nothing about parents.
pub fn is_kernel_thread(name: &[u8]) -> bool {
    kernel_thread(name).is_some()
}
