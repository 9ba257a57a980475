//! The phases of a trace, each judged, and which part of the trace the verdict is about.
//!
//! A trace of one phase takes one pass. Where the work has several, a second pass judges each on
//! its own. The verdict is that of the work: if start-up and tail take enough of the trace to
//! matter, only what lies between them is judged.

use crate::Facts;
use crate::report::Class;
use holdup_attribution::phases::edges_matter;
use holdup_attribution::{Part, Phase, Thresholds, analyze, analyze_parts, phases};
use holdup_passes::{Analysis, Detail, Options};
use holdup_trace::{Nanos, Quality, Reader, Result};
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
    /// The leaf of the ledger that has most of the phase's capacity.
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
        let leaves = facts.judged.ledger.leaves();
        if let Some((leaf, _)) = leaves.max_by_key(|&(leaf, ns)| (ns, std::cmp::Reverse(leaf))) {
            self.leading_leaf = leaf.path();
        }
        self.class = Some(crate::judge(&facts).verdict.class);
    }
}

/// A trace, read as often as its phases need.
pub struct Judged {
    /// The part that the verdict is about: everything, or the work alone.
    pub analysis: Analysis,
    /// Its phases and those left out; empty where there is but one. They are judged where the work
    /// has several, or is judged without the others.
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

    /// Read `part` of the trace, from the middle of what is judged, to replay it: who works all the
    /// time does in the middle what it does elsewhere.
    fn read_window(&mut self, reader: &dyn Reader, options: &Options, part: f64) -> Result<()> {
        let wall = self.analysis.wall_ns();
        let ns = ((self.whole().wall_ns() as f64 * part) as Nanos).min(wall);
        let from = self.analysis.start_ns() + (wall - ns) / 2;
        let mut options = options.clone();
        options.detail = Detail::Steps;
        (options.selection.from, options.selection.to) = (Some(from), Some(from + ns));
        self.window = Some(analyze(reader, &options)?);
        Ok(())
    }
}

/// Read the trace; once more if the work alone is to be judged, or has several phases, to judge
/// each; a third time if both are so. A part of the trace that was asked for by its times is
/// judged whole.
///
/// # Errors
/// Those of [`analyze`].
pub fn read(reader: &dyn Reader, options: &Options, thresholds: &Thresholds) -> Result<Judged> {
    let options = &Options { limits: thresholds.clone(), ..options.clone() };
    let whole = analyze(reader, options)?;
    let found = phases(&whole, thresholds);
    let mut rows = PhaseRow::of(&found);
    // Phases are the machine's: where threads were chosen, all of the time is theirs.
    if rows.len() < 2 || options.work.chooses_threads() {
        return Ok(Judged::of_all(whole, Vec::new()));
    }
    let asked = options.selection.from.is_some() || options.selection.to.is_some();
    let alone = edges_matter(&found, thresholds) && !asked;
    let is_work = |p: &Phase| p.part == Part::Work;
    let work: Vec<usize> = (0..found.len()).filter(|&i| is_work(&found[i])).collect();
    if !alone && work.len() < 2 {
        // Nothing is left out, and no part of the work can differ from the rest.
        return Ok(Judged::of_all(whole, rows));
    }
    let mut only = None;
    let mut quality = judge_each(reader, &whole, &mut rows, thresholds, &mut |at, part| {
        if alone && work == [at] {
            only = Some(part);
        }
    })?;
    if !alone {
        return Ok(Judged::of_all(whole, rows));
    }
    if let (None, Some(&first), Some(&last)) = (&only, work.first(), work.last()) {
        let borders = [found[first].start, found[last].end];
        quality = analyze_parts(reader, &whole, &borders, &mut |part| only = Some(part))?;
    }
    let left_out_ns = found.iter().filter(|p| !is_work(p)).map(Phase::wall_ns).sum();
    match only {
        Some(mut analysis) => {
            analysis.absorb(&quality);
            Ok(Judged { analysis, phases: rows, left_out_ns, whole: Some(whole), window: None })
        }
        None => Ok(Judged::of_all(whole, rows)),
    }
}

/// The same with what a replay needs: of all (`part` is 1), of a window, or nothing. See
/// [`crate::replayed_part`].
///
/// # Errors
/// Those of [`analyze`].
pub fn read_to_replay(
    reader: &dyn Reader,
    options: &Options,
    thresholds: &Thresholds,
    part: Option<f64>,
) -> Result<Judged> {
    let all = part.is_some_and(|part| part >= 1.0);
    let detail = if all { Detail::Steps } else { options.detail };
    let mut judged = read(reader, &Options { detail, ..options.clone() }, thresholds)?;
    if let Some(part) = part.filter(|&part| part < 1.0) {
        let options = Options { limits: thresholds.clone(), ..options.clone() };
        judged.read_window(reader, &options, part)?;
    }
    Ok(judged)
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
    let found = phases(&whole, thresholds);
    let mut rows = PhaseRow::of(&found);
    if let [row] = &mut rows[..] {
        row.judge(reader, &whole, thresholds);
    } else {
        judge_each(reader, &whole, &mut rows, thresholds, &mut |_, _| ())?;
    }
    Ok((whole, rows))
}

/// Read the trace once more, cut where the rows of its phases say, and judge each row. `done` gets
/// the number of the row and its part of the trace.
fn judge_each(
    reader: &dyn Reader,
    whole: &Analysis,
    rows: &mut [PhaseRow],
    thresholds: &Thresholds,
    done: &mut dyn FnMut(usize, Analysis),
) -> Result<Quality> {
    let mut borders: Vec<Nanos> = rows.iter().map(|r| r.start_ns).collect();
    borders.extend(rows.last().map(|r| r.end_ns));
    let mut left = rows.iter_mut().enumerate();
    analyze_parts(reader, whole, &borders, &mut |part| {
        if let Some((at, row)) = left.next() {
            row.judge(reader, &part, thresholds);
            done(at, part);
        }
    })
}
