//! The phases of a trace, each judged, and which part of the trace the verdict is about.
//!
//! A first look at switches alone finds the phases. The verdict is that of the work: if start-up
//! and tail take enough of the trace to matter, what lies between them is judged. `holdup phases`
//! judges every phase on its own. Whatever is wanted of the judged part and of all, its events are
//! read once.

use crate::Facts;
use crate::report::Class;
use holdup_attribution::phases::edges_matter;
use holdup_attribution::{
    Ledger, Part, Phase, Thresholds, analyze, analyze_parts, analyze_windows, phases,
    phases_by_switches,
};
use holdup_passes::{Analysis, Detail, Options, Window};
use holdup_trace::{Cpu, Nanos, Reader, Result, Switches};
use serde::Serialize;

/// A phase as `holdup phases` prints it.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
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

/// A trace, read for its verdict.
pub struct Judged {
    /// The part that the verdict is about: everything, or the work alone.
    pub analysis: Analysis,
    /// Its phases and those left out; empty where threads were chosen, of whom all time is.
    pub phases: Vec<PhaseRow>,
    /// Time of the phases left out.
    pub left_out_ns: Nanos,
    /// Time of all that was read, where `analysis` is of a part.
    pub part_of_ns: Option<Nanos>,
    /// All that was read, where `analysis` is of a part and somebody wants all.
    pub whole: Option<Analysis>,
    /// Of a recording too large to replay whole: the part to replay.
    pub window: Option<Analysis>,
}

/// What is wanted beside the verdict.
#[derive(Clone, Copy, Debug, Default)]
pub struct Wanted {
    /// Which part of what is judged to replay: 1 is all, see [`crate::replayed_part`].
    pub replay: Option<f64>,
    /// An analysis of all that is read.
    pub whole: bool,
}

impl Judged {
    /// Nothing is left out.
    pub fn of_all(analysis: Analysis, phases: Vec<PhaseRow>) -> Judged {
        let (part_of_ns, whole, window) = (None, None, None);
        Judged { analysis, phases, left_out_ns: 0, part_of_ns, whole, window }
    }

    /// All that was read; what is judged, where nobody wanted all.
    pub fn whole(&self) -> &Analysis {
        self.whole.as_ref().unwrap_or(&self.analysis)
    }

    /// What is replayed: the window, or what is judged.
    pub fn replayed(&self) -> &Analysis {
        self.window.as_ref().unwrap_or(&self.analysis)
    }

    /// Its phases, if they are several: one alone is no news.
    pub fn several_phases(&self) -> &[PhaseRow] {
        if self.phases.len() > 1 { &self.phases } else { &[] }
    }

    /// Hold figures against other limits from now on.
    pub fn set_limits(&mut self, limits: &Thresholds) {
        for analysis in [&mut self.whole, &mut self.window].into_iter().flatten() {
            analysis.set_limits(limits.clone());
        }
        self.analysis.set_limits(limits.clone());
    }
}

/// The phases of what `options` select, and the CPUs that show. Mostly a look at switches tells
/// them; where it depends on what threads wait for, all events are read.
///
/// # Errors
/// Those of [`analyze`].
pub fn find(
    reader: &dyn Reader,
    options: &Options,
    thresholds: &Thresholds,
) -> Result<(Vec<Phase>, Vec<Cpu>)> {
    let options = Options {
        limits: thresholds.clone(),
        selection: options.selection.clone(),
        ..Options::default()
    };
    let looked = analyze(&Switches::of(reader), &options)?;
    if let Some(phases) = phases_by_switches(&looked, thresholds) {
        return Ok((phases, looked.cpu_list().to_vec()));
    }
    let read = analyze(reader, &options)?;
    Ok((phases(&read, thresholds), read.cpu_list().to_vec()))
}

/// Read what the verdict is about, and what is wanted beside it. A part of the trace that was asked
/// for by its times is judged whole.
///
/// # Errors
/// Those of [`analyze`].
pub fn read(
    reader: &dyn Reader,
    options: &Options,
    thresholds: &Thresholds,
    wanted: Wanted,
) -> Result<Judged> {
    let options = &Options { limits: thresholds.clone(), ..options.clone() };
    // Phases are the machine's: where threads were chosen, all of the time is theirs.
    let (found, cpus) = match options.work.chooses_threads() {
        true => (Vec::new(), Vec::new()),
        false => find(reader, options, thresholds)?,
    };
    let asked = options.selection.from.is_some() || options.selection.to.is_some();
    let all = Window::all(options.selection.span(reader.info()), options.detail);
    let work = work(&found).filter(|_| edges_matter(&found, thresholds) && !asked);
    let mut judged = work.unwrap_or(all);
    judged.detail = match wanted.replay {
        Some(part) if part >= 1.0 => Detail::Steps,
        _ => options.detail,
    };
    let window = wanted.replay.filter(|&part| part < 1.0).map(|part| {
        let wall = (judged.to - judged.from).max(1);
        middle((judged.from, judged.to), part * (all.to - all.from) as f64 / wall as f64)
    });
    let whole = work.filter(|_| wanted.whole).map(|_| all);
    let windows: Vec<Window> = [Some(judged), window, whole].into_iter().flatten().collect();
    let (parts, quality) = analyze_parts(reader, options, &cpus, &windows)?;
    let mut parts = parts.into_iter();
    let Some(mut analysis) = parts.next() else {
        return Ok(Judged::of_all(analyze(reader, options)?, Vec::new()));
    };
    analysis.absorb(&quality, reader.quality());
    let window = window.and_then(|_| parts.next());
    let mut whole = whole.and_then(|_| parts.next());
    if let Some(whole) = &mut whole {
        whole.absorb(&quality, reader.quality());
    }
    let left_out = found.iter().filter(|p| work.is_some() && p.part != Part::Work);
    Ok(Judged {
        analysis,
        left_out_ns: left_out.map(Phase::wall_ns).sum(),
        phases: PhaseRow::of(&found),
        part_of_ns: work.map(|_| all.to - all.from),
        whole,
        window,
    })
}

/// What lies between start-up and tail.
fn work(found: &[Phase]) -> Option<Window> {
    let is_work = |p: &Phase| p.part == Part::Work;
    let (first, last) = (found.iter().position(is_work)?, found.iter().rposition(is_work)?);
    let closed = last + 1 == found.len();
    Some(Window { from: found[first].start, to: found[last].end, closed, detail: Detail::Sums })
}

/// `part` of what lies between two times, from its middle, to replay it: who works all the time
/// does in the middle what it does elsewhere.
fn middle((start, end): (Nanos, Nanos), part: f64) -> Window {
    let wall = end - start;
    let ns = (wall as f64 * part) as Nanos;
    let from = start + (wall - ns.min(wall)) / 2;
    Window { from, to: from + ns.min(wall), closed: true, detail: Detail::Steps }
}

/// Every phase of what was asked for, each judged: the rows of `holdup phases`, and all of it.
///
/// # Errors
/// Those of [`analyze_windows`].
pub fn judged_phases(
    reader: &dyn Reader,
    options: &Options,
    thresholds: &Thresholds,
) -> Result<(Analysis, Vec<PhaseRow>)> {
    let options = &Options { limits: thresholds.clone(), ..options.clone() };
    let (found, cpus) = find(reader, options, thresholds)?;
    let mut rows = PhaseRow::of(&found);
    if let [row] = &mut rows[..] {
        let whole = analyze(reader, options)?;
        row.judge(reader, &whole, thresholds);
        return Ok((whole, rows));
    }
    let all = Window::all(options.selection.span(reader.info()), options.detail);
    let windows: Vec<Window> = std::iter::once(all).chain(windows_of(&rows)).collect();
    let mut whole = None;
    let quality =
        analyze_windows(reader, options, &cpus, &windows, &mut |number, part| match number
            .checked_sub(1)
            .and_then(|i| rows.get_mut(i))
        {
            Some(row) => row.judge(reader, &part, thresholds),
            None => whole = Some(part),
        })?;
    let Some(mut whole) = whole else { return Ok((analyze(reader, options)?, rows)) };
    whole.absorb(&quality, reader.quality());
    Ok((whole, rows))
}

/// Judge each phase of a trace: it is read once more, with these CPUs.
///
/// # Errors
/// Those of [`analyze_windows`].
pub fn judge_each(
    reader: &dyn Reader,
    options: &Options,
    cpus: &[Cpu],
    rows: &mut [PhaseRow],
    thresholds: &Thresholds,
) -> Result<()> {
    let options = &Options { limits: thresholds.clone(), ..options.clone() };
    let windows: Vec<Window> = windows_of(rows).collect();
    analyze_windows(reader, options, cpus, &windows, &mut |number, part| {
        if let Some(row) = rows.get_mut(number) {
            row.judge(reader, &part, thresholds);
        }
    })?;
    Ok(())
}

/// Each phase as a part of the trace.
fn windows_of(rows: &[PhaseRow]) -> impl Iterator<Item = Window> {
    let last = rows.len().saturating_sub(1);
    rows.iter().enumerate().map(move |(i, row)| Window {
        from: row.start_ns,
        to: row.end_ns,
        closed: i == last,
        detail: Detail::Sums,
    })
}
