//! How many arguments calls take. A tracepoint on all calls (`raw_syscalls:sys_enter`) has six
//! words for each. Those beyond the call's arguments are whatever was in the registers.

use std::collections::HashMap;
use std::sync::LazyLock;

/// Calls by their number of arguments, from none to five; all other calls take six.
const TAKE: [&str; 6] = [
    "fork geteuid getegid getgid getpgrp getpid getppid gettid getuid inotify_init munlockall \
     pause restart_syscall rt_sigreturn sched_yield setsid sync vfork vhangup",
    "acct adjtimex alarm brk chdir chroot close dup epoll_create epoll_create1 eventfd exit \
     exit_group fchdir fdatasync fsync getpgid getsid inotify_init1 io_destroy iopl mlockall \
     mq_unlink personality pipe rmdir sched_get_priority_max sched_get_priority_min \
     sched_getscheduler set_tid_address setfsgid setfsuid setgid setuid shmdt swapoff syncfs \
     sysinfo time timer_delete timer_getoverrun times umask uname unlink unshare userfaultfd",
    "access arch_prctl capget capset chmod clock_getres clock_gettime clock_settime clone3 creat \
     dup2 eventfd2 fchmod flock fremovexattr fstat fstatfs ftruncate getcwd getgroups getitimer \
     getpriority getrlimit getrusage gettimeofday inotify_rm_watch io_setup kill link listen \
     lremovexattr lstat memfd_create mkdir mlock msgget munlock munmap nanosleep pidfd_open pipe2 \
     pivot_root process_mrelease removexattr rename rt_sigpending rt_sigsuspend sched_getparam \
     sched_rr_get_interval sched_setparam set_robust_list setdomainname setgroups sethostname \
     setpgid setregid setreuid setrlimit settimeofday shutdown sigaltstack stat statfs swapon \
     symlink timer_gettime timerfd_create timerfd_gettime tkill truncate umount2 utime utimes",
    "accept bind bpf chown close_range connect dup3 execve faccessat fchmodat fchown fcntl \
     finit_module flistxattr futimesat get_robust_list getcpu getdents getdents64 getpeername \
     getrandom getresgid getresuid getsockname init_module inotify_add_watch io_cancel io_submit \
     ioctl ioprio_set lchown listxattr llistxattr lseek madvise membarrier mincore mkdirat mknod \
     mlock2 mprotect msgctl msync open open_by_handle_at pidfd_getfd poll read readlink readv \
     recvmsg rt_sigqueueinfo sched_getaffinity sched_setaffinity sched_setattr \
     sched_setscheduler seccomp semget semop sendmsg set_mempolicy setitimer setpriority \
     setresgid setresuid shmat shmctl shmget signalfd socket symlinkat syslog tgkill \
     timer_create unlinkat write writev",
    "accept4 clock_nanosleep epoll_ctl epoll_wait faccessat2 fadvise64 fallocate fchmodat2 \
     fgetxattr futex_requeue futex_wake getxattr io_uring_register lgetxattr migrate_pages \
     mknodat mq_open msgsnd newfstatat openat openat2 pidfd_send_signal pread64 prlimit64 ptrace \
     pwrite64 quotactl readlinkat reboot renameat rseq rt_sigaction rt_sigprocmask \
     rt_sigtimedwait rt_tgsigqueueinfo sched_getattr semctl semtimedop sendfile sendmmsg \
     signalfd4 socketpair sync_file_range tee timer_settime timerfd_settime utimensat vmsplice \
     wait4",
    "add_key clone execveat fchownat fsetxattr futex_waitv get_mempolicy getsockopt io_getevents \
     kcmp keyctl linkat lsetxattr mount move_mount mq_timedreceive mq_timedsend mremap msgrcv \
     name_to_handle_at perf_event_open ppoll prctl preadv process_madvise pwritev recvmmsg \
     remap_file_pages renameat2 select setsockopt setxattr statx waitid",
];

/// How many of six words are a call's arguments; six if unknown.
pub fn arguments(name: &str) -> usize {
    static BY_NAME: LazyLock<HashMap<&str, usize>> = LazyLock::new(|| {
        let calls = |(n, list): (usize, &'static str)| {
            list.split_ascii_whitespace().map(move |call| (call, n))
        };
        (0..).zip(TAKE).flat_map(calls).collect()
    });
    BY_NAME.get(name).copied().unwrap_or(TAKE.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Arch, number};

    #[test]
    fn each_call_is_there_once_and_exists() {
        let mut all: Vec<&str> = TAKE.iter().flat_map(|l| l.split_ascii_whitespace()).collect();
        all.iter().for_each(|call| assert!(number(Arch::X86_64, call).is_some(), "{call}"));
        let count = all.len();
        all.sort_unstable();
        all.dedup();
        assert_eq!((all.len(), count > 250), (count, true));
    }

    #[test]
    fn words_beyond_the_arguments_are_none() {
        let of = ["getpid", "close", "kill", "write", "openat", "clone", "futex", "no_such_call"];
        assert_eq!(of.map(arguments), [0, 1, 2, 3, 4, 5, 6, 6]);
    }
}
