//! `holdup query` with SQL linked in: export the needed tables, open them, answer.

use super::args::QueryArgs;
use super::words::Words;
use super::{ENTRIES, examples, prompt};
use crate::cli::{ExportArgs, ExportFormat, SelectArgs, TraceArg};
use crate::config::{self, default_trace, entries};
use crate::exit::{self, Failure, Result, usage};
use crate::output::Output;
use crate::progress;
use holdup_render::Format;
use holdup_tables::{Error, Frames, Source};
use std::collections::BTreeSet;
use std::io::{self, IsTerminal, Read, Write};
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// Answer the query, or prompt for queries.
pub(super) fn answer(args: &QueryArgs) -> Result<u8> {
    let Words { mut inputs, mut sql } = Words::of(&args.words)?;
    if inputs.is_empty() {
        inputs.push(default_trace()?);
    }
    let asks = sql.is_none() && io::stdin().is_terminal();
    if sql.is_none() && !asks {
        let mut text = String::new();
        let read = io::stdin().read_to_string(&mut text);
        read.map_err(|e| usage(format!("standard input: no query can be read: {e}")))?;
        sql = Some(text);
    }
    let paths: Vec<&Path> = inputs.iter().map(PathBuf::as_path).collect();
    let named = sql.as_deref().map(holdup_tables::tables_named).transpose().map_err(failure)?;
    if named.as_ref().is_some_and(BTreeSet::is_empty) {
        return Err(usage("query: SELECT needs a table: write FROM"));
    }
    let output = Output::open(args.output.output.as_deref(), &paths)?;
    let format = config::format(&args.output, &output)?;
    let shown = entries(&format, args.entries, ENTRIES);
    progress::start(args.output.quiet);
    let opened = Opened::new(&inputs, named.as_ref())?;
    progress::end();
    silence_panics();
    match sql {
        Some(sql) => {
            let rows = holdup_tables::query(&opened.frames, &sql)
                .and_then(|rows| holdup_tables::answer(&rows))
                .map_err(failure)?;
            output.write_with(|out| rows.write(shown, &format, out))?;
        }
        None => ask(&opened.frames, &format, shown)?,
    }
    Ok(exit::OK)
}

/// Silence panics inside polars: they are reported as errors of the query.
fn silence_panics() {
    std::panic::set_hook(Box::new(|_| {}));
}

/// A wrong query is a usage error, a wrong file is an input error.
fn failure(error: Error) -> Failure {
    match error {
        Error::Input(message) => Failure::Input(message),
        Error::Sql { .. } => usage(format!("query: {error}")),
    }
}

/// Frames, and the temporary folders of their tables.
struct Opened {
    frames: Frames,
    /// Deleted when the last query is answered.
    _exports: Vec<TempDir>,
}

impl Opened {
    /// Open folders directly; first export traces: the tables `named`, or all.
    fn new(inputs: &[PathBuf], named: Option<&BTreeSet<String>>) -> Result<Opened> {
        let (mut sources, mut exports) = (Vec::new(), Vec::new());
        for input in inputs {
            if is_export(input) {
                sources.extend(Source::find(input).map_err(failure)?);
                continue;
            }
            let folder = tempfile::Builder::new().prefix("holdup-query-").tempdir();
            let folder = folder.map_err(|e| {
                usage(format!("no folder for the tables can be created in $TMPDIR or /tmp: {e}"))
            })?;
            export(input, folder.path(), named)?;
            sources.push(Source {
                trace: input.display().to_string(),
                folder: folder.path().to_owned(),
            });
            exports.push(folder);
        }
        Ok(Opened { frames: Frames::open(&sources).map_err(failure)?, _exports: exports })
    }
}

/// Write the tables `named` of a trace into `folder`, or all of them.
fn export(trace: &Path, folder: &Path, named: Option<&BTreeSet<String>>) -> Result<()> {
    let tables = named.into_iter().flatten().map(|name| exists(name)).collect::<Result<_>>()?;
    let args = ExportArgs {
        trace: TraceArg { trace: Some(trace.to_owned()), input: None },
        to: folder.to_owned(),
        tables,
        format: Some(ExportFormat::Parquet),
        select: SelectArgs::default(),
        thresholds: None,
        quiet: true,
    };
    crate::export::run(&args).map(drop)
}

/// Check that exports have this table, so that a wrong name is reported before the trace is read.
fn exists(name: &str) -> Result<String> {
    let known: Vec<&str> = holdup_export::definitions().iter().map(|table| table.name).collect();
    if known.contains(&name) {
        return Ok(name.to_owned());
    }
    let alike = |known: &&str| (strsim::normalized_damerau_levenshtein(name, known) * 1e3) as u32;
    let hint = match known.iter().copied().max_by_key(alike).filter(|near| alike(near) > 500) {
        Some(near) => format!("did you mean {near}?"),
        None => "holdup query --list lists the tables".to_owned(),
    };
    Err(usage(format!("query: no table {name}; {hint}")))
}

/// Whether a folder is an export, not a trace: LTTng's and trace-cmd's are folders too.
fn is_export(input: &Path) -> bool {
    input.is_dir() && Source::find(input).is_ok()
}

fn ask(frames: &Frames, format: &Format, shown: Option<usize>) -> Result<()> {
    println!("{}", prompt::HELP);
    prompt::ask(frames, |line| {
        let mut out = io::stdout().lock();
        let mut words = line.split_whitespace();
        match (words.next(), words.next()) {
            (Some("help"), None) => writeln!(out, "{}", prompt::HELP)?,
            (Some("examples"), None) => write!(out, "{}", examples::text())?,
            (Some("tables"), None) => {
                frames.names().try_for_each(|name| writeln!(out, "{name}"))?;
            }
            (Some("columns"), Some(table)) => match frames.schema(table) {
                None => writeln!(out, "no table {table}")?,
                Some(schema) => {
                    let names = schema.iter_names();
                    names.into_iter().try_for_each(|name| writeln!(out, "{name}"))?;
                }
            },
            _ => {
                let rows = holdup_tables::query(frames, line)
                    .and_then(|rows| holdup_tables::answer(&rows));
                match rows {
                    Ok(rows) => rows.write(shown, format, &mut out)?,
                    Err(error) => {
                        let text = holdup_render::escape(&error.to_string()).into_owned();
                        writeln!(out, "{text}")?;
                    }
                }
            }
        }
        Ok(())
    })
}
