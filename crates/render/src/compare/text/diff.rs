//! Every figure of two sides as text: one line per row of a table, led by its time.

use super::{Tone, head, labelled, name, tables};
use crate::compare::report::DiffReport;
use crate::compare::words;
use crate::text::units::count;
use crate::text::{TextOptions, prose};
use std::io::{self, Write};

/// Write the comparison.
pub(super) fn write(
    report: &DiffReport,
    options: &TextOptions,
    out: &mut dyn Write,
) -> io::Result<()> {
    if !options.quiet {
        prose(&head(&report.a), "A: ", "   ", options, out)?;
        prose(&head(&report.b), "B: ", "   ", options, out)?;
        writeln!(out, "Verdict: {}", verdicts(report))?;
        if let Some(differences) = &report.differences {
            labelled((Tone::Doubtful, "WARNING"), &words::differences(differences), options, out)?;
        }
        writeln!(out)?;
    }
    let (mut grid, left_out) = tables::changes(report, options);
    let paint = options.paint();
    let title = format!("What changed, {}", words::per(report.per, &report.work.to_string()));
    writeln!(out, "{}", paint.title(name(&title)))?;
    if grid.rows.is_empty() {
        return writeln!(out, "  {}", paint.dim("nothing"));
    }
    options.width.map(|w| grid.fit(w));
    grid.write(paint, out)?;
    if left_out > 0 && !options.quiet {
        let more = count(left_out as u64, "more row", "more rows");
        writeln!(out, "{}", paint.dim(format!("{more} not shown; -n 0 shows all")))?;
    }
    Ok(())
}

/// Both verdicts.
pub(in crate::compare) fn verdicts(report: &DiffReport) -> String {
    match (report.a.class, report.b.class) {
        (Some(a), Some(b)) if a == b => format!("{} in both", a.id()),
        (a, b) => format!("{} in A, {} in B", words::class(a), words::class(b)),
    }
}
