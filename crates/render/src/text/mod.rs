//! Text for a terminal: what the trace is, its problems, the tables.

mod block;
mod culprit;
mod curve;
mod diagnosis;
mod escape;
mod graph;
pub(crate) mod grid;
mod guide;
mod hist;
mod info;
mod ledger;
mod lock_views;
pub(crate) mod paint;
mod phases;
mod rules;
mod sar;
pub(crate) mod units;
mod whatif;

pub(crate) use culprit::culprit;
pub(crate) use diagnosis::worth;
pub use escape::{escape, wrap};
pub use guide::{write_end, write_question};
use phases::short_strip;
pub(crate) use phases::{busy, remark, strip};
pub use rules::{write_list, write_page};

use crate::report::{Body, Report, Section};
use crate::table::Table;
use crate::trace_head::{FIGURES, Known, TraceHead};
use holdup_trace::{QualityEntry, Severity};
use paint::Paint;
use std::cell::Cell as Once;
use std::io::{self, Write};

/// How text is written.
#[derive(Clone, Debug, Default)]
pub struct TextOptions {
    /// Use ANSI colours.
    pub color: bool,
    /// Width of the terminal in columns; `None` if there is none: then nothing is dropped to fit.
    pub width: Option<usize>,
    /// Show more columns, and harmless remarks on quality.
    pub verbose: bool,
    /// Show only the tables: no head line, no warnings, no footers.
    pub quiet: bool,
    /// Show a diagnosis with all evidence, also for rules that do not apply.
    pub explain: bool,
}

/// Width of prose, in columns.
fn width(options: &TextOptions) -> usize {
    options.width.unwrap_or(diagnosis::WIDTH).clamp(60, 140)
}

/// `text` with its control characters escaped, wrapped; the first line begins with `first`, the
/// others with `rest`.
pub(crate) fn prose(
    text: &str,
    first: &str,
    rest: &str,
    options: &TextOptions,
    out: &mut dyn Write,
) -> io::Result<()> {
    diagnosis::wrapped(text, first, rest, width(options), out)
}

impl TextOptions {
    pub(crate) fn paint(&self) -> Paint {
        Paint::new(self.color)
    }
}

/// State of the whole page that blocks need.
struct Page {
    capacity_ns: u64,
    wall_ns: u64,
    begun: Once<bool>,
}

impl Page {
    /// Write an empty line between blocks.
    fn separate(&self, out: &mut dyn Write) -> io::Result<()> {
        if self.begun.replace(true) { writeln!(out) } else { Ok(()) }
    }
}

/// Write tables that belong to no single trace; `begun` says whether output precedes them.
pub(crate) fn write_tables(
    tables: &[Table],
    begun: bool,
    options: &TextOptions,
    out: &mut dyn Write,
) -> io::Result<()> {
    let page = Page { capacity_ns: 0, wall_ns: 0, begun: Once::new(begun) };
    tables.iter().try_for_each(|table| block::write_table(table, &page, options, out))
}

/// Write `report` as text.
pub fn write(report: &Report, options: &TextOptions, out: &mut dyn Write) -> io::Result<()> {
    if let Body::Graph(body) = &report.body
        && body.dot
    {
        return graph::write_dot(&body.graph, out);
    }
    let trace = &report.trace;
    let page =
        Page { capacity_ns: trace.capacity_ns(), wall_ns: trace.wall_ns, begun: Once::new(false) };
    if !options.quiet {
        page.separate(out)?;
        // Wrap before adding colour codes, which take no columns.
        let path = escape(&trace.path);
        let line = wrap(&head_line(trace), options.width, 4);
        let mut line = line.replacen(&*path, &options.paint().title(&path), 1);
        if trace.lost_events > 0 {
            let lost = format!("{} LOST", trace.lost_events);
            line = line.replacen(&lost, &options.paint().error(&lost), 1);
        }
        writeln!(out, "{line}")?;
        // Prose is wrapped in a pipe too, and so are the warnings above it.
        let limit = match &report.body {
            Body::Diagnosis(_) | Body::Guide(_) => Some(width(options)),
            _ => options.width,
        };
        write_quality(&report.quality, limit, options, out)?;
    }
    match &report.body {
        Body::Table(table) | Body::Noted(table) => write_table(table, &page, options, out),
        Body::Ledger(ledger) => {
            ledger::write((ledger.capacity_ns, &ledger.nodes()), trace, &page, options, out)
        }
        Body::Diagnosis(d) => diagnosis::write(d, trace, &page, options, out),
        Body::Guide(walk) => guide::write(walk, trace, &page, options, out),
        Body::Path(path) => {
            page.separate(out)?;
            if path.table.missing.is_none() {
                let (head, how) = (
                    &path.head,
                    "and, while the thread slept, the activity of the threads that it waited for",
                );
                let (comm, length) = (escape(&head.comm), units::duration(head.total_ns));
                writeln!(out, "Path of {comm} ({}), {length}: its own activity {how}", head.tid)?;
            }
            write_table(&path.table, &page, options, out)
        }
        Body::Predict(predict) => {
            write_table(&predict.table, &page, options, out)?;
            match &predict.curve {
                Some(curve) if !options.quiet => curve::write(curve, &page, options, out),
                _ => Ok(()),
            }
        }
        Body::Whatif(body) => whatif::write(body, &page, options, out),
        Body::Graph(body) => graph::write(body, &page, options, out),
        Body::Info(info) => info::write(info, trace, &page, options, out),
        Body::Summary(sections) => sections.iter().try_for_each(|section| match section {
            Section::Table(table) => write_table(table, &page, options, out),
            Section::Ledger(ledger) => {
                ledger::write((ledger.capacity_ns, &ledger.nodes()), trace, &page, options, out)
            }
            Section::Busy(course) => {
                page.separate(out)?;
                writeln!(out, "{}", busy(course))
            }
            Section::Phases(rows) => {
                page.separate(out)?;
                diagnosis::wrapped(&strip(rows), "", "  ", width(options), out)
            }
        }),
    }
}

fn write_table(
    table: &Table,
    page: &Page,
    options: &TextOptions,
    out: &mut dyn Write,
) -> io::Result<()> {
    match (table.name, table.view) {
        (crate::schema::hist::HIST, _) => hist::write(table, page, options, out),
        ("sar", _) => sar::write(table, page, options, out),
        ("locks", view) if !view.is_empty() => lock_views::write(table, page, options, out),
        _ => block::write_table(table, page, options, out),
    }
}

/// `perf.data (perf.data): 4 CPUs, 1.673 s, 3214 events, none lost`
fn head_line(trace: &TraceHead) -> String {
    let file = format!("{} ({})", escape(&trace.path), escape(&trace.format));
    match trace.known {
        Known::Counted => {}
        Known::Nothing => return file,
        Known::Glanced { size, span } => return format!("{file}: {}", glanced_words(size, span)),
    }
    let lost = match trace.lost_events {
        0 => "none lost".to_owned(),
        n => format!("{n} LOST"),
    };
    if trace.events == 0 && trace.format == FIGURES {
        return format!(
            "{} ({FIGURES}): {}",
            escape(&trace.path),
            units::count(trace.cpus.into(), "CPU", "CPUs")
        );
    }
    let cpus = match trace.cpus {
        0 => "CPUs unknown".to_owned(),
        n => units::count(n.into(), "CPU", "CPUs"),
    };
    let (wall, events) = (units::duration(trace.wall_ns), trace.events);
    let time = match trace.part_of {
        None => wall,
        Some(of_wall) => format!("judged: {wall} of {}", units::duration(of_wall)),
    };
    let events = units::count(events, "event", "events");
    let (path, format) = (escape(&trace.path), escape(&trace.format));
    format!("{path} ({format}): {cpus}, {time}, {events}, {lost}")
}

/// A glance at a file of `size` bytes: `585.5 MB, 5.188 s, events and losses n/a (…)`.
pub(crate) fn glanced_words(size: u64, span: Option<(u64, u64)>) -> String {
    let time = span.map_or("time n/a".to_owned(), |(a, b)| units::duration(b.saturating_sub(a)));
    let mb = size as f64 / 1e6;
    format!("{mb:.1} MB, {time}, events and losses n/a (--full counts)")
}

fn write_quality(
    entries: &[QualityEntry],
    limit: Option<usize>,
    options: &TextOptions,
    out: &mut dyn Write,
) -> io::Result<()> {
    for entry in entries {
        let paint = options.paint();
        let label = match entry.severity {
            Severity::Error => "ERROR:",
            Severity::Warning => "WARNING:",
            Severity::Info if options.verbose => "note:",
            Severity::Info => continue,
        };
        let words = wrap(&format!("{label} {}", quality_words(entry)), limit, 2);
        let words = words.strip_prefix(label).unwrap_or(&words);
        let label = match entry.severity {
            Severity::Error => paint.error(label),
            Severity::Warning => paint.warning(label),
            Severity::Info => label.to_owned(),
        };
        writeln!(out, "{label}{words}")?;
    }
    Ok(())
}

/// `12 events the recorder itself lost; … [lost-events]`: messages are written to follow a number.
pub fn quality_words(entry: &QualityEntry) -> String {
    format!("{} {} [{}]", entry.count, entry.message, entry.code)
}
