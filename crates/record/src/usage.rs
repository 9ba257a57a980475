//! What the recorder itself costs.
#![allow(unsafe_code, reason = "getrusage")]

use std::mem::MaybeUninit;
use std::time::Duration;

/// CPU time of this process so far, in user mode and in the kernel, without its children.
pub fn cpu_time() -> Duration {
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: the kernel writes the structure; if it does not, zeros are a valid one.
    let usage = unsafe {
        libc::getrusage(libc::RUSAGE_SELF, usage.as_mut_ptr());
        usage.assume_init()
    };
    let time = |t: libc::timeval| {
        Duration::from_secs(t.tv_sec as u64) + Duration::from_micros(t.tv_usec as u64)
    };
    time(usage.ru_utime) + time(usage.ru_stime)
}
