//! The verdict on one screen: what, how sure, where the time went, why, why not the rest, what
//! next.

use super::culprit::culprit;
use super::escape::{escape, shell};
use super::units::duration;
use super::{Page, TextOptions, ledger};
use crate::report::TraceHead;
use holdup_diagnose::{Class, Diagnosis, Evidence, Finding};
use std::io::{self, Write};

/// Nodes of the ledger below this part of capacity, in per cent, are left out here; `ledger` shows
/// them.
const SHOWN_PCT: f64 = 0.5;
/// Columns if the output is no terminal.
pub(super) const WIDTH: usize = 100;

/// Write the diagnosis.
pub(crate) fn write(
    d: &Diagnosis,
    trace: &TraceHead,
    page: &Page,
    options: &TextOptions,
    out: &mut dyn Write,
) -> io::Result<()> {
    let paint = options.paint();
    let width = super::width(options);
    page.separate(out)?;
    let class = d.verdict.class.id();
    let class = match d.verdict.class {
        Class::Healthy => paint.title(class),
        Class::NotEnoughEvidence => paint.warning(class),
        _ => paint.error(class),
    };
    let sure = if d.verdict.class == Class::NotEnoughEvidence {
        String::new()
    } else {
        format!(", confidence {:.2}", d.verdict.confidence)
    };
    writeln!(out, "VERDICT: {class}{sure}")?;
    wrapped(&d.verdict.summary, "  ", "  ", width, out)?;
    for r in &d.verdict.reservations {
        wrapped(&format!("less sure because {r}"), "  ", "    ", width, out)?;
    }

    if !d.phases.is_empty() {
        wrapped(&super::strip(&d.phases), "  ", "    ", width, out)?;
        for remark in super::remarks(d, trace) {
            wrapped(&remark, "  ", "    ", width, out)?;
        }
    }
    if let Some(n) = d.verdict.neighbours.as_ref().filter(|n| !n.programs.is_empty()) {
        let line = format!("not the work: {:.0} % of capacity ({})", n.pct, n.listed());
        wrapped(&line, "  ", "    ", width, out)?;
    }
    if let Some(source) = &d.source {
        wrapped(&format!("figures: {source}"), "  ", "    ", width, out)?;
    }
    for t in &d.thresholds {
        wrapped(
            &format!("threshold {} is {} {}, not {}", t.key, t.value, t.unit, t.default),
            "  ",
            "    ",
            width,
            out,
        )?;
    }
    for remark in &d.code_remarks {
        wrapped(&format!("names of code: {remark}"), "  ", "    ", width, out)?;
    }
    for lead in &d.leads {
        wrapped(&format!("lead: {}: {}", lead.class.id(), lead.summary), "  ", "    ", width, out)?;
        writeln!(out, "{}", shell(&lead.command, "    to know: "))?;
    }
    if options.explain && d.verdict.class != Class::NotEnoughEvidence {
        page.separate(out)?;
        writeln!(out, "{}", paint.title(format!("Confidence {:.2}", d.verdict.confidence)))?;
        for (i, step) in d.verdict.steps.iter().enumerate() {
            let times = if i == 0 { ' ' } else { 'x' };
            wrapped(
                &step.what,
                &format!("  {times} {:.3}  ", step.factor),
                "           ",
                width,
                out,
            )?;
        }
    }

    let big: Vec<_> = d.ledger.nodes().into_iter().filter(|n| n.pct >= SHOWN_PCT).collect();
    ledger::write((d.ledger.capacity_ns, &big), trace, page, options, out)?;

    for f in d.findings.iter().filter(|f| f.ruled_out.is_none()) {
        write_finding(f, d.verdict.class, page, options, width, out)?;
        if let Some(gain) = d.verdict.gain.as_ref().filter(|_| f.class == d.verdict.class) {
            wrapped(&gain.to_string(), "  ", "  ", width, out)?;
        }
    }

    if options.explain {
        for f in d.findings.iter().filter(|f| f.ruled_out.is_some()) {
            write_finding(f, d.verdict.class, page, options, width, out)?;
        }
    }

    if !options.explain {
        write_ruled_out(d, page, options, width, out)?;
    }

    page.separate(out)?;
    writeln!(out, "{}", paint.title("Next"))?;
    d.next.iter().try_for_each(|command| writeln!(out, "{}", shell(command, "  ")))
}

fn write_ruled_out(
    d: &Diagnosis,
    page: &Page,
    options: &TextOptions,
    width: usize,
    out: &mut dyn Write,
) -> io::Result<()> {
    let paint = options.paint();
    page.separate(out)?;
    writeln!(out, "{}", paint.title("Ruled out"))?;
    let ruled_out =
        || d.findings.iter().filter_map(|f| Some((f.class.id(), f.ruled_out.as_deref()?)));
    let names = ruled_out().map(|r| r.0.len()).max().unwrap_or(0);
    for (class, why) in ruled_out() {
        wrapped(why, &format!("  {class:names$}  "), &" ".repeat(names + 4), width, out)?;
    }
    Ok(())
}

pub(super) fn write_finding(
    f: &Finding,
    verdict: Class,
    page: &Page,
    options: &TextOptions,
    width: usize,
    out: &mut dyn Write,
) -> io::Result<()> {
    let paint = options.paint();
    page.separate(out)?;
    let what = match &f.ruled_out {
        Some(_) => "Ruled out",
        None if f.class == verdict => "Evidence",
        None => "Also",
    };
    let cost = match f.priced() {
        None => "cost not known".to_owned(),
        Some(0) if f.lacked_ns > 0 => {
            format!("threads lacked {} of CPU time", duration(f.lacked_ns))
        }
        Some(ns) => format!("{:.1} % of capacity ({})", f.share, duration(ns)),
    };
    let title = format!("{what}: {}, {cost}", f.class.id());
    writeln!(out, "{}", paint.title(title))?;
    if f.class != verdict && f.ruled_out.as_ref() != Some(&f.summary) {
        wrapped(&f.summary, "  ", "  ", width, out)?;
    }
    if f.leaves.len() > 1 {
        wrapped(&sum_of_leaves(f), "  ", "    ", width, out)?;
    }
    if let Some(why) = &f.ruled_out {
        wrapped(&format!("ruled out: {why}"), "  ", "    ", width, out)?;
    }
    let names =
        f.evidence.iter().map(|e| super::escape::width(&escape(&e.metric))).max().unwrap_or(0);
    for e in &f.evidence {
        let metric = escape(&e.metric);
        let pad = names.saturating_sub(super::escape::width(&metric));
        writeln!(out, "  {metric}{:pad$}  {}", "", figure(e))?;
    }
    for c in &f.culprits {
        wrapped(&culprit(c), "  ", "    ", width, out)?;
    }
    f.advice.iter().try_for_each(|a| wrapped(a, "  -> ", "     ", width, out))
}

/// `= idle/thread-sync 22.0 % + busy/kernel/thread-sync 5.1 %`: what the cost is made of.
pub(crate) fn sum_of_leaves(f: &Finding) -> String {
    let parts: Vec<String> =
        f.leaves.iter().map(|p| format!("{} {:.1} %", p.path, p.pct)).collect();
    format!("= {}", parts.join(" + "))
}

fn figure(e: &Evidence) -> String {
    let against = e.threshold.map_or(String::new(), |t| format!("  (threshold {t})"));
    match e.value {
        Some(value) => format!("{value:>8.2} {}{against}", e.unit),
        None => format!("{:>8}", "n/a"),
    }
}

/// A number and its unit stay on one line.
fn is_unit(word: &str) -> bool {
    matches!(word.trim_end_matches([',', ';', ':', '.', ')']), "%" | "ns" | "us" | "ms" | "s")
}

/// Break at blanks. Names come from the trace: escape them.
pub(super) fn wrapped(
    text: &str,
    first: &str,
    rest: &str,
    width: usize,
    out: &mut dyn Write,
) -> io::Result<()> {
    let text = escape(text);
    let mut words: Vec<String> = Vec::new();
    for word in text.split(' ') {
        match words.last_mut() {
            Some(number) if is_unit(word) => {
                number.push(' ');
                number.push_str(word);
            }
            _ => words.push(word.to_owned()),
        }
    }
    let mut line = first.to_owned();
    let mut empty = true;
    for word in &words {
        if !empty && line.chars().count() + 1 + word.chars().count() > width {
            writeln!(out, "{line}")?;
            line = rest.to_owned();
            empty = true;
        }
        if !empty {
            line.push(' ');
        }
        line.push_str(word);
        empty = false;
    }
    writeln!(out, "{line}")
}
