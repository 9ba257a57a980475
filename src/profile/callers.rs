//! `holdup waits --by caller`: waits by the code that waits.

use super::args::SymbolArgs;
use super::places;
use crate::cli::TableArgs;
use crate::commands::{self, ENTRIES, missing};
use crate::config::Config;
use crate::exit::usage;
use anyhow::Result;
use holdup_attribution::{Attribution, JUDGE, analyze};
use holdup_profile::callers;
use holdup_render::{Body, schema};

/// Run it.
pub(crate) fn run(args: &TableArgs, symbols: &SymbolArgs) -> Result<()> {
    let sort = args.sort.sort.as_deref();
    if let Some(keys) = sort {
        schema::callers(&[]).sort(keys).map_err(|e| usage(format!("--sort: {e}")))?;
    }
    let config = Config::new(&args.common)?;
    let places = places(symbols)?;
    let reader = holdup_open::open(&config.trace)?;
    let analysis = analyze(&*reader, &config.options(&*reader)?)?;
    commands::write("waits", config, &*reader, &analysis, |reader, analysis, config| {
        let capabilities = &reader.info().capabilities;
        if !capabilities.stacks {
            let mut table = schema::callers(&[]);
            table.missing = missing("waits", capabilities);
            table.notes.push(
                "no call chains were recorded (holdup record -g, perf record -g), so callers are \
                 not known"
                    .to_owned(),
            );
            return Ok(Body::Noted(table));
        }
        let words = Attribution::from(analysis).object_words();
        let (rows, remarks) = callers(reader, analysis, &JUDGE, &words, places)?;
        let mut table = schema::callers(&rows);
        if let Some(keys) = sort {
            table.sort(keys)?;
        }
        table.entries = config.entries(args.entries.entries, ENTRIES);
        table.missing = missing("waits", capabilities);
        table.notes = remarks;
        Ok(Body::Noted(table))
    })
}
