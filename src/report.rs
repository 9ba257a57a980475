//! `holdup report`, and `holdup diagnose --format html`: a page with everything.

use crate::cli::{ColorName, CommonArgs, DiagnoseArgs, FormatName, OutputArgs, ReportArgs};
use crate::commands::{any_table, table_names};
use crate::config::Config;
use crate::exit::usage;
use anyhow::Result;
use holdup_attribution::{Attribution, follow};
use holdup_diagnose::phases::Judged;
use holdup_passes::{Analysis, Detail};
use holdup_render::html::{self, Beside, Timeline};
use holdup_render::{Report, Table, schema};
use holdup_trace::Reader;
use std::io::{IsTerminal, stdout};

/// What the page needs to be kept about waits: who waits for whom.
pub(crate) const DETAIL: Detail = Detail::Edges;

/// Run the verb.
pub(crate) fn run(args: &ReportArgs) -> Result<u8> {
    if args.output.is_none() && stdout().is_terminal() {
        return Err(usage("a page is for a browser, not for a terminal: say -o report.html"));
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

/// Write the page about `answer`. Tables, graph and timeline are of all that was read, as those of
/// the other verbs are, even where the verdict is about a part of it. For the timeline the trace is
/// read once more.
pub(crate) fn write(
    config: Config,
    reader: &dyn Reader,
    judged: &Judged,
    answer: &Report,
) -> Result<()> {
    let whole = judged.whole.as_ref().unwrap_or(&judged.analysis);
    let whom = html::whom(whole);
    let followed = follow(reader, whole, &whom)?;
    let beside = Beside {
        tables: tables(reader, whole),
        graph: Some(Attribution::from(whole).graph()),
        timeline: Some(Timeline::new(whole, &followed, &whom)),
    };
    config.output.write_with(|out| html::write(answer, beside, out))
}

fn tables(reader: &dyn Reader, whole: &Analysis) -> Vec<Table> {
    let capabilities = &reader.info().capabilities;
    let verbs = table_names().into_iter().filter_map(|name| any_table(name, whole, capabilities));
    verbs.chain(groups(whole)).collect()
}

/// What each control group had of the machine, where threads are known to be in more than one.
fn groups(whole: &Analysis) -> Option<Table> {
    let rows = whole.cgroups();
    let several = rows.iter().filter(|row| row.cgroup.is_some()).count() > 1;
    several.then(|| schema::cgroups(&rows))
}
