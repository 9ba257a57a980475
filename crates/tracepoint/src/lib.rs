//! From tracefs `format` text to a plan that decodes raw records.
//!
//! A binary trace carries, for every event, the text the kernel prints in
//! `/sys/kernel/tracing/events/SYSTEM/NAME/format`. [`Format::parse`] reads it, [`Plan::compile`]
//! turns it once into fixed offsets checked against one minimum length, and [`Plan::decode`]
//! reads a record with plain loads. Nothing about a layout is assumed: kernels differ in field
//! order, width (`char[16]` or `__data_loc char[]` for comm) and padding.

mod endian;
mod format;
mod plan;
mod print_fmt;

pub use endian::{Big, Endian, Little};
pub use format::{Field, Format, FormatError};
pub use plan::{
    Abi, CallNumber, Int, LockdepKind, Plan, SoftirqKind, Str, WakeKind, sys_enter_64, sys_exit_64,
};
pub use print_fmt::states;
