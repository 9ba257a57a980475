//! The capacity ledger as a tree with bars.

use super::escape::{escape, width, wrap};
use super::units::{Scale, duration};
use super::{Page, TextOptions};
use crate::spark;
use crate::trace_head::TraceHead;
use holdup_attribution::LedgerNode;
use std::io::{self, Write};

/// Width of the longest bar, in columns.
const BAR: usize = 20;
/// Width of the shortest bar worth drawing.
const SHORT: usize = 6;

/// Write the tree of these nodes, which may be a subset.
pub(crate) fn write(
    (capacity_ns, nodes): (u64, &[LedgerNode]),
    trace: &TraceHead,
    page: &Page,
    options: &TextOptions,
    out: &mut dyn Write,
) -> io::Result<()> {
    let paint = options.paint();
    page.separate(out)?;
    let of = if trace.part_of.is_some() { " of the judged part" } else { "" };
    let title = format!("Capacity ledger{of}: where every CPU-second went");
    writeln!(out, "{}", paint.title(wrap(&title, options.width, 2)))?;
    let scale = Scale::of(capacity_ns);
    let capacity = format!(
        "capacity = {} x {}",
        super::units::count(trace.cpus.into(), "CPU", "CPUs"),
        duration(trace.wall_ns)
    );
    let mut lines = vec![(capacity, capacity_ns, if capacity_ns > 0 { 100.0 } else { 0.0 })];
    for (i, node) in nodes.iter().enumerate() {
        let name = node.path.rsplit('/').next().unwrap_or(node.path);
        lines.push((format!("{}{}", branches(nodes, i), escape(name)), node.ns, node.pct));
    }
    let names = lines.iter().map(|l| width(&l.0)).max().unwrap_or(0);
    let times = lines.iter().map(|l| scale.show(l.1).len()).max().unwrap_or(0);
    // Two columns before each number and the bar, seven for a percentage.
    let room = options.width.map_or(BAR, |width| width.saturating_sub(names + times + 13));
    let longest = if room < SHORT { 0 } else { room.min(BAR) };
    let heading = format!("{:names$}  {:>times$}        %", "", scale.name());
    writeln!(out, "{}", paint.dim(heading))?;
    for (name, ns, pct) in lines {
        let pad = names - width(&name);
        let line = format!("{name}{:pad$}  {:>times$}  {pct:7.3}", "", scale.show(ns));
        let bar = spark::bar(pct / 100.0, longest);
        match (ns, bar.is_empty()) {
            (0, _) => writeln!(out, "{}", paint.dim(line))?,
            (_, true) => writeln!(out, "{line}")?,
            (_, false) => writeln!(out, "{line}  {}", paint.bar(bar))?,
        }
    }
    Ok(())
}

/// The tree lines before node `i`: nodes are in pre-order, so a node has a later sibling if one
/// with the same parent follows.
fn branches(nodes: &[LedgerNode], i: usize) -> String {
    let path = nodes[i].path;
    let ends: Vec<usize> = path.match_indices('/').map(|(at, _)| at).chain([path.len()]).collect();
    let mut out = String::new();
    for (depth, &end) in ends.iter().enumerate() {
        let parent = if depth == 0 { "" } else { &path[..=ends[depth - 1]] };
        let own = &path[..end];
        let more = nodes[i + 1..].iter().any(|n| {
            n.path.strip_prefix(parent).is_some_and(|rest| !rest.contains('/')) && n.path != own
        });
        out.push_str(match (depth + 1 == ends.len(), more) {
            (true, true) => "├─ ",
            (true, false) => "└─ ",
            (false, true) => "│  ",
            (false, false) => "   ",
        });
    }
    out
}
