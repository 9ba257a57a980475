//! The verbs: each reads the trace once and selects its tables.

use crate::choice::{self, PROCS};
use crate::cli::{Command, IrqsBy, ProcsBy, SwitchesBy};
use crate::exit::{self, Result};
use crate::tables::table;
use holdup_passes::Group;
use holdup_render::schema;

/// Run one verb.
pub(crate) fn run(command: &Command) -> Result<u8> {
    match command {
        Command::Diagnose(args) => return crate::diagnose::run(args),
        Command::Report(args) => return crate::report::run(args),
        Command::Record(args) => return crate::record::run(args),
        Command::Run(args) => return crate::record::run::run(args),
        Command::Guide(args) => return crate::guide::run(args),
        Command::Baseline(args) => return crate::gate::baseline::run(args),
        Command::Diff(args) => return crate::gate::diff::run(args),
        Command::History(args) => return crate::gate::history::run(args),
        Command::Scale(args) => return crate::gate::scale::run(args),
        Command::Profile(args) => return crate::profile::run(args),
        Command::Predict(args) => return crate::predict::run(args),
        Command::Whatif(args) => return crate::whatif::run(args),
        Command::Gate(args) => return crate::gate::judge::run(args),
        Command::Rules(args) => return crate::rules::run(args),
        Command::Events(args) => return crate::events::run(args),
        Command::Query(args) => return crate::query::run(args),
        Command::Export(args) => return crate::export::run(args),
        Command::Cut(args) => return crate::cut::run(args),
        Command::Fleet(args) => return crate::fleet::run(args),
        Command::Lab(args) => return crate::lab::run(args),
        Command::Doctor(args) => return crate::doctor::run(args),
        Command::Completions(args) => return crate::man::completions(args.shell),
        Command::Man(args) => return crate::man::run(args.folder.as_deref()),
        Command::Syscalls(args) => crate::syscalls::run(args),
        Command::Procs(args) => {
            let by = procs_group(args.by);
            table("procs", &args.table, schema::procs(&[], by), |a| schema::procs(&a.procs(by), by))
        }
        Command::Cpus(args) => {
            choice::refuse(&args.table.common.select, "cpus", PROCS)?;
            table("cpus", &args.table, schema::cpus(&[]), |a| schema::cpus(&a.cpu_rows()))
        }
        Command::Switches(args) => match args.by {
            SwitchesBy::Thread => table("switches", &args.table, schema::switches(&[]), |a| {
                schema::switches(&a.switches())
            }),
            SwitchesBy::Cgroup => {
                let empty = schema::switches_by_cgroup(&[]);
                table("switches", &args.table, empty, |a| {
                    schema::switches_by_cgroup(&a.switches_by_cgroup())
                })
            }
        },
        Command::Latency(args) => crate::latency::run(args),
        Command::Irqs(args) => {
            choice::refuse(&args.table.common.select, "irqs", PROCS)?;
            let per_cpu = args.by == IrqsBy::Cpu;
            table("irqs", &args.table, schema::irqs(&[], per_cpu), |a| {
                schema::irqs(&a.irqs(per_cpu), per_cpu)
            })
        }
        Command::Waits(args) => crate::waits::run(args),
        Command::Phases(args) => crate::phases::run(args),
        Command::Path(args) => crate::path::run(args),
        Command::Locks(args) => crate::locks::run(args),
        Command::Ledger(args) => crate::ledger::run(args),
        Command::Info(args) => crate::info::run(args),
        Command::Summary(args) => crate::summary::run(args),
    }?;
    Ok(exit::OK)
}

fn procs_group(by: ProcsBy) -> Group {
    match by {
        ProcsBy::Command => Group::Command,
        ProcsBy::Process => Group::Process,
        ProcsBy::Thread => Group::Thread,
        ProcsBy::Cgroup => Group::Cgroup,
    }
}
