//! The guided walk: questions with their figures and branches, and its end.

use super::diagnosis::{WIDTH, worth, wrapped, write_finding};
use super::escape::{escape, width};
use super::{Page, TextOptions, diagnosis};
use crate::trace_head::TraceHead;
use holdup_diagnose::Class;
use holdup_diagnose::guide::{Figure, Question, Walk};
use std::cell::Cell as Once;
use std::io::{self, Write};

/// The walk that follows all recommendations, and the report at its end.
pub(crate) fn write(
    walk: &Walk,
    trace: &TraceHead,
    page: &Page,
    options: &TextOptions,
    out: &mut dyn Write,
) -> io::Result<()> {
    let (way, class) = walk.recommended();
    for (i, q) in way.into_iter().enumerate() {
        page.separate(out)?;
        write_question(q, i + 1, options, out)?;
        let branch = &q.branches[q.recommended];
        writeln!(out, "   -> {}: {}", q.recommended + 1, escape(&branch.answer))?;
    }
    page.separate(out)?;
    write_end(walk, class, options, out)?;
    diagnosis::write(&walk.diagnosis, trace, page, options, out)
}

/// Question `number` of a walk.
pub fn write_question(
    q: &Question,
    number: usize,
    options: &TextOptions,
    out: &mut dyn Write,
) -> io::Result<()> {
    let paint = options.paint();
    let columns = options.width.unwrap_or(WIDTH).clamp(60, 140);
    writeln!(out, "{}", paint.title(format!("{number}. {}", q.text)))?;
    let labels = q.figures.iter().map(|f| width(&escape(&f.label))).max().unwrap_or(0);
    for f in &q.figures {
        let label = escape(&f.label);
        let pad = labels.saturating_sub(width(&label));
        writeln!(out, "     {label}{:pad$}  {}", "", amount(f))?;
    }
    for (i, b) in q.branches.iter().enumerate() {
        let mark = if i == q.recommended { ">" } else { " " };
        let line = format!("{} ({})", b.answer, b.why);
        wrapped(&line, &format!("   {mark} {}  ", i + 1), "        ", columns, out)?;
    }
    Ok(())
}

fn amount(f: &Figure) -> String {
    match f.value {
        Some(v) if v == v.trunc() && (f.unit.is_empty() || f.unit == "threads") => {
            format!("{v:>9.0} {}", f.unit).trim_end().to_owned()
        }
        Some(v) => format!("{v:>9.2} {}", f.unit).trim_end().to_owned(),
        None => format!("{:>9}", "n/a"),
    }
}

/// The result of the rule at the end of a branch.
pub fn write_end(
    walk: &Walk,
    class: Class,
    options: &TextOptions,
    out: &mut dyn Write,
) -> io::Result<()> {
    let paint = options.paint();
    let columns = options.width.unwrap_or(WIDTH).clamp(60, 140);
    let verdict = walk.diagnosis.verdict.class;
    writeln!(out, "{}", paint.title(format!("The questions lead to {}", class.id())))?;
    let finding = walk.diagnosis.findings.iter().find(|f| f.class == class);
    match finding {
        Some(f) if f.ruled_out.is_some() => {
            wrapped(
                &format!(
                    "The rule of this class does not fire: {}.",
                    f.ruled_out.as_deref().unwrap_or("")
                ),
                "  ",
                "  ",
                columns,
                out,
            )?;
            let page = Page { capacity_ns: 0, wall_ns: 0, begun: Once::new(false) };
            write_finding(f, verdict, &page, options, columns, out)?;
        }
        Some(f) => wrapped(&f.summary, "  ", "  ", columns, out)?,
        None if class == verdict => {
            wrapped(&walk.diagnosis.verdict.summary, "  ", "  ", columns, out)?
        }
        None => writeln!(out, "  No single figure shows this class.")?,
    }
    let holds = finding.is_some_and(|f| f.ruled_out.is_none()) && class == verdict;
    if let Some(f) = finding.filter(|_| holds) {
        wrapped(&worth(f), "  ", "  ", columns, out)?;
    }
    if verdict == Class::NotEnoughEvidence && class != verdict {
        wrapped(
            &format!("But the trace does not allow a verdict: {}.", walk.diagnosis.verdict.summary),
            "  ",
            "  ",
            columns,
            out,
        )?;
    } else if class != verdict {
        writeln!(out, "  The verdict is a different class: {}.", verdict.id())?;
    }
    Ok(())
}
