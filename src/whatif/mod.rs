//! `holdup whatif`: the trace replayed on a simulated machine, as it was and with changes.

pub(crate) mod args;
mod choose;
mod fix;
mod ranked;
mod words;

use crate::cli::SelectArgs;
use crate::config::Config;
use crate::exit::{self, Failure, Result, usage};
use crate::profile::args::SymbolArgs;
use crate::replay::{Asked as Wanted, read};
use crate::tables::ENTRIES;
use crate::write::write_report;
use args::WhatifArgs;
use choose::Chooser;
use holdup_attribution::{Attribution, Resource, Thresholds};
use holdup_diagnose::Basis;
use holdup_passes::Detail;
use holdup_passes::ObjectKind;
use holdup_render::{
    Body, Format, Report, TraceHead, UNCHANGED, WhatifBody, WhatifHead, WhatifRow, escape, schema,
};
use holdup_replay as replay;
use holdup_replay::{Change, Part, Prediction, Program, Seeds, off_pct, predict_all};
use ranked::ranked;

/// Run the verb.
pub(crate) fn run(args: &WhatifArgs) -> Result<u8> {
    whole(&args.common.select)?;
    let (cpus, asked) = (args.numbers_of_cpus()?, args.changes()?);
    let config = Config::new(&args.common)?;
    let reader = holdup_open::open(&config.trace)?;
    // The part of the trace that the verdict is about, all of it.
    let wanted = Wanted { gain: true, detail: Detail::Steps, whole: false };
    let limits = Thresholds::default();
    let judged = read(&config, &*reader, &limits, &SymbolArgs::default(), wanted)?.judged;
    let analysis = judged.replayed();
    let attribution = Attribution::new(analysis, &limits);
    let program = Program::new(&attribution)
        .map_err(|e| Failure::Unanswerable(format!("{}: {e}", config.trace.display())))?;

    let ranks = cpus.is_empty() && asked.is_empty();
    let answer = if ranks {
        ranked(reader.info(), &judged, &attribution, &program)
    } else {
        let chooser = Chooser::new(analysis, &program);
        let changes = asked.iter().map(|a| chooser.change(a)).collect::<Result<Vec<_>>>()?;
        one_by_one(&program, &cpus, changes)?
    };
    let Answer { off_pct, rows, conclusions, notes } = answer;
    let mut head = WhatifHead {
        traced_wall_ns: program.traced_wall_ns,
        replay_off_pct: off_pct,
        work_threads: program.threads.iter().filter(|t| t.works).count() as u64,
        doubts: Vec::new(),
        conclusions,
    };
    head.doubts = words::doubts(&head, &rows, analysis, &program);
    if matches!(config.format, Format::Csv { .. }) && !config.quiet {
        // CSV has no place for doubts.
        head.doubts.iter().for_each(|doubt| eprintln!("holdup: {}", escape(doubt)));
    }
    let mut table = schema::whatif(&rows, ranks);
    // Requested changes are all shown; the unchanged replay does not count as a row.
    let default = if ranks { ENTRIES } else { rows.len() };
    table.entries = config.entries(args.entries.entries, default).map(|n| n.saturating_add(1));
    table.notes = notes;
    let report = Report {
        command: "whatif",
        trace: TraceHead::new(reader.info(), analysis).of_part(judged.part_of_ns),
        quality: analysis.quality.entries(),
        body: Body::Whatif(Box::new(WhatifBody { head, table })),
    };
    write_report(config, &report)?;
    Ok(exit::OK)
}

/// The rows, the unchanged replay first, and remarks on them.
struct Answer {
    /// Error of the unchanged replay, per cent.
    off_pct: f64,
    rows: Vec<WhatifRow>,
    conclusions: Vec<String>,
    notes: Vec<String>,
}

/// The requested changes.
fn one_by_one(program: &Program, cpus: &[u32], changes: Vec<Change>) -> Result<Answer> {
    let seeds = Seeds::of(program);
    let alternatives = holds_alternatives(&changes);
    let sets = sets(cpus, changes, alternatives);
    let found = sets.iter().zip(predict_all(program, &sets, seeds));
    let found = found
        .map(|(changes, prediction)| {
            prediction.map_err(|e| usage(format!("{}: {e}", shown(program, changes))))
        })
        .collect::<Result<Vec<Prediction>>>()?;
    let rows = sets.iter().zip(&found).map(|(set, of)| row(program, set, of, &found[0])).collect();
    Ok(Answer {
        off_pct: off_pct(program, &found[0]),
        rows,
        conclusions: Vec::new(),
        notes: words::notes(alternatives),
    })
}

/// A replay needs the whole trace: other threads may have waited for a thread that is left out.
fn whole(select: &SelectArgs) -> Result<()> {
    let given = [
        ("--pid", !select.pid.is_empty()),
        ("--tid", !select.tid.is_empty()),
        ("--comm", !select.comm.is_empty()),
    ];
    let hint = "a replay needs all threads, because other threads may wait for any of them";
    if let Some((option, _)) = given.iter().find(|(_, given)| *given) {
        return Err(usage(format!(
            "{option}: {hint}; --time and --phase select a part of the trace"
        )));
    }
    match select.cpu {
        Some(_) => Err(usage(
            "--cpu: a replay needs all CPUs; --cpus simulates a machine with another number of \
             CPUs",
        )),
        None => Ok(()),
    }
}

/// What to replay: first no change, then each number of CPUs, each change, and at last all changes
/// together, for each number of CPUs if there are several.
fn sets(cpus: &[u32], changes: Vec<Change>, alternatives: bool) -> Vec<Vec<Change>> {
    let machines: Vec<Change> = cpus.iter().map(|&n| Change::Cpus(n)).collect();
    let mut sets: Vec<Vec<Change>> = vec![Vec::new()];
    sets.extend(machines.iter().cloned().map(|machine| vec![machine]));
    sets.extend(changes.iter().cloned().map(|change| vec![change]));
    if alternatives || changes.is_empty() {
        return sets;
    }
    if machines.is_empty() && changes.len() > 1 {
        sets.push(changes.clone());
    }
    for machine in machines {
        sets.push([vec![machine], changes.clone()].concat());
    }
    sets
}

/// Whether two of the changes concern the same thing, so that both cannot be applied.
fn holds_alternatives(changes: &[Change]) -> bool {
    let same = |a: &Change, b: &Change| match (a, b) {
        (Change::Lock(a, _), Change::Lock(b, _)) => a == b,
        (Change::Split(a, _), Change::Split(b, _)) | (Change::Speed(a, _), Change::Speed(b, _)) => {
            a == b
        }
        (
            Change::Scale { part: Part::Call(a, _), .. },
            Change::Scale { part: Part::Call(b, _), .. },
        ) => a == b,
        _ => false,
    };
    (1..changes.len()).any(|i| changes[..i].iter().any(|a| same(a, &changes[i])))
}

fn row(
    program: &Program,
    changes: &[Change],
    found: &Prediction,
    unchanged: &Prediction,
) -> WhatifRow {
    let gain = |wall_ns: u64| (wall_ns > 0).then(|| unchanged.wall_ns as f64 / wall_ns as f64);
    let more = |wall_ns: u64| gain(wall_ns).map(|gain| (gain - 1.0) * 100.0);
    let waited = match changes {
        [Change::Lock(id, _)] => program.objects.get(id.0 as usize),
        _ => None,
    };
    WhatifRow {
        change: Some(shown(program, changes)),
        fix: match changes {
            [] => "nothing".to_owned(),
            _ => replay::words::each(program, changes),
        },
        kind: kind(program, changes),
        wall_ns: found.wall_ns,
        wall_low_ns: found.wall_low_ns,
        wall_high_ns: found.wall_high_ns,
        gain: gain(found.wall_ns),
        basis: Basis::Replayed,
        beyond_chance: found.is_beyond_chance(unchanged),
        throughput_pct: more(found.wall_ns),
        throughput_low_pct: more(found.wall_high_ns),
        throughput_high_pct: more(found.wall_low_ns),
        forced: found.forced,
        waits: waited.map(|o| o.waits),
        wait_ns: waited.map(|o| o.wait_ns),
    }
}

fn shown(program: &Program, changes: &[Change]) -> String {
    if changes.is_empty() {
        return UNCHANGED.to_owned();
    }
    replay::words::shown(program, changes)
}

/// The resource that the changes concern, or what else they change.
fn kind(program: &Program, changes: &[Change]) -> &'static str {
    let resource = match changes {
        [] => return UNCHANGED,
        [Change::Scale { .. }] => return "syscall",
        [_, _, ..] => return "several",
        [Change::Lock(id, _)] => match program.objects.get(id.0 as usize) {
            Some(o) if o.kind == ObjectKind::KernelLock => Resource::KernelLock,
            Some(o) if o.kind != ObjectKind::Futex => Resource::Service,
            _ => Resource::ThreadLock,
        },
        [Change::Cpus(_)] => Resource::Cpus,
        [Change::AnyCpu] => Resource::Placement,
        [Change::NoQuota] => Resource::Quota,
        [Change::Split(..)] => Resource::Server,
        [Change::Deal | Change::Speed(..)] => Resource::Parallelism,
        [Change::SpreadIrqs] => Resource::Driver,
        [Change::NoDevices] => Resource::Device,
    };
    resource.word()
}
