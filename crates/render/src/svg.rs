//! The curve of a prediction as a picture: SVG, drawn by hand, for light and dark pages.

use crate::markup::quoted;
use holdup_diagnose::predict::Curve;
use std::fmt::Write as _;
use std::io::{self, Write};

const WIDTH: f64 = 720.0;
const HEIGHT: f64 = 460.0;
const LEFT: f64 = 64.0;
const RIGHT: f64 = 24.0;
const TOP: f64 = 64.0;
const BOTTOM: f64 = 56.0;
/// Approximate number of grid lines.
const STEPS: u32 = 6;

const STYLE: &str = "\
svg { font: 13px system-ui, sans-serif; --ink: #1f2328; --dim: #656d76; --grid: #d8dee4; \
--page: #ffffff; --curve: #0969da; --seen: #bc4c00; --ideal: #8c959f }
@media (prefers-color-scheme: dark) { svg { --ink: #e6edf3; --dim: #9198a1; --grid: #30363d; \
--page: #0d1117; --curve: #58a6ff; --seen: #f0883e; --ideal: #6e7681 } }
.page { fill: var(--page) } text { fill: var(--dim) } .title { fill: var(--ink); \
font-size: 16px; font-weight: 600 } .small { font-size: 11.5px }
.grid { stroke: var(--grid); stroke-width: 1 } .axis { stroke: var(--dim); stroke-width: 1; \
fill: none }
.ideal { stroke: var(--ideal); stroke-width: 1.5; stroke-dasharray: 5 4; fill: none }
.ceiling { stroke: var(--seen); stroke-width: 1.5; stroke-dasharray: 2 3; fill: none }
.curve { stroke: var(--curve); stroke-width: 2.5; fill: none; stroke-linejoin: round }
.dot { fill: var(--curve) } .seen { fill: var(--seen) } .ink { fill: var(--ink) }
";

/// Maps CPUs and working CPUs to coordinates on the page.
struct Plane {
    most: f64,
}

impl Plane {
    fn x(&self, cpus: f64) -> f64 {
        let part = if self.most > 1.0 { (cpus - 1.0) / (self.most - 1.0) } else { 0.0 };
        LEFT + part * (WIDTH - LEFT - RIGHT)
    }

    fn y(&self, working: f64) -> f64 {
        HEIGHT - BOTTOM - working / self.most * (HEIGHT - TOP - BOTTOM)
    }
}

/// Write the picture; `remark` is printed below its title.
pub fn write_curve(curve: &Curve, remark: &str, out: &mut dyn Write) -> io::Result<()> {
    out.write_all(picture(curve, remark).unwrap_or_default().as_bytes())
}

fn picture(curve: &Curve, remark: &str) -> Result<String, std::fmt::Error> {
    let most = curve.points.last().map_or(1, |p| p.0);
    let plane = Plane { most: f64::from(most) };
    let mut s = String::new();
    let title = format!("Working CPUs over CPUs: {}", quoted(&curve.object));
    writeln!(
        s,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" \
         aria-label=\"{title}\">"
    )?;
    writeln!(s, "<title>{title}</title>\n<style>\n{STYLE}</style>")?;
    writeln!(s, "<rect class=\"page\" width=\"{WIDTH}\" height=\"{HEIGHT}\" rx=\"6\"/>")?;
    writeln!(s, "<text class=\"title\" x=\"{LEFT}\" y=\"28\">{title}</text>")?;
    writeln!(s, "<text class=\"small\" x=\"{LEFT}\" y=\"48\">{}</text>", quoted(remark))?;
    grid(&mut s, &plane, most)?;
    let (first, last) = (plane.x(1.0), plane.x(plane.most));
    let line = |class: &str, from: (f64, f64), to: (f64, f64)| {
        format!(
            "<path class=\"{class}\" d=\"M{:.1} {:.1}L{:.1} {:.1}\"/>",
            from.0, from.1, to.0, to.1
        )
    };
    writeln!(s, "{}", line("ideal", (first, plane.y(1.0)), (last, plane.y(plane.most))))?;
    if let Some(ceiling) = curve.ceiling.filter(|&c| c < plane.most) {
        let y = plane.y(ceiling);
        writeln!(s, "{}", line("ceiling", (first, y), (last, y)))?;
        writeln!(
            s,
            "<text x=\"{:.1}\" y=\"{:.1}\">at most {ceiling:.1}</text>",
            first + 6.0,
            y - 6.0
        )?;
    }
    let points: Vec<String> = curve
        .points
        .iter()
        .map(|&(cpus, working)| format!("{:.1},{:.1}", plane.x(f64::from(cpus)), plane.y(working)))
        .collect();
    writeln!(s, "<polyline class=\"curve\" points=\"{}\"/>", points.join(" "))?;
    // Each point shows its figures as a tooltip.
    for &(cpus, working) in &curve.points {
        writeln!(
            s,
            "<circle class=\"dot\" cx=\"{:.1}\" cy=\"{:.1}\" r=\"2.5\"><title>{cpus} CPUs: \
             {working:.2} working, predicted</title></circle>",
            plane.x(f64::from(cpus)),
            plane.y(working)
        )?;
    }
    if let Some((cpus, working)) = curve.measured {
        writeln!(
            s,
            "<circle class=\"seen\" cx=\"{:.1}\" cy=\"{:.1}\" r=\"5\"><title>{cpus} CPUs: \
             {working:.2} working, measured</title></circle>",
            plane.x(f64::from(cpus)),
            plane.y(working)
        )?;
    }
    legend(&mut s, curve)?;
    writeln!(s, "</svg>")?;
    Ok(s)
}

/// Draw lines at round numbers, with their numbers, and the names of the axes.
fn grid(s: &mut String, plane: &Plane, most: u32) -> std::fmt::Result {
    let step = round_step(most);
    let (left, right) = (plane.x(1.0), plane.x(plane.most));
    let (bottom, top) = (plane.y(0.0), plane.y(plane.most));
    for n in (0..=most).step_by(step as usize) {
        let y = plane.y(f64::from(n));
        writeln!(s, "<path class=\"grid\" d=\"M{left:.1} {y:.1}H{right:.1}\"/>")?;
        writeln!(
            s,
            "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{n}</text>",
            left - 8.0,
            y + 4.0
        )?;
        // CPUs are counted from one.
        let n = match n {
            0 if step == 1 => continue,
            0 => 1,
            n => n,
        };
        let x = plane.x(f64::from(n));
        writeln!(s, "<path class=\"grid\" d=\"M{x:.1} {bottom:.1}V{top:.1}\"/>")?;
        writeln!(
            s,
            "<text x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{n}</text>",
            bottom + 18.0
        )?;
    }
    writeln!(s, "<path class=\"axis\" d=\"M{left:.1} {top:.1}V{bottom:.1}H{right:.1}\"/>")?;
    // The legend is below the middle.
    writeln!(
        s,
        "<text x=\"{right:.1}\" y=\"{:.1}\" text-anchor=\"end\">CPUs</text>",
        bottom + 40.0
    )?;
    let across = (top + bottom) / 2.0;
    writeln!(
        s,
        "<text transform=\"translate(20 {across:.1}) rotate(-90)\" \
         text-anchor=\"middle\">working CPUs</text>"
    )
}

/// A step of 1, 2 or 5 times a power of ten, so that about [`STEPS`] lines fit.
fn round_step(most: u32) -> u32 {
    let mut power = 1;
    loop {
        for times in [1, 2, 5] {
            if most / (power * times) <= STEPS {
                return power * times;
            }
        }
        power *= 10;
    }
}

fn legend(s: &mut String, curve: &Curve) -> std::fmt::Result {
    let mut entries = vec![("curve", "predicted"), ("ideal", "without losses")];
    if curve.measured.is_some() {
        entries.push(("seen", "measured"));
    }
    let mut x = LEFT;
    let y = HEIGHT - 14.0;
    for (class, words) in entries {
        if class == "seen" {
            writeln!(
                s,
                "<circle class=\"seen\" cx=\"{:.1}\" cy=\"{:.1}\" r=\"5\"/>",
                x + 12.0,
                y - 4.0
            )?;
        } else {
            writeln!(s, "<path class=\"{class}\" d=\"M{x:.1} {:.1}h24\"/>", y - 4.0)?;
        }
        writeln!(s, "<text x=\"{:.1}\" y=\"{y:.1}\">{words}</text>", x + 30.0)?;
        x += 50.0 + 7.0 * words.len() as f64;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By default a path with a corner is filled black.
    #[test]
    fn no_line_is_filled() {
        for class in [".axis", ".ideal", ".ceiling", ".curve"] {
            let (_, rule) = STYLE.split_once(&format!("{class} {{")).unwrap();
            assert!(rule.split('}').next().unwrap().contains("fill: none"), "{class}");
        }
    }

    #[test]
    fn the_grid_has_round_numbers() {
        let steps = [1, 6, 8, 16, 64, 100, 8192].map(round_step);
        assert_eq!(steps, [1, 1, 2, 5, 10, 20, 2000]);
    }

    #[test]
    fn names_of_the_trace_cannot_leave_their_place() {
        let curve = Curve {
            object: "<script>\"&".to_owned(),
            points: vec![(1, 1.0), (2, 1.9)],
            measured: Some((2, 1.8)),
            ceiling: None,
        };
        let picture = picture(&curve, "a < b").unwrap();
        assert!(!picture.contains("<script") && picture.contains("&lt;script&gt;&quot;&amp;"));
        assert!(picture.contains("a &lt; b"));
    }
}
