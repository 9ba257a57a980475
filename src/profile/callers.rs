//! `holdup waits --by caller`, `holdup syscalls --by caller`: tables by the code that waits or
//! calls.

use super::args::SymbolArgs;
use crate::cli::TableArgs;
use crate::code;
use crate::config::Config;
use crate::exit::Result;
use crate::places::places;
use crate::tables::{ENTRIES, missing, sort};
use crate::write;
use holdup_attribution::Attribution;
use holdup_passes::{Analysis, Observer};
use holdup_profile::{CallsByCode, WaitsByCode};
use holdup_render::{Body, Table, schema, text};
use holdup_symbols::Options;
use holdup_trace::{Reader, Severity, TraceInfo};

/// Run `waits --by caller`.
pub(crate) fn waits(args: &TableArgs, symbols: &SymbolArgs) -> Result<()> {
    run("waits", schema::callers(&[]), args, symbols, WaitsByCode::new, |waits, info, a, places| {
        let words = Attribution::from(a).object_words();
        let (rows, remarks) = waits.rows(info, a, &words, places);
        (schema::callers(&rows), remarks)
    })
}

/// Write waits by whole chains. Remarks go to standard error.
pub(crate) fn folded(args: &TableArgs, symbols: &SymbolArgs) -> Result<()> {
    let config = Config::new(&args.common)?;
    let places = places(symbols)?;
    let reader = holdup_open::open(&config.trace)?;
    let (analysis, waits) = observed(&*reader, &config, WaitsByCode::new)?;
    config.must_match(&analysis)?;
    let (lines, mut remarks) = match waits {
        Some(waits) => waits.folded(reader.info(), &analysis, places),
        None => (String::new(), vec![NO_CHAINS.to_owned()]),
    };
    crate::progress::end();
    if !config.quiet {
        let losses = analysis.quality.entries();
        let losses = losses.iter().filter(|e| e.severity > Severity::Info);
        remarks.extend(losses.map(text::quality_words));
        remarks.iter().for_each(|remark| eprintln!("holdup: {}", text::escape(remark)));
    }
    config.output.write_with(|out| out.write_all(lines.as_bytes()))
}

const NO_CHAINS: &str =
    "no call chains were recorded (holdup record -g, perf record -g), so callers are not known";

/// Run `syscalls --by caller`.
pub(crate) fn syscalls(args: &TableArgs, symbols: &SymbolArgs) -> Result<()> {
    run(
        "syscalls",
        schema::calls(&[]),
        args,
        symbols,
        CallsByCode::new,
        |calls, info, a, places| {
            let (rows, remarks) = calls.rows(info, a, places);
            (schema::calls(&rows), remarks)
        },
    )
}

/// Analyse a trace; if it has call chains, with an observer.
fn observed<O: Observer>(
    reader: &dyn Reader,
    config: &Config,
    observer: fn(&TraceInfo) -> O,
) -> Result<(Analysis, Option<O>)> {
    let mut observer = reader.info().capabilities.stacks.then(|| observer(reader.info()));
    let analysis = code::analyze_with(reader, &config.options(reader)?, observer.as_mut())?;
    Ok((analysis, observer))
}

/// Write the table that `build` makes of what `observer` saw, with remarks on the files of code;
/// `empty` has its columns.
fn run<O: Observer>(
    verb: &'static str,
    mut empty: Table,
    args: &TableArgs,
    symbols: &SymbolArgs,
    observer: fn(&TraceInfo) -> O,
    build: impl FnOnce(O, &TraceInfo, &Analysis, Options) -> (Table, Vec<String>),
) -> Result<()> {
    sort(args, &mut empty)?;
    let config = Config::new(&args.common)?;
    let places = places(symbols)?;
    let reader = holdup_open::open(&config.trace)?;
    let (analysis, seen) = observed(&*reader, &config, observer)?;
    write::write(verb, config, &*reader, &analysis, |reader, analysis, config| {
        let (mut table, notes) = match seen {
            Some(seen) => build(seen, reader.info(), analysis, places),
            None => (empty, vec![NO_CHAINS.to_owned()]),
        };
        sort(args, &mut table)?;
        table.entries = config.entries(args.entries.entries, ENTRIES);
        table.missing = missing(verb, &reader.info().capabilities);
        table.notes = notes;
        Ok(Body::Noted(table))
    })
}
