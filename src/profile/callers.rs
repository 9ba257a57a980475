//! `holdup waits --by caller`, `holdup syscalls --by caller`: tables by the code that waits or
//! calls.

use super::args::SymbolArgs;
use crate::cli::TableArgs;
use crate::config::Config;
use crate::exit::{Result, usage};
use crate::places::places;
use crate::tables::{ENTRIES, missing};
use crate::write;
use holdup_attribution::{Attribution, JUDGE, analyze};
use holdup_passes::Analysis;
use holdup_profile::{callers, calls, folded_waits};
use holdup_render::{Body, Table, schema, text};
use holdup_symbols::Options;
use holdup_trace::{Reader, Severity};

/// Run `waits --by caller`.
pub(crate) fn waits(args: &TableArgs, symbols: &SymbolArgs) -> Result<()> {
    run("waits", schema::callers(&[]), args, symbols, &|reader, analysis, places| {
        let words = Attribution::from(analysis).object_words();
        let (rows, remarks) = callers(reader, analysis, &JUDGE, &words, places)?;
        Ok((schema::callers(&rows), remarks))
    })
}

/// Write waits by whole chains. Remarks go to standard error.
pub(crate) fn folded(args: &TableArgs, symbols: &SymbolArgs) -> Result<()> {
    let config = Config::new(&args.common)?;
    let places = places(symbols)?;
    let reader = holdup_open::open(&config.trace)?;
    let analysis = analyze(&*reader, &config.options(&*reader)?)?;
    config.must_match(&analysis)?;
    let (lines, mut remarks) = match reader.info().capabilities.stacks {
        true => folded_waits(&*reader, &analysis, &JUDGE, places)?,
        false => (String::new(), vec![NO_CHAINS.to_owned()]),
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
    run("syscalls", schema::calls(&[]), args, symbols, &|reader, analysis, places| {
        let (rows, remarks) = calls(reader, analysis, &JUDGE, places)?;
        Ok((schema::calls(&rows), remarks))
    })
}

/// Makes a table, and remarks on the files of code.
type Build = dyn Fn(&dyn Reader, &Analysis, Options) -> Result<(Table, Vec<String>)>;

/// Write the table of `build`; `empty` has its columns.
fn run(
    verb: &'static str,
    mut empty: Table,
    args: &TableArgs,
    symbols: &SymbolArgs,
    build: &Build,
) -> Result<()> {
    let sort = args.sort.sort.as_deref();
    if let Some(keys) = sort {
        empty.sort(keys).map_err(|e| usage(format!("--sort: {e}")))?;
    }
    let config = Config::new(&args.common)?;
    let places = places(symbols)?;
    let reader = holdup_open::open(&config.trace)?;
    let analysis = analyze(&*reader, &config.options(&*reader)?)?;
    write::write(verb, config, &*reader, &analysis, |reader, analysis, config| {
        let capabilities = &reader.info().capabilities;
        let (mut table, notes) = if capabilities.stacks {
            build(reader, analysis, places)?
        } else {
            (empty, vec![NO_CHAINS.to_owned()])
        };
        if let Some(keys) = sort {
            table.sort(keys)?;
        }
        table.entries = config.entries(args.entries.entries, ENTRIES);
        table.missing = missing(verb, capabilities);
        table.notes = notes;
        Ok(Body::Noted(table))
    })
}
