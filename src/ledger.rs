//! `holdup ledger`: where the capacity went.

use crate::choice::{self, LEDGER};
use crate::cli::{LedgerArgs, LedgerBy};
use crate::exit::{Result, usage};
use crate::tables::table;
use crate::write::report;
use holdup_attribution::Attribution;
use holdup_render::{Body, schema};

/// Run the verb, for the whole machine or by control group.
pub(crate) fn run(args: &LedgerArgs) -> Result<()> {
    let common = &args.table.common;
    if args.by == LedgerBy::Cgroup {
        return table("ledger", &args.table, schema::cgroups(&[]), |a| {
            schema::cgroups(&a.cgroups())
        });
    }
    choice::refuse(&common.select, "ledger", LEDGER)?;
    if args.table.entries.entries.is_some() || args.table.sort.sort.is_some() {
        return Err(usage("-n and --sort need --by cgroup: the ledger is a tree"));
    }
    report("ledger", common, |_, a, _| Ok(Body::Ledger(Box::new(Attribution::from(a).ledger))))
}
