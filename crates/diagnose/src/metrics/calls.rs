//! The kind of waiting that a system call stands for, by name: Linux's and AIX's calls.

use holdup_syscalls::wait_kind;

/// What the processing time of a system call is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Sync {
    /// Objects of the threads library.
    Threads,
    /// Kernel services that applications use as locks.
    Service,
    /// Anything else.
    None,
}

/// The kind of this call.
pub(super) fn sync(name: &str) -> Sync {
    match name {
        // The kernel part of AIX 4's libpthreads.
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
