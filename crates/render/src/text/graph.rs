//! The blocking graph, in words or for Graphviz.

use super::escape::escape;
use super::units::duration;
use super::{Page, TextOptions};
use crate::report::GraphBody;
use holdup_attribution::{Edge, Graph};
use std::collections::HashMap;
use std::io::{self, Write};

/// Edges shown in text by default.
const EDGES: usize = 30;
/// Root causes shown in text.
const ROOTS: usize = 10;
/// Threads of a cycle named in text.
const CYCLE: usize = 16;

/// Write the graph as text.
pub(crate) fn write(
    body: &GraphBody,
    page: &Page,
    options: &TextOptions,
    out: &mut dyn Write,
) -> io::Result<()> {
    let graph = &body.graph;
    let names: HashMap<u32, &str> = graph.nodes.iter().map(|n| (n.tid, n.comm.as_str())).collect();
    let name = |tid: u32| format!("{} ({tid})", escape(names.get(&tid).unwrap_or(&"?")));
    let paint = options.paint();

    page.separate(out)?;
    writeln!(
        out,
        "{}",
        paint.title("Root causes of idle time: what the last thread of each wait chain waits for")
    )?;
    if graph.roots.is_empty() {
        writeln!(out, "  none")?;
    }
    for r in graph.roots.iter().take(ROOTS) {
        writeln!(
            out,
            "  {:>10}  {:7.3} %  {}: {} {}",
            duration(r.idle_blamed_ns),
            r.pct_idle_blamed,
            r.cause,
            r.kind,
            escape(&r.object)
        )?;
    }

    page.separate(out)?;
    writeln!(out, "{}", paint.title("Wait cycles: threads that wait for each other"))?;
    if graph.cycles.is_empty() {
        writeln!(out, "  none")?;
    }
    for (i, cycle) in graph.cycles.iter().enumerate() {
        let waiting: u64 = graph
            .nodes
            .iter()
            .filter(|n| n.cycle == Some(i as u32 + 1))
            .map(|n| n.waiting_ns)
            .sum();
        let mut members: Vec<String> = cycle.iter().take(CYCLE).map(|&t| name(t)).collect();
        if cycle.len() > CYCLE {
            members.push(format!("{} more", cycle.len() - CYCLE));
        }
        writeln!(
            out,
            "  {}: {} threads, which wait {} in total: {}",
            i + 1,
            cycle.len(),
            duration(waiting),
            members.join(", ")
        )?;
    }

    page.separate(out)?;
    writeln!(out, "{}", paint.title("Who waits for whom"))?;
    let shown = body.entries.unwrap_or(EDGES).min(graph.edges.len());
    if graph.edges.is_empty() {
        writeln!(out, "  none")?;
    }
    for e in &graph.edges[..shown] {
        let waker = e.waker.map_or_else(|| "no thread".to_owned(), name);
        writeln!(
            out,
            "  {:>10}  {:>7} x  {} -> {waker}  on {}",
            duration(e.wait_ns),
            e.waits,
            name(e.waiter),
            object(e)
        )?;
    }
    if shown < graph.edges.len() && !options.quiet {
        writeln!(
            out,
            "{}",
            paint
                .dim(format!("{} more edges not shown; -n 0 shows all", graph.edges.len() - shown))
        )?;
    }
    Ok(())
}

/// `futex mutex 0x7f00`.
fn object(e: &Edge) -> String {
    let usage = e.usage.filter(|&u| u != e.kind).map(|u| format!(" {u}")).unwrap_or_default();
    format!("{}{usage} {}", e.kind, escape(&e.object))
}

/// Write the graph for Graphviz; an edge's thickness is its share of all waiting time.
pub(crate) fn write_dot(graph: &Graph, out: &mut dyn Write) -> io::Result<()> {
    let all: u64 = graph.edges.iter().map(|e| e.wait_ns).sum();
    writeln!(out, "digraph waits {{")?;
    writeln!(out, "  node [shape=box];")?;
    for n in &graph.nodes {
        let cycle = n.cycle.map(|_| ", style=bold").unwrap_or_default();
        let label = format!(
            "{} ({})\\nran {}, waited {}",
            quoted(&n.comm),
            n.tid,
            duration(n.running_ns),
            duration(n.waiting_ns)
        );
        writeln!(out, "  t{} [label=\"{label}\"{cycle}];", n.tid)?;
    }
    let outside = graph.edges.iter().any(|e| e.waker.is_none());
    if outside {
        writeln!(out, "  nobody [label=\"no thread\", shape=ellipse];")?;
    }
    for e in &graph.edges {
        let to = e.waker.map_or_else(|| "nobody".to_owned(), |w| format!("t{w}"));
        let width = 0.5 + 5.0 * e.wait_ns as f64 / all.max(1) as f64;
        let label = format!("{}\\n{} in {}", quoted(&object(e)), duration(e.wait_ns), e.waits);
        writeln!(
            out,
            "  t{} -> {to} [label=\"{label}\", penwidth={width:.2}, wait_ns={}];",
            e.waiter, e.wait_ns
        )?;
    }
    writeln!(out, "}}")
}

/// Escape text for a quoted label.
fn quoted(text: &str) -> String {
    escape(text).chars().map(|c| if c == '"' || c == '\\' { '\'' } else { c }).collect()
}
