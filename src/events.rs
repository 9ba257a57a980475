//! `holdup events`: the one verb that writes as it reads.

use crate::choice;
use crate::cli::EventsArgs;
use crate::config::Config;
use crate::exit::{self, Result, usage};
use crate::places::places;
use crate::write::warn_of_losses;
use holdup_events::{Form, Select, StreamError, stream};
use holdup_profile::Backtraces;
use holdup_render::{Format, text};
use holdup_trace::Reader;

/// Run the verb.
pub(crate) fn run(args: &EventsArgs) -> Result<u8> {
    let config = Config::new(&args.common)?;
    let reader = holdup_open::open(&config.trace)?;
    let select = select(args, &config, &*reader)?;
    let form = match &config.format {
        Format::Text(options) => Form::Text { quiet: options.quiet },
        Format::Json => Form::Json,
        Format::Markdown | Format::Html => {
            return Err(usage("events have no Markdown or HTML output; use text, json or csv"));
        }
        Format::Csv { .. } if args.stacks => {
            return Err(usage("-g: CSV has no place for call chains; use text or json"));
        }
        Format::Csv { separator } => Form::Csv { separator: separator.clone() },
    };
    if args.symbols.any() && !args.stacks {
        return Err(usage("--symfs, --kallsyms and --no-symbols need -g"));
    }
    let places = places(&args.symbols)?;
    let mut chains = args.stacks.then(|| Backtraces::new(reader.info(), places));
    let failed = exit::unfinished(config.output.name());
    let done = config.output.stream(|out| stream(&*reader, &select, &form, chains.as_mut(), out));
    crate::progress::end();
    let streamed = done.map_err(|error| match error {
        StreamError::Read(error) => error.into(),
        StreamError::Write(error) => failed(error),
    })?;
    if streamed.written == 0 {
        must_have_chosen(&select, args)?;
    }
    if !config.quiet {
        for remark in chains.iter().flat_map(Backtraces::remarks) {
            eprintln!("holdup: function names: {}", text::escape(&remark));
        }
        if args.stacks && !reader.info().capabilities.stacks {
            eprintln!("holdup: no call chains were recorded (holdup record -g, perf record -g)");
        }
        // A stream of events has no place for quality problems.
        warn_of_losses(&reader.info().path.to_string_lossy(), &streamed.quality.entries());
    }
    Ok(exit::OK)
}

/// Nothing was written: reject a choice of threads if nothing else was chosen.
fn must_have_chosen(select: &Select, args: &EventsArgs) -> Result<()> {
    let chosen = choice::options(&choice::filter(&args.common.select));
    if chosen.is_empty() || !select.is_of_threads_alone() {
        return Ok(());
    }
    let options = chosen.join(" ");
    Err(usage(format!(
        "{options}: no event of the trace matches; holdup procs lists the threads of the trace"
    )))
}

fn select(args: &EventsArgs, config: &Config, reader: &dyn Reader) -> Result<Select> {
    let (info, options) = (reader.info(), config.options(reader)?);
    let select = Select {
        pids: options.filter.pids,
        tids: options.filter.tids,
        comms: options.filter.comms,
        cgroups: options.filter.cgroups,
        cpus: options.selection.cpus,
        events: args.event.clone(),
        from: options.selection.from,
        to: options.selection.to,
        entries: args.entries.filter(|&n| n > 0),
        sideband: args.common.output.verbose,
    };
    if let Some(pattern) = select.unmatched(info).first() {
        let known: Vec<&str> = info.events.iter().map(|e| e.name.as_str()).collect();
        return Err(usage(format!(
            "--event: the trace has no event {pattern}; its events are {}",
            known.join(", ")
        )));
    }
    Ok(select)
}
