//! What the asking process may do: its rights, its limits, and its namespaces.

use crate::Root;

/// The process, as `/proc/self` shows it.
#[derive(Clone, Debug)]
pub struct Process {
    /// Its user; none if `/proc` does not say.
    pub uid: Option<u32>,
    /// Its effective capabilities, one bit each; `None` if `/proc` does not say.
    effective: Option<u64>,
    /// Its user namespace: capabilities count within it.
    pub users: Namespace,
    /// Its PID namespace: threads outside it have no number in it.
    pub pids: Namespace,
    /// Whether a seccomp filter applies to its system calls.
    pub seccomp: bool,
    /// Limit of open files.
    pub open_files: Option<Limit>,
    /// Limit of locked memory, in bytes.
    pub locked_memory: Option<Limit>,
    /// What it runs in.
    pub surroundings: Surroundings,
}

/// A right of a process, by its number in `include/uapi/linux/capability.h`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Capability {
    /// Lock any amount of memory.
    IpcLock = 14,
    /// Nearly everything; before Linux 5.8 also what `Perfmon` allows.
    SysAdmin = 21,
    /// Raise a hard limit.
    SysResource = 24,
    /// See the addresses of the kernel.
    Syslog = 34,
    /// Record and count events of all processes.
    Perfmon = 38,
}

impl Capability {
    /// As `man 7 capabilities` spells it.
    pub fn name(self) -> &'static str {
        match self {
            Capability::IpcLock => "CAP_IPC_LOCK",
            Capability::SysAdmin => "CAP_SYS_ADMIN",
            Capability::SysResource => "CAP_SYS_RESOURCE",
            Capability::Syslog => "CAP_SYSLOG",
            Capability::Perfmon => "CAP_PERFMON",
        }
    }
}

/// Which namespace of one kind a process is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Namespace {
    /// The namespace that the system started with.
    Initial,
    /// A namespace that was created later, as for containers.
    Inner,
    /// `/proc` does not say.
    Unknown,
}

/// A limit of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit {
    /// The limit in force.
    pub soft: u64,
    /// How far the process may raise it; `u64::MAX` for no limit.
    pub hard: u64,
}

/// What the process runs in, as far as it shows: it decides which way out is suggested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Surroundings {
    /// Nothing special was detected.
    Host,
    /// A container of Docker.
    Docker,
    /// A container of Podman.
    Podman,
    /// A pod of Kubernetes.
    Kubernetes,
    /// A container of some kind.
    Container,
}

impl Process {
    /// Reads the properties of the asking process.
    pub fn look(root: &Root) -> Process {
        let status = root.text("/proc/self/status").unwrap_or_default();
        let limits = root.text("/proc/self/limits").unwrap_or_default();
        Process {
            uid: field(&status, "Uid:").and_then(|f| f.parse().ok()),
            effective: field(&status, "CapEff:").and_then(|f| u64::from_str_radix(f, 16).ok()),
            users: namespace(root, USERS.0, USERS.1),
            pids: namespace(root, PIDS.0, PIDS.1),
            seccomp: field(&status, "Seccomp:") == Some("2"),
            open_files: limit(&limits, "Max open files"),
            locked_memory: limit(&limits, "Max locked memory"),
            surroundings: surroundings(root),
        }
    }

    /// Whether it has the right on the host, not only in a user namespace of its own.
    pub fn has(&self, right: Capability) -> bool {
        self.users != Namespace::Inner && self.claims(right)
    }

    /// Whether it has the right within its user namespace.
    pub fn claims(&self, right: Capability) -> bool {
        self.effective.is_some_and(|mask| mask >> right as u32 & 1 == 1)
    }

    /// The right by which it may record all processes.
    pub fn may_record_all(&self) -> Option<Capability> {
        [Capability::Perfmon, Capability::SysAdmin].into_iter().find(|&right| self.has(right))
    }
}

/// The first word after `name` in lines of `name value ...`.
fn field<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_whitespace().next()
}

/// The initial namespaces have inode numbers that never change (`include/linux/proc_ns.h`,
/// `PROC_USER_INIT_INO` and similar constants).
const USERS: (&str, u64) = ("user", 0xEFFF_FFFD);
const PIDS: (&str, u64) = ("pid", 0xEFFF_FFFC);

/// Namespaces that containers usually have; a container with the host's PIDs still has the others.
const NAMESPACES: [(&str, u64); 4] =
    [PIDS, ("cgroup", 0xEFFF_FFFB), ("uts", 0xEFFF_FFFE), ("ipc", 0xEFFF_FFFF)];

fn namespace(root: &Root, kind: &str, initial: u64) -> Namespace {
    let link = root.link(&format!("/proc/self/ns/{kind}"));
    let number = link.as_deref().and_then(|l| l.split_once(":[")?.1.strip_suffix(']'));
    match number.and_then(|n| n.parse::<u64>().ok()) {
        Some(number) if number == initial => Namespace::Initial,
        Some(_) => Namespace::Inner,
        None => Namespace::Unknown,
    }
}

/// Parses a row of `/proc/self/limits`: `Max open files  1024  524288  files`.
fn limit(text: &str, name: &str) -> Option<Limit> {
    let mut words = text.lines().find_map(|line| line.strip_prefix(name))?.split_whitespace();
    let mut number = || match words.next()? {
        "unlimited" => Some(u64::MAX),
        word => word.parse().ok(),
    };
    Some(Limit { soft: number()?, hard: number()? })
}

/// Detects the marks that the usual engines leave. They remain in an image that is booted as a
/// machine, where all namespaces are the initial ones.
fn surroundings(root: &Root) -> Surroundings {
    let inner = |(kind, initial)| namespace(root, kind, initial) == Namespace::Inner;
    if !NAMESPACES.into_iter().any(inner) {
        return Surroundings::Host;
    }
    let in_pod = root.exists("/var/run/secrets/kubernetes.io")
        || root.text("/proc/self/environ").is_ok_and(|e| e.contains("KUBERNETES_SERVICE_HOST="));
    if in_pod {
        Surroundings::Kubernetes
    } else if root.exists("/run/.containerenv") {
        Surroundings::Podman
    } else if root.exists("/.dockerenv") {
        Surroundings::Docker
    } else if namespace(root, PIDS.0, PIDS.1) == Namespace::Inner {
        Surroundings::Container
    } else {
        Surroundings::Host
    }
}
