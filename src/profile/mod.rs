//! `holdup profile`: which code used the CPUs.

pub(crate) mod args;
pub(crate) mod callers;

use crate::config::Config;
use crate::exit::{self, Result, usage};
use crate::output::Output;
use crate::places::places;
use crate::tables::ENTRIES;
use crate::write;
use args::{ProfileArgs, ProfileBy, TreeWay};
use holdup_attribution::analyze_with;
use holdup_passes::Options;
use holdup_profile::{By, Collector, Profile, Tree, firefox, folded, pprof, rows, stays, tree};
use holdup_render::{Body, Table, schema, text};
use holdup_symbols::Symbols;
use holdup_trace::{EventId, Quality, Reader};

/// Default for the smallest branch of a tree, in per cent of all samples; as in perf.
const LEAST_PCT: f64 = 0.5;

/// Run the verb.
pub(crate) fn run(args: &ProfileArgs) -> Result<u8> {
    let by = if args.children { By::Children } else { by(args.by) };
    if let Some(keys) = &args.table.sort.sort {
        schema::profile(&[], by).sort(keys).map_err(|e| usage(format!("--sort: {e}")))?;
    }
    let mut config = Config::new(&args.table.common)?;
    if let Some(file) = args.pprof.as_ref().or(args.firefox.as_ref()) {
        config.output = Output::open(Some(file), &[&config.trace])?;
    }
    let places = places(&args.symbols)?;
    let reader = holdup_open::open(&config.trace)?;
    let options = config.options(&*reader)?;
    let event = args.event.as_deref().map(|name| event(name, &*reader)).transpose()?;
    let mut collector = Collector::new(reader.info(), &options.selection, event);
    if args.folded || args.pprof.is_some() || args.firefox.is_some() {
        return chains(args, config, &*reader, &options, collector, places);
    }
    if args.tree.is_none() && by != By::Children {
        collector = collector.without_callers();
    }
    let see = &mut |events: &[_], batch: &_| collector.events(events, batch);
    let analysis = analyze_with(&*reader, &options, see)?;
    let profile = collector.finish();
    let mut symbols = Symbols::new(reader.info(), profile.kernel_text(), places);
    write::write("profile", config, &*reader, &analysis, |reader, analysis, config| {
        let mut entries = config.entries(args.table.entries.entries, ENTRIES);
        let mut table = match (&profile.event, args.tree) {
            (Some(_), Some(way)) => {
                let way = self::way(way);
                let least = args.min_pct.unwrap_or(LEAST_PCT);
                // A tree is limited by shares, not by a number of rows.
                entries = args.table.entries.entries.filter(|&n| n > 0);
                let rows = tree(&profile, &options.filter, way, least, &mut symbols);
                noted(schema::profile_tree(&rows, way), &profile, &symbols)
            }
            (Some(_), None) => {
                let rows = rows(&profile, &options.filter, by, &mut symbols);
                noted(schema::profile(&rows, by), &profile, &symbols)
            }
            (None, _) => {
                let mut table = schema::stays(&stays(analysis, by), by);
                let nothing = table.rows.is_empty() && !reader.info().capabilities.switches;
                table.missing = nothing.then_some("cpu-clock");
                table.notes = no_samples(&profile);
                table
            }
        };
        if let Some(keys) = &args.table.sort.sort {
            table.sort(keys)?;
        }
        table.entries = entries;
        Ok(Body::Noted(table))
    })?;
    Ok(exit::OK)
}

/// Write whole chains in a form of another tool.
fn chains(
    args: &ProfileArgs,
    config: Config,
    reader: &dyn Reader,
    options: &Options,
    collector: Collector<'_>,
    places: holdup_symbols::Options,
) -> Result<u8> {
    let (info, filter) = (reader.info(), &options.filter);
    let warn = |profile: &Profile, quality: &Quality, symbols: &Symbols<'_>| {
        if config.quiet {
            return;
        }
        let path = info.path.display().to_string();
        write::warn_of_losses(&path, &quality.entries());
        let none = profile.event.is_none().then(|| "no samples say which code ran".to_owned());
        for remark in none.into_iter().chain(symbols.remarks()) {
            eprintln!("holdup: {}: {}", text::escape(&path), text::escape(&remark));
        }
    };
    if args.firefox.is_some() {
        let (timeline, quality) = collector.read_times(reader)?;
        let mut symbols = Symbols::new(info, timeline.profile.kernel_text(), places);
        config.output.write_with(|out| firefox(&timeline, filter, info, &mut symbols, out))?;
        warn(&timeline.profile, &quality, &symbols);
        return Ok(exit::OK);
    }
    let (profile, quality) = collector.read(reader)?;
    let mut symbols = Symbols::new(info, profile.kernel_text(), places);
    config.output.write_with(|out| match args.folded {
        true => out.write_all(folded(&profile, filter, &mut symbols).as_bytes()),
        false => pprof(&profile, filter, info, &mut symbols, out),
    })?;
    warn(&profile, &quality, &symbols);
    Ok(exit::OK)
}

fn way(way: TreeWay) -> Tree {
    match way {
        TreeWay::TopDown => Tree::TopDown,
        TreeWay::BottomUp => Tree::BottomUp,
    }
}

fn by(by: ProfileBy) -> By {
    match by {
        ProfileBy::Function => By::Function,
        ProfileBy::Thread => By::Thread,
        ProfileBy::Process => By::Process,
        ProfileBy::Dso => By::Dso,
        ProfileBy::Line => By::Line,
        ProfileBy::Cpu => By::Cpu,
        ProfileBy::Cgroup => By::Cgroup,
    }
}

/// The event that the user names, with or without its system.
fn event(name: &str, reader: &dyn Reader) -> Result<EventId> {
    let events = &reader.info().events;
    let is = |e: &&holdup_trace::EventDesc| e.name == name || e.short_name() == name;
    let found = events.iter().zip(0..).find(|(e, _)| is(e)).map(|(_, id)| EventId(id));
    found.ok_or_else(|| {
        let names: Vec<&str> = events.iter().map(|e| e.name.as_str()).collect();
        usage(format!(
            "--event: the trace has no event '{}'; the events with samples are {}",
            name.escape_default(),
            names.join(", ")
        ))
    })
}

/// A table with notes on its samples and names.
fn noted(mut table: Table, profile: &Profile, symbols: &Symbols<'_>) -> Table {
    if let Some(event) = &profile.event {
        table.notes.push(format!("samples of {}", event.name));
        let others: Vec<String> = profile
            .sampled
            .iter()
            .filter(|(name, _)| *name != event.name)
            .map(|(name, n)| format!("{name} ({n})"))
            .collect();
        if !others.is_empty() {
            table.notes.push(format!("--event selects other samples: {}", others.join(", ")));
        }
    }
    table.notes.extend(symbols.remarks());
    table
}

/// Notes for a trace without samples of CPU time: what it shows instead, and how to record more.
fn no_samples(profile: &Profile) -> Vec<String> {
    let mut notes = vec![
        "no samples say which code ran: the table shows the time that threads were on a CPU, from \
         context switches; perf record -e cpu-clock -F 999 -g records samples"
            .to_owned(),
    ];
    if !profile.sampled.is_empty() {
        let others: Vec<String> =
            profile.sampled.iter().map(|(name, n)| format!("{name} ({n})")).collect();
        notes.push(format!("--event selects other samples: {}", others.join(", ")));
    }
    notes
}
