//! `holdup phases`: the phases of a trace.

use crate::choice::{self, DIAGNOSE};
use crate::cli::PhasesArgs;
use crate::config::Config;
use crate::exit::Result;
use crate::tables::{ENTRIES, missing, sort};
use crate::thresholds::thresholds;
use crate::write::write;
use holdup_diagnose::phases::judged_phases;
use holdup_render::{Body, schema};

/// Run the verb.
pub(crate) fn run(args: &PhasesArgs) -> Result<()> {
    choice::refuse(&args.table.common.select, "phases", DIAGNOSE)?;
    sort(&args.table, &mut schema::phases(&[]))?;
    let limits = thresholds(args.thresholds.as_deref())?;
    let config = Config::new(&args.table.common)?;
    let reader = holdup_open::open(&config.trace)?;
    let options = config.options(&*reader)?;
    let (analysis, rows) = judged_phases(&*reader, &options, &limits)?;
    write("phases", config, &*reader, &analysis, |reader, _, config| {
        let mut table = schema::phases(&rows);
        sort(&args.table, &mut table)?;
        table.entries = config.entries(args.table.entries.entries, ENTRIES);
        table.missing = missing("phases", &reader.info().capabilities);
        Ok(Body::Table(table))
    })
}
