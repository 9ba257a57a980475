//! The change points of series:
//! `cargo run -p holdup-gate --example change_points -- [LEAST] [MAX_P]` reads one series per line
//! from standard input, a name and its values, and writes a line for each: the name and the indices
//! at which it changes. `benches/change_points.py` uses it.

use holdup_gate::change_points::{Options, change_points};
use std::io::{BufRead, Write, stdin, stdout};

fn main() -> std::io::Result<()> {
    let mut options = Options::default();
    let mut given = std::env::args().skip(1).map(|a| a.parse().map_err(std::io::Error::other));
    if let Some(least) = given.next() {
        options.least_change = least?;
    }
    if let Some(p) = given.next() {
        options.max_p = p?;
    }
    let mut out = stdout().lock();
    for line in stdin().lock().lines() {
        let line = line?;
        let mut words = line.split_whitespace();
        let Some(name) = words.next() else { continue };
        let values: Result<Vec<f64>, _> = words.map(str::parse).collect();
        let series = values.map_err(std::io::Error::other)?;
        write!(out, "{name}")?;
        for point in change_points(&series, &options) {
            write!(out, " {}", point.index)?;
        }
        writeln!(out)?;
    }
    Ok(())
}
