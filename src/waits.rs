//! `holdup waits`: what threads waited for.

use crate::cli::{GraphForm, WaitsArgs, WaitsByName};
use crate::config::Config;
use crate::exit::{Result, usage};
use crate::tables::{ENTRIES, HISTS, missing, no_symbols, table_with, table_with_code};
use crate::write::{report, report_with};
use holdup_attribution::{Attribution, WaitsBy, WaitsRow, in_words};
use holdup_passes::{Analysis, Detail};
use holdup_profile::{Code, KnowsCode};
use holdup_render::{Body, Format, GraphBody, schema};

/// Run the verb.
pub(crate) fn run(args: &WaitsArgs) -> Result<()> {
    if args.hist
        && matches!(args.by, WaitsByName::Thread | WaitsByName::Cgroup | WaitsByName::Caller)
    {
        return Err(usage("--hist works only with --by object or --by kind"));
    }
    if args.folded {
        return crate::profile::callers::folded(&args.table, &args.symbols);
    }
    let by = match args.by {
        WaitsByName::Object => WaitsBy::Object,
        WaitsByName::Kind => WaitsBy::Kind,
        WaitsByName::Thread => WaitsBy::Thread,
        WaitsByName::Cgroup => WaitsBy::Cgroup,
        WaitsByName::Caller => return crate::profile::callers::waits(&args.table, &args.symbols),
    };
    if by != WaitsBy::Object || args.hist || args.graph.is_some() {
        no_symbols(&args.symbols, "object or --by caller")?;
    }
    if args.hist {
        return report("waits", &args.table.common, |reader, analysis, config| {
            let most = config.entries(args.table.entries.entries, HISTS).unwrap_or(usize::MAX);
            let mut table = schema::hist(&Attribution::from(analysis).wait_hists(by, most));
            table.missing = missing("waits", &reader.info().capabilities);
            Ok(Body::Table(table))
        });
    }
    if let Some(form) = args.graph {
        return graph(args, form);
    }
    let empty = schema::waits(&[], by);
    let common = (&args.table, &args.symbols);
    let detail = match by {
        WaitsBy::Object => {
            return table_with_code("waits", common, empty, |analysis, code| {
                schema::waits(&by_object(analysis, code), by)
            });
        }
        WaitsBy::Thread | WaitsBy::Cgroup => Detail::Edges,
        WaitsBy::Kind => Detail::Sums,
    };
    table_with("waits", common, detail, empty, |_, analysis| {
        Ok(schema::waits(&Attribution::from(analysis).waits(by), by))
    })
}

/// What threads waited for, with the code around it.
fn by_object(analysis: &Analysis, code: Option<&Code<'_>>) -> Vec<WaitsRow> {
    let mut rows = Attribution::from(analysis).waits(WaitsBy::Object);
    for row in &mut rows {
        let words = in_words(row.kind, row.usage, &row.object);
        if let Some(around) = code.and_then(|code| code.object(&[words])) {
            row.code = around.words();
            around.tell_holders(&mut row.holders_did);
        }
    }
    rows
}

/// Which thread waited for which.
fn graph(args: &WaitsArgs, form: GraphForm) -> Result<()> {
    let mut config = Config::new(&args.table.common)?.named_by(&args.symbols)?;
    if form == GraphForm::Json {
        config.format = Format::Json;
    }
    report_with("waits", config, Detail::Edges, |_, a, config| {
        let entries = config.entries(args.table.entries.entries, ENTRIES);
        Ok(Body::Graph(Box::new(GraphBody {
            graph: Attribution::from(a).graph(),
            dot: form == GraphForm::Dot,
            entries,
        })))
    })
}
