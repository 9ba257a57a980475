//! `holdup summary`: all tables in short form.

use crate::cli::SummaryArgs;
use crate::exit::Result;
use crate::tables::{locks_by_class, mark_missing};
use crate::write::report;
use holdup_attribution::{Attribution, Thresholds};
use holdup_diagnose::phases::PhaseRow;
use holdup_passes::{Analysis, Group};
use holdup_render::{Body, BusyCourse, Section, Table, schema};
use holdup_trace::Reader;

/// Rows per table of a summary's text: it should stay within two screens.
const ENTRIES: usize = 10;

/// Run the verb.
pub(crate) fn run(args: &SummaryArgs) -> Result<()> {
    report("summary", &args.common, |reader, analysis, config| {
        let entries = config.entries(args.entries.entries, ENTRIES);
        Ok(Body::Summary(sections(reader, analysis, args.per_cpu, entries)))
    })
}

fn sections(
    reader: &dyn Reader,
    analysis: &Analysis,
    per_cpu: bool,
    entries: Option<usize>,
) -> Vec<Section> {
    let with = |mut table: Table, entries: Option<usize>| {
        table.entries = entries;
        mark_missing(&mut table, &reader.info().capabilities);
        Section::Table(table)
    };
    let mut sections = vec![
        with(schema::sar(&analysis.sar(per_cpu), per_cpu), None),
        Section::Ledger(Box::new(Attribution::from(analysis).ledger)),
        with(schema::cpus(&analysis.cpu_rows()), None),
        with(schema::first_procs(analysis.procs_by_thread(), entries), entries),
        with(schema::syscalls(&analysis.syscalls(Group::System), Group::System), entries),
        with(schema::first_switches(analysis.switches_by_thread(), entries), entries),
        with(schema::irqs(&analysis.irqs(true), true), entries),
    ];
    sections.insert(1, Section::Busy(BusyCourse::of(analysis)));
    let phases = PhaseRow::of(&holdup_attribution::phases(analysis, &Thresholds::default()));
    if phases.len() > 1 {
        sections.insert(2, Section::Phases(phases));
    }
    // Most recordings lack locks.
    if analysis.sees_locks() {
        sections.push(with(locks_by_class(analysis), entries));
    }
    sections
}
