//! `holdup syscalls`: system calls.

use crate::cli::{SyscallsArgs, SyscallsBy};
use crate::code;
use crate::exit::Result;
use crate::tables::{no_symbols, table, table_with, with_remarks};
use holdup_passes::{Analysis, Detail, Group};
use holdup_profile::KnowsCode;
use holdup_render::schema;
use holdup_trace::Reader;

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
    let build = |reader: &dyn Reader, a: &Analysis| {
        let mut rows = a.syscalls(by);
        let code = code::of_all(reader, a, &args.symbols)?;
        for row in &mut rows {
            row.code = code.as_ref().and_then(|code| code.call(row.nr)?.words());
        }
        Ok(with_remarks(schema::syscalls(&rows, by), code))
    };
    table_with(
        "syscalls",
        (&args.table, &args.symbols),
        Detail::Sums,
        schema::syscalls(&[], by),
        build,
    )
}
