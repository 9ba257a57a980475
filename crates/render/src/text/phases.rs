//! The phases of a trace in a line, and which of them the verdict is about.

use super::units::duration;
use crate::report::BusyCourse;
use crate::spark;
use crate::trace_head::TraceHead;
use holdup_diagnose::{Diagnosis, PhaseRow};

/// `phases: 1 start-up 412 ms, 1.0 CPUs busy; 2 work …`
pub(crate) fn strip(rows: &[PhaseRow]) -> String {
    let one = |row: &PhaseRow| {
        let wall = duration(row.wall_ns());
        format!("{} {} {wall}, {:.1} CPUs busy", row.phase, row.part, row.busy_cpus)
    };
    format!("phases: {}", rows.iter().map(one).collect::<Vec<_>>().join("; "))
}

/// [`strip`] limited to a few lines: many phases get only number, name and length.
pub(super) fn short_strip(rows: &[PhaseRow]) -> String {
    /// This many phases fill two lines in full.
    const MOST: usize = 2;
    /// This many phases fill one line in short form.
    const PARTS: usize = 4;
    if rows.len() <= MOST {
        return strip(rows);
    }
    let one = |row: &PhaseRow| format!("{} {} {}", row.phase, row.part, duration(row.wall_ns()));
    let mut parts: Vec<String> = rows.iter().take(PARTS).map(one).collect();
    parts.extend((rows.len() > PARTS).then(|| format!("and {} more", rows.len() - PARTS)));
    format!("phases: {}", parts.join(", "))
}

/// `busy CPUs ▁▂█▅▁ 0 to 4, 12 ms a mark`
pub(crate) fn busy(course: &BusyCourse) -> String {
    format!(
        "busy CPUs {} 0 to {}, {} per mark",
        spark::of(&course.busy, 0.0, course.cpus as f64),
        course.cpus,
        duration(course.part_ns)
    )
}

/// Which part of the trace the verdict is about, if it is not the whole.
pub(crate) fn remark(d: &Diagnosis, judged: &TraceHead) -> Option<String> {
    let whole: u64 = d.phases.iter().map(PhaseRow::wall_ns).sum();
    let out = |row: &&PhaseRow| row.start_ns >= judged.end_ns || row.end_ns <= judged.start_ns;
    let left_out: Vec<String> = d
        .phases
        .iter()
        .filter(out)
        .map(|row| {
            let pct = row.wall_ns() as f64 * 100.0 / whole.max(1) as f64;
            format!("phase {} ({}, {pct:.0} % of the trace)", row.phase, row.part)
        })
        .collect();
    (!left_out.is_empty())
        .then(|| format!("only the work was judged, without {}", left_out.join(" and ")))
}
