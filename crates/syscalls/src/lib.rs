//! System calls of the *recorded* machine, not of the host that reads the recording.
//!
//! A trace holds numbers: `raw_syscalls:sys_enter` says `id=202`, `raw_syscalls:sys_exit` says
//! `ret=-110`. What they mean depends on the [`Arch`] the kernel ran on. This crate names them
//! ([`name`], [`errno_name`]), finds the number behind a tracepoint's spelling ([`entry_number`]),
//! says what a thread asleep in a call most plausibly waits for ([`wait_kind`]), and which calls a
//! recording needs ([`Preset`]).
//!
//! Names are those `perf trace` prints, which are those of the kernel's system call tables.

mod arch;
mod arity;
mod errno;
mod kind;
mod preset;
mod table;

pub use arch::Arch;
pub use arity::arguments;
pub use errno::{errno_name, restarts};
pub use kind::{
    Direction, WaitKind, begets, changes_address_space, io_direction, is_message, is_semaphore,
    is_signal, wait_kind, wait_kinds, without_width,
};
pub use preset::{FAMILIES, Family, Preset};
pub use table::{entry_number, name, number, table_len};
