//! Numbers of system calls that a text only names.

/// Finds the number of a syscall by its name. The first argument is the machine (`uname -m`) if the
/// text has it; only perf's header does.
pub type SyscallNumber = fn(machine: Option<&str>, name: &str) -> Option<u32>;

/// Text may name a syscall without its number (`sys_read(fd: 3, …)`). The k-th such name for which
/// [`crate::TextOptions::syscall_nr`] knows no number gets this value plus k, far above any real
/// number, so that entry and exit still match; [`crate::TextTrace::unnumbered_syscall`] returns the
/// name.
pub const UNNUMBERED_SYSCALL: u32 = 0xF000_0000;
