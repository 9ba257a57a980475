//! The phases of a trace, each judged, and which part of the trace the verdict is about.
//!
//! A first pass over switches alone finds the phases. The verdict is about the work: if start-up
//! and tail take enough of the trace to matter, only what lies between is judged. `holdup phases`
//! judges every phase separately. Whatever is wanted of the judged part and of the whole, all
//! events are read only once.

use crate::Facts;
pub use crate::judged::{Judged, PhaseRow, Wanted};
use holdup_attribution::phases::edges_matter;
use holdup_attribution::{
    Part, Phase, Thresholds, analyze, analyze_parts, analyze_windows, phases, phases_by_switches,
};
use holdup_passes::{Analysis, Detail, Observer, Options, Window};
use holdup_trace::{Cpu, Nanos, Reader, Result, Switches};

/// The phases of what `options` select, and the CPUs that are seen. Mostly the switches are enough;
/// if the phases depend on what threads wait for, all events are read.
///
/// # Errors
/// The errors of [`analyze`].
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

/// Read what the verdict is about, and what is wanted in addition. A part of the trace that the
/// user selected by its times is judged whole.
///
/// # Errors
/// The errors of [`analyze`].
pub fn read(
    reader: &dyn Reader,
    options: &Options,
    thresholds: &Thresholds,
    wanted: Wanted,
) -> Result<Judged> {
    read_observed(reader, options, thresholds, wanted, None)
}

/// [`read`] with an observer, that gets all events and the facts of the judged part.
///
/// # Errors
/// The errors of [`analyze`].
pub fn read_observed(
    reader: &dyn Reader,
    options: &Options,
    thresholds: &Thresholds,
    wanted: Wanted,
    observer: Option<&mut dyn Observer>,
) -> Result<Judged> {
    let options = &Options { limits: thresholds.clone(), ..options.clone() };
    // Phases are the machine's: chosen threads are judged over all the time.
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
    let (parts, quality) = analyze_parts(reader, options, &cpus, &windows, observer)?;
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

/// The part between start-up and tail.
fn work(found: &[Phase]) -> Option<Window> {
    let is_work = |p: &Phase| p.part == Part::Work;
    let (first, last) = (found.iter().position(is_work)?, found.iter().rposition(is_work)?);
    let closed = last + 1 == found.len();
    Some(Window { from: found[first].start, to: found[last].end, closed, detail: Detail::Sums })
}

/// `part` of the time between the two, from its middle, for a replay: work that lasts is in the
/// middle as it is elsewhere.
fn middle((start, end): (Nanos, Nanos), part: f64) -> Window {
    let wall = end - start;
    let ns = (wall as f64 * part) as Nanos;
    let from = start + (wall - ns.min(wall)) / 2;
    Window { from, to: from + ns.min(wall), closed: true, detail: Detail::Steps }
}

/// Every phase of the selected part, each judged: the rows of `holdup phases`, and the whole.
///
/// # Errors
/// The errors of [`analyze_windows`].
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
        judge(row, reader, &whole, thresholds);
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
            Some(row) => judge(row, reader, &part, thresholds),
            None => whole = Some(part),
        })?;
    let Some(mut whole) = whole else { return Ok((analyze(reader, options)?, rows)) };
    whole.absorb(&quality, reader.quality());
    Ok((whole, rows))
}

/// Judge each phase of a trace, which is read once more with these CPUs.
///
/// # Errors
/// The errors of [`analyze_windows`].
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
            judge(row, reader, &part, thresholds);
        }
    })?;
    Ok(())
}

/// Each phase as a window of the trace.
fn windows_of(rows: &[PhaseRow]) -> impl Iterator<Item = Window> {
    let last = rows.len().saturating_sub(1);
    rows.iter().enumerate().map(move |(i, row)| Window {
        from: row.start_ns,
        to: row.end_ns,
        closed: i == last,
        detail: Detail::Sums,
    })
}

/// Fill in what judging the phase alone tells.
fn judge(row: &mut PhaseRow, reader: &dyn Reader, analysis: &Analysis, thresholds: &Thresholds) {
    let facts = Facts::with(reader.info(), analysis, None, thresholds.clone());
    row.judged(crate::judge(&facts).verdict.class, &facts.judged.ledger);
}
