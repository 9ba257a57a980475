//! `holdup profile`: which code used the CPUs.

pub(crate) mod args;
pub(crate) mod callers;

use crate::commands::{self, ENTRIES};
use crate::config::Config;
use crate::exit::{self, usage};
use anyhow::Result;
use args::{ProfileArgs, ProfileBy, SymbolArgs};
use holdup_attribution::analyze;
use holdup_passes::Options;
use holdup_profile::{By, Profile, collect, folded, rows, stays};
use holdup_render::{Body, Table, schema};
use holdup_symbols::Symbols;
use holdup_trace::{ErrorKind, EventId, Reader};
use std::path::PathBuf;

/// Run the verb.
pub(crate) fn run(args: &ProfileArgs) -> Result<u8> {
    let by = by(args.by);
    if let Some(keys) = &args.table.sort.sort {
        schema::profile(&[], by).sort(keys).map_err(|e| usage(format!("--sort: {e}")))?;
    }
    let config = Config::new(&args.table.common)?;
    let places = places(&args.symbols)?;
    let reader = holdup_open::open(&config.trace)?;
    let options = config.options(&*reader)?;
    let event = args.event.as_deref().map(|name| event(name, &*reader)).transpose()?;
    let profile = collect(&*reader, &options.selection, event)?;
    let mut symbols = Symbols::new(reader.info(), profile.kernel_text(), places);
    if args.folded {
        crate::progress::end();
        let text = folded(&profile, &options.filter, &mut symbols);
        config.output.write_with(|out| out.write_all(text.as_bytes()))?;
        return Ok(exit::OK);
    }
    let analysis = analyze(&*reader, &options)?;
    commands::write("profile", config, &*reader, &analysis, |reader, analysis, config| {
        let mut table = match &profile.event {
            Some(_) => sampled(&profile, &options, by, &mut symbols),
            None => {
                let mut table = schema::stays(&stays(analysis, by));
                let nothing = table.rows.is_empty() && !reader.info().capabilities.switches;
                table.missing = nothing.then_some("cpu-clock");
                table.notes = no_samples(&profile);
                table
            }
        };
        if let Some(keys) = &args.table.sort.sort {
            table.sort(keys)?;
        }
        table.entries = config.entries(args.table.entries.entries, ENTRIES);
        Ok(Body::Noted(table))
    })?;
    Ok(exit::OK)
}

fn by(by: ProfileBy) -> By {
    match by {
        ProfileBy::Function => By::Function,
        ProfileBy::Thread => By::Thread,
        ProfileBy::Process => By::Process,
        ProfileBy::Dso => By::Dso,
        ProfileBy::Line => By::Line,
        ProfileBy::Cpu => By::Cpu,
    }
}

/// Where to look for files with names of functions.
pub(crate) fn places(args: &SymbolArgs) -> Result<holdup_symbols::Options> {
    for path in args.symfs.iter().chain(&args.kallsyms) {
        // A mistyped name would only show as names that are missing.
        path.metadata().map_err(|e| ErrorKind::from(e).in_file(path))?;
    }
    Ok(holdup_symbols::Options {
        symfs: args.symfs.clone(),
        kallsyms: args.kallsyms.clone(),
        home: std::env::var_os("HOME").map(PathBuf::from),
        off: args.no_symbols,
    })
}

/// The event that the user names, with or without its system.
fn event(name: &str, reader: &dyn Reader) -> Result<EventId> {
    let events = &reader.info().events;
    let is = |e: &&holdup_trace::EventDesc| e.name == name || e.short_name() == name;
    let found = events.iter().zip(0..).find(|(e, _)| is(e)).map(|(_, id)| EventId(id));
    found.ok_or_else(|| {
        let names: Vec<&str> = events.iter().map(|e| e.name.as_str()).collect();
        usage(format!(
            "--event: no event '{}' in the trace; there are {}",
            name.escape_default(),
            names.join(", ")
        ))
    })
}

fn sampled(profile: &Profile, options: &Options, by: By, symbols: &mut Symbols<'_>) -> Table {
    let mut table = schema::profile(&rows(profile, &options.filter, by, symbols), by);
    if let Some(event) = &profile.event {
        table.notes.push(format!("samples of {}", event.name));
        let others: Vec<String> = profile
            .sampled
            .iter()
            .filter(|(name, _)| *name != event.name)
            .map(|(name, n)| format!("{name} ({n})"))
            .collect();
        if !others.is_empty() {
            table.notes.push(format!("--event shows other samples: {}", others.join(", ")));
        }
    }
    table.notes.extend(symbols.remarks());
    table
}

/// What a trace without samples of CPU time shows instead, and what would show more.
fn no_samples(profile: &Profile) -> Vec<String> {
    let mut notes = vec![
        "no samples say which code ran: this is the time that threads had a CPU, by the switches; \
         perf record -e cpu-clock -F 999 -g records samples"
            .to_owned(),
    ];
    if !profile.sampled.is_empty() {
        let others: Vec<String> =
            profile.sampled.iter().map(|(name, n)| format!("{name} ({n})")).collect();
        notes.push(format!("--event shows other samples: {}", others.join(", ")));
    }
    notes
}
