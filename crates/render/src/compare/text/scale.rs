//! A ladder as text: its table, the fit of the scaling laws, and where the CPU time went.

use super::{name, tables};
use crate::compare::report::ScaleReport;
use crate::compare::words;
use crate::text::units::duration;
use crate::text::{TextOptions, prose};
use holdup_gate::scale::{Row, Scaling};
use holdup_model::{Interval, Usl};
use std::io::{self, Write};

/// Efficiency above this exceeds measurement error.
const SUPER_LINEAR: f64 = 1.02;
/// A serial fraction that grows by more than this factor from the first step to the last is not a
/// property of the program alone.
const GROWN: f64 = 1.25;

/// Write the ladder.
pub(super) fn write(
    report: &ScaleReport,
    options: &TextOptions,
    out: &mut dyn Write,
) -> io::Result<()> {
    let paint = options.paint();
    for (i, (title, mut grid)) in tables::scaling(report).into_iter().enumerate() {
        if i > 0 {
            writeln!(out)?;
        }
        writeln!(out, "{}", paint.title(title))?;
        options.width.map(|w| grid.fit(w));
        grid.write(paint, out)?;
        if i == 0 && !options.quiet {
            writeln!(out)?;
            for sentence in sentences(report) {
                prose(&name(&sentence), "", "  ", options, out)?;
            }
        }
    }
    Ok(())
}

/// What the ladder means, a sentence each.
pub(in crate::compare) fn sentences(report: &ScaleReport) -> Vec<String> {
    let scaling = &report.scaling;
    let mut said = Vec::new();
    said.extend(scaling.amdahl.map(amdahl));
    said.extend(set_up(&scaling.rows));
    said.extend(growth(scaling));
    said.extend(scaling.usl.map(|law| universal(&law, scaling)));
    said.extend(
        scaling
            .rows
            .iter()
            .filter(|r| r.efficiency > SUPER_LINEAR)
            .map(|row| super_linear(row, &scaling.rows[0])),
    );
    if scaling.rows.len() < 3 {
        said.push(
            "Measurements on two numbers of CPUs cannot distinguish a serial part from contention \
             between CPUs; measurements on three can."
                .to_owned(),
        );
    }
    if scaling.leaves.is_empty() {
        said.push(
            "Times alone do not show where the CPU time went; a recording for each number of CPUs \
             does (holdup scale 1=ONE.data 2=TWO.data ...)."
                .to_owned(),
        );
    }
    said
}

fn amdahl(serial: f64) -> String {
    match serial {
        ..=0.0 => "By Amdahl's law no part of the work is serial.".to_owned(),
        1.0.. => "More CPUs do less work than one CPU: Amdahl's law would need a serial part of \
                  more than 100 %."
            .to_owned(),
        _ => format!(
            "By Amdahl's law {} of the work is serial: no number of CPUs makes it more than {} \
             times as fast.",
            words::pct(serial * 100.0),
            most(1.0 / serial)
        ),
    }
}

/// The share of serial set-up, and the speed-up of the rest.
fn set_up(rows: &[Row]) -> Option<String> {
    let last = rows.last()?;
    let without = last.without_setup?;
    let part = without.setup / last.seconds * 100.0;
    Some(format!(
        "Before the CPUs share the work, serial set-up takes {}, which is {} of the time on {} \
         CPUs. If the set-up is left out, the speedup on that number of CPUs is {:.2}, instead of \
         {:.2}.",
        duration((without.setup * 1e9) as u64),
        words::pct(part),
        last.cpus,
        without.speedup,
        last.speedup
    ))
}

/// A factor, with only as many digits as are significant.
fn most(factor: f64) -> String {
    if factor < 100.0 { format!("{factor:.1}") } else { format!("{factor:.0}") }
}

fn growth(scaling: &Scaling) -> Option<String> {
    let fractions: Vec<f64> = scaling.rows.iter().filter_map(|r| r.serial_fraction).collect();
    let (first, last) = (*fractions.first()?, *fractions.last()?);
    if fractions.len() < 2 || last <= 0.0 {
        return None;
    }
    let (from, to) = (tables::serial(first), tables::serial(last));
    Some(match last > first.max(0.0) * GROWN {
        true => format!(
            "The serial fraction grows from {from} to {to}, so CPUs slow each other down: with a \
             serial part alone, the fraction would stay the same (Karp and Flatt)."
        ),
        false => format!(
            "The serial fraction does not grow (from {from} to {to}): CPUs are idle because of a \
             serial part, not because CPUs slow each other down (Karp and Flatt)."
        ),
    })
}

fn universal(law: &Usl, scaling: &Scaling) -> String {
    let within = |i: Option<Interval>| {
        i.map_or(String::new(), |i| format!(" (95 % interval: {:.4} to {:.4})", i.low, i.high))
    };
    let coefficients = format!(
        "contention {:.4}{}, coherency {:.5}{}",
        law.sigma,
        within(law.sigma_interval),
        law.kappa,
        within(law.kappa_interval)
    );
    let last = scaling.rows.last().map_or(1, |r| r.cpus);
    let peak = match law.peak() {
        Some(peak) if peak < 10.0 * f64::from(last) => {
            let (at, speedup) = (peak.round().max(1.0), law.speedup(peak) / law.speedup(1.0));
            let cpus = if at == 1.0 { "CPU" } else { "CPUs" };
            format!(
                "the highest throughput is on {at:.0} {cpus}, {} times that of one CPU",
                most(speedup)
            )
        }
        _ => format!("the throughput has no maximum up to ten times the {last} CPUs measured"),
    };
    format!("Universal scalability law: {coefficients}; {peak}.")
}

fn super_linear(row: &Row, first: &Row) -> String {
    let fewer = match (first.switches, row.switches) {
        (Some(then), Some(now)) if now < then => format!(
            "there are {} fewer context switches ({now:.1} instead of {then:.1} in the first row)",
            words::pct((1.0 - now / then) * 100.0)
        ),
        (Some(_), Some(_)) => {
            "the number of context switches did not fall, so the usual cause is the larger total \
            size of the caches"
                .to_owned()
        }
        _ => {
            "the usual causes are fewer context switches and the larger total size of the caches; \
             recordings show which cause it is"
                .to_owned()
        }
    };
    format!("On {} CPUs the speedup is more than linear: {fewer}.", row.cpus)
}
