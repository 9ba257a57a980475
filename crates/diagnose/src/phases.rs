//! The phases of a trace, each judged, and which part of the trace the verdict is about.
//!
//! One reading finds the phases. The verdict is that of the work: if start-up and tail take enough
//! of the trace to matter, a second reading is of what lies between them. `holdup phases` judges
//! every phase on its own.

use crate::Facts;
use crate::report::Class;
use holdup_attribution::phases::edges_matter;
use holdup_attribution::{
    Ledger, Part, Phase, Thresholds, analyze, analyze_windows, analyze_with, phases,
};
use holdup_passes::{Analysis, Detail, Options, Window};
use holdup_trace::{Nanos, Reader, Result};
use serde::Serialize;

/// A phase as `holdup phases` prints it.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PhaseRow {
    /// Its number, from 1: what `--phase` takes.
    pub phase: u32,
    /// First time.
    pub start_ns: u64,
    /// Last time.
    pub end_ns: u64,
    /// Mean number of busy CPUs.
    pub busy_cpus: f64,
    /// The leaf of the ledger that has most of the phase's capacity; as coarse as the timeline
    /// knows it where the phase was not judged alone.
    pub leading_leaf: &'static str,
    /// The verdict on the phase alone; `null` where it was not judged alone.
    pub class: Option<Class>,
    /// Whether it is work, not start-up or tail.
    pub work: bool,
    /// `start-up`, `work` or `tail`.
    pub part: &'static str,
}

impl PhaseRow {
    /// Of the phases in order, as the timeline shows them.
    pub fn of(phases: &[Phase]) -> Vec<PhaseRow> {
        let row = |(i, p): (usize, &Phase)| PhaseRow {
            phase: i as u32 + 1,
            start_ns: p.start,
            end_ns: p.end,
            busy_cpus: p.busy_cpus,
            leading_leaf: p.leading.path(),
            class: None,
            work: p.part == Part::Work,
            part: p.part.word(),
        };
        phases.iter().enumerate().map(row).collect()
    }

    /// How long it lasts.
    pub fn wall_ns(&self) -> Nanos {
        self.end_ns - self.start_ns
    }

    /// Fill in what judging the phase alone tells.
    fn judge(&mut self, reader: &dyn Reader, analysis: &Analysis, thresholds: &Thresholds) {
        let facts = Facts::with(reader.info(), analysis, None, thresholds.clone());
        self.judged(crate::judge(&facts).verdict.class, &facts.judged.ledger);
    }

    /// What was judged was the phase, with this result.
    pub(crate) fn judged(&mut self, class: Class, ledger: &Ledger) {
        let leading = ledger.leaves().max_by_key(|&(leaf, ns)| (ns, std::cmp::Reverse(leaf)));
        if let Some((leaf, _)) = leading {
            self.leading_leaf = leaf.path();
        }
        self.class = Some(class);
    }
}

/// A trace, read as often as its phases need.
pub struct Judged {
    /// The part that the verdict is about: everything, or the work alone.
    pub analysis: Analysis,
    /// Its phases and those left out; empty where there is but one.
    pub phases: Vec<PhaseRow>,
    /// Time of the phases left out.
    pub left_out_ns: Nanos,
    /// All that was read, where `analysis` is of a part.
    pub whole: Option<Analysis>,
    /// Of a recording too large to replay whole: the part to replay.
    pub window: Option<Analysis>,
}

impl Judged {
    /// Nothing is left out.
    pub fn of_all(analysis: Analysis, phases: Vec<PhaseRow>) -> Judged {
        Judged { analysis, phases, left_out_ns: 0, whole: None, window: None }
    }

    /// All that was read.
    pub fn whole(&self) -> &Analysis {
        self.whole.as_ref().unwrap_or(&self.analysis)
    }

    /// What is replayed: the window, or all that was read.
    pub fn replayed(&self) -> &Analysis {
        self.window.as_ref().unwrap_or(self.whole())
    }

    /// Hold figures against other limits from now on.
    pub fn set_limits(&mut self, limits: &Thresholds) {
        for analysis in [&mut self.whole, &mut self.window].into_iter().flatten() {
            analysis.set_limits(limits.clone());
        }
        self.analysis.set_limits(limits.clone());
    }
}

/// Read the trace; once more if the work alone is to be judged. A part of the trace that was asked
/// for by its times is judged whole.
///
/// # Errors
/// Those of [`analyze_with`].
pub fn read(reader: &dyn Reader, options: &Options, thresholds: &Thresholds) -> Result<Judged> {
    read_to_replay(reader, options, thresholds, None)
}

/// The same with what a replay needs: of all (`part` is 1), of a window, or nothing. See
/// [`crate::replayed_part`].
///
/// # Errors
/// Those of [`analyze_with`].
pub fn read_to_replay(
    reader: &dyn Reader,
    options: &Options,
    thresholds: &Thresholds,
    part: Option<f64>,
) -> Result<Judged> {
    let detail = options.detail;
    let all = part.is_some_and(|part| part >= 1.0);
    let options = &Options {
        limits: thresholds.clone(),
        detail: if all { Detail::Steps } else { detail },
        ..options.clone()
    };
    let part = part.filter(|&part| part < 1.0);
    let window = part.map(|part| middle(options.selection.span(reader.info()), part));
    let (whole, mut windows) = analyze_with(reader, options, window.as_slice())?;
    let (window, mut replayed) = (window.as_ref(), windows.pop());
    let found = phases(&whole, thresholds);
    let rows = PhaseRow::of(&found);
    // Phases are the machine's: where threads were chosen, all of the time is theirs.
    if rows.len() < 2 || options.work.chooses_threads() {
        return Ok(Judged { window: replayed, ..Judged::of_all(whole, Vec::new()) });
    }
    let asked = options.selection.from.is_some() || options.selection.to.is_some();
    let is_work = |p: &Phase| p.part == Part::Work;
    let work = found.iter().position(is_work).zip(found.iter().rposition(is_work));
    let Some((first, last)) = work.filter(|_| edges_matter(&found, thresholds) && !asked) else {
        return Ok(Judged { window: replayed, ..Judged::of_all(whole, rows) });
    };
    let (start, end) = (found[first].start, found[last].end);
    let closed = last + 1 == found.len();
    let mut windows = vec![Window { from: start, to: end, closed, detail }];
    if let (Some(part), Some(window)) = (part, window)
        && (window.from < start || window.to > end)
    {
        let part = part * whole.wall_ns() as f64 / (end - start).max(1) as f64;
        windows.push(middle((start, end), part));
    }
    let mut judged = None;
    let quality = analyze_windows(reader, &whole, &windows, &mut |number, part| match number {
        0 => judged = Some(part),
        _ => replayed = Some(part),
    })?;
    let left_out_ns = found.iter().filter(|p| !is_work(p)).map(Phase::wall_ns).sum();
    Ok(match judged {
        Some(mut analysis) => {
            analysis.absorb(&quality, reader.quality());
            let whole = Some(whole);
            Judged { analysis, phases: rows, left_out_ns, whole, window: replayed }
        }
        None => Judged { window: replayed, ..Judged::of_all(whole, rows) },
    })
}

/// `part` of what lies between two times, from its middle, to replay it: who works all the time
/// does in the middle what it does elsewhere.
fn middle((start, end): (Nanos, Nanos), part: f64) -> Window {
    let wall = end - start;
    let ns = (wall as f64 * part) as Nanos;
    let from = start + (wall - ns.min(wall)) / 2;
    Window { from, to: from + ns.min(wall), closed: true, detail: Detail::Steps }
}

/// Every phase of what was asked for, each judged: the rows of `holdup phases`.
///
/// # Errors
/// Those of [`analyze`].
pub fn judged_phases(
    reader: &dyn Reader,
    options: &Options,
    thresholds: &Thresholds,
) -> Result<(Analysis, Vec<PhaseRow>)> {
    let options = &Options { limits: thresholds.clone(), ..options.clone() };
    let whole = analyze(reader, options)?;
    let mut rows = PhaseRow::of(&phases(&whole, thresholds));
    judge_each(reader, &whole, &mut rows, thresholds)?;
    Ok((whole, rows))
}

/// Judge each phase of a trace. Where there are several, the trace is read once more.
///
/// # Errors
/// Those of [`analyze_windows`].
pub fn judge_each(
    reader: &dyn Reader,
    whole: &Analysis,
    rows: &mut [PhaseRow],
    thresholds: &Thresholds,
) -> Result<()> {
    if let [row] = rows {
        row.judge(reader, whole, thresholds);
        return Ok(());
    }
    let last = rows.len().saturating_sub(1);
    let window = |(i, row): (usize, &PhaseRow)| Window {
        from: row.start_ns,
        to: row.end_ns,
        closed: i == last,
        detail: Detail::Sums,
    };
    let windows: Vec<Window> = rows.iter().enumerate().map(window).collect();
    analyze_windows(reader, whole, &windows, &mut |number, part| {
        if let Some(row) = rows.get_mut(number) {
            row.judge(reader, &part, thresholds);
        }
    })?;
    Ok(())
}
