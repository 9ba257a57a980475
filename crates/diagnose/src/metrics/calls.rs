//! Which system calls are waits for whom, by name: Linux's and AIX's.

use holdup_syscalls::wait_kind;

/// What a system call's processing time stands for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Sync {
    /// The threads library's objects.
    Threads,
    /// Kernel services that applications use as locks.
    Service,
    /// Anything else.
    None,
}

/// Of this call.
pub(super) fn sync(name: &str) -> Sync {
    match name {
        // AIX 4's kernel half of libpthreads.
        "thread_waitlock" | "thread_unlock" | "thread_twait" | "thread_tsleep" | "thread_post"
        | "thread_wait" => Sync::Threads,
        "msgop" | "lockfx" | "lockf" | "kfcntl" | "msgxrcv" => Sync::Service,
        _ => match wait_kind(name) {
            kind if kind.is_library() => Sync::Threads,
            kind if kind.is_service() => Sync::Service,
            _ => Sync::None,
        },
    }
}

/// `mutex`, `semaphore` …: the object behind a call, for sentences.
pub(super) fn object(name: &str) -> &'static str {
    match name {
        "thread_waitlock" | "thread_unlock" => "mutex",
        "futex" => "futex (mutex or condition variable)",
        "semop" | "semtimedop" => "semaphore",
        "flock" | "fcntl" | "fcntl64" | "lockf" | "lockfx" | "kfcntl" => "file lock",
        n if n.starts_with("msg") || n.starts_with("mq_") => "message queue",
        _ => "object",
    }
}
