//! From a trace to the output: open, analyse, build, write.

use crate::cli::CommonArgs;
use crate::code;
use crate::config::Config;
use crate::exit::Result;
use crate::profile::args::SymbolArgs;
use holdup_attribution::analyze;
use holdup_passes::{Analysis, Detail, Options};
use holdup_profile::Code;
use holdup_render::{Body, Format, Report, TraceHead, text};
use holdup_trace::{QualityEntry, Reader, Severity};

/// Open, analyse, and write the result of `build`.
pub(crate) fn report(
    command: &'static str,
    args: &CommonArgs,
    build: impl FnOnce(&dyn Reader, &Analysis, &Config) -> Result<Body>,
) -> Result<()> {
    report_with(command, Config::new(args)?, Detail::Sums, build)
}

/// [`report`] of the waits and of the code around them.
pub(crate) fn report_with_code(
    command: &'static str,
    (args, symbols): (&CommonArgs, &SymbolArgs),
    detail: Detail,
    build: impl FnOnce(&dyn Reader, &Analysis, Option<Code<'_>>, &Config) -> Result<Body>,
) -> Result<()> {
    let config = Config::new(args)?.named_by(symbols)?;
    let reader = holdup_open::open(&config.trace)?;
    let options = Options { detail, ..config.options(&*reader)? };
    let (analysis, code) = code::analyze_with_code(&*reader, &options, symbols)?;
    write(command, config, &*reader, &analysis, |reader, analysis, config| {
        build(reader, analysis, code, config)
    })
}

/// [`report`] with resolved arguments, and more detail about waits.
pub(crate) fn report_with(
    command: &'static str,
    config: Config,
    detail: Detail,
    build: impl FnOnce(&dyn Reader, &Analysis, &Config) -> Result<Body>,
) -> Result<()> {
    let reader = holdup_open::open(&config.trace)?;
    let mut options = config.options(&*reader)?;
    options.detail = detail;
    let analysis = analyze(&*reader, &options)?;
    write(command, config, &*reader, &analysis, build)
}

/// Write the result of `build` for `analysis`.
pub(crate) fn write(
    command: &'static str,
    config: Config,
    reader: &dyn Reader,
    analysis: &Analysis,
    build: impl FnOnce(&dyn Reader, &Analysis, &Config) -> Result<Body>,
) -> Result<()> {
    config.must_match(analysis)?;
    let report = Report {
        command,
        trace: TraceHead::new(reader.info(), analysis),
        quality: analysis.quality.entries(),
        body: build(reader, analysis, &config)?,
    };
    write_report(config, &report)
}

/// Print quality problems if the output has no place for them: losses must not go unnoticed.
pub(crate) fn warn_of_losses(path: &str, quality: &[QualityEntry]) {
    for entry in quality.iter().filter(|e| e.severity > Severity::Info) {
        eprintln!("holdup: {}: {}", text::escape(path), text::quality_words(entry));
    }
}

/// Write `report` to the requested destination in the requested form.
pub(crate) fn write_report(config: Config, report: &Report) -> Result<()> {
    crate::progress::end();
    if matches!(config.format, Format::Csv { .. }) && !config.quiet {
        warn_of_losses(&report.trace.path, &report.quality);
    }
    config.output.write(report, &config.format)
}
