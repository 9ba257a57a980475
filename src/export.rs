//! `holdup export`: facts and tables as files.

use crate::cli::{ExportArgs, ExportFormat};
use crate::config::Config;
use crate::exit::{self, Failure, Result, usage};
use crate::progress;
use crate::tables::missing;
use crate::thresholds::thresholds;
use holdup_attribution::Attribution;
use holdup_diagnose::phases::{self, Wanted};
use holdup_diagnose::{Extras, diagnose_with_extras};
use holdup_export::{Choice, PATH, Request, TableFormat, definitions};
use holdup_passes::Detail;
use std::io::Write;

/// Run the verb.
pub(crate) fn run(args: &ExportArgs) -> Result<u8> {
    let limits = thresholds(args.thresholds.as_deref())?;
    let form = form(args)?;
    let file = matches!(form, Form::Chrome);
    match args.to.is_dir() {
        false if args.to.exists() && !file => {
            return Err(usage(format!("--to: {}: is not a folder", args.to.display())));
        }
        true if file => {
            let to = args.to.display();
            return Err(usage(format!("--to: {to}: is a folder; name a FILE.json")));
        }
        _ => {}
    }
    let config = Config::of_trace(&args.trace, &args.select, args.quiet)?;
    let reader = holdup_open::open(&config.trace)?;
    let mut options = config.options(&*reader)?;
    options.detail = if form.needs_sleeps() { Detail::Intervals } else { Detail::Edges };

    let judged = phases::read(&*reader, &options, &limits, Wanted { replay: None, whole: true })?;
    config.must_match(judged.whole())?;
    let diagnosis = diagnose_with_extras(reader.info(), &judged, Extras::default(), limits.clone());
    let all = judged.whole.as_ref().unwrap_or(&judged.analysis);
    let mut rows = judged.phases.clone();
    match &mut rows[..] {
        // The verdict on the trace is the verdict on its only phase.
        [row] => row.class = Some(diagnosis.verdict.class),
        several => phases::judge_each(&*reader, &options, all.cpu_list(), several, &limits)?,
    }
    let request = Request {
        reader: &*reader,
        info: reader.info(),
        judged: &Attribution::new(all, &limits),
        diagnosis: &diagnosis,
        phases: &rows,
        quality: &all.quality.entries(),
        bytes: config.trace.metadata().ok().filter(|m| m.is_file()).map(|m| m.len()),
        missing: &|table| missing(verb(table), &reader.info().capabilities),
    };
    let to = args.to.display();
    let said = match form {
        Form::Tables(choice) => {
            let written = holdup_export::tables(&request, &choice, &args.to)?;
            format!("{} tables in {to} (.{})", written.len(), choice.format.extension())
        }
        Form::Chrome => format!("{} slices in {to}", holdup_export::chrome(&request, &args.to)?),
        Form::Lami => {
            holdup_export::lami(&request, &args.to)?;
            format!("metadata.json and results.json in {to}")
        }
    };
    progress::end();
    if !args.quiet {
        writeln!(std::io::stdout(), "{said}").map_err(Failure::Stdout)?;
    }
    Ok(exit::OK)
}

/// What to write, and in which form.
enum Form {
    Tables(Choice),
    Chrome,
    Lami,
}

impl Form {
    /// Whether it includes the critical path, which needs every sleep.
    fn needs_sleeps(&self) -> bool {
        match self {
            Form::Tables(choice) => choice.has(PATH),
            Form::Chrome => true,
            Form::Lami => false,
        }
    }
}

/// The tables and their form. A wrong name is reported before the trace is read.
fn form(args: &ExportArgs) -> Result<Form> {
    let tables = definitions();
    if let Some(name) = args.tables.iter().find(|name| !tables.iter().any(|t| t.name == **name)) {
        let known: Vec<&str> = tables.iter().map(|t| t.name).collect();
        return Err(usage(format!(
            "--tables: there is no table {name}; the tables are {}",
            known.join(", ")
        )));
    }
    let json = args.to.extension().is_some_and(|e| e == "json");
    let default = if json { ExportFormat::Chrome } else { ExportFormat::Parquet };
    let format = match args.format.unwrap_or(default) {
        ExportFormat::Chrome | ExportFormat::Lami if !args.tables.is_empty() => {
            return Err(usage("--tables: this format always has the same tables"));
        }
        ExportFormat::Chrome => return Ok(Form::Chrome),
        ExportFormat::Lami => return Ok(Form::Lami),
        ExportFormat::Parquet => TableFormat::Parquet,
        ExportFormat::Arrow => TableFormat::Arrow,
        ExportFormat::Csv => TableFormat::Csv,
        ExportFormat::Ndjson => TableFormat::Ndjson,
    };
    Ok(Form::Tables(Choice { format, names: args.tables.clone() }))
}

/// The verb whose events the table needs.
fn verb(table: &str) -> &str {
    match table {
        "runs" | "wakeups" => "switches",
        "lock_waits" => "locks",
        "by_thread_delay" => "switches",
        _ if table.starts_with("by_lock") => "locks",
        _ if table.ends_with("syscall") => "syscalls",
        _ if table.starts_with("by_irq") => "irqs",
        "by_object" | "by_object_kind" | "by_thread_object" | "by_holding" => "waits",
        "by_command" | "by_process" | "by_thread" => "procs",
        "by_cpu" => "cpus",
        "by_cgroup" => "switches",
        _ => table,
    }
}
