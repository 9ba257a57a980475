//! `holdup predict`: what locks cost on other numbers of CPUs.

use crate::choice::{self, DIAGNOSE};
use crate::cli::PredictArgs;
use crate::config::{self, Config};
use crate::exit::{self, Result, usage};
use crate::output::Output;
use crate::tables::{ENTRIES, missing, sort};
use crate::thresholds::read;
use crate::units::cpus;
use crate::write::write_report;
use holdup_attribution::{Attribution, analyze};
use holdup_diagnose::metrics::Figures;
use holdup_diagnose::predict::{self, Forecast, MOST_CPUS};
use holdup_render::{Body, Format, PredictBody, Report, TraceHead, schema, svg};
use std::path::Path;

/// Default numbers of CPUs for a demand without trace: those of figure 2.2 of the source.
const CPUS_OF_A_DEMAND: [u32; 7] = [1, 2, 4, 8, 16, 32, 64];

/// Run the verb.
pub(crate) fn run(args: &PredictArgs) -> Result<u8> {
    sort(&args.table, &mut schema::predict(&[]))?;
    let cpus =
        args.cpus.as_deref().map(|text| cpus(text, MOST_CPUS)).transpose()?.unwrap_or_default();
    match (&args.demand, &args.metrics) {
        (Some(demand), _) => of_demand(args, demand, &cpus),
        (None, Some(path)) => of_figures(args, path, &cpus),
        (None, None) if args.servers.is_some() => Err(usage("--servers needs --demand")),
        (None, None) => of_trace(args, &cpus),
    }?;
    Ok(exit::OK)
}

fn of_demand(args: &PredictArgs, text: &str, cpus: &[u32]) -> Result<()> {
    let demand = part(text)?;
    let (output, format, plot) = open(args, None)?;
    let cpus = if cpus.is_empty() { &CPUS_OF_A_DEMAND } else { cpus };
    let forecast = predict::of_demand(demand, args.servers.unwrap_or(1), args.threads, cpus);
    let trace = TraceHead::dump(Path::new(&format!("demand {text}")), "no trace".to_owned());
    draw(plot, &forecast)?;
    let report = Report {
        command: "predict",
        trace,
        quality: Vec::new(),
        body: body(args, forecast, &format)?,
    };
    output.write(&report, &format)
}

fn of_figures(args: &PredictArgs, path: &Path, cpus: &[u32]) -> Result<()> {
    let (output, format, plot) = open(args, Some(path))?;
    let wrong = |what: &dyn std::fmt::Display| usage(format!("{}: {what}", path.display()));
    let figures = Figures::parse(&read(path)?, args.case.as_deref()).map_err(|e| wrong(&e))?;
    let forecast = predict::of_figures(&figures, cpus)
        .map_err(|what| wrong(&format!("{what}; docs/metrics.md describes the file")))?;
    draw(plot, &forecast)?;
    let wall_ns = (figures.seconds.unwrap_or(1.0) * 1e9) as u64;
    let cpus = figures.processors().unwrap_or(1);
    let report = Report {
        command: "predict",
        trace: TraceHead::of_figures(path.display().to_string(), cpus, wall_ns),
        quality: Vec::new(),
        body: body(args, forecast, &format)?,
    };
    output.write(&report, &format)
}

fn of_trace(args: &PredictArgs, cpus: &[u32]) -> Result<()> {
    choice::refuse(&args.table.common.select, "predict", DIAGNOSE)?;
    let config = Config::new(&args.table.common)?;
    let plot = plot(args, &[&config.trace])?;
    let reader = holdup_open::open(&config.trace)?;
    let analysis = analyze(&*reader, &config.options(&*reader)?)?;
    let forecast = predict::of_trace(&Attribution::from(&analysis), cpus, args.threads);
    draw(plot, &forecast)?;
    let mut body = body(args, forecast, &config.format)?;
    if let Body::Predict(predict) = &mut body {
        predict.table.missing = missing("predict", &reader.info().capabilities);
    }
    let report = Report {
        command: "predict",
        trace: TraceHead::new(reader.info(), &analysis),
        quality: analysis.quality.entries(),
        body,
    };
    write_report(config, &report)
}

/// Open the destinations of the answer and the picture, before anything is read.
fn open(args: &PredictArgs, input: Option<&Path>) -> Result<(Output, Format, Option<Output>)> {
    let common = &args.table.common.output;
    let inputs: Vec<&Path> = input.into_iter().collect();
    let output = Output::open(common.output.as_deref(), &inputs)?;
    let format = config::format(common, &output)?;
    Ok((output, format, plot(args, &inputs)?))
}

fn plot(args: &PredictArgs, inputs: &[&Path]) -> Result<Option<Output>> {
    args.plot.as_deref().map(|path| Output::open(Some(path), inputs)).transpose()
}

/// Draw the curve, if requested.
fn draw(picture: Option<Output>, forecast: &Forecast) -> Result<()> {
    let Some(picture) = picture else { return Ok(()) };
    let Some(curve) = &forecast.curve else {
        return Err(usage("--plot: there is nothing to draw: no lock has a known demand"));
    };
    let remark = forecast.notes.first().map_or("", String::as_str);
    picture.write_with(|out| svg::write_curve(curve, remark, out))
}

fn body(args: &PredictArgs, forecast: Forecast, format: &Format) -> Result<Body> {
    let mut table = schema::predict(&forecast.rows);
    sort(&args.table, &mut table)?;
    table.entries = config::entries(format, args.table.entries.entries, ENTRIES);
    table.notes = forecast.notes;
    Ok(Body::Predict(Box::new(PredictBody { table, curve: forecast.curve })))
}

/// `6%` or `0.06`.
fn part(text: &str) -> Result<f64> {
    let wrong = || {
        usage(format!(
            "--demand: '{text}' is not a part of a CPU's time: write 6% or 0.06, at most 1"
        ))
    };
    let (number, whole) = match text.trim().strip_suffix('%') {
        Some(percent) => (percent.trim_end(), 100.0),
        None => (text.trim(), 1.0),
    };
    let part = number.parse::<f64>().map_err(|_| wrong())? / whole;
    if (0.0..=1.0).contains(&part) { Ok(part) } else { Err(wrong()) }
}
