//! Markdown, for issues, wikis and the documentation of the rules.

use crate::WhatifBody;
use crate::csv::field;
use crate::report::{Body, Report, Section};
use crate::schema;
use crate::table::{Cell, Table};
use crate::text::worth;
use crate::text::{culprit, escape, glanced_words, quality_words, remark, strip};
use crate::trace_head::{Known, TraceHead};
use holdup_attribution::Ledger;
use holdup_diagnose::guide::Walk;
use holdup_diagnose::rules::{ALL, Rule, shared_thresholds};
use holdup_diagnose::{Class, Diagnosis, Finding, Threshold};
use holdup_trace::Severity;
use std::io::{self, Write};

/// Write `report` as Markdown.
pub fn write(report: &Report, out: &mut dyn Write) -> io::Result<()> {
    let t = &report.trace;
    let known = match t.known {
        Known::Glanced { size, span } => glanced_words(size, span),
        Known::Counted | Known::Nothing => format!(
            "{} CPUs, {:.3} s, {} events, {} lost",
            t.cpus,
            t.wall_ns as f64 / 1e9,
            t.events,
            t.lost_events
        ),
    };
    writeln!(
        out,
        "# holdup {}: {}\n\n{}, {known}\n",
        report.command,
        plain(&t.path),
        plain(&t.format)
    )?;
    for entry in report.quality.iter().filter(|e| e.severity > Severity::Info) {
        writeln!(out, "> **warning:** {}\n", plain(&quality_words(entry)))?;
    }
    match &report.body {
        Body::Table(table) => write_table(table, out),
        Body::Ledger(ledger) => write_ledger(ledger, out),
        Body::Diagnosis(d) => write_diagnosis(d, t, out),
        Body::Path(path) => {
            writeln!(
                out,
                "Path of {} ({}), {:.3} s\n",
                plain(&path.head.comm),
                path.head.tid,
                path.head.total_ns as f64 / 1e9
            )?;
            write_table(&path.table, out)
        }
        Body::Noted(table) => write_noted(table, out),
        Body::Predict(predict) => write_noted(&predict.table, out),
        Body::Whatif(whatif) => write_whatif(whatif, out),
        Body::Graph(graph) => write_table(&schema::edges(&graph.graph.edges), out),
        Body::Guide(walk) => write_walk(walk, t, out),
        Body::Info(info) => {
            let rows: Vec<Vec<String>> =
                info.pairs(t).into_iter().map(|(k, v)| vec![k, v]).collect();
            grid(&["key", "value"], &rows, out)
        }
        Body::Summary(sections) => sections.iter().try_for_each(|section| match section {
            Section::Table(table) => {
                writeln!(out, "## {}\n", table.name)?;
                write_table(table, out)?;
                writeln!(out)
            }
            Section::Ledger(ledger) => {
                writeln!(out, "## ledger\n")?;
                write_ledger(ledger, out)?;
                writeln!(out)
            }
            Section::Phases(rows) => writeln!(out, "{}\n", plain(&strip(rows))),
            Section::Busy(course) => writeln!(out, "{}\n", crate::text::busy(course)),
        }),
    }
}

/// Text escaped so that Markdown shows it unchanged, because names come from the trace.
pub(crate) fn plain(text: &str) -> String {
    let mut out = String::new();
    for c in escape(text).chars() {
        if matches!(c, '\\' | '`' | '*' | '_' | '[' | ']' | '<' | '>' | '|' | '#' | '~') {
            out.push('\\');
        }
        out.push(c);
    }
    out
}

/// Text as code: only backticks need care.
fn code(text: &str) -> String {
    format!("`{}`", escape(text).replace('`', "'"))
}

pub(crate) fn grid(heads: &[&str], rows: &[Vec<String>], out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "| {} |", heads.join(" | "))?;
    writeln!(out, "|{}", "---|".repeat(heads.len()))?;
    rows.iter().try_for_each(|row| {
        writeln!(out, "| {} |", row.iter().map(|c| plain(c)).collect::<Vec<_>>().join(" | "))
    })
}

/// A table, with its notes below.
fn write_noted(table: &Table, out: &mut dyn Write) -> io::Result<()> {
    write_table(table, out)?;
    writeln!(out)?;
    table.notes.iter().try_for_each(|note| writeln!(out, "* {}", plain(note)))
}

pub(crate) fn write_table(table: &Table, out: &mut dyn Write) -> io::Result<()> {
    let heads: Vec<&str> = table.columns.iter().map(|c| c.key).collect();
    let cell = |c: &Cell| if *c == Cell::Null { "n/a".to_owned() } else { field(c) };
    let rows: Vec<Vec<String>> =
        table.shown().iter().map(|r| r.iter().map(cell).collect()).collect();
    grid(&heads, &rows, out)
}

fn write_whatif(body: &WhatifBody, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "{}\n", plain(&body.account()))?;
    write_table(&body.table, out)?;
    let said = [&body.head.doubts, &body.head.conclusions, &body.table.notes];
    if said.iter().any(|list| !list.is_empty()) {
        writeln!(out)?;
    }
    said.into_iter().flatten().try_for_each(|words| writeln!(out, "* {}", plain(words)))
}

fn write_ledger(ledger: &Ledger, out: &mut dyn Write) -> io::Result<()> {
    write_table(&schema::nodes(&ledger.nodes()), out)
}

fn write_diagnosis(d: &Diagnosis, trace: &TraceHead, out: &mut dyn Write) -> io::Result<()> {
    let v = &d.verdict;
    let sure = match v.class {
        Class::NotEnoughEvidence => String::new(),
        _ => format!(" (confidence {:.2})", v.confidence),
    };
    writeln!(out, "**{}**{sure}: {}\n", v.class.id(), plain(&v.summary))?;
    for r in v.unsaid_reservations() {
        writeln!(out, "* less sure because {}", plain(r))?;
    }
    if let Some(chosen) = &d.chosen {
        writeln!(out, "* {}", plain(&chosen.course()))?;
        for line in chosen.slept().iter().chain(&chosen.concurrent()) {
            writeln!(out, "* {}", plain(line))?;
        }
    }
    if !d.phases.is_empty() {
        writeln!(out, "* {}", plain(&strip(&d.phases)))?;
        if let Some(remark) = remark(d, trace) {
            writeln!(out, "* {}", plain(&remark))?;
        }
    }
    if let Some(source) = &d.source {
        writeln!(out, "* figures from {}", plain(source))?;
    }
    for t in &d.thresholds {
        writeln!(
            out,
            "* threshold {} = {} {} (default {})",
            code(t.key),
            t.value,
            plain(t.unit),
            t.default
        )?;
    }
    for remark in &d.code_remarks {
        writeln!(out, "* names of code: {}", plain(remark))?;
    }
    writeln!(out, "\n## Where every CPU-second went\n")?;
    write_ledger(&d.ledger, out)?;
    for f in d.findings.iter().filter(|f| f.ruled_out.is_none()) {
        write_finding(f, out)?;
        writeln!(out, "\n{}", plain(&worth(f)))?;
    }
    writeln!(out, "\n## Ruled out\n")?;
    let rows: Vec<Vec<String>> = d
        .findings
        .iter()
        .filter_map(|f| Some(vec![f.class.id().to_owned(), f.ruled_out.clone()?]))
        .collect();
    grid(&["class", "why"], &rows, out)?;
    writeln!(out, "\n## Next\n")?;
    writeln!(out, "```sh")?;
    d.next.iter().try_for_each(|c| writeln!(out, "{}", escape(c)))?;
    writeln!(out, "```")
}

fn write_finding(f: &Finding, out: &mut dyn Write) -> io::Result<()> {
    let cost = f.priced().map_or("cost unknown".to_owned(), |ns| {
        format!("{:.1} % of capacity, {:.3} CPU-s", f.share, ns as f64 / 1e9)
    });
    writeln!(out, "\n## {}: {cost}\n\n{}\n", f.class.id(), plain(&f.summary))?;
    let number = |x: f64| format!("{x:.2}");
    let rows: Vec<Vec<String>> = f
        .evidence
        .iter()
        .map(|e| {
            vec![
                e.metric.clone(),
                e.value.map_or("n/a".to_owned(), number),
                e.unit.to_owned(),
                e.threshold.map_or(String::new(), |t| t.to_string()),
                e.source.to_owned(),
            ]
        })
        .collect();
    grid(&["evidence", "value", "unit", "threshold", "source"], &rows, out)?;
    writeln!(out)?;
    for c in &f.culprits {
        writeln!(out, "* {}", plain(&culprit(c)))?;
    }
    f.advice.iter().try_for_each(|a| writeln!(out, "* **do:** {}", plain(a)))
}

fn write_walk(walk: &Walk, trace: &TraceHead, out: &mut dyn Write) -> io::Result<()> {
    let (way, class) = walk.recommended();
    for (i, q) in way.into_iter().enumerate() {
        writeln!(out, "## {}. {}\n", i + 1, plain(&q.text))?;
        let rows: Vec<Vec<String>> = q
            .figures
            .iter()
            .map(|f| {
                vec![
                    f.label.clone(),
                    f.value.map_or("n/a".to_owned(), |v| format!("{v:.2}")),
                    f.unit.to_owned(),
                ]
            })
            .collect();
        grid(&["figure", "value", "unit"], &rows, out)?;
        writeln!(out)?;
        for (n, b) in q.branches.iter().enumerate() {
            let strong = if n == q.recommended { "**" } else { "" };
            writeln!(out, "{}. {strong}{}{strong} ({})", n + 1, plain(&b.answer), plain(&b.why))?;
        }
        writeln!(out)?;
    }
    writeln!(out, "The questions lead to **{}**.\n", class.id())?;
    write_diagnosis(&walk.diagnosis, trace, out)
}

/// The manual of all rules, `docs/rules.md`.
pub fn write_rules(out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "# The rules\n")?;
    writeln!(
        out,
        "<!-- Generated from crates/diagnose/src/rules: HOLDUP_BLESS=1 cargo test --test answers \
            rules -->\n"
    )?;
    writeln!(
        out,
        "Each rule recognises one class of bottleneck. Its *cost* is the CPU time lost to the \
            bottleneck, in per cent of the CPU\ntime that the traced programs used or lacked. Its \
            *worth* is how many times as fast the work would be without the\nbottleneck: the worth \
            comes from a replay of the trace, from the chains of wake-ups, or, where neither is \
            possible, from\nthe cost. A rule *fires* if its cost or its gain reaches \
            `all.matters_pct`, unless the rule or the replay gives a reason\nagainst it. The \
            verdict is the class of the rule that fires and has the largest worth, by the low end \
            of the worth\n([models.md](models.md#whatif-the-replay)).\n\n`holdup rules ID` prints \
            a rule; `holdup diagnose --thresholds FILE` sets thresholds from a TOML file:\n\n\
            ```toml\n[all]\nmatters_pct = 20\n\n[cpu-overload]\nqueue_per_cpu = 1.5\n```\n"
    )?;
    for rule in ALL {
        writeln!(out, "* [{}](#{}): {}", rule.id, rule.id, rule.title())?;
    }
    writeln!(out, "\n## Thresholds shared by all rules\n")?;
    thresholds(&shared_thresholds(), out)?;
    ALL.iter().try_for_each(|rule| {
        writeln!(out)?;
        write_rule(rule, out)
    })
}

/// The manual page of one rule.
pub fn write_rule(rule: &Rule, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "## {}\n", rule.id)?;
    for line in rule.manual().lines() {
        match line.strip_prefix("# ") {
            Some(heading) => writeln!(out, "### {heading}")?,
            None => writeln!(out, "{line}")?,
        }
    }
    writeln!(out, "\nClass `{}`. Needs: {}.\n", rule.class.id(), rule.needs.join(", "))?;
    thresholds(rule.thresholds, out)?;
    writeln!(
        out,
        "\nThe rule fires on `fixtures/{}`, but not on `fixtures/{}`.",
        rule.fixtures.positive, rule.fixtures.negative
    )
}

fn thresholds(list: &[Threshold], out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "| threshold | default | unit | decides | source |\n|---|--:|---|---|---|")?;
    list.iter().try_for_each(|t| {
        writeln!(
            out,
            "| `{}` | {} | {} | {} | {} |",
            t.key,
            t.default,
            t.unit,
            plain(t.meaning),
            plain(t.source)
        )
    })
}
