//! `holdup cut`: a part of a trace as a small file of the same format.

use crate::cli::{CutArgs, SelectArgs};
use crate::config::Config;
use crate::exit::{self, Failure, Result, usage};
use crate::output::same_file;
use crate::progress;
use holdup_trace::Cut;
use std::io::Write;

/// Run the verb.
pub(crate) fn run(args: &CutArgs) -> Result<u8> {
    let select = SelectArgs {
        time: args.time.clone(),
        phase: args.phase,
        cpu: args.cpu.clone(),
        ..SelectArgs::default()
    };
    let config = Config::of_trace(&args.trace, &select, args.quiet)?;
    let to = args.output.display();
    if same_file(&config.trace, &args.output) {
        return Err(usage(format!("{to}: is the trace itself; it would be overwritten")));
    }
    let unpacked = holdup_open::unpacked(&config.trace)?;
    let named = |mut e: holdup_trace::ReadError| {
        e.file.clone_from(&config.trace);
        e
    };
    let reader = holdup_open::open(unpacked.path()).map_err(named)?;
    let Some((first, last)) = reader.info().part() else {
        return Err(exit::bad_input(&config.trace, "contains no event with a time stamp"));
    };
    let selection = config.options(&*reader)?.selection;
    let from = selection.from.unwrap_or(first).max(first);
    let end = selection.to.unwrap_or(last).min(last).max(from);
    let cut = Cut {
        time: (selection.from.is_some() || selection.to.is_some()).then_some((from, end)),
        whole: reader.info().span,
        cpus: selection.cpus,
        anonymous: args.anonymize,
    };
    let written =
        holdup_cut::cut(&*reader, unpacked.path(), &cut, &args.output).map_err(|e| match e {
            holdup_cut::CutError::Trace(e) => Failure::from(named(e)),
            e @ holdup_cut::CutError::Unreadable { .. } => exit::bad_input(&config.trace, e),
            e @ holdup_cut::CutError::Output { .. } => usage(e.to_string()),
        })?;
    progress::end();
    if !args.quiet {
        writeln!(
            std::io::stdout(),
            "{} events of the part, and {} events for the state at its beginning, are in {to} ({} \
             bytes)",
            written.inside,
            written.outside,
            written.bytes,
        )
        .map_err(Failure::Stdout)?;
    }
    Ok(exit::OK)
}
