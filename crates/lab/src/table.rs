//! The list of workloads: the bottleneck of each, its parameters, and its fix.

use crate::make::{
    cpu, disk, driver, files, jobs, kernel, locks, memory, pipes, queues, serve, together,
};
use crate::needs::Need;
use crate::param::{Param, ParamError, Settings, Unit};
use crate::site::{Error, Made, Site, Worker};

/// The class of a workload without bottleneck.
pub const HEALTHY: &str = "healthy";

/// The class of too much work for the CPUs.
const OVERLOAD: &str = "cpu-overload";

/// A program with one kind of bottleneck.
#[derive(Debug)]
pub struct Workload {
    /// Its name.
    pub name: &'static str,
    /// The class of its bottleneck, by the name in verdicts.
    pub class: &'static str,
    /// Another correct class, and why it is correct.
    pub also: Option<(&'static str, &'static str)>,
    /// What it does, in a sentence without a full stop.
    pub does: &'static str,
    /// Its parameters, in addition to [`COMMON`].
    pub params: &'static [Param],
    /// The settings that fix it; empty if it has no fixed variant.
    pub fix: &'static [(&'static str, &'static str)],
    /// What the fix does, in words.
    pub fixes: &'static str,
    /// Another correct class for the fixed variant in addition to [`HEALTHY`], and why.
    pub twin_also: Option<(&'static str, &'static str)>,
    /// What it needs of a host.
    pub needs: &'static [Need],
    pub(crate) make: fn(&Site) -> Result<Made, Error>,
    /// The worker of that number, if workers are processes.
    pub(crate) worker: fn(&Site, usize) -> Result<Worker, Error>,
}

const fn time(key: &'static str, default: &'static str, means: &'static str) -> Param {
    Param { key, unit: Unit::Time, default, means }
}

const fn count(key: &'static str, default: &'static str, means: &'static str) -> Param {
    Param { key, unit: Unit::Count, default, means }
}

const fn percent(key: &'static str, default: &'static str, means: &'static str) -> Param {
    Param { key, unit: Unit::Percent, default, means }
}

const fn size(key: &'static str, default: &'static str, means: &'static str) -> Param {
    Param { key, unit: Unit::Size, default, means }
}

const HOLD: Param = time("hold", "300us", "work while the resource is held");
const THINK: Param = time("think", "100us", "work between two operations");
const LOCKS: Param = count("locks", "1", "locks; workers are spread over them");
const FILES: Param = count("files", "1", "files; workers are spread over them");
const EVEN: Param = count("even", "0", "1: the same work, divided evenly among the threads");
const PROCESSES: Param = count("apart", "0", "1: each worker is a process of its own");

/// Settings of every workload.
pub const COMMON: &[Param] = &[
    count("workers", "cpus", "number of threads or processes that work"),
    time("duration", "1s", "how long the workload runs"),
];

/// A workload whose workers are never processes.
fn no_process(site: &Site, _: usize) -> Result<Worker, Error> {
    Err(Error::Impossible(format!("no processes work in {}", site.folder.display())))
}

/// All workloads, by class.
pub static WORKLOADS: &[Workload] = &[
    Workload {
        name: "server",
        class: "workload-imbalance",
        also: None,
        does: "clients send requests over sockets to one server, and wait for each answer",
        params: &[
            time("service", "200us", "work of the server for a request"),
            time("think", "60us", "work of a client between two requests"),
            count("servers", "1", "servers; clients are spread over them"),
        ],
        fix: &[("servers", "workers")],
        fixes: "a server for each client",
        twin_also: Some((
            OVERLOAD,
            "with a client and a server for each CPU there are two processes per CPU",
        )),
        needs: &[Need::Cpus],
        make: serve::make,
        worker: serve::worker,
    },
    Workload {
        name: "barrier",
        class: "workload-imbalance",
        also: None,
        does: "threads meet at a barrier after each round, and one thread has more work than the \
            others",
        params: &[
            time("work", "2ms", "work of a round"),
            percent("skew", "200%", "additional work of the first thread"),
            EVEN,
        ],
        fix: &[("even", "1")],
        fixes: "the same work, divided evenly among the threads",
        twin_also: None,
        needs: &[Need::Cpus],
        make: together::barrier,
        worker: no_process,
    },
    Workload {
        name: "serial",
        class: "workload-imbalance",
        also: None,
        does: "one thread prepares each round alone, while the others wait at a barrier",
        params: &[
            time("work", "2ms", "work of each thread in a round"),
            time("serial", "3ms", "work of the first thread before the round"),
            EVEN,
        ],
        fix: &[("even", "1")],
        fixes: "the preparation, divided evenly among the threads",
        twin_also: None,
        needs: &[Need::Cpus],
        make: together::serial,
        worker: no_process,
    },
    Workload {
        name: "pipeline",
        class: "workload-imbalance",
        also: None,
        does: "processes pass items through pipes, and the last process has the most work per item",
        params: &[
            time("work", "150us", "work per item"),
            percent("skew", "300%", "additional work of the last stage"),
            EVEN,
        ],
        fix: &[("even", "1")],
        fixes: "the same work, divided evenly among the stages",
        twin_also: None,
        needs: &[Need::Cpus],
        make: pipes::pipeline,
        worker: pipes::stage,
    },
    Workload {
        name: "affinity",
        class: "workload-imbalance",
        also: None,
        does: "threads compute, all bound to one CPU while the others are idle",
        params: &[
            time("work", "1ms", "a piece of work"),
            count("bound", "1", "1: bound to one CPU"),
        ],
        fix: &[("bound", "0")],
        fixes: "threads free to run anywhere",
        twin_also: None,
        needs: &[Need::Cpus],
        make: cpu::affinity,
        worker: no_process,
    },
    Workload {
        name: "flock",
        class: "application-serialization",
        also: None,
        does: "processes contend for a lock on a file (flock)",
        params: &[HOLD, THINK, FILES],
        fix: &[("files", "workers")],
        fixes: "a file for each process",
        twin_also: None,
        needs: &[Need::Cpus],
        make: files::flock,
        worker: files::flock_worker,
    },
    Workload {
        name: "fcntl",
        class: "application-serialization",
        also: None,
        does: "processes contend for a record lock on a file (fcntl)",
        params: &[HOLD, THINK, FILES],
        fix: &[("files", "workers")],
        fixes: "a file for each process",
        twin_also: None,
        needs: &[Need::Cpus],
        make: files::fcntl,
        worker: files::fcntl_worker,
    },
    Workload {
        name: "semaphore",
        class: "application-serialization",
        also: None,
        does: "processes contend for a semaphore of the kernel (eventfd)",
        params: &[
            HOLD,
            THINK,
            count(
                "permits",
                "1",
                "number of processes that may hold the semaphore at the same time",
            ),
        ],
        fix: &[("permits", "workers")],
        fixes: "a permit for each process",
        twin_also: None,
        needs: &[Need::Cpus],
        make: queues::semaphore,
        worker: queues::semaphore_worker,
    },
    Workload {
        name: "mqueue",
        class: "application-serialization",
        also: None,
        does: "processes contend for the one message of a POSIX message queue",
        params: &[HOLD, THINK, count("permits", "1", "messages in the queue")],
        fix: &[("permits", "workers")],
        fixes: "a message for each process",
        twin_also: None,
        needs: &[Need::Cpus],
        make: queues::mqueue,
        worker: queues::mqueue_worker,
    },
    Workload {
        name: "token",
        class: "application-serialization",
        also: None,
        does: "processes contend for the one byte in a pipe",
        params: &[HOLD, THINK, count("permits", "1", "bytes in the pipe")],
        fix: &[("permits", "workers")],
        fixes: "a byte for each process",
        twin_also: None,
        needs: &[Need::Cpus],
        make: pipes::token,
        worker: pipes::token_worker,
    },
    Workload {
        name: "ring",
        class: "application-serialization",
        also: Some((
            "workload-imbalance",
            "one process at a time has work, and needs the result of the previous process",
        )),
        does: "processes pass a token around in a ring of sockets, and only the process with the \
            token works",
        params: &[HOLD, count("tokens", "1", "tokens in the ring")],
        fix: &[("tokens", "workers")],
        fixes: "a token for each process",
        twin_also: None,
        needs: &[Need::Cpus],
        make: pipes::ring,
        worker: pipes::ring_worker,
    },
    Workload {
        name: "mutex",
        class: "thread-serialization",
        also: None,
        does: "threads contend for a mutex",
        params: &[HOLD, THINK, LOCKS],
        fix: &[("locks", "workers")],
        fixes: "a mutex for each thread",
        twin_also: None,
        needs: &[Need::Cpus],
        make: locks::mutex,
        worker: no_process,
    },
    Workload {
        name: "rwlock",
        class: "thread-serialization",
        also: None,
        does: "threads contend for a reader-writer lock, mostly as writers",
        params: &[
            HOLD,
            THINK,
            LOCKS,
            percent("writes", "80%", "percentage of acquisitions as a writer"),
        ],
        fix: &[("locks", "workers")],
        fixes: "a lock for each thread",
        twin_also: None,
        needs: &[Need::Cpus],
        make: locks::rwlock,
        worker: no_process,
    },
    Workload {
        name: "condvar",
        class: "thread-serialization",
        also: None,
        does: "threads wait on a condition variable for one of a few permits",
        params: &[
            HOLD,
            THINK,
            count("permits", "1", "number of threads that may run at the same time"),
        ],
        fix: &[("permits", "workers")],
        fixes: "a permit for each thread",
        twin_also: None,
        needs: &[Need::Cpus],
        make: locks::condvar,
        worker: no_process,
    },
    Workload {
        name: "mmap",
        class: "kernel-lock-conflict",
        also: None,
        does: "threads map and unmap memory of one address space",
        params: &[
            size("size", "48M", "memory mapped at a time; every libc maps more than 32M with mmap"),
            count("pages", "2", "number of pages of this memory that are written"),
            time("think", "2us", "work between two operations"),
            PROCESSES,
        ],
        fix: &[("apart", "1")],
        fixes: "processes, each with an address space of its own",
        twin_also: None,
        needs: &[Need::Cpus],
        make: kernel::mmap,
        worker: kernel::mmap_worker,
    },
    Workload {
        name: "directory",
        class: "kernel-lock-conflict",
        also: None,
        does: "processes make and remove files in one directory",
        params: &[
            time("think", "2us", "work between two operations"),
            count("folders", "1", "folders"),
        ],
        fix: &[("folders", "workers")],
        fixes: "a directory for each process",
        twin_also: None,
        needs: &[Need::Cpus],
        make: kernel::directory,
        worker: kernel::directory_worker,
    },
    Workload {
        name: "file",
        class: "kernel-lock-conflict",
        also: None,
        does: "processes write into one file, whose inode lock allows one write at a time",
        params: &[
            size("size", "64k", "bytes of a write"),
            time("think", "2us", "work between two writes"),
            FILES,
        ],
        fix: &[("files", "workers")],
        fixes: "a file for each process",
        twin_also: None,
        needs: &[Need::Cpus],
        make: kernel::file,
        worker: kernel::file_worker,
    },
    Workload {
        name: "position",
        class: "kernel-lock-conflict",
        also: None,
        does: "threads read through one open file, whose position lock allows one read at a time",
        params: &[
            size("size", "64k", "bytes of a read"),
            time("think", "2us", "work between two reads"),
            count(
                "opened",
                "1",
                "how often the file is opened; threads are spread over the open files",
            ),
        ],
        fix: &[("opened", "workers")],
        fixes: "an open file for each thread",
        twin_also: None,
        needs: &[Need::Cpus],
        make: kernel::position,
        worker: no_process,
    },
    Workload {
        name: "threads",
        class: "kernel-lock-conflict",
        also: None,
        does: "threads start and end threads, whose stacks are mapped in one address space",
        params: &[
            size("size", "48M", "stack of a thread; no libc caches a stack this large"),
            time("think", "2us", "work between two operations"),
            PROCESSES,
        ],
        fix: &[("apart", "1")],
        fixes: "processes, each with an address space of its own",
        twin_also: None,
        needs: &[Need::Cpus],
        make: kernel::threads,
        worker: kernel::threads_worker,
    },
    Workload {
        name: "terminal",
        class: "funneled-driver",
        also: None,
        does: "processes write to terminals; one kernel worker on one CPU handles what they wrote",
        params: &[
            size("size", "2k", "bytes of a write"),
            time("think", "0", "work between two writes"),
            count("funnel", "1", "1: the kernel's workers run on CPU 0 only"),
        ],
        fix: &[("funnel", "0")],
        fixes: "workers free to run anywhere",
        twin_also: Some((
            OVERLOAD,
            "with a writer, a reader and a worker for each CPU there are three tasks per CPU",
        )),
        needs: &[Need::Cpus, Need::Workers],
        make: driver::terminal,
        worker: driver::terminal_worker,
    },
    Workload {
        name: "kernel-path",
        class: "mp-up-overhead",
        also: None,
        does: "processes make system calls that share no data of the kernel",
        params: &[time("think", "1us", "work between two calls")],
        fix: &[],
        fixes: "",
        twin_also: None,
        needs: &[Need::Uniprocessor],
        make: cpu::kernel_path,
        worker: cpu::kernel_path_worker,
    },
    Workload {
        name: "bandwidth",
        class: "hardware-bandwidth",
        also: None,
        does: "threads stream through more memory than the caches hold",
        params: &[size("size", "256M", "memory of each thread")],
        fix: &[("size", "128k")],
        fixes: "memory that fits into a cache",
        twin_also: None,
        needs: &[Need::Cpus, Need::Counters],
        make: memory::bandwidth,
        worker: no_process,
    },
    Workload {
        name: "false-sharing",
        class: "hardware-bandwidth",
        also: None,
        does: "threads increment words in the same cache line",
        params: &[count("apart", "0", "1: each word is in its own cache line")],
        fix: &[("apart", "1")],
        fixes: "a cache line for each thread",
        twin_also: None,
        needs: &[Need::Cpus, Need::Counters],
        make: memory::false_sharing,
        worker: no_process,
    },
    Workload {
        name: "disk",
        class: "io-bound",
        also: None,
        does: "processes write records, and wait until the records are on the disk",
        params: &[
            size("size", "4k", "bytes of a record"),
            time("think", "100us", "work for a record"),
            count("each", "1", "number of records after which a process waits for the disk"),
        ],
        fix: &[("each", "100")],
        fixes: "one wait for the disk after every hundred records",
        twin_also: None,
        needs: &[Need::Disk],
        make: disk::make,
        worker: disk::worker,
    },
    Workload {
        name: "quota",
        class: "cpu-quota",
        also: None,
        does: "threads compute in a control group whose quota is less CPU time than they need",
        params: &[
            time("work", "1ms", "a piece of work"),
            percent("share", "40%", "percentage of all CPUs that the group may use; 0: no quota"),
            time("period", "20ms", "period of the quota"),
        ],
        fix: &[("share", "0")],
        fixes: "no quota",
        twin_also: None,
        needs: &[Need::Quota],
        make: cpu::quota,
        worker: no_process,
    },
    Workload {
        name: "overload",
        class: OVERLOAD,
        also: None,
        does: "more threads compute than there are CPUs",
        params: &[
            time("work", "1ms", "a piece of work"),
            count("each", "4", "number of threads for each worker"),
        ],
        fix: &[],
        fixes: "",
        twin_also: None,
        needs: &[],
        make: cpu::overload,
        worker: no_process,
    },
    Workload {
        name: "compute",
        class: HEALTHY,
        also: None,
        does: "threads compute independently of each other",
        params: &[time("work", "1ms", "a piece of work")],
        fix: &[],
        fixes: "",
        twin_also: None,
        needs: &[],
        make: cpu::compute,
        worker: no_process,
    },
    Workload {
        name: "naps",
        class: HEALTHY,
        also: None,
        does: "threads work a little, sleep, and work again, independently of each other",
        params: &[time("work", "300us", "work between two naps"), time("nap", "2ms", "a nap")],
        fix: &[],
        fixes: "",
        twin_also: None,
        needs: &[],
        make: cpu::naps,
        worker: no_process,
    },
    Workload {
        name: "jobs",
        class: HEALTHY,
        also: None,
        does: "parallel jobs that run at the same time, as in PARbench: rounds of computing, a \
               barrier of the job's threads, and writing",
        params: &[
            count("threads", "1", "threads of a job"),
            time("work", "500ms", "computing time of a job, shared by its threads"),
            time("round", "5ms", "computing time of a job between two barriers"),
            percent(
                "io",
                "0",
                "percentage of a job's rounds that end with writing a record to the disk",
            ),
            count("busy", "0", "1: threads wait at barriers without sleeping"),
            count("bound", "0", "1: the threads of a job stay on one CPU"),
            time("delay", "0", "how much later each job starts than the previous one"),
        ],
        fix: &[],
        fixes: "",
        twin_also: None,
        needs: &[],
        make: jobs::make,
        worker: jobs::worker,
    },
];

impl Workload {
    /// The workload of this name.
    pub fn named(name: &str) -> Option<&'static Workload> {
        WORKLOADS.iter().find(|workload| workload.name == name)
    }

    /// All its parameters.
    pub fn all_params(&self) -> Vec<&'static Param> {
        COMMON.iter().chain(self.params).collect()
    }

    /// Whether it has a fixed variant.
    pub fn has_twin(&self) -> bool {
        !self.fix.is_empty()
    }

    /// Its settings, with those of the fixed variant if requested, and `changes` on top.
    pub fn settings<'a>(
        &self,
        fixed: bool,
        changes: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Result<Settings, ParamError> {
        let fix = if fixed { self.fix } else { &[] };
        let changes = fix.iter().copied().chain(changes);
        Settings::new(self.name, &self.all_params(), changes, crate::cpus())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_workload_has_a_name_of_its_own_and_settings_that_are_understood() {
        let names: BTreeSet<_> = WORKLOADS.iter().map(|w| w.name).collect();
        assert_eq!(names.len(), WORKLOADS.len());
        for workload in WORKLOADS {
            let (ill, well) = (workload.settings(false, []), workload.settings(true, []));
            let (ill, well) = (ill.unwrap(), well.unwrap());
            assert_eq!(ill != well, workload.has_twin(), "{}", workload.name);
            assert_eq!(workload.has_twin(), !workload.fixes.is_empty(), "{}", workload.name);
        }
    }
}
