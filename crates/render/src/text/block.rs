//! A table laid out as a block of text.

use super::escape::{escape, wrap};
use super::grid::{Grid, Head};
use super::units::{Scale, count, timestamp};
use super::{Page, TextOptions};
use crate::table::layout::{Field, Layout, Show, When};
use crate::table::{Cell, Line, Table, Unit};
use std::collections::HashMap;
use std::io::{self, Write};

pub(crate) const NOT_KNOWN: &str = "n/a";

/// Every block of `table`.
pub(crate) fn write_table(
    table: &Table,
    page: &Page,
    options: &TextOptions,
    out: &mut dyn Write,
) -> io::Result<()> {
    for layout in table.text {
        write_layout(table, layout, page, options, out)?;
    }
    write_notes(table, options, out)
}

/// Write remarks on what the table cannot show.
pub(crate) fn write_notes(
    table: &Table,
    options: &TextOptions,
    out: &mut dyn Write,
) -> io::Result<()> {
    if options.quiet {
        return Ok(());
    }
    table.notes.iter().try_for_each(|note| {
        let words = wrap(&format!("note: {}", escape(note)), options.width, 2);
        writeln!(out, "{}", options.paint().dim(words))
    })
}

fn write_layout(
    table: &Table,
    layout: &Layout,
    page: &Page,
    options: &TextOptions,
    out: &mut dyn Write,
) -> io::Result<()> {
    let rows: Vec<&Vec<Cell>> =
        table.rows.iter().filter(|row| (layout.filter)(table.line(row))).collect();
    let shown = rows.len().min(table.entries.unwrap_or(usize::MAX));
    let fields = visible(table, layout, &rows[..shown], options);
    if fields.is_empty() || (layout.hide_empty && rows.is_empty()) {
        return Ok(());
    }
    let paint = options.paint();
    page.separate(out)?;
    if rows.is_empty() {
        writeln!(out, "{}", paint.title(layout.title.replace(" ({})", "")))?;
        let why = match table.missing {
            Some(events) => format!("{NOT_KNOWN}: not recorded; needs {events} (see holdup info)"),
            None => "none".to_owned(),
        };
        return writeln!(out, "  {}", paint.dim(why));
    }
    let total: Option<Vec<Cell>> =
        (layout.total && shown > 1).then(|| add_up(table, &rows[..shown]));
    let mut values: Vec<&[Cell]> = rows[..shown].iter().map(|r| r.as_slice()).collect();
    values.extend(total.as_deref());
    let (title, mut grid) = lay_out(table, layout.title, &fields, &values, page);
    writeln!(out, "{}", paint.title(title))?;
    if total.is_some() {
        // The total row has no id: label it where its id would be.
        if let (Some(last), Some(at)) =
            (grid.rows.last_mut(), fields.iter().position(|f| matches!(f.show, Show::Key("cpu"))))
        {
            last[at] = "all".to_owned();
        }
    }
    let dropped = options.width.map(|w| grid.fit(w)).unwrap_or_default();
    grid.write(paint, out)?;
    if options.quiet {
        return Ok(());
    }
    let left = (rows.len() - shown + table.not_kept) as u64;
    if left > 0 {
        writeln!(
            out,
            "{}",
            paint
                .dim(format!("{} not shown; -n 0 shows all", count(left, "more row", "more rows")))
        )?;
    }
    if !dropped.is_empty() {
        let note =
            format!("no room for: {}; use a wider terminal or --format csv", dropped.join(", "));
        writeln!(out, "{}", paint.dim(wrap(&note, options.width, 2)))?;
    }
    Ok(())
}

fn visible<'f>(
    table: &Table,
    layout: &'f Layout,
    rows: &[&Vec<Cell>],
    options: &TextOptions,
) -> Vec<&'f Field> {
    let known = |show: Show| {
        let keys = match show {
            Show::Key(k) | Show::Share(k) | Show::OfWall(k) | Show::Mean(k, _) => k,
            Show::Words(..) => return true,
        };
        table.column(keys).is_some_and(|i| rows.iter().any(|r| r[i] != Cell::Null))
    };
    let exists = |show: Show| match show {
        Show::Key(k) | Show::Share(k) | Show::OfWall(k) | Show::Mean(k, _) => {
            table.column(k).is_some()
        }
        Show::Words(_, words) => {
            rows.is_empty() || rows.iter().any(|r| !words(table.line(r)).is_empty())
        }
    };
    layout
        .fields
        .iter()
        .filter(|f| exists(f.show))
        .filter(|f| match f.when {
            When::Always => true,
            When::Known => known(f.show),
            When::Verbose => options.verbose,
        })
        .collect()
}

/// The value of a field in a row, before formatting.
enum Value {
    Unknown,
    Ns(u64),
    Words(String),
}

fn value(field: &Field, line: Line<'_>, unit: Option<Unit>, page: &Page) -> Value {
    let percent = |key: &str, whole: u64| match line.int(key) {
        Some(ns) if whole > 0 => Value::Words(format!("{:.3}", ns as f64 * 100.0 / whole as f64)),
        _ => Value::Unknown,
    };
    match field.show {
        Show::Words(_, words) => Value::Words(words(line)),
        // Rows with their own wall time refer to one CPU, not to the machine.
        Show::Share(key) => percent(key, line.int("wall_ns").unwrap_or(page.capacity_ns)),
        Show::OfWall(key) => percent(key, page.wall_ns),
        Show::Mean(sum, n) => match (line.int(sum), line.int(n)) {
            (Some(sum), Some(n)) if n > 0 => Value::Ns(sum / n),
            _ => Value::Unknown,
        },
        Show::Key(key) => match (line.get(key), unit) {
            (None | Some(Cell::Null), _) => Value::Unknown,
            (Some(Cell::Int(ns)), Some(Unit::Ns)) => Value::Ns(*ns),
            (Some(Cell::Int(ns)), Some(Unit::Time)) => Value::Words(timestamp(*ns)),
            (Some(Cell::Int(n)), Some(Unit::Address)) => Value::Words(format!("{n:#x}")),
            (Some(Cell::Int(n)), _) => Value::Words(n.to_string()),
            (Some(Cell::Float(x)), Some(Unit::Rate)) => Value::Words(format!("{x:.1}")),
            (Some(Cell::Float(x)), _) => Value::Words(format!("{x:.3}")),
            (Some(Cell::Bool(b)), _) => Value::Words(if *b { "yes" } else { "no" }.to_owned()),
            (Some(Cell::Text(t)), _) => Value::Words(escape(t).into_owned()),
            (Some(Cell::List(_)), _) => Value::Unknown,
            (Some(Cell::Map(m)), _) => Value::Words(
                m.iter().map(|(k, n)| format!("{} {n}", escape(k))).collect::<Vec<_>>().join(", "),
            ),
        },
    }
}

/// Format `rows`, with one unit per column of durations, or per group or block whose heading has
/// room for it. Also returns the block's title.
fn lay_out(
    table: &Table,
    title: &str,
    fields: &[&Field],
    rows: &[&[Cell]],
    page: &Page,
) -> (String, Grid) {
    let unit = |f: &Field| {
        if let Show::Key(k) = f.show {
            table.column(k).map(|i| table.columns[i].unit)
        } else {
            None
        }
    };
    let columns: Vec<Vec<Value>> = fields
        .iter()
        .map(|f| rows.iter().map(|row| value(f, table.line(row), unit(f), page)).collect())
        .collect();
    let max = |column: &Vec<Value>| {
        column.iter().filter_map(|v| if let Value::Ns(ns) = v { Some(*ns) } else { None }).max()
    };

    // The heading that provides the unit of a column, if the column has none of its own.
    let heading = |f: &Field| [title, f.group].into_iter().find(|h| h.contains("{}"));
    let mut shared: HashMap<&str, u64> = HashMap::new();
    for (f, column) in fields.iter().zip(&columns) {
        if let (Some(heading), Some(ns)) = (heading(f), max(column)) {
            let most = shared.entry(heading).or_default();
            *most = ns.max(*most);
        }
    }
    let spell = |heading: &str| match shared.get(heading) {
        Some(&ns) => heading.replace("{}", Scale::of(ns).name()),
        None => heading.replace(" ({})", ""),
    };

    let mut grid = Grid { heads: Vec::new(), rows: vec![Vec::new(); rows.len()] };
    for (f, column) in fields.iter().zip(&columns) {
        let own = max(column).map(Scale::of);
        let common = heading(f).and_then(|h| shared.get(h)).map(|&ns| Scale::of(ns));
        let words = match (common, own, unit(f)) {
            (_, _, Some(Unit::Time)) => "s",
            (None, Some(scale), _) => scale.name(),
            _ => "",
        };
        let left = matches!(f.show, Show::Words(..)) || unit(f).is_some_and(Unit::left_aligned);
        grid.heads.push(Head {
            group: spell(f.group),
            title: f.title.to_owned(),
            unit: words,
            left,
            rank: f.rank,
        });
        let scale = common.or(own).unwrap_or(Scale::Ns);
        for (row, v) in grid.rows.iter_mut().zip(column) {
            row.push(match v {
                Value::Unknown => NOT_KNOWN.to_owned(),
                Value::Words(words) => words.clone(),
                Value::Ns(ns) => scale.show(*ns),
            });
        }
    }
    (spell(title), grid)
}

/// Sums of additive columns; unknown if one part is unknown.
fn add_up(table: &Table, rows: &[&Vec<Cell>]) -> Vec<Cell> {
    (0..table.columns.len())
        .map(|i| match table.columns[i].unit {
            Unit::Ns | Unit::Count => rows
                .iter()
                .map(|r| r[i].int())
                .try_fold(0u64, |sum, n| n.map(|n| sum.saturating_add(n)))
                .map_or(Cell::Null, Cell::Int),
            Unit::Rate => Cell::Float(
                rows.iter().map(|r| if let Cell::Float(x) = r[i] { x } else { 0.0 }).sum(),
            ),
            _ => Cell::Null,
        })
        .collect()
}
