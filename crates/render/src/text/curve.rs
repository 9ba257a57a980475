//! The curve of a prediction, in plain characters.

use super::escape::escape;
use super::{Page, TextOptions};
use holdup_diagnose::predict::Curve;
use std::io::{self, Write};

/// Lines of the picture: every third has a number, which gives quarters.
const HEIGHT: usize = 13;
/// Width of the picture without its axis, if the terminal is wide enough.
const WIDTH: usize = 60;
/// Width of the axis and its numbers, in columns.
const AXIS: usize = 8;

/// Later characters overwrite earlier ones.
const NOTHING_LOST: char = '.';
const PREDICTED: char = '*';
const MEASURED: char = 'o';

/// Write the curve.
pub(super) fn write(
    curve: &Curve,
    page: &Page,
    options: &TextOptions,
    out: &mut dyn Write,
) -> io::Result<()> {
    let Some(&(most, _)) = curve.points.last().filter(|p| p.0 > 1) else { return Ok(()) };
    let width = options.width.map_or(WIDTH, |w| w.saturating_sub(AXIS).clamp(20, WIDTH));
    let mut lines = vec![vec![' '; width]; HEIGHT];
    let column = |cpus: f64| {
        let place = (cpus - 1.0) / f64::from(most - 1) * (width - 1) as f64;
        (place.round().max(0.0) as usize).min(width - 1)
    };
    let line = |working: f64| {
        let place = working / f64::from(most) * (HEIGHT - 1) as f64;
        HEIGHT - 1 - (place.round().max(0.0) as usize).min(HEIGHT - 1)
    };
    let cpus_of = |x: usize| 1.0 + x as f64 / (width - 1) as f64 * f64::from(most - 1);
    for x in 0..width {
        lines[line(cpus_of(x))][x] = NOTHING_LOST;
    }
    for x in 0..width {
        lines[line(between(&curve.points, cpus_of(x)))][x] = PREDICTED;
    }
    if let Some((cpus, working)) = curve.measured {
        lines[line(working)][column(f64::from(cpus))] = MEASURED;
    }
    let paint = options.paint();
    page.separate(out)?;
    let title = format!("Working CPUs over CPUs: {}", escape(&curve.object));
    writeln!(out, "{}", paint.title(title))?;
    for (y, marks) in lines.iter().enumerate() {
        let working = f64::from(most) * (HEIGHT - 1 - y) as f64 / (HEIGHT - 1) as f64;
        let number = if y % 3 == 0 { format!("{working:.1}") } else { String::new() };
        let marks: String = marks.iter().collect();
        writeln!(out, "{number:>6} |{}", paint.bar(marks.trim_end()))?;
    }
    let half = 1 + (most - 1) / 2;
    let mut scale = vec![' '; width + most.to_string().len()];
    for cpus in [1, half, most] {
        let at = column(f64::from(cpus));
        for (i, digit) in cpus.to_string().chars().enumerate() {
            scale[at + i] = digit;
        }
    }
    let scale: String = scale.iter().collect();
    writeln!(out, "{:>6} +{}", "", "-".repeat(width))?;
    writeln!(out, "{:>6}  {} CPUs", "", scale.trim_end())?;
    let measured =
        if curve.measured.is_some() { format!("   {MEASURED} measured") } else { String::new() };
    let legend = format!("{PREDICTED} predicted{measured}   {NOTHING_LOST} without losses");
    writeln!(out, "        {}", paint.dim(legend))
}

/// The value at `x` on straight lines between `points`.
fn between(points: &[(u32, f64)], x: f64) -> f64 {
    let after = points.partition_point(|p| f64::from(p.0) < x);
    match (after.checked_sub(1).and_then(|i| points.get(i)), points.get(after)) {
        (Some(a), Some(b)) => {
            let part = (x - f64::from(a.0)) / f64::from(b.0 - a.0);
            a.1 + (b.1 - a.1) * part
        }
        (Some(p), None) | (None, Some(p)) => p.1,
        (None, None) => 0.0,
    }
}
