//! HTML: one self-contained file, for a browser without a network.
//!
//! ```text
//!  Report ─────┐
//!  tables      ├─► one JSON value in a <script type="application/json"> ─► assets/*.js draw it
//!  timeline ───┘
//! ```
//!
//! The page judges nothing; its figures are those of `--format json`: `Data::report` is that
//! output, key for key. Names come from traces and may contain anything, so there are two defences:
//! data in the page is escaped (`embed`) and enters the document as text only; and the page's
//! policy (`policy`) forbids every script, style and connection except its own.

mod embed;
mod policy;
mod timeline;

pub use timeline::{Timeline, whom};

use crate::table::{JsonRows, Table};
use holdup_attribution::Graph;
use serde::{Serialize, Serializer};
use std::io::{self, Write};

/// The page, with marks for style, script, policy and data.
const PAGE: &str = include_str!("assets/page.html");
const STYLE: &str = include_str!("assets/style.css");
/// The scripts in the order in which they run; the last one draws.
const SCRIPT: &str = concat!(
    include_str!("assets/data.js"),
    include_str!("assets/tables.js"),
    include_str!("assets/verdict.js"),
    include_str!("assets/icicle.js"),
    include_str!("assets/timeline.js"),
    include_str!("assets/graph.js"),
    include_str!("assets/page.js"),
);

/// Rows of each table and edges of the graph in the page: more would make it slow, and would not be
/// read there.
pub const ENTRIES: usize = 500;

/// What the page shows in addition to the report.
#[derive(Default)]
pub struct Extras {
    /// Tables, in the order to show them.
    pub tables: Vec<Table>,
    /// The blocking graph.
    pub graph: Option<Graph>,
    /// What CPUs and threads did over time.
    pub timeline: Option<Timeline>,
}

/// The data for the page's scripts.
#[derive(Serialize)]
struct Data<'a, R> {
    /// The version that made it.
    version: &'static str,
    /// The output of `--format json`.
    report: &'a R,
    tables: Vec<Sheet<'a>>,
    graph: Option<Edges<'a>>,
    timeline: Option<&'a Timeline>,
}

/// A table with its columns, which an empty table's rows do not show.
#[derive(Serialize)]
struct Sheet<'a> {
    name: &'static str,
    columns: Vec<Head>,
    rows: JsonRows<'a>,
    left_out: usize,
    missing: Option<&'static str>,
    notes: &'a [String],
}

#[derive(Serialize)]
struct Head {
    key: &'static str,
    #[serde(serialize_with = "unit_name")]
    unit: crate::Unit,
}

fn unit_name<S: Serializer>(unit: &crate::Unit, s: S) -> Result<S::Ok, S::Error> {
    s.collect_str(&format_args!("{unit:?}"))
}

impl<'a> Sheet<'a> {
    fn of(table: &'a Table) -> Sheet<'a> {
        Sheet {
            name: table.name,
            columns: table.columns.iter().map(|c| Head { key: c.key, unit: c.unit }).collect(),
            rows: table.json_rows(),
            left_out: table.left_out(),
            missing: table.missing,
            notes: &table.notes,
        }
    }
}

/// The graph's longest edges.
#[derive(Serialize)]
struct Edges<'a> {
    #[serde(flatten)]
    graph: &'a Graph,
    left_out: usize,
}

/// Write a page about `report`, with additional data.
pub fn write<R: Serialize>(report: &R, extras: Extras, out: &mut dyn Write) -> io::Result<()> {
    let Extras { mut tables, mut graph, timeline } = extras;
    for table in &mut tables {
        table.entries = Some(table.entries.unwrap_or(ENTRIES).min(ENTRIES));
    }
    let left_out = graph.as_mut().map_or(0, shorten);
    let data = Data {
        version: env!("CARGO_PKG_VERSION"),
        report,
        tables: tables.iter().map(Sheet::of).collect(),
        graph: graph.as_ref().map(|graph| Edges { graph, left_out }),
        timeline: timeline.as_ref(),
    };
    let csp = policy::of(STYLE, SCRIPT);
    let mut rest = PAGE;
    // The marks occur in the page in this order.
    for (mark, text) in [("{{policy}}", csp.as_str()), ("{{style}}", STYLE)] {
        let (before, after) = rest.split_once(mark).unwrap_or((rest, ""));
        out.write_all(before.as_bytes())?;
        out.write_all(text.as_bytes())?;
        rest = after;
    }
    let (before, after) = rest.split_once("{{data}}").unwrap_or((rest, ""));
    out.write_all(before.as_bytes())?;
    embed::write(&data, out)?;
    let (before, after) = after.split_once("{{script}}").unwrap_or((after, ""));
    out.write_all(before.as_bytes())?;
    out.write_all(SCRIPT.as_bytes())?;
    out.write_all(after.as_bytes())
}

/// Keep the longest edges with their threads and cycles; returns how many edges were dropped.
fn shorten(graph: &mut Graph) -> usize {
    let left_out = graph.edges.len().saturating_sub(ENTRIES);
    graph.edges.truncate(ENTRIES);
    if left_out > 0 {
        let shown: std::collections::BTreeSet<u32> =
            graph.edges.iter().flat_map(|e| [Some(e.waiter), e.waker]).flatten().collect();
        graph.nodes.retain(|n| shown.contains(&n.tid));
        for cycle in &mut graph.cycles {
            cycle.retain(|tid| shown.contains(tid));
        }
        graph.cycles.retain(|k| k.len() > 1);
    }
    graph.roots.truncate(ENTRIES);
    left_out
}

/// A page about a report alone: its tables are drawn from it.
pub(crate) fn write_report(report: &crate::Report, out: &mut dyn Write) -> io::Result<()> {
    use crate::{Body, Section};
    let of = |t: &Table| t.clone();
    let tables = match &report.body {
        Body::Table(table) | Body::Noted(table) => vec![of(table)],
        Body::Path(body) => vec![of(&body.table)],
        Body::Predict(body) => vec![of(&body.table)],
        Body::Whatif(body) => vec![of(&body.table)],
        Body::Summary(sections) => sections
            .iter()
            .filter_map(|s| if let Section::Table(table) = s { Some(of(table)) } else { None })
            .collect(),
        Body::Ledger(_) | Body::Diagnosis(_) | Body::Guide(_) | Body::Info(_) => Vec::new(),
        Body::Graph(body) => {
            let graph = Some(body.graph.clone());
            return write(report, Extras { graph, ..Extras::default() }, out);
        }
    };
    write(report, Extras { tables, ..Extras::default() }, out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn page(report: &Value) -> String {
        let mut out = Vec::new();
        write(report, Extras::default(), &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    /// The text between the data block's tags.
    fn block(page: &str) -> &str {
        let (_, rest) = page.split_once("id=\"data\">").unwrap();
        rest.split_once("</script>").unwrap().0
    }

    #[test]
    fn hostile_names_stay_inside_the_data_block() {
        let long = "x".repeat(10_000);
        let names = [
            "</script><script>alert(1)</script>",
            "<!-- <script>",
            "]]>",
            "{{script}} {{data}} {{style}} {{policy}}",
            "\u{2028}\u{2029}\u{0}\u{7}\u{1b}[31m\u{202e}",
            "&lt;\"'`${1}\\",
            &long,
        ];
        let plain = page(&json!({}));
        for name in names {
            let report = json!({ "comm": name, name: 1 });
            let page = page(&report);
            let count = |text: &str, what: &str| text.matches(what).count();
            for tag in ["<script", "</script", "<!--", "{{"] {
                assert!(!block(&page).contains(tag) || tag == "{{", "{name:?}: {tag}");
                if tag != "{{" {
                    assert_eq!(count(&page, tag), count(&plain, tag), "{name:?}: {tag}");
                }
            }
            assert!(!block(&page).contains(['<', '>', '&', '\u{2028}', '\u{2029}']));
            assert!(!block(&page).bytes().any(|b| b < 0x20), "{name:?}");
            let data: Value = serde_json::from_str(block(&page)).unwrap();
            assert_eq!(data["report"], report, "it reads as it was written");
        }
    }

    #[test]
    fn the_page_has_no_mark_left_and_asks_for_nothing() {
        let page = page(&json!({ "command": "test" }));
        assert!(!page.contains("{{"), "a mark is left");
        for asks in ["http://", "https://", "src=", "@import", "url(", "fetch(", "import("] {
            let found = page.replace("http://www.w3.org/2000/svg", "");
            assert!(!found.contains(asks), "{asks}");
        }
        for writes in ["innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval("] {
            assert!(!SCRIPT.contains(writes), "names enter the document as text: {writes}");
        }
        assert!(page.contains("default-src 'none'"));
        assert!(!page.contains("unsafe-inline"));
    }

    #[test]
    fn scripts_are_kept_readable() {
        for (line, text) in (1..).zip(SCRIPT.lines().chain(STYLE.lines()).chain(PAGE.lines())) {
            assert!(text.chars().count() <= 100, "line {line} is too long: {text}");
        }
    }
}
