//! `holdup report`, and `holdup diagnose --format html`: a page with all results.

use crate::cli::{ColorName, CommonArgs, DiagnoseArgs, FormatName, OutputArgs, ReportArgs};
use crate::exit::{Result, usage};
use std::io::{IsTerminal, stdout};

/// Run the verb.
pub(crate) fn run(args: &ReportArgs) -> Result<u8> {
    if args.output.is_none() && stdout().is_terminal() {
        return Err(usage(
            "an HTML page is for a browser, not for a terminal; write it with -o report.html",
        ));
    }
    crate::diagnose::run(&DiagnoseArgs {
        common: CommonArgs {
            trace: args.trace.clone(),
            select: args.select.clone(),
            output: OutputArgs {
                format: FormatName::Html,
                json: false,
                separator: None,
                output: args.output.clone(),
                color: ColorName::Never,
                verbose: false,
                quiet: args.quiet,
            },
        },
        baseline: args.baseline.clone(),
        fail_on: Vec::new(),
        counters: Vec::new(),
        metrics: None,
        case: None,
        thresholds: args.thresholds.clone(),
        explain: false,
        gain: args.gain,
        symbols: args.symbols.clone(),
        unkept: None,
    })
}
