//! The meaning of the command line, resolved before anything is read.

use crate::choice;
use crate::cli::{ColorName, CommonArgs, FormatName, OutputArgs, SelectArgs, TraceArg};
use crate::exit::{Result, usage};
use crate::files::Files;
use crate::output::Output;
use crate::places::places;
use crate::profile::args::SymbolArgs;
use crate::progress;
use crate::window::Window;
use holdup_attribution::Thresholds;
use holdup_diagnose::phases;
use holdup_passes::{Analysis, Filter, Options, Selection};
use holdup_render::{Format, TextOptions};
use holdup_trace::{Cpu, Nanos, Reader};
use std::path::PathBuf;

/// Everything a command needs in addition to its own arguments.
pub(crate) struct Config {
    pub(crate) trace: PathBuf,
    pub(crate) format: Format,
    pub(crate) output: Output,
    pub(crate) quiet: bool,
    selection: Selection,
    filter: Filter,
    window: Option<Window>,
    phase: Option<usize>,
    files: Files,
}

impl Config {
    /// Resolve `args` and open the output, so that a wrong output is reported before a long read.
    pub(crate) fn new(args: &CommonArgs) -> Result<Config> {
        let (selection, window) = selection(&args.select)?;
        let filter = choice::filter(&args.select);
        let trace = named_trace(&args.trace)?;
        let output = Output::open(args.output.output.as_deref(), &[&trace])?;
        let format = format(&args.output, &output)?;
        let (phase, quiet) = (args.select.phase, args.output.quiet);
        progress::start(quiet);
        let files = Files::of(places(&SymbolArgs::default())?);
        Ok(Config { trace, format, output, quiet, selection, filter, window, phase, files })
    }

    /// Use the files that the command line names to name code and variables.
    pub(crate) fn named_by(self, symbols: &SymbolArgs) -> Result<Config> {
        Ok(Config { files: Files::of(places(symbols)?), ..self })
    }

    /// The configuration of a verb that writes no report.
    pub(crate) fn of_trace(trace: &TraceArg, select: &SelectArgs, quiet: bool) -> Result<Config> {
        let (selection, window) = selection(select)?;
        let filter = choice::filter(select);
        let trace = named_trace(trace)?;
        progress::start(quiet);
        let (format, output) = (Format::Json, Output::Stdout);
        let phase = select.phase;
        let files = Files::of(places(&SymbolArgs::default())?);
        Ok(Config { trace, format, output, quiet, selection, filter, window, phase, files })
    }

    /// Which events and rows to use, with the time window or phase resolved for this trace. Finding
    /// a phase reads the trace.
    pub(crate) fn options(&self, reader: &dyn Reader) -> Result<Options> {
        let mut selection = self.selection.clone();
        if let Some(window) = self.window {
            (selection.from, selection.to) =
                window.resolve(reader.info().part()).map_err(|e| usage(format!("--time: {e}")))?;
        }
        if let Some(number) = self.phase {
            let (from, to) = self.phase_of(reader, number)?;
            (selection.from, selection.to) = (Some(from), Some(to));
        }
        let selection = selection.within(reader.info());
        let Files { variables, spins } = self.files.clone();
        let (variables, spins) = (Some(variables), Some(spins));
        Ok(Options {
            selection,
            filter: self.filter.clone(),
            variables,
            spins,
            ..Options::default()
        })
    }

    /// First and last time of a phase.
    fn phase_of(&self, reader: &dyn Reader, number: usize) -> Result<(Nanos, Nanos)> {
        let all = Options::from(self.selection.clone().within(reader.info()));
        let (phases, _) = phases::find(reader, &all, &Thresholds::default())?;
        match number.checked_sub(1).and_then(|i| phases.get(i)) {
            Some(phase) => Ok((phase.start, phase.end)),
            None => Err(usage(format!(
                "--phase: there is no phase {number}; holdup phases shows the {} of this trace",
                phases.len()
            ))),
        }
    }

    /// [`Config::options`] for a verb that judges: the chosen threads are the work, and every row
    /// stays.
    pub(crate) fn judged_options(&self, reader: &dyn Reader) -> Result<Options> {
        let options = self.options(reader)?;
        Ok(Options { work: self.filter.clone(), filter: Filter::default(), ..options })
    }

    /// Reject a choice that matches no thread of the trace.
    pub(crate) fn must_match(&self, analysis: &Analysis) -> Result<()> {
        choice::must_match(&self.filter, analysis)
    }

    /// Whether threads were chosen.
    pub(crate) fn chooses_threads(&self) -> bool {
        self.filter.chooses_threads()
    }

    /// Add the choice of threads to the commands whose verbs can choose threads.
    pub(crate) fn lead_on(&self, commands: &mut [String]) {
        let choice = choice::words(&self.filter);
        for command in commands {
            let verb = command.strip_prefix("holdup ").and_then(|rest| rest.split(' ').next());
            if let Some(verb) = verb.filter(|v| choice::takes(v)) {
                let at = "holdup ".len() + verb.len();
                command.insert_str(at, &choice);
            }
        }
    }

    /// Whether some events are selected, not all.
    pub(crate) fn selects(&self) -> bool {
        self.selection.cpus.is_some() || self.window.is_some() || self.phase.is_some()
    }

    /// Number of rows to show: see [`entries`].
    pub(crate) fn entries(&self, asked: Option<usize>, text: usize) -> Option<usize> {
        entries(&self.format, asked, text)
    }
}

/// Number of rows to show: as requested, 0 for all; by default `text` rows in text, which people
/// read.
pub(crate) fn entries(format: &Format, asked: Option<usize>, text: usize) -> Option<usize> {
    match asked {
        Some(0) => None,
        Some(n) => Some(n),
        None => matches!(format, Format::Text(_)).then_some(text),
    }
}

fn named_trace(args: &TraceArg) -> Result<PathBuf> {
    match args.input.as_ref().or(args.trace.as_ref()) {
        Some(path) => Ok(path.clone()),
        None => default_trace(),
    }
}

/// The default file names of perf and trace-cmd.
pub(crate) fn default_trace() -> Result<PathBuf> {
    ["perf.data", "trace.dat"].into_iter().map(PathBuf::from).find(|p| p.exists()).ok_or_else(
        || {
            usage(
                "no TRACE given, and neither perf.data nor trace.dat is in the current directory; \
                 holdup record makes a trace",
            )
        },
    )
}

fn selection(args: &SelectArgs) -> Result<(Selection, Option<Window>)> {
    let cpus =
        match &args.cpu {
            Some(text) => Some(Cpu::parse_list(text).ok_or_else(|| {
                usage(format!("--cpu: '{text}' is not a list of CPUs; write 0-3,5"))
            })?),
            None => None,
        };
    let window = args
        .time
        .as_deref()
        .map(Window::parse)
        .transpose()
        .map_err(|e| usage(format!("--time: {e}")))?;
    Ok((Selection { cpus, ..Selection::default() }, window))
}

/// Text with all reasons, if requested; the other formats always have them.
pub(crate) fn explained(format: Format, explain: bool) -> Format {
    match format {
        Format::Text(options) => Format::Text(TextOptions { explain, ..options }),
        other => other,
    }
}

/// The requested form of output.
pub(crate) fn format(args: &OutputArgs, output: &Output) -> Result<Format> {
    if args.json {
        return Ok(Format::Json);
    }
    if let Some(separator) = &args.separator {
        let separator = separator.replace("\\t", "\t");
        if separator.is_empty() || separator.contains(['"', '\n', '\r']) {
            return Err(usage("-x: the separator must not be empty, a quote or a line break"));
        }
        return Ok(Format::Csv { separator });
    }
    Ok(match args.format {
        FormatName::Json => Format::Json,
        FormatName::Csv => Format::Csv { separator: ",".to_owned() },
        FormatName::Md => Format::Markdown,
        FormatName::Html => Format::Html,
        FormatName::Text => Format::Text(TextOptions {
            color: match args.color {
                ColorName::Always => true,
                ColorName::Never => false,
                ColorName::Auto => output.wants_color(),
            },
            width: output.width(),
            verbose: args.verbose,
            quiet: args.quiet,
            explain: false,
        }),
    })
}
