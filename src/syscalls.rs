//! `holdup syscalls`: system calls.

use crate::cli::{SyscallsArgs, SyscallsBy};
use crate::exit::Result;
use crate::tables::{no_symbols, table, table_with_code};
use holdup_passes::{Analysis, Group};
use holdup_profile::{Code, KnowsCode};
use holdup_render::schema;

/// Run the verb.
pub(crate) fn run(args: &SyscallsArgs) -> Result<()> {
    let by = match args.by {
        SyscallsBy::System => Group::System,
        SyscallsBy::Process => Group::Process,
        SyscallsBy::Thread => Group::Thread,
        SyscallsBy::Cgroup => Group::Cgroup,
        SyscallsBy::Caller => {
            return crate::profile::callers::syscalls(&args.table, &args.symbols);
        }
    };
    if by != Group::System {
        no_symbols(&args.symbols, "system or --by caller")?;
        return table("syscalls", &args.table, schema::syscalls(&[], by), |a| {
            schema::syscalls(&a.syscalls(by), by)
        });
    }
    let build = |a: &Analysis, code: Option<&Code<'_>>| {
        let mut rows = a.syscalls(by);
        for row in &mut rows {
            row.code = code.and_then(|code| code.call(row.nr)?.words());
        }
        schema::syscalls(&rows, by)
    };
    let empty = schema::syscalls(&[], by);
    table_with_code("syscalls", (&args.table, &args.symbols), empty, build)
}
