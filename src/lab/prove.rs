//! `holdup lab prove`: every class that this host allows is caused, recorded, and judged.

use super::args::ProveArgs;
use super::named;
use super::random;
use super::say::{say, table, times};
use super::trial::{Gain, Named, Trial, Tried, Verdict};
use crate::config;
use crate::exit::{self, Failure, Result, unwritable, usage};
use crate::output::Output;
use crate::progress;
use holdup_host::{Host, Root, facts, stopped};
use holdup_lab::{HEALTHY, Lack, Need, WORKLOADS, Workload};
use holdup_record::probe::try_out;
use holdup_render::Format;
use serde_json::{Value, json};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// How often each variant runs untraced, and for how long; and how long it is recorded.
const RUNS: usize = 3;
const UNTRACED: &str = "300ms";
const RECORDED: &str = "700ms";

/// The schema of the JSON.
pub(super) const SCHEMA: &str = "holdup-lab-prove/1";

/// A workload that this host cannot run.
struct Dark {
    workload: &'static Workload,
    lack: Lack,
}

/// Run the verb.
pub(super) fn run(args: &ProveArgs) -> Result<u8> {
    let output = Output::open(args.output.output.as_deref(), &[])?;
    let format = config::format(&args.output, &output)?;
    if !matches!(format, Format::Text(_) | Format::Json) {
        return Err(usage("lab prove has text and json output only"));
    }
    let counters = allowed()?;
    let (mut shown, mut dark) = (Vec::new(), Vec::new());
    for workload in wanted(&args.only)? {
        match lack(workload, counters.as_ref(), args.change_host) {
            Some(lack) => dark.push(Dark { workload, lack }),
            None => shown.push(workload),
        }
    }
    let temporary = tempfile::tempdir().map_err(|e| unwritable(&std::env::temp_dir(), &e))?;
    let folder: PathBuf = args.keep.clone().unwrap_or_else(|| temporary.path().to_owned());
    std::fs::create_dir_all(&folder).map_err(|e| unwritable(&folder, &e))?;

    if let Some(number) = args.random {
        let rows = random::run(&shown, number, args.seed, &folder, args.output.quiet)?;
        output.write_with(|out| match format {
            Format::Json => write_json(out, &rows, &dark),
            _ => random::write_text(out, &rows),
        })?;
        return Ok(exit::OK);
    }
    let mut rows = Vec::new();
    for (i, workload) in shown.iter().enumerate() {
        say(&format!("{} of {}: {}", i + 1, shown.len(), workload.name), args.output.quiet);
        rows.push(trial(workload, &folder).run()?);
    }
    progress::end();
    output.write_with(|out| match format {
        Format::Json => write_json(out, &rows, &dark),
        _ => write_text(out, &rows, &dark),
    })?;
    Ok(match (rows.iter().any(Tried::wrong), rows.iter().any(Tried::open)) {
        (true, _) => exit::FAILED,
        (false, true) => exit::INCONCLUSIVE,
        (false, false) => exit::OK,
    })
}

/// Fails if the host allows no recordings; returns what it lacks for counters, if anything.
fn allowed() -> Result<Option<Lack>> {
    let host = Host::look(&Root::host());
    let facts = facts(&host, &try_out(&host));
    if let Some(obstacle) = stopped(&facts) {
        return Err(Failure::Denied(obstacle.clone()));
    }
    let fact = facts.iter().find(|fact| fact.name == "counters");
    let obstacle = fact.and_then(|fact| fact.state.obstacle());
    Ok(obstacle.map(|obstacle| {
        let ways: Vec<String> = obstacle.ways_out.iter().map(|way| way.what.clone()).collect();
        Lack { what: obstacle.what.clone(), way_out: ways.join("; ") }
    }))
}

/// The requested workloads: all that stand for a class, or the named ones.
fn wanted(only: &[String]) -> Result<Vec<&'static Workload>> {
    if !only.is_empty() {
        return only.iter().map(|name| named(name)).collect();
    }
    // `jobs` exists for its own figures, not for a class.
    Ok(WORKLOADS.iter().filter(|workload| workload.name != "jobs").collect())
}

/// What this host lacks for the workload, if anything.
fn lack(workload: &Workload, counters: Option<&Lack>, change_host: bool) -> Option<Lack> {
    let lack = workload.needs.iter().find_map(|need| need.lack(counters));
    lack.or_else(|| {
        let changes = workload.needs.contains(&Need::Workers) && !change_host;
        changes.then(|| Lack {
            what: "it sets the CPUs that the kernel's workers may use, for the whole machine"
                .to_owned(),
            way_out: "holdup lab prove --change-host, which restores the setting afterwards"
                .to_owned(),
        })
    })
}

fn trial<'a>(workload: &'static Workload, folder: &'a Path) -> Trial<'a> {
    Trial {
        workload,
        set: Vec::new(),
        runs: RUNS,
        untraced: UNTRACED,
        recorded: RECORDED,
        folder,
        stem: workload.name.to_owned(),
        fixed_too: true,
    }
}

/// Say on the terminal's last line how far it is.
fn range(gain: Option<Gain>) -> String {
    match gain {
        None => "n/a".to_owned(),
        Some(g) => format!("{} ({:.2} to {:.2})", times(g.times), g.low, g.high),
    }
}

const HEAD: [&str; 8] =
    ["workload", "verdict", "conf.", "culprit", "predicted", "gained", "fixed variant", "cost"];

fn cells(row: &Tried) -> Vec<String> {
    let mark = |right: bool| if right { "" } else { " WRONG" };
    let culprit = match row.culprit {
        None => "",
        Some(Named::First) => "right",
        Some(Named::Later) => "named",
        Some(Named::No) => "other",
    };
    let fixed =
        |verdict: &Verdict| format!("{}{}", verdict.class, mark(row.fixed_right != Some(false)));
    vec![
        row.name.to_owned(),
        format!("{}{}", row.verdict.class, mark(row.right != Some(false))),
        format!("{:.2}", row.verdict.confidence),
        culprit.to_owned(),
        if row.verdict.class == HEALTHY { String::new() } else { range(row.verdict.predicted) },
        row.gained.map_or(String::new(), times),
        row.fixed.as_ref().map_or(String::new(), fixed),
        format!("{:.0} %", row.cost_pct),
    ]
}

/// How many verdicts are right, wrong and undecided.
fn score(verdicts: &[Option<bool>]) -> String {
    let number = |what| verdicts.iter().filter(|verdict| **verdict == what).count();
    let (right, wrong, open) = (number(Some(true)), number(Some(false)), number(None));
    let open = if open > 0 { format!(", {open} undecided") } else { String::new() };
    format!("{right} right, {wrong} wrong{open}")
}

fn write_text(out: &mut dyn Write, rows: &[Tried], dark: &[Dark]) -> io::Result<()> {
    let mut class = "";
    let mut lines = vec![HEAD.map(str::to_owned).to_vec()];
    for row in rows {
        if row.makes != class {
            class = row.makes;
            lines.push(vec![format!("made: {class}")]);
        }
        let mut line = cells(row);
        line[0].insert_str(0, "  ");
        lines.push(line);
    }
    // The line of a class may be wider than its column.
    let (heads, mut body): (Vec<_>, Vec<_>) =
        lines.into_iter().enumerate().partition(|(_, line)| line.len() == 1);
    let mut text = Vec::new();
    table(&mut text, &body.iter_mut().map(|(_, l)| std::mem::take(l)).collect::<Vec<_>>())?;
    let text = String::from_utf8_lossy(&text).into_owned();
    let mut rest = text.lines();
    for at in 0..heads.len() + body.len() {
        match heads.iter().find(|(i, _)| *i == at) {
            Some((_, head)) => writeln!(out, "{}", head.join(""))?,
            None => writeln!(out, "{}", rest.next().unwrap_or_default())?,
        }
    }
    let verdicts: Vec<_> = rows.iter().map(|row| row.right).collect();
    let twins: Vec<_> =
        rows.iter().filter(|row| row.fixed.is_some()).map(|row| row.fixed_right).collect();
    writeln!(out, "\nVerdicts: {}; on fixed variants: {}.", score(&verdicts), score(&twins))?;
    for row in rows.iter().filter(|row| row.right == Some(false)) {
        let right = row.right_classes.join(" or ");
        writeln!(out, "  {}: the right class is {right}", row.name)?;
    }
    if !dark.is_empty() {
        writeln!(out, "\nNot shown on this host")?;
    }
    for Dark { workload, lack } in dark {
        writeln!(out, "  {} ({}): {}", workload.name, workload.class, lack.what)?;
        writeln!(out, "    way out: {}", lack.way_out)?;
    }
    Ok(())
}

fn write_json(out: &mut dyn Write, rows: &[Tried], dark: &[Dark]) -> io::Result<()> {
    let row = |d: &Dark| -> Value {
        let (name, class) = (d.workload.name, d.workload.class);
        json!({"name": name, "class": class, "what": d.lack.what, "way_out": d.lack.way_out})
    };
    let all = json!({
        "schema": SCHEMA,
        "cpus": holdup_lab::cpus(),
        "wrong": rows.iter().filter(|row| row.wrong()).count(),
        "rows": rows,
        "not_shown": dark.iter().map(row).collect::<Vec<_>>(),
    });
    serde_json::to_writer_pretty(&mut *out, &all)?;
    writeln!(out)
}
