//! `holdup diagnose`: of a trace, or of figures without one.

use crate::cli::DiagnoseArgs;
use crate::config::{self, Config, default_trace};
use crate::exit::{self, Result, usage};
use crate::measured;
use crate::output::Output;
use crate::page;
use crate::progress;
use crate::replay::{self, Asked, ForVerdict};
use crate::thresholds::{read, thresholds};
use crate::write::write_report;
use holdup_attribution::analyze;
use holdup_diagnose::metrics::{self, Figures};
use holdup_diagnose::{Class, Extras, Measured, Thresholds, diagnose_with_extras};
use holdup_passes::{Detail, Options};
use holdup_render::{Body, Format, Report, TraceHead};
use holdup_trace::shell_word;
use std::path::Path;

/// The name of a recording that is not kept.
pub(crate) const NOT_KEPT: &str = "recording, not kept";
/// The file in which the advised command keeps it.
pub(crate) const KEPT: &str = "perf.data";

/// Run the verb.
pub(crate) fn run(args: &DiagnoseArgs) -> Result<u8> {
    let fail_on = args
        .fail_on
        .iter()
        .map(|id| {
            Class::from_id(id).ok_or_else(|| {
                usage(format!("--fail-on: there is no class {id}; the classes are {}", class_ids()))
            })
        })
        .collect::<Result<Vec<Class>>>()?;
    let thresholds = thresholds(args.thresholds.as_deref())?;
    let measured = measured::read(&args.counters, args.common.output.quiet)?;
    let alone = !measured.is_empty() && args.common.trace.is_default() && default_trace().is_err();
    let class = match &args.metrics {
        Some(path) => of_figures(args, Some(path), &measured, thresholds)?,
        None if alone => of_figures(args, None, &measured, thresholds)?,
        None => of_trace(args, &measured, thresholds)?,
    };
    Ok(match class {
        class if fail_on.contains(&class) => exit::FAILED,
        Class::NotEnoughEvidence => exit::INCONCLUSIVE,
        _ => exit::OK,
    })
}

fn of_trace(args: &DiagnoseArgs, measured: &[Measured], thresholds: Thresholds) -> Result<Class> {
    let baseline = match &args.baseline {
        Some(path) => {
            progress::start(args.common.output.quiet);
            let reader = holdup_open::open(path)?;
            Some(analyze(&*reader, &Options::default())?)
        }
        None => None,
    };
    let mut config = Config::new(&args.common)?.named_by(&args.symbols)?;
    config.format = config::explained(config.format, args.explain);
    let reader = holdup_open::open(&config.trace)?;
    let as_page = matches!(config.format, Format::Html);
    let detail = if as_page { page::DETAIL } else { Detail::Sums };
    let asked = Asked { gain: args.gain, detail, whole: as_page };
    let ForVerdict { judged, code, not_replayed } =
        replay::read(&config, &*reader, &thresholds, &args.symbols, asked)?;
    let extras =
        Extras { baseline: baseline.as_ref(), measured, code: code.as_ref().map(|c| c as _) };
    let mut diagnosis = diagnose_with_extras(reader.info(), &judged, extras, thresholds);
    diagnosis.not_replayed = diagnosis.not_replayed.or(not_replayed);
    config.lead_on(&mut diagnosis.next);
    let verdict = diagnosis.verdict.class;
    let mut head = TraceHead::new(reader.info(), &judged.analysis).of_part(judged.part_of_ns);
    if let Some(again) = &args.unkept {
        // No suggested command may name a file that will be deleted.
        let gone = shell_word(&head.path);
        diagnosis.next.iter_mut().for_each(|next| *next = next.replace(&gone, KEPT));
        diagnosis.next.insert(0, again.clone());
        head.path = NOT_KEPT.to_owned();
    }
    let answer = Report {
        command: "diagnose",
        trace: head,
        quality: judged.analysis.quality.entries(),
        body: Body::Diagnosis(Box::new(diagnosis)),
    };
    if as_page {
        page::write(config, &*reader, &judged, &answer)?;
    } else {
        write_report(config, &answer)?;
    }
    Ok(verdict)
}

/// Figures of a file, runs of perf stat, or both.
fn of_figures(
    args: &DiagnoseArgs,
    path: Option<&Path>,
    measured: &[Measured],
    thresholds: Thresholds,
) -> Result<Class> {
    let inputs: Vec<&Path> =
        path.into_iter().chain(measured.iter().map(|m| Path::new(&m.path))).collect();
    let output = Output::open(args.common.output.output.as_deref(), &inputs)?;
    let format = config::explained(config::format(&args.common.output, &output)?, args.explain);
    let names: Vec<String> = inputs.iter().map(|p| p.display().to_string()).collect();
    let name = names.join(", ");
    let figures = match path {
        Some(path) => Figures::parse(&read(path)?, args.case.as_deref())
            .map_err(|e| usage(format!("{}: {e}", path.display())))?,
        None => Figures::of_runs(measured),
    };
    let mut options: Vec<String> =
        path.iter().map(|path| format!("--metrics {}", path.display())).collect();
    options.extend(args.case.iter().map(|case| format!("--case {case}")));
    options.extend(args.counters.iter().map(|c| format!("--counters {}", c.display())));
    let diagnosis = metrics::judge_with(&options.join(" "), &figures, measured, thresholds);
    let verdict = diagnosis.verdict.class;
    let wall_ns = (figures.seconds.unwrap_or(1.0) * 1e9) as u64;
    let report = Report {
        command: "diagnose",
        trace: TraceHead::of_figures(name, figures.processors().unwrap_or(1), wall_ns),
        quality: Vec::new(),
        body: Body::Diagnosis(Box::new(diagnosis)),
    };
    output.write(&report, &format)?;
    Ok(verdict)
}

fn class_ids() -> String {
    Class::ALL.iter().map(|c| c.id()).collect::<Vec<_>>().join(", ")
}
