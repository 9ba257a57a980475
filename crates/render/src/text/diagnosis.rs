//! The verdict on one screen, as one argument: what it is, its possible gain and the remedy; the
//! culprits; where the time went; what else was examined; what to do next. The figures behind each
//! finding are shown with `-v`.

use super::culprit::culprit;
use super::escape::{escape, shell};
use super::units::duration;
use super::{Page, TextOptions, ledger};
use crate::trace_head::TraceHead;
use holdup_attribution::LedgerNode;
use holdup_diagnose::{Basis, Class, Culprit, Diagnosis, Evidence, Finding};
use holdup_trace::shell_word;
use std::io::{self, Write};

/// Nodes of the ledger below this per cent of capacity are omitted here; `ledger` shows them.
const SHOWN_PCT: f64 = 1.5;
/// Most other classes that are named.
const NAMED: usize = 3;
/// Most leaves shown, those with most time.
const LEAVES: usize = 7;
/// Most leaves on a narrow terminal, where sentences take more lines.
const LEAVES_NARROW: usize = 4;
/// Culprits of findings other than the verdict are shown with `-v`.
const CULPRITS: usize = 3;
/// So are culprits that cost less than this part of the first.
const MINOR: u64 = 10;
/// Width in columns if the output is no terminal.
pub(super) const WIDTH: usize = 80;

/// Write the diagnosis.
pub(crate) fn write(
    d: &Diagnosis,
    trace: &TraceHead,
    page: &Page,
    options: &TextOptions,
    out: &mut dyn Write,
) -> io::Result<()> {
    let all = options.explain || options.verbose;
    let width = super::width(options);
    page.separate(out)?;
    write_verdict(d, options, width, out)?;
    write_remarks(d, trace, width, out)?;
    if let Some(chosen) = &d.chosen {
        page.separate(out)?;
        writeln!(out, "{}", options.paint().title("Chosen threads"))?;
        wrapped(&chosen.course(), "  ", "    ", width, out)?;
        for line in chosen.slept().iter().chain(&chosen.concurrent()) {
            wrapped(line, "  ", "    ", width, out)?;
        }
    }
    if all && d.verdict.class != Class::NotEnoughEvidence {
        write_steps(d, page, options, width, out)?;
    }
    let verdict = d.findings.iter().find(|f| holds(f) && f.class == d.verdict.class);
    if let Some(f) = verdict.filter(|f| !all && !f.culprits.is_empty()) {
        page.separate(out)?;
        writeln!(out, "{}", options.paint().title("Culprits"))?;
        let first = f.culprits[0].ns;
        let minor = |c: &&Culprit| c.ns > 0 && c.ns.saturating_mul(MINOR) < first;
        for c in f.culprits.iter().take(CULPRITS).filter(|c| !minor(c)) {
            wrapped(&culprit(c), "  ", "    ", width, out)?;
        }
    }
    let nodes = d.ledger.nodes();
    let leaves = if width < WIDTH { LEAVES_NARROW } else { LEAVES };
    let shown = if all { large(&nodes, 0.0, usize::MAX) } else { large(&nodes, SHOWN_PCT, leaves) };
    ledger::write((d.ledger.capacity_ns, &shown), trace, page, options, out)?;
    if all {
        d.findings
            .iter()
            .try_for_each(|f| write_finding(f, d.verdict.class, page, options, width, out))?;
    } else {
        write_others(d, page, width, out)?;
    }
    page.separate(out)?;
    writeln!(out, "{}", options.paint().title("Next"))?;
    next(&d.next, &trace.path, width).iter().try_for_each(|line| writeln!(out, "{line}"))
}

/// The commands in lines. A path that is too long for them is written once.
fn next(commands: &[String], path: &str, width: usize) -> Vec<String> {
    let lines = |commands: &[String]| -> Vec<String> {
        commands.iter().map(|command| shell(command, "  ", width)).collect()
    };
    let word = shell_word(path);
    let variable = if word == path { "$TRACE" } else { "\"$TRACE\"" };
    let shorten = |command: &String| match command.strip_suffix(&word) {
        Some(rest) => format!("{rest}{variable}"),
        None => command.clone(),
    };
    let short: Vec<String> = commands.iter().map(shorten).collect();
    let (long, short) = (lines(commands), lines(&short));
    let folds = |lines: &[String]| lines.iter().filter(|line| line.contains('\n')).count();
    match folds(&long) > folds(&short) + 1 {
        true => [vec![format!("  TRACE={}", escape(&word))], short].concat(),
        false => long,
    }
}

fn holds(f: &Finding) -> bool {
    f.ruled_out.is_none()
}

/// What it is, what fixing it would gain, what to do.
fn write_verdict(
    d: &Diagnosis,
    options: &TextOptions,
    width: usize,
    out: &mut dyn Write,
) -> io::Result<()> {
    let paint = options.paint();
    let class = d.verdict.class.id();
    let class = match d.verdict.class {
        Class::Healthy => paint.title(class),
        Class::NotEnoughEvidence => paint.warning(class),
        _ => paint.error(class),
    };
    let sure = match d.verdict.class {
        Class::NotEnoughEvidence => String::new(),
        _ => format!(", confidence {:.2}", d.verdict.confidence),
    };
    writeln!(out, "VERDICT: {class}{sure}")?;
    wrapped(&d.verdict.summary, "  ", "  ", width, out)?;
    if let Some(f) = d.findings.iter().find(|f| holds(f) && f.class == d.verdict.class) {
        wrapped(&gain(f), "  ", "  ", width, out)?;
        f.advice.iter().try_for_each(|a| wrapped(a, "  -> ", "     ", width, out))?;
        // The remedy comes before the basis of the estimate.
        how(f).map_or(Ok(()), |how| wrapped(&how, "  ", "    ", width, out))?;
    }
    for r in d.verdict.unsaid_reservations() {
        wrapped(&format!("less sure because {r}"), "  ", "    ", width, out)?;
    }
    Ok(())
}

/// The gain from removing a finding's cause, in a sentence.
fn gain(f: &Finding) -> String {
    let w = &f.worth;
    match (how(f), w.unchanged_ns.zip(w.wall_ns)) {
        (Some(_), Some((before, after))) => format!(
            "Worth {:.2}x ({:.2} to {:.2}): the work takes {} instead of {}",
            w.times,
            w.low,
            w.high,
            duration(after),
            duration(before),
        ),
        _ => {
            let from = w.fix.as_deref().unwrap_or("the lost CPU time");
            format!("Worth at most {:.2}x, estimated from {from}", w.times)
        }
    }
}

/// Which change the gain assumes, and how it was computed; `None` if only a limit is known.
fn how(f: &Finding) -> Option<String> {
    let w = &f.worth;
    let fix = w.fix.as_ref().filter(|_| w.unchanged_ns.is_some() && w.wall_ns.is_some())?;
    match w.basis {
        Basis::Replayed => Some(format!("result of a replay with this change: {fix}")),
        Basis::Chains => Some(format!("estimated from who woke whom: {fix}")),
        _ => None,
    }
}

/// Gain and basis in one text.
pub(crate) fn worth(f: &Finding) -> String {
    match how(f) {
        None => format!("{}.", gain(f)),
        Some(how) => format!("{}; {how}.", gain(f)),
    }
}

/// What to know about the trace in addition to the verdict.
fn write_remarks(
    d: &Diagnosis,
    trace: &TraceHead,
    width: usize,
    out: &mut dyn Write,
) -> io::Result<()> {
    if !d.phases.is_empty() {
        wrapped(&super::short_strip(&d.phases), "  ", "    ", width, out)?;
        if let Some(remark) = super::remark(d, trace) {
            wrapped(&remark, "  ", "    ", width, out)?;
        }
    }
    let about_all = |_: &_| d.chosen.is_none();
    if let Some(n) =
        d.verdict.background.as_ref().filter(|n| !n.programs.is_empty()).filter(about_all)
    {
        let listed = n.listed();
        // A reservation already says it.
        if !d.verdict.reservations.iter().any(|r| r.contains(&listed)) {
            let line =
                format!("programs other than the work: {:.0} % of capacity ({listed})", n.pct);
            wrapped(&line, "  ", "    ", width, out)?;
        }
    }
    if let Some(source) = &d.source {
        wrapped(&format!("figures: {source}"), "  ", "    ", width, out)?;
    }
    for t in &d.thresholds {
        let line = format!(
            "threshold {} is set to {} {}; the default is {}",
            t.key, t.value, t.unit, t.default
        );
        wrapped(&line, "  ", "    ", width, out)?;
    }
    for remark in &d.code_remarks {
        wrapped(&format!("names of code: {remark}"), "  ", "    ", width, out)?;
    }
    for lead in &d.leads {
        wrapped(&format!("lead: {}: {}", lead.class.id(), lead.summary), "  ", "    ", width, out)?;
        writeln!(out, "{}", shell(&lead.command, "    to prove it: ", width))?;
    }
    Ok(())
}

/// How the confidence was computed.
fn write_steps(
    d: &Diagnosis,
    page: &Page,
    options: &TextOptions,
    width: usize,
    out: &mut dyn Write,
) -> io::Result<()> {
    page.separate(out)?;
    let title = format!("Confidence {:.2}", d.verdict.confidence);
    writeln!(out, "{}", options.paint().title(title))?;
    for (i, step) in d.verdict.steps.iter().enumerate() {
        let times = if i == 0 { ' ' } else { 'x' };
        let first = format!("  {times} {:.3}  ", step.factor);
        wrapped(&step.what, &first, "           ", width, out)?;
    }
    Ok(())
}

/// The nodes with at least this per cent of capacity, and the largest leaves up to this number,
/// with their ancestors.
fn large(nodes: &[LedgerNode], pct: f64, leaves: usize) -> Vec<LedgerNode> {
    let is_leaf = |n: &LedgerNode| {
        let below = format!("{}/", n.path);
        nodes.iter().all(|o| !o.path.starts_with(&below))
    };
    let mut largest: Vec<&LedgerNode> =
        nodes.iter().filter(|n| is_leaf(n) && n.pct >= pct).collect();
    largest.sort_by(|a, b| b.ns.cmp(&a.ns).then(a.path.cmp(b.path)));
    largest.truncate(leaves);
    let leads = |n: &LedgerNode| {
        let below = format!("{}/", n.path);
        largest.iter().any(|leaf| leaf.path == n.path || leaf.path.starts_with(&below))
    };
    nodes.iter().filter(|n| leads(n)).copied().collect()
}

/// Other findings, findings without gain, and rules not judged: one line each.
fn write_others(d: &Diagnosis, page: &Page, width: usize, out: &mut dyn Write) -> io::Result<()> {
    page.separate(out)?;
    for f in d.findings.iter().filter(|f| holds(f) && f.class != d.verdict.class) {
        let line = format!("Also: {}, {}", f.class.id(), f.summary);
        wrapped(&line, "", "  ", width, out)?;
    }
    let names = |wanted: &dyn Fn(&Finding) -> bool| -> Vec<&str> {
        let found = d.findings.iter().filter(|f| !holds(f) && wanted(f));
        found.map(|f| f.class.id()).collect()
    };
    let unknown = names(&|f| f.story == NOT_JUDGED);
    let nothing = names(&|f| f.story != NOT_JUDGED);
    // Many names without further information only take space.
    let listed = |names: &[&str]| match names.len() {
        many if width < WIDTH => many.to_string(),
        many if many > NAMED => format!("{many} other classes"),
        _ => names.join(", "),
    };
    let nothing = (!nothing.is_empty()).then(|| format!("Gains too little: {}.", listed(&nothing)));
    let unknown =
        (!unknown.is_empty()).then(|| format!("Not judged: {} (-v says why).", listed(&unknown)));
    let lines: Vec<String> = nothing.into_iter().chain(unknown).collect();
    if width < WIDTH && !lines.is_empty() {
        wrapped(&lines.join(" "), "", "  ", width, out)?;
    } else {
        lines.iter().try_for_each(|line| wrapped(line, "", "  ", width, out))?;
    }
    if let Some(why) = &d.not_replayed {
        wrapped(&format!("Not replayed: {why}."), "", "  ", width, out)?;
    }
    Ok(())
}

/// The story of findings that the trace cannot support.
const NOT_JUDGED: &str = "not-judged";

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
        None => "cost unknown".to_owned(),
        Some(0) if f.lacked_ns > 0 => {
            format!("threads lacked {} of CPU time", duration(f.lacked_ns))
        }
        Some(ns) => format!("{:.1} % of capacity ({})", f.share, duration(ns)),
    };
    let title = format!("{what}: {}, {cost}, worth {:.2}x", f.class.id(), f.worth.times);
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

/// Whether a word is a unit, which stays on one line with its number.
fn is_unit(word: &str) -> bool {
    matches!(word.trim_end_matches([',', ';', ':', '.', ')']), "%" | "ns" | "us" | "ms" | "s")
}

/// Write text wrapped at blanks. Names come from the trace: escape them.
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

#[cfg(test)]
mod tests {
    use super::*;

    fn commands(path: &str) -> Vec<String> {
        let word = shell_word(path);
        ["waits", "path", "phases"].iter().map(|verb| format!("holdup {verb} {word}")).collect()
    }

    #[test]
    fn a_path_is_written_once_if_no_command_has_room_for_it() {
        let short = next(&commands("perf.data"), "perf.data", 80);
        assert_eq!(short[1], "  holdup path perf.data");
        let path = format!("/{}/perf.data", "x".repeat(70));
        let long = next(&commands(&path), &path, 80);
        assert_eq!(long[0], format!("  TRACE={path}"));
        assert_eq!(
            long[1..],
            ["  holdup waits $TRACE", "  holdup path $TRACE", "  holdup phases $TRACE"]
        );
        let blank = format!("/{} y/perf.data", "x".repeat(70));
        let quoted = next(&commands(&blank), &blank, 80);
        assert_eq!(quoted[0], format!("  TRACE='{blank}'"));
        assert_eq!(quoted[2], "  holdup path \"$TRACE\"");
    }
}
